"""Copy conversations from one store into another, event for event: with their ids, versions, seals and links.

A copy is proved, not trusted. Before anything is appended, the events that the other store holds already are compared
link by link. Afterwards each new event is read back and compared with its original. So a copy that was interrupted goes
on where it stopped, and a repeated one adds what came since. An event that the chain of its own store does not prove is
not written at all: the copy ends before a damaged event until that is mended. Where content is removed from a log while
it is copied, nothing more of it is written: an event behind the removal may lack what explains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from timeline import checks
from timeline.errors import (
    ConversationErased,
    ConversationNotFound,
    DuplicateEvent,
    HistoryUnavailable,
    ImportFailed,
    PathTaken,
    RemovedMeanwhile,
    StoreCorrupt,
    TimelineError,
    VersionConflict,
)
from timeline.events.appended import columns_of
from timeline.events.chain import START, Seal, link
from timeline.events.encoded import encoded_event
from timeline.log.listed import listed
from timeline.log.undisturbed import check_undisturbed, seen
from timeline.portable.held import held_version, is_whole
from timeline.portable.lines import values_of
from timeline.ports import Expected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from timeline.events.encoded import EncodedEvent
    from timeline.ports import ChainedEvent, ConversationInfo, EventStore, WrittenEvent

_MOST_EVENTS: Final = 500
"""Events in one append."""
_MOST_TEXT: Final = 4_000_000
"""An append is complete once its payloads have so many characters, so that hundreds of large ones are never held."""
_REDACTED: Final = ("block.redacted",)
OF_ONE: Final = (
    ConversationErased,
    ConversationNotFound,
    DuplicateEvent,
    HistoryUnavailable,
    ImportFailed,
    PathTaken,
    RemovedMeanwhile,
    StoreCorrupt,
    VersionConflict,
)
"""The errors that concern one conversation only: the others can still be copied."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The outcome of copying one conversation.

    Attributes:
        conversation: its id.
        version: the last version that was copied; the copy is at this one, or was ahead of it.
        events: number of events that were appended.
        known: number of events that were there already.
        head: the link of that version, which is the same in both stores.
    """

    conversation: str
    version: int
    events: int
    known: int
    head: bytes


@dataclass(frozen=True, slots=True)
class NotCopied:
    """A conversation of which nothing, or not all, was copied, and why.

    Attributes:
        conversation: its id.
        error: why; once that is cured, the copy can be repeated, and goes on where it stopped.
        events: number of events that were appended before that.
    """

    conversation: str
    error: TimelineError
    events: int = 0


async def copy_store(
    store: EventStore, into: EventStore, *, on_progress: Callable[[str, int], None] = lambda _, __: None
) -> AsyncIterator[Copied | NotCopied]:
    """Copy all conversations, in the order in which they were opened; one that cannot be copied leaves out no other.

    What belongs to the store as a whole is its retention, which an empty store takes over. Erased conversations leave
    nothing to copy: their ids are free in the other store. Positions are the other store's own: each conversation's
    events keep their order, those of different ones follow one another. Of a damaged conversation, what lies before the
    damage is copied, and forks that share no more than that. A scavenged one is not copied, but for what forks share of
    it, as long as that is all there.

    Args:
        store: holds the conversations.
        into: another store.
        on_progress: called with a conversation and the number of its events compared or appended.

    Yields:
        The outcome of each conversation.

    Raises:
        StoreCorrupt: the row of a conversation is damaged, so that it is not listed; all others were copied.
        StoreError: one of the stores failed; the copy can be repeated, and goes on where it stopped.

    Example:
        ```python
        from timeline import Timeline, open_store
        from timeline.portable import Copied, copy_store

        store, other = await open_store("memory://"), await open_store("memory://")
        await Timeline.open(store, "cards")
        [copied] = [done async for done in copy_store(store, other)]
        assert isinstance(copied, Copied) and copied.head == await other.chain_head("cards")
        ```
    """
    if not await into.head():
        await into.set_retention(await store.retention())
    infos, unlisted = await listed(store)
    scavenged: set[str] = set()
    for info in infos:
        if info.base and info.parent is not None and info.parent.conversation in scavenged:
            async for done in copy_conversations(store, [info.id], into, on_progress=on_progress):
                yield done
            continue
        outcome = await _outcome(store, info.id, into, None, on_progress)
        if isinstance(outcome, NotCopied) and isinstance(outcome.error, HistoryUnavailable):
            scavenged.add(info.id)
        yield outcome
    if unlisted is not None:
        raise unlisted


async def copy_conversations(
    store: EventStore,
    conversations: Iterable[str],
    into: EventStore,
    *,
    on_progress: Callable[[str, int], None] = lambda _, __: None,
) -> AsyncIterator[Copied | NotCopied]:
    """Copy some conversations, each after the shared part of those that it was forked from, as `copy_store` copies all.

    Args:
        store: holds the conversations.
        conversations: their ids.
        into: another store. What it holds of them already is compared, and not written again.
        on_progress: called with a conversation and the number of its events compared or appended.

    Yields:
        The outcome of each log, ancestors first; of one that several of them share, once, unless more of it follows.
        Of a fork that was scavenged itself its own outcome alone: nothing of its ancestors is copied for it.

    Raises:
        InvalidArgument: ``conversations`` is a single id, and no list.
        StoreError: one of the stores failed; the copy can be repeated, and goes on where it stopped.
    """
    checks.listed("conversations", conversations)
    tried: dict[str, int] = {}
    for conversation in conversations:
        try:
            line = await _line(store, conversation)
        except OF_ONE as error:
            yield NotCopied(conversation, error)
            continue
        own, last = line[-1]
        if not await is_whole(store, own, last):  # of its parents alone nobody would know what was redacted there
            yield await _outcome(store, own.id, into, None, on_progress)
            continue
        for info, until in line:
            if tried.get(info.id, -1) < until:  # two forks may share a log, which is copied once
                tried[info.id] = until
                yield await _outcome(store, info.id, into, None if info is own else until, on_progress)


async def _outcome(
    store: EventStore, conversation: str, into: EventStore, until: int | None, on_progress: Callable[[str, int], None]
) -> Copied | NotCopied:
    """Copy a conversation's own events up to a version; say what kept it from being copied."""
    before = await _held(into, conversation)
    try:
        return await copy_log(store, conversation, into, until=until, on_progress=partial(on_progress, conversation))
    except OF_ONE as error:
        return NotCopied(conversation, error, await _held(into, conversation) - before)


