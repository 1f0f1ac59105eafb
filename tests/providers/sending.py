"""A context on its way to the fake, through each provider's own SDK."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.providers.asking import anthropic_client, google_client, openai_client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.providers.server import FakeProvider
    from timeline.projection.context import RenderedContext


async def to_anthropic(client: Any, context: RenderedContext) -> Any:
    """Ask through ``anthropic``."""
    return await client.messages.create(model="m", max_tokens=99, **context.to_anthropic())


async def to_chat(client: Any, context: RenderedContext) -> Any:
    """Ask for a chat completion through ``openai``."""
    return await client.chat.completions.create(model="m", **context.to_openai_chat())


async def to_responses(client: Any, context: RenderedContext) -> Any:
    """Ask for a response through ``openai``."""
    return await client.responses.create(model="m", **context.to_openai_responses())


async def to_gemini(client: Any, context: RenderedContext) -> Any:
    """Ask through ``google-genai``."""
    return await client.models.generate_content(model="m", **context.to_gemini())


ASKS: Final[dict[str, Callable[[Any, RenderedContext], Awaitable[Any]]]] = {
    "anthropic": to_anthropic,
    "openai_chat": to_chat,
    "openai_responses": to_responses,
    "gemini": to_gemini,
}
"""By wire: asks once through a client that is open."""


def client_of(wire: str, provider: FakeProvider) -> Any:
    """Return a wire's client that tries once, to be entered."""
    match wire:
        case "anthropic":
            return anthropic_client(provider.url)
        case "gemini":
            return google_client(provider.url).aio
        case _:
            return openai_client(provider.openai_url)


async def send(wire: str, provider: FakeProvider, context: RenderedContext) -> Any:
    """Ask once through a client of its own, and return the SDK's object."""
    async with client_of(wire, provider) as client:
        return await ASKS[wire](client, context)


SENDS: Final[dict[str, Callable[[FakeProvider, RenderedContext], Awaitable[Any]]]] = {
    wire: partial(send, wire) for wire in ASKS
}
"""By wire: `send`."""
