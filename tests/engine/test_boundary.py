"""What surrounds a compaction (seed 003): hooks in their order, and the boundary behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import AT, FULL, Scribe, exchange, log_of, opened, payloads_of, prompt, small_policy, turn
from timeline import Hooks, policies
from timeline.answers.about import about_event
from timeline.events.other_payloads import CompactionBoundary
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.timeline import Timeline

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400, boundary=True)


async def compacted(store: MemoryStore, **options: Any) -> Timeline:
    """Return a timeline that has compacted once."""
    timeline = await opened(store, **{"policy": POLICY, "summarizer": Scribe(), **options})
    await timeline.append(*FULL)
    await timeline.render(now=AT)
    return timeline


@pytest.mark.shows("003-25", "R-003-8")
async def test_hooks_summary_and_boundary_come_in_the_order_of_the_design() -> None:
    """PreCompact, summarise, build, session start, boundary, return."""
    store, order = MemoryStore(), list[str]()

    class Watched(Scribe):
        async def summarize(self, request: Any) -> Any:
            order.append("summarise")
            return await super().summarize(request)

    async def before(_: dict[str, Any]) -> None:
        order.append("before")

    async def after(_: dict[str, Any]) -> None:
        order.append("after" if await payloads_of(store, "compaction.completed") else "too early")

    async def started(_: dict[str, Any]) -> None:
        order.append("started" if not await payloads_of(store, "compaction.boundary") else "too late")

    hooks = Hooks(on_before_compaction=before, on_after_compaction=after, on_session_start=started)
    timeline = await opened(store, policy=POLICY, summarizer=Watched(), hooks=hooks)
    await timeline.append(*FULL)
    [taken] = (await timeline.render(now=AT)).decisions
    assert order == ["before", "summarise", "after", "started"]
    [boundary] = [event for event in await log_of(store) if event.type == "compaction.boundary"]
    assert taken.facts["boundary"] == boundary.version


@pytest.mark.shows("003-4")
async def test_the_session_start_says_where_it_comes_from() -> None:
    """Its source is the compaction; the summary can be read by its path."""
    told: list[dict[str, Any]] = []

    async def started(facts: dict[str, Any]) -> None:
        told.append(facts)

    timeline = await compacted(MemoryStore(), hooks=Hooks(on_session_start=started))
    [facts] = told
    assert (facts["source"], facts["conversation"], facts["compaction_number"]) == ("compact", "c", 1)
    assert facts["after_tokens"] < facts["before_tokens"]
    assert (await timeline.read(facts["summary_path"])).type == "conv.range.summary"


@pytest.mark.shows("003-30", "R-003-10")
async def test_an_error_in_the_session_start_is_recorded_and_not_fatal() -> None:
    """The boundary follows all the same."""
    store = MemoryStore()

    async def started(_: dict[str, Any]) -> None:
        raise RuntimeError("no disk")

    await compacted(store, hooks=Hooks(on_session_start=started))
    assert [(p.hook, p.error) for p in await payloads_of(store, "hook.failed")] == [
        ("on_session_start", "RuntimeError: no disk")
    ]
    assert len(await payloads_of(store, "compaction.boundary")) == 1


@pytest.mark.shows("003-18", "R-003-8")
@pytest.mark.parametrize("own", [True, False], ids=["its handle", "another"])
async def test_the_split_comes_after_the_hook(*, own: bool) -> None:
    """What the hook pins is not covered, by whichever handle it pins; one summary is paid for, of what is left."""
    store = MemoryStore()
    scribe = Scribe()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FULL)

    async def before(_: dict[str, Any]) -> None:
        await (hooked if own else timeline).pin("ar:turn_2.user.prompt")

    hooked = await opened(store, policy=POLICY, summarizer=scribe, hooks=Hooks(on_before_compaction=before))
    await hooked.render(now=AT)
    states = {block.path: block.state for block in (await hooked.render(now=AT)).blocks}
    assert states["ar:turn_2.user.prompt"] == "carried"
    [request] = scribe.asked
    assert "user.prompt" not in [block.type for block in request.blocks if block.turn_id == "turn_2"]
    assert (await hooked.verify()).ok


@pytest.mark.shows("003-5")
async def test_the_boundary_names_its_compaction_with_its_figures() -> None:
    """It covers so many messages, and took the messages from so many tokens to so many."""
    store = MemoryStore()
    timeline = await compacted(store)
    [boundary] = await payloads_of(store, "compaction.boundary")
    [completed] = [event for event in await log_of(store) if event.type == "compaction.completed"]
    assert boundary.compaction == completed.version
    assert (boundary.before_tokens, boundary.after_tokens) == (
        completed.payload.before_tokens,  # type: ignore[attr-defined]
        completed.payload.after_tokens,  # type: ignore[attr-defined]
    )
    assert boundary.messages >= 2
    assert (await timeline.verify()).ok


async def test_only_a_policy_that_wants_a_boundary_has_one() -> None:
    """Seed 003's preset does; it is part of the policy's data."""
    store = MemoryStore()
    await compacted(store, policy=small_policy(max_tokens=4_000, keep_recent_tokens=400))
    assert await payloads_of(store, "compaction.boundary") == []
    assert policies.keep_ratio().boundary


async def test_a_dry_run_records_no_boundary() -> None:
    """And gives the same bytes as the render that follows."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe(answers=["x", "x", "x", "x"]))
    await timeline.append(*FULL)
    dry = await timeline.render(now=AT, record=False)
    assert await payloads_of(store, "compaction.boundary") == []
    assert (await timeline.render(now=AT)).fingerprint == dry.fingerprint


