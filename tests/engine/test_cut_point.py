"""Seed 002 through the public API: where a cut falls, what is asked and recorded, and what a split turn looks like."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.scenes import AT, Scribe, after, answer, call, exchange, opened, payloads_of, prompt, result, turn, words
from timeline import Timeline, open_store, policies
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    CustomBlock,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnHeader,
    UserPrompt,
)
from timeline.errors import CompactionRefused
from timeline.policy.files import find_policy
from timeline.store.memory import MemoryStore
from timeline.summarizers import CallableSummarizer
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

    from timeline import Policy, RenderedContext
    from timeline.blocks import Block

SYSTEM: Final = "You help."


def keeping(tokens: int, **changes: Any) -> Any:
    """Return the design's policy with so many recent tokens; a forced compaction moves the cut for nothing else."""
    return policies.cut_point(
        **{"counter": "chars4", "keep_recent_tokens": tokens, "target": 1.0, "trigger": 1.0, **changes}
    )


async def compacted(tokens: int, *blocks: Block, **options: Any) -> Timeline:
    """Return a conversation of these blocks, compacted once."""
    timeline = await opened(MemoryStore(), policy=keeping(tokens), **{"summarizer": Scribe(), **options})
    await timeline.append(*blocks)
    await timeline.compact()
    return timeline


async def first_kept(tokens: int, *blocks: Block) -> str:
    """Return the path of the first block that a cut keeps, the split turn's prompts behind the summary left out."""
    timeline = await compacted(tokens, *blocks)
    items = [item for item in timeline.window.items if not item.is_summary and not item.carried]
    return items[0].block.path.split(":", 1)[1]


def shown(context: RenderedContext) -> list[str]:
    """Return the paths of a context's entries, less their turns."""
    return [entry.path.split(".", 1)[1] for entry in context.neutral.entries]


# When it is due


@pytest.mark.shows("002-3")
@pytest.mark.parametrize("where", ["tools", "ephemeral"])
async def test_tools_and_the_callers_tail_count_beside_system_prompt_and_blocks(where: str) -> None:
    """At 0.9 of the limit nothing happens; a tool's or a tail's tokens above it, and it is compacted."""
    policy = policies.cut_point(counter="chars4", max_tokens=4_000)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    await timeline.append(*turn(1_500), *turn(1_500), *turn(500, asked=80))
    full = await timeline.render(system=words(10))
    assert (full.account.total, full.decisions) == (3_600, ())
    more: dict[str, Any] = {"tools": [{"name": "run"}], "ephemeral": ["abcd"]}
    context = await timeline.render(system=words(10), **{where: more[where]})
    assert [taken.kind for taken in context.decisions] == ["compacted"]


# Where the cut falls

EARLIER: Final[list[Any]] = [*turn(2_000), *turn(2_000)]


@pytest.mark.shows("002-11", "002-12", "002-13", "002-14", "002-17", "002-19", "002-33")
@pytest.mark.parametrize(
    ("block", "kept"),
    [
        (UserPrompt(text=words(100)), "turn_3.user.prompt"),
        (TurnHeader(text=words(100)), "turn_3.turn.header"),
        (AssistantCompletion(text=words(100), response_id="m"), "turn_2.assistant.completion.2"),
        (Attachment(text=words(100)), "turn_2.attachment"),  # by the user
        (CustomBlock(type="my.note", author="planner", text=words(100)), "turn_2.my.note"),  # another agent
        (CustomBlock(type="my.note", author="assistant", text=words(100)), "turn_2.my.note"),
        (CustomBlock(type="my.note", author="tool", text=words(100)), "turn_2.assistant.completion"),
        (SystemMessage(text=words(100)), "turn_2.assistant.completion"),
    ],
)
async def test_a_cut_falls_before_a_candidate_and_nothing_else(block: Block, kept: str) -> None:
    """100 tokens are to be kept, of which the last block has all: a candidate is the cut, any other block is not."""
    assert await first_kept(100, *EARLIER, block) == kept


@pytest.mark.shows("002-11", "002-12", "002-15", "002-16", "002-19", "002-58")
async def test_a_result_counts_towards_what_is_kept_and_is_never_the_cut() -> None:
    """The walk back ends inside the result of the first call; the cut goes on to the next call."""
    blocks = [*EARLIER, prompt(), *exchange("a", 500), *exchange("b", 300), *exchange("d", 100)]
    assert await first_kept(100, *blocks) == "turn_3.d.call"
    assert await first_kept(350, *blocks) == "turn_3.d.call"
    assert await first_kept(450, *blocks) == "turn_3.b.call"


