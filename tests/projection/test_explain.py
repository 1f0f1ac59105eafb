"""Explaining a context: every block's rule with its figures, cache points, account, decisions (design, section 6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.projection.test_context import every_form
from tests.scenes import AT, Scribe, answer, call, exchange, opened, prompt, result, small_policy, turn, words
from timeline import policies
from timeline.blocks import Note, Reasoning, TurnHeader
from timeline.events import BlocksHidden, BlocksRevealed, Replacement, event_id
from timeline.policy.model import CachePointRule
from timeline.projection.explain import in_words
from timeline.projection.explanation_table import explanation_lines
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline import Timeline
    from timeline.projection.context import RenderedContext
    from timeline.projection.explain import ContextBlock


async def told(timeline: Timeline, **given_: Any) -> dict[str, ContextBlock]:
    """Return what a dry run tells of each block, by path."""
    return {block.path: block for block in (await timeline.render(record=False, **given_)).blocks}


async def hide(timeline: Timeline, *versions: int, **fields: Any) -> None:
    """Hide blocks behind a short replacement."""
    hidden = BlocksHidden(blocks=tuple(Replacement(version=v, text="[gone]", tokens=2) for v in versions), **fields)
    await timeline.decide([hidden], at=AT, ids=[event_id(AT)])


async def compacted(**changes: Any) -> RenderedContext:
    """Return a context right behind a compaction that split a turn, with a pinned note and an open call."""
    policy = small_policy(max_tokens=2_000, keep_recent_tokens=300, **changes)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    await timeline.append(Note(text="in French"), prompt(20), call("wait", pending=True, response_id="m1"))
    await timeline.append(*exchange("a", 900), *exchange("b", 900), *exchange("d", 200), answer(100))
    return await timeline.render(system=words(30), ephemeral=["It is noon."])


async def test_every_state_has_its_rule_with_figures() -> None:
    """Each live block says in words and in figures why it is in its state; what is not shown is told too."""
    blocks = await told(await every_form())
    assert {block.state for block in blocks.values()} == {"visible", "carried", "hidden", "omitted", "redacted"}
    rules = {path: (block.state, block.rule, block.reason) for path, block in blocks.items()}
    assert rules["ar:turn_2.user.prompt"] == ("visible", "window", "inside the window")
    assert rules["bl:turn_0.note"] == (
        "carried",
        "pinned",
        "pinned; inside versions 2 to 4, which su:turn_2.conv.range.summary covers (compaction 1)",
    )
    assert rules["tc:turn_2.a.result"] == ("hidden", "ttl", "ttl; replaced 100 tokens by 5, decided at version 15")
    assert blocks["tc:turn_2.a.result"].facts == {"decided_version": 15}
    omitted = next(block for block in blocks.values() if block.state == "omitted")
    assert omitted.reason.startswith(f"chitchat; left out {omitted.tokens:,} tokens, decided at version ")


async def test_a_live_summary_says_how_much_it_stands_for() -> None:
    """Blocks, tokens and versions that it covers, its round, what it freed, and who wrote it."""
    context = await compacted()
    summary = next(block for block in context.blocks if block.rule == "summary")
    covered = [i for i in range(2, summary.version - 1) if i not in {b.version for b in context.blocks}]
    assert summary.facts["blocks"] == len(covered)
    assert summary.facts["tokens"] >= 1_800  # type: ignore[operator]  # a figure
    assert summary.reason.startswith(f"stands for {len(covered)} blocks of ")
    assert summary.reason.endswith(" tokens; by scribe")


async def test_what_a_compaction_carries_says_why() -> None:
    """The split turn's prompt, a pin, and a call that waits for an approval, each with the summary around it."""
    carried = {block.path: block for block in (await compacted()).blocks if block.state == "carried"}
    assert {path: block.rule for path, block in carried.items()} == {
        "bl:turn_0.note": "pinned",
        "ar:turn_1.user.prompt": "split_turn",
        "tc:turn_1.wait.call": "group",
    }
    assert {block.facts["summary_path"] for block in carried.values()} == {"su:turn_1.conv.range.summary"}


async def test_the_first_message_that_is_kept_for_want_of_a_system_prompt_says_so() -> None:
    """It is in front of the summary that stands for what came behind it."""
    policy = policies.keep_last(messages=2, counter="chars4")
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    await timeline.append(*turn(500), *turn(500), *turn())
    await timeline.compact()
    first = (await told(timeline))["ar:turn_1.user.prompt"]
    assert (first.state, first.rule) == ("carried", "first")
    assert first.reason.startswith("the first message, kept in place of a system prompt; inside versions ")


