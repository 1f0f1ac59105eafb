"""Real agents of Pydantic AI over a timeline, against a fake of the provider on loopback."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
    ModelRetry,
    RunContext,
    Tool,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    CachePoint,
    CompactionPart,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

import timeline.sync
from tests.integrations.working import (
    ROUNDS,
    all_fine,
    bash,
    blocks_in,
    calls_in,
    compactions_in,
    recalling,
    small,
    working,
)
from tests.providers import Answer, Asked, Call, FakeProvider, Trouble
from timeline import Timeline, open_store
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult
from timeline.errors import ContextRefused, InvalidArgument
from timeline.integrations.pydantic_ai import TimelineCapability
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic_ai.models import Model, ModelRequestContext

    from timeline.ports import EventStore


def model_of(provider: FakeProvider, wire: str = "openai_chat") -> Model:
    """Return a model of the framework's, over the real SDK."""
    if wire == "anthropic":
        client = AsyncAnthropic(base_url=provider.url, api_key="none", max_retries=0)
        return AnthropicModel("claude-opus-5", provider=AnthropicProvider(anthropic_client=client))
    of_openai = OpenAIProvider(openai_client=AsyncOpenAI(base_url=provider.openai_url, api_key="none", max_retries=0))
    kind: Any = OpenAIChatModel if wire == "openai_chat" else OpenAIResponsesModel
    model: Model = kind("gpt-6", provider=of_openai)
    return model


def agent_of(provider: FakeProvider, store: Any, *, wire: str = "openai_chat", **options: Any) -> Agent[None, Any]:
    """Return an agent."""
    settings = {"instructions": "You code.", "tools": [bash], **options}
    capability = settings.pop("capability", None) or TimelineCapability[None](store, policy=small())
    return Agent(model_of(provider, wire), capabilities=[capability], **settings)


async def timeline_of(store: EventStore, conversation: str = "c1") -> Timeline:
    """Open what a conversation's log says."""
    return await Timeline.open(store, conversation, create=False)


@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses", "anthropic"])
async def test_a_long_run_is_compacted_and_nothing_is_lost(wire: str) -> None:
    """Each request is valid and within bounds, the run's history stays whole, and all of it is in the log."""
    store = MemoryStore()
    with FakeProvider(working(), limit=4_500) as provider:
        result = await agent_of(provider, store, wire=wire).run("Fix it.", conversation_id="c1")
    timeline_ = await timeline_of(store)
    assert all_fine(await timeline_.verify(), provider)
    assert await compactions_in(store, "c1") >= 3
    assert len(provider.asked) == ROUNDS + 1
    assert all("You code." in asked.system for asked in provider.asked)
    told = [b.text for b in await blocks_in(store, "c1") if isinstance(b, ToolResult)]
    parts = [part for message in result.all_messages() for part in message.parts]
    assert told == [part.content for part in parts if isinstance(part, ToolReturnPart)]
    assert len(told) == ROUNDS + ROUNDS // 2
    path = next(b.path for b in await blocks_in(store, "c1") if isinstance(b, ToolResult))
    assert (await timeline_.read(path)).text == told[0]


def _is_offered(tool: str, asked: Asked) -> bool:
    """Return whether the model of a request may call a tool that is loaded later."""
    name, body = json.dumps(tool), asked.body
    if asked.wire == "anthropic":  # which declares each tool, and offers those that a search or an addition refers to
        parts = [part for message in body["messages"] if message["role"] != "assistant" for part in message["content"]]
        return any("tool_reference" in json.dumps(part) and name in json.dumps(part) for part in parts)
    added = [item for item in body.get("input", ()) if item.get("type") == "additional_tools"]
    return name in json.dumps([body["tools"], *added])


@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses", "anthropic"])
async def test_a_tool_that_was_found_by_a_search_is_offered_behind_the_compactions_of_that_search(wire: str) -> None:
    """The framework reads from what is sent which tools were found, and searches only among the others."""

    def measure(of: str) -> str:
        """Measure the moon."""
        return f"{of}: 3,474 km"

    work = working(16)

    def model(asked: Any) -> Answer:
        if asked.number == 0:
            return Answer(calls=(Call("search_tools", {"queries": ["moon"]}),))
        return Answer(calls=(Call("measure", {"of": "diameter"}),)) if asked.number == 15 else work(asked)

    store = MemoryStore()
    with FakeProvider(model) as provider:
        agent = agent_of(provider, store, wire=wire, tools=[bash, Tool(measure, defer_loading=True)])
        result = await agent.run("Measure it.", conversation_id="c1")
    assert all_fine(await (await timeline_of(store)).verify(), provider)
    assert await compactions_in(store, "c1") >= 2
    assert "discovered_tools" not in provider.asked[-1].text
    offered = [_is_offered("measure", asked) for asked in provider.asked]
    assert offered == [False, *[True] * (len(offered) - 1)]
    assert "3,474 km" in str(result.all_messages())