async def _held(store: EventStore, conversation: str) -> int:
    """Return the version that a store has of a conversation; 0 where it has none, or erased it."""
    try:
        return await held_version(store, conversation)
    except ConversationErased:
        return 0


async def copy_conversation(
    store: EventStore, conversation: str, into: EventStore, *, on_progress: Callable[[int], None] = lambda _: None
) -> list[Copied]:
    """Copy a conversation, after the shared part of those that it was forked from, under the same ids and versions.

    Args:
        store: holds the conversation.
        conversation: its id.
        into: another store. What it holds of them already is compared, and not written again.
        on_progress: called with the number of events compared or appended of each log.

    Returns:
        The outcome of each log, ancestors first.

    Raises:
        ConversationNotFound: there is no such conversation.
        HistoryUnavailable: a scavenge removed a part of it.
        ImportFailed: the other store holds another conversation under one of the ids.
        RemovedMeanwhile: content was removed from one of the logs while it was copied.
        StoreError: an append failed, and the copy can be repeated; or an event came out of the other store differently.
    """
    line = await _line(store, conversation)
    shared = [(info.id, until) for info, until in line[:-1]]
    return [
        await copy_log(store, id_, into, until=until, on_progress=on_progress)
        for id_, until in (*shared, (conversation, None))
    ]


async def _line(store: EventStore, conversation: str) -> list[tuple[ConversationInfo, int]]:
    """Return the logs that hold a conversation's versions, ancestors first, each with the last version of its part."""
    info = await store.info(conversation)
    line = [(info, info.version)]
    while info.base and info.parent is not None:
        base, info = info.base, await store.info(info.parent.conversation)
        line.append((info, base))
    return line[::-1]