async def test_a_previewed_block_names_the_decision_that_replaced_it() -> None:
    """The preview of an oversize result says its size and the version of the event."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000))
    await timeline.append(prompt(5), *exchange("a", 3_000))
    await timeline.render()
    block = (await told(timeline))["tc:turn_1.a.result"]
    assert (block.state, block.rule, block.tokens) == ("hidden", "spill", 3_000)
    decided = next(item.hide for item in timeline.window.items if item.hide is not None)
    assert block.reason == (
        f"too large, shown as a preview; replaced 3,000 tokens by {block.shown_tokens}, "
        f"decided at version {decided.version}"
    )


async def test_a_hide_by_the_cache_clock_says_how_long_the_cache_was_idle() -> None:
    """The figures of the event are told beside what makes a cache cold."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(5), *exchange("a", 3_412))
    await hide(
        timeline,
        4,
        reason="cold",
        facts={
            "idle_seconds": 1_260,
            "ttl_seconds": 300,
            "grace_seconds": 60,
            "blocks": 1,
            "freed_tokens": 3_410,
            "least_tokens": 800,
        },
    )
    assert (await told(timeline))["tc:turn_1.a.result"].reason == (
        "cold cache, 1,260 s idle >= 300 + 60, 1 block freed 3,410 >= 800 tokens; "
        "replaced 3,412 tokens by 2, decided at version 5"
    )


@given(st.text("abcdefg_", min_size=1), st.dictionaries(st.text("xyz_", min_size=1), st.integers(), max_size=4))
def test_any_reason_with_any_figures_is_told(reason: str, facts: dict[str, int]) -> None:
    """A hide of a later version is no error: its own words and figures are printed."""
    said = in_words(reason, {**facts, "decided_version": 7}, shown=3, whole=40)
    assert said.endswith("replaced 40 tokens by 3, decided at version 7")
    assert all(f"{value:,}" in said for value in facts.values())


async def test_a_revealed_block_is_inside_the_window_again() -> None:
    """The reason is that of the state now, not of a decision that was taken back."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(5), *exchange("a", 40))
    await hide(timeline, 3, reason="manual")
    await hide(timeline, 4, reason="cold")
    await timeline.decide([BlocksRevealed(versions=(4,))], at=AT, ids=[event_id(AT)])
    blocks = await told(timeline)
    assert [blocks[f"tc:turn_1.a.{kind}"].rule for kind in ("call", "result")] == ["manual", "window"]


@pytest.mark.parametrize(
    ("blocks", "path", "rule"),
    [
        ([prompt(), call("a")], "tc:turn_1.a.call", "open_call"),
        ([prompt(), call("a"), prompt(), answer()], "tc:turn_1.a.call", "dead_call"),
        ([prompt(), result("a")], "tc:turn_1.a.result", "late_result"),
        ([TurnHeader(), prompt()], "bl:turn_1.turn.header", "empty"),
        ([Note(text="French"), prompt()], "bl:turn_0.note", "pinned"),
    ],
)
async def test_a_visible_block_that_is_sent_otherwise_says_so(blocks: list[Any], path: str, rule: str) -> None:
    """Open and dead calls, late results, and blocks of which nothing is sent."""
    timeline = await opened(MemoryStore())
    await timeline.append(*blocks)
    block = (await told(timeline))[path]
    assert (block.state, block.rule) == ("visible", rule)


async def test_reasoning_behind_a_rewritten_prefix_says_that_its_signature_is_void() -> None:
    """A hide before it is why it is not sent, or sent to some models only; the version of that hide is told."""
    timeline = await opened(MemoryStore())
    signed = Reasoning(data={"type": "thinking", "thinking": "hm", "signature": "c2ln"})
    await timeline.append(prompt(5), *exchange("a", 40), signed, answer(), prompt(5), signed, answer())
    await hide(timeline, 4, reason="cold")
    blocks = await told(timeline)
    rules = [(blocks[f"bl:turn_{n}.assistant.reasoning"].rule, n) for n in (1, 2)]
    assert rules == [("rewritten", 1), ("tool_loop", 2)]
    assert blocks["bl:turn_1.assistant.reasoning"].facts == {"decided_version": 10}
    assert blocks["bl:turn_2.assistant.reasoning"].reason.endswith(
        "as far as the model takes it; decided at version 10"
    )


async def test_a_call_whose_result_is_omitted_goes_with_it() -> None:
    """It is visible by its state, costs nothing, and says why."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(5), *exchange("a", 40))
    await hide(timeline, 4, reason="chitchat", mode="omit")
    block = (await told(timeline))["tc:turn_1.a.call"]
    assert (block.state, block.rule, block.shown_tokens) == ("visible", "result_omitted", 0)


async def test_each_cache_point_names_the_rule_that_placed_it() -> None:
    """Previous turn, pre-tail and tail, with the figures of the policy."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn(), prompt(), *[block for c in "abcdef" for block in exchange(c)])
    points = (await timeline.render()).explanation.cache_points
    assert [(point.kind, point.path, point.reason) for point in points] == [
        ("previous_turn", "ar:turn_1.assistant.completion", "the last block before the current turn turn_2"),
        (
            "pre_tail",
            "tc:turn_2.b.result",
            "the last block of round 3 of 7, 4 before the newest; from 5 on",
        ),
        ("tail", "tc:turn_2.f.result", "the last block"),
    ]


async def test_a_lagging_cache_point_names_how_far_a_provider_looks_back() -> None:
    """Where two points are far apart, a third one stands between."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), *[answer(response_id="one") for _ in range(30)])
    first, _ = (await timeline.render()).explanation.cache_points
    assert (first.kind, first.facts) == ("lagging", {"lookback_blocks": 20})


