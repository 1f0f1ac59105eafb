"""Agent loops over each provider's own SDK, past several compactions: calls, results, recall, and a log that verifies.

The loop over Anthropic's is the one of docs/embedding.md, in `tests/project/test_agent_loop.py`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.providers import FakeProvider
from tests.providers.coder import Coder
from tests.providers.sending import ASKS, client_of
from tests.scenes import opened, prompt, small_policy
from timeline.blocks import ToolCall, ToolResult
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from timeline import Timeline
    from timeline.agent.recall import RecallTool, RecallWire
    from timeline.blocks import Block
    from timeline.projection.context import RenderedContext

    Step = Callable[[RecallWire, Any, Timeline, list[Any]], Awaitable[Sequence[Block]]]

ROUNDS: Final = 30
LIMIT: Final = 2_500
"""Of the model, by the fake's own count of the whole request: now and then one is refused."""
_OPEN: Final[dict[str, Any]] = {"type": "object"}


def tools_of(wire: RecallWire, recall: RecallTool) -> list[Any]:
    """Return a request's tools: one of the application's, and the one that reads back."""
    match wire:
        case "openai_chat":
            return [{"type": "function", "function": {"name": "bash", "parameters": _OPEN}}, recall.schema]
        case "openai_responses":
            return [{"type": "function", "name": "bash", "parameters": _OPEN, "strict": False}, recall.schema]
        case _:
            return [{"function_declarations": [{"name": "bash", "parameters_json_schema": _OPEN}, recall.schema]}]


async def streamed(client: Any, context: RenderedContext) -> AsyncIterator[Any]:
    """Ask Google's for a stream, and hand its pieces on."""
    async for piece in await client.models.generate_content_stream(model="gemini-3.8-flash", **context.to_gemini()):
        yield piece


async def whole(wire: RecallWire, client: Any, timeline: Timeline, tools: list[Any]) -> Sequence[Block]:
    """Render, call, once more where the context was refused, and record what was said."""
    reply = await timeline.retry_with_compaction(partial(ASKS[wire], client), system="You code.", tools=tools)
    return await timeline.record(reply)


async def in_pieces(_: RecallWire, client: Any, timeline: Timeline, tools: list[Any]) -> Sequence[Block]:
    """Render, call and record the stream as it comes."""
    context = await timeline.render(system="You code.", tools=tools)
    return await timeline.record_stream(streamed(client, context))


async def work(wire: RecallWire, provider: FakeProvider, timeline: Timeline, step: Step = whole) -> str:
    """Answer a prompt: call the model and run its tools until it says something."""
    recall = timeline.recall_tool(wire)
    await timeline.append(prompt(text="Make the tests pass."))
    async with client_of(wire, provider) as client:
        while True:
            blocks = await step(wire, client, timeline, tools_of(wire, recall))
            calls = [block for block in blocks if isinstance(block, ToolCall)]
            if not calls:
                return blocks[-1].text
            for call in calls:
                ran = ToolResult(
                    call_id=call.call_id, name=call.name, text=f"ran {call.name}\n" + "E   assert 1\n" * 60
                )
                await timeline.append(await recall.answer(call) if call.name == recall.name else ran)


async def check(coder: Coder, provider: FakeProvider, timeline: Timeline) -> None:
    """Check that it was compacted several times, that what was recalled was told, and that all of it verifies."""
    assert len(provider.asked) == ROUNDS + 1
    assert {asked.system for asked in provider.asked} == {"You code."}
    assert coder.recalled
    for address in coder.recalled:
        told = [text for asked in provider.asked for _, text in asked.said if f" · {address} · " in text]
        assert any("src/part_" in text for text in told), address
    report = await timeline.verify()
    assert report.ok, report.problems
    assert report.compactions >= 3


@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses", "gemini"])
async def test_an_agent_works_past_several_compactions(wire: RecallWire) -> None:
    """Each request is one that the provider takes, or refuses for its size alone."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=2_000))
    coder = Coder(ROUNDS)
    with FakeProvider(coder, limit=LIMIT) as provider:
        assert await work(wire, provider, timeline) == "All tests pass."
    assert all(f"> {LIMIT}" in refusal for refusal in provider.refused), provider.refused
    await check(coder, provider, timeline)


async def test_an_agent_streams_from_a_model_that_demands_its_signatures_back() -> None:
    """Google's newer models refuse a call of the current turn whose signature is not the one that it came with."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=2_000))
    coder = Coder(ROUNDS)
    with FakeProvider(coder) as provider:
        assert await work("gemini", provider, timeline, in_pieces) == "All tests pass."
    assert provider.refused == []
    assert all(asked.stream for asked in provider.asked)
    await check(coder, provider, timeline)
