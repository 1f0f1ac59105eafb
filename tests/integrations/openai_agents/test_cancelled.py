"""Streamed runs that are cancelled while the session writes; held to the SDK's own session, whose writes go on."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from agents import Agent, Runner, SQLiteSession, function_tool

from tests.integrations.openai_agents.test_run import QUIET, model_of, opened
from tests.providers import Answer, Call, FakeProvider
from timeline import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from agents import Session

    from tests.providers import Asked, Step


@function_tool
def pay(to: str) -> str:
    """Pay somebody."""
    return f"{to} was paid."


def paying(asked: Asked) -> Step:
    """Pay two people at once, then say so."""
    if asked.number:
        return "Both were paid."
    return Answer("I pay both.", tuple(Call("pay", {"to": name}, f"k_{name}") for name in ("ada", "bo")))


async def cancelled_at(name: str, agent: Agent[Any], **run: Any) -> list[str]:
    """Run an agent, cancel at the first event of a name, and return what its tools came to until then."""
    result = Runner.run_streamed(agent, "Pay ada and bo", **run)
    seen = list[str]()
    async for event in result.stream_events():
        if event.type == "run_item_stream_event" and event.name == "tool_output":
            seen.append(str(getattr(event.item, "output", "")))
        if getattr(event, "name", "") == name:
            result.cancel()
    return seen


async def outputs_of(session: Session) -> list[str]:
    """Return what the tools came to, as a session has it."""
    items: list[Any] = [*await session.get_items()]
    return [item["output"] for item in items if "output" in item]


@pytest.mark.parametrize("wire", ["responses", "chat"])
async def test_a_run_that_is_cancelled_at_a_result_keeps_what_its_tools_did(tmp_path: Path, wire: str) -> None:
    """As the SDK's own session does: the next run knows that both were paid, and pays nobody again."""
    with FakeProvider(paying) as ours, FakeProvider(paying) as theirs:
        async with open_store(tmp_path / "a.db") as store:
            session = await opened(store)
            agent = Agent(name="payer", model=model_of(wire, ours), tools=[pay])
            options: Any = {"session": session, "run_config": session.run_config(QUIET), "hooks": session.hooks()}
            seen = await cancelled_at("tool_output", agent, **options)
            kept = await outputs_of(session)
            await Runner.run(agent, "And now?", **options)
        with closing(SQLiteSession("work", tmp_path / "theirs.db")) as own:
            agent = Agent(name="payer", model=model_of(wire, theirs), tools=[pay])
            await cancelled_at("tool_output", agent, session=own, run_config=QUIET)
            theirs_kept = await outputs_of(own)
    assert seen
    assert kept == theirs_kept == ["ada was paid.", "bo was paid."]
    assert "bo was paid." in ours.asked[-1].text
    assert ours.refused == []


async def test_a_run_that_is_cancelled_when_its_answer_came_whole_has_the_usage_of_the_call(tmp_path: Path) -> None:
    """It was paid for; a thought is what the SDK tells of an answer first, while the hooks hear of it."""
    answer = Answer("All is fine.", thought="It is.", input_tokens=70, output_tokens=7)
    with FakeProvider(answer) as provider:
        async with open_store(tmp_path / "a.db") as store:
            session = await opened(store)
            agent = Agent(name="talker", model=model_of("responses", provider))
            options: Any = {"session": session, "run_config": session.run_config(QUIET), "hooks": session.hooks()}
            await cancelled_at("reasoning_item_created", agent, **options)
            calls = [call async for call in session.timeline.calls()]
    assert [call.usage.output_tokens for call in calls] == [7]
