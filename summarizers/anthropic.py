"""Summarise with Anthropic's models."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from timeline.errors import needs
from timeline.wire.usage import anthropic_usage

from .models import ModelSummarizer, Options, Reply, declined, stopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anthropic import AsyncAnthropic
    from anthropic.types import Message

    from .models import ModelClient, Question


class AnthropicSummarizer(ModelSummarizer):
    """Summarises with a model behind Anthropic's Messages API.

    The SDK's client is made for each summary and closed after it; the application's own client is used unchanged, with
    its own retries, and left open.

    Args:
        model: the model's name.
        client: the application's ``AsyncAnthropic``; the clients for Bedrock and Vertex work as well.
        name: stored beside every summary.
        options: the settings of its requests, see `Options`.

    Raises:
        MissingExtra: the SDK is not installed.
        ValueError: an option is invalid.
    """

    provider: ClassVar[str] = "anthropic"
    """The provider, as OpenTelemetry's conventions name it."""

    def __init__(
        self, model: str, *, client: AsyncAnthropic | None = None, name: str = "anthropic", **options: Unpack[Options]
    ) -> None:
        super().__init__(model, name=name, **options)
        with needs("anthropic"):
            import anthropic  # noqa: PLC0415 - an extra: imported by whoever summarises with it
        self._sdk = anthropic
        self._client = client

    @property
    def _wire(self) -> str:
        return "anthropic"

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[ModelClient]:
        if self._client is not None:
            yield _Connection(self._client)
            return
        settings = self._settings
        async with self._sdk.AsyncAnthropic(
            base_url=settings.base_url,
            api_key=settings.api_key,
            timeout=settings.timeout,
            max_retries=settings.retries,
        ) as client:
            yield _Connection(client)


@dataclass(frozen=True, slots=True)
class _Connection:
    client: AsyncAnthropic

    async def ask(self, question: Question) -> Reply:
        # The newest models take no temperature, so the SDK has no parameter for it; older models still do.
        extra = None if question.temperature is None else {"temperature": question.temperature}
        message = await self.client.messages.create(
            model=question.model,
            max_tokens=question.max_tokens,
            system=question.message.instructions,
            messages=[{"role": "user", "content": question.message.record}],
            extra_body=extra,
        )
        return _reply(message)

    async def go_on(self, arguments: dict[str, Any]) -> Reply:
        return _reply(await self.client.messages.create(**arguments))


def _reply(message: Message) -> Reply:
    problem = None
    if message.stop_reason in {"max_tokens", "model_context_window_exceeded"}:
        problem = stopped(message.stop_reason)
    elif message.stop_reason == "refusal":
        problem = declined(message.stop_reason)
    calls = any(part.type == "tool_use" for part in message.content)
    text = "".join(part.text for part in message.content if part.type == "text")
    return Reply(text, anthropic_usage(message.usage.model_dump()), message.model, problem, calls)
