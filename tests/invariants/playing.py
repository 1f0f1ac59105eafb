"""Playing steps to a timeline, and reading back what its log then holds."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar, assert_never

from hypothesis import Phase, settings

from tests.depth import examples
from tests.invariants.places import closing_stores
from tests.invariants.reference import LogLine, standing, summaries_of
from tests.invariants.strategies import Call, Compact, Decide, GoBack, Import, Later, Manual, Say, Staged, Undo, Wait
from timeline.blocks import RangeSummary, ToolCall, numbered, stem
from timeline.errors import (
    BlockProtected,
    CompactionCovered,
    CompactionError,
    HistoryUnavailable,
    InvalidBlock,
    PathTaken,
    StageNotFound,
    StageRefused,
    UndoUnavailable,
)
from timeline.events import (
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    BlocksUnpinned,
    CompactionCompleted,
    ContextRendered,
    Replacement,
    UnknownPayload,
    WrittenBy,
    appended_block,
)
from timeline.frozen import repair_text
from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from tests.invariants.strategies import DecisionKind, Step
    from timeline.blocks import Block
    from timeline.events import Payload
    from timeline.ports import EventStore
    from timeline.timeline import Timeline

T = TypeVar("T")

AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


def search(count: int, *, steps: int = 50) -> settings:
    """Return settings for a search that plays so many examples in CI."""
    return settings(
        max_examples=examples(count),
        phases=[p for p in Phase if p is not Phase.explain],
        stateful_step_count=steps,
        deadline=None,
    )


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, and close the stores that it opened."""

    async def whole() -> T:
        async with closing_stores():
            return await coroutine

    return asyncio.run(whole())


async def read_log(store: EventStore, conversation: str) -> list[LogLine]:
    """Read a whole log."""
    return [LogLine(event.version, event.payload, event.at) async for event in store.read(conversation)]


async def play(  # noqa: C901, PLR0912 - one case a kind of step
    timeline: Timeline, store: EventStore, steps: Sequence[Step], now: datetime = AT
) -> datetime:
    """Play steps, one after the other; return the moment at which they end."""
    for step in steps:
        match step:
            case Say(blocks):
                await say(timeline, store, blocks, now)
            case Decide():
                await _decide(store, timeline, step, now)
            case Import():
                await _import(store, timeline, step, now)
            case Later(text):
                await commit(timeline, [_later(timeline, text)], now)
            case Wait(seconds):
                now += timedelta(seconds=seconds)
            case Call():
                await _call(timeline, store, step, now)
            case Manual():
                await manage(timeline, step, now)
            case Compact(until):
                await compact(timeline, until, now)
            case Undo():
                await undo(timeline, store, step, now)
            case GoBack(number):
                await go_back(timeline, store, number, now)
            case Staged():
                await work_in_stages(timeline, store, step, now)
            case _:
                assert_never(step)
    return now


async def _call(timeline: Timeline, store: EventStore, call: Call, now: datetime) -> None:
    log = await read_log(store, timeline.id) if call.ratio else []
    counted = [line.payload.counted for line in log if isinstance(line.payload, ContextRendered)]
    usage = Usage(
        input_tokens=7 + round(call.ratio * counted[-1]) if counted else 7,
        cache_write_5m_tokens=3 if call.wrote in {"5m", "both"} else 0,
        cache_write_1h_tokens=3 if call.wrote in {"1h", "both"} else 0,
    )
    began = None if call.began is None else now - timedelta(seconds=call.began)
    reason = "error" if call.failed else None
    await timeline.record_model_call(usage, model="m", finish_reason=reason, started_at=began, now=now)


async def manage(timeline: Timeline, step: Manual, now: datetime) -> None:
    """Hide, reveal, pin or unpin a block of the window by its path; where that is refused, nothing is written."""
    items = timeline.window.items
    if not items:
        return
    path = items[step.number % len(items)].block.path
    before = timeline.version
    try:
        match step.kind:
            case "hide":
                await timeline.hide(path, now=now)
            case "omit":
                await timeline.hide(path, mode="omit", now=now)
            case "reveal":
                await timeline.reveal(path, now=now)
            case "pin":
                await timeline.pin(path, now=now)
            case "unpin":
                await timeline.unpin(path, now=now)
    except BlockProtected:
        assert timeline.version == before


async def compact(timeline: Timeline, until: int | None, now: datetime) -> None:
    """Compact; where a block of the window is chosen, it stays, and all behind it that was in view."""
    items = timeline.window.items
    chosen = None if until is None or not items else until % len(items)
    path = None if chosen is None else items[chosen].block.path
    with suppress(CompactionError):
        assert await timeline.compact(until=path, now=now, wait=False)
        if chosen is not None:
            stayed = {item.version for item in timeline.window.items}
            assert {item.version for item in items[chosen:] if not item.is_summary} <= stayed


async def work_in_stages(timeline: Timeline, store: EventStore, step: Staged, now: datetime) -> None:
    """Enter, approve or rewind a stage; where that is refused, nothing is written."""
    before = (await store.info(timeline.id)).version
    try:
        match step.kind:
            case "enter":
                await timeline.enter_stage(step.stage, step.stage.title(), now=now)
            case "approve":
                texts = {"short": f"{step.stage} in short", "detailed": f"{step.stage} " * 40}
                await timeline.approve_stage(decision=f"{step.stage} at {before}", **texts, now=now)
            case "rewind":
                await timeline.rewind_stage(step.stage, now=now)
    except (StageRefused, StageNotFound):
        assert (await store.info(timeline.id)).version == before