@pytest.mark.shows("002-18", "002-19")
@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (300, "turn_5.assistant.completion"),
        (301, "turn_5.user.prompt"),
        (400, "turn_5.user.prompt"),
        (401, "turn_4.assistant.completion"),
        (700, "turn_4.assistant.completion"),
        (701, "turn_4.user.prompt"),
    ],
)
async def test_the_walk_back_ends_as_soon_as_enough_is_kept(keep: int, kept: str) -> None:
    """Reaching the figure exactly is enough: answers of 300 tokens, prompts of 100."""
    blocks = [*EARLIER, *(block for _ in range(3) for block in turn(300, asked=100))]
    assert await first_kept(keep, *blocks) == kept


@pytest.mark.shows("002-17", "002-20")
async def test_what_is_no_message_does_not_count_and_stays_with_what_it_introduces() -> None:
    """A system message of 1,000 tokens before the prompt of the cut: the cut goes back over it."""
    blocks = [*EARLIER, SystemMessage(text=words(1_000)), *turn(300, asked=100)]
    assert (await first_kept(400, *blocks)).endswith("system.message")


@pytest.mark.shows("002-11", "002-20")
async def test_a_cut_goes_back_to_just_behind_a_summary_and_no_further() -> None:
    """Between the summary and the prompt of the cut is a system message: nothing is left to summarise, so it stays."""
    blocks = [*EARLIER, SystemMessage(text=words(1_000)), *turn(300, asked=100)]
    timeline = await compacted(400, *blocks)
    left = [item.block.type for item in timeline.window.items]
    assert left == ["conv.range.summary", "system.message", "user.prompt", "assistant.completion"]
    with pytest.raises(CompactionRefused, match="no_progress"):
        await timeline.compact()
    assert [item.block.type for item in timeline.window.items] == left


@pytest.mark.shows("002-20", "002-32")
async def test_a_later_cut_goes_back_to_just_behind_the_summary() -> None:
    """The second compaction summarises what came since the first, and integrates that one."""
    scribe = Scribe()
    timeline = await compacted(400, *EARLIER, *turn(300, asked=100), summarizer=scribe)
    await timeline.append(*turn(2_000), *turn(300, asked=100))
    await timeline.compact()
    first, second = scribe.asked
    assert [block.path for block in first.blocks] == [
        f"ar:turn_{n}.{kind}" for n in (1, 2) for kind in ("user.prompt", "assistant.completion")
    ]
    assert [block.path for block in second.blocks] == [
        f"ar:turn_{n}.{kind}" for n in (3, 4) for kind in ("user.prompt", "assistant.completion")
    ]
    assert second.previous == "history 1"


@pytest.mark.shows("002-21", "002-22", "002-29")
@pytest.mark.parametrize(
    ("start", "splits"),
    [
        ([UserPrompt(text=words(100))], False),
        ([TurnHeader(text="Turn"), UserPrompt(text=words(100))], False),
        ([CustomBlock(type="my.wish", author="user", text=words(100))], False),
        ([AssistantCompletion(text=words(100))], True),
        ([ToolCall(call_id="c", name="run", text=words(100)), ToolResult(call_id="c")], True),
    ],
)
async def test_a_cut_that_is_no_turn_start_splits_the_turn(start: list[Block], *, splits: bool) -> None:
    """A header, a prompt, or any block by the user starts a turn."""
    timeline = await compacted(100, *EARLIER, *start)
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert ("split_turn_id" in completed.block.meta) is splits
    assert (completed.split_turn_id is not None) is splits


# What is asked and recorded


