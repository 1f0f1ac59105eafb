"""Why a block is shown as it is, at a version or in the context of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.audit.why import why
from timeline.errors import InvalidFilter
from timeline.inspector.rehearsal import possible
from timeline.inspector.shapes import WhyAnswer

if TYPE_CHECKING:
    from timeline.inspector.asked import AskedWhy
    from timeline.inspector.reader import Reader

_MOST: Final = 65_536
"""Characters of the text that is shown in the block's place."""


async def show_why(reader: Reader, asked: AskedWhy) -> WhyAnswer:
    """Answer why a block is shown as it is: its state, the decision behind it, and what shows it again.

    Raises:
        InvalidFilter: both a version and a call are named.
    """
    if asked.at is not None and asked.call is not None:
        raise InvalidFilter("call", "a call names a version by itself. Leave out one of `at` and `call`")
    because = await why(reader.store, asked.id, asked.block, at=asked.at, call=asked.call)
    decisions = await possible(reader, asked.id, asked.block)
    return WhyAnswer(conversation=asked.id, why=_shortened(because.dump()), decisions=decisions)


def _shortened(dumped: dict[str, Any]) -> dict[str, Any]:
    shown = dumped["shown_as"]
    if shown is None or shown["text"] is None or len(shown["text"]) <= _MOST:
        return dumped
    cut = {**shown, "text": shown["text"][:_MOST], "left_out": len(shown["text"]) - _MOST}
    return {**dumped, "shown_as": cut}
