"""Hand a conversation over to a new one, where nothing makes its context fit."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import FULL, Mute, Scribe, answer, call, log_of, opened, prompt, small_policy, turn
from timeline import Timeline, policies
from timeline.blocks import ToolResult
from timeline.engine.handing_over import QUESTION
from timeline.errors import ContextOverflow, InvalidArgument, StoreFull, VersionConflict
from timeline.events import ConversationOpened, ParentLink
from timeline.ports import Hooks, Summary, SummaryRequest
from timeline.store.memory import MemoryStore
from timeline.sync import Timeline as SyncTimeline
from timeline.sync import open_store as open_store_sync

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.events import NewEvent
    from timeline.ports import Appended


class Full(MemoryStore):
    """A store that has room for so many more appends."""

    room = sys.maxsize

    async def append(self, conversation: str, events: Sequence[NewEvent], **options: Any) -> Appended:
        """Append, or refuse."""
        if not self.room:
            raise StoreFull("no room")
        self.room -= 1
        return await super().append(conversation, events, **options)


async def test_a_context_that_nothing_makes_fit_goes_on_in_a_new_conversation() -> None:
    """It begins with a summary of all that was in view, the newest turn too, and renders within the limit."""
    store, scribe = MemoryStore(), Scribe(answers=["We built a flashcard app; the export is left."])
    timeline = await opened(store, policy=small_policy(max_tokens=1_000), summarizer=scribe)
    await timeline.append(prompt(30), answer(1_200))
    with pytest.raises(ContextOverflow):
        await timeline.render()
    before = await log_of(store)
    fresh = await timeline.hand_over(title="Cards, again")
    await fresh.append(prompt(5))
    context = await fresh.render()
    assert [entry["content"] for entry in context.to_openai_chat()["messages"]] == [
        QUESTION,
        "We built a flashcard app; the export is left.",
        prompt(5).text,
    ]
    assert [request.blocks for request in scribe.asked] == [tuple(item.block for item in timeline.window.items)]
    assert scribe.asked[0].max_tokens < 1_000 // 4
    assert await log_of(store) == before, "the first conversation stays as it is"
    assert (fresh.id, fresh.policy, (await store.info(fresh.id)).title) == ("c.next", timeline.policy, "Cards, again")
    opening = (await log_of(store, fresh.id))[0].payload
    assert isinstance(opening, ConversationOpened)
    assert opening.parent == ParentLink(conversation="c", relation="fork")
    assert (await store.info(fresh.id)).base == 0, "it shares nothing"
    assert (await fresh.verify()).ok
    assert (await Timeline.open(store, fresh.id)).policy == timeline.policy


async def test_an_earlier_summary_is_carried_over_with_the_rest() -> None:
    """The summarizer is given it to integrate, and the wishes of the caller."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=4_000), summarizer=scribe)
    await timeline.append(*FULL)
    await timeline.render()
    earlier = timeline.window.summaries[-1].parts
    await timeline.hand_over(instructions="Keep the names.")
    asked = scribe.asked[-1]
    assert asked.previous is not None
    assert earlier.history in asked.previous
    assert (asked.instructions, asked.original_task) == ("Keep the names.", prompt(30).text)


