"""One session, or one subagent's transcript, in its conversation: lines appended, read, and made into blocks.

An append is two steps. The first one writes the lines, in one transaction. The second one makes blocks of all lines
that the log holds and that were not read yet, by any writer. So the blocks follow from the lines alone: where a
process is killed in between, or two write at once, the next append adds what is missing, under the same ids.
"""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio

from timeline.errors import ConversationNotFound, DuplicateEvent, VersionConflict
from timeline.events import ConversationOpened, NewEvent, ParentLink, derived_event_id, event_id
from timeline.events.other_payloads import FrameworkRecord
from timeline.importers.claude_code import FORMAT, SessionFollower
from timeline.importers.claude_rows import SYNTHETIC
from timeline.integrations.claude_agent_sdk.rows import (
    ENTRY,
    FRAMEWORK,
    RECORD,
    events_of,
    fingerprint,
    new_rows,
    row_id,
    row_of,
    uuid_of,
)
from timeline.log.newest_first import newest_first
from timeline.log.stored import busy
from timeline.log.wakeups import notify
from timeline.portable.recordings import append_recorded
from timeline.ports import Expected
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from timeline.importers import RecordedEvent
    from timeline.importers.claude_branches import Turned
    from timeline.integrations.claude_agent_sdk.rows import Row
    from timeline.policy.model import Policy
    from timeline.ports import EventStore

HANDED: Final = "timelineContext"
"""Key of a line that `load` handed to the client instead of what it stands for, with the conversation that it is of.

No block is made of it there. In a session that the client forked from it, it is what there is.
"""
THROUGH: Final = "through"
"""Key beside it: the uuid of the newest line that it and those before it stand for; empty where that is none."""
_TRIES: Final = 50


class Key(NamedTuple):
    """What the SDK calls a transcript: a session of a project, or with ``subpath`` one of its subagents."""

    project: str
    session: str
    subpath: str = ""

    @property
    def main(self) -> Key:
        """The session's own transcript."""
        return self._replace(subpath="")

    def dump(self) -> dict[str, str]:
        """Return what a record holds of it."""
        return {"project_key": self.project, "session_id": self.session, "subpath": self.subpath}


class _Turn(NamedTuple):
    """What a prompt changed about the lines before it, and the prompt's uuid."""

    lines: Turned
    by: str


class Gone(Exception):
    """The conversation is another's, or was deleted, since it was looked up."""


def key_in(data: Any) -> Key | None:
    """Return the key in a record; None where it was deleted."""
    return Key(data["project_key"], data["session_id"], data["subpath"]) if isinstance(data, dict) else None


def _events_before_turn(waiting: Sequence[RecordedEvent | _Turn]) -> list[RecordedEvent]:
    found: list[RecordedEvent] = []
    for one in waiting:
        if isinstance(one, _Turn):
            break
        found.append(one)
    return found


def is_handed(row: Row, conversation: str) -> bool:
    """Return whether a line was handed to the client instead of lines of this conversation."""
    mark = row.get(HANDED)
    return isinstance(mark, dict) and mark.get("conversation") == conversation


