"""Rounds: summaries that follow one another in one conversation (seed 001, chained summary handling)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.scenes import COUNTER, Scribe, answer, call, opened, payloads_of, prompt, result, turn
from timeline import compact_messages, open_store, policies
from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.errors import CompactionRefused
from timeline.ports import Hooks
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline import Timeline
    from timeline.blocks import Block
    from timeline.policy.model import Policy
    from timeline.ports import EventStore

TASK: Final = "Build a flashcard app"
POLICY: Final = policies.keep_last()


def work(round_: int, steps: int = 10) -> list[Block]:
    """Return what an agent did in a round: files that it wrote, tests that failed, and what it decided."""
    blocks: list[Block] = []
    for n in range(steps):
        name, file = f"r{round_}s{n}", f"src/part_{round_}_{n}.ts"
        blocks += [
            call(f"{name}w", "Write", arguments={"file_path": file, "content": "x " * 600}),
            result(f"{name}w"),
            AssistantCompletion(
                text=f"Created {file} with step {n}. We chose plan {round_}.{n} because it is smaller."
            ),
        ]
    return blocks


async def after_rounds(store: EventStore, count: int, policy: Policy = POLICY) -> Timeline:
    """Return a conversation that was compacted so many times without a model."""
    timeline = await opened(store, policy=policy)
    await timeline.render(system="You are an agent.")
    await timeline.append(prompt(text=TASK))
    for number in range(1, count + 1):
        await timeline.append(*work(number))
        await timeline.compact()
    return timeline


def table(summary: str) -> list[str]:
    """Return the files of a summary's table, in order."""
    rows = summary.split("### Completed Work\n")[1].split("\n\n", maxsplit=1)[0].splitlines()[2:]
    return [row.split(" | ")[0].removeprefix("| ") for row in rows]


@pytest.mark.shows("001-21", "001-58", "001-60", "004-96")
async def test_three_rounds_without_a_model_keep_the_task_and_what_every_round_did() -> None:
    """Each summary has its number, the task verbatim, the files of all rounds once, and says how many it takes in."""
    store = MemoryStore()
    timeline = await after_rounds(store, 3)
    made = await payloads_of(store, "compaction.completed")
    assert [completed.round for completed in made] == [1, 2, 3]
    for number, completed in enumerate(made, start=1):
        text = completed.block.text
        assert text.startswith(
            f"## Session Summary (Round {number})\n\n### Original Task\n{TASK}\n\n### Completed Work\n"
        )
        assert text.count("## Session Summary") == text.count("### Completed Work") == 1
        assert completed.tokens <= 1_000 + COUNTER.count("## Session Summary (Round 1)\n\n")
    assert "incorporates" not in made[0].block.text
    assert made[2].block.text.endswith("This summary incorporates context from 2 previous compaction rounds.")
    files = table(made[2].block.text)
    assert len(files) == len(set(files))
    assert {file.split("_")[1] for file in files if file.startswith("src/")} == {"1", "2", "3"}
    assert (await timeline.verify()).ok