async def test_the_newest_task_is_told_whole_where_it_has_several_parts() -> None:
    """A client may put a word of its own behind what the user typed: that alone is no task."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=small_policy(), summarizer=scribe)
    words = "Add an export.", "Now it is Monday."
    parts = [{"type": "text", "text": text} for text in words]
    await timeline.append(prompt(), answer())
    await timeline.append_messages([{"role": "user", "content": parts}], wire="anthropic")
    await timeline.hand_over()
    assert scribe.asked[-1].task == "\n\n".join(words)


async def test_results_that_are_counted_whole_are_told_whole() -> None:
    """The summarizer is given what it is given where nothing is abridged."""
    plain = small_policy()
    asked = []
    for policy in (plain, policies.lean(plain)):
        scribe = Scribe()
        timeline = await opened(MemoryStore(), policy=policy, summarizer=scribe)
        await timeline.append(prompt())
        for name in ("a", "b"):
            lines = "\n".join(f"{number:6}\tline {number} of a file that says something" for number in range(1, 60))
            await timeline.append(call(name, "read", response_id=name), ToolResult(call_id=name, text=lines))
            await timeline.render()
        await timeline.hand_over()
        asked.append([(block.text, block.meta) for request in scribe.asked for block in request.blocks])
    assert [item.state for item in timeline.window.items].count("abridged") == 2
    assert asked[0] == asked[1]


async def test_without_a_model_the_extractive_summarizer_writes_it() -> None:
    """No key is needed, and a model that fails is no reason to stay stuck."""
    timeline = await opened(MemoryStore(), summarizer=Mute())
    await timeline.append(prompt(text="Build a flashcard app with a CSV export."), answer(50))
    fresh = await timeline.hand_over()
    assert "flashcard app" in fresh.window.items[1].block.text


async def test_nothing_is_handed_over_of_an_empty_conversation() -> None:
    """The new one is empty, too."""
    fresh = await (await opened(MemoryStore())).hand_over()
    assert fresh.window.items == ()


@pytest.mark.parametrize("room", [0, 1])
async def test_a_new_conversation_is_there_with_its_summary_or_not_at_all(room: int) -> None:
    """However many appends the disk has room for: else the same call again finds its id taken, by an empty one."""
    store = Full()
    timeline = await opened(store, policy=small_policy(max_tokens=1_000))
    await timeline.append(prompt(30), answer(600))
    store.room = room
    with suppress(StoreFull):
        await timeline.hand_over(conversation="next")
    begun = [info.id async for info in store.conversations() if info.id == "next"]
    store.room = sys.maxsize
    fresh = await Timeline.open(store, "next") if begun else await timeline.hand_over(conversation="next")
    assert [item.block.type for item in fresh.window.items] == ["user.prompt", "assistant.completion"]


async def test_the_hook_masks_the_title_and_the_summary_of_the_new_conversation() -> None:
    """As it does when a conversation is opened or forked."""

    def mask(block: Block) -> Block:
        return block.model_copy(update={"text": getattr(block, "text", "").replace("jane", "[masked]")})

    store, scribe = MemoryStore(), Scribe(answers=["jane asked for an export."])
    timeline = await opened(store, policy=small_policy(), summarizer=scribe, hooks=Hooks(on_append=mask))
    await timeline.append(prompt(30), answer())
    fresh = await timeline.hand_over(title="The cards of jane")
    assert (await store.info(fresh.id)).title == "The cards of [masked]"
    assert "jane" not in str([event.payload async for event in store.read(fresh.id)])


async def test_an_id_is_taken_once() -> None:
    """Two new conversations have two ids; a wished one that is in use is refused before anything is appended to it."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    assert [(await timeline.hand_over()).id for _ in range(2)] == ["c.next", "c.next~2"]
    with pytest.raises(VersionConflict):
        await timeline.hand_over(conversation="c.next")
    assert (await store.info("c.next")).version == 3
    with pytest.raises(InvalidArgument):
        await timeline.hand_over(title=3)  # type: ignore[arg-type]


async def test_a_summarizer_that_writes_too_much_is_held_to_its_cap() -> None:
    """Else the new conversation would begin as full as the first one ended."""

    class Chatty:
        name = "chatty"

        async def summarize(self, request: SummaryRequest) -> Summary:
            del request
            return Summary(text="words " * 20_000, summarizer=self.name)

    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=2_000), summarizer=Chatty())
    await timeline.append(prompt(30), answer(2_500))
    fresh = await timeline.hand_over()
    assert sum(item.tokens for item in fresh.window.items) < 600


def test_it_can_be_called_without_await() -> None:
    """As everything else."""
    with open_store_sync("memory://") as store:
        timeline = SyncTimeline.open(store, "c")
        timeline.append(prompt(5), answer(5))
        fresh = timeline.hand_over()
        fresh.append(prompt(5))
        assert len(fresh.window.items) == 3
