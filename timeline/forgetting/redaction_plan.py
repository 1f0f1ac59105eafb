"""Decide what a redaction writes, for all conversations that share the redacted content.

`timeline.forgetting.rewriting` decides for one conversation, without I/O. A plan reads the conversations, and reads on
where they grew meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from timeline.audit.replay import overwritten_blocks
from timeline.errors import UnderLegalHold
from timeline.events import (
    BlockRedacted,
    BlocksHidden,
    CompactionCompleted,
    ContextRendered,
    ConversationOpened,
    ModelCalled,
    Rewritten,
    appended_block,
    event_ids,
    new_event,
)
from timeline.events.addresses import Address
from timeline.fold.window import TOMBSTONE
from timeline.forgetting.framework_copies import FrameworkCopies
from timeline.forgetting.named_places import ERASE
from timeline.forgetting.named_texts import texts_of
from timeline.forgetting.quotes import Quotes, words_of_path
from timeline.forgetting.recalls import Recalls
from timeline.forgetting.redaction_report import Written
from timeline.forgetting.rewriting import Rewriter
from timeline.forgetting.snapshots import base_anew, snapshot_anew
from timeline.frozen import compact_json, sha256_hex
from timeline.log.history import base_fold, reverted_versions
from timeline.log.in_turns import in_turns
from timeline.log.off_loop import in_thread
from timeline.log.times import time_of_append
from timeline.log.undisturbed import removed_since, seen
from timeline.log.wakeups import notify
from timeline.ports import Rewriting
from timeline.retention.setting import kept

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from timeline.events import Payload
    from timeline.forgetting.named_places import NamedPlaces
    from timeline.log.undisturbed import LogAsSeen
    from timeline.ports import Clock, ConversationInfo, EventStore

_T = TypeVar("_T")

_LONG: Final = 256 * 1024
"""A text of so many characters is searched in a thread, so that the event loop goes on."""
_DISTURBING: Final = ("block.redacted", "compaction.reverted")
"""Types of events behind which a plan of before does not hold."""
_PLACES: Final[tuple[tuple[type[Payload], str], ...]] = (
    (CompactionCompleted, "summaries"),
    (BlocksHidden, "replacements"),
    (ContextRendered, "contexts"),
    (ModelCalled, "calls"),
    (ConversationOpened, "titles"),
)


@dataclass(slots=True)
class _Reading:
    """A conversation that was read up to a version, with what is written anew up to there.

    Attributes:
        info: the conversation as it was read.
        before: what it was before, to find out whether content was removed from it since.
        rewriter: knows what is written anew.
        gone: scavenged versions that are redacted, each with the reason.
        values: the new hash of each stored text that is replaced, by the old one.
        undone: versions of compactions that are undone.
        behind_base: whether it was read beyond what was scavenged.
    """

    info: ConversationInfo
    before: LogAsSeen | None
    rewriter: Rewriter
    gone: dict[int, str]
    values: dict[str, str]
    undone: frozenset[int]
    behind_base: bool


class RedactionPlan:
    """What is written where, for all conversations that share the redacted content.

    Args:
        store: holds the conversations.
        named: what is to be redacted.
        reason: kept with the tombstone.
        text: words to take out, beside those of the redacted blocks.
    """

    def __init__(self, store: EventStore, named: NamedPlaces, reason: str, text: str) -> None:
        self._store, self._named, self._reason, self._text = store, named, reason, text
        self._quotes = Quotes()
        self._owners: dict[int, str] = {}
        """The conversation that holds each redacted version."""
        self._read: dict[str, _Reading] = {}
        """The conversations, parents first."""
        self._since = 0
        """Forks that share this version are among them."""
        self._first = 0
        """The first redacted version; 0 where only stored texts are redacted."""
        self._parts: list[Rewriting] = []
        self._targets: dict[str, dict[int, str]] = {}
        """By conversation, why each redacted version is; 0 is for words of what holds no block."""
        self._payloads: dict[str, dict[int, Payload]] = {}
        """By conversation, what its versions hold from now on, those of its parents included."""
        self._checksums: dict[str, dict[int, str]] = {}
        """The checksums of these."""
        self._newest: dict[str, datetime] = {}
        """The time of each conversation's newest event."""
        self._values: dict[str, str] = {}
        """New texts by hash."""
        self._replaced: dict[str, str] = {}
        """The new hash by the old one."""
        self._covering: dict[str, None] = {}
        """The places of summaries of scavenged blocks, in the order of the log."""

    async def made(self, conversation: str) -> RedactionPlan:
        """Read every conversation that shares what goes, parents first, and decide what it is to hold."""
        texts = [self._text] if self._text else []
        quotes = Quotes.of_blocks(self._named.blocks.values())
        quotes = Quotes(tuple(dict.fromkeys((*texts, *quotes.texts))))
        if sum(map(len, quotes.texts)) > _LONG:
            quotes = await in_thread(quotes.prepared)
        self._quotes = quotes
        own = await self._store.info(conversation)
        versions = self._named.versions
        self._owners = await _owners_of(self._store, own, versions)
        # An event that quotes the content may be older than it, and shared with forks that do not have the content.
        probe = await self._gone_through(own, {}, 0)
        first = min([*versions, *probe.rewriter.payloads], default=own.version)
        self._first, self._since = first if versions else 0, first
        oldest = await self._store.info((await _owners_of(self._store, own, [first]))[first] or conversation)
        for info in await _family(self._store, oldest, first):
            await self._check_hold(info.id)
            is_read = info.id == own.id and not info.base and await self._read_on(probe, info)
            shared = self._inherited(info, self._payloads)
            self._rewrite(probe if is_read else await self._gone_through(info, shared, info.base))
        return self

    async def goes_on(self) -> bool:
        """Take what was appended to the conversations since they were read; return whether the plan holds with that.

        A conversation that an agent works in grows faster than a long log is read. Where content was removed meanwhile,
        a compaction undone or a fork begun, the plan has to be made anew.
        """
        read, self._read, self._parts = self._read, {}, []
        family = await _family(self._store, await self._store.info(next(iter(read))), self._since)
        if [info.id for info in family] != [*read]:
            return False
        for info in family:
            await self._check_hold(info.id)
            reading = read[info.id]
            if not await self._read_on(reading, info):
                return False
            self._rewrite(reading)
        return True

    async def _check_hold(self, conversation: str) -> None:
        if (await kept(self._store, conversation)).legal_hold:
            raise UnderLegalHold(conversation)

    async def _read_on(self, reading: _Reading, info: ConversationInfo) -> bool:
        """Read what was appended to a conversation; return whether what is written anew holds with that."""
        if reading.before is None or await removed_since(self._store, info.id, reading.before):
            return False
        after = reading.info.version
        async for _ in self._store.read(info.id, after=after, until=info.version, types=_DISTURBING):
            return False
        reading.values = reading.rewriter.values = await self._values_of(info)
        reading.info = info
        await self._take(reading, after)
        return True

    async def _gone_through(self, info: ConversationInfo, shared: Mapping[int, Payload], base: int) -> _Reading:
        """Go through a conversation to its end."""
        before = await seen(self._store, info.id)
        done = await overwritten_blocks(self._store, info.id)
        held = await _owners_of(self._store, info, self._owners)
        shown = {v for v, owner in self._owners.items() if v not in done and held[v] == owner}
        visible = {v: self._reason for v in self._named.blocks if v in shown}
        values = await self._values_of(info)
        gone = {v: self._reason for v in self._named.scavenged if v in shown}
        recalls = Recalls([held.id for held in await _lineage(self._store, info)])
        for version, path in self._named.paths.items():
            if held[version] == self._owners[version]:
                recalls.remove(version, path)
        undone = frozenset(await reverted_versions(self._store, info.id))
        fold = await base_fold(self._store, info.id, without=undone)
        rewriter = Rewriter(
            fold,
            visible,
            self._reason,
            recalls,
            self._quotes,
            FrameworkCopies(self._named.blocks.values(), self._quotes, recalls),
            texts=[block.text for block in self._named.blocks.values()],
            values=values,
            shared=shared,
            base=base,
        )
        reading = _Reading(info, before, rewriter, gone, values, undone, behind_base=not fold.version)
        await self._take(reading)
        return reading

    async def _take(self, reading: _Reading, after: int = 0) -> None:
        """Read a conversation on, from behind a version up to where it is."""
        info, rewriter = reading.info, reading.rewriter
        async for event in in_turns(self._store.read(info.id, after=after, until=info.version)):
            if not reading.behind_base and event.version > rewriter.fold.version:
                reading.behind_base = True
                anew = {**rewriter.shared, **rewriter.payloads}
                fold = await base_anew(self._store, info.id, reading.undone, anew, reading.values, self._quotes)
                rewriter.go_on_from(fold, event.at)
            if isinstance(event.payload, CompactionCompleted) and any(v in event.payload.covers for v in reading.gone):
                self._covering[f"{event.conversation}@{event.version}"] = None
            block = appended_block(event.payload)
            if isinstance(event.payload, CompactionCompleted) or (block is not None and len(block.text) > _LONG):
                await in_thread(partial(rewriter.take, event))
            else:
                rewriter.take(event)
            self._newest[info.id] = event.at

    def _rewrite(self, reading: _Reading) -> None:
        """Decide what a conversation is to hold."""
        info, rewriter, gone, values = reading.info, reading.rewriter, reading.gone, reading.values
        self._read[info.id] = reading
        targets = dict(rewriter.targets)
        payloads = self._inherited(info, self._payloads) | rewriter.payloads
        self._payloads[info.id] = payloads
        self._checksums[info.id] = self._inherited(info, self._checksums) | rewriter.checksums
        new = targets | gone
        if not new and (payloads or values):  # words of what holds no block, or of a summary, which stays
            new = {0: self._reason}
        self._targets[info.id] = new
        opened = next((p for v, p in rewriter.payloads.items() if isinstance(p, ConversationOpened)), None)
        self._parts.append(
            Rewriting(
                info.id,
                info.version,
                [],
                rewriter.payloads,
                [*targets, *gone],
                partial(snapshot_anew, payloads=payloads, values=values, quotes=self._quotes),
                None if opened is None else opened.title,
            )
        )

    @staticmethod
    def _inherited(info: ConversationInfo, of: Mapping[str, Mapping[int, _T]]) -> dict[int, _T]:
        """Return what is known, by conversation and version, of the past that a conversation shares."""
        parent = "" if info.parent is None or not info.base else info.parent.conversation
        return {version: known for version, known in of.get(parent, {}).items() if version <= info.base}

    async def _values_of(self, info: ConversationInfo) -> dict[str, str]:
        """Return, by the old hash, the new hash of each stored text of a conversation that quotes redacted content."""
        held = await self._store.values(await texts_of(self._store, info))
        for hash_, old in held.items():
            new = self._quotes.out_of_value(old)
            if new == old and hash_ in self._named.values:
                new = compact_json(TOMBSTONE)
            if new != old:
                self._replaced[hash_] = sha256_hex(new)
                self._values[sha256_hex(new)] = new
        return {hash_: self._replaced[hash_] for hash_ in held if hash_ in self._replaced}

    async def carry_out(self, now: datetime | None, clock: Clock) -> dict[str, int]:
        """Write everything in one transaction of the store, and wake those who follow the conversations."""
        parts = [self._with_events(part, now, clock) for part in self._parts]
        if not any(part.events for part in parts):
            return {}
        counts = await self._store.rewrite(parts, values=self._values, dropped=list(self._replaced))
        for part in parts:
            notify(self._store, part.conversation, part.events)
        return counts

    def _with_events(self, part: Rewriting, now: datetime | None, clock: Clock) -> Rewriting:
        versions = self._targets[part.conversation]
        at = time_of_append(clock, now, self._newest[part.conversation])
        checksums = self._checksums[part.conversation]
        rewritten = tuple(Rewritten(version=v, checksum=checksums[v]) for v in sorted(checksums))
        payloads = [
            BlockRedacted(version=v, reason=reason, erased=True, rewritten=() if number else rewritten)
            for number, (v, reason) in enumerate(sorted(versions.items()))
        ]
        ids = event_ids(at, len(payloads))
        return replace(part, events=[new_event(id_, at, p) for id_, p in zip(ids, payloads, strict=True)])

    def written(self, counts: Mapping[str, int]) -> Written:
        """Return what is written. Titles, which the store counts, are counted with the events that have them."""
        touched = [part for part in self._parts if part.payloads or self._targets[part.conversation]]
        events = {
            f"{part.conversation}@{version}": _place(part.payloads[version], version, part.blocks)
            for part in touched
            for version in sorted(part.payloads)
        }
        others = {place: number for place, number in counts.items() if place != "titles"}
        conversations = tuple(part.conversation for part in touched)
        removed = {Address(v, part.conversation) for part in touched for v in (*part.payloads, *self._named.versions)}
        replaced = tuple(self._replaced)
        return Written(conversations, events, others, self._kept(), replaced, self._origins(), removed)

    def _origins(self) -> dict[str, int]:
        return {part.conversation: self._first for part in self._parts} if self._first else {}

    def _kept(self) -> dict[str, str]:
        """Return each place that may still quote the redacted content, with the reason why it stays."""
        left = self._kept_names()
        if self._covering and not self._text:
            left["summaries"] = (
                f"what was scavenged is not there to be compared with {', '.join(self._covering)}, which may say it;"
                " redact it again with the words as the text, and they lose them"
            )
        return left

    def _kept_names(self) -> dict[str, str]:
        """Return each path that may still quote the redacted content, with the reason why it stays."""
        if not self._text:
            return {}
        quotes = Quotes((self._text,))
        owners = dict.fromkeys(self._owners[version] for version in self._named.blocks)
        named = (block.path for block in self._named.blocks.values())
        paths = [path for path in named if quotes.are_in(path) or quotes.are_in(words_of_path(path))]
        ids = [part.conversation for part in self._parts if quotes.are_in(part.conversation)]
        left = {}
        if paths:
            cure = " and ".join(ERASE.format(owner) for owner in owners)
            left["paths"] = f"a path names its block for ever: {', '.join(paths)}; {cure}"
        if ids:
            cure = " and ".join(map(ERASE.format, ids))
            kept = "`timeline export` and `timeline import --as` keep a copy under another id"
            left["conversations"] = f"an id names its conversation for ever: {', '.join(ids)}; {cure}; {kept}"
        return left


