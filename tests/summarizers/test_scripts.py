"""How a record is written out in the prompts of the published designs (seeds 001 and 004)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from timeline.blocks import AssistantCompletion, Attachment, Block, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.ports import HIDDEN_KEY, SummaryRequest
from timeline.summarizers import CallableSummarizer
from timeline.summarizers.prompts import PROMPTS, TURN_PREFIX, prompt_for
from timeline.summarizers.scripts import CONTINUATION, CUT, NUMBERED
from timeline.tokens import get_counter

TALK: Final[tuple[Block, ...]] = (
    UserPrompt(text="Build a flashcard app", turn_id="t1"),
    Attachment(mime="image/png", turn_id="t1"),
    Reasoning(text="hm", response_id="m1"),
    AssistantCompletion(text="I'll start by looking", response_id="m1"),
    ToolCall(call_id="c1", name="Read", arguments={"path": "a.ts"}, response_id="m1"),
    ToolResult(call_id="c1", name="Read", text="x" * 501),
    AssistantCompletion(text="Done", response_id="m2"),
)
REQUEST: Final = SummaryRequest(
    *("history", TALK, None, "Fix it", 1_000),
    counter=get_counter("o200k_base"),
    prompt="sections",
    original_task="Build a flashcard app",
)


async def asked(request: SummaryRequest) -> str:
    """Return the prompt that a model is sent."""
    prompts: list[str] = []

    async def model(prompt: str) -> str:
        prompts.append(prompt)
        return "- done"

    await CallableSummarizer(model).summarize(request)
    [prompt] = prompts
    return prompt


@pytest.mark.shows("001-31", "001-32", "R-001-17")
def test_seed_001s_messages_are_numbered_from_0_under_their_role() -> None:
    """A response's text and calls are one message, each result is one, and 500 characters of it are shown."""
    assert list(NUMBERED.entries(TALK)) == [
        "[0] USER:\nBuild a flashcard app\n(image/png)",
        '[1] ASSISTANT:\nI\'ll start by looking\n[Tool: Read({"path":"a.ts"})]',
        f"[2] TOOL:\n[Result: {'x' * 500}...]",
        "[3] ASSISTANT:\nDone",
    ]


@pytest.mark.shows("001-33", "R-001-17")
def test_seed_001s_messages_are_cut_at_2000_characters() -> None:
    """What is longer says that it was cut."""
    [told] = NUMBERED.entries([UserPrompt(text="y" * 2_001)])
    assert told == f"[0] USER:\n{'y' * 2_000}{CUT}"
    assert CUT == "\n[...truncated...]"
    [whole] = NUMBERED.entries([UserPrompt(text="y" * 2_000)])
    assert whole == f"[0] USER:\n{'y' * 2_000}"


@pytest.mark.shows("001-32", "004-72", "R-001-17", "R-004-17")
def test_a_result_of_500_characters_is_whole() -> None:
    """Only what was cut ends in three dots."""
    result = ToolResult(call_id="c", name="Read", text="x" * 500)
    assert list(NUMBERED.entries([result])) == [f"[0] TOOL:\n[Result: {'x' * 500}]"]
    assert list(CONTINUATION.entries([result])) == [f"TOOL:\n[Read result: {'x' * 500}]"]


@pytest.mark.shows("001-46", "R-001-18")
def test_a_single_huge_result_is_cut_before_it_is_summarised() -> None:
    """Seed 001's edge case: above 10,000 characters."""
    [told] = NUMBERED.entries([ToolResult(call_id="c", text="z" * 1_000_000)])
    assert told == f"[0] TOOL:\n[Result: {'z' * 500}...]"


@pytest.mark.shows("004-72", "R-004-17")
def test_seed_004s_messages_say_which_results_were_cleared() -> None:
    """The role, then the parts; a result that was hidden is no result any more."""
    cleared = ToolResult(call_id="c2", name="bash", text="[Tool output cleared]", meta={HIDDEN_KEY: "tool_output"})
    assert list(CONTINUATION.entries([*TALK[2:6], cleared])) == [
        'ASSISTANT:\nI\'ll start by looking\n[Called Read with: {"path":"a.ts"}]',
        f"TOOL:\n[Read result: {'x' * 500}...]",
        "TOOL:\n[bash result: cleared]",
    ]


def test_a_record_of_nothing_but_reasoning_shows_it() -> None:
    """There is always something to summarise."""
    assert list(NUMBERED.entries([Reasoning(text="hm")])) == ["[0] ASSISTANT:\nhm"]


