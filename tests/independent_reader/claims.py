"""Hold a record that a summary shows against what the reader knows: it claims no more than is so.

A record is about what its compaction covers. What it calls open has to be open at the moment when it is shown, too:
what was mended behind the range is not said to be broken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.independent_reader.acts import Act, Kind
    from tests.independent_reader.logged import Named
    from tests.independent_reader.shown import Entry, Record

FILES: Final[dict[str, Kind]] = {
    "Files written": "file_written",
    "Files deleted": "file_deleted",
    "Files read": "file_read",
}
OPEN: Final = "Failed, and not done since"
OTHERS: Final = "Failed calls of other tools"
RAN: Final = "Commands by last result"
LOOKED_UP: Final = ("Asked of other agents", "Searched")
NAMED: Final = "Named again"
ASKED: Final = "Asked by the user"
BLOCKS: Final = ("Open calls", "Pinned")
COUNTED: Final[dict[str, Kind]] = {
    "file written": "file_written",
    "file deleted": "file_deleted",
    "file read": "file_read",
    "command": "command",
    "search": "search",
}
"""What is counted of what has no room; the last word of several is in the plural."""
_FILE: Final = re.compile(r"(?P<name>.*?)(?: x(?P<times>\d+))?", re.DOTALL)
_RAN: Final = re.compile(r"(?P<name>.*?)(?: \(exit (?P<status>-?\d+)\))?(?: x(?P<times>\d+))?", re.DOTALL)


_FOUND: Final = re.compile(r"(.*?)(?: \(\d+ hits\))?", re.DOTALL)


@dataclass(frozen=True)
class Known:
    """What the reader knows at a moment.

    Attributes:
        acts: of all calls that have a result, in the order of the results.
        covered: those of them that the compaction covers.
    """

    acts: Sequence[Act]
    covered: Sequence[Act]

    def denied(self, record: Record, at: Mapping[str, Named]) -> Iterator[str]:
        """Return a line for everything in a record that is not so.

        Args:
            record: what is shown.
            at: the calls that the record's addresses lead to.
        """
        for entry in record.entries:
            if entry.section in FILES:
                yield from self._file(entry, FILES[entry.section], at[entry.address])
                yield from self._first(entry, FILES[entry.section], at[entry.first or entry.address])
            elif entry.section == OPEN:
                yield from self._failure(entry, at[entry.address])
            elif entry.section == RAN:
                yield from self._command(entry, at[entry.address])
            elif entry.section in LOOKED_UP:
                yield from self._search(entry, at[entry.address])
            elif entry.section == OTHERS:
                if not any(act.call == at[entry.address] and act.kind == "error" for act in self.covered):
                    yield f"no call failed so: {entry.said}"
            elif entry.section not in {NAMED, ASKED, *BLOCKS}:
                yield f"the reader knows no section {entry.section!r}"
        yield from self._counts(record)

    def _file(self, entry: Entry, kind: Kind, call: Named) -> Iterator[str]:
        said = _FILE.fullmatch(entry.said)
        name, told = (_whole(entry, said["name"]), int(said["times"] or 1)) if said else ("", 0)
        done = [act for act in self.covered if act.kind == kind and not act.failed and _shows(name, act)]
        if not done:
            yield f"{name} is listed under {entry.section.lower()}, and never was"
        elif len(done) != told:
            yield f"{name} is listed {told} times under {entry.section.lower()}; it was {len(done)} times"
        elif done[-1].call != call:
            yield f"{entry.address} is not where {name} was last"

    def _first(self, entry: Entry, kind: Kind, call: Named) -> Iterator[str]:
        """Check that nothing was done with a file before; of a changed one, what was read of it counts."""
        uses = self._uses(entry, kind)
        if uses and uses[0].call != call:
            yield f"{entry.first or entry.address} is not where {entry.said} was first"

    def _uses(self, entry: Entry, kind: Kind) -> list[Act]:
        said = _FILE.fullmatch(entry.said)
        name = _whole(entry, said["name"]) if said else ""
        kinds = {kind, "file_read"} if kind == "file_written" else {kind}
        return [act for act in self.covered if act.kind in kinds and not act.failed and _shows(name, act)]

    def _failure(self, entry: Entry, call: Named) -> Iterator[str]:
        """Check that what is called open failed there, and that the same did not succeed since, nor in the range."""
        failed = [act for act in self.covered if act.call == call and act.failed and act.kind != "error"]
        if not failed:
            yield f"nothing failed at {entry.address}: {entry.said}"
        for act in failed[:1]:
            same = [other for other in self.acts if (other.kind, other.subject) == (act.kind, act.subject)]
            ran = _RAN.fullmatch(entry.said)
            if not same[-1].failed:
                where = "covered" if same[-1] in self.covered else "behind the range"
                yield f"is called open, and was done since ({where}): {entry.said}"
            elif act.kind == "command" and ran and not (_shows(ran["name"], act) and ran["status"] == _said(act)):
                yield f"{act.subject} ended with {act.status}, and is listed as {entry.said}"

    def _command(self, entry: Entry, call: Named) -> Iterator[str]:
        """Check that a command ended so last: in the range, and not otherwise behind it."""
        ran = _RAN.fullmatch(entry.said)
        found = [act for act in self.covered if act.call == call and act.kind == "command"]
        if not found or not ran or not _shows(ran["name"], found[0]):
            yield f"no such command was run at {entry.address}: {entry.said}"
            return
        same = [act for act in self.acts if act.kind == "command" and act.subject == found[0].subject]
        last = [act for act in same if act in self.covered][-1]
        if (last.call, _said(last)) != (call, ran["status"]):
            yield f"{ran['name']} ended with {last.status}, and is listed as {entry.said}"
        elif same[-1].failed:
            yield f"failed since (behind the range), and is listed as {entry.said}"

    def _search(self, entry: Entry, call: Named) -> Iterator[str]:
        """Check that it was looked for there last, by the tool of its section."""
        said = _FOUND.fullmatch(entry.said)
        same = [
            act for act in self.covered if act.kind == "search" and not act.failed and said and _shows(said[1], act)
        ]
        if not same or same[-1].call != call:
            yield f"{entry.address} is not where this was looked for last: {entry.said}"
        elif (same[-1].tool == "Task") != (entry.section == LOOKED_UP[0]):
            yield f"{entry.said} was asked by {same[-1].tool}"

    def _counts(self, record: Record) -> Iterator[str]:
        """Check that what is shown and what is counted of the rest are together what was done."""
        shown = {kind: sum(e.section == title for e in record.entries) for title, kind in FILES.items()}
        changed = [self._uses(e, "file_written") for e in record.entries if FILES.get(e.section) == "file_written"]
        shown["file_read"] += sum(any(act.kind == "file_read" for act in uses) for uses in changed)
        for kind, left in record.left.items():
            asked = kind in {"command", "search"}  # was run, or searched for, also where it failed
            done = {act.subject for act in self.covered if act.kind == kind and (asked or not act.failed)}
            if kind in shown and shown[kind] + left != len(done):
                yield f"{left} more of {kind} are counted beside {shown[kind]} shown; there were {len(done)}"
            if left > len(done):
                yield f"{left} of {kind} are counted; there were {len(done)}"


def _whole(entry: Entry, name: str) -> str:
    """Return the name of a file; one outside the folder of its section is there in full."""
    return name if name.startswith(("/", "~/")) else entry.folder + name


def _shows(name: str, act: Act) -> bool:
    """Return whether a name is what an act is about, on one line and cut where it is long."""
    line = " ".join(act.subject.split())
    return line.startswith(name.removesuffix("…")) if name.endswith("…") else line == name


def _said(act: Act) -> str | None:
    return None if act.status is None else str(act.status)