async def test_every_round_is_asked_with_its_number_the_task_and_the_whole_summary_before() -> None:
    """However long ago the first prompt was covered."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe)
    await timeline.append(prompt(text=TASK))
    for number in range(1, 4):
        await timeline.append(*work(number))
        await timeline.compact()
    assert [asked.compaction_number for asked in scribe.asked] == [1, 2, 3]
    assert {asked.original_task for asked in scribe.asked} == {TASK}
    assert [asked.previous for asked in scribe.asked] == [None, "history 1", "history 2"]
    assert {asked.prompt for asked in scribe.asked} == {"sections"}


@pytest.mark.shows("001-41", "R-001-16")
async def test_the_original_task_survives_a_new_process_and_a_fork(tmp_path: Path) -> None:
    """It is the first prompt of the log, not of what is loaded."""
    async with open_store(tmp_path / "a.db") as store:
        await after_rounds(store, 2)
    async with open_store(tmp_path / "a.db") as store:
        scribe = Scribe()
        timeline = await opened(store, policy=POLICY, summarizer=scribe)
        assert TASK not in {item.block.text for item in timeline.window.items}
        for each in (timeline, await timeline.fork()):
            await each.append(prompt(text="And now something else"), *work(7))
            await each.compact()
        assert [asked.original_task for asked in scribe.asked] == [TASK, TASK]


async def test_a_task_of_several_parts_reaches_every_summary_whole() -> None:
    """A client's own words come first in the message, and the task behind them; a log and a list say the same."""
    rules, picture = (
        "The rules of the project.",
        {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}},
    )
    parts = [{"type": "text", "text": rules}, picture, {"type": "text", "text": TASK}]
    message = {"role": "user", "content": parts}
    scribe, store = Scribe(), MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append_messages([message])
    await timeline.append(*work(1))
    await timeline.compact()
    await timeline.append(prompt(text="And now something else"), *work(2))
    await timeline.compact()
    assert [asked.original_task for asked in scribe.asked] == [f"{rules}\n\n{TASK}"] * 2
    assert scribe.asked[0].task == f"{rules}\n\n{TASK}"
    said = [{"role": role, "content": "word " * 900} for _ in range(12) for role in ("assistant", "user")]
    await compact_messages([message, *said], policies.keep_last(max_tokens=20_000), summarizer=scribe)
    assert scribe.asked[2].original_task == f"{rules}\n\n{TASK}"


async def test_a_dry_run_asks_for_the_same() -> None:
    """What is not recorded is decided in the same way."""
    scribe, store, policy = Scribe(), MemoryStore(), policies.keep_last(max_tokens=20_000)
    timeline = await opened(store, policy=policy, summarizer=scribe)
    await timeline.append(prompt(text=TASK), *(block for _ in range(20) for block in turn(480)))
    await timeline.render(record=False)
    again = await opened(store, policy=policy, summarizer=scribe)  # it does not have what the dry run was answered
    await again.render()
    dry, recorded = scribe.asked
    assert dry == recorded
    assert dry.original_task == TASK


async def test_a_conversation_that_begins_without_words_takes_the_first_that_are_said() -> None:
    """A prompt of a picture alone is no task; without any prompt there is none."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe)
    await timeline.append(answer(), UserPrompt(text=" "), *work(1))
    await timeline.compact()
    await timeline.append(prompt(text=TASK), *work(2))
    await timeline.compact()
    assert [asked.original_task for asked in scribe.asked] == [None, TASK]


async def test_a_refused_compaction_is_no_round() -> None:
    """Seed 001: a no-op is round 0, and the next one is the first."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(prompt(text=TASK))
    with pytest.raises(CompactionRefused, match="nothing_to_cover"):
        await timeline.compact()
    await timeline.append(*work(1))
    await timeline.compact()
    assert [completed.round for completed in await payloads_of(store, "compaction.completed")] == [1]


async def test_a_summary_among_imported_messages_goes_on_with_its_number() -> None:
    """A conversation that begins with another engine's summary of this shape is in its next round."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY)
    told = f"## Session Summary (Round 4)\n\n### Original Task\n{TASK}\n\n### Key Technical Decisions\n- Using SM-2\n"
    await timeline.append(AssistantCompletion(text=told, response_id="m0"), *work(1))
    await timeline.compact()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.round == 5
    assert compaction.block.text.startswith("## Session Summary (Round 5)")
    assert "- Using SM-2" in compaction.block.text
    assert compaction.block.text.endswith("incorporates context from 4 previous compaction rounds.")


async def test_a_heading_in_the_applications_own_summary_is_written_once() -> None:
    """The form puts it there, with the number of the round."""

    async def own(_: object) -> str:
        return "## Session Summary (Round 9)\n\nThey built it."

    timeline = await opened(MemoryStore(), policy=POLICY, hooks=Hooks(on_before_compaction=own))
    await timeline.append(prompt(text=TASK), *work(1))
    await timeline.compact()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.block.text == "## Session Summary (Round 1)\n\nThey built it."