@pytest.mark.shows("002-22", "002-23", "002-24", "002-30", "002-31", "002-34", "R-002-4", "R-002-7")
async def test_a_split_turns_prefix_is_asked_for_by_itself() -> None:
    """At most 800 tokens of history and 400 of prefix; under its heading, behind the history."""
    scribe = Scribe()
    blocks = [*EARLIER, prompt(50), *exchange("a", 3_000), *exchange("b", 3_000), *exchange("d", 500)]
    timeline = await compacted(500, *blocks, summarizer=scribe)
    history, prefix = sorted(scribe.asked, key=lambda request: request.kind)
    assert (history.kind, history.max_tokens, prefix.kind, prefix.max_tokens) == ("history", 800, "turn_prefix", 400)
    assert [block.path.split(".", 1)[1] for block in prefix.blocks] == ["a.call", "a.result", "b.call", "b.result"]
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    told = completed.block.text
    assert "history 1\n\n## Turn Context (split turn)\n\nturn prefix 1" in told
    assert shown(await timeline.render()) == ["conv.range.summary", "user.prompt", "d.call", "d.result"]


@pytest.mark.shows("002-30", "002-31")
async def test_neither_part_of_a_summary_takes_more_than_half_of_what_it_summarises() -> None:
    """Of two turns of 605 tokens it is 605, of two exchanges of 302 in the split turn 302."""
    scribe = Scribe()
    await compacted(
        500,
        *turn(600),
        *turn(600),
        prompt(),
        *exchange("a", 300),
        *exchange("b", 300),
        *exchange("d", 500),
        summarizer=scribe,
    )
    assert {request.kind: request.max_tokens for request in scribe.asked} == {"history": 605, "turn_prefix": 302}


@pytest.mark.shows("002-30")
async def test_a_long_range_is_summarised_chunk_by_chunk() -> None:
    """Each question but the first holds the answer before it, and none exceeds the model's window."""
    asked: list[str] = []

    async def model(text: str) -> str:
        asked.append(text)
        return f"answer {len(asked)}"

    summarizer = CallableSummarizer(model, window_tokens=3_000)
    timeline = await compacted(
        400, *(block for _ in range(12) for block in turn(450, asked=450)), summarizer=summarizer
    )
    assert len(asked) > 2
    assert all(f"answer {number}" in text for number, text in enumerate(asked[1:], start=1))
    assert all(len(text) <= 4 * (3_000 - 800) for text in asked)
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert completed.parts.history == f"answer {len(asked)}"


@pytest.mark.shows("002-25", "002-26", "002-27", "002-28", "002-46", "002-47", "002-48", "002-49")
async def test_the_summary_block_has_its_type_path_turns_and_digest() -> None:
    """Artifacts, outputs by tool, searches with their hits, hidden blocks with what was shown for them."""
    timeline = await opened(MemoryStore(), policy=keeping(400), summarizer=Scribe())
    await timeline.append(
        prompt(),
        Attachment(text="x", mime="application/pdf", meta={"file": "plan"}),
        call("g", "Grep", arguments={"pattern": "x"}),
        result("g", text="Found 2 files\nsrc/a.py\nsrc/b.py:12: x"),
        *exchange("h", 700, name="bash"),
        AssistantCompletion(text="report", mime="text/markdown", meta={"sources_used": ["so:1", "so:2"]}),
        *turn(3_000),
        *turn(300, asked=100),
    )
    await timeline.hide("tc:turn_1.h.result", text="[700 tokens of output]")
    await timeline.compact()
    summary = timeline.window.summary
    assert summary is not None
    assert (summary.block.type, summary.block.path) == ("conv.range.summary", "su:turn_3.conv.range.summary")
    assert summary.block.meta["covered_turn_ids"] == ["turn_1", "turn_2"]
    digest: Any = (await timeline.read(summary.block.path)).meta["compaction_digest"]
    assert digest["artifacts"] == [
        {"path": "fi:turn_1.plan", "mime": "application/pdf"},
        {
            "path": "ar:turn_1.assistant.completion",
            "mime": "text/markdown",
            "sources_used": ["so:1", "so:2"],
        },
    ]
    assert [(used["tool"], used["count"], used["paths"]) for used in digest["tool_outputs"]] == [
        ("Grep", 1, ["tc:turn_1.g.result"]),
        ("bash", 1, ["tc:turn_1.h.result"]),
    ]
    [search] = digest["searches"]
    assert (search["query"], search["hits"], search["hit_paths"]) == ("x", 2, ["src/a.py", "src/b.py"])
    assert digest["hidden"] == [{"path": "tc:turn_1.h.result", "replacement": "[700 tokens of output]"}]