async def undo(timeline: Timeline, store: EventStore, step: Undo, now: datetime) -> list[int]:
    """Take a compaction back; say which ones went, newest first."""
    log = await read_log(store, timeline.id)
    live = sorted(summaries_of(standing(log)))
    version = live[step.number % len(live)] if live and step.number is not None else None
    try:
        return await timeline.undo_compaction(version, cascade=step.cascade, now=now)
    except UndoUnavailable:
        assert not live
    except CompactionCovered:
        assert not step.cascade
    return []


async def go_back(timeline: Timeline, store: EventStore, number: int | None, now: datetime) -> list[Block]:
    """Take a turn back, the newest or from a block of the log on; return what left. What is refused writes nothing."""
    blocks = [block for line in await read_log(store, timeline.id) if (block := appended_block(line.payload))]
    path = blocks[number % len(blocks)].path if blocks and number is not None else None
    before = (await store.info(timeline.id)).version
    try:
        return await timeline.go_back(path, now=now)
    except (BlockProtected, HistoryUnavailable):
        assert (await store.info(timeline.id)).version == before
        return []


async def say(timeline: Timeline, store: EventStore, blocks: Sequence[Block], now: datetime = AT) -> None:
    """Append blocks; where one brings a path that is in use, nothing of them is written."""
    before = (await store.info(timeline.id)).version
    try:
        await timeline.append(*blocks, now=now)
    except (InvalidBlock, PathTaken):
        assert any(block.path for block in blocks), "refused for no reason"
        assert (await store.info(timeline.id)).version == before, "half an append"


async def commit(
    timeline: Timeline, payloads: Sequence[Payload], now: datetime = AT, *, snapshot: bool = False
) -> None:
    """Append decisions straight to a timeline's log."""
    await timeline._log.commit(payloads, at=now, snapshot=snapshot)


async def _decide(store: EventStore, timeline: Timeline, step: Decide, now: datetime) -> None:
    known: list[tuple[int, Block | None]] = [
        (v, block) for v, payload, _ in await read_log(store, timeline.id) if (block := appended_block(payload))
    ]
    if not known:
        return
    if step.kind not in {"hide", "omit"}:
        known.append((timeline.version + 7, None))
    chosen = dict(known[number % len(known)] for number in step.numbers)
    await commit(timeline, [_decision(timeline, step.kind, chosen)], now, snapshot=step.snapshot)


def _decision(timeline: Timeline, kind: DecisionKind, chosen: dict[int, Block | None]) -> Payload:
    match kind:
        case "hide" | "omit":
            replacements = tuple(_replacement(v, block, timeline) for v, block in chosen.items() if block)
            return BlocksHidden(mode="omit" if kind == "omit" else "replace", reason="test", blocks=replacements)
        case "reveal":
            return BlocksRevealed(versions=tuple(chosen))
        case "pin":
            return BlocksPinned(versions=tuple(chosen))
        case "unpin":
            return BlocksUnpinned(versions=tuple(chosen))
        case "redact":
            return BlockRedacted(version=next(iter(chosen)))


def _replacement(version: int, block: Block, timeline: Timeline) -> Replacement:
    if isinstance(block, ToolCall):
        return Replacement(version=version, arguments={"_hidden": block.path}, tokens=20)
    text = f"[hidden: {block.path}]"
    return Replacement(version=version, text=text, tokens=timeline.counter.count(text))


def _later(timeline: Timeline, text: str | None) -> Payload:
    if text is None:
        return UnknownPayload(type="mood.changed", data={"mood": "better"}, stored_schema_version=2)
    turn_id = timeline.window.turn_id or "turn_0"
    block: Any = {"type": "poem.verse", "author": "assistant", "text": repair_text(text), "turn_id": turn_id}
    block |= {"path": f"bl:{turn_id}.poem.verse.{timeline.version + 1}", "metre": "iambic"}
    return UnknownPayload(type="verse.appended", data={"block": block, "tokens": timeline.counter.count(text)})


async def _import(store: EventStore, timeline: Timeline, step: Import, now: datetime) -> None:
    window = timeline.window
    own = [item for item in window.items if not item.is_summary]
    if not own:
        return
    covered = own[: step.until % len(own) + 1]
    carried = {covered[number % len(covered)].version for number in step.carried}
    reach = [covered[-1].version, *(last for summary in window.summaries for _, last in summary.covers.ranges)]
    end = next((p for p, item in enumerate(window.items) if item.place > max(reach)), len(window.items))
    covers = window.covers_between(0, end)
    blank = RangeSummary(turn_id=covered[-1].block.turn_id, text="What the recorded client kept.", at=AT)
    taken = await store.paths_taken(timeline.id, [stem(blank)])
    path = next(p for n in range(1, len(taken) + 2) if (p := numbered(stem(blank), n)) not in taken)
    completed = CompactionCompleted(
        block=blank.model_copy(update={"path": path}),
        tokens=8,
        counter=timeline.counter.name,
        covers=covers,
        carried=tuple(sorted(carried)),
        round=window.compactions + 1,
        reason="imported",
        source="imported",
        before_tokens=window.tokens,
        after_tokens=8,
        written_by=WrittenBy(summarizer="imported"),
    )
    await commit(timeline, [completed], now, snapshot=True)