def _place(payload: Payload, version: int, blocks: Collection[int]) -> str:
    if version in blocks:
        return "payloads"
    return next((place for kind, place in _PLACES if isinstance(payload, kind)), "entries")


async def _owners_of(store: EventStore, info: ConversationInfo, versions: Iterable[int]) -> dict[int, str]:
    """Return for each version of a conversation which one holds it: itself, or one that it was forked from."""
    owners: dict[int, str] = {}
    left = set(versions)
    while left:
        shared = {version for version in left if version <= info.base and info.parent is not None}
        owners |= {version: info.id if version <= info.version else "" for version in left - shared}
        left = shared
        if left and info.parent is not None:
            info = await store.info(info.parent.conversation)
    return owners


async def _lineage(store: EventStore, info: ConversationInfo) -> list[ConversationInfo]:
    """Return a conversation and those that it was forked from."""
    found = [info]
    while found[-1].base and (parent := found[-1].parent) is not None:
        found.append(await store.info(parent.conversation))
    return found


async def _family(store: EventStore, owner: ConversationInfo, first: int) -> list[ConversationInfo]:
    """Return a conversation and the forks that share a version of it, forks of forks included, parents first."""
    found = [owner]
    for info in found:
        forks = await store.forks(info.id)
        found += [await store.info(fork) for fork, base in forks.items() if base >= first]
    return found
