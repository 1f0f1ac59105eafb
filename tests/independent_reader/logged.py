"""The facts of a log, as the reader lists what was done: by the id of the call, so that the two can be compared."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.independent_reader.acts import Act

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.independent_reader.acts import Kind
    from timeline.blocks import ToolCall
    from timeline.ports import EventStore
    from timeline.queries import FactKind, StoredFact

KINDS: Final[Mapping[FactKind, Kind]] = {
    "file_read": "file_read",
    "file_written": "file_written",
    "file_deleted": "file_deleted",
    "command": "command",
    "search": "search",
    "error": "error",
}
"""What the reader lists: of the kinds of facts, those of work."""
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


async def logged(store: EventStore, conversation: str, calls: Mapping[str, Named]) -> list[Act]:
    """Return the facts that a log holds about what was done, by the calls of their blocks."""
    return [
        Act(calls[fact.path], KINDS[fact.kind], "" if fact.kind == "error" else fact.subject, *_outcome(fact))
        async for fact in store.facts(conversation=conversation, kind=KINDS)
    ]


def _outcome(fact: StoredFact) -> tuple[str, int | None, bool]:
    return fact.tool, fact.exit_status, fact.failed