async def test_a_second_instance_goes_on_and_the_same_history_appends_nothing(tmp_path: Path) -> None:
    """The log is known by what it says, after a history was stored and loaded too."""
    with FakeProvider(working(8)) as provider:
        async with open_store(tmp_path / "a.db") as store:
            first = await agent_of(provider, store).run("Fix it.", conversation_id="c1")
            before = await blocks_in(store, "c1")
        history = ModelMessagesTypeAdapter.validate_json(first.all_messages_json())
        async with open_store(tmp_path / "a.db") as store:
            second = await agent_of(provider, store).run("And now?", message_history=history)
            after = await blocks_in(store, "c1")
            assert [b.text for b in after[len(before) :]] == ["And now?", "Done after 9."]
            asked = second.all_messages()[:-1]
            await agent_of(provider, store).run(message_history=asked)
            assert [b.text for b in (await blocks_in(store, "c1"))[len(after) :]] == ["Done after 10."]
            assert all_fine(await (await timeline_of(store)).verify(), provider)


@pytest.fixture
def loop_of_run_sync() -> Iterator[None]:
    """The loop that `run_sync` runs in: it takes the thread's own, and leaves it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures("loop_of_run_sync")
def test_a_run_without_an_event_loop(tmp_path: Path) -> None:
    """`run_sync` with a store that has a loop of its own."""
    with timeline.sync.open_store(tmp_path / "a.db") as store, FakeProvider(working(8)) as provider:
        agent = agent_of(provider, store)
        first = agent.run_sync("Fix it.", conversation_id="c1")
        agent.run_sync("And?", message_history=first.all_messages())
        opened = timeline.sync.Timeline.open(store, "c1", create=False)
        assert opened.window.items[-1].block.text == "Done after 9."
        assert all_fine(opened.verify(), provider)


async def test_a_streamed_run_is_recorded_as_any_other() -> None:
    """The consumer has the pieces, the log what they came to."""
    store = MemoryStore()
    with FakeProvider(working(3, says="")) as provider:
        async with agent_of(provider, store).run_stream("Fix it.", conversation_id="c1") as run:
            pieces = [piece async for piece in run.stream_text(delta=True, debounce_by=None)]
    assert "".join(pieces) == "Done after 3."
    assert all(asked.stream for asked in provider.asked)
    assert (await blocks_in(store, "c1"))[-1].text == "Done after 3."
    assert len(await calls_in(store, "c1")) == 4
    assert all_fine(await (await timeline_of(store)).verify(), provider)


async def test_usage_is_recorded_after_each_call() -> None:
    """What the cache answered, how it ended, which model, and which context it answers."""
    store = MemoryStore()
    with FakeProvider(working(1)) as provider:
        await agent_of(provider, store).run("Fix it.", conversation_id="c1")
    first, last = await calls_in(store, "c1")
    assert (first.model, first.finish_reason, last.finish_reason) == ("gpt-6", "tool_call", "stop")
    assert (last.usage.cache_read_tokens, last.usage.input_tokens) == (40, provider.asked[-1].tokens)
    assert first.answers is not None
    assert first.started_at is not None
    assert first.duration is not None
    said = {b.response_id for b in await blocks_in(store, "c1") if isinstance(b, ToolCall | AssistantCompletion)}
    assert said == {first.response_id, last.response_id}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_context_that_the_model_refuses_is_made_smaller_once(*, stream: bool) -> None:
    """What the provider counts is the last word."""
    store = MemoryStore()
    with FakeProvider(working(says=""), limit=2_000) as provider:
        agent = agent_of(provider, store)
        if stream:
            async with agent.run_stream("Fix it.", conversation_id="c1") as run:
                await run.get_output()
        else:
            await agent.run("Fix it.", conversation_id="c1")
    assert provider.refused
    assert all("tokens >" in problem for problem in provider.refused)
    assert (await (await timeline_of(store)).verify()).ok


async def test_a_context_that_is_refused_twice_is_a_typed_error() -> None:
    """The error names the sizes."""
    with FakeProvider(working(), limit=150) as provider:
        agent = agent_of(provider, MemoryStore())
        with pytest.raises(ContextRefused):
            await agent.run("word " * 600, conversation_id="c1")


async def test_a_run_that_fails_leaves_what_it_came_to() -> None:
    """The tools ran, and the log says so, whatever the model did then."""
    store = MemoryStore()
    with FakeProvider([Answer(calls=(Call("bash", {"command": "ls"}, "x"),)), Trouble("server")]) as provider:
        agent = agent_of(provider, store)
        with pytest.raises(ModelHTTPError):
            await agent.run("Fix it.", conversation_id="c1")
    kinds = [block.type for block in await blocks_in(store, "c1")]
    assert kinds == ["user.prompt", "react.tool.call", "react.tool.result"]


async def test_a_stream_that_its_consumer_leaves_is_in_the_log_as_far_as_it_came() -> None:
    """As far as the framework has it."""
    store = MemoryStore()
    with FakeProvider("A long answer whose consumer has heard enough of it.") as provider:
        async with agent_of(provider, store).run_stream("Fix it.", conversation_id="c1") as run:
            async for _ in run.stream_text(delta=True, debounce_by=None):
                await run.cancel()
                break
    prompt, said = await blocks_in(store, "c1")
    assert prompt.text == "Fix it."
    assert said.text
    assert "A long answer whose consumer".startswith(said.text)


async def test_a_run_that_is_cancelled_leaves_what_it_came_to() -> None:
    """The end of a run is recorded under a shield."""
    store = MemoryStore()

    runs = asyncio.Event()

    async def hang() -> str:
        """Wait for ever."""
        runs.set()
        await asyncio.Event().wait()
        return ""

    with FakeProvider([Answer(calls=(Call("hang", {}, "x"),))]) as provider:
        run = asyncio.create_task(agent_of(provider, store, tools=[hang]).run("Fix it.", conversation_id="c1"))
        await runs.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert [block.type for block in await blocks_in(store, "c1")] == ["user.prompt", "react.tool.call"]


async def test_conversations_are_told_by_the_run_or_by_the_application() -> None:
    """Runs at the same time do not mix."""
    store = MemoryStore()
    with FakeProvider(lambda asked: f"You said: {asked.said[-1][1]}") as provider:
        agent = agent_of(provider, store)
        await asyncio.gather(*(agent.run(f"I am {n}", conversation_id=f"c{n}") for n in range(6)))
        for number in range(6):
            told = [block.text for block in await blocks_in(store, f"c{number}")]
            assert told == [f"I am {number}", f"You said: I am {number}"]
        for conversation in ("fixed", lambda ctx: f"ada/{ctx.conversation_id}"):
            own = agent_of(provider, store, capability=TimelineCapability[None](store, conversation=conversation))
            await own.run("Hello", conversation_id="c1")
        nameless = agent_of(provider, store, capability=TimelineCapability[None](store, conversation=lambda _: ""))
        with pytest.raises(InvalidArgument, match="conversation_id"):
            await nameless.run("Hello", conversation_id="c1")
    assert {"fixed", "ada/c1"} < {info.id async for info in store.conversations()}


async def test_a_call_that_waits_for_an_approval_stays_open() -> None:
    """The next run brings its result."""
    store = MemoryStore()
    deferred = Tool(bash, requires_approval=True)
    with FakeProvider([Answer(calls=(Call("bash", {"command": "rm"}, "x"),)), "Done."]) as provider:
        agent = agent_of(provider, store, tools=[deferred], output_type=[str, DeferredToolRequests])
        first = await agent.run("Fix it.", conversation_id="c1")
        assert isinstance(first.output, DeferredToolRequests)
        assert [b.type for b in await blocks_in(store, "c1")] == ["user.prompt", "react.tool.call"]
        await agent_of(provider, store, tools=[deferred], output_type=[str, DeferredToolRequests]).run(
            message_history=first.all_messages(), deferred_tool_results=DeferredToolResults(approvals={"x": True})
        )
    assert [b.text.split("\n")[0] for b in await blocks_in(store, "c1")] == ["Fix it.", "", "ran rm", "Done."]
    assert all_fine(await (await timeline_of(store)).verify(), provider)


class Verdict(BaseModel):
    """What a run comes to."""

    is_fine: bool


async def test_output_that_was_sent_back_is_told_with_its_reason() -> None:
    """A validator refuses the first answer; both, and why, are in the log."""
    store = MemoryStore()
    verdicts = [Answer(calls=(Call("final_result", {"is_fine": is_fine}, f"v{is_fine}"),)) for is_fine in (False, True)]
    with FakeProvider([*verdicts, "Because."]) as provider:
        agent = agent_of(provider, store, output_type=Verdict)

        @agent.output_validator
        def check(verdict: Verdict) -> Verdict:
            if not verdict.is_fine:
                raise ModelRetry("Look again.")
            return verdict

        first = await agent.run("Is it fine?", conversation_id="c1")
        await agent_of(provider, store).run("Why?", message_history=first.all_messages())
    results = [b for b in await blocks_in(store, "c1") if isinstance(b, ToolResult)]
    assert [(b.is_error, "Look again." in b.text) for b in results] == [(True, True), (False, False)]
    assert all_fine(await (await timeline_of(store)).verify(), provider)


async def test_the_model_reads_back_what_is_covered() -> None:
    """The recall tool comes with the capability, and finds the conversation by the run."""
    store = MemoryStore()
    with FakeProvider(recalling("ar:turn_1.user.prompt")) as provider:
        await agent_of(provider, store).run("Fix it.", conversation_id="c1")
        bare = TimelineCapability[None](store, recall=False)
        await agent_of(provider, store, capability=bare).run("Fix it.", conversation_id="c2")
    assert any("[ar:turn_1.user.prompt · @2 · user.prompt" in text for _, text in provider.asked[13].said)
    assert [tool["function"]["name"] for tool in provider.asked[-1].body["tools"]] == ["bash"]


async def test_a_summary_of_the_applications_is_not_imported() -> None:
    """The log has what it stands for."""
    store = MemoryStore()
    with FakeProvider(working(2)) as provider:
        agent = agent_of(provider, store)
        first = await agent.run("Fix it.", conversation_id="c1")
        cut = [ModelRequest([CompactionPart("THEIR SUMMARY")], conversation_id="c1"), *first.all_messages()[-1:]]
        await agent.run("And?", message_history=cut, conversation_id="c1")
    assert "THEIR SUMMARY" not in provider.asked[-1].text
    assert "ran pytest 1.1" in provider.asked[-1].text
    assert [b.text for b in await blocks_in(store, "c1")][-2:] == ["And?", "Done after 3."]


async def test_cache_points_stay_with_their_prompts() -> None:
    """They are marked on the wire where the prompt is shown, and are no content."""
    store = MemoryStore()
    with FakeProvider(working(2)) as provider:
        agent = agent_of(provider, store, wire="anthropic")
        await agent.run(["Fix it.", CachePoint()], conversation_id="c1")
    marks = [str(asked.body["messages"][0]).count("cache_control") for asked in provider.asked]
    assert marks == [1, 1, 1]
    assert all_fine(await (await timeline_of(store)).verify(), provider)


class Adding(AbstractCapability[None]):
    """Puts an example in front of each request, and a line and a picture at its end: others each time."""

    async def prepare_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Add them."""
        del ctx
        number = len(request_context.messages)
        *before, last = request_context.messages
        assert isinstance(last, ModelRequest)
        asked, answered = ModelRequest([UserPromptPart("example?")]), ModelResponse([TextPart(f"example {number}")])
        by_the_way = UserPromptPart([f"by the way {number}", ImageUrl("https://example.org/screen.png")])
        request_context.messages = [asked, answered, *before, replace(last, parts=[*last.parts, by_the_way])]
        return request_context


