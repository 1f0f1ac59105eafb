"""Write a store's conversations as lines: each event as stored, with its place in the chain, after its texts."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from timeline import checks
from timeline.audit.redacting import Erasures
from timeline.errors import StoreCorrupt, StoreTooNew
from timeline.events import Event
from timeline.log.undisturbed import check_undisturbed, seen
from timeline.portable.held import is_whole
from timeline.portable.lines import event_line, log_line, value_line, values_of, written_line
from timeline.ports import WrittenEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from timeline.audit.redacting import Eraser
    from timeline.events import Payload
    from timeline.ports import ChainedEvent, ConversationInfo, EventStore

T = TypeVar("T", Event, WrittenEvent)

AGAIN: Final = "What was written until then may hold it: delete that, and export again"
"""The cure where content was removed while an export was written."""
_MOST_DAMAGED: Final = 1_000
"""After so many damaged events the export gives up, if nothing could be read yet. Otherwise it writes all that can be
read: an export of a damaged store may be all that is left of it."""


@dataclass(slots=True)
class Exported:
    """The counts of an export, filled in while it runs.

    Attributes:
        conversations, events: the number written, parents of forks included.
        redacted: events that were written without their redacted content.
        damaged: conversation and version of each event that could not be read and was left out.
        lost_values: hashes of texts that could not be read.
        left_out: conversations that were not written, each with the damage that hides what was redacted in it.
        scavenged: the conversations of which events are missing since they were scavenged, each with the version from
            which on all are there.
    """

    conversations: int = 0
    events: int = 0
    redacted: int = 0
    damaged: list[tuple[str, int]] = field(default_factory=list)
    lost_values: list[str] = field(default_factory=list)
    left_out: list[tuple[str, StoreCorrupt]] = field(default_factory=list)
    scavenged: list[tuple[str, int]] = field(default_factory=list)


async def export_log(
    store: EventStore, conversations: Iterable[str], *, library: str = "", result: Exported | None = None
) -> AsyncIterator[str]:
    """Yield the lines of conversations, each after the shared part of the conversations that it was forked from.

    Args:
        store: the store of the conversations.
        conversations: their ids.
        library: the version of this library, which is written into the file.
        result: counts that are filled in.

    Raises:
        ConversationNotFound: there is no such conversation.
        InvalidArgument: ``conversations`` is a single id, and no list.
        StoreTooNew: a later version of this library wrote an event, which would be missing in the export.
        RemovedMeanwhile: content of one of them was removed while it was exported: no import would take the lines.
        StoreCorrupt: the database is damaged so that nothing of it can be read.
    """
    checks.listed("conversations", conversations)
    done = result if result is not None else Exported()
    wanted = list(dict.fromkeys(conversations))
    before = {conversation: await seen(store, conversation) for conversation in wanted}
    async with aclosing(_lines(store, wanted, library, done)) as lines:  # type: ignore[type-var]  # a generator
        async for line in lines:
            yield line
    left_out = {conversation for conversation, _ in done.left_out}
    for conversation, log in before.items():
        if conversation not in left_out:
            await check_undisturbed(store, conversation, log, AGAIN)


async def _lines(store: EventStore, wanted: Sequence[str], library: str, done: Exported) -> AsyncIterator[str]:
    """Yield the lines of `export_log`."""
    try:
        erasures = await Erasures.of(store, wanted)
    except StoreCorrupt:
        wanted = await _to_be_erased_rightly(store, wanted, done)
        erasures = await Erasures.of(store, wanted)
    given: set[str] = set()
    for info, until in await _in_order(store, wanted):
        eraser = await erasures.eraser(store, info.id)
        done.conversations += 1
        first = await _first_version(store, info, until)
        if first > 1:
            done.scavenged.append((info.id, first))
        yield log_line(info, until, eraser.title(info.title), library, first)
        if info.base and eraser.is_busy:  # the parent's lines are written, but the eraser has to see their events, too
            shared = partial(store.read, info.id)
            async for event in _undamaged(shared, info, 0, info.base, Exported(events=done.events)):
                eraser.erase(event.version, event.payload)
        lines = _erased(store, info, until, eraser, done) if eraser.is_busy else _as_written(store, info, until, done)
        async for line, payload in lines:
            if payload is not None and (new := values_of(payload) - given):
                async for value in _values(store, new, done):
                    yield value
                given |= new
            yield line


async def _to_be_erased_rightly(store: EventStore, wanted: Sequence[str], done: Exported) -> list[str]:
    """Return the conversations that can be written; note those whose redactions cannot be read.

    All conversations that share the past of such a one are left out, too, since it may have redacted something there.

    Raises:
        StoreCorrupt: none can be written.
    """
    families: dict[str, list[str]] = {}
    damaged: dict[str, StoreCorrupt] = {}
    for conversation in wanted:
        try:
            families.setdefault(await _root(store, conversation), []).append(conversation)
            await Erasures.of(store, [conversation])
        except StoreCorrupt as damage:
            damaged[conversation] = damage
    for family in families.values():
        if first := next((damaged[each] for each in family if each in damaged), None):
            damaged |= {each: damaged.get(each, first) for each in family}
    done.left_out += damaged.items()
    left = [each for each in wanted if each not in damaged]
    if not left:
        raise next(iter(damaged.values()))
    return left


async def _root(store: EventStore, conversation: str) -> str:
    """Return the oldest ancestor of a conversation whose past it shares; its own id if it shares nothing."""
    info = await store.info(conversation)
    while info.base and info.parent is not None:
        info = await store.info(info.parent.conversation)
    return info.id


async def _first_version(store: EventStore, info: ConversationInfo, until: int) -> int:
    """Return the version from which on all events are there; the one in the row, if damage hides it."""
    try:
        return 1 if await is_whole(store, info, until) else info.first_version
    except StoreCorrupt:
        return info.first_version


async def _as_written(
    store: EventStore, info: ConversationInfo, until: int, done: Exported
) -> AsyncIterator[tuple[str, Payload | None]]:
    """Yield the lines of events without redacted content, each with its payload if that may name values."""
    read = partial(store.read_written, info.id)
    async for event in _undamaged(read, info, info.base, until, done):
        done.events += 1
        yield written_line(info.id, event), event.payload


async def _erased(
    store: EventStore, info: ConversationInfo, until: int, eraser: Eraser, done: Exported
) -> AsyncIterator[tuple[str, Payload]]:
    """Yield the lines of events with redacted content taken out, each with the payload that it has in the store."""
    links = store.chained(info.id, after=info.base)
    chained: ChainedEvent | None = None
    async for event in _undamaged(partial(store.read, info.id), info, info.base, until, done):
        while chained is None or chained.version < event.version:
            chained = await anext(links)
        yield _line(event, eraser, chained, done), event.payload


def _line(event: Event, eraser: Eraser, chained: ChainedEvent, done: Exported) -> str:
    erased = eraser.erase(event.version, event.payload)
    done.events += 1
    done.redacted += erased is not None
    return event_line(event, erased, chained)


async def _in_order(store: EventStore, wanted: Iterable[str]) -> list[tuple[ConversationInfo, int]]:
    """Return conversations, parents before their forks, each with the last version to write."""
    found: dict[str, tuple[ConversationInfo, int]] = {}
    for conversation in wanted:
        info = await store.info(conversation)
        line = [(info, info.version)]
        while info.base and info.parent is not None:
            base, info = info.base, await store.info(info.parent.conversation)
            line.append((info, min(base, info.version)))
        for ancestor, until in reversed(line):
            known = found.get(ancestor.id, (ancestor, 0))
            found[ancestor.id] = (known[0], max(known[1], until))
    return list(found.values())


async def _values(store: EventStore, hashes: set[str], done: Exported) -> AsyncIterator[str]:
    for hash_ in sorted(hashes):
        try:
            for text in (await store.values([hash_])).values():
                yield value_line(hash_, text)
        except StoreCorrupt:
            done.lost_values.append(hash_)


async def _undamaged(
    read: Callable[..., AsyncIterator[T]], info: ConversationInfo, after: int, until: int, done: Exported
) -> AsyncIterator[T]:
    """Yield the events that can be read; note the versions of the damaged ones.

    Raises:
        StoreTooNew: a later version wrote an event. It is no damage, and that version exports the whole of the log.
    """
    version = after
    while version < until:
        try:
            async for event in read(after=version, until=until):
                yield event
                version = event.version
        except StoreTooNew:
            raise
        except StoreCorrupt:
            version += 1
            done.damaged.append((info.id, version))
            if len(done.damaged) > _MOST_DAMAGED and not done.events:
                raise
        else:
            return
