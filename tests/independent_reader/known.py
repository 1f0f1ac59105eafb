"""What the reader knows at a moment, to hold a record against: what was written, and what is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.independent_reader.acts import Act
    from tests.independent_reader.logged import Named
    from tests.independent_reader.shown import Entry

WRITTEN: Final = "Files written"
FAILING: Final = "Failing commands"


@dataclass(frozen=True)
class Known:
    """What was done by the calls that have a result.

    Attributes:
        written: files that were written.
        last: how each command, file or query of a tool ended last.
    """

    written: frozenset[str]
    last: dict[str, Act]

    @classmethod
    def of(cls, acts: Iterable[Act], answered: Sequence[Named]) -> Known:
        """Return what is known when these calls have a result."""
        order = {call: number for number, call in enumerate(answered)}
        done = sorted((act for act in acts if act.call in order), key=lambda act: order[act.call])
        written = frozenset(act.subject for act in done if act.kind == "file_written" and not act.failed)
        return cls(written, {one_line(act.subject): act for act in done if act.kind == "command"})

    def denies(self, entry: Entry) -> str:
        """Return what is wrong about an entry of a record; empty where it is so."""
        if not entry.address:
            return ""
        if entry.section == WRITTEN and entry.said not in self.written:
            return f"{entry.said} is listed as written, and never was"
        if entry.section == FAILING:
            command, _, status = entry.said.partition(" (exit ")
            ends = [act for line, act in self.last.items() if line.startswith(command.removesuffix("…"))]
            if not ends:
                return f"no such command was run: {command}"
            if not any(act.failed for act in ends):
                return f"{command} is listed as failing, and worked since"
            if status and not any(f"{act.status})" == status for act in ends):
                return f"{command} ended with {[act.status for act in ends]}, not with {status}"
        return ""


def one_line(text: str) -> str:
    """Return a text without its line breaks and runs of spaces."""
    return " ".join(text.split())
