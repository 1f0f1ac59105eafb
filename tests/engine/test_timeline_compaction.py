"""The seven topics that seed 002 names as its test coverage, in its words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenes import (
    AT,
    Scribe,
    answer,
    call,
    exchange,
    opened,
    paths,
    payloads_of,
    prompt,
    result,
    small_policy,
    turn,
)
from timeline import RenderedContext, policies
from timeline.events import BlocksHidden, Replacement, event_id
from timeline.policy.model import OverFallingShare
from timeline.store.memory import MemoryStore

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)


@pytest.mark.shows("002-1", "002-5", "002-53", "R-002-6", "002-8", "002-25", "002-26", "002-28")
async def test_summary_insertion() -> None:
    """Above the ceiling a render inserts a summary block and drops the older blocks from the visible stream."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(1_500), *turn(1_500), *turn(400, asked=300))
    context = await timeline.render(system="You help.")
    assert [e.path for e in context.neutral.entries] == [
        "su:turn_3.conv.range.summary",
        "ar:turn_3.user.prompt",
        "ar:turn_3.assistant.completion",
    ]
    assert [d.kind for d in context.decisions] == ["compacted"]
    [completed] = await payloads_of(store, "compaction.completed")
    assert completed.block.type == "conv.range.summary"
    assert completed.block.path == "su:turn_3.conv.range.summary"
    assert completed.block.meta["covered_turn_ids"] == ["turn_1", "turn_2"]
    assert "compaction_digest" in (await timeline.read(completed.block.path)).meta
    assert "history 1" in completed.block.text
    assert (await timeline.verify()).ok


@pytest.mark.shows("002-24", "002-34", "002-54", "R-002-6", "002-22", "002-23", "002-33")
async def test_split_turn_handling() -> None:
    """A cut inside a turn summarises its prefix separately; the cut block itself stays visible."""
    store = MemoryStore()
    scribe = Scribe()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*turn(1_500), prompt(20), *exchange("a", 1_500), *exchange("b", 1_000), *exchange("d", 400))
    await timeline.render()
    [completed] = await payloads_of(store, "compaction.completed")
    assert sorted(scribe.kinds) == ["history", "turn_prefix"]
    assert completed.block.meta["split_turn_id"] == "turn_2"
    assert "## Turn Context (split turn)\n\nturn prefix 1" in completed.block.text
    assert paths(timeline.window.items) == [
        "su:turn_2.conv.range.summary",
        "ar:turn_2.user.prompt",
        "tc:turn_2.d.call",
        "tc:turn_2.d.result",
    ]


@pytest.mark.shows("002-3", "002-55", "R-002-6")
async def test_no_compaction_under_limit() -> None:
    """At 0.9 of the limit, system prompt included, nothing happens; one token more and it does."""
    store = MemoryStore()
    scribe = Scribe()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*turn(1_500), *turn(1_500), *turn(500, asked=80))
    assert timeline.window.tokens == 3_590
    context = await timeline.render(system="abc " * 10)
    assert context.account.total == context.account.trigger == 3_600
    assert (context.decisions, scribe.asked) == ((), [])
    assert len(context.neutral.entries) == 6
    await timeline.render(system="abc " * 11)
    assert scribe.kinds == ["history"]


@pytest.mark.shows("002-32", "002-56", "R-002-6")
async def test_compaction_after_existing_summary() -> None:
    """Compaction summarises everything between the last summary and the cut point, and integrates the summary."""
    store = MemoryStore()
    scribe = Scribe()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*turn(1_500), *turn(1_500), *turn(400, asked=300))
    await timeline.render()
    await timeline.append(*turn(1_500), *turn(1_500), *turn(400, asked=300))
    context = await timeline.render()
    first, second = await payloads_of(store, "compaction.completed")
    assert [block.path for block in scribe.asked[1].blocks] == [
        "ar:turn_3.user.prompt",
        "ar:turn_3.assistant.completion",
        "ar:turn_4.user.prompt",
        "ar:turn_4.assistant.completion",
        "ar:turn_5.user.prompt",
        "ar:turn_5.assistant.completion",
    ]
    assert scribe.asked[1].previous == "history 1"
    assert second.covers.summaries == (9,)
    assert second.covers.ranges[0][0] == first.covers.ranges[0][0]
    assert second.block.meta["covered_turn_ids"] == ["turn_1", "turn_2", "turn_3", "turn_4", "turn_5"]
    assert [e.type for e in context.neutral.entries].count("conv.range.summary") == 1
    assert (await timeline.verify()).ok


