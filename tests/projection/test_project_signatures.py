"""Signed reasoning behind a rewritten prefix: what is marked, what is sent to which model, and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import (
    AT,
    Scribe,
    answer,
    apply,
    call,
    compact_fold,
    exchange,
    fold_of,
    grow,
    opened,
    prompt,
    result,
    small_policy,
    turn,
)
from timeline import open_store
from timeline.blocks import Reasoning
from timeline.events import (
    ABANDONED,
    BlockRedacted,
    BlocksHidden,
    BlocksRevealed,
    CompactionReverted,
    ModelCalled,
    Replacement,
    event_id,
)
from timeline.fold.fold import Fold
from timeline.policy.model import CachePointRule
from timeline.projection.project import Projector
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline import Timeline
    from timeline.events import Payload
    from timeline.fold.window import Window

LOOSE, LOOP, WHOLE = "rewritten", "in_loop", "whole"


def thinking(name: str) -> dict[str, Any]:
    """Return a signed part."""
    return {"type": "thinking", "thinking": name, "signature": f"sig-{name}"}


def thought(name: str, **fields: Any) -> Reasoning:
    """Return signed reasoning."""
    return Reasoning(text=name, data=thinking(name), **fields)


def hidden(version: int) -> BlocksHidden:
    """Return the hide of one block."""
    return BlocksHidden(reason="manual", blocks=(Replacement(version=version, text="[gone]", tokens=1),))


def marks(window: Window) -> dict[str, str]:
    """Return what each thought of a window is marked as."""
    shown = [e for e in Projector().project(window, CachePointRule()).entries if e.type == "assistant.reasoning"]
    return {e.text: LOOP if e.in_loop else LOOSE if e.rewritten else WHOLE for e in shown}


def left(*versions: int) -> BlocksHidden:
    """Return the omission of blocks that a framework's list went back behind."""
    return BlocksHidden(mode="omit", reason=ABANDONED, blocks=tuple(Replacement(version=v) for v in versions))


def sent(fold: Fold) -> list[dict[str, Any]]:
    """Return all that is sent, without what may differ by the newest turn alone."""
    entries = Projector().project(fold.window, CachePointRule()).entries
    return [entry.model_dump(exclude={"in_loop"}) for entry in entries]


def loops() -> Fold:
    """Fold two turns of two rounds each; the second is a tool loop that goes on. The first block has version 2."""
    return fold_of(
        prompt(),  # 2
        thought("a", response_id="1"),
        *exchange("a", response_id="1"),  # 4 and 5
        thought("b", response_id="2"),
        answer(response_id="2"),  # 7
        prompt(),
        thought("c", response_id="3"),
        *exchange("c", response_id="3"),  # 10 and 11
        thought("d", response_id="4"),
        *exchange("d", response_id="4"),
    )


def test_the_newest_tool_loop_is_told_from_the_turns_before() -> None:
    """A hide in front of all rewrites every prefix; the thoughts since the newest prompt are the loop's."""
    fold = loops()
    apply(fold, 15, hidden(2))
    assert marks(fold.window) == {"a": LOOSE, "b": LOOSE, "c": LOOP, "d": LOOP}


def test_what_stands_before_the_change_keeps_its_prefix() -> None:
    """A signature knows nothing of what comes after it."""
    fold = loops()
    apply(fold, 15, hidden(11))
    assert marks(fold.window) == {"a": WHOLE, "b": WHOLE, "c": WHOLE, "d": LOOP}


def test_a_prompt_that_waits_for_its_answer_ends_no_loop() -> None:
    """The newest response's turn counts, not the newest prompt: that is the one which the provider looks at."""
    fold = loops()
    grow(fold, prompt())
    apply(fold, 16, hidden(2))
    assert marks(fold.window) == {"a": LOOSE, "b": LOOSE, "c": LOOP, "d": LOOP}


def test_what_was_sent_once_is_sent_until_the_next_decision() -> None:
    """Later turns change nothing of what the loop was when the prefix was rewritten; a later decision does."""
    fold = loops()
    apply(fold, 15, hidden(2))
    before = Projector().project(fold.window, CachePointRule()).entries
    grow(fold, prompt(), thought("e", response_id="5"), *exchange("e", response_id="5"))
    assert Projector().project(fold.window, CachePointRule()).entries[: len(before)] == before
    assert marks(fold.window) == {"a": LOOSE, "b": LOOSE, "c": LOOP, "d": LOOP, "e": WHOLE}
    apply(fold, 20, hidden(4))
    assert marks(fold.window) == {"a": LOOSE, "b": LOOSE, "c": LOOSE, "d": LOOSE, "e": LOOP}


