"""Injected text: in the tail of one request, or kept as a pair; the system prompt is the same before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.invariants.wires import check_anthropic, check_openai_chat
from tests.scenes import call, exchange, opened, prompt, result, small_policy, turn
from timeline import policies
from timeline.agent.messages import GO_ON, QUESTION
from timeline.blocks import UserPrompt
from timeline.errors import ContextOverflow, InvalidBlock
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.projection.context import RenderedContext


def texts(body: dict[str, list[dict[str, object]]]) -> list[object]:
    """Return the contents of an OpenAI chat request's messages."""
    return [message["content"] for message in body["messages"]]


async def test_text_that_is_kept_nowhere_stands_in_one_render() -> None:
    """It is the last thing said, and gone afterwards; the log holds no block of it."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(text="Hello."))
    before = await timeline.render()
    assert await timeline.inject("Disk is almost full.") == []
    assert texts((await timeline.render(ephemeral=["It is Monday."])).to_openai_chat()) == [
        "Hello.",
        "It is Monday.",
        "Disk is almost full.",
    ]
    assert (await timeline.render()).fingerprint == before.fingerprint
    assert len(timeline.window.items) == 1


async def test_a_dry_run_shows_injected_text_and_does_not_use_it_up() -> None:
    """`record=False` gives the bytes of the render that follows."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())
    await timeline.inject("Careful.")
    dry = await timeline.render(record=False)
    assert (await timeline.render()).fingerprint == dry.fingerprint


async def test_a_render_that_fails_does_not_use_injected_text_up() -> None:
    """It was not sent, so it is still to be said."""
    timeline = await opened(MemoryStore())
    await timeline.use_policy(policies.none(max_tokens=1_000, counter="chars4"))
    await timeline.append(prompt(20))
    await timeline.inject("Careful.")
    with pytest.raises(ContextOverflow):
        await timeline.render(system="abc " * 2_000)
    assert texts((await timeline.render()).to_openai_chat())[-1] == "Careful."


@pytest.mark.shows("004-138", "R-004-32")
async def test_kept_text_is_the_assistants_answer_to_a_question() -> None:
    """Before a prompt it is a pair; the prompt opens the next turn as ever."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn())
    pair = await timeline.inject("The user likes short answers.", keep="pair")
    assert [(block.author, block.text) for block in pair] == [
        ("user", QUESTION),
        ("assistant", "The user likes short answers."),
    ]
    [asked] = await timeline.append(UserPrompt(text="Next."))
    assert (pair[0].turn_id, asked.turn_id) == ("turn_1", "turn_2")


@pytest.mark.shows("004-138")
async def test_kept_text_leaves_the_bytes_before_it_as_they_were() -> None:
    """The cached prefix, system prompt included, is not touched."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn(), prompt())
    before = await timeline.render(system="You help.")
    await timeline.inject("Mind the gap.", keep="pair", question="And?")
    after = await timeline.render(system="You help.")
    assert [e.canonical for e in after.neutral.entries[:3]] == [e.canonical for e in before.neutral.entries]
    assert texts(after.to_openai_chat())[:4] == texts(before.to_openai_chat())
    assert texts(after.to_openai_chat())[4:] == ["And?", "Mind the gap.", GO_ON]


@pytest.mark.parametrize("answered_first", [True, False])
async def test_kept_text_between_a_call_and_its_result_divides_them_not(answered_first: bool) -> None:  # noqa: FBT001 - a case
    """Whenever it comes, the result joins its call, and the request ends with the user."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), call("c1"))
    if answered_first:
        await timeline.append(result("c1"))
    await timeline.inject("Mind the gap.", keep="pair")
    if not answered_first:
        await timeline.append(result("c1"))
    context = await timeline.render()
    check_anthropic(context.to_anthropic())
    check_openai_chat(context.to_openai_chat())
    assert context.to_anthropic()["messages"][-1]["role"] == "user"
    assert all(item.answers for item in timeline.window.items if item.block.type == "react.tool.result")
    assert timeline.window.unanswered() == ()


async def test_kept_text_is_compacted_like_the_rest() -> None:
    """It is part of the conversation, not of the prompt."""
    timeline = await opened(MemoryStore())
    pair = await timeline.inject("Remember this.", keep="pair")
    for number in range(20):
        await timeline.append(*exchange(f"c{number}", 400))
    await timeline.use_policy(small_policy(keep_recent_tokens=400))
    await timeline.compact()
    assert (await timeline.read(pair[1].path)).text == "Remember this."
    assert (await timeline.verify()).ok


@pytest.mark.parametrize(("text", "question", "field"), [(" ", "So?", "text"), ("So.", "\n", "question")])
async def test_blank_text_is_refused(text: str, question: str, field: str) -> None:
    """No provider takes it."""
    timeline = await opened(MemoryStore())
    with pytest.raises(InvalidBlock, match=field):
        await timeline.inject(text, keep="pair", question=question)
    assert timeline.version == 1


async def test_injected_text_that_nobody_heard_is_said_by_the_next_render() -> None:
    """A call that fails for another reason than the context's size leaves the text where it was."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(text="Hello."))
    await timeline.inject("Disk is almost full.")

    async def overloaded(_: RenderedContext) -> None:
        await timeline.inject("And hot.")
        raise ConnectionError("529")

    with pytest.raises(ConnectionError):
        await timeline.retry_with_compaction(overloaded)
    said = texts((await timeline.render()).to_openai_chat())
    assert said == ["Hello.", "Disk is almost full.", "And hot."]


async def test_a_way_to_keep_text_that_does_not_exist_is_refused() -> None:
    """Nothing is appended for a word that means nothing."""
    timeline = await opened(MemoryStore())
    with pytest.raises(InvalidBlock, match="'nowhere' or 'pair'"):
        await timeline.inject("Careful.", keep="forever")  # type: ignore[arg-type] # what is tested
    assert not timeline.window.items
