"""What a summarizer is asked for: shape, round, original task, and what stays out of its record (seeds 001 and 004)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.scenes import COUNTER, answer, apply, call, exchange, fold_of, planned, prompt, result, turn, window_of
from timeline import policies
from timeline.blocks import CONTINUES_KEY, AssistantCompletion, CustomBlock, Reasoning, SystemMessage, UserPrompt
from timeline.events import REPEATED, BlocksHidden, Replacement
from timeline.planning.account import FixedPart
from timeline.planning.hide import NOTICE, NOTICE_KEY
from timeline.planning.summary_block import unheaded
from timeline.planning.summary_requests import Wanted, shown_block, summary_due, summary_requests, without_failures
from timeline.policy.steps import SummaryForm
from timeline.ports import ABRIDGED_KEY, HIDDEN_KEY

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.window import Window
    from timeline.planning.summary_requests import Requests
    from timeline.ports import SummaryRequest

POLICY: Final = policies.keep_last(messages=2)
WANTED: Final = Wanted(prompt="sections", original_task="Build a flashcard app")
SEED_001: Final = SummaryForm(role="assistant", heading="## Session Summary (Round {round})")
SEED_003: Final = SummaryForm(heading="[COMPACT SUMMARY]\n", answer="Understood.")


def requests(window: Window, wanted: Wanted = WANTED) -> Requests:
    """Plan a cut of a window and say what is asked about it."""
    return summary_requests(window, planned(window, POLICY, FixedPart(system=10)), COUNTER, wanted)


def history(window: Window, wanted: Wanted = WANTED) -> SummaryRequest:
    """Return the request about the finished part."""
    asked = requests(window, wanted).history
    assert asked is not None
    return asked


def test_a_request_has_its_shape_language_round_and_original_task() -> None:
    """All that a policy's step, the log and the caller say."""
    wanted = Wanted(prompt="bullets", language="Indonesian", original_task="Build it", instructions="be brief")
    asked = history(window_of(*turn(1_200), *turn(1_200), *turn()), wanted)
    assert (asked.prompt, asked.language, asked.original_task) == ("bullets", "Indonesian", "Build it")
    assert (asked.instructions, asked.compaction_number) == ("be brief", 1)


def test_a_request_names_no_prompt_behind_its_range() -> None:
    """It stays in sight, and a summary that called it the newest one spoke of names that its range does not have."""
    assert history(window_of(answer(1_200), answer(1_200), prompt(text="later"), answer(20))).task is None
    asked = history(window_of(prompt(text="first"), answer(1_200), answer(1_200), prompt(text="later"), answer(20)))
    assert asked.task == "first"


def test_the_task_is_all_parts_of_the_newest_message() -> None:
    """What a client says behind the words of the user is not the task alone; an older message is no part of it."""
    part = prompt(text="a reminder", meta={CONTINUES_KEY: True}, turn_id="t2")
    asked = history(
        window_of(*turn(1_200), prompt(text="Build it.", turn_id="t2"), part, answer(1_200), *turn(), answer(20))
    )
    assert asked.task == "Build it.\n\na reminder"


# Failed responses (seed 004, gap 1)


@pytest.mark.shows("004-18", "004-101", "R-004-25")
@pytest.mark.parametrize("mark", ["interrupted", "error"])
def test_a_failed_response_without_text_or_call_stays_out(mark: str) -> None:
    """Neither its empty completion nor its reasoning is shown to the summarizer; it is covered all the same."""
    failed: list[Block] = [
        Reasoning(text="hm", response_id="m1"),
        AssistantCompletion(response_id="m1", meta={mark: True}),
    ]
    window = window_of(prompt(), *failed, *turn(1_500), *turn(1_500), *turn())
    plan = planned(window, POLICY, FixedPart(system=10))
    assert {2, 3, 4} <= {item.version for item in plan.covered}
    assert "assistant.reasoning" not in {block.type for block in history(window).blocks}


@pytest.mark.shows("004-103", "R-004-26")
def test_an_aborted_response_with_text_stays_in_with_its_reasoning() -> None:
    """What was said before the end counts."""
    cut = AssistantCompletion(text="I was about to", response_id="m1", meta={"interrupted": True})
    kept = without_failures(window_of(prompt(), Reasoning(text="hm", response_id="m1"), cut).items)
    assert [item.block.type for item in kept] == ["user.prompt", "assistant.reasoning", "assistant.completion"]


@pytest.mark.shows("004-103")
def test_an_aborted_response_with_a_call_stays_in() -> None:
    """A call is content, and so is its result."""
    cut = AssistantCompletion(response_id="m1", meta={"error": "overloaded"})
    window = window_of(prompt(), call("a", response_id="m1"), cut, result("a"))
    assert without_failures(window.items) == list(window.items)


def test_an_error_that_a_client_told_stays_out() -> None:
    """As recorded by a client for a call of the model's that failed: no text of the assistant."""
    told = CustomBlock(type="client.message", author="client", text="API Error: 529", meta={"error": True})
    window = window_of(prompt(), told, answer())
    assert [item.block.type for item in without_failures(window.items)] == ["user.prompt", "assistant.completion"]


def test_a_response_that_did_not_fail_stays_whatever_it_holds() -> None:
    """Mere reasoning is left out only where it is marked."""
    window = window_of(prompt(), Reasoning(text="hm", response_id="m1"), *exchange("a"))
    assert without_failures(window.items) == list(window.items)


