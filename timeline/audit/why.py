"""Answer why a block is shown as it is at a version of the log, even if the block is not there.

The state is that of the log folded up to that version. The named decision is the one that first led to the state. Where
several compactions covered a block, one after the other, that is the earliest, since it took the block out of the
context.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from timeline.audit.block_decisions import TYPES, Decisions
from timeline.audit.recorded_calls import find_contexts
from timeline.audit.retold import Retold, retold
from timeline.blocks import Reasoning, instant_text
from timeline.errors import HistoryUnavailable
from timeline.events.addresses import Address, parse_address
from timeline.fold.states import states_of
from timeline.frozen import compact_json
from timeline.log.blocks_by_name import FoundBlock, find_block
from timeline.log.history import check_version, fold_past, load_fold
from timeline.log.undisturbed import undisturbed
from timeline.planning.manual import REVEALED_FROM
from timeline.planning.summary_requests import FAILED_KEYS, without_failures
from timeline.projection.explain import RULES, Rulings, counted, in_words, spaced
from timeline.projection.project import Projector, sent_order

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.audit.block_decisions import Compaction
    from timeline.events import Event
    from timeline.fold.window import Item, Window
    from timeline.ports import EventStore
    from timeline.projection.explain import Facts, Ruling

WhyState: TypeAlias = Literal[
    "visible", "abridged", "hidden", "carried", "omitted", "covered", "redacted", "deleted", "not_yet", "lost"
]
"""A block's state; or why it has none: it was appended later, or the log is damaged (``lost``)."""
_UNSENT: Final = frozenset({"empty", "result_omitted", "superseded"})
"""Rules of blocks in the window of which nothing is sent."""