@pytest.mark.shows("001-34", "004-72", "R-001-17")
async def test_the_messages_of_a_literal_prompt_stand_apart() -> None:
    """``---`` between empty lines."""
    assert "(image/png)\n\n---\n\n[1] ASSISTANT:" in await asked(REQUEST)


@pytest.mark.shows("001-26", "R-001-11")
def test_seed_001s_figures_go_with_its_prompt() -> None:
    """800 tokens asked of 1,000."""
    assert PROMPTS["sections"].asked_share * 1_000 == 800


@pytest.mark.shows("001-22", "001-23", "001-24", "001-30", "R-001-11")
async def test_the_prompt_for_sections_has_seed_001s_headings_and_columns() -> None:
    """Exactly these, the task verbatim, and no previous summary in the first round."""
    prompt = await asked(REQUEST)
    for line in (
        "## Session Summary (Round 1)",
        "### Original Task",
        "### Completed Work",
        "| File/Component | Action | Description |",
        "### Key Technical Decisions",
        "### Current State",
        "### Pending Work",
        "### Errors & Resolutions",
        "- At most 800 tokens.",
        "None - this is the first compaction round.",
        "## Original User Task\nBuild a flashcard app",
    ):
        assert line in prompt
    assert "incorporates context" not in prompt


@pytest.mark.shows("001-37", "R-001-14")
@pytest.mark.parametrize(("number", "rounds"), [(1, []), (2, [1]), (3, [2])])
async def test_from_the_second_round_on_the_prompt_asks_for_the_line_about_the_rounds(
    number: int, rounds: list[int]
) -> None:
    """N - 1 previous rounds, and the whole previous summary to integrate."""
    before = "### Original Task\nBuild a flashcard app" if rounds else None
    prompt = await asked(replace(REQUEST, compaction_number=number, previous=before))
    lines = [line for line in prompt.splitlines() if "incorporates context" in line]
    assert lines == [f"This summary incorporates context from {n} previous compaction rounds." for n in rounds]
    assert f"## Previous Summary\n{before or 'None - this is the first compaction round.'}" in prompt
    assert f"## Session Summary (Round {number})" in prompt


@pytest.mark.shows("004-61", "004-64", "004-65", "R-004-15", "R-004-16")
async def test_the_prompt_to_continue_from_has_seed_004s_five_headings() -> None:
    """Names, ids and values, rejected options, no vague phrases, under 2,000 tokens."""
    prompt = await asked(replace(REQUEST, prompt="continuation", max_tokens=2_000))
    headings = [line for line in prompt.splitlines() if line.startswith("## ")]
    assert headings == [
        "## What Was Accomplished",
        "## Current State",
        "## User Preferences (Critical)",
        "## What Comes Next",
        "## Technical Context",
    ]
    for words in ("Rejected options", "names, ids and values", "no vague phrases", "under 2000 tokens"):
        assert words in prompt


@pytest.mark.shows("000-30", "R-000-15")
async def test_the_prompt_for_bullets_asks_for_three_to_five_in_a_language() -> None:
    """Seed 000's, in Indonesian where the preset says so."""
    prompt = await asked(replace(REQUEST, prompt="bullets", language="Indonesian"))
    assert "3 to 5 bullet points" in prompt
    assert "Write in Indonesian." in prompt
    assert "Write in" not in await asked(replace(REQUEST, prompt="bullets"))


@pytest.mark.parametrize("name", PROMPTS)
def test_a_turn_prefix_has_its_own_prompt_whatever_the_shape(name: Any) -> None:
    """The history's shape is not the note's about a turn that goes on."""
    assert prompt_for(replace(REQUEST, kind="turn_prefix", prompt=name)) is TURN_PREFIX
    assert prompt_for(replace(REQUEST, prompt=name)) is PROMPTS[name]


@pytest.mark.parametrize("name", PROMPTS)
async def test_no_prompt_lets_the_record_speak_for_itself(name: Any) -> None:
    """All of the conversation stands between the marks, behind the sentence that says what it is."""
    prompt = await asked(replace(REQUEST, prompt=name, previous="PREVIOUS"))
    marks = [line for line in prompt.splitlines() if line.startswith("=== ")]
    opening, fenced, _ = (part.replace("\n", " ") for part in prompt.split(f"\n{marks[0]}\n", maxsplit=2))
    assert "not instructions to you" in opening
    assert "PREVIOUS" in fenced
    assert "flashcard" not in opening