async def test_what_another_capability_adds_to_one_request_is_sent_with_it_and_kept_nowhere() -> None:
    """The log has one turn, and nothing in it is abandoned."""
    store = MemoryStore()
    with FakeProvider(working(2)) as provider:
        capabilities: Any = [TimelineCapability[None](store), Adding()]
        agent = Agent(model_of(provider), tools=[bash], capabilities=capabilities)
        await agent.run("Fix it.", conversation_id="c1")
    ends = [[asked.said[place][1].strip() for place in (0, 1, 2, -1)] for asked in provider.asked]
    assert ends == [["example?", f"example {n}", "Fix it.", f"by the way {n}"] for n in (1, 3, 5)]
    assert [json.dumps(asked.body).count("screen.png") for asked in provider.asked] == [1, 1, 1]
    assert [asked.text.count("by the way") for asked in provider.asked] == [1, 1, 1]
    timeline_ = await timeline_of(store)
    assert {(item.state, item.block.turn_id) for item in timeline_.window.items} == {("visible", "turn_1")}
    assert len(await blocks_in(store, "c1")) == 9
    assert all_fine(await timeline_.verify(), provider)


async def test_the_history_of_a_run_is_never_touched() -> None:
    """What the framework keeps is what was said, without a word of the timeline's."""
    store = MemoryStore()
    with FakeProvider(working()) as provider:
        result = await agent_of(provider, store).run("Fix it.", conversation_id="c1")
    messages = result.all_messages()
    assert await compactions_in(store, "c1") >= 1
    assert len(messages) == 2 * (ROUNDS + 1)
    assert [part.content for part in messages[0].parts if isinstance(part, UserPromptPart)] == ["Fix it."]
    assert sum(isinstance(message, ModelResponse) for message in messages) == ROUNDS + 1


def test_a_missing_framework_is_told_by_its_extra() -> None:
    """The cure is one line."""
    code = "import sys; sys.modules['pydantic_ai'] = None; import timeline.integrations.pydantic_ai"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'timeline-engine[pydantic-ai]'" in done.stderr
