"""A timeline under watch: every render is held against the invariants of the design, section 5."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tests.invariants import reference
from tests.invariants.checks import check_compactions, check_figures, check_refusals, check_window
from tests.invariants.hide_checks import check_batches, check_guards, check_untouched
from tests.invariants.playing import AT, play, read_log
from tests.invariants.strategies import Compact
from tests.invariants.wires import check_anthropic, check_openai_chat
from timeline.audit.past import past_of
from timeline.blocks import RangeSummary, ToolCall, ToolResult, UserPrompt
from timeline.errors import BudgetImpossible, ContextOverflow
from timeline.frozen import canonical_json, compact_json
from timeline.log.history import fold_history, fold_near
from timeline.planning.account import Tail
from timeline.projection.context import RenderedContext
from timeline.projection.project import Projector
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tests.invariants.strategies import Step
    from timeline.fold.fold import Fold
    from timeline.policy.model import Policy
    from timeline.ports import EventStore
    from timeline.projection.reports import TakenDecision
    from timeline.wire.neutral import Entry, NeutralContext

PROBES: Final = (
    ToolResult(call_id="a", text="late or not"),
    UserPrompt(text="next"),
    ToolCall(call_id="a", name="t"),
    UserPrompt(text="an old turn again", turn_id="turn_1"),
)
"""Blocks whose turns and paths tell what a fold remembers of turns, calls and paths."""
DECISIONS: Final = {
    "compaction.completed",
    "compaction.reverted",
    "blocks.hidden",
    "blocks.revealed",
    "block.redacted",
}
"""The events behind which the prefix may change; all others leave every byte of it."""
Outcome = RenderedContext | ContextOverflow | BudgetImpossible

_ADDRESS: Final = re.compile(
    r"all of it: (\S+) …\]|all arguments: (@\d+)\]|\[hidden: (\S+)\]$|, (?:hidden|shortened)\] (@\d+)$|, read (@\d+)\""
)
_LISTS: Final = ("artifacts", "files_read", "files_written", "commands", "searches", "hidden", "errors")


class Watched:
    """A timeline, its store, and what was last rendered.

    ``alone`` says that nobody else writes or changes the policy, ``forced`` that something is compacted by force.
    """

    def __init__(self, store: EventStore, timeline: Timeline, **prompt: Any) -> None:
        self.store, self.timeline, self.prompt = store, timeline, prompt
        self.now = AT
        self.alone, self.forced = True, False
        self.last: RenderedContext | None = None
        self.last_version = 0
        self.policies: list[tuple[int, Policy]] = [(0, timeline.policy)]

    def policy_at(self, version: int) -> Policy:
        """Return the policy that was in force when a version was appended."""
        return next(policy for since, policy in reversed(self.policies) if since < version)

    async def follow(self, timeline: Timeline) -> None:
        """Go on with another timeline of the conversation, maybe under another policy."""
        self.timeline = timeline
        self.policies.append((await self.stored_version(), timeline.policy))

    async def play(self, *steps: Step) -> None:
        """Play steps; time goes on from where the last ones ended."""
        self.forced |= any(isinstance(step, Compact) for step in steps)
        self.now = await play(self.timeline, self.store, steps, self.now)

    async def outcome(self, **options: Any) -> Outcome:
        """Render; return the context or the typed error."""
        try:
            return await self.timeline.render(**self.prompt, now=self.now, **options)
        except (ContextOverflow, BudgetImpossible) as error:
            return error

    async def render(self) -> Outcome:
        """Render thrice: dry, recorded, and recorded again; check all that a render promises."""
        await self.timeline._log.catch_up()
        before = self.timeline.version
        dry = await self.outcome(record=False)
        assert await self.stored_version() == self.timeline.version == before, "a dry run appended"
        wet = await self.outcome()
        check_same(dry, wet)
        after = self.timeline.version
        again = await self.outcome()
        assert self.timeline.version == after, "the same render appended again"
        if isinstance(wet, RenderedContext):
            assert isinstance(again, RenderedContext)
            assert again.neutral.canonical() == wet.neutral.canonical()
            await self.check_past(wet, self.now)
            await self._check_context(wet)
        await self.check_order()
        return wet

    async def stored_version(self) -> int:
        """Return the version that the store knows."""
        return (await self.store.info(self.timeline.id)).version

    async def _check_context(self, context: RenderedContext) -> None:
        log = await read_log(self.store, self.timeline.id)
        check_limit(context, self.timeline)
        check_pairing(context.neutral, log)
        check_anthropic(context.to_anthropic())
        check_openai_chat(context.to_openai_chat())
        self.check_prefix(context, log)
        await self.check_recall(context)
        self.last, self.last_version = context, self.timeline.version

    async def check_past(self, context: RenderedContext, now: datetime) -> None:
        """A timeline that is seen at the version of a context renders it again, and appends nothing."""
        view = await self.timeline.at(context.version)
        again = await view.render(**self.prompt, now=now)
        assert again.neutral.canonical() == context.neutral.canonical()
        assert again.fingerprint == context.fingerprint
        assert body(again) == body(context)

    def check_prefix(self, context: RenderedContext, log: Sequence[reference.LogLine]) -> None:
        """Without a decision since, the bytes before the previous tail are what they were."""
        if self.last is None:
            return
        if not any(line.payload.type in DECISIONS for line in log[self.last.version :]):
            earlier = [entry.canonical for entry in self.last.neutral.entries]
            assert [entry.canonical for entry in context.neutral.entries][: len(earlier)] == earlier

    async def check_recall(self, context: RenderedContext) -> None:
        """Every path and every address that is printed anywhere resolves; that of a replacement, to its own block.

        A summary's record prints the addresses of what it covers.
        """
        paths = {entry.path for entry in context.neutral.entries}
        for entry in context.neutral.entries:
            printed = f"{entry.text}\n{canonical_json(entry.arguments)}"
            for address in {one for found in _ADDRESS.findall(printed) for one in found if one}:
                block = await self.timeline.read(address)
                assert block.path == entry.path or entry.type == RangeSummary.model_fields["type"].default
        for compaction in self.timeline.window.summaries:
            digest = compaction.digest.dump()
            paths.update(row["path"] for name in _LISTS for row in digest.get(name, []))
            paths.update(path for row in digest.get("tool_outputs", []) for path in row["paths"])
        for path in paths:
            assert (await self.timeline.read(path)).path == path

    async def check_order(self) -> None:
        """A timeline that is opened from snapshot and tail is the timeline of the whole log."""
        full = await fold_history(self.store, self.timeline.id)
        opened = await Timeline.open(self.store, self.timeline.id, policy=self.timeline.policy, create=False)
        check_same_fold(opened._log.fold, full)
        check_same_fold(self.timeline._log.fold, full)

    def _fixed(self) -> int:
        """Count what no compaction can free."""
        prompt = self.prompt
        return self.timeline._renderer.fixed(
            self.timeline._compactor,
            system=prompt.get("system"),
            tools=prompt.get("tools", ()),
            tail=Tail(callers=tuple(prompt.get("ephemeral", ()))),
        ).tokens

    async def check_everything(self) -> None:
        """What holds at the end of every story: the naive fold's answer, replay, progress."""
        log = await read_log(self.store, self.timeline.id)
        check_window(self.timeline.window, log)
        check_compactions(log, self.policy_at)
        check_untouched(log)
        if self.alone:
            fixed = self._fixed()
            check_figures(log, self.timeline.policy)
            if not self.forced:
                check_refusals(log, self.timeline.policy, fixed)
            check_guards(log, self.timeline.policy, fixed)
            check_batches(log, self.timeline.policy)
        report = await self.timeline.verify()
        assert report.ok, report.problems
        await check_near(self.store, self.timeline.id)