async def copy_log(
    store: EventStore,
    conversation: str,
    into: EventStore,
    *,
    until: int | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Copied:
    """Copy a conversation's own events up to a version, and its snapshots up to there.

    Args:
        store: holds the conversation.
        conversation: its id.
        into: another store; of a fork it holds the shared past already.
        until: the last version to copy; all of them unless given.
        on_progress: called with the number of events compared or appended.

    Raises:
        HistoryUnavailable: see `copy_conversation`, as for the others.
        ImportFailed: see above.
        RemovedMeanwhile: see above.
        StoreError: see above.
    """
    before = await seen(store, conversation)
    there = await held_version(into, conversation)

    async def check() -> None:
        cure = "Nothing of it was copied: copy it again"
        if (now := await held_version(into, conversation)) > there:
            cure = (
                f"The other store has it up to version {now}, with that content: remove it there too, and copy the "
                "conversation into another store, since the two logs differ from here on"
            )
        await check_undisturbed(store, conversation, before, cure)

    try:
        copied = await _copy(store, await store.info(conversation), into, until, check, on_progress)
    except TimelineError:
        await check()  # what looks like damage may be half of what was removed
        raise
    await check()
    return copied


async def _copy(  # noqa: PLR0917 - what `copy_log` is given
    store: EventStore,
    info: ConversationInfo,
    into: EventStore,
    last: int | None,
    check: Callable[[], Awaitable[None]],
    on_progress: Callable[[int], None],
) -> Copied:
    """Copy a log; ``check`` raises if content was removed since the copy began, and is asked before each write."""
    until = info.version if last is None else last
    if not await is_whole(store, info, until):
        raise HistoryUnavailable(info.id, info.first_version - 1, info.first_version, info.version, scavenged=True)
    there = await held_version(into, info.id)
    known = min(there, until)
    if known > info.base:
        await _compare(store, into, info, known, on_progress)
    elif info.base and info.parent is not None:
        await _check_shared(store, into, info, info.parent.conversation)
    await _compare_shared(store, into, info)
    after = max(known, info.base)
    written = 0
    async for batch in _batches(store, info.id, after, until):
        expected = after + written if there or written else Expected.NO_STREAM
        values = await _values(store, batch)
        await check()
        await _append(into, info.id, batch, expected, values)
        written += len(batch)
        on_progress(after - info.base + written)
    if written:
        await _read_back(store, into, info.id, after, until)
        await _compare_shared(store, into, info)
    if there <= until:
        await _copy_snapshots(store, into, info, until, check)
    head = await _link(store, info.id, until)
    return Copied(info.id, until, written, max(known - info.base, 0), head)


async def _check_shared(store: EventStore, into: EventStore, info: ConversationInfo, parent: str) -> None:
    """Check that another store holds the past that a fork shares.

    Raises:
        ImportFailed: it does not, since its parent could not be copied, or it has another conversation of that id.
    """
    there = await _held(into, parent)
    if there < info.base:
        raise ImportFailed(
            info.id,
            f"it shares versions 1 to {info.base} of {parent!r}, of which the other store holds {there or 'none'}. "
            f"Nothing of it was copied; mend what keeps {parent!r} from being copied, then copy again.",
        )
    if await _link(store, parent, info.base) != await _link(into, parent, info.base):
        raise ImportFailed(
            info.id,
            f"it shares versions 1 to {info.base} of {parent!r}, and the other store holds another conversation of that"
            " id. Nothing of it was copied; copy it into another store.",
        )


async def _link(store: EventStore, conversation: str, version: int) -> bytes:
    if not version:
        return START
    found = await anext(aiter(store.chained(conversation, after=version - 1, page=1)), None)
    return b"" if found is None else found.link or b""


async def _compare_shared(store: EventStore, into: EventStore, info: ConversationInfo) -> None:
    """Compare the past that a fork shares, where content of it was redacted in either store.

    Here each fork has an event of that, and there the parent has one. The parent may have been copied before, and be
    left alone: the two have different content.

    Raises:
        ImportFailed: see `_compare`.
    """
    if not info.base or info.parent is None:
        return
    parent = info.parent.conversation
    for log in store.read(info.id, after=info.base, types=_REDACTED), into.read(parent, types=_REDACTED):
        async for _ in log:
            await _compare_events(info.id, store.chained(info.id), into.chained(parent), info.base, lambda _: None)
            return


async def _compare(
    store: EventStore, into: EventStore, info: ConversationInfo, known: int, on_progress: Callable[[int], None]
) -> None:
    """Compare the events that both stores hold, without their payloads: checksums and links vouch for those.

    Raises:
        ImportFailed: the other store has another conversation, or content that was redacted here since.
    """
    events = store.chained(info.id, after=info.base), into.chained(info.id, after=info.base)
    await _compare_events(info.id, *events, known, on_progress)


async def _compare_events(
    conversation: str,
    of_ours: AsyncIterator[ChainedEvent],
    of_theirs: AsyncIterator[ChainedEvent],
    known: int,
    on_progress: Callable[[int], None],
) -> None:
    """Compare the events of two stores up to a version."""
    number = 0
    async for ours in of_ours:
        if ours.version > known:
            return
        other = await anext(of_theirs)
        number += 1
        if _identity(ours) != _identity(other):
            raise ImportFailed(
                conversation,
                f"the other store holds another conversation of this id: the two differ from version {ours.version} "
                "on. Nothing of it was copied; copy it into another store.",
            )
        if ours.checksum != other.checksum:
            raise _redacted_since(conversation, ours.version)
        if number % _MOST_EVENTS == 0 or ours.version == known:
            on_progress(number)


def _redacted_since(conversation: str, version: int) -> ImportFailed:
    return ImportFailed(
        conversation,
        f"version {version} was redacted in one of the stores since it was copied. No more was copied. "
        "Redact it in the other store too, and copy the conversation into another store: the two logs differ.",
    )


def _identity(event: ChainedEvent) -> tuple[object, ...]:
    return event.version, event.id, event.type, event.at, event.path, event.link


async def _batches(
    store: EventStore, conversation: str, after: int, until: int
) -> AsyncIterator[Sequence[tuple[WrittenEvent, EncodedEvent]]]:
    """Read events in batches of the size of an append; the events before damage are yielded before its error.

    Raises:
        StoreCorrupt: an event is damaged, or is not the one that the chain has.
    """
    batch: list[tuple[WrittenEvent, EncodedEvent]] = []
    size = 0
    try:
        async for found in _proved(store, conversation, after, until):
            batch.append((found, _encoded(found)))
            size += len(found.text)
            if len(batch) == _MOST_EVENTS or size > _MOST_TEXT:
                yield batch
                batch, size = [], 0
    except StoreCorrupt:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


async def _proved(store: EventStore, conversation: str, after: int, until: int) -> AsyncIterator[WrittenEvent]:
    """Read events, and compare each with the chain: a copy with an event that is not in it could not be continued.

    Raises:
        StoreCorrupt: see `_batches`.
    """
    previous = await _link(store, conversation, after)
    async for found in store.read_written(conversation, after=after, until=until):
        if found.link is None and found.c is None:
            raise StoreCorrupt(
                f"event {found.version} of conversation {conversation!r} has no link: a program of an earlier version "
                "appended it while the store was open. Run `timeline repair --yes`, which links it, then copy again."
            )
        place = (conversation, found.version, found.id, found.type, found.schema_version, found.at)
        if found.c is None or found.link != link(previous, *place, found.c):
            raise StoreCorrupt(
                f"event {found.version} of conversation {conversation!r} is damaged: it does not match its "
                "chain. `timeline verify` names all damage. Put a backup of the store in its place."
            )
        previous = found.link
        yield found


def _encoded(found: WrittenEvent) -> EncodedEvent:
    columns = None if found.payload is not None else columns_of(found.text)
    return encoded_event(
        (found.id, found.at, found.type, found.schema_version),
        found.text,
        payload=found.payload,
        columns=columns,
        proved=(found.version, found.checksum),
    )


async def _values(store: EventStore, batch: Sequence[tuple[WrittenEvent, EncodedEvent]]) -> dict[str, str]:
    """Return the texts that a batch names."""
    hashes = {hash_ for _, event in batch if event.columns is None for hash_ in values_of(event.payload)}
    return await store.values(hashes)


async def _append(
    into: EventStore,
    conversation: str,
    batch: Sequence[tuple[WrittenEvent, EncodedEvent]],
    expected: int | Expected,
    values: Mapping[str, str],
) -> None:
    seals = [Seal(found.salt, found.c) for found, _ in batch if found.c is not None]  # each has one, see `_proved`
    await into.append(conversation, [event for _, event in batch], expected=expected, values=values, seals=seals)


async def _read_back(store: EventStore, into: EventStore, conversation: str, after: int, until: int) -> None:
    """Compare each event that was copied with its original.

    Raises:
        ImportFailed: one was redacted there since.
        StoreCorrupt: one of them differs.
    """
    theirs = aiter(into.read_written(conversation, after=after, until=until))
    async for ours in store.read_written(conversation, after=after, until=until):
        other = await anext(theirs, None)
        if other is None or ours._replace(payload=None) != other._replace(payload=None):
            async for _ in into.read(conversation, after=until, types=_REDACTED):
                raise _redacted_since(conversation, ours.version)
            raise StoreCorrupt(
                f"{conversation!r}, version {ours.version}: the copy reads differently from what was written. Verify "
                "both stores with `timeline verify --deep`; do not use the copy."
            )


async def _copy_snapshots(
    store: EventStore, into: EventStore, info: ConversationInfo, until: int, check: Callable[[], Awaitable[None]]
) -> None:
    """Copy the snapshots up to a version, so that opening the copy, and going back in it, cost no more than before.

    They are copied after the events. If the copy is interrupted before, the next one copies them. Where the other store
    went on with its copy, they are left out: a redaction there would find them nowhere.
    """
    there = set(await into.waypoints(info.id))
    versions = [version for version in await store.waypoints(info.id) if version <= until and version not in there]
    near = [await store.load_waypoint(info.id, version, after=version - 1) for version in versions]
    if near:
        await check()
        if await held_version(into, info.id) == until:
            await into.replace_waypoints(info.id, [snapshot for snapshot in near if snapshot is not None])
    if (await into.info(info.id)).window_start == info.window_start:
        return
    newest = (await store.load_window(info.id)).snapshot
    if newest is not None and newest.version <= until:
        await check()
        if await held_version(into, info.id) == until:
            await into.replace_snapshot(info.id, newest)