async def record_of(store: EventStore, conversation: str) -> FrameworkRecord | None:
    """Return the newest record of a conversation; None where no session was ever kept in it.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    newest: FrameworkRecord | None = None
    async for event in store.read(conversation, types=[RECORD]):
        if isinstance(event.payload, FrameworkRecord) and event.payload.framework == FRAMEWORK:
            newest = event.payload
    return newest


class SessionLog:
    """The log of one transcript; its appends take turns.

    Args:
        store: holds it.
        conversation: its id.
        key: what the SDK calls it.
        policy: as for `Timeline.open`.
    """

    def __init__(self, store: EventStore, conversation: str, key: Key, policy: Policy | None) -> None:
        self.conversation = conversation
        self._store = store
        self._key = key
        self._policy = policy
        self._lock = anyio.Lock()
        self._follower = SessionFollower()
        self._read = 0
        self._is_live = False
        self._unnamed: set[str] = set()
        self._waiting: list[RecordedEvent | _Turn] = []
        """What the lines said and the log does not have yet, in order."""
        self._made: dict[str, list[UUID]] = {}
        """By line, the ids of the events that it says."""
        self._timeline: Timeline | None = None

    async def append(self, rows: Sequence[Row], parent: ParentLink | None) -> None:
        """Append the lines of a batch that are new, and the blocks of all lines.

        Args:
            rows: the batch.
            parent: link of a subagent's conversation to its session's, which is recorded when it is begun.

        Raises:
            Gone: the conversation is not this transcript's any more.
            StoreError: the store refused. What was not written is written when the batch is repeated.
        """
        async with self._lock:
            await self._append(rows, parent)
            await self._catch_up()
            await self._make_blocks()

    async def opened(self) -> Timeline:
        """Return the timeline, up to date with all lines.

        Raises:
            Gone: the conversation is not this transcript's any more.
        """
        async with self._lock:
            await self._catch_up()
            await self._make_blocks()
            timeline = await self._open()
            await timeline.catch_up()
            return timeline

    async def lines(self) -> list[tuple[int, str]]:
        """Return each version of the log that appended a block of a line, with the line's uuid, in order."""
        made = {id_: row for row, ids in self._made.items() for id_ in ids}
        events = self._store.read(self.conversation, types=["block.appended"])
        return [(event.version, made[event.id]) async for event in events if event.id in made]

    @property
    def newest_line(self) -> str:
        """The uuid of the newest line of the conversation; empty where there is none."""
        return self._follower.newest

    def path_of_call(self, call_id: str) -> str | None:
        """Return the path that a call has in the log, as far as it was read."""
        return self._follower.path_of_call(call_id)

    async def _append(self, given: Sequence[Row], parent: ParentLink | None) -> None:
        ids = {row_id(self.conversation, uuid): uuid for uuid in map(uuid_of, given) if uuid}
        for _ in range(_TRIES):
            version, at = await self._catch_up()
            known = await self._store.known_ids(self.conversation, ids)
            rows = new_rows(given, {ids[id_] for id_ in known}, self._unnamed)
            if not rows:
                return
            at = max(at, datetime.now(UTC))
            events = [*self._opening(rows, at, parent, version), *events_of(self.conversation, rows, at)]
            try:
                await self._store.append(self.conversation, events, expected=version or Expected.NO_STREAM)
            except VersionConflict:
                if not version:  # another writer began a conversation of this id: perhaps another project's
                    raise Gone from None
                continue
            notify(self._store, self.conversation, events)
            return
        raise busy(self.conversation)

    def _opening(self, rows: Sequence[Row], at: datetime, parent: ParentLink | None, version: int) -> list[NewEvent]:
        if version:
            return []
        first = SessionFollower()
        for row in rows:
            first.read(row, at)
        opened = ConversationOpened(title=first.title, parent=parent, source=FORMAT)
        record = FrameworkRecord(framework=FRAMEWORK, data={**self._key.dump()})
        return [NewEvent(id=event_id(at), at=at, payload=payload) for payload in (opened, record)]

    async def _catch_up(self) -> tuple[int, datetime]:
        """Read the lines that were not read yet; return the version of the log and the time of its newest event."""
        try:
            info = await self._store.info(self.conversation)
        except ConversationNotFound:
            return 0, datetime.min.replace(tzinfo=UTC)
        async for event in self._store.read(
            self.conversation, after=self._read, until=info.version, types=[ENTRY, RECORD]
        ):
            if isinstance(event.payload, FrameworkRecord) and event.payload.framework == FRAMEWORK:
                self._is_live = key_in(event.payload.data) == self._key
            row = row_of(event.payload)
            if row is None:
                continue
            if not uuid_of(row):
                self._unnamed.add(fingerprint(row))
            self._follow(row, event.at)
        self._read = info.version
        if not self._is_live:
            raise Gone
        return info.version, info.updated_at

    def _follow(self, row: Row, at: datetime) -> None:
        if is_handed(row, self.conversation):
            self._follower.pass_by(row, row[HANDED].get(THROUGH))
            return
        if HANDED in row and isinstance(row.get("message"), dict):  # nobody called a model for it
            row = {**row, "message": {**row["message"], "model": SYNTHETIC}}
        turned = self._follower.turned_by(row)
        if any(turned):
            self._take()
            self._waiting.append(_Turn(turned, uuid_of(row)))
        self._follower.read(row, at)

    def _take(self) -> None:
        for event in self._follower.take():
            self._waiting.append(event)
            row, _, _ = event.key.rpartition(".")
            self._made.setdefault(row, []).append(derived_event_id(event.at, self.conversation, event.key))

    async def _make_blocks(self) -> None:
        self._take()
        while self._waiting:
            first = self._waiting[0]
            if isinstance(first, _Turn):
                await self._turn(first)
                del self._waiting[0]
                continue
            events = _events_before_turn(self._waiting)
            await self._extend(events)
            del self._waiting[: len(events)]

    async def _extend(self, events: Sequence[RecordedEvent]) -> None:
        timeline = await self._open()
        for tries_left in reversed(range(_TRIES)):
            try:
                await append_recorded(self._store, timeline, events)
            except DuplicateEvent:  # another process made the same blocks of the same lines just now
                if not tries_left:
                    raise
                await timeline.catch_up()
            else:
                return

    async def _turn(self, turn: _Turn) -> None:
        """Omit what a prompt went back behind, and show what it takes up again.

        Not where its own block is there, so that a `reveal` holds.
        """
        if await self._store.known_ids(self.conversation, self._made.get(turn.by, ())):
            return
        left, again = ({id_ for row in rows for id_ in self._made.get(row, ())} for rows in turn.lines)
        blocks = await self._blocks_of(left | again)
        timeline = await self._open()
        await timeline.list_follower().leave(
            [version for id_, version in blocks.items() if id_ in left],
            again=[version for id_, version in blocks.items() if id_ in again],
        )

    async def _blocks_of(self, ids: set[UUID]) -> dict[UUID, int]:
        """Return the versions of the events of some ids that appended a block; no event before them is read."""
        missing = await self._store.known_ids(self.conversation, ids)
        version = (await self._store.info(self.conversation)).version
        found: dict[UUID, int] = {}
        async with aclosing(newest_first(self._store, self.conversation, None, until=version)) as events:
            while missing and (event := await anext(events, None)) is not None:
                missing.discard(event.id)
                if event.id in ids and event.type == "block.appended":
                    found[event.id] = event.version
        return found

    async def _open(self) -> Timeline:
        if self._timeline is None:
            self._timeline = await Timeline.open(
                self._store, self.conversation, policy=self._policy, source=FORMAT, create=False
            )
        return self._timeline
