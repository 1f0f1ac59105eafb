"""Requests to the summarizer and the summary block that comes of them (seed 002, what compaction produces)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import (
    AT,
    COUNTER,
    after,
    answer,
    apply,
    call,
    compact_fold,
    exchange,
    fold_of,
    grow,
    planned,
    prompt,
    result,
    small_policy,
    turn,
    window_of,
    words,
)
from timeline.blocks import Note, ToolCall, TurnHeader
from timeline.events import NOBODY, BlocksHidden, CompactionCompleted, Covers, Replacement, SummaryParts, WrittenBy
from timeline.facts.of_items import WindowFacts
from timeline.facts.record import record_of
from timeline.facts.record_lines import RECORD_HEADING
from timeline.planning.summary_block import (
    HEADING,
    NOTHING,
    SPLIT_HEADING,
    WrittenSummary,
    compaction_event,
    written_by,
)
from timeline.planning.summary_requests import Wanted, shown_block, summary_requests
from timeline.ports import Summary

if TYPE_CHECKING:
    from timeline.fold.window import Window
    from timeline.planning.plans import Plan
    from timeline.ports import SummaryRequest

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=300)
AUTHOR = WrittenBy(summarizer="scribe", model="m", prompt_version="7")


def split_window() -> Window:
    """Return two finished turns and a long third one, which a cut splits."""
    return window_of(
        *turn(700, asked=20, at=AT), *turn(700, at=after(60)), prompt(30), *exchange("a", 900), *exchange("b", 300)
    )


def asked_paths(request: SummaryRequest | None) -> list[str]:
    """Return the paths of the blocks that a request is about."""
    assert request is not None
    return [block.path for block in request.blocks]


def completed(
    window: Window,
    plan: Plan,
    parts: SummaryParts | None = None,
    author: WrittenBy = AUTHOR,
    **changes: Any,
) -> CompactionCompleted:
    """Build the compaction of a plan."""
    if parts is None:
        parts = SummaryParts(history="HISTORY", turn_prefix="PREFIX" if plan.split_turn_id else "")
    fields = {
        "record": record_of(WindowFacts().within(plan.covers or Covers(ranges=()), window.items)),
        "reason": "over_trigger",
        "taken_paths": (),
        "policy": POLICY,
        "counter": COUNTER,
        "now": after(3_600),
    }
    summary = WrittenSummary(parts, author, window.compactions + 1)
    return compaction_event(window, plan, summary, **{**fields, **changes})


# Requests


@pytest.mark.shows("002-22")
def test_a_split_turn_is_two_requests() -> None:
    """Finished history, and the prefix of the turn that goes on; the carried prompt is in neither."""
    window = split_window()
    requests = summary_requests(window, planned(window, POLICY), COUNTER)
    assert asked_paths(requests.history) == [
        "ar:turn_1.user.prompt",
        "ar:turn_1.assistant.completion",
        "ar:turn_2.user.prompt",
        "ar:turn_2.assistant.completion",
    ]
    assert asked_paths(requests.turn_prefix) == ["tc:turn_3.a.call", "tc:turn_3.a.result"]
    assert requests.kept == SummaryParts()


def test_a_split_turn_that_is_told_together_is_one_request() -> None:
    """Asked in the cached context, a second request would read all of it once more."""
    window, together = split_window(), small_policy(max_tokens=4_000, keep_recent_tokens=300, on_split="together")
    requests = summary_requests(window, planned(window, together), COUNTER)
    assert asked_paths(requests.history)[-2:] == ["tc:turn_3.a.call", "tc:turn_3.a.result"]
    assert requests.turn_prefix is None


def test_each_request_names_its_task() -> None:
    """The history's task is the newest covered prompt; the prefix's is the prompt of its turn."""
    window = window_of(
        prompt(text="first"),
        answer(700),
        prompt(text="second"),
        answer(700),
        prompt(text="third"),
        *exchange("a", 900),
        *exchange("b", 300),
    )
    requests = summary_requests(window, planned(window, POLICY), COUNTER)
    assert requests.history is not None
    assert requests.turn_prefix is not None
    assert (requests.history.task, requests.turn_prefix.task) == ("second", "third")


def test_a_request_has_its_cap_and_the_callers_wishes() -> None:
    """The cap is the plan's for that part; instructions go to both."""
    window = split_window()
    plan = planned(window, POLICY)
    requests = summary_requests(window, plan, COUNTER, Wanted(instructions="mind the tests"))
    assert requests.history is not None
    assert requests.turn_prefix is not None
    assert (requests.history.max_tokens, requests.turn_prefix.max_tokens) == (plan.caps.history, plan.caps.turn_prefix)
    assert requests.history.instructions == requests.turn_prefix.instructions == "mind the tests"


