"""The blocks of a whole conversation from the newest back, each with its state: what a user chooses a place from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.log.counted import Counted
from tests.scenes import AT, answer, call, opened, prompt, result, small_policy, words
from timeline import Timeline, sync
from timeline.blocks import AssistantCompletion, Note, UserPrompt
from timeline.errors import InvalidArgument
from timeline.events import BlockRedacted, event_id
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.fold.states import BlockState
    from timeline.view import TimelineView

PROMPTS = ["user.prompt"]


async def listed(timeline: TimelineView, **asked: Any) -> list[tuple[str, str | None, bool]]:
    """Return the text of each prompt in the list, its state, and whether it was taken back."""
    return [(row.block.text, row.state, row.abandoned) async for row in timeline.history(types=PROMPTS, **asked)]


async def chat(store: MemoryStore, turns: int) -> Timeline:
    """Return a conversation of some long turns."""
    timeline = await opened(store, policy=small_policy(max_tokens=8_000))
    for number in range(turns):
        await timeline.append(UserPrompt(text=f"q{number}"), AssistantCompletion(text=words(300)))
    return timeline


async def test_every_block_comes_once_the_newest_first() -> None:
    """Calls and results, summaries and notes too, with the address that names each."""
    timeline = await opened(MemoryStore())
    blocks = await timeline.append(prompt(5), call("c1"), result("c1", 9), answer(2), Note(text="n"))
    rows = [row async for row in timeline.history()]
    assert [row.block for row in rows] == blocks[::-1]
    assert [row.address for row in rows] == ["@6", "@5", "@4", "@3", "@2"]
    assert {row.state for row in rows} == {"visible"}


async def test_each_prompt_is_in_sight_covered_hidden_or_taken_back() -> None:
    """The four states of which a chat shows each differently."""
    timeline = await chat(MemoryStore(), 12)
    [covering] = await timeline.compact(until="ar:turn_9.user.prompt")
    await timeline.hide("ar:turn_10.user.prompt", text="[hidden]")
    await timeline.go_back()
    assert covering.kind == "compacted"
    rows = await listed(timeline)
    assert rows[:4] == [
        ("q11", "omitted", True),
        ("q10", "visible", False),
        ("q9", "hidden", False),
        ("q8", "visible", False),
    ]
    assert rows[4:] == [(f"q{number}", "covered", False) for number in range(7, -1, -1)]
    assert timeline.window.summary is not None
    covered = [row async for row in timeline.history(types=PROMPTS)][-1]
    assert covered.covered_by == timeline.window.summary.version


async def test_what_was_taken_back_is_told_from_what_a_summary_knows_also_when_it_is_covered() -> None:
    """The summary does not know of it, although it lies in its range."""
    timeline = await chat(MemoryStore(), 3)
    await timeline.go_back()
    for number in range(3, 10):
        await timeline.append(UserPrompt(text=f"q{number}"), AssistantCompletion(text=words(300)))
    await timeline.compact(until="ar:turn_9.user.prompt")
    rows = {text: (state, abandoned) for text, state, abandoned in await listed(timeline)}
    assert rows["q1"] == ("covered", False)
    assert rows["q2"] == ("covered", True)


async def test_what_was_given_back_is_taken_back_no_more() -> None:
    """Also where a summary covers it since."""
    timeline = await chat(MemoryStore(), 9)
    [left, *_] = await timeline.go_back()
    await timeline.reveal(left.path)
    assert (await listed(timeline))[0] == ("q8", "visible", False)
    await timeline.append(UserPrompt(text="q9"))
    await timeline.compact(until="ar:turn_10.user.prompt")
    assert (await listed(timeline))[1] == ("q8", "covered", False)


@pytest.mark.parametrize("page", [1, 2, 7, 500])
async def test_pages_of_any_size_give_the_whole_list(page: int) -> None:
    """Each page begins before the last block of the one before it, and knows what was decided behind it."""
    timeline = await chat(MemoryStore(), 12)
    await timeline.compact(until="ar:turn_9.user.prompt")
    await timeline.go_back()
    await timeline.undo_compaction()
    whole = [row async for row in timeline.history()]
    assert [row async for row in timeline.history(page=page)] == whole
    pieces = []
    before: int | None = None
    while piece := await _first(timeline, before, page):
        pieces += piece
        before = piece[-1].version
    assert pieces == whole


async def _first(timeline: Timeline, before: int | None, most: int) -> list[BlockState]:
    rows = []
    async for row in timeline.history(before=before, page=most):
        rows.append(row)
        if len(rows) == most:
            break
    return rows


async def test_the_newest_rows_of_a_long_log_read_no_more_than_a_page() -> None:
    """A chat shows the newest prompts first, and may stop there."""
    store = Counted()
    timeline = await opened(store)
    await timeline.append(*(UserPrompt(text=str(number)) for number in range(300)))
    store.events = 0
    rows = timeline.history(page=20)
    assert [(await anext(rows)).block.text for _ in range(20)] == [str(number) for number in range(299, 279, -1)]
    assert store.events == 20


async def test_of_the_past_and_in_a_fork_each_has_its_own_states() -> None:
    """What the parent takes back later stays in the fork, and in the view of the time before."""
    timeline = await chat(MemoryStore(), 3)
    before = timeline.version
    branch = await timeline.fork()
    await timeline.go_back()
    past = await timeline.at(before)
    assert await listed(past) == await listed(branch) == [(f"q{n}", "visible", False) for n in (2, 1, 0)]
    assert (await listed(timeline))[0] == ("q2", "omitted", True)


async def test_what_another_window_appended_is_in_the_list() -> None:
    """Two windows on one conversation list the same."""
    store = MemoryStore()
    mine = await chat(store, 2)
    other = await Timeline.open(store, mine.id)
    await other.append(UserPrompt(text="from the other window"))
    assert (await listed(mine))[0] == ("from the other window", "visible", False)


async def test_a_redacted_prompt_is_listed_as_its_tombstone_covered_or_not() -> None:
    """Its words are in no list."""
    timeline = await chat(MemoryStore(), 9)
    await timeline.compact(until="ar:turn_9.user.prompt")
    gone = [BlockRedacted(version=version, reason="asked for") for version in (2, timeline.version - 3)]
    await timeline.decide(gone, at=None, ids=[event_id(AT) for _ in gone])
    rows = [row async for row in timeline.history()]
    told = {row.version: row.block.text for row in rows}
    assert [told[each.version] for each in gone] == ["[redacted]", "[redacted]"]


async def test_a_wrong_argument_is_refused() -> None:
    """Before anything is read."""
    timeline = await chat(MemoryStore(), 1)
    asked: list[dict[str, Any]] = [{"types": "user.prompt"}, {"before": "@3"}, {"page": 0}]
    for wrong in asked:
        with pytest.raises(InvalidArgument):
            await anext(timeline.history(**wrong))


def test_a_program_without_await_lists_the_same(tmp_path: Path) -> None:
    """An ordinary iterator, of the present and of the past."""
    with sync.open_store(tmp_path / "agent.db") as store:
        timeline = sync.Timeline.open(store, "cards")
        timeline.append(UserPrompt(text="one"), UserPrompt(text="two"))
        timeline.go_back()
        assert [(row.block.text, row.abandoned) for row in timeline.history()] == [("two", True), ("one", False)]
        assert [row.abandoned for row in timeline.at(3).history()] == [False, False]