@pytest.mark.shows("002-46", "002-48")
async def test_the_digest_has_the_visibility_of_artifacts_and_the_paths_that_a_memory_search_found() -> None:
    """What the application says of an artifact, or how its block was shown; hits are paths that can be read."""
    timeline = await opened(MemoryStore(), policy=keeping(400), summarizer=Scribe())
    await timeline.append(
        prompt(),
        Attachment(text="x" * 900, mime="application/pdf", meta={"file": "plan", "visibility": "external"}),
        Attachment(text="y" * 900, meta={"file": "notes"}),
        AssistantCompletion(text="report", meta={"sources_used": ["so:1"]}),
        call("w", "write_report"),
        result("w", mime="application/pdf", meta={"sources_used": ["so:2"], "visibility": "internal"}),
        call("m", "memsearch", arguments={"query": "deadline"}),
        result("m", text="Found 2 hits\nar:turn_1.user.prompt: x\nfi:turn_1.plan: y"),
        *turn(3_000),
        *turn(300, asked=100),
    )
    await timeline.hide("fi:turn_1.notes", text="[gone]")
    await timeline.compact()
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    digest: Any = completed.digest.dump()
    assert [
        (made["path"], made.get("visibility", "visible"), made.get("sources_used")) for made in digest["artifacts"]
    ] == [
        ("fi:turn_1.plan", "external", None),
        ("fi:turn_1.notes", "hidden", None),
        ("ar:turn_1.assistant.completion", "visible", ["so:1"]),
        ("tc:turn_1.w.result", "internal", ["so:2"]),
    ]
    [search] = digest["searches"]
    assert (search["query"], search["tool"], search["hits"]) == ("deadline", "memsearch", 2)
    assert [(await timeline.read(path)).text[:4] for path in search["hit_paths"]] == ["abc ", "xxxx"]


# What is visible, and what is loaded


@pytest.mark.shows("002-2", "002-8", "002-9", "002-10")
async def test_the_stream_begins_at_the_latest_summary_with_replacements_and_fresh_cache_points() -> None:
    """Two compactions leave one summary; a hidden block shows its replacement, and the points are on what is left."""
    timeline = await compacted(400, *EARLIER, *turn(300, asked=100))
    earlier = await timeline.render()
    await timeline.append(*turn(2_000), *turn(2_000), prompt(200), *exchange("a", 200), answer(100))
    await timeline.compact()
    await timeline.hide("tc:turn_6.a.result", text="[gone]")
    context = await timeline.render()
    assert [entry.path for entry in context.neutral.entries if entry.type == "conv.range.summary"] == [
        context.neutral.entries[0].path
    ]
    assert {entry.path: entry.text for entry in context.neutral.entries}["tc:turn_6.a.result"] == "[gone]"
    assert context.cache_points[-1].index == len(context.neutral.entries) - 1
    assert context.cache_points[-1].index != earlier.cache_points[-1].index


@pytest.mark.shows("002-38", "002-39", "002-40", "002-41", "002-43", "002-44", "R-002-5", "002-63")
@pytest.mark.parametrize(
    ("rule", "rounds", "points"),
    [
        ({"min_rounds": 6}, 4, {"tail": "turn_2.c3.result"}),
        ({"min_rounds": 6}, 5, {"pre_tail": "turn_2.c0.result", "tail": "turn_2.c4.result"}),
        ({"offset_rounds": 2}, 3, {"tail": "turn_2.c2.result"}),
        ({"offset_rounds": 2}, 4, {"pre_tail": "turn_2.c1.result", "tail": "turn_2.c3.result"}),
    ],
)
async def test_cache_points_stand_on_last_blocks_and_the_pre_tail_needs_five_rounds(
    rule: dict[str, int], rounds: int, points: dict[str, str]
) -> None:
    """The answer before the current turn's prompt, the last result of round N - 4 (or N - 2), the newest block.

    The turn before is a round as well: one more than `rounds`.
    """
    points = {"previous_turn": "turn_1.assistant.completion", **points}
    policy = policies.cut_point(counter="chars4", cache_points=rule)
    timeline = await opened(MemoryStore(), policy=policy)
    await timeline.append(*turn(), prompt(), *(block for n in range(rounds) for block in exchange(f"c{n}")))
    context = await timeline.render()
    entries = context.neutral.entries
    assert {point.kind: entries[point.index].path.split(":")[1] for point in context.cache_points} == points