def test_a_compaction_leaves_the_loop_that_it_divides() -> None:
    """The rounds behind the summary are still those of the turn, whose prompt is carried."""
    fold = loops()
    compact_fold(fold, 11, carried=(8,))
    assert marks(fold.window) == {"d": LOOP}


def test_an_undo_gives_older_thoughts_their_prefix_back_and_takes_it_from_newer_ones() -> None:
    """What was thought behind the summary is not behind it any more."""
    fold = Fold("c", without=(15,))
    again = loops()
    fold.version = 1
    grow(fold, *(item.block for item in again.window.items))
    assert compact_fold(fold, 7) == 15
    grow(fold, thought("e", response_id="5"), *exchange("e", response_id="5"), prompt(), thought("f"), answer())
    apply(fold, fold.version + 1, CompactionReverted(versions=(15,)))
    assert marks(fold.window) == {"a": WHOLE, "b": WHOLE, "c": WHOLE, "d": WHOLE, "e": LOOSE, "f": LOOP}
    grow(fold, thought("g", response_id="7"))
    assert marks(fold.window)["g"] == WHOLE


def test_a_branch_that_is_taken_up_again_has_the_thoughts_that_were_signed_there() -> None:
    """Their prefix is what it was; those of the other branch have theirs back when that one is taken up, too."""
    fold = loops()
    first = range(6, 15)
    apply(fold, 15, left(*first))
    grow(fold, prompt(), thought("e", response_id="5"), *exchange("e", response_id="5"), thought("f"), answer())
    second = range(16, fold.version + 1)
    assert marks(fold.window) == {"a": WHOLE, "e": WHOLE, "f": WHOLE}
    apply(fold, fold.version + 1, BlocksRevealed(versions=tuple(first)))
    apply(fold, fold.version + 1, left(*second))
    assert marks(fold.window) == {"a": WHOLE, "b": WHOLE, "c": WHOLE, "d": WHOLE}
    apply(fold, fold.version + 1, BlocksRevealed(versions=tuple(second)))
    apply(fold, fold.version + 1, left(*first))
    assert marks(fold.window) == {"a": WHOLE, "e": WHOLE, "f": WHOLE}


def test_what_was_thought_while_a_block_was_hidden_is_behind_another_prefix_once_it_is_back() -> None:
    """What came before the hide has its prefix again, what came after it has lost its own."""
    fold = loops()
    apply(fold, 15, hidden(2))
    grow(fold, prompt(), thought("e", response_id="5"), answer(response_id="5"), prompt(), answer())
    apply(fold, fold.version + 1, BlocksRevealed(versions=(2,)))
    assert marks(fold.window) == {"a": WHOLE, "b": WHOLE, "c": WHOLE, "d": WHOLE, "e": LOOSE}


def test_up_to_projection_6_all_that_is_shown_again_is_a_rewrite() -> None:
    """Contexts that were recorded by that rule are built again as they were sent."""
    fold = loops()
    apply(fold, 15, left(*range(10, 15)))
    apply(fold, 16, BlocksRevealed(versions=tuple(range(10, 15))))
    for number, forms in ((7, {WHOLE}), (6, {WHOLE, LOOP}), (5, {WHOLE, LOOP}), (3, {WHOLE, LOOP})):
        entries = Projector(number).project(fold.window, CachePointRule()).entries
        assert {LOOP if entry.in_loop else WHOLE for entry in entries} == forms


_TURNED = st.lists(
    st.tuples(st.sampled_from(["think", "omit", "hide", "reveal", "redact"]), st.integers(0, 9)), max_size=24
)


@given(_TURNED)
def test_a_thought_goes_back_exactly_where_its_prefix_is_what_it_was_when_it_was_signed(
    decisions: list[tuple[str, int]],
) -> None:
    """Whatever was left out, hidden, shown again and erased. Two hides count as two texts, though they may be one."""
    fold = fold_of(prompt(), answer())
    when_signed: dict[str, list[dict[str, Any]]] = {}
    for number, (what, place) in enumerate(decisions):
        live = [item.version for item in fold.window.items]
        version = live[place % len(live)]
        match what:
            case "think":
                grow(fold, prompt(), thought(f"t{number}", response_id=f"r{number}"), answer(response_id=f"r{number}"))
                when_signed[f"t{number}"] = sent(fold)[:-2]
            case "omit":
                apply(fold, fold.version + 1, left(version))
            case "hide":
                replaced = Replacement(version=version, text=f"[gone {number}]", tokens=1)
                apply(fold, fold.version + 1, BlocksHidden(reason="manual", blocks=(replaced,)))
            case "reveal":
                apply(fold, fold.version + 1, BlocksRevealed(versions=(version,)))
            case _:
                apply(fold, fold.version + 1, BlockRedacted(version=version, reason="asked"))
    now = sent(fold)
    for place, entry in enumerate(now):
        if entry["data"] is not None:
            assert entry["rewritten"] == (now[:place] != when_signed[entry["text"]]), entry["text"]