def test_a_cut_between_turns_is_one_request() -> None:
    """Nothing is split, nothing is asked about a prefix."""
    window = window_of(*turn(700), *turn(700), *turn(200, asked=100))
    requests = summary_requests(window, planned(window, POLICY), COUNTER)
    assert requests.history is not None
    assert requests.turn_prefix is None


def test_a_conversation_of_one_turn_has_no_history_to_ask_about() -> None:
    """Only the prefix is summarised."""
    window = window_of(prompt(), *exchange("a", 1_500), *exchange("b", 300))
    requests = summary_requests(window, planned(window, POLICY), COUNTER)
    assert requests.history is None
    assert asked_paths(requests.turn_prefix) == ["tc:turn_1.a.call", "tc:turn_1.a.result"]


def test_the_same_turn_split_again_keeps_its_history_and_asks_once() -> None:
    """The old prefix is integrated with the new rounds; the history stays verbatim without a request."""
    fold = fold_of(prompt(), *exchange("a", 900), *exchange("b", 900))
    parts = SummaryParts(history="OLD HISTORY", turn_prefix="OLD PREFIX")
    compact_fold(fold, 4, carried=(2,), split_turn_id="turn_1", parts=parts)
    grow(fold, *exchange("d", 900), *exchange("e", 300))
    requests = summary_requests(fold.window, planned(fold.window, POLICY), COUNTER)
    assert requests.history is None
    assert requests.kept.history == "OLD HISTORY"
    assert requests.turn_prefix is not None
    assert requests.turn_prefix.previous == "OLD PREFIX"
    assert asked_paths(requests.turn_prefix)[0] == "tc:turn_1.b.call"


def test_a_turn_that_is_over_becomes_history_with_its_prefix() -> None:
    """Both parts of the old summary are what the next history integrates, and the carried prompt joins them."""
    fold = fold_of(prompt(), *exchange("a", 900), *exchange("b", 900))
    parts = SummaryParts(history="OLD HISTORY", turn_prefix="OLD PREFIX")
    compact_fold(fold, 4, carried=(2,), split_turn_id="turn_1", parts=parts)
    grow(fold, *turn(700), *turn(200, asked=100))
    requests = summary_requests(fold.window, planned(fold.window, POLICY), COUNTER)
    assert requests.turn_prefix is None
    assert requests.history is not None
    assert requests.history.previous == "OLD HISTORY\n\nOLD PREFIX"
    assert asked_paths(requests.history)[0] == "ar:turn_1.user.prompt"


def test_another_turn_split_makes_the_old_prefix_history() -> None:
    """The new prefix begins without an old one."""
    fold = fold_of(prompt(), *exchange("a", 900), *exchange("b", 500))
    parts = SummaryParts(history="OLD HISTORY", turn_prefix="OLD PREFIX")
    compact_fold(fold, 4, carried=(2,), split_turn_id="turn_1", parts=parts)
    grow(fold, prompt(), *exchange("d", 900), *exchange("e", 300))
    requests = summary_requests(fold.window, planned(fold.window, POLICY), COUNTER)
    assert requests.history is not None
    assert requests.turn_prefix is not None
    assert requests.history.previous == "OLD HISTORY\n\nOLD PREFIX"
    assert requests.turn_prefix.previous is None


def test_nothing_to_summarise_is_no_request() -> None:
    """What shows nothing is not asked about."""
    window = window_of(*turn(2_000), *turn(2_000))
    plan = replace(planned(window, POLICY), covered=tuple(window_of(TurnHeader(), answer(text="")).items))
    requests = summary_requests(window, plan, COUNTER)
    assert (requests.history, requests.turn_prefix) == (None, None)


def test_the_summarizer_sees_blocks_as_the_model_saw_them() -> None:
    """Hidden blocks show their replacement, omitted ones nothing."""
    fold = fold_of(prompt(), call("a", arguments={"x": words(50)}), result("a", 50, data=["big"]), answer())
    shown = (
        Replacement(version=3, arguments={"x": "…"}, tokens=1),
        Replacement(version=4, text="[a: hidden]", tokens=1),
    )
    apply(fold, 6, BlocksHidden(reason="ttl", blocks=shown))
    apply(fold, 7, BlocksHidden(mode="omit", reason="ttl", blocks=(Replacement(version=5),)))
    _, a_call, a_result, an_answer = fold.window.items
    seen = shown_block(a_call)
    assert isinstance(seen, ToolCall)
    assert seen.arguments == {"x": "…"}
    hidden = shown_block(a_result)
    assert hidden is not None
    assert (hidden.text, hidden.data) == ("[a: hidden]", None)
    assert shown_block(an_answer) is None


# The summary block