async def test_a_boundary_outlives_the_undo_of_its_compaction() -> None:
    """It says what happened; the window is what it was before, from a snapshot too."""
    store = MemoryStore()
    timeline = await compacted(store)
    before = len(timeline.window.items)
    await timeline.undo_compaction()
    assert len(timeline.window.items) == len(FULL) > before
    assert (await opened(store, policy=POLICY)).window == timeline.window
    assert (await timeline.verify()).ok
    assert len(await payloads_of(store, "compaction.boundary")) == 1


async def test_verify_finds_a_boundary_without_its_compaction() -> None:
    """As a faulty writer would leave it."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())
    await timeline._log.commit([CompactionBoundary(compaction=2)], at=AT)
    report = await timeline.verify()
    assert report.coverage == 1
    assert "boundary names version 2" in report.problems[0]


def test_show_says_what_a_boundary_is() -> None:
    """Its compaction, its messages, the tokens before and after."""
    told = about_event(CompactionBoundary(compaction=40, before_tokens=9_000, after_tokens=1_200, messages=12))
    assert told == "behind 40: 12 messages, 9,000 -> 1,200 tokens"


async def test_the_preset_of_seed_003_goes_through_all_of_it() -> None:
    """A real compaction by `keep_ratio`: summary, acknowledgement, boundary."""
    store = MemoryStore()
    timeline = await opened(store, policy=policies.keep_ratio(max_tokens=20_000), summarizer=Scribe())
    await timeline.append(*FULL)
    context = await timeline.render(now=AT)
    assert [taken.kind for taken in context.decisions] == ["compacted"]
    assert [m["content"] for m in context.to_openai_chat()["messages"][:2]] == [
        "[COMPACT SUMMARY]\nhistory 1",
        "Understood.",
    ]
    assert len(await payloads_of(store, "compaction.boundary")) == 1


async def test_a_hook_that_pins_all_there_is_to_cover_leaves_no_lease_behind() -> None:
    """Only previews are left to do then; nobody has to wait for a summary that is not written."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY)
    await timeline.append(*turn(400, 30), prompt(), *exchange("big", 3_500))

    async def before(_: dict[str, Any]) -> None:
        await timeline.pin("ar:turn_1.user.prompt")
        await timeline.pin("ar:turn_1.assistant.completion")

    hooked = await opened(store, policy=POLICY, summarizer=Scribe(), hooks=Hooks(on_before_compaction=before))
    context = await hooked.render(now=AT)
    assert [taken.kind for taken in context.decisions][:1] == ["previewed"]
    assert await payloads_of(store, "compaction.started")
    assert hooked.window.lease is None
    assert (await hooked.verify()).ok
