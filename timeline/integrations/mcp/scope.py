"""A store as far as a client may see it: some of its conversations, and nothing that names another one.

Only the methods that the tools ask with are here: what is not in this class cannot be asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from timeline.checks import texts
from timeline.errors import ConversationNotFound, StoreCorrupt, StoreTooNew
from timeline.queries import MOST_FOUND

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
    from uuid import UUID

    from timeline.events import Covers, Event
    from timeline.ports import ConversationInfo, EventStore, Snapshot, StoredWindow
    from timeline.queries import FactReach, FactRecord, Found, StoredDigest, StoredFact

T = TypeVar("T")

_EACH: Final = 50
"""Most conversations that are searched one by one; of more, the store's best hits are searched for theirs first."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which conversations a client may see: those of these ids, and those whose id begins with one of the prefixes."""

    ids: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, only: Iterable[str]) -> Scope:
        """Read a list of ids, and of prefixes that end with ``*``.

        Raises:
            InvalidArgument: it is a single text. Its letters would be ids, and its ``*`` would show everything.
        """
        listed = [*only]
        texts("only", only if isinstance(only, str) else listed)
        prefixes = tuple(word[:-1] for word in listed if word.endswith("*"))
        return cls(frozenset(word for word in listed if not word.endswith("*")), prefixes)

    def has(self, conversation: str) -> bool:
        """Return whether a conversation is one of them."""
        return conversation in self.ids or conversation.startswith(self.prefixes)


def scoped(store: EventStore, scope: Scope) -> EventStore:
    """Return what a scope leaves of a store, for reading."""
    return cast("EventStore", _ScopedStore(store, scope))