@pytest.mark.shows("002-35", "002-36", "R-002-2")
async def test_the_next_load_begins_at_the_latest_summary(tmp_path: Path) -> None:
    """Covered blocks are read by their path in this turn and later; a new process loads none of them."""
    async with open_store(tmp_path / "a.db") as store:
        timeline = await opened(store, policy=keeping(400), summarizer=Scribe())
        await timeline.append(*EARLIER, *turn(300, asked=100))
        await timeline.compact()
        assert (await timeline.read("ar:turn_1.assistant.completion")).text == words(2_000)
    async with open_store(tmp_path / "a.db") as store:
        again = await opened(store, policy=keeping(400))
        assert shown(await again.render()) == ["conv.range.summary", "user.prompt", "assistant.completion"]
        loaded = [event.version for event in (await store.load_window("c")).events]
        assert min(loaded) == 6  # the opening is version 1, the covered blocks are 2 to 5
        assert (await again.read("ar:turn_1.assistant.completion")).text == words(2_000)


@pytest.mark.shows("R-002-8")
async def test_as_first_shipped_it_hides_290_seconds_after_the_last_call() -> None:
    """300 seconds less 10, two turns intact; nothing a second earlier, and an hour of the provider's does not count."""
    hiding = {"unit": "turns", "intact": 2, "files": 2, "old": 10, "ttl": 300, "grace": -10}
    policy = policies.cut_point(counter="chars4", keep_recent=0.7, hiding=hiding, max_tokens=20_000)
    for seconds, decided in ((289, []), (290, ["hidden"])):
        timeline = await opened(MemoryStore(), policy=policy)
        for number in range(4):
            await timeline.append(prompt(), *exchange(f"c{number}", 900), answer())
        await timeline.record_model_call(Usage(input_tokens=9, cache_write_1h_tokens=9), model="m", now=AT)
        context = await timeline.render(now=after(seconds))
        assert [taken.kind for taken in context.decisions] == decided
    assert [block.path for block in context.blocks if block.state == "hidden"] == [
        "tc:turn_1.c0.result",
        "tc:turn_2.c1.result",
    ]


@pytest.mark.shows("R-002-8", "R-002-9")
@pytest.mark.parametrize(
    "policy",
    [
        policies.cut_point(counter="chars4", max_tokens=20_000, keep_recent=0.7, halvings=0),
        find_policy("seed-002-first", max_tokens=20_000, counter="chars4"),
    ],
    ids=["by parameters", "as a published policy"],
)
async def test_as_first_shipped_it_keeps_seven_tenths_of_the_room(policy: Policy) -> None:
    """Of 20,000 tokens less a system prompt of 100, in turns of 460: 31 turns are 13,930 tokens or more."""
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    await timeline.append(*(block for _ in range(40) for block in turn(430, asked=30)))
    context = await timeline.render(system=words(100))
    assert [taken.kind for taken in context.decisions] == ["compacted"]
    kept = sum(item.tokens for item in timeline.window.items if not item.is_summary)
    assert 0.7 * (20_000 - 100) == 13_930 <= kept == 31 * 460


@pytest.mark.shows("R-002-8")
async def test_as_first_shipped_ten_turns_are_visible_and_two_intact() -> None:
    """Of fourteen turns the oldest four give way, prompt and answer too; of eight more the outputs do."""
    hiding = {"unit": "turns", "intact": 2, "files": 2, "old": 10, "ttl": 300, "grace": -10, "minimum": 0.0}
    timeline = await opened(MemoryStore(), policy=policies.cut_point(counter="chars4", hiding=hiding))
    for number in range(14):
        await timeline.append(prompt(400), *exchange(f"c{number}", 400), answer(400))
    await timeline.record_model_call(Usage(input_tokens=9), model="m", started_at=AT, now=AT)
    await timeline.render(now=after(290))
    states = [item.state == "hidden" for item in timeline.window.items]  # four blocks a turn
    turns = [tuple(states[4 * number :][:4]) for number in range(14)]
    gone, cleared, whole = (True, False, True, True), (False, False, True, False), (False,) * 4
    assert turns == [gone] * 4 + [cleared] * 8 + [whole] * 2


# What our repairs of the cut change


