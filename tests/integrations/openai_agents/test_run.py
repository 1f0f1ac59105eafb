"""A real agent of the SDK on a session, against a fake provider that checks every request, past several compactions."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIProvider,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SessionSettings,
    SQLiteSession,
    function_tool,
    handoff,
)
from openai import AsyncOpenAI

from tests.providers import Answer, Call, FakeProvider
from tests.scenes import payloads_of, small_policy
from timeline import open_store
from timeline.blocks import ToolCall, ToolResult
from timeline.errors import InvalidArgument
from timeline.events import appended_block
from timeline.integrations.openai_agents import TimelineSession

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agents import Model

    from tests.providers import Asked, Step

LIMIT = 4_000
"""The policy's limit, in quarters of characters."""
QUIET = RunConfig(tracing_disabled=True)


@function_tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"{path}: " + "some words of the file. " * 60


def model_of(wire: str, provider: FakeProvider) -> Model:
    """Return the SDK's model for a wire."""
    client = AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=0)
    kind: Any = OpenAIResponsesModel if wire == "responses" else OpenAIChatCompletionsModel
    made: Model = kind(model="gpt-5", openai_client=client)
    return made


def reading(rounds: int, *, at_once: int = 1) -> Callable[[Asked], Step]:
    """Make a model that reads files for a number of rounds, then says so; it begins anew with every prompt."""

    def answer(asked: Asked) -> Step:
        number = asked.number % (rounds + 1)
        if number == rounds:
            return f"Done after {asked.number} calls."
        calls = (Call("read_file", {"path": f"src/{asked.number}_{n}.py"}) for n in range(at_once))
        return Answer(text=f"Step {asked.number}." if number % 3 == 0 else "", calls=tuple(calls))

    return answer


async def opened(store: Any, **options: Any) -> TimelineSession:
    """Open the session of these tests."""
    policy = small_policy(max_tokens=LIMIT, counter="chars4")
    return await TimelineSession.open(store, "work", **{"policy": policy, **options})


async def run(session: TimelineSession, agent: Agent[Any], prompt: Any, *, stream: bool = False, **more: Any) -> Any:
    """Run an agent to its end."""
    config = session.run_config(more.pop("config", QUIET))
    more = {"session": session, "run_config": config, "hooks": session.hooks(), "max_turns": 100, **more}
    if not stream:
        return await Runner.run(agent, prompt, **more)
    result = Runner.run_streamed(agent, prompt, **more)
    async for _ in result.stream_events():
        pass
    return result


async def blocks_of(session: TimelineSession, store: Any) -> list[Any]:
    """Return all blocks of a session's log."""
    events = [event async for event in store.read(session.timeline.id)]
    return [block for event in events if (block := appended_block(event.payload)) is not None]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", ["responses", "chat"])
async def test_a_long_run_stays_inside_the_limit_and_loses_nothing(tmp_path: Path, wire: str, *, stream: bool) -> None:
    """Every request is valid for the provider; each call and result is in the log once, in full, and verifies."""
    with FakeProvider(reading(8, at_once=2)) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(name="coder", instructions="You code.", model=model_of(wire, provider), tools=[read_file])
            for prompt in ("Make the tests pass.", "And now the others.", "And now the others."):
                result = await run(session, agent, prompt, stream=stream)
                assert str(result.final_output).startswith("Done after")
            blocks = await blocks_of(session, store)
            compactions = session.timeline.compaction_state().count
            rendered = [payload.tokens for payload in await payloads_of(store, "context.rendered", "work")]
            report = await session.timeline.verify()
            read = [await session.timeline.read(block.path) for block in blocks if isinstance(block, ToolResult)]
            items = await session.get_items()
    assert provider.refused == []
    assert max(rendered) <= LIMIT
    assert max(asked.tokens for asked in provider.asked) <= LIMIT * 1.2  # the fake counts the JSON around it too
    assert compactions >= 3
    assert report.ok
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    assert len(calls) == len({block.call_id for block in calls}) == len(read) == 3 * 8 * 2
    assert all(block.text.startswith("src/") and len(block.text) > 1_400 for block in read)
    assert [block.text for block in blocks if block.type == "user.prompt"] == [
        "Make the tests pass.",
        "And now the others.",
        "And now the others.",
    ]
    assert len([i for i in items if i.get("type") in {"function_call", "function_call_output"}]) == 2 * len(calls)


