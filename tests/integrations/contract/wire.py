"""Drivers on the wire: the contract's model behind a fake of OpenAI's chat completions on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.providers import Answer, Call, FakeProvider, Trouble
from timeline.integrations.testing import Driver, Sent

if TYPE_CHECKING:
    from tests.providers import Asked, Step
    from timeline.integrations.testing import Reply, ScriptedModel


class OnTheWire(Driver):
    """A driver whose framework talks to a server, which refuses what the provider would refuse."""

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(model)
        self.provider = FakeProvider(self._step)
        self.provider.__enter__()

    def close(self) -> None:
        """End the server; it refused nothing but what it should."""
        self.provider.__exit__(None, None, None)
        assert self.provider.refused == []

    def _step(self, asked: Asked) -> Step:
        try:
            reply = self.model.asked([sent for message in asked.body["messages"] for sent in _sent(message)])
        except ConnectionError:
            return Trouble("server")
        return _answer(reply, self.model.limit)


def _sent(message: dict[str, Any]) -> list[Sent]:
    calls = tuple(call["id"] for call in message.get("tool_calls") or ())
    role: Any = "system" if message["role"] == "developer" else message["role"]
    content = message.get("content") or ""
    texts = [content] if isinstance(content, str) else [part["text"] for part in content]
    return [Sent(role, "\n".join(texts), calls, message.get("tool_call_id", ""))]


def _answer(reply: Reply, limit: int | None) -> Step:
    if reply.too_large:
        return Trouble("context_limit", limit=(limit or 0) // 4)
    calls = tuple(Call("work", {"step": call.step}, call.id) for call in reply.calls)
    return Answer(reply.text, calls, input_tokens=reply.input_tokens, output_tokens=reply.output_tokens)
