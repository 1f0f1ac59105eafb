"""Read pi sessions (JSON Lines, versions 1 to 4): each path through the tree of entries is a conversation.

Entries name their parents from version 2 on; in version 1 each follows the one before it. Going back in a conversation
and continuing from there makes a branch. The path from the root to each leaf is a conversation; the newest leaf's is
the main one, and comes first. The oldest path has the session's id, every other one the id of the entry where it
branches off, so that importing a session that has grown, in any branch, adds to the conversations imported before.
`pi_entries` decides what an entry becomes, `pi_rows` reads those of version 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.events import ParentLink
from timeline.importers.lines import BYTE_ORDER_MARK, read_records
from timeline.importers.pi_entries import ROLES, SUMMARIES, PathReader, is_conversation, is_unsent, message_of, time_of
from timeline.importers.pi_rows import as_entry
from timeline.importers.recording import Recording, Report, short_title
from timeline.wire.foreign import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from timeline.importers.lines import Record

FORMAT: Final = "pi"
OPENINGS: Final = ('{"type":"message",', '{"kind":"entry",')
"""The beginning of most entries up to version 3, and in version 4; no value inside an entry begins so."""
MOST_BRANCHES: Final = 50
"""How many paths are read, the newest first; the limit exists because each repeats the entries it shares."""

BOOKKEEPING: Final = frozenset(
    {"model_change", "thinking_level_change", "active_tools_change", "custom", "label", "session_info", "leaf"}
)
"""Entries that are pi's own state; each call records its model itself."""
_ROOT: Final = -1


def is_pi(value: Any) -> bool:
    """Return whether a JSON value is the header of a pi session, or a message in one."""
    entry = as_entry(value) if isinstance(value, dict) else {}
    if not isinstance(entry.get("timestamp"), str):
        return False
    return _is_header(entry) or text_of(message_of(entry), "role") in ROLES


def read_pi(data: bytes, name: str) -> list[Recording]:
    """Read the bytes of a session file; the list is empty if it contains no conversation.

    Args:
        data: the file.
        name: the file's name without its extension: the id if no header has one.
    """
    report = Report(format=FORMAT)
    opening = OPENINGS[data.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b'{"kind":')]
    records = read_records(data, report, opening=opening)
    entries = [record._replace(value=as_entry(record.value)) for record in records]
    return _Session(entries, report, name).recordings()


def _is_header(value: dict[str, Any]) -> bool:
    return value.get("type") == "session" and bool(text_of(value, "id"))