class _ScopedStore:
    """The reading half of an `EventStore`, within a scope: any other conversation does not exist."""

    def __init__(self, store: EventStore, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    async def info(self, conversation: str) -> ConversationInfo:
        return self._without_parent(await self._within(conversation, self._store.info))

    async def load_window(self, conversation: str) -> StoredWindow:
        stored = await self._within(conversation, self._store.load_window)
        return replace(stored, info=self._without_parent(stored.info))

    async def conversations(self, *, page: int = 1_000) -> AsyncIterator[ConversationInfo]:
        async for info in self._only(self._store.conversations(page=page), lambda info: info.id):
            yield self._without_parent(info)

    async def recent_conversations(self, **asked: Any) -> AsyncIterator[ConversationInfo]:
        async for info in self._only(self._store.recent_conversations(**asked), lambda info: info.id):
            yield self._without_parent(info)

    async def read(self, conversation: str, **asked: Any) -> AsyncIterator[Event]:
        self._check(conversation)
        async for event in self._only(self._store.read(conversation, **asked), lambda _: conversation):
            yield event

    async def read_versions(self, conversation: str, versions: Collection[int]) -> list[Event]:
        return await self._within(conversation, self._store.read_versions, versions)

    async def find(self, conversation: str, path: str) -> Event | None:
        return await self._within(conversation, self._store.find, path)

    async def paths_taken(self, conversation: str, stems: Collection[str]) -> set[str]:
        return await self._within(conversation, self._store.paths_taken, stems)

    async def known_ids(self, conversation: str, ids: Collection[UUID]) -> set[UUID]:
        return await self._within(conversation, self._store.known_ids, ids)

    async def scavenged(self, conversation: str) -> dict[str, int]:
        return await self._within(conversation, self._store.scavenged)

    async def load_base(self, conversation: str, until: int | None = None) -> StoredWindow | None:
        stored = await self._within(conversation, self._store.load_base, until)
        return None if stored is None else replace(stored, info=self._without_parent(stored.info))

    async def load_waypoint(self, conversation: str, until: int, *, after: int = 0) -> Snapshot | None:
        self._check(conversation)
        return await _answered(self._store.load_waypoint(conversation, until, after=after))

    async def fact_record(self, conversation: str, *, covers: Covers | None = None, most: int = 200) -> FactRecord:
        self._check(conversation)
        return await _answered(self._store.fact_record(conversation, covers=covers, most=most))

    async def fact_reach(self) -> FactReach:
        return await _answered(self._store.fact_reach())

    async def values(self, hashes: Collection[str]) -> dict[str, str]:
        return await _answered(self._store.values(hashes))

    async def search(self, query: str, *, conversation: str | None = None, **asked: Any) -> AsyncIterator[Found]:
        self._check(conversation)
        mine = [conversation] if conversation is not None else [info.id async for info in self.conversations()]
        known: set[tuple[str, int]] = set()
        if len(mine) > _EACH:
            best = [one async for one in _unnaming(self._store.search(query, **asked))]
            for one in (one for one in best if self._scope.has(one.conversation)):
                known.add((one.conversation, one.version))
                yield one
            if len(best) < MOST_FOUND:
                return
        # One by one: among the best hits of the whole store there may be none of theirs, or not all.
        found = [
            one for id_ in mine async for one in self._only(self._store.search(query, conversation=id_, **asked), _of)
        ]
        for one in sorted(found, key=lambda found: (found.rank, found.at), reverse=True):
            if (one.conversation, one.version) not in known:
                yield one

    async def digests(self, *, conversation: str | None = None, **asked: Any) -> AsyncIterator[StoredDigest]:
        self._check(conversation)
        found = self._store.digests(conversation=conversation, **asked)
        async for one in self._only(found, _of):
            yield one

    async def facts(
        self, *, conversation: str | Collection[str] | None = None, **asked: Any
    ) -> AsyncIterator[StoredFact]:
        for id_ in [conversation] if isinstance(conversation, str) else conversation or ():
            self._check(id_)
        found = self._store.facts(conversation=conversation, **asked)
        if not isinstance(conversation, str):
            async for one in self._only(found, _of):
                yield one
            return
        # The facts of the past that a fork shares count as its own, with addresses that lead there.
        async for one in self._only(found, lambda _: conversation):
            yield one if self._scope.has(one.conversation) else replace(one, conversation=conversation)

    def _check(self, conversation: str | None) -> None:
        if conversation is not None and not self._scope.has(conversation):
            raise ConversationNotFound(conversation)

    def _without_parent(self, info: ConversationInfo) -> ConversationInfo:
        hidden = info.parent is not None and not self._scope.has(info.parent.conversation)
        return replace(info, parent=None) if hidden else info

    async def _within(self, conversation: str, method: Callable[..., Awaitable[T]], *asked: Any) -> T:
        self._check(conversation)
        return await _answered(method(conversation, *asked))

    async def _only(self, items: AsyncIterator[T], of: Callable[[T], str]) -> AsyncIterator[T]:
        """Iterate over the items of conversations that are in the scope."""
        async for item in _unnaming(items):
            if self._scope.has(of(item)):
                yield item


async def _unnaming(items: AsyncIterator[T]) -> AsyncIterator[T]:
    """Iterate over items; what is damaged may be another conversation, which the message would name."""
    while True:
        try:
            item = await anext(items)
        except StopAsyncIteration:
            return
        except StoreCorrupt as damage:
            raise _unnamed(damage) from damage
        yield item


def _of(found: Found | StoredDigest | StoredFact) -> str:
    return found.conversation


async def _answered(answer: Awaitable[T]) -> T:
    """Wait for an answer; what is damaged may be another conversation, which the message would name."""
    try:
        return await answer
    except StoreCorrupt as damage:
        raise _unnamed(damage) from damage


def _unnamed(damage: StoreCorrupt) -> StoreCorrupt:
    """Return an error that says the same without the name of a conversation."""
    if isinstance(damage, StoreTooNew):
        return StoreTooNew("A later version wrote what is looked at. Ask who runs this server to upgrade it.")
    return StoreCorrupt("The database is damaged. Ask who runs this server to look at it with `timeline verify`.")