async def test_a_second_process_goes_on_where_the_first_one_ended(tmp_path: Path) -> None:
    """With nothing but the database; what it shows begins with the summary of the first one's work."""
    with FakeProvider(reading(12)) as provider:
        agent = Agent(name="coder", model=model_of("responses", provider), tools=[read_file])
        for prompt in ("Make the tests pass.", "What did you do?"):
            async with open_store(tmp_path / "agent.db") as store:
                session = await opened(store)
                await run(session, agent, prompt)
    assert provider.refused == []
    last = json.dumps(provider.asked[-1].body["input"])
    assert "Summary" in last
    assert "What did you do?" in last


async def test_usage_is_recorded_with_the_render_that_each_call_answers(tmp_path: Path) -> None:
    """That is what the cache's clock and the calibration live on."""
    with FakeProvider([Answer("Hello.", input_tokens=70, cached_tokens=30, output_tokens=9)]) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            await run(session, Agent(name="a", model=model_of("responses", provider)), "Hi")
            (called,) = await payloads_of(store, "model.called", "work")
            rendered = [event.version async for event in store.read("work", types=["context.rendered"])]
    assert called.answers == rendered[-1]
    assert called.model == "gpt-5"
    assert called.duration > 0
    assert (called.usage.input_tokens, called.usage.cache_read_tokens, called.usage.output_tokens) == (70, 30, 9)


async def test_without_hooks_the_items_still_come_once(tmp_path: Path) -> None:
    """What the SDK adds after each step, and nothing twice."""
    with FakeProvider(reading(4)) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            await run(
                session, Agent(name="a", model=model_of("responses", provider), tools=[read_file]), "Go", hooks=None
            )
            blocks = await blocks_of(session, store)
    assert provider.refused == []
    assert len([block for block in blocks if isinstance(block, ToolCall | ToolResult)]) == 8


async def test_agents_that_hand_over_share_one_conversation(tmp_path: Path) -> None:
    """The call of the handoff is a call like any other; the second agent sees what the first one saw."""
    steps: list[Step] = [
        Answer(calls=(Call("read_file", {"path": "a.py"}),)),
        Answer(calls=(Call("transfer_to_tester", {}),)),
        Answer(calls=(Call("read_file", {"path": "test_a.py"}),)),
        "Tested.",
    ]
    with FakeProvider(steps) as provider:
        model = model_of("responses", provider)
        tester = Agent(name="tester", instructions="You test.", model=model, tools=[read_file])
        coder = Agent(
            name="coder", instructions="You code.", model=model, tools=[read_file], handoffs=[handoff(tester)]
        )
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            result = await run(
                session, coder, "Mend a.py", config=RunConfig(tracing_disabled=True, nest_handoff_history=True)
            )
            blocks = await blocks_of(session, store)
    assert result.final_output == "Tested."
    assert provider.refused == []
    assert provider.asked[-1].body["instructions"] == "You test."
    assert "a.py: some words" in provider.asked[-1].text
    assert not [block for block in blocks if "CONVERSATION HISTORY" in block.text]
    assert [block.name for block in blocks if isinstance(block, ToolCall)] == [
        "read_file",
        "transfer_to_tester",
        "read_file",
    ]


async def test_the_call_of_a_streamed_handoff_is_stored_once_and_nothing_is_rejected(tmp_path: Path) -> None:
    """The SDK reads its session before it adds such a call; the run goes on all the same."""
    steps: list[Step] = [Answer("Over to you.", calls=(Call("transfer_to_tester", {}),)), "Tested."]
    with FakeProvider(steps) as provider:
        model = model_of("responses", provider)
        coder = Agent(name="coder", model=model, handoffs=[handoff(Agent(name="tester", model=model))])
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            await run(session, coder, "Mend a.py", stream=True)
            said = [(item.block.type, item.state) for item in session.timeline.window.items]
    calls = ["react.tool.call", "react.tool.result"]
    assert said == [
        (kind, "visible") for kind in ("user.prompt", "assistant.completion", *calls, "assistant.completion")
    ]


