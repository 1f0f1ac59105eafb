"""The facts of a log, as the reader lists what was done: by the id of the call, so that the two can be compared."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.independent_reader.acts import Act
from timeline.blocks import ToolCall, ToolResult
from timeline.events import appended_block

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.ports import EventStore

Named = tuple[str, int]
"""The id of a call, and how many calls before it had the same id."""


@dataclass
class NamedCalls:
    """The calls of a log.

    Attributes:
        by_path: by the path of the call, and by that of the result.
    """

    by_path: dict[str, Named] = field(default_factory=dict)
    _times: Counter[str] = field(default_factory=Counter)

    def take(self, call: ToolCall) -> None:
        """Take the next call of the log."""
        name = (call.call_id, self._times[call.call_id])
        self._times[call.call_id] += 1
        self.by_path |= {call.path: name, f"{call.path.removesuffix('.call')}.result": name}


def of_calls(acts: Iterable[Act], calls: Iterable[Named]) -> Counter[Act]:
    """Return those of the acts that belong to some calls, counted."""
    wanted = set(calls)
    return Counter(act for act in acts if act.call in wanted)


def differences(read: Counter[Act], logged: Counter[Act]) -> list[str]:
    """Return a line for each act that only one of the two has."""
    return [
        *(f"only the reader: {act}" for act in (read - logged).elements()),
        *(f"only the log: {act}" for act in (logged - read).elements()),
    ]


async def logged(store: EventStore, conversation: str, calls: dict[str, Named]) -> list[Act]:
    from timeline.facts.extracting import facts_of_result

    byp = {}
    out = []
    async for e in store.read(conversation):
        b = appended_block(e.payload)
        if isinstance(b, ToolCall):
            byp[b.path] = (b, e.version)
        elif isinstance(b, ToolResult) and b.path in calls:
            c, v = byp[b.path.removesuffix(".result") + ".call"]
            for f in facts_of_result(c, v, b, e.version, e.at):
                out.append(
                    Act(calls[f.path], f.kind, "" if f.kind == "error" else f.subject, f.tool, f.status, f.failed)
                )
    return out
