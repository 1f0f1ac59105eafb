"""Find every place of a store at which a text is said, before it is erased.

Texts are compared as they are, and folded: without case, and with one form for forms of a letter that look alike.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from timeline import checks
from timeline.errors import InvalidArgument
from timeline.events import BlocksHidden, CompactionCompleted, ConversationOpened, appended_block
from timeline.events.addresses import SIGN
from timeline.events.encoding import encode_payload
from timeline.forgetting.named_places import VALUE
from timeline.forgetting.named_texts import texts_left, texts_named
from timeline.forgetting.quotes import folded, strings_and_keys, words_of, words_of_path, written
from timeline.forgetting.rewriting import fixed_words
from timeline.log.all_events import own_events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence

    from timeline.events import Event
    from timeline.ports import ConversationInfo, EventStore

PlaceKind: TypeAlias = Literal[
    "block", "summary", "replacement", "title", "event", "value", "fact", "path", "conversation"
]
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """A place at which a text is said.

    Attributes:
        conversation: the conversation that holds it; for a shared past, the one that it was forked from.
        place: what `Timeline.redact` takes for it: an address, or ``value:`` and a sha256. A path, and the id of a
            conversation, cannot be rewritten: erase the conversation.
        kind: what it is. A summary and a replacement are made from blocks, and are redacted with them. A fact is of a
            block that was scavenged.
        path: path of the block; empty without one.
        exact: whether it is said exactly so at least once; False where the texts are equal only when both are folded.
        times: how often it is said there.
    """

    conversation: str
    place: str
    kind: PlaceKind
    path: str
    exact: bool
    times: int


async def find_subject(
    store: EventStore, text: str, conversations: Sequence[str] | None = None
) -> AsyncIterator[FoundPlace]:
    """Iterate over all places at which a text is said: ids, events by conversation and version, facts, stored texts.

    It reads the log of each conversation to its end, so it finds parts of words and what no index has, such as
    arguments and a framework's data, and what followers of all conversations do not see yet.

    Args:
        store: the store.
        text: what to look for.
        conversations: ids to look at; all unless given.

    Raises:
        ConversationNotFound: there is no such conversation.
        InvalidArgument: the text is blank or holds a lone surrogate, as none that is stored does; or ``conversations``
            is no list.
        StoreError: the store cannot be read.

    Example:
        ```python
        from timeline import Timeline, open_store
        from timeline.forgetting import find_subject

        store = await open_store("memory://")
        timeline = await Timeline.open(store, "cards")
        await timeline.append({"type": "user.prompt", "text": "Write to JANE@example.org."})
        [found] = [place async for place in find_subject(store, "jane@example.org")]
        assert (found.place, found.kind, found.exact) == ("@2", "block", False)
        await timeline.redact(found.place, "a person's address", text="jane@example.org")
        ```
    """
    checks.written("text", text)
    if not text.strip():
        raise InvalidArgument("text", "is blank; give the text to look for")
    if conversations is not None:
        checks.listed("conversations", conversations)
    if conversations is None:
        ids = [info.id async for info in store.conversations()]
    else:
        ids = [(await store.info(id_)).id for id_ in dict.fromkeys(conversations)]
    for id_ in ids:
        if (occurrence := _said(text, [id_])) is not None:
            yield FoundPlace(id_, id_, "conversation", "", *occurrence)
    infos = store.conversations() if conversations is None else _infos(store, ids)
    async for place in _said_in(store, ids, infos, text):
        yield place


async def _said_in(
    store: EventStore, wanted: Sequence[str], infos: AsyncIterator[ConversationInfo], text: str
) -> AsyncIterator[FoundPlace]:
    """Yield the events, the facts of scavenged events and the stored texts that say a text."""
    named: dict[str, set[str]] = {}
    for conversation in wanted:
        async for event in own_events(store, conversation):
            named.setdefault(conversation, set()).update(texts_named(event.payload))
            for place in _places(event, text):
                yield place
    among = set(wanted)
    # A fact says what no event says only if its event was removed. The facts of other events are not even made, since
    # that would take longer than to read the log.
    scavenged = {info.id: info async for info in infos if info.first_version > 1 and info.id in among}
    async for place in _facts(store, scavenged, text):
        yield place
    for id_, info in scavenged.items():
        named.setdefault(id_, set()).update(await texts_left(store, info, after=info.base))
    for conversation, hashes in named.items():
        async for place in _values(store, conversation, sorted(hashes), text):
            yield place


async def _infos(store: EventStore, conversations: Sequence[str]) -> AsyncIterator[ConversationInfo]:
    for id_ in conversations:
        yield await store.info(id_)


async def _facts(store: EventStore, scavenged: Collection[str], text: str) -> AsyncIterator[FoundPlace]:
    """Yield the facts that are left of scavenged blocks; those of a shared past belong to the parent."""
    if not scavenged:
        return
    async for fact in store.facts(conversation=scavenged):
        occurrence = _said(text, (fact.subject, fact.detail)) if fact.conversation in scavenged else None
        if occurrence is not None and not await store.read_versions(fact.conversation, [fact.version]):
            yield FoundPlace(fact.conversation, f"{SIGN}{fact.version}", "fact", fact.path, *occurrence)


def _places(event: Event, text: str) -> Iterator[FoundPlace]:
    block = appended_block(event.payload)
    path = "" if block is None else block.path
    address = f"{SIGN}{event.version}"
    if (occurrence := _said(text, [path]) or _said(text, [words_of_path(path)])) is not None:
        yield FoundPlace(event.conversation, path, "path", path, *occurrence)
    data = json.loads(encode_payload(event.payload))
    if block is not None and isinstance(data.get("block"), dict):
        data["block"].pop("path", None)
    if (occurrence := _said(text, words_of(data, fixed_words(type(event.payload))))) is not None:
        yield FoundPlace(event.conversation, address, _kind(event), path, *occurrence)


def _kind(event: Event) -> PlaceKind:
    match event.payload:
        case CompactionCompleted():
            return "summary"
        case BlocksHidden():
            return "replacement"
        case ConversationOpened():
            return "title"
    return "event" if appended_block(event.payload) is None else "block"


async def _values(store: EventStore, conversation: str, hashes: Sequence[str], text: str) -> AsyncIterator[FoundPlace]:
    for start in range(0, len(hashes), _AT_ONCE):
        for hash_, value in (await store.values(hashes[start : start + _AT_ONCE])).items():
            try:
                data = json.loads(value)
            except ValueError:
                data = value
            if (occurrence := _said(text, strings_and_keys(data))) is not None:
                yield FoundPlace(conversation, f"{VALUE}{hash_}", "value", "", *occurrence)


def _said(text: str, within: Iterable[str]) -> tuple[bool, int] | None:
    """Return whether some texts say a text exactly, and how often they say it; None where they do not."""
    counts: Counter[bool] = Counter()
    wanted = folded(text)
    forms = set(written(text))
    for string in within:
        times = folded(string).count(wanted)
        if times or any(form in string for form in forms):
            counts[any(form in string for form in forms)] += max(1, times)
    return (counts[True] > 0, counts.total()) if counts else None
