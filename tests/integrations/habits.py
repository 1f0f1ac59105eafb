"""Programs as users of a framework write them, played with our adapter and without it.

While nothing has to be compacted, an adapter changes nothing: the model is sent the same messages, and the program gets
the same answers.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.providers import Call, FakeProvider
from timeline import Timeline
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from timeline.ports import EventStore


class Scene(NamedTuple):
    """What a program is played with: the provider, and the store of the adapter, or None without one."""

    provider: FakeProvider
    store: EventStore | None


class Program(NamedTuple):
    """A program, and what its model answers."""

    script: Any
    play: Callable[[Scene], Awaitable[Any]]


class Played(NamedTuple):
    """What came of a program: what it got, what its model was sent, and which requests were refused."""

    got: Any
    sent: list[Any]
    refused: list[str]


async def played(program: Program, *, ours: bool) -> Played:
    """Play a program, with the adapter or without it; its log is verified."""
    store = MemoryStore() if ours else None
    with FakeProvider(program.script) as provider:
        got = await program.play(Scene(provider, store))
    if store is not None:
        logs = [info.id async for info in store.conversations()]
        assert logs
        for name in logs:
            assert (await (await Timeline.open(store, name)).verify()).ok
    return Played(json.loads(json.dumps(got, default=str)), [asked.body for asked in provider.asked], provider.refused)


async def changes_nothing(program: Program) -> None:
    """Check that a program is the same with the adapter."""
    without = await played(program, ours=False)
    ours = await played(program, ours=True)
    assert ours.got == without.got
    assert ours.sent == without.sent
    assert ours.refused == without.refused


def calls(*commands: str, tool: str = "bash") -> tuple[Call, ...]:
    """Return calls of a tool whose only argument is ``command``."""
    return tuple(Call(tool, {"command": command}, "c_" + re.sub(r"\W", "_", command)) for command in commands)


def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"
