"""A context on its way to the fake, through each provider's own SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.providers.asking import anthropic_client, google_client, openai_client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.providers.server import FakeProvider
    from timeline.projection.context import RenderedContext

    Send = Callable[[FakeProvider, RenderedContext], Awaitable[Any]]


async def to_anthropic(provider: FakeProvider, context: RenderedContext) -> Any:
    """Ask through ``anthropic``."""
    async with anthropic_client(provider.url) as client:
        return await client.messages.create(model="m", max_tokens=99, **context.to_anthropic())


async def to_chat(provider: FakeProvider, context: RenderedContext) -> Any:
    """Ask for a chat completion through ``openai``."""
    async with openai_client(provider.openai_url) as client:
        return await client.chat.completions.create(model="m", **context.to_openai_chat())


async def to_responses(provider: FakeProvider, context: RenderedContext) -> Any:
    """Ask for a response through ``openai``."""
    async with openai_client(provider.openai_url) as client:
        return await client.responses.create(model="m", **context.to_openai_responses())


async def to_gemini(provider: FakeProvider, context: RenderedContext) -> Any:
    """Ask through ``google-genai``."""
    async with google_client(provider.url).aio as client:
        return await client.models.generate_content(model="m", **context.to_gemini())


SENDS: Final[dict[str, Send]] = {
    "anthropic": to_anthropic,
    "openai_chat": to_chat,
    "openai_responses": to_responses,
    "gemini": to_gemini,
}
"""By wire; each asks once and returns the SDK's object."""
