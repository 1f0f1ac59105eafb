"""What an application hands an adapter as its store: a wrong one is refused where the adapter is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import timeline
from timeline.errors import InvalidArgument
from timeline.integrations.langchain import TimelineMiddleware
from timeline.integrations.mcp.server import build_server
from timeline.integrations.openai_agents import TimelineSession
from timeline.integrations.pydantic_ai import TimelineCapability
from timeline.integrations.pydantic_ai_store import TimelineConversationStore

if TYPE_CHECKING:
    from collections.abc import Callable

ADAPTERS = [TimelineMiddleware, TimelineCapability, TimelineConversationStore, build_server]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__)
@pytest.mark.parametrize("given", [lambda: "agent.db", lambda: timeline.open_store("memory://")], ids=["path", "early"])
def test_an_adapter_is_not_made_on_what_is_no_open_store(
    adapter: Callable[[Any], object], given: Callable[[], Any]
) -> None:
    """A path, or a store before its `async with`: the first run failed, with an AttributeError inside the framework."""
    with pytest.raises(InvalidArgument, match="async with open_store"):
        adapter(given())


async def test_a_session_refuses_a_store_without_await_before_it_writes() -> None:
    """It was a TypeError behind the first append."""
    with timeline.sync.open_store("memory://") as store:
        given: Any = store
        with pytest.raises(InvalidArgument, match=r"timeline\.sync"):
            await TimelineSession.open(given, "c")
        assert list(store.conversations()) == []