async def test_a_run_that_waits_for_an_approval_goes_on(tmp_path: Path) -> None:
    """The call is in the log while it waits, and has its result once it was approved."""

    @function_tool(needs_approval=True)
    def deploy() -> str:
        """Deploy."""
        return "deployed"

    with FakeProvider([Answer(calls=(Call("deploy", {}),)), "It is out."]) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(name="a", model=model_of("responses", provider), tools=[deploy])
            first = await run(session, agent, "Ship it")
            state = first.to_state()
            state.approve(first.interruptions[0])
            second = await run(session, agent, state)
            blocks = await blocks_of(session, store)
    assert second.final_output == "It is out."
    assert provider.refused == []
    assert [block.type for block in blocks] == [
        "user.prompt",
        "react.tool.call",
        "react.tool.result",
        "assistant.completion",
    ]


async def test_a_run_that_broke_off_leaves_a_session_that_goes_on(tmp_path: Path) -> None:
    """A tool that fails ends the run; the call that has no result is told as interrupted."""

    @function_tool(failure_error_function=None)
    def explode() -> str:
        """Explode."""
        raise RuntimeError("boom")

    with FakeProvider([Answer(calls=(Call("explode", {}),)), "I see."]) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(name="a", model=model_of("responses", provider), tools=[explode])
            with pytest.raises(Exception, match="boom"):
                await run(session, agent, "Go")
            result = await run(session, agent, "Again")
    assert result.final_output == "I see."
    assert provider.refused == []


async def test_the_model_reads_back_what_was_summarised(tmp_path: Path) -> None:
    """By the recall tool, from the path that its context printed."""

    def answer(asked: Asked) -> Step:
        if asked.number < 14:
            return Answer(calls=(Call("read_file", {"path": f"src/{asked.number}.py"}),))
        if asked.number == 14:
            return Answer(calls=(Call("recall", {"path": "tc:turn_1.call_1.result", "offset": None, "limit": None}),))
        return "Done."

    with FakeProvider(answer) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            tools: list[Any] = [read_file, session.recall_tool()]
            await run(session, Agent(name="a", model=model_of("responses", provider), tools=tools), "Go")
            first = [b for b in await blocks_of(session, store) if isinstance(b, ToolCall)][-1]
            answered = await session.timeline.read(f"{first.path.removesuffix('.call')}.result")
    assert provider.refused == []
    assert first.name == "recall"
    assert answered.text.startswith("[")


async def test_items_that_a_callback_puts_in_are_stored_as_the_sdk_stores_them(tmp_path: Path) -> None:
    """A callback that prepends a reminder, and one that drops the history, lose no prompt."""

    def only_new(history: list[Any], new: list[Any]) -> list[Any]:
        del history
        return [{"role": "user", "content": "Be brief."}, *new]

    config = RunConfig(tracing_disabled=True, session_input_callback=only_new)
    with FakeProvider(lambda asked: f"Answer {asked.number}") as provider:
        agent = Agent(name="a", model=model_of("responses", provider))
        with closing(SQLiteSession("work")) as theirs:
            for _ in range(3):
                await Runner.run(agent, "Continue", session=theirs, run_config=config)
            expected: list[Any] = [item for item in await theirs.get_items() if item.get("role") == "user"]
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            for stream in (False, True, True):
                await run(session, agent, "Continue", stream=stream, config=config)
            said = [block.text for block in await blocks_of(session, store) if block.type == "user.prompt"]
    assert said == [item["content"] for item in expected]
    assert said.count("Continue") == 3
    assert "Be brief." in provider.asked[-1].text
    assert provider.asked[-1].text.endswith("Continue")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_run_that_is_given_no_history_is_sent_what_the_log_shows(tmp_path: Path, *, stream: bool) -> None:
    """Also its first call, whose prompt a stream adds later; each call is recorded with its request."""
    with FakeProvider(lambda asked: f"Answer {asked.number}") as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store, session_settings=SessionSettings(limit=0))
            agent = Agent(name="a", model=model_of("responses", provider))
            for prompt in ("One", "Two", "Two"):
                await run(session, agent, prompt, stream=stream)
            called = await payloads_of(store, "model.called", "work")
    assert provider.refused == []
    assert [asked.text.split("\n") for asked in provider.asked] == [
        ["One"],
        ["One", "Answer 0", "Two"],
        ["One", "Answer 0", "Two", "Answer 1", "Two"],
    ]
    assert [one.request is not None for one in called] == [True] * 3