@pytest.mark.shows("002-57", "R-002-6")
async def test_digest_includes_hidden_blocks() -> None:
    """A block that was hidden when it was covered is in the digest with its replacement text, and can be read back."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(prompt(), call("a"), result("a", 1_500), answer(1_500))
    hidden = BlocksHidden(reason="ttl", blocks=(Replacement(version=4, text="[run: 1500 tokens]", tokens=5),))
    await timeline.decide([hidden], at=AT, ids=[event_id(AT)])
    await timeline.append(*turn(2_000), *turn(400, asked=300))
    await timeline.render()
    [completed] = await payloads_of(store, "compaction.completed")
    digest: Any = (await timeline.read(completed.block.path)).meta["compaction_digest"]
    assert digest["hidden"] == [{"path": "tc:turn_1.a.result", "replacement": "[run: 1500 tokens]"}]
    assert (await timeline.read("tc:turn_1.a.result")).text == "abc " * 1_500


@pytest.mark.shows("002-15", "002-58", "R-002-6")
async def test_tool_boundary_preservation() -> None:
    """However much is kept, no call is shown without its result and no result without its call."""
    for keep in range(50, 2_100, 150):
        timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=4_000, keep_recent_tokens=keep))
        batch = [call(f"p{n}", arguments={"x": "w" * 600}) for n in range(4)]
        results = [result(f"p{n}", 150) for n in range(4)]
        await timeline.append(*turn(1_500), prompt(), *exchange("a", 900), *batch, *results, *exchange("b", 700))
        context = await timeline.render()
        shown = {e.path for e in context.neutral.entries}
        calls = {path.removesuffix(".call") for path in shown if path.endswith(".call")}
        answers = {path.removesuffix(".result") for path in shown if path.endswith(".result")}
        assert calls == answers
        assert not any(e.loose for e in context.neutral.entries)


@pytest.mark.shows("002-37", "002-59", "R-002-6")
async def test_cache_points_after_render() -> None:
    """The seed's example: five turns A to E; after a summary of A to C the pre-tail point is omitted."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=4_000, keep_recent_tokens=1_200))
    for name in "ABCDE":
        await timeline.append(prompt(100, turn_id=name), answer(800 if name < "D" else 500))
        if name == "C":  # points of an earlier context, by the handle that compacts
            assert points(await timeline.render()) == {
                "previous_turn": "ar:B.assistant.completion",
                "tail": "ar:C.assistant.completion",
            }
    uncompacted = await opened(store, policy=policies.none(counter="chars4"))
    assert points(await uncompacted.render(record=False)) == {
        "pre_tail": "ar:A.assistant.completion",
        "previous_turn": "ar:D.assistant.completion",
        "tail": "ar:E.assistant.completion",
    }
    context = await timeline.render()
    assert [e.path for e in context.neutral.entries][:2] == ["su:D.conv.range.summary", "ar:D.user.prompt"]
    assert points(context) == {"previous_turn": "ar:D.assistant.completion", "tail": "ar:E.assistant.completion"}
    await timeline.hide("ar:E.assistant.completion", text="[gone]")
    await timeline.hide("ar:D.assistant.completion", mode="omit")
    assert points(await timeline.render()) == {
        "previous_turn": "ar:D.user.prompt",
        "tail": "ar:E.assistant.completion",
    }


def points(context: RenderedContext) -> dict[str, str]:
    """Return the path before each cache point, by kind."""
    return {p.kind: context.neutral.entries[p.index].path for p in context.cache_points}


async def test_behind_a_large_fixed_part_a_wide_window_is_used() -> None:
    """The default refused it: what it uses of a wide window was all taken by system prompt and tools."""
    fold = policies.balanced(counter="chars4", max_tokens=20_000, trigger=OverFallingShare(first=10_000), hiding=None)
    timeline = await opened(MemoryStore(), policy=fold, summarizer=Scribe())
    taken = 0
    for _ in range(20):
        await timeline.append(*turn(300, asked=100))
        taken += len((await timeline.render(system="system prompt. " * 3_500)).decisions)
    assert 0 < taken <= 6