@pytest.mark.shows("002-25", "002-26")
def test_the_summary_block_has_its_type_path_and_time() -> None:
    """``conv.range.summary`` at ``su:<turn>.conv.range.summary``, in the turn of the cut."""
    window = split_window()
    block = completed(window, planned(window, POLICY)).block
    assert (block.type, block.author) == ("conv.range.summary", "system")
    assert (block.turn_id, block.path, block.at) == ("turn_3", "su:turn_3.conv.range.summary", after(3_600))


@pytest.mark.shows("002-26")
def test_a_taken_summary_path_is_numbered() -> None:
    """A turn that is split twice has two summaries."""
    window = split_window()
    plan = planned(window, POLICY)
    taken = {"su:turn_3.conv.range.summary", "su:turn_3.conv.range.summary.2"}
    assert completed(window, plan, taken_paths=taken).block.path == "su:turn_3.conv.range.summary.3"


@pytest.mark.shows("002-27")
def test_the_meta_has_every_key() -> None:
    """All that the design names, as JSON."""
    window = split_window()
    plan = planned(window, POLICY)
    event = completed(window, plan)
    meta = dict(event.block.meta)
    assert meta == {
        "covered_turn_ids": ["turn_1", "turn_2"],
        "split_turn_id": "turn_3",
        "covers": {"ranges": [[2, 8]], "summaries": []},
        "carried": [6],
        "first_at": "2026-03-01T12:00:00.000000Z",
        "last_at": "2026-03-01T12:01:00.000000Z",
        "round": 1,
        "before_tokens": plan.before_tokens,
        "after_tokens": event.after_tokens,
        "written_by": {"summarizer": "scribe", "model": "m", "prompt_version": "7"},
        "parts": {"history": "HISTORY", "turn_prefix": "PREFIX"},
    }
    assert event.digest.tool_outputs[0].paths == ("tc:turn_3.a.result",)


@pytest.mark.shows("002-29")
def test_a_cut_between_turns_leaves_out_the_split_turn() -> None:
    """``split_turn_id`` exists only if the compaction cut a turn in half."""
    window = window_of(*turn(700), *turn(700), *turn(200, asked=100))
    event = completed(window, planned(window, POLICY))
    assert "split_turn_id" not in event.block.meta
    assert event.block.meta["covered_turn_ids"] == ["turn_1", "turn_2"]


@pytest.mark.shows("001-38", "004-15")
def test_the_event_holds_what_the_meta_says_and_the_digest_once() -> None:
    """The block's meta has no copy of it: reading the block fills it in."""
    calls = [
        block
        for n in range(60)
        for block in (call(f"c{n}", "Read", arguments={"file_path": f"{n}.py"}), result(f"c{n}"))
    ]
    window = window_of(*turn(700), *turn(700), prompt(), *calls, *turn(200, asked=100))
    plan = planned(window, POLICY)
    event = completed(window, plan)
    assert len(event.digest.files_read) == 60
    assert "compaction_digest" not in event.block.meta
    assert (event.covers, event.carried, event.round) == (plan.covers, plan.carried, 1)
    assert event.compacted_tokens == sum(i.shown_tokens for i in plan.covered)


@pytest.mark.shows("004-30")
def test_the_figures_are_those_of_the_finished_text() -> None:
    """After the compaction the window has exactly the tokens that the event promised."""
    fold = fold_of(*turn(700), *turn(700), prompt(30), *exchange("a", 900), *exchange("b", 300))
    before = fold.window.tokens
    event = completed(fold.window, planned(fold.window, POLICY))
    apply(fold, fold.version + 1, event)
    assert event.before_tokens == before
    assert event.after_tokens == fold.window.tokens
    assert event.tokens == COUNTER.count(event.block.text)


@pytest.mark.shows("002-23")
def test_the_text_has_its_heading_the_history_and_the_split_turn_under_seed_002s_label() -> None:
    """History first, then ``Turn Context (split turn)``."""
    window = split_window()
    text = completed(window, planned(window, POLICY)).block.text
    assert text == f"{HEADING}\n\nHISTORY\n\n## Turn Context (split turn)\n\nPREFIX"
    assert SPLIT_HEADING == "Turn Context (split turn)"


def test_the_exact_record_follows_the_prose() -> None:
    """Failures, files written, open calls and pins are appended word for word."""
    window = window_of(
        Note(text="n"),
        *turn(700),
        prompt(),
        call("w", "Write", arguments={"file_path": "a.py"}),
        result("w"),
        call("m", "bash", arguments={"command": "make"}),
        result("m", 900, exit_status=2),
        call("p", pending=True, response_id="m8"),
        *exchange("z", 300, response_id="m9"),
    )
    text = completed(window, planned(window, POLICY)).block.text
    assert text.endswith(
        f"## {RECORD_HEADING}\n\n"
        "Failed, and not done since:\n- make (exit 2) (@9)\n"
        "Files written:\n- a.py (@6)\n"
        "Open calls:\n- tc:turn_2.p.call\n"
        "Pinned:\n- bl:turn_0.note"
    )