def test_a_hidden_block_is_marked_as_such() -> None:
    """So that a record can say that a result was cleared; the stored block has no such mark."""
    fold = fold_of(prompt(), call("a"), result("a", 50, meta={"k": 1}))
    replacement = Replacement(version=4, text="[cleared]", tokens=3)
    apply(fold, 5, BlocksHidden(reason="tool_output", blocks=(replacement,)))
    item = fold.window.items[-1]
    shown = shown_block(item)
    assert shown is not None
    assert shown.meta == {"k": 1, HIDDEN_KEY: "tool_output"}
    assert HIDDEN_KEY not in item.block.meta


def test_an_abridged_block_is_marked_as_such_and_not_as_hidden() -> None:
    """What it says is in sight, so a record tells its message and a script its text."""
    fold = fold_of(prompt(), call("a"), result("a", 50, is_error=True))
    replacement = Replacement(version=4, text="[… 3 lines, as above in @2]", tokens=3, repeats=(2,))
    apply(fold, 5, BlocksHidden(reason=REPEATED, blocks=(replacement,)))
    shown = shown_block(fold.window.items[-1])
    assert shown is not None
    assert (shown.text, shown.meta) == (replacement.text, {ABRIDGED_KEY: REPEATED})


def test_the_notice_that_content_is_hidden_is_given_to_no_summarizer() -> None:
    """Nobody in the conversation said it, and alone it needs no summary."""
    notice = SystemMessage(text=NOTICE, meta={NOTICE_KEY: "hidden"})
    window = window_of(prompt(), *turn(1_500), notice, *turn(1_500), *turn())
    assert NOTICE in {item.block.text for item in planned(window, POLICY, FixedPart(system=10)).covered}
    assert all(NOTICE not in block.text for block in history(window).blocks)
    assert not summary_due([item for item in window.items if item.block.text == NOTICE])


# Summaries among plain messages (seed 001, chaining rule 1)


def told(text: str, **fields: Any) -> list[Block]:
    """Return a conversation of plain messages whose first one of the assistant says this."""
    return [AssistantCompletion(text=text, **fields), *turn(1_500), *turn(1_500), *turn()]


@pytest.mark.shows("001-17", "R-001-15")
@pytest.mark.parametrize("before", [[], [UserPrompt(text="go on")]], ids=["first", "second"])
def test_an_earlier_summary_is_known_by_its_heading(before: list[Block]) -> None:
    """It is integrated as the previous summary, not summarised as a message, and the round goes on from its own."""
    asked = requests(window_of(*before, *told("## Session Summary (Round 2)\n\n### Original Task\nBuild it")))
    assert asked.history is not None
    assert asked.history.previous == "### Original Task\nBuild it"
    assert all("Session Summary" not in block.text for block in asked.history.blocks)
    assert (asked.compaction_number, asked.history.compaction_number) == (3, 3)


@pytest.mark.parametrize(
    ("heading", "number"),
    [("## Session Summary", 2), ("### Session Summary (Compaction Round 4)", 5), ("## Session Summary: Round 7", 8)],
)
def test_the_heading_may_be_written_in_several_ways(heading: str, number: int) -> None:
    """Without a number it is the first round's."""
    assert requests(window_of(*told(f"{heading}\n\nWe built it."))).compaction_number == number


@pytest.mark.shows("001-17")
def test_a_heading_in_the_middle_of_a_conversation_is_no_earlier_summary() -> None:
    """Only at the beginning, and only where the design looks for it."""
    window = window_of(*turn(1_500), *told("## Session Summary (Round 2)\n\nWe built it."))
    assert (history(window).previous, requests(window).compaction_number) == (None, 1)
    first = window_of(*told("## Session Summary (Round 2)\n\nWe built it."))
    assert requests(first, Wanted(prompt="generic")).compaction_number == 1


@pytest.mark.shows("001-17")
def test_a_heading_in_the_middle_of_a_text_is_no_earlier_summary() -> None:
    """An answer that quotes one is a message of the conversation: it is summarised, and the round is the first."""
    window = window_of(*told("It read:\n\n## Session Summary (Round 2)\n\nWe built it."))
    asked = requests(window)
    assert (history(window).previous, asked.compaction_number) == (None, 1)
    assert any("It read:" in block.text for block in history(window).blocks)


# Headings in answers


@pytest.mark.parametrize(
    ("form", "text", "left"),
    [
        (SEED_001, "## Session Summary (Round 3)\n\n### Original Task\nx", "### Original Task\nx"),
        (SEED_001, "### Session Summary (Compaction Round 3)\n### Original Task", "### Original Task"),
        (SEED_001, "### Original Task\nSession Summary", "### Original Task\nSession Summary"),
        (SEED_003, "[COMPACT SUMMARY]\nThey built it.", "They built it."),
        (SEED_003, "[COMPACT SUMMARY] They built it.", "They built it."),
        (SEED_003, "They built it.", "They built it."),
        (SummaryForm(heading=""), "## What Was Accomplished", "## What Was Accomplished"),
    ],
)
def test_a_heading_that_an_answer_begins_with_is_not_written_twice(form: SummaryForm, text: str, left: str) -> None:
    """The form puts it there; a model that was shown an earlier summary likes to copy it."""
    assert unheaded(text, form) == left


def test_no_summary_is_due_of_what_no_request_is_made_about() -> None:
    """A search of OpenAI's counts nothing: covered alone, behind a summary, it ended each render in an error."""
    searched = CustomBlock(type="assistant.part", author="assistant", data={"type": "web_search_call", "id": "ws_1"})
    window = window_of(prompt(), searched, answer())
    assert not summary_due(window.items[1:2])
    assert summary_due(window.items[1:])


def test_no_summary_is_due_of_a_stage_digest_that_a_newer_one_replaces() -> None:
    """The newest one says all of it, and stays in sight."""
    [_, said] = window_of(prompt(), answer()).items
    assert summary_due([said])
    assert not summary_due([said._replace(superseded=True)])
