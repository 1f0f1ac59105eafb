"""Verify a conversation: check every invariant over its whole log, and build every recorded context again.

It is one pass over the events, with one window in memory: the cost grows with the log and its recorded contexts.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from timeline.audit.calls import proved_body
from timeline.audit.pairing import Pairing
from timeline.audit.proof import Proof, prove
from timeline.audit.recorded_calls import recorded_calls
from timeline.audit.replay import RecordedContext, matching, overwritten_blocks, rebuild, recorded_values, without_proof
from timeline.audit.ways_back import WaysBack
from timeline.blocks import StageDigest
from timeline.errors import CallUnavailable, ContextUnavailable, StoreCorrupt
from timeline.events import (
    NOBODY,
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    BlocksRevealed,
    CompactionCompleted,
    CompactionReverted,
    ContextRendered,
    ConversationOpened,
    ModelCalled,
    PolicyChanged,
    appended_block,
)
from timeline.events.other_payloads import CompactionBoundary, PolicyOverridden
from timeline.fold.fold import Fold
from timeline.frozen import Frozen, begins_with
from timeline.log.history import base_fold, load_fold, reverted_versions, undos
from timeline.log.in_turns import in_turns
from timeline.log.off_loop import off_loop
from timeline.log.undisturbed import undisturbed
from timeline.planning.summary_requests import summary_due
from timeline.projection.project import Projector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from timeline.audit.recorded_calls import RecordedCall
    from timeline.events import Event, Payload
    from timeline.fold.window import Window
    from timeline.ports import ConversationInfo, EventStore
    from timeline.wire.neutral import Entry, NeutralContext

_MOST_PROBLEMS = 50
_NAMING = ("conversation.opened", "policy.changed", "policy.overridden")
"""Events that name a policy."""
_DECISIONS = (CompactionCompleted, CompactionReverted, BlocksHidden, BlocksRevealed, BlockRedacted)
"""Events after which the prefix may change."""


class VerifyReport(Frozen):
    """The result of a verification: figures, and for each invariant how often it is broken; ``ok`` if none is.

    ``unverifiable`` counts the contexts, and the requests of calls, that cannot be built again, by reason; they break
    no invariant. ``calls`` is the number of calls whose request was recorded. ``scavenged`` is the number of events
    that `timeline scavenge` removed; ``blocks``, ``compactions`` and ``calls`` are those that are left.

    ``head`` is the link of the newest event in hexadecimal: kept elsewhere, it proves the log up to there later.
    ``proved``, ``unproved``, ``rewritten`` and ``rewritten_behind`` are those of `timeline.audit.proof.Proof`;
    ``proved_until`` is the version of the event that has the head which was given.
    """

    ok: bool
    conversation: str
    events: int
    blocks: int
    renders: int
    compactions: int
    checksum: int
    coverage: int
    pairing: int
    progress: int
    replay: int
    recall: int
    order: int
    prefix: int
    unverifiable: dict[str, int]
    problems: tuple[str, ...]
    scavenged: int = 0
    calls: int = 0
    chain: int = 0
    head: str = ""
    proved: int = 0
    unproved: int = 0
    rewritten: int = 0
    proved_until: int | None = None
    rewritten_behind: tuple[int, ...] = ()


async def verify(store: EventStore, conversation: str, *, head: bytes | None = None) -> VerifyReport:
    """Check a conversation against all invariants, and report what is broken.

    ``head`` is one that was kept elsewhere: an event of the log must have it.

    Where history was scavenged, the check goes on from the snapshot that was kept then. Contexts recorded before it,
    removed or not, are unverifiable for the reason ``retention``.

    It reads the log several times, while others go on. What they append does not matter to it. Where content was
    removed meanwhile, it begins again: one reading may have had what the next one lacked.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    return await undisturbed(store, partial(_verified, store, conversation, head), conversation)


async def _verified(store: EventStore, conversation: str, head: bytes | None) -> VerifyReport:
    """Verify a log once."""
    info = await store.info(conversation)
    check = _Check(conversation)
    try:
        check.ways_back = WaysBack(conversation, await undos(store, conversation))
        check.chain(await prove(store, conversation, kept_head=head))
        await check.policies(store)
        await check.go_on_from_base(store, info)
        # The calls first: of a call that another writer appends meanwhile, the context might be missing.
        calls = await recorded_calls(store, conversation)
        renders, values = await check.recorded(store)
        check.requests(calls, renders)
        for rendered in renders.get(check.fold.version, ()):
            check.render(rendered, values)
        await check.go_through(store, renders, values, info.version)
        newest = await load_fold(store, conversation)
        # Another writer may have appended meanwhile: both folds must have the same version to be compared.
        await check.go_through(store, renders, values, newest.version)
        await off_loop(len(newest.window.items), partial(check.order, newest.window))
    except StoreCorrupt as error:
        check.problem("checksum", str(error))
    if check.fold.version < info.version and not check.counts["checksum"]:
        check.problem("checksum", f"the log ends at version {check.fold.version}, not {info.version}")
    return check.report()