@dataclass(frozen=True, slots=True)
class ShownAs:
    """What the model is shown in a block's place.

    Attributes:
        kind: the block itself, whole or ``abridged``; its replacement, the summary that covers it, or a tombstone.
        address: of the block that is shown: of a covered one, its summary's.
        path: its path.
        text: the text in the block's place; None for the block itself.
    """

    kind: Literal["itself", "abridged", "replacement", "summary", "tombstone"]
    address: str
    path: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class WayBack:
    """A way to see a block again: ``read`` it by its address, ``reveal`` it, or ``undo`` compactions.

    ``address`` is that of the block, or of the summary to undo; ``compactions`` are the versions of all the compactions
    that the undo takes back, newest first.
    """

    kind: Literal["read", "reveal", "undo"]
    address: str
    compactions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Why:
    """Why a block is shown as it is; `timeline.Timeline.why` returns it.

    Attributes:
        conversation: the conversation that was asked.
        address: the block's address.
        path: its path; empty where the block was scavenged and named by its address.
        type: its type; empty where it was scavenged.
        at_version: the version of the log that the answer is about.
        call: number of the model call whose context that is; None where a version was asked for.
        state: the block's state at that version.
        since_version: that of the event that led there first; None where none did.
        since_at: its time.
        decided_by: its type; ``block.appended`` of a block that nothing was decided about.
        reason: name of the rule, as `render --explain` has it; of a covered block the compaction's reason.
        in_words: the rule and its figures in words.
        facts: the figures by name.
        compaction_number: of the compaction that covered or carried it first.
        summaries: addresses of the summaries that have stood for it one after the other, the first one first.
        retold: of a covered block the same summaries, each with how many of the block's words it has, and what it lost;
            none where the block's content is erased.
        shown_as: what is shown in its place; None where nothing is.
        ways_back: what shows it again, the cheapest first, as the log is now; none where it was shown, or is erased.
    """

    conversation: str
    address: str
    path: str
    type: str
    at_version: int
    call: int | None
    state: WhyState
    since_version: int | None
    since_at: datetime | None
    decided_by: str | None
    reason: str
    in_words: str
    facts: dict[str, int | str]
    compaction_number: int | None
    summaries: tuple[str, ...]
    retold: tuple[Retold, ...]
    shown_as: ShownAs | None
    ways_back: tuple[WayBack, ...]

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape of `timeline why --json`: the attributes by name."""
        retold = [{**asdict(summary), "at": instant_text(summary.at)} for summary in self.retold]
        since_at = None if self.since_at is None else instant_text(self.since_at)
        return {**asdict(self), "since_at": since_at, "retold": retold}


async def why(
    store: EventStore, conversation: str, name: str, *, at: int | None = None, call: int | None = None
) -> Why:
    """Answer why a block is shown as it is at a version of the log.

    Args:
        store: holds the conversation.
        conversation: its id.
        name: the block's path or address.
        at: the version; the newest unless given.
        call: number of a model call, instead of ``at``: the version that its context was projected from.

    Raises:
        ConversationNotFound: there is no such conversation.
        BlockNotFound: it has no such block, not even later.
        CallNotFound: it has no such call.
        CallUnavailable: the context of the call was not recorded.
        HistoryUnavailable: it has no such version, or `timeline scavenge` removed what that version is folded from.
    """
    return await undisturbed(store, partial(_why, store, conversation, name, at, call), conversation)


async def _why(store: EventStore, conversation: str, name: str, at: int | None, call: int | None) -> Why:
    """Answer as `why` does, in one try."""
    if call is not None:
        [context] = await find_contexts(store, conversation, [f"call:{call}"])
        at = context.rendered.version
    try:
        found = await find_block(store, conversation, name)
    except HistoryUnavailable as gone:
        if not gone.scavenged:
            raise
        events, version = await _decisions(store, conversation), at or (await store.info(conversation)).version
        if at is not None:
            await check_version(store, conversation, at)
        path = "" if parse_address(name) is not None else name
        return _deleted(_Gone(conversation, gone.version, path), _until(events, version), version, call)
    return await (await Moment.load(store, conversation, at)).why(found, call)


async def _decisions(store: EventStore, conversation: str) -> list[Event]:
    """Return all events that decide about blocks."""
    return [event async for event in store.read(conversation, types=TYPES)]


def _until(events: Sequence[Event], version: int) -> Decisions:
    """Return the decisions up to a version."""
    return Decisions([event for event in events if event.version <= version])


class _Reason(NamedTuple):
    """Why a block is in its state: the rule, and the decision that led there first."""

    rule: str
    facts: Facts
    in_words: str
    since: Event | None = None
    number: int | None = None


class Moment:
    """A conversation at one version, to be asked about many of its blocks."""

    def __init__(self, store: EventStore, window: Window, events: Sequence[Event]) -> None:
        self._store = store
        self._window = window
        self._now = Decisions(events)
        self._decisions = decisions = _until(events, window.version)
        self._state_of = states_of(window, decisions.undone)
        entries, _ = Projector().entries(window)
        rulings = Rulings(window, {entry.path: entry for entry in entries})
        self._ruled = {item.version: (item, rulings.of(item)) for item in sent_order(window.items)}
        self._words_of_summaries: dict[int, frozenset[str]] = {}

    @classmethod
    async def load(cls, store: EventStore, conversation: str, at: int | None = None) -> Moment:
        """Fold a conversation up to a version, the newest unless given, and read its decisions.

        Raises:
            ConversationNotFound: there is no such conversation.
            HistoryUnavailable: it has no such version, or what that is folded from was scavenged.
        """
        fold = await (load_fold(store, conversation) if at is None else fold_past(store, conversation, at))
        return cls(store, fold.window, await _decisions(store, conversation))

    async def why(self, found: FoundBlock, call: int | None = None) -> Why:
        """Return why a block is shown as it is."""
        version, block, window = found.event.version, found.block, self._window
        state, reason = await self._reason(found)
        since = reason.since
        return Why(
            conversation=window.conversation,
            address=str(Address(version)),
            path=block.path,
            type=block.type,
            at_version=window.version,
            call=call,
            state=state,
            since_version=None if since is None else since.version,
            since_at=None if since is None else since.at,
            decided_by=None if since is None else since.type,
            reason=reason.rule,
            in_words=reason.in_words,
            facts=dict(reason.facts),
            compaction_number=reason.number,
            summaries=_summaries(self._decisions, version),
            retold=self._retold(found, state),
            shown_as=self._shown_as(found, state, reason.rule),
            ways_back=self._ways_back(version, state),
        )

    async def _reason(self, found: FoundBlock) -> tuple[WhyState, _Reason]:
        version = found.event.version
        if version > self._window.version:
            return "not_yet", _Reason("not_yet", {}, f"it came later, at version {version}")
        if version in self._ruled:
            item, ruling = self._ruled[version]
            return item.state, await self._of_live(found, item, ruling)
        if version in self._decisions.undone:
            undo = self._decisions.undone[version]
            return "omitted", _Reason("undone", {}, "the compaction that made this summary was undone", undo)
        covering = self._decisions.covering(version)
        if self._state_of(version)[0] is None or not covering:
            return "lost", _Reason("lost", {}, "neither in the window nor covered: the log is damaged, see `verify`")
        return "covered", await self._of_covered(found, covering[0])

    async def _of_live(self, found: FoundBlock, item: Item, ruling: Ruling) -> _Reason:
        """Return why a block of the window is shown as it is."""
        (rule, facts), decisions, number = ruling, self._decisions, None
        since: Event | None = None
        if item.state in REVEALED_FROM:
            since = decisions.hiding(item.version, item.state) or await self._event(item.changed_at)
        elif item.state == "redacted":
            since = decisions.redacting(item.version)
        elif item.carried:
            first = decisions.carrying(item.version)[0]
            since, number = first.event, first.payload.round
        elif rule == "result_omitted":
            answer = next(i for i in self._window.items if i.answers == item.version)
            since = decisions.hiding(answer.version, "omitted")
        elif rule == "pinned":
            since = decisions.pinning(item.version)
        elif rule in {"rewritten", "tool_loop"}:
            since = await self._event(int(facts["decided_version"]))
        words = in_words(rule, facts, shown=item.shown_tokens, whole=item.tokens)
        return _Reason(rule, facts, words, since or decisions.returning(item.version) or found.event, number)

    async def _event(self, version: int) -> Event | None:
        return next(iter(await self._store.read_versions(self._window.conversation, [version])), None)

    async def _of_covered(self, found: FoundBlock, first: Compaction) -> _Reason:
        """Return why a block is covered: the figures of the first compaction that took it out of the context."""
        unseen = await self._was_failed(found, first)
        reason = _covered(
            first, unseen="it failed before any text, so that no summary was made of it" if unseen else ""
        )
        erased = self._decisions.redacting(found.event.version)
        if erased is None:
            return reason
        return reason._replace(in_words=f"{reason.in_words}; its content was erased at version {erased.version}")

    async def _was_failed(self, found: FoundBlock, first: Compaction) -> bool:
        """Return whether a block was part of a failed response, which summarizers are not shown."""
        block = found.block
        if type(block) is not Reasoning and not any(block.meta.get(key) for key in FAILED_KEYS):
            return False
        before = (await fold_past(self._store, self._window.conversation, first.event.version - 1)).window.items
        kept = {item.version for item in without_failures(before)}
        return found.event.version not in kept

    def _retold(self, found: FoundBlock, state: WhyState) -> tuple[Retold, ...]:
        version = found.event.version
        if state != "covered" or self._now.redacting(version) is not None:
            return ()
        return retold(found.block, self._decisions.covering(version), self._words_of_summaries)

    def _shown_as(self, found: FoundBlock, state: WhyState, rule: str) -> ShownAs | None:
        """Return what the model is shown in a block's place."""
        version, path = found.event.version, found.block.path
        own = str(Address(version))
        by = self._state_of(version)[1]
        if by is not None:
            summary = self._ruled[by][0].block
            return ShownAs("summary", str(Address(by)), summary.path, summary.text)
        if version not in self._ruled or state == "omitted" or rule in _UNSENT:
            return None
        item = self._ruled[version][0]
        if state == "redacted":
            return ShownAs("tombstone", own, path, item.block.text)
        if item.replacement is None:
            return ShownAs("itself", own, path)
        text = item.replacement.text or compact_json(item.replacement.arguments or {})
        return ShownAs("abridged" if state == "abridged" else "replacement", own, path, text)

    def _ways_back(self, version: int, state: WhyState) -> tuple[WayBack, ...]:
        """Return what shows a block again as the log is now, which may be later than the version asked about."""
        now, address = self._now, str(Address(version))
        if state in {"visible", "carried", "redacted"} or now.redacting(version) is not None:
            return ()
        read = WayBack("read", address)
        if covering := now.covering(version):
            first = covering[0].event.version
            return read, WayBack("undo", str(Address(first)), tuple(now.chain(first)))
        if any(now.hiding(version, state) is not None for state in REVEALED_FROM):
            return read, WayBack("reveal", address)
        return (read,)