async def test_pictures_go_to_the_model_as_they_came(tmp_path: Path) -> None:
    """In a prompt, and in a tool's result."""
    picture = "data:image/png;base64,iVBORw0KGgo="
    prompt = [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": picture, "detail": "auto"},
            ],
        }
    ]
    with FakeProvider(["A picture.", "Still a picture."]) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(name="a", model=model_of("responses", provider), model_settings=ModelSettings())
            await run(
                session,
                agent,
                prompt,
                config=RunConfig(tracing_disabled=True, session_input_callback=lambda h, n: h + n),
            )
            await run(session, agent, "And now?")
            assert (await session.get_items())[0] == prompt[0]
    assert provider.refused == []
    assert all(picture in json.dumps(asked.body) for asked in provider.asked)


async def test_what_a_local_shell_printed_is_in_front_of_the_model(tmp_path: Path) -> None:
    """Calls of the SDK's own tools go out as calls of functions: every model takes these back."""
    history: list[Any] = [
        {"role": "user", "content": "List the files"},
        {"type": "shell_call", "id": "sh_1", "call_id": "s1", "action": {"commands": ["ls"]}, "status": "completed"},
        {
            "type": "shell_call_output",
            "call_id": "s1",
            "output": [{"stdout": "login.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        },
    ]
    with FakeProvider(["One file."]) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            await session.add_items(history)
            await run(session, Agent(name="a", model=model_of("responses", provider)), "And?")
            assert (await session.get_items())[:3] == history
    assert provider.refused == []
    assert "login.py" in provider.asked[0].text


async def test_a_call_is_recorded_with_the_model_and_the_settings_that_the_run_chose(tmp_path: Path) -> None:
    """They go before those of the agent."""
    with FakeProvider("Done.") as provider:
        chosen = ModelSettings(temperature=0.25)
        config = RunConfig(model=model_of("chat", provider), model_settings=chosen, tracing_disabled=True)
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(name="a", model="gpt-9", model_settings=ModelSettings(max_tokens=77))
            await run(session, agent, "Begin.", config=config)
            [call] = [call async for call in session.timeline.calls()]
    told = (call.wire, call.model, call.answered_by, call.parameters)
    assert told == ("openai_chat", "gpt-5", "gpt-5", {"max_tokens": 77, "temperature": 0.25})


async def test_a_model_of_chat_completions_that_the_runs_provider_makes_is_sent_what_it_takes(tmp_path: Path) -> None:
    """The agent has a name alone; no item of a hosted tool, which the SDK has no form for there."""
    searched = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}
    with FakeProvider("Done.") as provider:
        client = AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=0)
        made = OpenAIProvider(openai_client=client, use_responses=False)
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            said: list[Any] = [
                {"role": "user", "content": "Look."},
                searched,
                {"role": "assistant", "content": "Seen."},
            ]
            await session.add_items(said)
            config = RunConfig(model_provider=made, tracing_disabled=True)
            await run(session, Agent(name="a", model="gpt-9"), "And?", config=config)
            [call] = [call async for call in session.timeline.calls()]
        assert [text for _, text in provider.asked[0].said] == ["Look.", "Seen.", "And?"]
    assert (call.wire, call.model) == ("openai_chat", "gpt-9")


async def test_a_configuration_with_a_filter_of_its_own_is_refused(tmp_path: Path) -> None:
    """One of the two would be lost in silence."""
    async with open_store(tmp_path / "agent.db") as store:
        session = await opened(store)
        with pytest.raises(InvalidArgument, match="call_model_input_filter"):
            session.run_config(session.run_config())


async def test_a_session_that_is_dropped_is_gone_with_its_contexts(tmp_path: Path) -> None:
    """A server opens one for each request: those that are over must not wait for the garbage collector."""
    with FakeProvider(reading(2)) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            agent = Agent(name="coder", instructions="You code.", model=model_of("chat", provider), tools=[read_file])

            async def serve(prompt: str) -> list[weakref.ref[Any]]:
                session = await opened(store)
                await run(session, agent, prompt)
                assert session.context is not None
                return [weakref.ref(session), weakref.ref(session.timeline), weakref.ref(session.context)]

            await asyncio.create_task(serve("Make the tests pass."))
            gc.collect()
            gc.disable()
            try:
                held = await asyncio.create_task(serve("And now the others."))
                await asyncio.sleep(0)  # what woke this task holds the one that ended
                assert [one() for one in held] == [None, None, None]
            finally:
                gc.enable()
