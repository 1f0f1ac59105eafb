"""What adapters record of each model call: the request in the framework's hands, ours beside it, and how it ended."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest
from agents import Agent as AgentOfOpenAI
from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, function_tool
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from openai import AsyncOpenAI, InternalServerError
from pydantic_ai import Agent as AgentOfPydantic
from pydantic_ai.exceptions import ModelHTTPError

import timeline.sync
from tests.integrations import test_langchain, test_pydantic_ai
from tests.integrations.working import all_fine, bash, small, working
from tests.providers import Answer, FakeProvider, Hang, Trouble
from timeline import Timeline, open_store
from timeline.events import ModelCalled
from timeline.integrations.framework_requests import framework_request, tools_for
from timeline.integrations.langchain import TimelineMiddleware
from timeline.integrations.openai_agents import TimelineSession
from timeline.integrations.pydantic_ai import TimelineCapability
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path

    from tests.providers.script import Asked, Step
    from timeline.events import NewEvent
    from timeline.ports import Appended, EventStore

ROUNDS: Final = 16
FAILING: Final = (2, 5)
LONG: Final = 1_500
"""Tokens of the fake's; the first request above them is refused for its size."""
_SAID: Final = re.compile(r"ran pytest [\d.]+|Fix it\.")


class Model:
    """A model that works, but fails twice, and refuses one context for its size.

    Attributes:
        failed: the numbers of the requests that got no answer.
    """

    def __init__(self) -> None:
        self.failed: list[int] = []
        self._has_refused = False

    def __call__(self, asked: Asked) -> Step:
        """Answer, or fail."""
        if asked.number in FAILING:
            self.failed.append(asked.number)
            return Trouble("server")
        if asked.tokens > LONG and not self._has_refused:
            self.failed.append(asked.number)
            self._has_refused = True
            return Trouble("context_limit", limit=asked.tokens * 4 // 5)
        return working(ROUNDS)(asked)


async def langchain(store: Any, provider: FakeProvider, wire: str) -> None:
    """Let an agent of LangChain's work; another middleware tries again what failed."""
    llm = test_langchain.model_of(provider, use_responses_api=wire == "openai_responses", temperature=0.5)
    retry = ModelRetryMiddleware(max_retries=3, initial_delay=0.0, jitter=False)
    middleware: Any = [retry, TimelineMiddleware(store, policy=small())]
    agent: Any = create_agent(llm, [bash], middleware=middleware, system_prompt="You code.")
    config = {"configurable": {"thread_id": "c"}, "recursion_limit": 200}
    await agent.ainvoke(test_langchain.FIX, config)


async def pydantic_ai(store: Any, provider: FakeProvider, wire: str) -> None:
    """Let an agent of Pydantic AI's work; the application begins anew with the history where a run failed."""
    llm = test_pydantic_ai.model_of(provider, wire)
    capability = TimelineCapability[None](store, policy=small(), conversation="c")
    settings: Any = {"max_tokens": 500, "timeout": 30.0}
    agent = AgentOfPydantic(
        llm, instructions="You code.", tools=[bash], capabilities=[capability], model_settings=settings
    )
    history: Any = None
    for _ in range(len(FAILING) + 1):
        with suppress(ModelHTTPError):
            async with agent.iter("Fix it." if history is None else None, message_history=history) as run:
                try:
                    async for _node in run:
                        pass
                finally:
                    history = run.all_messages()
            return


async def openai_agents(store: Any, provider: FakeProvider, wire: str) -> None:
    """Let an agent of OpenAI's SDK work; the application begins anew where a run failed."""
    client = AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=0)
    kind: Any = OpenAIResponsesModel if wire == "openai_responses" else OpenAIChatCompletionsModel
    session = await TimelineSession.open(store, "c", policy=small())
    agent = AgentOfOpenAI(
        name="coder",
        instructions="You code.",
        model=kind(model="gpt-6", openai_client=client),
        tools=[function_tool(bash)],
    )
    options: Any = {"session": session, "hooks": session.hooks(), "max_turns": 100}
    for _ in range(len(FAILING) + 2):
        try:
            await Runner.run(
                agent, "Fix it.", run_config=session.run_config(RunConfig(tracing_disabled=True)), **options
            )
        except InternalServerError as error:
            await session.record_failure(error)
            await session.record_failure(error)  # a second time, no call is under way
        except Exception:  # noqa: BLE001, S112 - whatever the SDK makes of a refusal; the next run records it
            continue
        else:
            return


RUNS: Final[dict[str, tuple[Callable[[Any, FakeProvider, str], Coroutine[Any, Any, None]], tuple[str, ...]]]] = {
    "langchain": (langchain, ("openai_chat", "openai_responses")),
    "pydantic_ai": (pydantic_ai, ("openai_chat", "openai_responses", "anthropic")),
    "openai_agents": (openai_agents, ("openai_chat", "openai_responses")),
}
CASES: Final = [(name, wire) for name, (_, wires) in RUNS.items() for wire in wires]


def tools_in(body: dict[str, Any]) -> list[str]:
    """Return the names of a body's tools."""
    return sorted(tool.get("name") or tool["function"]["name"] for tool in body["tools"])


async def read_calls(store: EventStore) -> list[Any]:
    """Read each call from the log."""
    timeline_ = await Timeline.open(store, "c", create=False)
    return [call async for call in timeline_.calls()]