def _summaries(decisions: Decisions, version: int) -> tuple[str, ...]:
    return tuple(str(Address(one.event.version)) for one in decisions.covering(version))


def _covered(first: Compaction, *, unseen: str = "") -> _Reason:
    """Return the reason for a block that a compaction took out of the context."""
    made = first.payload
    ranges = made.covers.ranges
    facts: Facts = {
        "blocks": made.covered_blocks,
        "tokens": made.covered_tokens,
        "first": ranges[0][0] if ranges else 0,
        "last": ranges[-1][1] if ranges else 0,
        "before_tokens": made.before_tokens,
        "after_tokens": made.after_tokens,
        "summarizer": made.written_by.summarizer,
    }
    known = {name: value for name, value in facts.items() if value}
    why_then = RULES.get(made.reason, spaced(made.reason))
    words = f"compaction {made.round} ({why_then}): {made.before_tokens:,} -> {made.after_tokens:,} tokens"
    if made.covered_blocks:
        words += f", it covered {counted(made.covered_blocks, 'block', 'blocks')} of {made.covered_tokens:,} tokens"
    if unseen or made.none_due:
        words += f"; {unseen or 'the model was shown nothing new of them, so that no summary was due'}"
    else:
        words += f"; summary by {made.written_by.summarizer}"
    return _Reason(made.reason, known, words, first.event, made.round)


class _Gone(NamedTuple):
    """A scavenged block: its version, and its path where that is known."""

    conversation: str
    version: int
    path: str


def _deleted(gone: _Gone, decisions: Decisions, at: int, call: int | None) -> Why:
    """Return what is still known about a scavenged block: the compaction that covered it, and its summary."""
    covering = decisions.covering(gone.version)
    covered = _covered(covering[0]) if covering else _Reason("", {}, "")
    since = covered.since
    shown = None
    if covering:
        summary = covering[-1]
        block = summary.payload.block
        shown = ShownAs("summary", str(Address(summary.event.version)), block.path, block.text)
    return Why(
        conversation=gone.conversation,
        address=str(Address(gone.version)),
        path=gone.path,
        type="",
        at_version=at,
        call=call,
        state="deleted",
        since_version=None if since is None else since.version,
        since_at=None if since is None else since.at,
        decided_by=None if since is None else since.type,
        reason="retention",
        in_words="; ".join(filter(None, ["removed by `timeline scavenge`", covered.in_words])),
        facts=dict(covered.facts),
        compaction_number=covered.number,
        summaries=_summaries(decisions, gone.version),
        retold=(),
        shown_as=shown,
        ways_back=(),
    )