async def check_near(store: EventStore, id_: str) -> None:
    """Folding from the nearest snapshot of the past gives what folding the whole log gives (design: Invariants, 7)."""
    past = await past_of(store, id_)
    assert (past.problem, past.wrong, past.beyond) == ("", [], [])
    last = (await store.info(id_)).version
    kept = await store.waypoints(id_)
    for version in {1, last, *(v + d for v in kept[-4:] for d in (-1, 0, 1) if 1 <= v + d <= last)}:
        near, whole = [await fold(store, id_, until=version) for fold in (fold_near, fold_history)]
        assert near.at == whole.at
        check_same_fold(near, whole)


def body(context: RenderedContext) -> str:
    """Return the bytes that a provider would get and cache: the canonical form is blind to the order of keys."""
    return compact_json(context.to_anthropic())


def check_same(dry: Outcome, wet: Outcome) -> None:
    """A dry run gives what the recorded run gives."""
    assert type(dry) is type(wet)
    if isinstance(dry, RenderedContext) and isinstance(wet, RenderedContext):
        assert dry.neutral.canonical() == wet.neutral.canonical()
        assert dry.fingerprint == wet.fingerprint
        assert _decisions(dry) == _decisions(wet)
        assert dry.account == wet.account
        assert body(dry) == body(wet)
    elif isinstance(dry, ContextOverflow) and isinstance(wet, ContextOverflow):
        assert (dry.account, dry.largest_blocks) == (wet.account, wet.largest_blocks)


