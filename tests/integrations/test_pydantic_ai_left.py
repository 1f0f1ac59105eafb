"""Runs of Pydantic AI that are left between a tool and the next request: no history of theirs has its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import Agent, capture_run_messages
from pydantic_ai.messages import FunctionToolResultEvent, ToolReturn

from tests.integrations.test_pydantic_ai import agent_of, timeline_of
from tests.integrations.working import all_fine, blocks_in
from tests.providers import Answer, Call, FakeProvider
from timeline.blocks import ToolResult
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.messages import ModelMessage

    from tests.providers import Asked, Step


class Paying:
    """Pays people, and counts how often."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    async def pay(self, to: str) -> Any:
        """Pay somebody."""
        self.paid.append(to)
        said = f"{to} was paid, as number {len(self.paid)}."
        return ToolReturn(said, metadata={"secret": 1}) if to == "bo" else said


def paying(asked: Asked) -> Step:
    """Pay two people at once; then say something."""
    if asked.number:
        return f"Answer {asked.number}."
    return Answer("I pay both.", tuple(Call("pay", {"to": name}, f"k_{name}") for name in ("ada", "bo")))


async def left_at_the_last_result(agent: Agent[None, Any]) -> None:
    """Leave the stream as soon as both results were seen."""
    seen = 0
    async with agent.run_stream_events("Pay both.", conversation_id="c1") as events:
        async for event in events:
            seen += isinstance(event, FunctionToolResultEvent)
            if seen == 2:
                break


async def left_inside_a_node(agent: Agent[None, Any]) -> None:
    """Leave the stream of a node, and the run with it."""
    async with agent.iter("Pay both.", conversation_id="c1") as run:
        async for node in run:
            if Agent.is_call_tools_node(node):
                async with node.stream(run.ctx) as events:
                    async for event in events:
                        if isinstance(event, FunctionToolResultEvent):
                            break
                break


async def left_before_the_next_request(agent: Agent[None, Any]) -> None:
    """Leave a run step by step."""
    async with agent.iter("Pay both.", conversation_id="c1") as run:
        async for node in run:
            if Agent.is_model_request_node(node) and any(
                part.part_kind == "tool-return" for part in node.request.parts
            ):
                break


STEPWISE = [left_inside_a_node, left_before_the_next_request]


async def left(leave: Callable[[Agent[None, Any]], Any], agent: Agent[None, Any]) -> list[ModelMessage]:
    """Leave a run, and return the messages that the framework has of it."""
    with capture_run_messages() as messages:
        await leave(agent)
    return messages


async def results_in(store: MemoryStore) -> list[str]:
    """Return the results of a log."""
    return [block.text for block in await blocks_in(store, "c1") if isinstance(block, ToolResult)]


@pytest.mark.parametrize("leave", [left_at_the_last_result, *STEPWISE])
@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses", "anthropic"])
async def test_what_the_tools_of_a_run_returned_is_in_the_log_wherever_the_run_is_left(leave: Any, wire: str) -> None:
    """They ran: the next run of the conversation knows that, and nobody is paid twice."""
    store, tools = MemoryStore(), Paying()
    with FakeProvider(paying) as provider:
        agent = agent_of(provider, store, wire=wire, tools=[tools.pay])
        await left(leave, agent)
        told = await results_in(store)
        assert [text.split(",")[0] for text in told] == ["ada was paid", "bo was paid"]
        await agent.run("And now?", conversation_id="c1")
        assert all(text in provider.asked[-1].text for text in told)
        assert await results_in(store) == told
        assert len(tools.paid) == 2
    assert all_fine(await (await timeline_of(store)).verify(), provider)


@pytest.mark.parametrize("leave", STEPWISE)
async def test_a_run_that_calls_these_tools_again_has_what_they_returned_then(leave: Any) -> None:
    """The framework's history lacks the results, so a run from it has its own; no model sees both."""
    store, tools = MemoryStore(), Paying()
    with FakeProvider(paying) as provider:
        agent = agent_of(provider, store, tools=[tools.pay])
        messages = await left(leave, agent)
        first = await results_in(store)
        result = await agent.run(None, message_history=messages, conversation_id="c1")
        again = (await results_in(store))[2:]
        await agent.run("And now?", message_history=result.all_messages())
        assert all(text in provider.asked[-1].text for text in again)
        assert not any(text in provider.asked[-1].text for text in first)
    assert len(tools.paid) == 4
    assert all_fine(await (await timeline_of(store)).verify(), provider)
