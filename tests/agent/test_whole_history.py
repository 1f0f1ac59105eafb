"""The messages of a whole conversation, as a runtime that keeps no list of its own takes them up again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenes import opened, small_policy, words
from timeline.errors import InvalidArgument
from timeline.store.memory import MemoryStore


def asked(text: str) -> dict[str, Any]:
    """Return what the user says."""
    return {"role": "user", "content": text}


def answered(text: str) -> dict[str, Any]:
    """Return what the assistant says."""
    return {"role": "assistant", "content": text}


async def test_all_that_was_said_comes_back_over_compactions_and_hides() -> None:
    """As it was given, oldest first; neither summaries nor what stands for hidden content is in it."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=2_000))
    history: list[Any] = []
    for number in range(8):
        history += [asked(f"{number} {words(90)}"), answered(f"{number} {words(300)}")]
        await timeline.append_messages(history[-2:])
        await timeline.render()
    await timeline.hide(timeline.window.items[-1].block.path)
    assert timeline.window.summaries
    assert await timeline.messages("openai_chat") == history


async def test_what_a_list_left_is_not_in_the_history_that_goes_on() -> None:
    """It is what the list has now."""
    timeline = await opened(MemoryStore())
    first, edited = [asked("first"), answered("one")], [asked("edited")]
    await timeline.list_follower().take_messages(first)
    await timeline.list_follower().take_messages(edited, whole=True)
    assert await timeline.messages("openai_chat") == edited


async def test_a_conversation_in_which_nothing_was_said_has_no_messages() -> None:
    """Nor has one that its list left altogether: the line that an empty request has is nobody's."""
    timeline = await opened(MemoryStore())
    assert await timeline.messages("openai_chat") == []
    follower = timeline.list_follower()
    await follower.take_messages([asked("first")])
    await follower.take_messages([], whole=True)
    assert await timeline.messages("openai_chat") == []


async def test_what_was_redacted_does_not_come_back() -> None:
    """Its tombstone is in its place."""
    timeline = await opened(MemoryStore())
    await timeline.append_messages([asked("a secret"), answered("one")])
    await timeline.redact("ar:turn_1.user.prompt", reason="asked for")
    [said, answer] = await timeline.messages("openai_chat")
    assert ("secret" in said["content"], answer) == (False, answered("one"))


async def test_a_form_that_there_is_not_is_refused() -> None:
    """As a render refuses it."""
    timeline = await opened(MemoryStore())
    with pytest.raises(InvalidArgument, match="morse"):
        await timeline.messages("morse")  # type: ignore[arg-type]