class _Session:
    """One file: its entries as a tree. A parent always comes before its children, so there are no cycles."""

    def __init__(self, records: Sequence[Record], report: Report, name: str) -> None:
        self._report = report
        self._records = list(_once(records, report))
        headers = [record for record in self._records if _is_header(record.value)]
        self._id = text_of(headers[0].value, "id") if headers else name
        for other in headers[1:]:
            if (session := text_of(other.value, "id")) != self._id:
                report.note("second_conversation", other.line, f"session {session}")
        names = [text_of(r.value, "name") for r in self._records if r.value.get("type") == "session_info"]
        self._name = names[-1] if names else ""
        # The header may be written after the first message.
        times = (time_of(r.value) for r in self._records if not _is_header(r.value))
        self._first_time = next(filter(None, times), None)
        self._positions: dict[str, int] = {}
        self._parents = [self._place(position) for position in range(len(self._records))]
        self._said = {position for position in range(len(self._records)) if self._is_said(position)}
        self._branches = self._part()

    def recordings(self) -> list[Recording]:
        """Read every path that ends in a leaf of its own, the newest leaf first."""
        leaves = {self._branches[position]: position for position in sorted(self._said)}
        newest_first = sorted(leaves.items(), key=lambda leaf: leaf[1], reverse=True)
        found = []
        for number, (branch, leaf) in enumerate(newest_first):
            if number:
                remark = self._id_of(branch) if number < MOST_BRANCHES else f"left out: more than {MOST_BRANCHES}"
                self._report.note("branch", self._records[max(branch, 0)].line, remark)
            if number < MOST_BRANCHES:
                found.append(self._recording(branch, leaf, Report(format=FORMAT) if number else self._report))
        return [recording for recording in found if recording.events]

    def _place(self, position: int) -> int:
        """Return the position of an entry's parent, and remember the entry's own."""
        value = self._records[position].value
        parent, id_ = position - 1, text_of(value, "id")
        if "parentId" in value:
            parent_id = value["parentId"]
            if parent_id is None:
                parent = _ROOT
            elif isinstance(parent_id, str) and parent_id in self._positions:
                parent = self._positions[parent_id]
            else:
                self._report.note("lost_parent", self._records[position].line, str(parent_id))
        if id_ and not _is_header(value):
            self._positions[id_] = position
        return parent

    def _is_said(self, position: int) -> bool:
        """Return whether an entry is conversation; report an unknown one."""
        value, line = self._records[position].value, self._records[position].line
        if is_conversation(value) or _is_header(value):
            return not _is_header(value)
        type_, role = str(value.get("type")), text_of(message_of(value), "role")
        if type_ in BOOKKEEPING or is_unsent(value):
            self._report.counts["skipped"] += 1
        elif type_ in SUMMARIES or role in ROLES:
            self._report.note("invalid", line, f"{role or type_} entry without content")
        else:
            self._report.note("unknown_record", line, f"{type_} {role}" if role else type_)
        return False

    def _part(self) -> dict[int, int]:
        """Return the branch of each entry: the position where it leaves an older branch, or the root.

        Of several children the one with the oldest message continues the branch; an entry without any message behind it
        is on none.
        """
        soonest: dict[int, int] = {}
        below: dict[int, int] = {}
        for position in range(len(self._records) - 1, _ROOT, -1):
            first = position if position in self._said else below.get(position)
            if first is not None:
                parent = self._parents[position]
                soonest[position] = first
                below[parent] = min(first, below.get(parent, first))
        branches = {_ROOT: _ROOT}
        for position in sorted(soonest):
            parent = self._parents[position]
            branches[position] = branches[parent] if soonest[position] == below[parent] else position
        return branches

    def _recording(self, branch: int, leaf: int, report: Report) -> Recording:
        reader, path = PathReader(report, self._first_time), self._path(leaf)
        positions: list[int] = []
        for position in path:
            record = self._records[position]
            reader.mark(position)
            if position in self._said:
                reader.read(position, record.value, record.line, kept=self._kept(record.value, positions))
                positions.append(position)
        report.records = report.records or len(path)
        link = None
        if branch != _ROOT:
            older = self._branches[self._parents[branch]]
            link = ParentLink(conversation=self._id_of(older), relation="fork")
        title = short_title(self._name or reader.first_prompt)
        return Recording(self._id_of(branch), reader.finish(), report, title, link)

    def _path(self, leaf: int) -> list[int]:
        path = []
        while leaf != _ROOT:
            path.append(leaf)
            leaf = self._parents[leaf]
        return path[::-1]

    def _kept(self, value: dict[str, Any], before: Sequence[int]) -> int | None:
        """Return the position of the first entry that a compaction kept, or None if it kept none.

        The first version counts the entries; later ones name it, or repeat the kept entries.
        """
        if (id_ := text_of(value, "firstKeptEntryId")) in self._positions:
            return self._positions[id_]
        tail, index = value.get("retainedTail"), value.get("firstKeptEntryIndex")
        if isinstance(tail, list) and 0 < len(tail) <= len(before):
            return before[-len(tail)]
        return index if isinstance(index, int) else None

    def _id_of(self, branch: int) -> str:
        if branch == _ROOT:
            return self._id
        id_ = text_of(self._records[branch].value, "id")
        return f"{self._id}.branch-{id_ if self._positions.get(id_) == branch else branch}"


def _once(records: Iterable[Record], report: Report) -> Iterator[Record]:
    """Yield each entry once: the same entry under the same id may be written twice."""
    seen: dict[str, dict[str, Any]] = {}
    for record in records:
        id_ = text_of(record.value, "id")
        if id_ and seen.get(id_) == record.value:
            report.note("duplicate_record", record.line, id_)
            continue
        if id_:
            seen[id_] = record.value
        yield record