@pytest.mark.shows("002-3")
@pytest.mark.parametrize(("old", "taken"), [(400, "refused"), (2_900, "refused"), (3_100, "compacted")])
async def test_above_the_trigger_nothing_is_done_where_too_little_would_be_freed(old: int, taken: str) -> None:
    """Less than a tenth of 18,110 tokens, with a summary as long as may be: refused, and sent, since it fits."""
    timeline = await opened(
        MemoryStore(), policy=policies.cut_point(counter="chars4", max_tokens=20_000), summarizer=Scribe()
    )
    await timeline.append(*turn(old), prompt(), answer(18_100 - old))
    context = await timeline.render()
    assert [decision.kind for decision in context.decisions] == [taken]
    assert len(context.neutral.entries) == (4 if taken == "refused" else 3)
    assert (context.account.total > context.account.trigger == 18_000) is (taken == "refused")


@pytest.mark.shows("002-15", "002-19", "002-33", "002-58")
@pytest.mark.parametrize(
    "first", [call("p", arguments={"x": "w" * 2_000}, response_id="m"), answer(503, response_id="m")]
)
async def test_a_cut_inside_a_response_moves_to_its_beginning(first: Block) -> None:
    """Walking back 700 tokens comes to the second call; what the model said with it, and its results, stay too."""
    said = [first, call("q", arguments={"x": "w" * 2_000}, response_id="m")]
    results = [result(block.call_id, 100) for block in said if block.call_id]
    timeline = await compacted(700, *turn(2_000), prompt(50), *said, *results)
    kept = [item.block for item in timeline.window.items if not item.is_summary and not item.carried]
    assert [block.type for block in kept[:2]] == [block.type for block in said]
    assert len(kept) == len(said) + len(results)


@pytest.mark.shows("002-33")
async def test_a_kept_block_that_is_too_large_is_a_preview() -> None:
    """The newest result has 9,000 of 10,000 tokens: what is kept begins at the cut, and would not fit."""
    policy = policies.cut_point(counter="chars4", max_tokens=10_000)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    await timeline.append(*turn(2_500), prompt(50), *exchange("a", 9_000))
    context = await timeline.render()
    assert [taken.kind for taken in context.decisions] == ["compacted", "previewed"]
    assert [(block.path, block.state) for block in context.blocks][-1] == ("tc:turn_2.a.result", "hidden")
    assert context.account.total <= 9_000


@pytest.mark.shows("002-18", "002-33")
@pytest.mark.parametrize(("halvings", "kept"), [(4, 4), (0, 7)])
async def test_what_is_kept_is_halved_until_the_target_is_met(halvings: int, kept: int) -> None:
    """0.65 of 10,000 tokens are seven turns of 930; with a summary the target of 7,000 is met by half of that."""
    policy = policies.cut_point(counter="chars4", max_tokens=10_000, keep_recent=0.65, halvings=halvings)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    await timeline.append(*(block for _ in range(10) for block in turn(900, asked=30)))
    await timeline.render()
    answers = [item for item in timeline.window.items if isinstance(item.block, AssistantCompletion)]
    assert len(answers) == kept


@pytest.mark.shows("002-32", "002-33", "002-34", "002-45")
async def test_a_split_turns_prompts_stay_in_view_and_are_not_summarised() -> None:
    """Prompt and follow-up of the turn, before the cut; the summarizer is asked about what was done for them."""
    scribe = Scribe()
    timeline = await compacted(
        400,
        *turn(2_000),
        prompt(50, turn_id="t"),
        *exchange("a", 2_000, turn_id="t"),
        prompt(60, turn_id="t"),
        *exchange("b", 400, turn_id="t"),
        summarizer=scribe,
    )
    told = [(request.kind, [block.type for block in request.blocks]) for request in scribe.asked]
    assert told == [
        ("history", ["user.prompt", "assistant.completion"]),
        ("turn_prefix", ["react.tool.call", "react.tool.result"]),
    ]
    carried = [item.block.path for item in timeline.window.items if item.carried]
    assert carried == ["ar:t.user.prompt", "ar:t.user.prompt.2"]


# A turn that is split again