async def in_a_loop(timeline: Timeline, *payloads: Payload) -> None:
    """Append a finished turn and a tool loop, and take decisions."""
    await timeline.append(prompt(), thought("a", response_id="1"), answer(response_id="1"))
    await timeline.append(prompt(), thought("b", response_id="2"), call("b", response_id="2"), result("b"))
    await timeline.decide(payloads, at=AT, ids=[event_id(AT) for _ in payloads])


def thoughts(body: dict[str, Any]) -> list[Any]:
    """Return the signed parts of a request."""
    return [part for message in body["messages"] for part in message["content"] if part["type"] == "thinking"]


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("", True),
        ("claude-3-7-sonnet-20250219", True),
        ("claude-sonnet-4-5-20250929", True),
        ("claude-opus-4-8", True),
        ("claude-opus-5", True),
        ("claude-opus-5-20260901", True),
        ("us.anthropic.claude-fable-5-v1:0", True),
        ("claude-fable-5-1", False),
        ("claude-opus-5-5", False),
        ("claude-haiku-5-5-20261001", False),
        ("us.anthropic.claude-opus-5-5-v1:0", False),
        ("anthropic/claude-fable-6", False),
        ("claude-opus-6-20270101", False),
    ],
)
async def test_the_loops_thoughts_go_to_models_that_do_not_bind_them_to_their_prefix(model: str, *, sent: bool) -> None:
    """Byte for byte to those that demand their tool loop back, and never to those that refuse it there."""
    timeline = await opened(MemoryStore())
    await in_a_loop(timeline, hidden(2), ModelCalled(model=model))
    context = await timeline.render(record=False)
    assert thoughts(context.to_anthropic()) == ([thinking("b")] if sent else [])


async def test_the_caller_may_say_which_model_it_is_for() -> None:
    """The recorded call's model is only what the engine knows; another one may be asked next."""
    timeline = await opened(MemoryStore())
    await in_a_loop(timeline, hidden(2), ModelCalled(model="claude-opus-5-5"))
    context = await timeline.render(record=False)
    assert thoughts(context.to_anthropic()) == []
    assert thoughts(context.to_anthropic(model="claude-opus-4-5")) == [thinking("b")]


async def test_the_model_changes_neither_fingerprint_nor_log() -> None:
    """It says what a provider takes, not what the context is: the next render records nothing anew."""
    timeline = await opened(MemoryStore())
    await in_a_loop(timeline, hidden(2))
    before = await timeline.render()
    await timeline.record_model_call(model="claude-opus-5-5")
    version = timeline.version
    assert (await timeline.render()).fingerprint == before.fingerprint
    assert timeline.version == version


async def test_marks_and_model_are_the_same_after_opening_again(tmp_path: Path) -> None:
    """A compaction, an undo, and the model that was called: all through a snapshot."""
    policy = small_policy(max_tokens=4_000, keep_recent_tokens=400, hiding=None)
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline = await opened(store, policy=policy, summarizer=Scribe())
        await timeline.append(*turn(1_600), *turn(1_600), prompt(300), thought("a"), *exchange("a", 200))
        await timeline.render()
        await timeline.record_model_call(model="claude-opus-4-5")
        await timeline.append(thought("b", response_id="5"), *exchange("b", 20, response_id="5"))
        assert marks(timeline.window) == {"a": LOOP, "b": WHOLE}
        await timeline.undo_compaction()
        assert marks(timeline.window) == {"a": WHOLE, "b": LOOP}
        assert (await timeline.verify()).ok
    async with open_store(str(tmp_path / "a.db")) as store:
        again = await opened(store, policy=policy)
        assert again.window == timeline.window
        assert marks(again.window) == {"a": WHOLE, "b": LOOP}
        assert again.window.model == "claude-opus-4-5"
