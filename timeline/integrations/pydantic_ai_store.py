"""Pydantic AI: a store for its conversations, in the same logs as the timelines.

    from pydantic_ai import Agent
    from pydantic_ai.conversation import Conversation
    from timeline.integrations.pydantic_ai import TimelineCapability
    from timeline.integrations.pydantic_ai_store import TimelineConversationStore

    conversations = TimelineConversationStore(store)
    agent = Agent(model, capabilities=[TimelineCapability(store)])
    conversation = await conversations.load("c1") or Conversation(conversation_id="c1")
    result = await agent.run("Make the tests pass.", conversation=conversation)
    await conversations.save(result)

An entry is an event with the framework's message as it is. A record is an event, too; the newest one holds. Both are in
the log of their conversation, beside its blocks, and no context shows them.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline import checks
from timeline.errors import ConversationNotFound, VersionConflict, needs
from timeline.events import ConversationOpened, NewEvent, event_ids
from timeline.events.other_payloads import FrameworkEntry, FrameworkRecord
from timeline.log.all_events import all_events
from timeline.log.newest_first import newest_first
from timeline.log.wakeups import notify
from timeline.ports import Expected
from timeline.timeline import Timeline

with needs("pydantic-ai-slim", "pydantic-ai"):
    from pydantic import TypeAdapter
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import ModelMessagesTypeAdapter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from timeline.events import Event, Payload
    from timeline.ports import EventStore

_NAME: Final = "pydantic-ai"
_ENTRY: Final = "framework.entry"
_RECORD: Final = "framework.record"
_MOST_HOMES: Final = 10_000
"""Entries whose conversation is kept; that of another one is looked for in the whole store."""
_RECORDS: Final[TypeAdapter[ConversationRecord]] = TypeAdapter(ConversationRecord)


class _Stored(NamedTuple):
    """A record, and the version of the log that it was read at; 0 where there is no such log."""

    record: ConversationRecord | None
    version: int


class _Entry(NamedTuple):
    """An entry as it is stored, and the version of the event that holds it."""

    data: Any
    version: int


class _Entries:
    """The entries of a conversation by id, read from its newest one back as far as they are asked for."""

    def __init__(self, events: AsyncGenerator[Event]) -> None:
        self.read: dict[str, _Entry] = {}
        self._events = events

    async def reach(self, entry_id: str) -> bool:
        """Read back to an entry; return whether there is one of that id."""
        while entry_id not in self.read:
            event = await anext(self._events, None)
            if event is None:
                return False
            payload = event.payload
            if isinstance(payload, FrameworkEntry) and payload.framework == _NAME:
                self.read.setdefault(payload.key, _Entry(payload.data, event.version))
        return True


class TimelineConversationStore(ConversationStore):
    """Keeps Pydantic AI's conversations in a store of timelines, under the same ids.

    With a `TimelineCapability` over the same store, each conversation has one log, with what the model saw and with the
    history as the framework has it. The framework's `fork` forks the log, so that summaries and paths stay valid; the
    framework can load what `Timeline.fork` made.

    A deleted conversation is no longer loaded or listed. Its events stay in the log, as all events do, until the
    store's ``erase`` removes them. `Timeline.redact` removes the words of a block from the framework's own messages,
    too.

    Args:
        store: an open store from `timeline.open_store`; its conversations are loaded and saved in its event loop.

    Raises:
        InvalidArgument: the store is not open, or it is one of `timeline.sync`, which cannot be awaited.
    """

    def __init__(self, store: EventStore) -> None:
        checks.awaited_store(store)
        self._store = store
        self._homes: OrderedDict[str, str] = OrderedDict()
        """By the id of a history's last entry: the conversation that was read or written with it, the newest last."""

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation, or None if the store doesn't have it.

        Raises:
            StoreError: the store cannot be read.
        """
        return (await self._stored(conversation_id)).record

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """Return the records, or those of a scope, the newest first.

        Raises:
            StoreError: the store cannot be read.
        """
        newest: dict[str, FrameworkRecord] = {}
        async for event in all_events(self._store, [_RECORD]):
            if isinstance(event.payload, FrameworkRecord) and event.payload.framework == _NAME:
                newest[event.conversation] = event.payload
        found = [self._record(id_, payload) for id_, payload in newest.items()]
        records = [record for record in found if record is not None and scope in {None, record.scope}]
        return sorted(records, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record with its new entries, in one append.

        Raises:
            ConversationConflict: the stored record has another revision than ``expected_revision``, or the entry that
                the new record ends with does not exist.
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
        """
        id_ = record.conversation_id
        payloads: list[Payload] = [FrameworkEntry(framework=_NAME, key=e.id, data=_dump(e)) for e in new_entries]
        payloads.append(FrameworkRecord(framework=_NAME, data=json.loads(_RECORDS.dump_json(record))))
        while True:
            stored = await self._stored(id_)
            if (None if stored.record is None else stored.record.revision) != expected_revision:
                raise ConversationConflict(id_)
            await self._check_head(record, {entry.id for entry in new_entries})
            if not stored.version and record.forked_from is not None:
                await self._fork(record, record.forked_from)
                stored = await self._stored(id_)
            if await self._appended(id_, payloads, stored.version):
                self._ends_in(record, id_)
                return

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation's record; its entries and its blocks stay in the log.

        Raises:
            ConversationConflict: there is no record with that revision.
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
        """
        while True:
            stored = await self._stored(conversation_id)
            if stored.record is None or stored.record.revision != expected_revision:
                raise ConversationConflict(conversation_id)
            if await self._appended(conversation_id, [FrameworkRecord(framework=_NAME)], stored.version):
                return

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry; if its conversation was not read before, look for it in the whole store.

        Raises:
            KeyError: there is no such entry.
            StoreError: the store cannot be read.
        """
        return _load(entry_id, (await self._entries_with(entry_id)).read[entry_id].data)

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the entries from the first one up to ``head_id``, or only the last of them, from one reading.

        Raises:
            KeyError: one of the entries does not exist.
            StoreError: the store cannot be read.
        """
        if head_id is None:
            return []
        entries = await self._entries_with(head_id)
        found: list[ConversationEntry] = []
        following: str | None = head_id
        while following is not None and (limit is None or len(found) < limit):
            if not await entries.reach(following):
                entries = await self._entries_with(following)
            found.append(_load(following, entries.read[following].data))
            following = found[-1].parent_id
        return found[::-1]

    async def _stored(self, conversation: str) -> _Stored:
        try:
            version = (await self._store.info(conversation)).version
        except ConversationNotFound:
            return _Stored(None, 0)
        async with aclosing(newest_first(self._store, conversation, [_RECORD], until=version)) as records:
            async for event in records:
                if isinstance(event.payload, FrameworkRecord) and event.payload.framework == _NAME:
                    return _Stored(self._record(conversation, event.payload), version)
        return _Stored(None, version)

    def _record(self, conversation: str, payload: FrameworkRecord) -> ConversationRecord | None:
        """Read a record; that of a fork's shared past is the fork's own."""
        if payload.data is None:
            return None
        record = _RECORDS.validate_json(json.dumps(payload.data))
        self._ends_in(record, conversation)
        return replace(record, conversation_id=conversation)

    def _ends_in(self, record: ConversationRecord, conversation: str) -> None:
        for entry_id in filter(None, [record.head_id, *record.branches]):
            self._is_in(entry_id, conversation)

    def _is_in(self, entry_id: str, conversation: str) -> None:
        self._homes[entry_id] = conversation
        self._homes.move_to_end(entry_id)
        if len(self._homes) > _MOST_HOMES:
            self._homes.popitem(last=False)

    async def _entries_with(self, entry_id: str) -> _Entries:
        """Return the entries of the conversation that has one, read as far back as that one."""
        known = self._homes.get(entry_id)
        if known is not None:
            entries = await self._entries(known)
            if await entries.reach(entry_id):
                return entries
        async for event in all_events(self._store, [_ENTRY]):
            if isinstance(event.payload, FrameworkEntry) and event.payload.key == entry_id:
                self._is_in(entry_id, event.conversation)
                entries = await self._entries(event.conversation)
                if await entries.reach(entry_id):
                    return entries
        raise KeyError(entry_id)

    async def _entries(self, conversation: str) -> _Entries:
        version = (await self._store.info(conversation)).version
        return _Entries(newest_first(self._store, conversation, [_ENTRY], until=version))

    async def _check_head(self, record: ConversationRecord, new: set[str]) -> None:
        if record.head_id is None or record.head_id in new:
            return
        try:
            await self._entries_with(record.head_id)
        except KeyError:
            raise ConversationConflict(record.conversation_id) from None

    async def _fork(self, record: ConversationRecord, parent: str) -> None:
        """Begin the log of a fork where its last entry is in the log of its parent, if that is there."""
        if record.forked_at is None:
            return
        entries = await self._entries(parent)
        if await entries.reach(record.forked_at):
            forked = await Timeline.open(self._store, parent, create=False)
            await forked.fork(at=entries.read[record.forked_at].version, conversation=record.conversation_id)

    async def _appended(self, conversation: str, payloads: Sequence[Payload], version: int) -> bool:
        """Append payloads to a log at a version, 0 to begin it; return False where another writer was first."""
        now = datetime.now(UTC)
        if version:
            now = max(now, (await self._store.info(conversation)).updated_at)
        new = [ConversationOpened(), *payloads] if not version else payloads
        ids = event_ids(now, len(new))
        events = [NewEvent(id=id_, at=now, payload=payload) for id_, payload in zip(ids, new, strict=True)]
        try:
            await self._store.append(conversation, events, expected=version or Expected.NO_STREAM)
        except VersionConflict:
            return False
        notify(self._store, conversation, events)
        return True


def _dump(entry: ConversationEntry) -> Any:
    """Write an entry as JSON, its message as the framework writes messages."""
    [message] = json.loads(ModelMessagesTypeAdapter.dump_json([entry.message]))
    return {"parent_id": entry.parent_id, "kind": entry.kind, "message": message}


def _load(entry_id: str, data: Any) -> ConversationEntry:
    [message] = ModelMessagesTypeAdapter.validate_json(json.dumps([data["message"]]))
    return ConversationEntry(id=entry_id, parent_id=data["parent_id"], message=message, kind=data["kind"])