def test_without_any_prose_a_fixed_text_stands_for_it() -> None:
    """Nothing to summarise is said so."""
    window = window_of(*turn(700), *turn(700), *turn(200, asked=40))
    text = completed(window, planned(window, POLICY), parts=SummaryParts()).block.text
    assert text == f"{HEADING}\n\n{NOTHING}"


@pytest.mark.shows("002-28")
def test_covered_turns_add_up_over_compactions() -> None:
    """A summary stands for the turns of those it supersedes, and for a turn that it once split."""
    fold = fold_of(*turn(700), prompt(30), *exchange("a", 900), *exchange("b", 900))
    apply(fold, fold.version + 1, completed(fold.window, planned(fold.window, POLICY)))
    grow(fold, *turn(1_500), *turn(200, asked=100))
    event = completed(fold.window, planned(fold.window, POLICY))
    assert event.block.meta["covered_turn_ids"] == ["turn_1", "turn_2", "turn_3"]
    assert event.round == 2
    apply(fold, fold.version + 1, event)
    grow(fold, *turn(2_500), *turn(200, asked=100))
    event = completed(fold.window, planned(fold.window, POLICY))
    assert event.block.meta["covered_turn_ids"] == ["turn_1", "turn_2", "turn_3", "turn_4", "turn_5"]


def test_covered_blocks_and_their_tokens_add_up_over_compactions() -> None:
    """The event says how much the summary stands for in all; what it carries is not in it."""
    fold = fold_of(*turn(700), prompt(30), *exchange("a", 900), *exchange("b", 900))
    first = completed(fold.window, planned(fold.window, POLICY))
    covered = sum(i.tokens for i in planned(fold.window, POLICY).covered)
    assert (first.covered_blocks, first.covered_tokens) == (len(planned(fold.window, POLICY).covered), covered)
    apply(fold, fold.version + 1, first)
    grow(fold, *turn(1_500), *turn(200, asked=100))
    plan = planned(fold.window, POLICY)
    second = completed(fold.window, plan)
    assert second.covered_blocks == first.covered_blocks + len(plan.covered)
    assert second.covered_tokens == covered + sum(i.tokens for i in plan.covered)


def test_the_turn_that_is_split_again_is_not_among_the_covered_ones() -> None:
    """``covered_turn_ids`` names turns without the split one."""
    fold = fold_of(*turn(700), prompt(30), *exchange("a", 900), *exchange("b", 900))
    apply(fold, fold.version + 1, completed(fold.window, planned(fold.window, POLICY)))
    grow(fold, *exchange("d", 900), *exchange("e", 300))
    event = completed(fold.window, planned(fold.window, POLICY))
    assert event.block.meta["covered_turn_ids"] == ["turn_1"]
    assert event.block.meta["split_turn_id"] == "turn_2"


# Who wrote it


def test_the_writer_is_the_summarizer_with_its_model_and_prompt() -> None:
    """What can be asked about a summary later."""
    who = written_by([Summary(text="x", summarizer="s", model="m", prompt_version="2")])
    assert who == WrittenBy(summarizer="s", model="m", prompt_version="2")


def test_where_one_part_fell_back_the_fallback_is_named_with_its_reason() -> None:
    """Of two parts the one that was not the first choice tells more."""
    first = Summary(text="x", summarizer="s")
    second = Summary(text="y", summarizer="extractive", fallback_reason="s: TimeoutError")
    assert written_by([first, second]) == WrittenBy(summarizer="extractive", fallback_reason="s: TimeoutError")


def test_without_a_request_nobody_wrote_it() -> None:
    """A summary of kept text or of nothing has no writer."""
    assert written_by([]) == WrittenBy(summarizer=NOBODY)


def test_where_nothing_was_shown_the_event_says_that_no_summary_was_due() -> None:
    """A response that failed before it said anything is covered without a word."""
    failed = [answer(text="", response_id=f"m{number}", meta={"error": "overloaded"}) for number in range(2)]
    fold = fold_of(*failed, *turn(1_500), *turn(1_500), *turn(400))
    plan = replace(planned(fold.window, POLICY), covered=tuple(fold.window.items[:2]))
    event = completed(fold.window, plan, author=WrittenBy(summarizer=NOBODY), parts=SummaryParts())
    assert event.none_due
    assert NOTHING in event.block.text


def test_where_a_summary_was_due_and_nobody_wrote_it_there_is_no_event() -> None:
    """Covered tokens without a summary cannot be built, whatever the caller's mistake was."""
    fold = fold_of(*turn(1_500), *turn(1_500), *turn(400))
    with pytest.raises(ValueError, match="nobody wrote a summary"):
        completed(fold.window, planned(fold.window, POLICY), author=WrittenBy(summarizer=NOBODY), parts=SummaryParts())
