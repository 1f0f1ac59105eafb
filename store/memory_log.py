"""One conversation of the store in memory: its row, its events by version, and the data derived from them.

Rows are kept encoded, as a database keeps them. The events that a fork shares are its parent's, and are read there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.blocks import ToolCall, ToolResult, instant_text
from timeline.events import BlockAppended, BlockRedacted, CompactionCompleted, CompactionReverted
from timeline.events.chain import START, commitment, link, random_salts, remains
from timeline.events.encoding import checksum, encode_payload
from timeline.events.other_payloads import RetentionSet
from timeline.facts.extracting import facts_of_result
from timeline.frozen import sha256_hex
from timeline.ports import ChainedEvent, ConversationInfo, Snapshot

from .codec import decode, decode_info, decode_snapshot, encode_snapshot, tokens_of
from .digests import Reversion, rows_of
from .facts import Coverage, CoveredBy, call_path, rows_named, rows_of_facts
from .packing import packed_whole, unpacked_whole
from .removal import RemovalBounds, type_left

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from timeline.events import Event, Payload

    from .codec import Row, SnapshotDraft
    from .facts import FactRow

WHERE: Final = "memory://"


class KnownFact(NamedTuple):
    """A fact, and the time and the path of its event."""

    row: FactRow
    at: str
    path: str


class Linked(NamedTuple):
    """What chains an event; see `timeline.events.chain`."""

    salt: bytes | None
    c: bytes
    link: bytes


def _own_type(row: Row) -> str:
    """Return the type that an event had: of a scavenged one it stands in the place of its turn."""
    type_: str
    _, _, _, type_, _, _, _, hashed, _, turn_id, _ = row
    if turn_id is None or hashed:
        return type_
    return str(turn_id)


@dataclass(slots=True)
class MemoryLog:
    """One conversation: its row, its own events by version, and the two indexes that a database has."""

    id: str
    title: str
    parent_link: str | None
    created_at: str
    updated_at: str
    window_start: int = 1
    parent: MemoryLog | None = None
    base: int = 0
    first_version: int = 1
    snapshot: SnapshotDraft | None = None
    bases: dict[int, SnapshotDraft] = field(default_factory=dict)
    waypoints: dict[int, bytes] = field(default_factory=dict)
    """Bodies of its snapshots of the past, packed, by version."""
    rows: list[Row] = field(default_factory=list)
    links: list[Linked] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    paths: dict[str, int] = field(default_factory=dict)
    calls: dict[str, list[int]] = field(default_factory=dict)
    """Versions of its calls, by call id; like the two below, as far as facts were extracted."""
    redacted: dict[int, int] = field(default_factory=dict)
    """Versions that it redacts, each with the version of the event that does."""
    facts: list[KnownFact] = field(default_factory=list)
    compacted: list[tuple[int, str]] = field(default_factory=list)
    """Version and time of each of its own compactions."""

    @property
    def version(self) -> int:
        """Return its newest version."""
        return self.base + len(self.rows)

    def chain_copy(self, row: Row) -> None:
        """Link its newest event, which was copied into it, in a chain of its own."""
        _, version, id_, _, schema_version, at, _, hashed, path, *_ = row
        type_ = _own_type(row)
        salt = random_salts(1)
        c = commitment(salt, hashed)
        new = link(self.link_at(version - 1), self.id, version, id_, type_, schema_version, at, c)
        self.links.append(Linked(salt if hashed else remains(new, type_, path), c, new))

    def chain_anew(self) -> None:
        """Link all its own events anew, behind a parent whose links have changed."""
        self.links.clear()
        for row in self.rows:
            self.chain_copy(row)

    def chained(self, until: int) -> Iterator[ChainedEvent]:
        """Return its own events up to a version as the chain has them; none where the version is not its own."""
        for row, linked in zip(self.own(self.base, until), self.links, strict=False):
            position, version, id_, _, schema_version, at, _, hashed, path, *_ = row
            yield ChainedEvent(
                self.id,
                version,
                position,
                id_,
                _own_type(row),
                schema_version,
                at,
                path,
                hashed,
                linked.salt,
                *linked[1:],
            )

    def link_at(self, version: int) -> bytes:
        """Return the link at a version, shared ones included; `START` before the first event."""
        if version > self.base:
            return self.links[version - self.base - 1].link
        return START if self.parent is None else self.parent.link_at(version)

    def events(self, first: int, last: int) -> Sequence[tuple[str, str, int]]:
        """Return ``(event id, checksum, position)`` of a range of its own versions."""
        return [(row[2], row[7], row[0]) for row in self.own(first - 1, last)]

    def versions_of(self, ids: Collection[str]) -> dict[str, int]:
        """Return the versions of the ids that it holds."""
        return {id_: self.ids[id_] for id_ in ids if id_ in self.ids}

    def taken(self, paths: Collection[str]) -> set[str]:
        """Return the paths that are in use, shared ones included."""
        return {path for path in paths if self.at_path(path) is not None}

    def own(self, after: int, until: int) -> list[Row]:
        """Return its own rows of ``after < version <= until``."""
        return self.rows[max(after - self.base, 0) : max(until - self.base, 0)]

    def lineage(self) -> Iterator[tuple[MemoryLog, int]]:
        """Iterate from this log to its oldest ancestor, each with the last version that counts here."""
        log, last = self, self.version
        yield log, last
        while log.parent is not None:
            log, last = log.parent, min(log.base, last)
            yield log, last

    def read(self, after: int, until: int) -> Iterator[tuple[str, Row]]:
        """Return the rows of ``after < version <= until`` that were not scavenged, each with its conversation."""
        for log, last in reversed(list(self.lineage())):
            yield from ((log.id, row) for row in log.own(after, min(until, last)) if row[7])

    def written(self, after: int, until: int) -> Iterator[tuple[str, Row]]:
        """Return the rows as `read` does, each with its salt, commitment and link behind it."""
        for log, last in reversed(list(self.lineage())):
            for row in log.own(after, min(until, last)):
                if row[7]:
                    yield log.id, (*row, *log.links[row[1] - log.base - 1])

    def at_path(self, path: str) -> tuple[str, Row] | None:
        """Return the event that appended the block at a path, behind its conversation."""
        for log, last in self.lineage():
            if (version := log.paths.get(path)) is not None and version <= last:
                return log.id, log.rows[version - log.base - 1]
        return None

    def call_of(self, result: ToolResult, version: int) -> tuple[int, ToolCall] | None:
        """Return the call that a result answers: by its path, else the newest earlier one of its id."""
        found = self.at_path(call_path(result.path) or "")
        call = None if found is None or not found[1][7] else _appended_call(found[0], found[1])
        if found is not None and found[1][1] < version and (call is not None or not found[1][7]):
            return None if call is None else (found[1][1], call)
        of_id = (
            (log.id, log.rows[v - log.base - 1])
            for log, last in self.lineage()
            for v in log.calls.get(result.call_id, ())
            if v <= min(last, version - 1)
        )
        there = [(id_, row) for id_, row in of_id if row[7]]  # the others were scavenged
        if not there:
            return None
        id_, row = max(there, key=lambda of_one: of_one[1][1])
        call = _appended_call(id_, row)
        return None if call is None else (row[1], call)

    def redacts(self, version: int) -> bool:
        """Return whether it, or the past that it shares, redacts a block."""
        return any(log.redacted.get(version, last + 1) <= last for log, last in self.lineage())

    def learn(self, event: Event, path: str) -> None:
        """Add the facts of its next event; take away those of a block that the event redacts."""
        payload, at = event.payload, instant_text(event.at)
        if isinstance(payload, BlockRedacted) and payload.version < event.version:
            self.redacted.setdefault(payload.version, event.version)
            self.forget([payload.version])
        if not isinstance(payload, BlockAppended):
            return
        block, key = payload.block, self.id
        if isinstance(block, ToolCall):
            self.calls.setdefault(block.call_id, []).append(event.version)
        rows = list(rows_named(block, key, event.position, event.version, event.at))
        if isinstance(block, ToolResult):
            version, call = self.call_of(block, event.version) or (0, None)
            if call is not None and not self.redacts(version):
                of_call = facts_of_result(call, version, block, event.version, event.at)
                rows += rows_of_facts(of_call, key, event.position, block.path, version)
        self.facts += [KnownFact(row, at, path) for row in rows]

    def coverage(self) -> Coverage:
        """Return what the compactions in force cover."""
        compactions: dict[int, CoveredBy] = {}
        reverted: set[int] = set()
        for id_, row in self.read(0, self.version):
            if row[3] in {"compaction.completed", "compaction.reverted"}:
                payload = decode(id_, row, WHERE).payload
                if isinstance(payload, CompactionReverted):
                    reverted.update(payload.versions)
                elif isinstance(payload, CompactionCompleted):
                    covers = payload.covers
                    compactions[row[1]] = CoveredBy(row[1], covers.ranges, covers.summaries, payload.carried)
        return Coverage(covered for version, covered in compactions.items() if version not in reverted)

    def known(self) -> Iterator[tuple[MemoryLog, KnownFact]]:
        """Return the facts that it shows, each with the log that holds it, by position."""
        hidden: set[int] = set()
        parts: list[tuple[MemoryLog, list[KnownFact]]] = []
        for log, last in self.lineage():
            end = log.rows[last - log.base - 1][0] if last > log.base else 0
            shown = [k for k in log.facts if k.row.position <= end and hidden.isdisjoint({k.row.version, k.row.call})]
            parts.append((log, shown))
            hidden |= {version for version, by in log.redacted.items() if by <= last}
        return ((log, known) for log, shown in reversed(parts) for known in shown)

    def info(self) -> ConversationInfo:
        """Return its facts."""
        row = (0, self.id, self.version, self.window_start, self.title, self.parent_link, self.created_at)
        times = [at for log, last in self.lineage() for version, at in log.compacted if version <= last]
        compactions = (len(times), max(times, default=None))
        return decode_info((*row, self.updated_at, self.base, self.first_version, *compactions), WHERE)

    def scavenged(self, until: int) -> list[Row]:
        """Return the scavenged rows up to a version, shared ones included."""
        parts = ((log, min(until, last)) for log, last in self.lineage())
        return [row for log, last in parts for row in log.own(0, last) if not row[7]]

    def blank(self, version: int) -> Row:
        """Remove the content of an event; return what is left of its row."""
        place = version - self.base - 1
        position, _, event_id, type_, schema_version, at, _, _, path, _, _ = self.rows[place]
        left = type_left(type_)
        # As in a database: its link covers its own type, which stays in the place of its turn.
        turn_id = None if left == type_ else type_
        self.rows[place] = (position, version, event_id, left, schema_version, at, "", "", path, turn_id, None)
        _, c, link_ = self.links[place]
        self.links[place] = Linked(remains(link_, type_, path), c, link_)
        return self.rows[place]

    def overwrite(self, version: int, payload: Payload) -> Row:
        """Replace the payload of one of its events; return the new row."""
        place = version - self.base - 1
        position, _, event_id, type_, schema_version, at, _, _, path, turn_id, _ = self.rows[place]
        text = encode_payload(payload)
        hashed = checksum(self.id, version, event_id, type_, schema_version, at, text)
        columns = (path, turn_id, tokens_of(payload))
        self.rows[place] = (position, version, event_id, type_, schema_version, at, text, hashed, *columns)
        self.links[place] = self.links[place]._replace(salt=None)
        return self.rows[place]

    def forget(self, versions: Collection[int]) -> int:
        """Drop the facts of blocks that go; return how many."""
        before, gone = len(self.facts), frozenset(versions)
        own = [version for version in gone if self.base < version <= self.version]
        positions = {self.rows[version - self.base - 1][0] for version in own}
        self.facts = [known for known in self.facts if not _is_of(known.row, gone, positions)]
        return before - len(self.facts)

    def is_held(self) -> bool:
        """Return whether a legal hold is on it, by its newest setting, a shared one included."""
        settings = [pair for pair in self.read(0, self.version) if pair[1][3] == "retention.set"]
        payload = decode(*settings[-1], WHERE).payload if settings else None
        return isinstance(payload, RetentionSet) and payload.legal_hold

    def rewrite_snapshots(self, change: Callable[[Snapshot], Snapshot]) -> int:
        """Replace its snapshots; return how many changed."""
        done = 0
        for draft in (self.snapshot, *self.bases.values()):
            old = snapshot_of(self, draft)
            if draft is None or old is None or (new := encode_snapshot(change(old))) == draft:
                continue
            done += 1
            if draft is self.snapshot:
                self.snapshot = new
            if self.bases.get(draft.version) is draft:
                self.bases[draft.version] = new
        for version in self.waypoints:
            self.waypoints[version] = packed_whole(encode_snapshot(change(self.waypoint(version))).body)
        return done

    def waypoint(self, version: int) -> Snapshot:
        """Return its own snapshot of the past at a version."""
        body = unpacked_whole(self.waypoints[version])
        return decode_snapshot(self.id, body, sha256_hex(body), WHERE)

    def keep_base(self, within: RemovalBounds) -> None:
        """Keep the snapshot to fold the log from; drop earlier ones whose window is being removed."""
        if self.snapshot is not None:
            newest = self.snapshot.version
            self.bases = {v: s for v, s in self.bases.items() if not within.first - 1 <= v < newest}
            self.bases.setdefault(newest, self.snapshot)
            self.waypoints = {v: w for v, w in self.waypoints.items() if v >= newest}
            self.first_version = max(self.first_version, within.last + 1)


def reverted_in(log: MemoryLog) -> dict[int, int]:
    """Return the undone compactions by version, each with the version of the first event that undid it."""
    reverted: dict[int, int] = {}
    for row in log.rows:
        if row[3] == "compaction.reverted":
            event = rows_of(row[1], row[5], decode(log.id, row, WHERE).payload)
            if isinstance(event, Reversion):
                reverted = dict.fromkeys((v for v in event.reverted if v < event.version), event.version) | reverted
    return reverted


def _appended_call(conversation: str, row: Row) -> ToolCall | None:
    """Return the call that an event appends."""
    payload = decode(conversation, row, WHERE).payload
    block = payload.block if isinstance(payload, BlockAppended) else None
    return block if isinstance(block, ToolCall) else None


def snapshot_of(log: MemoryLog, draft: SnapshotDraft | None) -> Snapshot | None:
    """Return a snapshot of a log, decoded, if there is one."""
    return None if draft is None else decode_snapshot(log.id, draft.body, sha256_hex(draft.body), WHERE)


def _is_of(row: FactRow, versions: Collection[int], positions: Collection[int]) -> bool:
    """Return whether a fact is of one of some blocks: made known by one of these events, said of it, or of its call."""
    return row.version in versions or row.call in versions or row.position in positions