async def split_twice(*, earlier: list[Block]) -> Timeline:
    """Return a conversation whose newest turn has a follow-up and a steer, and was split by two compactions."""
    timeline = await opened(MemoryStore(), policy=keeping(400), summarizer=Scribe())
    await timeline.append(*earlier, prompt(text="Build it.", turn_id="t"), *exchange("a", 2_000, turn_id="t"))
    await timeline.append(UserPrompt(text="Use SQLite, not a server.", turn_id="t"), *exchange("b", 2_000))
    await timeline.append(UserPrompt(text="Stop after the tests.", turn_id="t"), *exchange("d", 400))
    await timeline.compact()
    await timeline.append(UserPrompt(text="And no mocks.", turn_id="t"), *exchange("e", 2_000), *exchange("f", 400))
    await timeline.compact()
    return timeline


@pytest.mark.shows("002-60")
@pytest.mark.parametrize("earlier", [[], [*turn(2_000)]])
async def test_a_turn_that_is_split_again_keeps_every_prompt_of_its_user_verbatim(earlier: list[Block]) -> None:
    """The prompt, the follow-ups and the steers; the summarizer is not asked about them."""
    timeline = await split_twice(earlier=earlier)
    context = await timeline.render()
    assert [entry.text for entry in context.neutral.entries if entry.type == "user.prompt"] == [
        "Build it.",
        "Use SQLite, not a server.",
        "Stop after the tests.",
        "And no mocks.",
    ]
    assert timeline.window.compactions == 2
    reopened = await opened(timeline._store, policy=keeping(400))
    assert (await reopened.render()).fingerprint == context.fingerprint
    assert (await timeline.verify()).ok


@pytest.mark.shows("002-26", "002-61")
@pytest.mark.parametrize("earlier", [[], [*turn(2_000)]])
async def test_its_order_is_prompt_checkpoint_newest_steps(earlier: list[Block]) -> None:
    """The first prompt, the summary with what the turn did so far, the follow-ups, the steps since; in every format."""
    timeline = await split_twice(earlier=earlier)
    context = await timeline.render()
    assert shown(context) == [
        "user.prompt",
        "conv.range.summary.2",
        "user.prompt.2",
        "user.prompt.3",
        "user.prompt.4",
        *("f.call", "f.result"),
    ]
    assert [block.path.split(".", 1)[1] for block in context.blocks] == shown(context)
    told = json.dumps(context.to_anthropic()["messages"])
    assert told.index("Build it.") < told.index("turn prefix 2") < told.index("no mocks") < told.index('"f"')
    assert ("history" in told) is bool(earlier)


@pytest.mark.shows("002-61")
async def test_once_the_turn_is_over_its_summary_comes_first_again() -> None:
    """Prompt and checkpoint become history, and nothing stands before the summary."""
    timeline = await split_twice(earlier=[])
    await timeline.append(*turn(2_000), *turn(300, asked=100))
    await timeline.compact()
    assert shown(await timeline.render()) == ["conv.range.summary", "user.prompt", "assistant.completion"]
    assert (await timeline.verify()).ok


@pytest.mark.shows("002-60")
async def test_follow_ups_beyond_the_carried_share_are_summarised() -> None:
    """An application that puts everything into one turn: the first, the newest, and as many before it as fit, stay."""
    scribe = Scribe()
    policy = policies.cut_point(counter="chars4", max_tokens=4_000)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=scribe)
    for number in range(200):
        await timeline.append(UserPrompt(text=f"Wish {number}: " + words(27), turn_id="t"), answer(30, turn_id="t"))
        context = await timeline.render()
    carried = [block for block in context.blocks if block.state == "carried"]
    assert carried[0].path == "ar:t.user.prompt"
    assert 10 < len(carried) <= 0.15 * 4_000 / 30 + 2
    assert sum(block.shown_tokens for block in carried) <= 0.15 * 4_000 + 2 * 30
    asked = {block.text.split(":")[0] for request in scribe.asked for block in request.blocks}
    assert "Wish 0" not in asked
    assert "Wish 1" in asked
    assert (await timeline.verify()).ok


@pytest.mark.shows("002-45", "002-61")
async def test_a_turn_that_is_split_for_the_first_time_has_its_summary_in_front() -> None:
    """As the design draws it: the summary of all before the cut, then what is left of the turn."""
    timeline = await opened(MemoryStore(), policy=keeping(400), summarizer=Scribe())
    await timeline.append(*turn(2_000), prompt(), *exchange("a", 2_000), *exchange("b", 400))
    await timeline.compact()
    assert shown(await timeline.render(system=SYSTEM)) == ["conv.range.summary", "user.prompt", "b.call", "b.result"]
