"""A message of the user's in several parts is one message: in the log's count, in the turns, and on every wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.scenes import Scribe, answer, opened, payloads_of, prompt
from timeline import open_store, policies
from timeline.blocks import UserPrompt
from timeline.store.memory import MemoryStore
from timeline.wire import WIRES

if TYPE_CHECKING:
    from pathlib import Path

PICTURE: Final = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
PARTS: Final[list[Any]] = [{"type": "text", "text": "Look at this:"}, PICTURE, {"type": "text", "text": "What is it?"}]


def content_of(message: Any) -> list[Any]:
    """Return the parts of a message in any wire's form."""
    content = message.get("content", message.get("parts"))
    return content if isinstance(content, list) else [content]


@pytest.mark.shows("004-81")
@pytest.mark.parametrize("wire", list(WIRES))
async def test_it_goes_out_on_every_wire_as_one_message(wire: str) -> None:
    """Text, picture and text, between two messages of their own."""
    timeline = await opened(MemoryStore())
    said: list[Any] = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": PARTS},
        {"role": "assistant", "content": "three"},
    ]
    await timeline.append_messages(said, wire="openai_chat")
    body: Any = (await timeline.render()).to_wire(wire)
    sent = next(body[key] for key in ("messages", "contents", "input") if key in body)
    assert [message["role"].replace("model", "assistant") for message in sent] == [told["role"] for told in said]
    first, picture, last = content_of(sent[2])
    assert (first["text"], last["text"]) == ("Look at this:", "What is it?")
    assert "text" not in picture


async def test_prompts_that_an_application_appends_are_messages_of_their_own() -> None:
    """Only parts that came as one message are one."""
    timeline = await opened(MemoryStore())
    await timeline.append(UserPrompt(text="one"), UserPrompt(text="two"))
    sent = (await timeline.render()).to_openai_chat()["messages"]
    assert [message["content"] for message in sent] == ["one", "two"]


async def test_another_process_sends_it_as_one_message_too(tmp_path: Path) -> None:
    """The log holds which blocks came together; the bytes are the same, and verify builds them again."""
    async with open_store(tmp_path / "a.db") as store:
        timeline = await opened(store)
        await timeline.append_messages([{"role": "user", "content": PARTS}], wire="openai_chat")
        first = (await timeline.render()).to_openai_chat()
    async with open_store(tmp_path / "a.db") as store:
        again = await opened(store)
        assert (await again.render()).to_openai_chat() == first
        assert (await again.verify()).ok
        assert [p.block.meta.get("continues") for p in await payloads_of(store, "block.appended")] == [None, True, True]


async def test_a_part_whose_message_is_hidden_in_front_of_it_stays_a_message() -> None:
    """The second part behind the replacement of the first."""
    timeline = await opened(MemoryStore())
    parts = [{"type": "text", "text": "first " * 50}, {"type": "text", "text": "second"}]
    await timeline.append_messages([{"role": "user", "content": parts}], wire="openai_chat")
    await timeline.append(answer())
    await timeline.hide("ar:turn_1.user.prompt", text="[gone]")
    [sent, _] = (await timeline.render()).to_openai_chat()["messages"]
    assert [part["text"] for part in sent["content"]] == ["[gone]", "second"]


async def test_no_part_of_a_longer_message_is_chitchat() -> None:
    """The priority chain strips short messages, and "ok" is not all that this one says."""
    policy = policies.priority_chain(max_tokens=2_043)  # due above 1,736 tokens, one less than there are
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    await timeline.append(prompt(400), answer(400))
    parts = [{"type": "text", "text": "ok"}, {"type": "text", "text": "now build the whole of it " * 20}]
    await timeline.append_messages([{"role": "user", "content": parts}], wire="openai_chat")
    await timeline.append(answer(400), UserPrompt(text="ok"), answer(400), prompt())
    await timeline.render()
    omitted = [item.block.path for item in timeline.window.items if item.state == "omitted"]
    assert omitted == ["ar:turn_3.user.prompt"]