async def test_the_dump_is_json_of_a_stable_shape() -> None:
    """`timeline render --explain --json` prints these keys."""
    dump = (await compacted()).explanation.dump()
    assert json.loads(json.dumps(dump)) == dump
    assert list(dump) == [
        "conversation",
        "version",
        "fingerprint",
        "policy",
        "blocks",
        "kept_long",
        "cache_points",
        "ephemeral",
        "account",
        "counts",
        "decisions",
        "overflow",
    ]
    assert set(dump["blocks"][0]) == {
        "version",
        "path",
        "type",
        "turn_id",
        "state",
        "reason",
        "tokens",
        "shown_tokens",
        "rule",
        "facts",
    }
    assert set(dump["cache_points"][0]) == {"kind", "path", "facts", "reason"}
    assert dump["ephemeral"] == 1


async def test_the_table_says_that_the_fixed_part_is_kept_for_long() -> None:
    """Where there is a system prompt, and the policy asks for it."""
    rule = CachePointRule(kept_long="fixed_part")
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000, cache_points=rule))
    await timeline.append(prompt(10))
    told = "^ cache point (fixed part): system prompt and tools, for the provider's long time"
    assert (await timeline.render(system=words(7))).explain().splitlines()[1].strip() == told
    assert told not in (await timeline.render()).explain()


async def test_the_table_says_that_messages_are_kept_for_long() -> None:
    """At each of their cache points, where the policy asks for everything."""
    rule = CachePointRule(kept_long="everything")
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000, cache_points=rule))
    await timeline.append(prompt(10))
    told = "^ cache point (tail): the last block, for the provider's long time"
    assert (await timeline.render()).explain().splitlines()[2].strip() == told


@pytest.mark.shows("004-100")
async def test_the_table_has_a_line_a_block_then_the_account_then_the_decisions() -> None:
    """State, tokens, path, why, where the cache points are, and every figure against its bound."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000))
    await timeline.append(*turn(20), prompt(10))
    lines = (await timeline.render(system=words(7), ephemeral=["noon"])).explain().splitlines()
    assert lines == [
        "address  state      tokens  path                            why",
        "     @2  visible         5  ar:turn_1.user.prompt           inside the window",
        "     @3  visible        20  ar:turn_1.assistant.completion  inside the window",
        "                            ^ cache point (previous turn): the last block before the current turn turn_2",
        "     @4  visible        10  ar:turn_2.user.prompt           inside the window",
        "                            ^ cache point (tail): the last block",
        "                         1  1 ephemeral text, never cached or kept",
        "",
        "        7    1 %  system prompt",
        "        1    0 %  ephemeral tail",
        "       20    2 %  completions",
        "       15    2 %  prompts",
        "       43    4 %  of 1,000; 957 left",
        "      900   90 %  above this it compacts",
        "      700   70 %  down to this",
    ]


@pytest.mark.shows("004-100")
async def test_the_table_tells_what_the_render_decided() -> None:
    """What was compacted, with its figures; what was refused, with the figures that it failed by."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000, keep_recent_tokens=100))
    await timeline.append(*turn(600), *turn(400))
    last = (await timeline.render()).explain().splitlines()[-1]
    assert last.startswith("compacted (over trigger): 1,010 -> ")
    assert last.endswith("summary path su:turn_2.conv.range.summary, split turn id turn_2")
    refused = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000))
    await refused.append(prompt(60), answer(860))
    last = (await refused.render()).explain().splitlines()[-1]
    assert last.startswith("refused (no")


async def test_the_table_of_nothing_is_the_header_and_the_account() -> None:
    """An empty conversation can be explained."""
    lines = (await (await opened(MemoryStore())).render()).explain().splitlines()
    assert lines[0].split() == ["address", "state", "tokens", "path", "why"]
    assert "of 80,000; 80,000 left" in lines[2]


@pytest.mark.parametrize("width", [72, 80, 100, 160, 400])
async def test_the_table_fits_its_width_unless_a_path_is_longer(width: int) -> None:
    """Reasons are wrapped, paths are whole, and no figure is lost, at any width."""
    explanation = (await compacted()).explanation
    lines = list(explanation_lines(explanation, width=width))
    assert [line for line in lines if len(line) > width and " " in line[30:]] == []
    text = " ".join(" ".join(lines).split())
    assert all(block.path in text for block in explanation.blocks)
    assert all(" ".join(block.reason.split()) in text for block in explanation.blocks if block.rule != "window")
