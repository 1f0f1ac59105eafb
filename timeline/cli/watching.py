"""`timeline watch`: print what happens to a conversation's context as it happens."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from timeline.blocks import instant_text
from timeline.cli import output
from timeline.cli.database import reading
from timeline.display.controls import show_controls
from timeline.lifecycle.live import steps

if TYPE_CHECKING:
    from timeline.lifecycle.events import LifecycleEvent


async def watch(conversation: str, db: str, after: int | None, *, as_json: bool) -> None:
    """Print the events behind a version, then those that come, until it is interrupted."""
    async with reading(db) as store, aclosing(steps(store, conversation, after=after)) as following:  # type: ignore[type-var]  # a generator
        async for step in following:
            for event in step.events:
                output.send_escaped((output.to_json(event.payload()) if as_json else _line(event)) + "\n")
            output.flush()  # a reader of the pipe sees each event when it happens, and we see when it is gone


def _line(event: LifecycleEvent) -> str:
    """Return an event as one line: its time, version, name and what its own line says, between tabs into a pipe."""
    cells = (instant_text(event.at)[:19] + "Z", str(event.version), event.type, show_controls(event.line()))
    text = ("  " if output.on_terminal() else "\t").join(cells)
    return " ".join(text.splitlines())
