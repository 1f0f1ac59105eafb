"""A summary that is written anew keeps its form, and says what is left of the blocks that it covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.forgetting.planted import PLAIN
from tests.scenes import (
    AT,
    COUNTER,
    Scribe,
    answer,
    compact_fold,
    exchange,
    fold_of,
    opened,
    payloads_of,
    prompt,
    small_policy,
    turn,
)
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.events import NOBODY, WRITTEN_ANEW, CompactionCompleted, WrittenBy
from timeline.facts.of_items import WindowFacts
from timeline.facts.record_lines import RECORD_HEADING
from timeline.forgetting.summaries import summary_anew
from timeline.planning.summary_block import SPLIT_HEADING
from timeline.policy.model import Repeats
from timeline.policy.steps import BLOCK_FORM, SummaryForm
from timeline.store.memory import MemoryStore
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block


def read(number: int, said: str = "") -> list[Block]:
    """Return a round that reads a file."""
    asked = ToolCall(call_id=f"s{number}", name="Read", arguments={"file_path": f"src/s{number}.py"})
    return [asked, ToolResult(call_id=f"s{number}", text=said + "abc " * 700)]


FIRST: Final = (UserPrompt(text="Always write tests first."), *read(1), answer(1_100))
SECOND: Final = (UserPrompt(text=f"Use tabs, and never print {PLAIN}."), answer(1_500))
THIRD: Final = (UserPrompt(text="Never push to main."), answer(396))


async def test_it_says_what_an_abridged_result_said() -> None:
    """An abridged result is in sight. What it leaves out may have been redacted, so all of it is told."""
    policy = small_policy(keep_recent_tokens=1, min_progress=0.0, min_progress_tokens=1, repeats=Repeats())
    timeline = await opened(MemoryStore(), policy=policy)
    log = "\n".join(f"step {number} of the build that has something to say" for number in range(40))
    await timeline.append(UserPrompt(text=f"Build it with {PLAIN}."), now=AT)
    for number in range(2):
        about = {"command": f"make {number}"}
        asked = ToolCall(call_id=f"b{number}", name="bash", arguments=about, response_id=f"b{number}")
        text = f"{log}\nError: no rule to make target {number}"
        await timeline.append(asked, ToolResult(call_id=f"b{number}", text=text, is_error=True), now=AT)
        await timeline.render(now=AT)
    assert timeline.window.items[-1].state == "abridged"
    await timeline.append(UserPrompt(text="Go on."), now=AT)
    await timeline.compact(now=AT)
    await timeline.redact("ar:turn_1.user.prompt", "a password", now=AT)
    [summary] = [item.block.text for item in timeline.window.items if item.is_summary]
    assert "bash make 1: Error: no rule to make target 1" in summary


async def anew(*steps: Sequence[Block], **options: Any) -> list[CompactionCompleted]:
    """Run a session, which is rendered after each step; redact all that says the secret; return its compactions."""
    store = MemoryStore()
    policy = small_policy(max_tokens=4_000, keep_recent_tokens=400, hiding=None, **options)
    timeline = await opened(store, policy=policy, summarizer=Scribe())
    for blocks in steps:
        await timeline.append(*blocks, now=AT)
        await timeline.render(now=AT)
    appended = [payload.block for payload in await payloads_of(store, "block.appended")]
    await timeline.redact([block.path for block in appended if PLAIN in str(block.dump())], "a password", now=AT)
    assert (await timeline.verify()).ok
    return await payloads_of(store, "compaction.completed")


@pytest.mark.parametrize(
    ("form", "before", "behind"),
    [
        (BLOCK_FORM, f"{BLOCK_FORM.heading}\n\n", f"\n\n## {RECORD_HEADING}\n\nFiles read:\n- src/s1.py (@4)"),
        (SummaryForm(heading="", record=False), "", ""),
        (SummaryForm(heading="[NOTES]\n", question="What?", answer="Understood.", record=False), "[NOTES]\n", ""),
    ],
    ids=["ours", "no-heading", "question-and-answer"],
)
async def test_a_summary_that_is_written_anew_keeps_its_form_and_its_tokens(
    form: SummaryForm, before: str, behind: str
) -> None:
    """Heading, question and answer are as they were; a prompt that was redacted is not a task any more."""
    [new] = await anew([*FIRST, *SECOND, *THIRD], form=form)
    assert new.block.text == f"{before}## Task\n- Always write tests first.\n\n## Done\n- Read src/s1.py{behind}"
    assert new.tokens == sum(map(COUNTER.count, (new.block.text, form.question, form.answer)))


async def test_a_summary_of_which_nothing_is_left_says_that_it_was_redacted() -> None:
    """Under its heading, so that it stays a summary for the model."""
    [new] = await anew([SECOND[0], AssistantCompletion(text=f"{PLAIN} " * 620), *THIRD])
    assert new.block.text == f"{BLOCK_FORM.heading}\n\n[redacted]"


SPLIT: Final = [*FIRST[:1], answer(900), UserPrompt(text="Use spaces."), answer(100), prompt(), *read(0, PLAIN)]
"""The beginning of a session whose third turn is cut, again and again, by what it reads."""


async def test_a_split_turn_that_was_compacted_twice_keeps_history_and_turn_apart() -> None:
    """The second summary says of the history what the first one says, and goes on with the turn."""
    first, second = await anew(
        [*SPLIT, *read(1), *read(2), *read(3)], [*read(4), *read(5, PLAIN), *read(6), *read(7), *read(8)]
    )
    assert first.split_turn_id == second.split_turn_id == "turn_3"
    assert first.parts.history == "## Task\n- First: Always write tests first.\n- Newest: Use spaces."
    assert second.parts.history == first.parts.history
    assert "src/s2.py" in first.parts.turn_prefix
    assert "src/s2.py" in second.parts.turn_prefix
    *_, record = sections = second.block.text.split("\n\n## ")
    assert [section.partition("\n")[0] for section in sections[1:]] == ["Task", SPLIT_HEADING, "Done", RECORD_HEADING]
    assert "- src/s4.py (@" in record
    assert "src/s5.py" not in second.block.text


async def test_what_was_a_split_turn_is_history_in_the_next_turns_summary() -> None:
    """Once the turn is over, its half belongs to all that came before."""
    later = [answer(900), UserPrompt(text=f"Never say {PLAIN}."), answer(1_500), *turn(1_500), *turn(400, asked=300)]
    _, second = await anew([*SPLIT, *read(1), *read(2), *read(3)], later)
    assert "src/s2.py" in second.parts.history
    assert second.parts.turn_prefix == ""


def summarized(*, counter: str = COUNTER.name, **by: Any) -> tuple[CompactionCompleted, CompactionCompleted]:
    """Return a compaction that an author wrote, and the same written anew."""
    fold = fold_of(UserPrompt(text="Build it."), *exchange("a", 900), prompt())
    window = fold.window
    compact_fold(fold, 4)
    author = WrittenBy(**by)
    known = {"written_by": author.model_dump(exclude_defaults=True), "round": 1}
    [made] = fold.window.summaries
    block = made.block.model_copy(update={"meta": known})
    old = made.model_copy(update={"written_by": author, "block": block, "counter": counter})
    return old, summary_anew(window, old, WindowFacts())


def test_of_an_author_stays_what_its_work_cost_and_not_who_it_was() -> None:
    """No model wrote what the summary says now; the block's ``meta`` says so as well."""
    gone = {"model": "m", "prompt_version": "7", "repaired": "a name", "alone_because": "it was long"}
    _, new = summarized(summarizer="scribe", duration=2.5, **gone)
    assert new.written_by == WrittenBy(summarizer="extractive", fallback_reason=WRITTEN_ANEW, duration=2.5)
    assert new.block.meta == {"round": 1, "written_by": new.written_by.model_dump(exclude_defaults=True)}


def test_where_nobody_wrote_a_summary_nobody_does_so_anew() -> None:
    """An author would say that there was one."""
    old, new = summarized(summarizer=NOBODY)
    assert new.written_by == old.written_by


def test_a_summary_that_an_application_counted_is_counted_as_most_policies_count() -> None:
    """Its own counter is not at hand; the summary stays one in its unit."""
    old, new = summarized(summarizer="scribe", counter="ours-by-the-word")
    count = get_counter("o200k_base").count
    assert new.tokens == max(1, old.tokens - count(old.block.text) + count(new.block.text))
    assert new.counter == "ours-by-the-word"
