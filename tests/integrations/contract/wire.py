"""Drivers on the wire: the contract's model behind a fake of OpenAI's API on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.providers import Answer, Call, FakeProvider, Trouble
from timeline.integrations.testing import Driver, Sent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.providers import Asked, Step
    from timeline.integrations.testing import Reply, ScriptedModel


class OnTheWire(Driver):
    """A driver whose framework talks to a server, which refuses what the provider would refuse."""

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(model)
        self.provider = FakeProvider(answering(model))
        self.provider.__enter__()

    def close(self) -> None:
        """End the server; it refused nothing but what it should."""
        self.provider.__exit__(None, None, None)
        assert self.provider.refused == []


def answering(model: ScriptedModel) -> Callable[[Asked], Step]:
    """Return a script for a `FakeProvider` that answers as the contract's model does."""

    def step(asked: Asked) -> Step:
        try:
            reply = model.asked(sent_in(asked))
        except ConnectionError:
            return Trouble("server")
        return _answer(reply, model.limit)

    return step


def sent_in(asked: Asked) -> list[Sent]:
    """Return the messages of a request: of chat completions, of responses, or Anthropic's."""
    if asked.wire == "anthropic":
        return [sent for message in asked.body["messages"] for sent in _of_parts(message)]
    if asked.wire == "openai_responses":
        return _of_items(asked.body["input"])
    return [_of_message(message) for message in asked.body["messages"]]


def _of_message(message: dict[str, Any]) -> Sent:
    calls = tuple(call["id"] for call in message.get("tool_calls") or ())
    role: Any = "system" if message["role"] == "developer" else message["role"]
    return Sent(role, _text(message.get("content") or ""), calls, message.get("tool_call_id", ""))


def _of_items(items: Sequence[dict[str, Any]]) -> list[Sent]:
    """Return items as messages: what the model says in a row, its calls included, is one."""
    found: list[Sent] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call_output":
            found.append(Sent("tool", _text(item["output"]), answers=item["call_id"]))
            continue
        role: Any = "assistant" if kind == "function_call" else item["role"]
        text = "" if kind == "function_call" else _text(item["content"])
        calls = (item["call_id"],) if kind == "function_call" else ()
        last = found[-1] if found else None
        if last is not None and role == last.role == "assistant" and (calls or not last.calls):
            found[-1] = Sent(role, "\n".join(filter(None, (last.text, text))), (*last.calls, *calls))
        else:
            found.append(Sent("system" if role == "developer" else role, text, calls))
    return found


def _of_parts(message: dict[str, Any]) -> list[Sent]:
    """Return a message of Anthropic's, and each of its results as a message of its own."""
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    found = [Sent("tool", _text(p["content"]), (), p["tool_use_id"]) for p in parts if p["type"] == "tool_result"]
    calls = tuple(part["id"] for part in parts if part["type"] == "tool_use")
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    return [*found, *([Sent(message["role"], text, calls)] if text or calls else [])]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def _answer(reply: Reply, limit: int | None) -> Step:
    if reply.too_large:
        return Trouble("context_limit", limit=(limit or 0) // 4)
    calls = tuple(Call("work", {"step": call.step}, call.id) for call in reply.calls)
    return Answer(reply.text, calls, input_tokens=reply.input_tokens, output_tokens=reply.output_tokens)
