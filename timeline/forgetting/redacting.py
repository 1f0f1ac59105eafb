"""Redact: overwrite content where it is stored, write anew what was made of it, and leave no copy in the store's files.

`rewriting` decides, without I/O. This module reads the conversations that share the content, gives the store all new
payloads at once, and begins again if another writer appended in between.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from timeline import checks
from timeline.audit.replay import overwritten_blocks
from timeline.blocks import ToolResult
from timeline.errors import (
    BlockNotFound,
    ConversationErased,
    ConversationNotFound,
    HistoryUnavailable,
    InvalidArgument,
    StoreError,
    UnderLegalHold,
    VersionConflict,
)
from timeline.events import (
    BlockRedacted,
    BlocksHidden,
    CompactionCompleted,
    CompactionReverted,
    ContextRendered,
    ConversationOpened,
    ModelCalled,
    Rewritten,
    appended_block,
    event_ids,
    new_event,
)
from timeline.events.addresses import parse_address
from timeline.fold.window import TOMBSTONE
from timeline.forgetting.handed_over import handed_over_from, redactions_of
from timeline.forgetting.named_texts import named_by_others, texts_of
from timeline.forgetting.quotes import Quotes
from timeline.forgetting.rewriting import Rewriter, recalled
from timeline.forgetting.snapshots import base_anew, snapshot_anew
from timeline.frozen import compact_json, sha256_hex
from timeline.log.blocks_by_name import FoundBlock, find_block
from timeline.log.history import base_fold, reverted_versions
from timeline.log.in_turns import in_turns
from timeline.log.off_loop import in_thread
from timeline.log.stored import busy
from timeline.log.times import time_of_append
from timeline.log.undisturbed import removed_since, seen
from timeline.log.wakeups import notify
from timeline.ports import ErasureReport, Rewriting, SystemClock
from timeline.retention.setting import kept

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.errors import TimelineError
    from timeline.events import Event, Payload
    from timeline.log.undisturbed import LogAsSeen
    from timeline.ports import Clock, ConversationInfo, EventStore

_T = TypeVar("_T")

VALUE: Final = "value:"
"""What the name of a content-addressed text begins with; its sha256 follows."""
_ERASE: Final = "`timeline erase {}` removes the conversation"
_LONG: Final = 256 * 1024
"""A text of so many characters is searched in a thread, so that the event loop goes on."""
_TRIES: Final = 20
_OF_ONE: Final = (BlockNotFound, ConversationErased, ConversationNotFound, HistoryUnavailable, UnderLegalHold)
"""The errors that concern one conversation only: the others can still be redacted."""
_PLACES: Final[tuple[tuple[type[Payload], str], ...]] = (
    (CompactionCompleted, "summaries"),
    (BlocksHidden, "replacements"),
    (ContextRendered, "contexts"),
    (ModelCalled, "calls"),
    (ConversationOpened, "titles"),
)


@dataclass(slots=True)
class _Wanted:
    """What is to be redacted, as it was found in the conversation that was asked about."""

    blocks: dict[int, Block] = field(default_factory=dict)
    events: set[int] = field(default_factory=set)
    """Versions of events that hold no block, but words to take out."""
    scavenged: dict[int, str] = field(default_factory=dict)
    """By version, the paths of scavenged blocks of which facts, or answers of the recall tool, are left."""
    values: dict[str, str] = field(default_factory=dict)
    """Content-addressed texts by hash."""

    @property
    def paths(self) -> dict[int, str]:
        return {version: block.path for version, block in self.blocks.items()} | self.scavenged

    @property
    def versions(self) -> list[int]:
        return sorted({*self.blocks, *self.events, *self.scavenged})


async def redact(
    store: EventStore,
    conversation: str,
    places: str | Sequence[str],
    reason: str,
    *,
    text: str = "",
    now: datetime | None = None,
    clock: Clock | None = None,
    dry_run: bool = False,
) -> ErasureReport:
    """Erase the content of blocks, and everything made of it, for good; see `Timeline.redact`.

    Args:
        store: holds the conversation.
        conversation: its id.
        places: a path or an address, or several: of a block, or the address of any other event, or ``value:`` and the
            sha256 of a stored text, as `find_subject` lists them.
        reason: kept with the tombstone, and shown to the model in place of the content.
        text: words to take out of places that hold no block, and of all that quotes them.
        now: time of the event.
        clock: gives that time otherwise.
        dry_run: report what would be done, and leave the store as it is.

    Raises:
        BlockNotFound: there is no such place.
        InvalidArgument: a place holds no block, and no ``text`` says what is to go; or a text cannot be stored.
        UnderLegalHold: a legal hold is on the conversation, or on one that shares the block.
        StoreError: the store refused; nothing was erased.
    """
    checks.written("reason", reason)
    checks.written("text", text)
    named = [places] if isinstance(places, str) else list(places)
    if dry_run:
        plan = await _planned(store, conversation, named, reason, text)
        return await _rehearsed(store, [plan.written({})])
    return await _scrubbed(store, [await _written(store, conversation, named, reason, text, now, clock)])


async def redact_several(
    store: EventStore,
    places: Mapping[str, Sequence[str]],
    reason: str,
    *,
    text: str = "",
    on_refusal: Callable[[TimelineError], None],
    dry_run: bool = False,
) -> ErasureReport:
    """Redact places of several conversations, as `redact` does of one, and rewrite the store's files once.

    Each conversation is a transaction of its own. One that refuses does not keep the others from being redacted.

    Args:
        store: holds the conversations.
        places: the places by conversation.
        reason: see `redact`, as for ``text``.
        text: see ``reason``.
        on_refusal: called with the error of a conversation that is erased, is not there, or is under a legal hold, and
            of one that has no such place.
        dry_run: report what would be done, and leave the store as it is.

    Raises:
        InvalidArgument: see `redact`.
        StoreError: the store failed; what was redacted until then stays redacted.
    """
    checks.written("reason", reason)
    checks.written("text", text)
    written: list[_Written] = []
    for conversation, named in places.items():
        try:
            if dry_run:
                plan = await _planned(store, conversation, named, reason, text)
                written.append(plan.written({}))
            else:
                written.append(await _written(store, conversation, named, reason, text))
        except _OF_ONE as refusal:
            on_refusal(refusal)
    return await (_rehearsed if dry_run else _scrubbed)(store, written)


async def _planned(store: EventStore, conversation: str, places: Sequence[str], reason: str, text: str) -> _Plan:
    wanted = await _wanted(store, conversation, places, text)
    return await _Plan(store, wanted, reason, text).made(conversation)


async def _written(  # noqa: PLR0917 - what `redact` is given
    store: EventStore,
    conversation: str,
    places: Sequence[str],
    reason: str,
    text: str,
    now: datetime | None = None,
    clock: Clock | None = None,
) -> _Written:
    """Redact in the store; its files still hold the bytes."""
    plan: _Plan | None = None
    for _ in range(_TRIES):
        try:
            if plan is None or not await plan.goes_on():
                plan = await _planned(store, conversation, places, reason, text)
            counts = await plan.carry_out(now, clock or SystemClock())
        except VersionConflict:
            continue
        except ConversationErased as erased:
            if erased.conversation == conversation:
                raise
            plan = None  # its parent was erased meanwhile, and it keeps a copy; or one of its forks was
            continue
        return plan.written(counts)
    raise busy(conversation)


@dataclass(frozen=True, slots=True)
class _Written:
    """What one redaction wrote, or would write.

    Attributes:
        conversations: those that it changed.
        events: the place of each event that was written anew, by ``conversation@version``.
        counts: numbers of everything else that was written anew, by place.
        left: for each place that was not reached, the reason.
        replaced: the hashes of the stored texts that it replaced; a text that others still name is left.
        origins: for each conversation the first redacted version; a summary that reaches it may be handed over.
    """

    conversations: tuple[str, ...]
    events: Mapping[str, str]
    counts: Mapping[str, int]
    left: Mapping[str, str]
    replaced: Collection[str]
    origins: Mapping[str, int]


def report_of(written: Sequence[_Written]) -> ErasureReport:
    """Return the report of redactions; an event that several of them wrote anew counts once."""
    events = {event: place for one in written for event, place in one.events.items()}
    reached = Counter(events.values())
    for one in written:
        reached.update(one.counts)
    left: dict[str, list[str]] = {}
    for one in written:
        for place, why in one.left.items():
            left.setdefault(place, []).append(why)
    return ErasureReport(
        conversations=tuple(dict.fromkeys(id_ for one in written for id_ in one.conversations)),
        reached={place: number for place, number in reached.items() if number},
        rewritten=tuple(events),
        left={place: "; ".join(dict.fromkeys(whys)) for place, whys in left.items()},
    )


async def _wanted(store: EventStore, conversation: str, places: Sequence[str], text: str) -> _Wanted:
    found = _Wanted()
    addresses = {place: parse_address(place) for place in places}
    versions = {address.version for address in addresses.values() if address is not None}
    plain = {event.version: event for event in await store.read_versions(conversation, sorted(versions))}
    for place in places:
        if place.startswith(VALUE):
            hash_ = place.removeprefix(VALUE)
            values = await store.values([hash_])
            found.values |= values
            continue
        if place == conversation:
            raise InvalidArgument("path", f"{place!r} is the conversation's id, which stays; {_ERASE.format(place)}")
        address = addresses[place]
        event = None if address is None else plain.get(address.version)
        if event is not None and appended_block(event.payload) is None:
            if not text:
                raise InvalidArgument("path", f"{place!r} is not a block: give the words to take out of it as `text`")
            found.events.add(event.version)
            continue
        try:
            block = await _block_at(store, conversation, place, None if address and address.conversation else event)
        except HistoryUnavailable as gone:
            if not gone.scavenged:
                raise
            found.scavenged[gone.version] = await _path_of(store, conversation, gone.version)
            continue
        if isinstance(block.event.payload, CompactionCompleted):
            if not text:
                raise InvalidArgument("path", f"{place!r} is a summary: redact what it was made of, or give `text`")
            found.events.add(block.event.version)
        else:
            found.blocks[block.event.version] = block.block
    return found


async def _block_at(store: EventStore, conversation: str, place: str, event: Event | None) -> FoundBlock:
    """Return the block of a place, of which the event may have been read."""
    block = None if event is None else appended_block(event.payload)
    if event is None or block is None:
        return await find_block(store, conversation, place)
    return FoundBlock(conversation, event, block)


async def _path_of(store: EventStore, conversation: str, version: int) -> str:
    """Return the path of a block that was scavenged: its event keeps that."""
    async for event in store.chained(conversation, after=version - 1, page=1):
        return event.path or ""
    return ""


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


@dataclass(slots=True)
class _Plan:
    """What is written where, for all conversations that share the redacted content."""

    store: EventStore
    wanted: _Wanted
    reason: str
    text: str
    owners: dict[int, str] = field(default_factory=dict)
    """The conversation that holds each redacted version."""
    parts: list[Rewriting] = field(default_factory=list)
    targets: dict[str, dict[int, str]] = field(default_factory=dict)
    checksums: dict[str, dict[int, str]] = field(default_factory=dict)
    newest: dict[str, datetime] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    """New texts by hash."""
    replaced: dict[str, str] = field(default_factory=dict)
    """The new hash by the old one."""
    shared: dict[str, dict[int, Payload]] = field(default_factory=dict)
    first: int = 0
    """The first redacted version; 0 where only stored texts are redacted."""
    covering: dict[str, None] = field(default_factory=dict)
    """The places of summaries of scavenged blocks, in the order of the log."""
    quotes: Quotes = field(default_factory=Quotes)
    read: dict[str, _Reading] = field(default_factory=dict)
    """The conversations, parents first."""
    since: int = 0
    """Forks that share this version are among them."""

    async def made(self, conversation: str) -> _Plan:
        """Read every conversation that shares what goes, parents first, and decide what it is to hold."""
        texts = [self.text] if self.text else []
        quotes = Quotes.of_blocks(self.wanted.blocks.values())
        quotes = Quotes(tuple(dict.fromkeys((*texts, *quotes.texts))))
        if sum(map(len, quotes.texts)) > _LONG:
            quotes = await in_thread(quotes.prepared)
        self.quotes = quotes
        own = await self.store.info(conversation)
        versions = self.wanted.versions
        self.owners = await _owners_of(self.store, own, versions)
        # An event that quotes the content may be older than it, and shared with forks that do not have the content.
        probe = await self._gone_through(own, {}, 0)
        first = min([*versions, *probe.rewriter.payloads], default=own.version)
        self.first, self.since = first if versions else 0, first
        oldest = await self.store.info((await _owners_of(self.store, own, [first]))[first] or conversation)
        for info in await _family(self.store, oldest, first):
            await self._check_hold(info.id)
            is_read = info.id == own.id and not info.base and await self._read_on(probe, info)
            shared = self._inherited(info, self.shared)
            self._rewrite(probe if is_read else await self._gone_through(info, shared, info.base))
        return self

    async def goes_on(self) -> bool:
        """Take what was appended to the conversations since they were read; return whether the plan holds with that.

        A conversation that an agent works in grows faster than a long log is read. Where content was removed meanwhile,
        a compaction undone, a redacted block recalled or a fork begun, the plan has to be made anew.
        """
        read, self.read, self.parts = self.read, {}, []
        family = await _family(self.store, await self.store.info(next(iter(read))), self.since)
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
        if (await kept(self.store, conversation)).legal_hold:
            raise UnderLegalHold(conversation)

    async def _read_on(self, reading: _Reading, info: ConversationInfo) -> bool:
        """Read what was appended to a conversation; return whether what is written anew holds with that."""
        if reading.before is None or await removed_since(self.store, info.id, reading.before):
            return False
        after = reading.info.version
        late = [event async for event in in_turns(self.store.read(info.id, after=after, until=info.version))]
        if any(isinstance(event.payload, BlockRedacted | CompactionReverted) for event in late):
            return False
        if reading.rewriter.may_be_recalled(late, self.wanted.paths):
            return False
        reading.values = reading.rewriter.values = await self._values_of(info)
        reading.info = info
        await self._take(reading, after)
        return True

    async def _gone_through(self, info: ConversationInfo, shared: Mapping[int, Payload], base: int) -> _Reading:
        """Go through a conversation to its end."""
        before = await seen(self.store, info.id)
        done = await overwritten_blocks(self.store, info.id)
        held = await _owners_of(self.store, info, self.owners)
        shown = {v for v, owner in self.owners.items() if v not in done and held[v] == owner}
        visible = {v: self.reason for v in self.wanted.blocks if v in shown}
        values = await self._values_of(info)
        gone = {v: self.reason for v in self.wanted.scavenged if v in shown}
        targets = visible | await recalled(self.store, info.id, self.wanted.paths, visible | gone)
        undone = frozenset(await reverted_versions(self.store, info.id))
        fold = await base_fold(self.store, info.id, without=undone)
        rewriter = Rewriter(
            fold,
            targets,
            self.quotes,
            texts=[block.text for block in self.wanted.blocks.values()],
            answered={block.call_id for block in self.wanted.blocks.values() if isinstance(block, ToolResult)},
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
        async for event in in_turns(self.store.read(info.id, after=after, until=info.version)):
            if not reading.behind_base and event.version > rewriter.fold.version:
                reading.behind_base = True
                anew = {**rewriter.shared, **rewriter.payloads}
                fold = await base_anew(self.store, info.id, reading.undone, anew, reading.values, self.quotes)
                rewriter.go_on_from(fold, event.at)
            if isinstance(event.payload, CompactionCompleted) and any(v in event.payload.covers for v in reading.gone):
                self.covering[f"{event.conversation}@{event.version}"] = None
            block = appended_block(event.payload)
            if isinstance(event.payload, CompactionCompleted) or (block is not None and len(block.text) > _LONG):
                await in_thread(partial(rewriter.take, event))
            else:
                rewriter.take(event)
            self.newest[info.id] = event.at

    def _rewrite(self, reading: _Reading) -> None:
        """Decide what a conversation is to hold."""
        info, rewriter, gone, values = reading.info, reading.rewriter, reading.gone, reading.values
        self.read[info.id] = reading
        targets = dict(rewriter.targets)
        payloads = self._inherited(info, self.shared) | rewriter.payloads
        self.shared[info.id] = payloads
        self.checksums[info.id] = self._inherited(info, self.checksums) | rewriter.checksums
        new = targets | gone
        if not new and (payloads or values):  # words of what holds no block, or of a summary, which stays
            new = {0: self.reason}
        self.targets[info.id] = new
        opened = next((p for v, p in rewriter.payloads.items() if isinstance(p, ConversationOpened)), None)
        self.parts.append(
            Rewriting(
                info.id,
                info.version,
                [],
                rewriter.payloads,
                [*targets, *gone],
                partial(snapshot_anew, payloads=payloads, values=values, quotes=self.quotes),
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
        held = await self.store.values(await texts_of(self.store, info))
        for hash_, old in held.items():
            new = self.quotes.out_of_value(old)
            if new == old and hash_ in self.wanted.values:
                new = compact_json(TOMBSTONE)
            if new != old:
                self.replaced[hash_] = sha256_hex(new)
                self.values[sha256_hex(new)] = new
        return {hash_: self.replaced[hash_] for hash_ in held if hash_ in self.replaced}

    async def carry_out(self, now: datetime | None, clock: Clock) -> dict[str, int]:
        """Write everything in one transaction of the store, and wake those who follow the conversations."""
        parts = [self._with_events(part, now, clock) for part in self.parts]
        if not any(part.events for part in parts):
            return {}
        counts = await self.store.rewrite(parts, values=self.values, dropped=list(self.replaced))
        for part in parts:
            notify(self.store, part.conversation, part.events)
        return counts

    def _with_events(self, part: Rewriting, now: datetime | None, clock: Clock) -> Rewriting:
        versions = self.targets[part.conversation]
        at = time_of_append(clock, now, self.newest[part.conversation])
        checksums = self.checksums[part.conversation]
        rewritten = tuple(Rewritten(version=v, checksum=checksums[v]) for v in sorted(checksums))
        payloads = [
            BlockRedacted(version=v, reason=reason, erased=True, rewritten=() if number else rewritten)
            for number, (v, reason) in enumerate(sorted(versions.items()))
        ]
        ids = event_ids(at, len(payloads))
        return replace(part, events=[new_event(id_, at, p) for id_, p in zip(ids, payloads, strict=True)])

    def written(self, counts: Mapping[str, int]) -> _Written:
        """Return what is written. Titles, which the store counts, are counted with the events that have them."""
        touched = [part for part in self.parts if part.payloads or self.targets[part.conversation]]
        events = {
            f"{part.conversation}@{version}": _place(part.payloads[version], version, part.blocks)
            for part in touched
            for version in sorted(part.payloads)
        }
        others = {place: number for place, number in counts.items() if place != "titles"}
        conversations = tuple(part.conversation for part in touched)
        return _Written(conversations, events, others, self._kept(), tuple(self.replaced), self._origins())

    def _origins(self) -> dict[str, int]:
        return {part.conversation: self.first for part in self.parts} if self.first else {}

    def _kept(self) -> dict[str, str]:
        """Return each place that may still quote the redacted content, with the reason why it stays."""
        left = self._kept_names()
        if self.covering and not self.text:
            left["summaries"] = (
                f"what was scavenged is not there to be compared with {', '.join(self.covering)}, which may say it;"
                " redact it again with the words as the text, and they lose them"
            )
        return left

    def _kept_names(self) -> dict[str, str]:
        """Return each path that may still quote the redacted content, with the reason why it stays."""
        if not self.text:
            return {}
        quotes = Quotes((self.text,))
        owners = dict.fromkeys(self.owners[version] for version in self.wanted.blocks)
        paths = [block.path for block in self.wanted.blocks.values() if quotes.are_in(block.path)]
        ids = [part.conversation for part in self.parts if quotes.are_in(part.conversation)]
        left = {}
        if paths:
            cure = " and ".join(_ERASE.format(owner) for owner in owners)
            left["paths"] = f"a path names its block for ever: {', '.join(paths)}; {cure}"
        if ids:
            cure = " and ".join(map(_ERASE.format, ids))
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


async def _family(store: EventStore, owner: ConversationInfo, first: int) -> list[ConversationInfo]:
    """Return a conversation and the forks that share a version of it, forks of forks included, parents first."""
    found = [owner]
    for info in found:
        forks = await store.forks(info.id)
        found += [await store.info(fork) for fork, base in forks.items() if base >= first]
    return found


async def _with_summaries(store: EventStore, written: Sequence[_Written]) -> ErasureReport:
    """Return the report, with the summaries of the redacted content with which other conversations begin."""
    report = report_of(written)
    origins: dict[str, int] = {}
    for one in written:
        for id_, first in one.origins.items():
            origins[id_] = min(first, origins.get(id_, first))
    handed = await handed_over_from(store, origins) if origins else []
    if handed := [summary for summary in handed if str(summary) not in report.rewritten]:
        cure = redactions_of(handed)
        why = f"conversations that it was handed over to begin with a summary of it, which may say it: {cure}"
        report = replace(report, left={**report.left, "handed_over": why})
    return report


async def _rehearsed(store: EventStore, written: Sequence[_Written]) -> ErasureReport:
    """Return the report of what redactions would write, with the stored texts that would go, and those that stay."""
    report = await _with_summaries(store, written)
    replaced = {hash_ for one in written for hash_ in one.replaced}
    held = await named_by_others(store, replaced, report.conversations)
    reached, left = {**report.reached}, {**report.left}
    if replaced - held:
        reached["values"] = len(replaced - held)
    if held:
        left["values"] = _stay(held)
    return replace(report, reached=reached, left=left)


def _stay(texts: Collection[str]) -> str:
    return f"{len(texts)} stored texts stay, since other conversations name them; redact them there too"


async def _scrubbed(store: EventStore, written: Sequence[_Written]) -> ErasureReport:
    """Rewrite the store's files without what was overwritten; return the report, which says whether that was possible.

    Which texts stay is asked after all redactions: a text that another conversation names may go with the redaction of
    that conversation.
    """
    report = await _with_summaries(store, written)
    if held := await store.values({hash_ for one in written for hash_ in one.replaced}):
        report = replace(report, left={**report.left, "values": _stay(held)})
    try:
        await store.shrink()
    except StoreError as refusal:  # report any refusal, and do not raise it: the log itself is redacted already
        return replace(report, left={**report.left, "files": str(refusal)})
    return replace(report, physical=True)