class _Check:
    """One verification under way."""

    def __init__(self, conversation: str) -> None:
        self.fold = Fold(conversation)
        self.counts = dict.fromkeys(
            ("checksum", "chain", "coverage", "pairing", "progress", "replay", "recall", "order", "prefix"), 0
        )
        self.proof = Proof()
        self.problems: list[str] = []
        self.unverifiable: dict[str, int] = {}
        self.blocks: dict[int, str] = {}
        self.paths: set[str] = set()
        self.taken_back: set[int] = set()
        self.damaged: set[str] = set()
        self.compacted_at: set[int] = set()
        self.renders = 0
        self.calls = 0
        self.requests_of: dict[int, list[RecordedCall]] = {}
        self.scavenged = 0
        self.first_version = 1
        self.passed_over: dict[int, str] = {}
        """Versions of the recorded contexts that are not built again at all, each with the reason."""
        self.projector = Projector()
        self.before: tuple[tuple[Any, ...], Sequence[Entry]] | None = None
        self.ways_back = WaysBack(conversation, ())
        self.pairing = Pairing(self.blocks)
        self.entries: Sequence[Entry] = ()
        """The entries of the newest context."""
        self.only_appended = False
        """Whether the window only grew since the newest context, with none of its items changed."""

    def chain(self, proof: Proof) -> None:
        """Take the outcome of proving the log."""
        self.proof = proof
        for problem in proof.problems:
            self.problem("chain", problem)

    def values(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the content-addressed values that still match their hashes; the others are problems."""
        sound = matching(values)
        for hash_ in values.keys() - sound.keys() - self.damaged:
            self.damaged.add(hash_)
            self.problem("checksum", f"the stored value {hash_} does not match its hash")
        return sound

    async def policies(self, store: EventStore) -> None:
        """Check that the store holds each policy that the log names, as it was recorded."""
        named: dict[str, int] = {}
        async for event in in_turns(store.read(self.fold.conversation, types=_NAMING)):
            payload = event.payload
            if isinstance(payload, ConversationOpened | PolicyChanged | PolicyOverridden) and payload.policy:
                named.setdefault(payload.policy, event.version)
        held = await store.values(named)
        self.values(held)
        for hash_ in named.keys() - held.keys():
            self.problem("checksum", f"version {named[hash_]} names the policy {hash_}, which is not in the store")

    async def recorded(self, store: EventStore) -> tuple[dict[int, list[RecordedContext]], dict[str, str]]:
        """Return the recorded contexts to rebuild, by the version that they show, and the values that they refer to."""
        renders: dict[int, list[RecordedContext]] = {}
        redacted = await overwritten_blocks(store, self.fold.conversation)
        async for event in in_turns(store.read(self.fold.conversation, types=["context.rendered"])):
            if not isinstance(event.payload, ContextRendered):
                self.passed_over[event.version] = "projection"  # a later release recorded it
                continue
            if not 0 <= event.payload.version < event.version:
                shown = f"version {event.payload.version}, which is not one before it"
                self.problem("replay", f"the context that version {event.version} records shows {shown}")
            elif event.payload.version < self.fold.version:
                self.too_old(1)
                self.passed_over[event.version] = "retention"
            else:
                rendered = without_proof(event.payload, event.version, redacted)
                context = RecordedContext(0, event.version, event.at, rendered)
                renders.setdefault(event.payload.version, []).append(context)
        contexts = [context.rendered for some in renders.values() for context in some]
        return renders, self.values(await recorded_values(store, contexts))

    def requests(self, calls: Sequence[RecordedCall], renders: Mapping[int, Sequence[RecordedContext]]) -> None:
        """Take the calls whose requests were recorded, by the context that each was made from."""
        there = {context.version for some in renders.values() for context in some}
        for call in calls:
            if call.called.request is None:
                continue
            self.calls += 1
            context = call.called.answers
            if context is None:
                self.gap("unrecorded")
            elif context in there:
                self.requests_of.setdefault(context, []).append(call)
            elif context in self.passed_over:
                self.gap(self.passed_over[context])
            elif context < self.first_version:
                self.gap("retention")
            else:
                wrong = f"names version {context} as its context, which is none"
                self.problem("replay", f"call {call.number}, version {call.version}, {wrong}")

    async def go_on_from_base(self, store: EventStore, info: ConversationInfo) -> None:
        """Where history was scavenged, begin behind the newest base, with its window and the events left before it."""
        removed = await store.scavenged(info.id)
        if not removed:
            return
        self.scavenged, self.first_version = sum(removed.values()), info.first_version
        if contexts := removed.get("context.rendered", 0):
            self.too_old(contexts)
        conversation = self.fold.conversation
        self.taken_back = await reverted_versions(store, conversation)
        self.fold = await base_fold(store, conversation)
        paths = await store.paths_taken(conversation, [""])
        async for event in in_turns(store.read(conversation)):
            block = appended_block(event.payload)
            if event.version > self.fold.version:
                paths.discard("" if block is None else block.path)
                continue
            if block is not None:
                self.blocks[event.version] = block.path
            if isinstance(event.payload, CompactionCompleted):
                self.compacted_at.add(event.version)
        self.paths = paths

    async def go_through(
        self, store: EventStore, renders: dict[int, list[RecordedContext]], values: dict[str, str], until: int
    ) -> None:
        """Check the events behind the fold up to a version, and the recorded contexts of each."""
        conversation = self.fold.conversation
        async for event in in_turns(store.read(conversation, after=self.fold.version, until=until)):
            # Fold the event first: a context was projected from the window at its version, that event included.
            await self.event(store, event)
            for rendered in renders.get(event.version, ()):
                self.render(rendered, values)

    def too_old(self, contexts: int) -> None:
        """Count contexts that were recorded before the base."""
        self.renders += contexts
        self.gap("retention", contexts)

    def gap(self, reason: str, number: int = 1) -> None:
        """Count what cannot be built again."""
        self.unverifiable[reason] = self.unverifiable.get(reason, 0) + number

    def problem(self, invariant: str, text: str) -> None:
        """Count a broken invariant; keep its text, up to 50 of them."""
        self.counts[invariant] += 1
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(f"{invariant}: {text}")

    async def event(self, store: EventStore, event: Event) -> None:
        """Check the next event and fold it."""
        if event.version != self.fold.version + 1:
            self.problem("checksum", f"version {event.version} follows {self.fold.version}")
        block = appended_block(event.payload)
        if block is not None:
            if not block.path or block.path in self.paths:
                self.problem("recall", f"version {event.version}: path {block.path!r} is empty or in use")
            self.blocks[event.version] = block.path
            self.paths.add(block.path)
        before = self.fold.window if isinstance(event.payload, CompactionCompleted) else None
        self.fold = await self.ways_back.behind(store, self.fold, event)
        if before is not None and isinstance(event.payload, CompactionCompleted):
            self.compacted_at.add(event.version)
            self._compaction(before, event.payload)
        self.only_appended = self.only_appended and _only_appends(event.payload)
        self._decision(event.payload)

    def _decision(self, payload: Payload) -> None:
        if isinstance(payload, _DECISIONS):
            self.before = None
        if isinstance(payload, CompactionReverted):
            self.taken_back.update(payload.versions)
        if isinstance(payload, CompactionBoundary) and payload.compaction not in self.compacted_at:
            self.problem("coverage", f"a boundary names version {payload.compaction}, which is not a compaction")
        if isinstance(payload, BlocksHidden):
            for replacement in payload.blocks:
                if replacement.version not in self.blocks and replacement.version >= self.first_version:
                    self.problem("recall", f"a replacement names version {replacement.version}, which holds no block")

    def _compaction(self, before: Window, payload: CompactionCompleted) -> None:
        """Check coverage and progress of one compaction (design: Invariants, 1 and 3)."""
        ranges, path = payload.covers.ranges, payload.block.path
        if any(a[1] >= b[0] for a, b in pairwise(ranges)) or any(a > b for a, b in ranges):
            self.problem("coverage", f"{path}: its ranges {ranges} are not disjoint and rising")
        live = {item.version: item for item in self.fold.window.items}
        for item in before.items:
            if item.version not in live and item.version not in payload.covers:
                self.problem("coverage", f"{path}: version {item.version} is gone and not covered")
        for item in live.values():
            if not item.is_summary and item.version in payload.covers and not item.carried:
                self.problem("coverage", f"{path}: version {item.version} is covered and visible")
        for version in payload.carried:
            if version not in live:
                self.problem("coverage", f"{path}: carried version {version} is not in the window")
        self._summary(before, payload)
        freed = payload.before_tokens - payload.after_tokens
        if payload.source == "engine" and freed < max(1, payload.least_progress):
            self.problem("progress", f"{path}: freed {freed} tokens, {payload.least_progress} at the least")
        for unknown in set(payload.digest.paths) - self.paths:
            self.problem("recall", f"{path}: its digest names {unknown!r}, which no block has")

    def _summary(self, before: Window, payload: CompactionCompleted) -> None:
        """Report a compaction without a written summary that covers blocks which the model was shown.

        Whether a summary was due is derived from the window, and not read from the event's ``none_due``, since this
        check is there to find a wrong event.
        """
        if payload.written_by.summarizer != NOBODY or payload.source != "engine":
            return
        covered = [
            item
            for item in before.items
            if item.version in payload.covers and item.version not in payload.carried and not item.is_summary
        ]
        if summary_due(covered):
            self.problem(
                "coverage",
                f"{payload.block.path}: nobody wrote a summary of the {len(covered)} blocks that it covers; "
                "undo the compaction, and they are shown again",
            )

    def render(self, recorded: RecordedContext, values: Mapping[str, str]) -> None:
        """Build a recorded context again, and compare it with its fingerprint and with the context before it.

        The requests that were made from it are built from it again, too.
        """
        self.renders += 1
        window, rendered = self.fold.window, recorded.rendered
        calls = self.requests_of.get(recorded.version, ())
        try:
            _, neutral = rebuild(window, rendered, values, self.projector)
        except ContextUnavailable as gap:
            self.gap(gap.reason, 1 + len(calls))
            return
        if self.projector.of(rendered.projection).fingerprint(neutral) != rendered.fingerprint:
            self.problem("replay", f"the context of version {rendered.version} is not what was recorded")
        for call in calls:
            self._request(call, neutral)
        continues = begins_with(neutral.entries, self.entries)
        for problem in self.pairing.problems(window, neutral, continues=continues and self.only_appended):
            self.problem("pairing", problem)
        self._prefix(rendered, neutral, continues=continues)
        self.entries, self.only_appended = neutral.entries, True

    def _request(self, call: RecordedCall, neutral: NeutralContext) -> None:
        """Build the body of a call again, and compare it with its hash (design: Invariants, 5)."""
        if call.called.request is None:
            return
        try:
            proved_body(call.number, neutral, call.called.request)
        except CallUnavailable as gap:
            if gap.reason == "mismatch":
                self.problem("replay", f"the body of call {call.number}, version {call.version}, is not what was sent")
            else:
                self.gap(gap.reason)

    def _prefix(self, rendered: ContextRendered, neutral: NeutralContext, *, continues: bool) -> None:
        """Check that a render without a decision kept the bytes before the previous tail (design: Invariants, 8).

        Contexts of different projections are not compared: a later release may show a block otherwise.
        """
        key = (rendered.system, rendered.tools, rendered.projection)
        if self.before is not None and self.before[0] == key:
            earlier = self.before[1]
            if not continues and not _begins_alike(neutral.entries, earlier):
                self.problem("prefix", f"version {rendered.version}: bytes before the previous tail changed")
        self.before = (key, neutral.entries)

    def order(self, window: Window) -> None:
        """Check that snapshot and tail project like the full fold (design: Invariants, 7), and that no block is lost.

        A block is lost if it is neither in the window, nor covered, nor the summary of an undone compaction.
        """
        mine, _ = Projector().entries(self.fold.window)
        stored, _ = Projector().entries(window)
        if [e.hash for e in mine] != [e.hash for e in stored]:
            self.problem("order", "the window from the snapshot differs from the full fold")
        live = {item.version for item in self.fold.window.items}
        covers = [s.covers for s in self.fold.window.summaries]
        for version, path in self.blocks.items():
            if version not in live and version not in self.taken_back and not any(version in c for c in covers):
                self.problem("coverage", f"{path} is neither in the window nor covered")

    def report(self) -> VerifyReport:
        """Return the report of all checks."""
        return VerifyReport(
            ok=not any(self.counts.values()),
            conversation=self.fold.conversation,
            events=self.fold.version,
            blocks=len(self.blocks),
            renders=self.renders,
            calls=self.calls,
            scavenged=self.scavenged,
            head=self.proof.head.hex(),
            proved=self.proof.proved,
            unproved=self.proof.unproved,
            rewritten=self.proof.rewritten,
            proved_until=self.proof.found,
            rewritten_behind=tuple(self.proof.rewritten_behind),
            compactions=len(self.compacted_at),
            unverifiable=self.unverifiable,
            problems=tuple(self.problems),
            **self.counts,
        )


def _begins_alike(entries: Sequence[Entry], earlier: Sequence[Entry]) -> bool:
    return len(entries) >= len(earlier) and all(a.hash == b.hash for a, b in zip(earlier, entries, strict=False))


def _only_appends(payload: Payload) -> bool:
    """Return whether an event leaves each item of the window as it is."""
    if isinstance(payload, BlockAppended):
        return not isinstance(payload.block, StageDigest)  # it supersedes an earlier one
    return isinstance(payload, ContextRendered | ModelCalled)
