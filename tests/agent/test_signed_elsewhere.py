"""A conversation that goes on with a model of another maker: each maker refuses signatures that are not its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenes import opened, prompt, result
from timeline.blocks import Reasoning
from timeline.store.memory import MemoryStore

SIGNED = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
REDACTED = {"type": "redacted_thinking", "data": "c2VjcmV0"}


def reply(model: str, *thoughts: dict[str, Any]) -> dict[str, Any]:
    """Return a reply in the Messages API's form, which servers of other makers speak too: thoughts and a call."""
    content = [*thoughts, {"type": "tool_use", "id": "c1", "name": "run", "input": {}}]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_reason": "tool_use"}
    return {**head, "content": content, "usage": {"input_tokens": 9, "output_tokens": 9}}


async def sent(by: str, to: str, wire: str = "anthropic") -> list[dict[str, Any]]:
    """Return the assistant's content that one model is sent after another one has thought and called."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())
    await timeline.record(reply(by, SIGNED, REDACTED))
    await timeline.append(result("c1"))
    body = (await timeline.render()).request(wire, model=to).arguments
    content: list[dict[str, Any]] = next(m["content"] for m in body["messages"] if m["role"] == "assistant")
    return content


@pytest.mark.parametrize("by", ["kimi-k3", "MiniMax-M3", "moonshotai/kimi-k3"])
@pytest.mark.parametrize("to", ["claude-opus-5", "us.anthropic.claude-opus-5-v1:0"])
async def test_claude_is_not_sent_a_signature_of_another_makers_model(by: str, to: str) -> None:
    """Its API answers ``Invalid `signature` in `thinking` block``, and each later request with it likewise."""
    assert [part["type"] for part in await sent(by, to)] == ["tool_use"]


async def test_the_ai_sdk_is_not_given_a_signature_of_another_makers_model_for_claude() -> None:
    """The SDK passes it on as it is."""
    assert [part["type"] for part in await sent("kimi-k3", "claude-opus-5", "ai_sdk")] == ["tool-call"]


@pytest.mark.parametrize(
    ("by", "to"), [("kimi-k3", "kimi-k3"), ("kimi-k3", "my-alias"), ("claude-opus-4-8", "anthropic/claude-sonnet-5")]
)
async def test_a_signature_goes_back_byte_for_byte_to_models_that_may_have_made_it(by: str, to: str) -> None:
    """Claude's models drop by themselves what they cannot read of each other's."""
    assert (await sent(by, to))[:2] == [SIGNED, REDACTED]


async def test_a_thought_whose_signer_was_recorded_is_known_in_a_list_that_names_no_model() -> None:
    """A loop that keeps its own list hands the reply in again; a second copy would be thought twice."""
    timeline = await opened(MemoryStore())
    hook = timeline.step_hook("anthropic")
    history: list[Any] = [{"role": "user", "content": "Go."}]
    await hook.prepare_step(messages=history)
    answer = reply("kimi-k3", SIGNED)
    await hook.on_step_finish(answer)
    history += [{"role": "assistant", "content": answer["content"]}]
    history += [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}]
    await hook.prepare_step(messages=history)
    assert sum(isinstance(item.block, Reasoning) for item in timeline.window.items) == 1