@pytest.mark.parametrize(("framework", "wire"), CASES)
async def test_each_call_is_recorded_with_ours_beside_the_frameworks(tmp_path: Path, framework: str, wire: str) -> None:
    """Failed, refused and repeated calls too; the body names the same tools and says the same last words."""
    work, _ = RUNS[framework]
    model = Model()
    with FakeProvider(model) as provider:
        async with open_store(tmp_path / "a.db") as store:
            await work(store, provider, wire)
            calls = await read_calls(store)
            timeline_ = await Timeline.open(store, "c", create=False)
            report = await timeline_.verify()
    assert all_fine(report, provider)
    assert len(calls) == len(provider.asked)
    assert [call.number - 1 for call in calls if call.error] == model.failed
    assert len(model.failed) == len(FAILING) + 1
    assert [(call.wire, call.body, call.unproved) for call in calls] == [(wire, "framework", None)] * len(calls)
    for call, asked in zip(calls, provider.asked, strict=True):
        assert call.error or call.usage.output_tokens > 0
        assert tools_in(call.request) == tools_in(asked.body)
        last = _SAID.findall(json.dumps(asked.said))[-1]
        assert last in json.dumps(call.request)


def test_a_blocking_store_records_failed_calls_too(tmp_path: Path) -> None:
    """Of an agent that is called without an event loop."""
    with timeline.sync.open_store(tmp_path / "a.db") as store, FakeProvider([Trouble("server"), "Done."]) as provider:
        retry = ModelRetryMiddleware(max_retries=1, initial_delay=0.0, jitter=False)
        agent = test_langchain.agent_of(provider, retry, TimelineMiddleware(store))
        agent.invoke(test_langchain.FIX, test_langchain.THREAD)
        twin = timeline.sync.Timeline.open(store, "t1", create=False)
        first, last = twin.calls()
    assert (first.finish_reason, first.body, last.error, last.body) == ("error", "framework", "", "framework")
    assert first.request == last.request


@pytest.mark.parametrize("framework", ["langchain", "pydantic_ai"])
async def test_a_call_that_is_cancelled_is_recorded_as_failed(tmp_path: Path, framework: str) -> None:
    """As by a timeout of the application's."""
    work, _ = RUNS[framework]
    with FakeProvider(Hang()) as provider:
        async with open_store(tmp_path / "a.db") as store:
            task = asyncio.create_task(work(store, provider, "openai_chat"))
            await asyncio.to_thread(provider.wait_for, asked=1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            [call] = await read_calls(store)
    assert (call.finish_reason, call.body, call.unproved) == ("error", "framework", None)
    assert "ancelled" in call.error


class _Slow(MemoryStore):
    """A store that takes its time to write down a call, as a server may.

    Attributes:
        writes: set once it does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.writes = asyncio.Event()

    async def append(self, conversation: str, events: Sequence[NewEvent], **more: Any) -> Appended:
        if any(isinstance(event.payload, ModelCalled) for event in events):
            self.writes.set()
            await asyncio.sleep(0.05)
        return await super().append(conversation, events, **more)


@pytest.mark.parametrize("framework", RUNS)
async def test_a_call_whose_answer_came_whole_has_its_usage_though_the_run_is_cancelled(framework: str) -> None:
    """The answer was paid for."""
    work, _ = RUNS[framework]
    store = _Slow()
    with FakeProvider(Answer("Done.", input_tokens=70, output_tokens=7)) as provider:
        task = asyncio.create_task(work(store, provider, "openai_chat"))
        await store.writes.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [(call.usage.output_tokens, call.error) for call in await read_calls(store)] == [(7, "")]


async def test_a_frameworks_credentials_are_in_no_log() -> None:
    """What a framework calls the model's settings may hold the client's key."""
    timeline = await Timeline.open(MemoryStore(), "c")
    await timeline.append({"type": "user.prompt", "text": "Hi."})
    request = framework_request(await timeline.render(), "openai_chat", "m", {"top_p": 0.5, "api_key": "sk-1"})
    assert request.parameters == {"top_p": 0.5}


def test_tools_have_the_form_of_their_wire() -> None:
    """A provider's own tool keeps its form."""
    own = {"type": "web_search_20260101", "name": "web_search"}
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    bare: dict[str, Any] = {"name": "ls", "description": ""}
    tools: list[dict[str, Any]] = [
        {"type": "function", "function": {"name": "bash", "description": "Run.", "parameters": schema}},
        own,
        {"type": "function", "function": bare},
    ]
    empty = {"type": "object", "properties": {}}
    assert tools_for("openai_chat", tools) == tools
    assert tools_for("openai_responses", tools)[0] == {"type": "function", **tools[0]["function"]}
    assert tools_for("anthropic", tools) == [
        {"name": "bash", "description": "Run.", "input_schema": schema},
        own,
        {"name": "ls", "input_schema": empty},
    ]
    assert tools_for("bedrock_converse", tools) == [
        {"toolSpec": {"name": "bash", "description": "Run.", "inputSchema": {"json": schema}}},
        own,
        {"toolSpec": {"name": "ls", "inputSchema": {"json": empty}}},
    ]
    assert tools_for("gemini", tools) == [
        own,
        {
            "function_declarations": [
                {"name": "bash", "description": "Run.", "parameters_json_schema": schema},
                {"name": "ls", "parameters_json_schema": empty},
            ]
        },
    ]
