"""Hold a record that a summary shows against what the reader knows: it claims no more than is so.

A record is about what its compaction covers. What it calls open has to be open at the moment when it is shown, too:
what was mended behind the range is not said to be broken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
NAMED: Final = "Named again by later calls"
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


@dataclass(frozen=True)
class Known:
    """What the reader knows at a moment.

    Attributes:
        acts: of all calls that have a result, in the order of the results.
        covered: those of them that the compaction covers.
    """

    acts: Sequence[Act]
    covered: Sequence[Act]

    def denied(self, record: Record) -> Iterator[str]:
        """Return a line for everything in a record that is not so."""
        for entry in record.entries:
            if entry.section in FILES:
                yield from self._file(entry, FILES[entry.section])
            elif entry.section == OPEN:
                yield from self._failure(entry)
            elif entry.section == RAN:
                yield from self._command(entry)
            elif entry.section == OTHERS:
                if not any(act.kind == "error" and entry.said.startswith(act.tool) for act in self.covered):
                    yield f"no call failed so: {entry.said}"
            elif entry.section not in {NAMED, *BLOCKS}:
                yield f"the reader knows no section {entry.section!r}"
        yield from self._counts(record)

    def about(self, entry: Entry) -> set[Named] | None:
        """Return the calls that an entry's address may lead to; None where it may be any block."""
        said = _RAN.fullmatch(entry.said)
        names = {_whole(entry, said["name"])} if said else set[str]()
        kinds = {FILES.get(entry.section, "command")}
        if entry.section not in FILES and entry.section != RAN:
            return None
        return {act.call for act in self.covered if act.kind in kinds and any(_is(act, name) for name in names)}

    def _file(self, entry: Entry, kind: Kind) -> Iterator[str]:
        said = _FILE.fullmatch(entry.said)
        name, told = (_whole(entry, said["name"]), int(said["times"] or 1)) if said else ("", 0)
        times = sum(act.kind == kind and not act.failed and _is(act, name) for act in self.covered)
        if not times:
            yield f"{name} is listed under {entry.section.lower()}, and never was"
        elif times != told:
            yield f"{name} is listed {told} times under {entry.section.lower()}; it was {times} times"

    def _failure(self, entry: Entry) -> Iterator[str]:
        """Check that what is called open failed, and that nothing of the kind succeeded since."""
        ran = _RAN.fullmatch(entry.said)
        found = [act for act in self.acts if act.kind == "command" and ran and _is(act, ran["name"])]
        if not found:
            tool, _, rest = entry.said.partition(" ")
            wanted = re.split(r" x\d+(?=:|$)|: |$", rest, maxsplit=1)[0]
            found = [act for act in self.acts if act.tool == tool and act.kind != "error" and _is(act, wanted)]
        if not any(act.failed for act in found):
            yield f"nothing failed so: {entry.said}"
        elif not found[-1].failed:
            where = "covered" if found[-1] in self.covered else "behind the range"
            yield f"is called open, and was done since ({where}): {entry.said}"
        elif ran and ran["status"] and found[-1] in self.covered and str(found[-1].status) != ran["status"]:
            yield f"{ran['name']} ended with {found[-1].status}, not with {ran['status']}"

    def _command(self, entry: Entry) -> Iterator[str]:
        """Check that a command ended so last: in the range, and not otherwise behind it."""
        ran = _RAN.fullmatch(entry.said)
        name, status = (ran["name"], ran["status"] or "None") if ran else (entry.said, "None")
        found = [act for act in self.covered if act.kind == "command" and _is(act, name)]
        since = [act for act in self.acts if act.kind == "command" and _is(act, name)][-1:]
        if not found:
            yield f"no such command was run: {entry.said}"
        elif len({act.subject for act in found}) == 1 and str(found[-1].status) != status:
            yield f"{name} ended with {found[-1].status}, not with {status}"
        elif len({act.subject for act in found}) == 1 and since[0].failed:
            yield f"{name} failed since (behind the range), and is listed with {status} as its last result"

    def _counts(self, record: Record) -> Iterator[str]:
        """Check that what is shown and what is counted of the rest are together what was done."""
        shown = {kind: sum(e.section == title for e in record.entries) for title, kind in FILES.items()}
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


def _is(act: Act, name: str) -> bool:
    """Return whether an act is about something that is shown on one line, cut where it is long."""
    line = " ".join(act.subject.split())
    return line.startswith(name.removesuffix("…")) if name.endswith("…") else line == name
