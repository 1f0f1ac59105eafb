"""`TimelineSessionStore`: the Claude Agent SDK's protocol for stores of sessions, over a store of timelines."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

from timeline import checks
from timeline.errors import ConversationNotFound, StoreReadOnly, VersionConflict, needs
from timeline.events import NewEvent, ParentLink, event_id
from timeline.events.other_payloads import FrameworkRecord
from timeline.integrations.claude_agent_sdk.resuming import resumed
from timeline.integrations.claude_agent_sdk.rows import ENTRY, FRAMEWORK, RECORD, row_of, uuid_of
from timeline.integrations.claude_agent_sdk.sessions import Gone, Key, SessionLog, key_in, record_of
from timeline.log.all_events import all_events
from timeline.log.wakeups import notify
from timeline.ports import Expected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from timeline.events import Event
    from timeline.integrations.claude_agent_sdk.rows import Row
    from timeline.policy.model import Policy
    from timeline.ports import EventStore

Resume: TypeAlias = Literal["verbatim", "compacted"]

_MOST_OPEN: Final = 16
"""The most transcripts whose state is kept; one that is opened again is read once."""
_LAYERS: Final = "subagents"
_NEAR: Final = (64, 1_024)
"""How many events behind the newest line are looked at first, to find it."""


class _Written(NamedTuple):
    """When a line was written: in milliseconds, and where in the store, for lines of one millisecond."""

    mtime: int
    position: int


class TimelineSessionStore:
    """Keeps the sessions of the Claude Agent SDK in a store of timelines.

    Implements the SDK's `SessionStore`, with all of its optional methods. A session's conversation has the session's
    id, so that ``Timeline.open(store, result.session_id)`` opens it. If another project has a session of the same id,
    or a session of that id was deleted, the conversation's id is ``<id>~2``. A subagent's conversation has the id
    ``<id>.agent-<n>``, and a link to its session.

    Every line is kept, and loads deep-equal to what was appended; a line that comes again under its uuid is kept once.
    Beside the lines are the blocks, model calls and compactions that `timeline import` would read from them.

    A deleted session is no longer loaded or listed. Its events stay in the log, as all events do, until the store's
    ``erase`` removes them.

    Args:
        store: an open store from `timeline.open_store`; it is used in its event loop.
        resume: what `load` returns. ``verbatim``: all lines. ``compacted``: if the policy shows less than the whole
            session, a boundary and what the policy shows, in the client's own format, so that a resumed session begins
            with that context. Subagents' transcripts are always loaded as they are. Use ``verbatim`` in an application
            that only reads sessions (the SDK's `get_session_messages_from_store`).
        policy: decides what a compacted session holds; by default the conversation's own, which is
            `policies.balanced()` unless another one was chosen by `Timeline.use_policy`.

    Raises:
        InvalidArgument: an argument is not what it should be.
    """

    def __init__(self, store: EventStore, *, resume: Resume = "verbatim", policy: Policy | None = None) -> None:
        checks.awaited_store(store)
        checks.parts(policy)
        checks.choice("resume", resume, get_args(Resume))
        self._store = store
        self._resume = resume
        self._policy = policy
        self._open: OrderedDict[Key, SessionLog] = OrderedDict()
        self._handed: dict[Key, list[Row]] = {}
        """What `load` returned of a session instead of its lines, until the client goes on from it."""

    async def append(self, key: Mapping[str, Any], entries: Sequence[Any]) -> None:
        """Store a batch of lines, and the blocks made from them.

        Raises:
            StoreError: the store refused. Repeat the batch: nothing is stored twice.
        """
        if not entries:
            return
        place = _key(key)
        handed = self._gone_on_from(place, entries)
        rows = [*handed, *entries]
        while True:
            session = await self._session(place)
            try:
                await session.append(rows, await self._parent(place, rows))
            except Gone:
                self._open.pop(place, None)
            else:
                if handed:
                    self._handed.pop(place, None)
                return

    async def load(self, key: Mapping[str, Any]) -> list[Any] | None:
        """Return the lines of a transcript, or its compacted form; None if there is none.

        Raises:
            StoreError: the store cannot be read, or, for a compacted form, cannot be written.
        """
        place = _key(key)
        while True:
            conversation, is_there = await self._resolve(place)
            if not is_there:
                return None
            read = [row_of(event.payload) async for event in self._store.read(conversation, types=[ENTRY])]
            rows = [row for row in read if row is not None]
            if self._resume == "verbatim" or place.subpath:
                return rows
            try:
                handed = await resumed(self._store, await self._session(place), rows)
            except Gone:
                self._open.pop(place, None)
            else:
                if handed is None:
                    return rows
                self._handed[place] = handed
                return list(handed)

    async def list_sessions(self, project_key: str) -> list[Any]:
        """Return the id of each session of a project, and when its newest line was written here, newest first."""
        found = await self._live(project_key)
        times = await self._times(found)
        return [{"session_id": found[id_][0].session, "mtime": mtime} for id_, mtime in times.items()]

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        """Return the SDK's summary of each session of a project.

        The SDK's `fold_session_summary` makes it from the lines that came since the last time; its state is kept.

        Raises:
            MissingExtra: the SDK is not installed.
            StoreError: the store cannot be read.
        """
        found = await self._live(project_key)
        times = await self._times(found)
        return [await self._summary(id_, *found[id_], mtime) for id_, mtime in times.items()]

    async def delete(self, key: Mapping[str, Any]) -> None:
        """Hide a session with its subagents, or one subagent, from `load` and the lists; the log keeps it.

        Raises:
            StoreError: the store refused; a session whose subagents are gone may still be there.
        """
        place = _key(key)
        found = await self._live(place.project)
        gone = [
            (conversation, other)
            for conversation, (other, _) in found.items()
            if other == place or (not place.subpath and other.session == place.session)
        ]
        for conversation, other in sorted(gone, key=lambda one: not one[1].subpath):  # the session itself comes last
            await self._write_record(conversation, None)
            self._open.pop(other, None)
            self._handed.pop(other, None)

    async def list_subkeys(self, key: Mapping[str, Any]) -> list[str]:
        """Return the subpaths of a session's subagents."""
        place = _key(key)
        return [
            other.subpath
            for other, _ in (await self._live(place.project)).values()
            if other.main == place.main and other.subpath
        ]

    def _gone_on_from(self, place: Key, entries: Sequence[Row]) -> list[Row]:
        """Return what `load` handed to the client, if a batch goes on from it: from then on it is part of the log."""
        handed = self._handed.get(place, [])
        ids = {uuid_of(row) for row in handed}
        return handed if any(row.get("parentUuid") in ids for row in entries) else []

    async def _session(self, place: Key) -> SessionLog:
        session = self._open.get(place)
        if session is None:
            conversation, _ = await self._resolve(place)
            session = self._open.setdefault(place, SessionLog(self._store, conversation, place, self._policy))
        self._open.move_to_end(place)
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        return session

    async def _resolve(self, place: Key) -> tuple[str, bool]:
        """Return the conversation of a transcript, and whether it is there; else the one to begin."""
        wanted, number = place.session, 1
        if place.subpath:
            wanted, _ = await self._resolve(place.main)
            parts = place.subpath.split("/")
            wanted = ".".join([wanted, *(parts[1:] if parts[0] == _LAYERS and len(parts) > 1 else parts)])
        conversation = wanted
        while True:
            try:
                record = await record_of(self._store, conversation)
            except ConversationNotFound:
                return conversation, False
            if record is not None and key_in(record.data) == place:
                return conversation, True
            number += 1
            conversation = f"{wanted}~{number}"

    async def _parent(self, place: Key, rows: Sequence[Row]) -> ParentLink | None:
        """Return the link of a subagent to its session, with the call that began it where that was read already."""
        if not place.subpath:
            return None
        session = await self._session(place.main)
        calls = (row.get("toolUseId") for row in rows if row.get("type") == "agent_metadata")
        paths = (session.path_of_call(call) for call in calls if isinstance(call, str))
        return ParentLink(conversation=session.conversation, path=next(filter(None, paths), None), relation="subagent")

    async def _live(self, project: str) -> dict[str, tuple[Key, dict[str, Any]]]:
        """Return the conversations of a project that were not deleted, with the data of their newest records."""
        newest: dict[str, Any] = {}
        async for event in all_events(self._store, [RECORD]):
            if isinstance(event.payload, FrameworkRecord) and event.payload.framework == FRAMEWORK:
                newest[event.conversation] = event.payload.data
        keys = {conversation: (key_in(data), data) for conversation, data in newest.items()}
        return {id_: (key, data) for id_, (key, data) in keys.items() if key is not None and key.project == project}

    async def _times(self, found: Mapping[str, tuple[Key, Any]]) -> dict[str, int]:
        """Return when each session was last written to, in milliseconds, the newest first, no two of them alike.

        The SDK sorts by the time alone, sessions with a summary and those without one together: of two that were
        written within a millisecond the later one gets the next.
        """
        written = [(await self._written_at(id_), id_) for id_, (key, _) in found.items() if not key.subpath]
        times, last = dict[str, int](), 0
        for at, id_ in sorted(written):
            times[id_] = last = max(at.mtime, last + 1)
        return dict(reversed(times.items()))

    async def _summary(self, conversation: str, key: Key, data: dict[str, Any], mtime: int) -> dict[str, Any]:
        with needs("claude-agent-sdk"):
            from claude_agent_sdk import fold_session_summary  # noqa: PLC0415 - nothing else needs the SDK
        info = await self._store.info(conversation)
        rows = [
            row
            async for event in self._store.read(
                conversation, after=data.get("through", 0), until=info.version, types=[ENTRY]
            )
            if (row := row_of(event.payload))
        ]
        known = data.get("summary")
        before = None if known is None else {"session_id": key.session, "mtime": mtime, "data": known}
        folded: Any = fold_session_summary(before, {"project_key": key.project, "session_id": key.session}, rows)
        if rows:
            # Only the state of a fold that another call makes as well: of a store for reading it is made each time.
            with suppress(VersionConflict, StoreReadOnly):
                record = {**key.dump(), "summary": folded["data"], "through": info.version}
                await self._write_record(conversation, record, expected=info.version)
        return {"session_id": key.session, "mtime": mtime, "data": folded["data"]}

    async def _written_at(self, conversation: str) -> _Written:
        """Return when a conversation's newest line was written.

        The times of its blocks are those of the client's clock, and what is decided about it later is no line.
        """
        version = (await self._store.info(conversation)).version
        newest: Event | None = None
        for back in (*_NEAR, version):
            async for event in self._store.read(conversation, after=max(0, version - back), types=[ENTRY]):
                newest = event
            if newest is not None:
                return _Written(int(newest.at.timestamp() * 1_000), newest.position)
        return _Written(0, 0)

    async def _write_record(self, conversation: str, data: Any, *, expected: int | Expected = Expected.ANY) -> None:
        at = max(datetime.now(UTC), (await self._store.info(conversation)).updated_at)
        event = NewEvent(id=event_id(at), at=at, payload=FrameworkRecord(framework=FRAMEWORK, data=data))
        await self._store.append(conversation, [event], expected=expected)
        notify(self._store, conversation, [event])


def _key(key: Mapping[str, Any]) -> Key:
    return Key(key["project_key"], key["session_id"], key.get("subpath") or "")