def _decisions(context: RenderedContext) -> list[TakenDecision]:
    """Return what was decided; a version is told by its distance: another writer's events may have come before it."""
    return [taken.model_copy(update={"facts": _from(context.version, taken.facts)}) for taken in context.decisions]


def _from(version: int, facts: Mapping[str, int | str]) -> dict[str, int | str]:
    boundary = facts.get("boundary")
    return {**facts, "boundary": boundary - version} if isinstance(boundary, int) else {**facts}


def check_same_fold(mine: Fold, full: Fold) -> None:
    """Two folds see the same, by the same counter, and would give the next blocks the same places."""
    assert mine.stored == full.stored
    full.count_as(mine)
    assert mine.window == full.window
    assert mine.turns.dump() == full.turns.dump()
    assert _bytes(mine) == _bytes(full)
    assert mine.address([(probe, AT) for probe in PROBES]) == full.address([(probe, AT) for probe in PROBES])


def _bytes(fold: Fold) -> list[str]:
    entries, _ = Projector().entries(fold.window)
    return [entry.model_dump_json() for entry in entries]


def check_limit(context: RenderedContext, timeline: Timeline) -> None:
    """What is sent is within the limit, counted again from the entries themselves; save after an undo.

    Until a call reported usage, the ratio is a guess on the safe side, and refuses nothing.
    """
    if timeline.window.is_held:
        assert context.overflow == (context.account.total > context.account.trigger)
        return
    counter = timeline._log.fold.counter or timeline.counter
    counted = sum(counter.count(sent_text(entry)) for entry in context.neutral.entries)
    fixed = context.account.fixed
    guessed = 1.0 if timeline.window.reported.calls else max(1.0, timeline.policy.first_ratio or 1.0)
    assert (counted + fixed.tokens - fixed.reserved) // guessed <= timeline.policy.max_tokens


def sent_text(entry: Entry) -> str:
    """Return the text of an entry, its name and its arguments as they are counted."""
    if entry.arguments is None:
        return entry.text
    told = entry.arguments if isinstance(entry.arguments, str) else canonical_json(entry.arguments)
    return f"{entry.name}{told}{entry.text}"


def check_pairing(neutral: NeutralContext, log: Sequence[reference.LogLine]) -> None:
    """No result that is not loose stands without its call; no call stands without its result while that is in view."""
    log = reference.standing(log)
    blocks, given = reference.blocks_of(log), reference.answers(log)
    version_of = {block.path: version for version, block in blocks.items()}
    shown = {version_of[entry.path]: entry for entry in neutral.entries}
    states = reference.states(log)
    for version, entry in shown.items():
        if version in given:
            assert entry.loose == (given[version] not in shown)
    for result, call in given.items():
        if call in shown and states[result] != "covered":
            assert result in shown, f"the call of version {call} is shown without its result {result}"
