"""Summarise with Google's models."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Unpack

from timeline.errors import needs
from timeline.wire.usage import gemini_usage

from .models import ModelSummarizer, Options, Reply, declined, stopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from google.genai.client import AsyncClient
    from google.genai.types import GenerateContentConfig, GenerateContentResponse

    from timeline.errors import SummarizerFailed

    from .models import ModelClient, Question

_WHOLE: Final = {"STOP", "FINISH_REASON_UNSPECIFIED"}


class GoogleSummarizer(ModelSummarizer):
    """Summarises with a Gemini model.

    The SDK's client is made for each summary and closed after it; the application's own client is used unchanged, with
    its own retries, and left open.

    Args:
        model: the model's name.
        client: the ``aio`` of the application's ``google.genai.Client``.
        name: stored beside every summary.
        options: the settings of its requests, see `Options`.

    Raises:
        MissingExtra: the SDK is not installed.
        ValueError: an option is invalid.
    """

    provider: ClassVar[str] = "gcp.gen_ai"
    """The provider, as OpenTelemetry's conventions name it."""

    def __init__(
        self, model: str, *, client: AsyncClient | None = None, name: str = "google", **options: Unpack[Options]
    ) -> None:
        super().__init__(model, name=name, **options)
        with needs("google-genai", "google"):
            from google import genai  # noqa: PLC0415 - an extra: imported by whoever summarises with it
            from google.genai import types  # noqa: PLC0415 - the same
        self._sdk = genai
        self._types = types
        self._client = client

    @property
    def _wire(self) -> str:
        return "gemini"

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[ModelClient]:
        if self._client is not None:
            yield _Connection(self._client, self._types.GenerateContentConfig)
            return
        settings = self._settings
        options = self._types.HttpOptions(
            base_url=settings.base_url,
            timeout=None if settings.timeout is None else int(settings.timeout * 1_000),
            retry_options=self._types.HttpRetryOptions(attempts=settings.retries + 1),
        )
        async with self._sdk.Client(api_key=settings.api_key, http_options=options).aio as client:
            yield _Connection(client, self._types.GenerateContentConfig)


@dataclass(frozen=True, slots=True)
class _Connection:
    client: AsyncClient
    config: type[GenerateContentConfig]

    async def ask(self, question: Question) -> Reply:
        response = await self.client.models.generate_content(
            model=question.model,
            contents=question.message.record,
            config=self.config(
                system_instruction=question.message.instructions,
                max_output_tokens=question.max_tokens,
                temperature=question.temperature,
            ),
        )
        return _reply(response)

    async def go_on(self, arguments: dict[str, Any]) -> Reply:
        return _reply(await self.client.models.generate_content(**arguments))


def _reply(response: GenerateContentResponse) -> Reply:
    metadata = response.usage_metadata
    usage = gemini_usage(metadata.model_dump(mode="json", by_alias=True) if metadata is not None else None)
    calls = bool(response.function_calls)
    text = "" if calls else response.text or ""  # the SDK warns of a text beside calls
    return Reply(text, usage, response.model_version or "", _problem_of(response), calls)


def _problem_of(response: GenerateContentResponse) -> SummarizerFailed | None:
    """Return the failure of an unusable response; None where the response can be used."""
    if not response.candidates:
        feedback = response.prompt_feedback
        return declined(feedback.block_reason if feedback is not None else "no candidate")
    finish = response.candidates[0].finish_reason
    if finish is None or finish.value in _WHOLE:
        return None
    return stopped(finish.value) if finish.value == "MAX_TOKENS" else declined(finish.value)
