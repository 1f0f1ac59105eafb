"""A store's conversations as lines: each event as it is stored, with its checksum, behind the texts it refers to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from timeline.errors import StoreCorrupt
from timeline.portable.lines import event_line, log_line, value_line, values_of
from timeline.portable.redacting import Erasures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from timeline.events import Event
    from timeline.portable.redacting import Eraser
    from timeline.ports import ConversationInfo, EventStore

_MOST_DAMAGED: Final = 1_000


@dataclass(slots=True)
class Exported:
    """What an export wrote, filled in as it goes on.

    Attributes:
        conversations, events: how many, those of forks' parents included.
        redacted: events of which something was left out, because it is redacted.
        damaged: versions of events that could not be read and are not in the lines, each with its conversation.
        lost_values: hashes of texts that could not be read.
    """

    conversations: int = 0
    events: int = 0
    redacted: int = 0
    damaged: list[tuple[str, int]] = field(default_factory=list)
    lost_values: list[str] = field(default_factory=list)


async def export_log(
    store: EventStore, conversations: Iterable[str], *, library: str = "", result: Exported | None = None
) -> AsyncIterator[str]:
    """Yield the lines of conversations, each behind those that it was forked from, as far as it needs them.

    Args:
        store: where they are.
        conversations: their ids.
        library: the version of this library, for the file to say.
        result: is filled in.

    Raises:
        ConversationNotFound: there is no such conversation.
        StoreCorrupt: so much is damaged that it is no use.
    """
    done = result if result is not None else Exported()
    wanted = list(dict.fromkeys(conversations))
    erasures = await Erasures.of(store, wanted)
    given: set[str] = set()
    for info, until in await _in_order(store, wanted):
        eraser = await erasures.eraser(store, info.id)
        done.conversations += 1
        yield log_line(info, until, eraser.title(info.title), library)
        if info.base and eraser.is_busy:  # what is shared is written already; what follows from it is to be known
            async for event in _undamaged(store, info, 0, info.base, Exported()):
                eraser.erase(event.version, event.payload)
        async for event in _undamaged(store, info, info.base, until, done):
            async for line in _values(store, values_of(event.payload) - given, done):
                yield line
            given |= values_of(event.payload)
            yield _line(event, eraser, done)


def _line(event: Event, eraser: Eraser, done: Exported) -> str:
    erased = eraser.erase(event.version, event.payload)
    done.events += 1
    done.redacted += erased is not None
    return event_line(event, erased)


async def _in_order(store: EventStore, wanted: Iterable[str]) -> list[tuple[ConversationInfo, int]]:
    """Return conversations behind those that they were forked from, each with the last version that is wanted."""
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
    store: EventStore, info: ConversationInfo, after: int, until: int, done: Exported
) -> AsyncIterator[Event]:
    """Iterate over the events that can be read; note the versions of those that cannot."""
    version = after
    while version < until:
        try:
            async for event in store.read(info.id, after=version, until=until):
                yield event
                version = event.version
        except StoreCorrupt:
            version += 1
            done.damaged.append((info.id, version))
            if len(done.damaged) > _MOST_DAMAGED:
                raise
        else:
            return
