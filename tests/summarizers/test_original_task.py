"""The original task of a conversation, with its beginning and without it (seed 001)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from timeline import policies
from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.message_lists import compact_messages
from timeline.ports import SummaryRequest
from timeline.summarizers import CallableSummarizer
from timeline.summarizers.extractive import extract
from timeline.summarizers.original_task import original_task
from timeline.tokens import get_counter

TASK: Final = "Build a flashcard app\n> ## with decks\nand reviews"
EARLIER: Final = f"### Original Task\n{TASK}\n\n### Completed Work\n| File/Component | Action | Description |"
REQUEST: Final = SummaryRequest(
    "history",
    (UserPrompt(text="Now the tests"), AssistantCompletion(text="Created tests.ts with the tests.")),
    *(None, "Now the tests", 1_000),
    counter=get_counter("o200k_base"),
    prompt="sections",
)


@pytest.mark.shows("001-41")
@pytest.mark.parametrize(
    ("changes", "task"),
    [
        ({"original_task": "Build it"}, "Build it"),
        ({"original_task": "Build it", "previous": EARLIER}, "Build it"),
        ({"previous": EARLIER}, TASK),
        ({"previous": EARLIER.replace("### ", "#### ")}, TASK),
        ({"previous": EARLIER.replace(TASK, "Unknown task")}, None),
        ({"previous": "They went on."}, None),
        ({}, "Now the tests"),
        ({"task": None}, None),
    ],
)
def test_the_log_says_it_or_the_summary_before(changes: dict[str, Any], task: str | None) -> None:
    """Never the oldest prompt that is left, once a summary stands for what came before."""
    assert original_task(replace(REQUEST, **changes)) == task


def test_the_extractive_summarizer_keeps_the_task_of_the_summary_before() -> None:
    """Word for word, and not the first prompt of what is summarised now."""
    summary = extract(replace(REQUEST, previous=EARLIER, compaction_number=2))
    assert summary.startswith(f"### Original Task\n{TASK}\n")


@pytest.mark.shows("001-17", "R-001-15", "R-001-16")
async def test_a_list_of_messages_keeps_its_task_over_its_rounds() -> None:
    """There is no log: from the second round on the model is given the task as the summary before tells it."""
    prompts: list[str] = []

    async def model(prompt: str) -> str:
        prompts.append(prompt)
        return "### Original Task\nBuild a flashcard app\n\n### Current State\n- Working on: decks"

    messages: list[Any] = [{"role": "user", "content": "Build a flashcard app"}]
    for number in range(3):
        for _ in range(6):
            messages += [{"role": "assistant", "content": "abc " * 800}]
            messages += [{"role": "user", "content": f"Step {number}: " + "abc " * 500}]
        done = await compact_messages(
            messages, policies.keep_last(messages=4, max_tokens=18_000), summarizer=CallableSummarizer(model)
        )
        messages = done.messages
    assert done.compaction_number == len(prompts) == 3
    assert all("## Original User Task\nBuild a flashcard app\n" in prompt for prompt in prompts)
