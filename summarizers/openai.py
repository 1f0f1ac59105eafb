"""Summarise with OpenAI's models, or with any server that speaks OpenAI's API."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, Unpack

from timeline.errors import needs
from timeline.wire.usage import openai_usage, responses_usage

from .models import ModelSummarizer, Options, Reply, declined, stopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    from .models import ModelClient, Question


class Endpoint(Protocol):
    """One of OpenAI's two APIs for a question."""

    @property
    def wire(self) -> str:
        """The wire format of its requests."""
        ...

    async def ask(self, client: AsyncOpenAI, question: Question) -> Reply:
        """Send a question through a client.

        Raises:
            openai.OpenAIError: the SDK raised it.
        """
        ...

    async def go_on(self, client: AsyncOpenAI, arguments: dict[str, Any]) -> Reply:
        """Send the arguments of the SDK's method through a client.

        Raises:
            openai.OpenAIError: the SDK raised it.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChatCompletions:
    """``/v1/chat/completions``: OpenAI's own, and the API of compatible servers.

    Attributes:
        cap_field: name of the output cap's field. Servers older than OpenAI's reasoning models know ``max_tokens``.
    """

    cap_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"

    @property
    def wire(self) -> str:
        """The wire format of its requests."""
        return "openai_chat"

    async def ask(self, client: AsyncOpenAI, question: Question) -> Reply:
        """Send a question, with the instructions as the system message."""
        options: dict[str, Any] = {self.cap_field: question.max_tokens, **_temperature(question)}
        completion = await client.chat.completions.create(
            model=question.model,
            messages=[
                {"role": "system", "content": question.message.instructions},
                {"role": "user", "content": question.message.record},
            ],
            **options,
        )
        return _said(completion)

    async def go_on(self, client: AsyncOpenAI, arguments: dict[str, Any]) -> Reply:
        """Send the arguments of ``chat.completions.create`` as they are."""
        return _said(await client.chat.completions.create(**arguments))


def _said(completion: ChatCompletion) -> Reply:
    choice = completion.choices[0]
    problem = None
    if choice.finish_reason == "length":
        problem = stopped(choice.finish_reason)
    elif choice.finish_reason == "content_filter" or choice.message.refusal:
        problem = declined(choice.message.refusal or choice.finish_reason)
    usage = completion.usage.model_dump() if completion.usage is not None else None
    calls = bool(choice.message.tool_calls)
    return Reply(choice.message.content or "", openai_usage(usage), completion.model, problem, calls)


@dataclass(frozen=True, slots=True)
class Responses:
    """``/v1/responses``: OpenAI's newer API; the request asks it to store nothing."""

    @property
    def wire(self) -> str:
        """The wire format of its requests."""
        return "openai_responses"

    async def ask(self, client: AsyncOpenAI, question: Question) -> Reply:
        """Send a question, with the instructions in ``instructions``."""
        options: dict[str, Any] = _temperature(question)
        response = await client.responses.create(
            model=question.model,
            instructions=question.message.instructions,
            input=question.message.record,
            max_output_tokens=question.max_tokens,
            store=False,
            **options,
        )
        return _responded(response)

    async def go_on(self, client: AsyncOpenAI, arguments: dict[str, Any]) -> Reply:
        """Send the arguments of ``responses.create`` as they are."""
        return _responded(await client.responses.create(**arguments))


def _responded(response: Response) -> Reply:
    parts = [part for item in response.output if item.type == "message" for part in item.content]
    refusal = next((part.refusal for part in parts if part.type == "refusal"), None)
    problem = declined(refusal) if refusal is not None else None
    if (details := response.incomplete_details) is not None:
        problem = declined(details.reason) if details.reason == "content_filter" else stopped(details.reason)
    usage = response.usage.model_dump() if response.usage is not None else None
    calls = any(item.type.endswith("_call") for item in response.output)
    return Reply(response.output_text, responses_usage(usage), str(response.model), problem, calls)


CHAT: Final = ChatCompletions()


def _temperature(question: Question) -> dict[str, Any]:
    return {} if question.temperature is None else {"temperature": question.temperature}


class OpenAISummarizer(ModelSummarizer):
    """Summarises with a model behind OpenAI's API, or behind any server that speaks it.

    The SDK's client is made for each summary and closed after it; the application's own client is used unchanged, with
    its own retries, and left open.

    Args:
        model: the model's name.
        endpoint: `ChatCompletions`, which compatible servers have too, or `Responses`.
        client: the application's ``AsyncOpenAI``.
        name: stored beside every summary.
        options: the settings of its requests, see `Options`.

    Raises:
        MissingExtra: the SDK is not installed.
        ValueError: an option is invalid.
    """

    provider: ClassVar[str] = "openai"
    """The provider, as OpenTelemetry's conventions name it."""

    def __init__(
        self,
        model: str,
        *,
        endpoint: Endpoint = CHAT,
        client: AsyncOpenAI | None = None,
        name: str = "openai",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, name=name, **options)
        with needs("openai"):
            import openai  # noqa: PLC0415 - an extra: imported by whoever summarises with it
        self._sdk = openai
        self._endpoint = endpoint
        self._client = client

    @property
    def _wire(self) -> str:
        return self._endpoint.wire

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[ModelClient]:
        if self._client is not None:
            yield _Connection(self._client, self._endpoint)
            return
        settings = self._settings
        async with self._sdk.AsyncOpenAI(
            base_url=settings.base_url,
            api_key=settings.api_key,
            timeout=settings.timeout,
            max_retries=settings.retries,
        ) as client:
            yield _Connection(client, self._endpoint)


@dataclass(frozen=True, slots=True)
class _Connection:
    client: AsyncOpenAI
    endpoint: Endpoint

    async def ask(self, question: Question) -> Reply:
        return await self.endpoint.ask(self.client, question)

    async def go_on(self, arguments: dict[str, Any]) -> Reply:
        return await self.endpoint.go_on(self.client, arguments)
