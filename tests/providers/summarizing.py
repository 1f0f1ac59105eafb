"""The summarizers over the SDKs, pointed at a fake provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.summarizers import AnthropicSummarizer, GoogleSummarizer, OpenAISummarizer, Responses

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.providers.server import FakeProvider
    from timeline.summarizers.models import ModelSummarizer

MODEL: Final = "small-1"


def _options(url: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"api_key": "none", "base_url": url, "retries": 0, **options}


def _anthropic(provider: FakeProvider, **options: Any) -> ModelSummarizer:
    return AnthropicSummarizer(MODEL, **_options(provider.url, options))


def _chat(provider: FakeProvider, **options: Any) -> ModelSummarizer:
    return OpenAISummarizer(MODEL, **_options(provider.openai_url, options))


def _responses(provider: FakeProvider, **options: Any) -> ModelSummarizer:
    return OpenAISummarizer(MODEL, endpoint=Responses(), **_options(provider.openai_url, options))


def _google(provider: FakeProvider, **options: Any) -> ModelSummarizer:
    return GoogleSummarizer(MODEL, **_options(provider.url, options))


SUMMARIZERS: Final[dict[str, Callable[..., ModelSummarizer]]] = {
    "anthropic": _anthropic,
    "openai_chat": _chat,
    "openai_responses": _responses,
    "gemini": _google,
}
"""By wire; each makes one that tries once, unless told otherwise."""
