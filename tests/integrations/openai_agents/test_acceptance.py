"""What the SDK accepted is in the log, what it rejected is in sight of people only; held to the SDK's own session."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    ModelSettings,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
)

from tests.integrations.openai_agents.test_run import QUIET, blocks_of, model_of, opened, run
from tests.providers import Answer, Call, FakeProvider
from tests.providers.script import Raw
from tests.scenes import payloads_of
from timeline import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.providers import Step
    from timeline.integrations.openai_agents import TimelineSession

WORD = "zirconium"


@output_guardrail
async def no_metal(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
    """Reject an answer that names a metal."""
    del context, agent
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=WORD in str(output))


async def omitted_in(session: TimelineSession, store: Any) -> list[tuple[str, list[str]]]:
    """Return the reasons of omissions, each with the texts of the blocks."""
    texts = {
        event.version: event.payload.block.text
        async for event in store.read(session.timeline.id, types=["block.appended"])
    }
    hidden = await payloads_of(store, "blocks.hidden", session.timeline.id)
    return [(payload.reason, [texts[block.version] for block in payload.blocks]) for payload in hidden]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", ["responses", "chat"])
async def test_an_answer_that_an_output_guardrail_rejected_is_never_sent(
    tmp_path: Path, wire: str, *, stream: bool
) -> None:
    """It is in the log, omitted, with its usage; the session has the items that the SDK's own has."""
    with FakeProvider([Answer(f"It is {WORD}.", output_tokens=9), "It is fine."]) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            settings = ModelSettings(include_usage=True)
            agent = Agent(
                name="a", model=model_of(wire, provider), model_settings=settings, output_guardrails=[no_metal]
            )
            with pytest.raises(OutputGuardrailTripwireTriggered):
                await run(session, agent, "What is it?", stream=stream)
            assert [called.usage.output_tokens for called in await payloads_of(store, "model.called", "work")] == [9]
            items: list[Any] = await session.get_items()
            await run(session, agent, "Again", stream=stream)
            omitted = await omitted_in(session, store)
            report = await session.timeline.verify()
    assert [item.get("role") for item in items] == ["user"]
    assert WORD not in provider.asked[1].text
    assert provider.refused == []
    assert omitted == [("rejected", [f"It is {WORD}."])]
    assert report.ok


async def test_what_a_guardrail_rejected_is_in_the_log_as_soon_as_the_session_hears_of_it(tmp_path: Path) -> None:
    """The SDK says nothing of it; `record_failure` does, or the next run."""
    with FakeProvider([f"It is {WORD}."]) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(name="a", model=model_of("responses", provider), output_guardrails=[no_metal])
            try:
                await run(session, agent, "What is it?")
            except OutputGuardrailTripwireTriggered as error:
                await session.record_failure(error)
            omitted = await omitted_in(session, store)
            failed = [called.error for called in await payloads_of(store, "model.called", "work") if called.error]
    assert omitted == [("rejected", [f"It is {WORD}."])]
    assert failed == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_an_answer_that_a_parallel_input_guardrail_rejected_is_never_sent(
    tmp_path: Path, *, stream: bool
) -> None:
    """The guardrail looks at the prompt while the model answers it; the prompt stays, as in the SDK's own session."""
    answered = asyncio.Event()

    class Watching(AgentHooks[Any]):
        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            del context, agent, response
            asyncio.get_running_loop().call_later(0.2, answered.set)  # when the session has heard of it, too

    with FakeProvider([f"It is {WORD}.", "It is fine."]) as provider:

        @input_guardrail
        async def too_late(context: Any, agent: Any, said: Any) -> GuardrailFunctionOutput:
            del context, agent
            asked = said if isinstance(said, str) else json.dumps(said)
            if "Again" not in asked:
                await answered.wait()
            return GuardrailFunctionOutput(output_info=None, tripwire_triggered="Again" not in asked)

        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(
                name="a", model=model_of("responses", provider), input_guardrails=[too_late], hooks=Watching()
            )
            with pytest.raises(InputGuardrailTripwireTriggered):
                await run(session, agent, "What is it?", stream=stream)
            await run(session, agent, "Again", stream=stream)
            omitted = await omitted_in(session, store)
            said = [block.text for block in await blocks_of(session, store) if block.type == "user.prompt"]
    assert WORD not in provider.asked[1].text
    assert provider.refused == []
    assert omitted == [("rejected", [f"It is {WORD}."])]
    assert said == ["What is it?", "Again"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_of_a_rejected_tool_result_the_session_keeps_what_the_sdk_puts_in_its_place(
    tmp_path: Path, *, stream: bool
) -> None:
    """The tool ran, so its call stays; what it said is withheld from every later call of the model."""

    @function_tool
    def lookup(what: str) -> str:
        """Look up."""
        return f"{what} is {WORD}"

    with FakeProvider([Answer(calls=(Call("lookup", {"what": "it"}),)), "It is fine."]) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(
                name="a",
                model=model_of("responses", provider),
                tools=[lookup],
                tool_use_behavior="stop_on_first_tool",
                output_guardrails=[no_metal],
            )
            with pytest.raises(OutputGuardrailTripwireTriggered):
                await run(session, agent, "What is it?", stream=stream)
            items: list[Any] = await session.get_items()
            agent.tool_use_behavior = "run_llm_again"
            await run(session, agent, "Again", stream=stream)
            report = await session.timeline.verify()
    kinds = [item.get("type") or item["role"] for item in items]
    assert kinds == ["user", "function_call", "function_call_output"]
    assert WORD not in json.dumps(items)
    assert WORD not in provider.asked[1].text
    assert provider.refused == []
    assert report.ok


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "another_process"])
async def test_an_approved_call_whose_result_is_the_answer_is_stored_once(tmp_path: Path, *, elsewhere: bool) -> None:
    """The SDK holds it back until the guardrail has passed it, in another process too; nothing is made up for it."""

    @function_tool(needs_approval=True)
    def deploy() -> str:
        """Deploy."""
        return "It is out."

    @output_guardrail
    async def fine(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        del context, agent, output
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    with FakeProvider([Answer(calls=(Call("deploy", {}),)), "Nothing else."]) as provider:
        agent = Agent(
            name="a",
            model=model_of("responses", provider),
            tools=[deploy],
            tool_use_behavior="stop_on_first_tool",
            output_guardrails=[fine],
        )
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            first = await run(session, agent, "Ship it")
            kept = first.to_state().to_json()
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store) if elsewhere else session
            if not elsewhere:
                session = await opened(store)
            state: Any = await RunState.from_json(agent, kept)
            state.approve(state.get_interruptions()[0])
            second = await run(session, agent, state)
            items: list[Any] = await session.get_items()
            await run(session, agent, "And now?")
            report = await session.timeline.verify()
    assert second.final_output == "It is out."
    kinds = [item.get("type") or item["role"] for item in items]
    assert kinds == ["user", "function_call", "function_call_output"]
    sent = provider.asked[1].body["input"]
    assert [item.get("type") for item in sent].count("function_call") == 1
    assert [item.get("type") for item in sent].count("function_call_output") == 1
    assert provider.refused == []
    assert report.ok


@pytest.mark.parametrize("callback", ["twice", "rewritten", "reversed", "with_a_reminder"])
async def test_a_callback_makes_the_log_no_longer_than_the_sdks_own_session(tmp_path: Path, callback: str) -> None:
    """Six runs whose callback gives the history back otherwise than it was: the same items after each of them."""

    def given(history: list[Any], new: list[Any]) -> list[Any]:
        if callback == "twice":
            return [*history, *history, *new]
        if callback == "reversed":
            return [*reversed(history), *new]
        if callback == "rewritten":
            return [*({"role": "user", "content": f"Before: {len(str(item))}"} for item in history[-2:]), *new]
        return [{"role": "user", "content": f"Be brief, for the {len(history)}th time."}, *history, *new]

    async def counts(session: Any, provider: FakeProvider, **more: Any) -> list[int]:
        agent = Agent(name="a", model=model_of("responses", provider))
        found = []
        for number in range(6):
            base = RunConfig(tracing_disabled=True, session_input_callback=given)
            config = session.run_config(base) if "hooks" in more else base
            await Runner.run(agent, f"Question {number}", session=session, run_config=config, **more)
            found.append(len(await session.get_items()))
        return found

    with (
        FakeProvider(lambda asked: f"Answer {asked.number}") as provider,
        closing(SQLiteSession("own", tmp_path / "own.db")) as own,
    ):
        expected = await counts(own, provider)
    with FakeProvider(lambda asked: f"Answer {asked.number}") as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            assert await counts(session, provider, hooks=session.hooks()) == expected
    assert provider.refused == []


async def test_what_an_agent_inside_a_tool_says_is_no_part_of_the_conversation(tmp_path: Path) -> None:
    """It runs with the run's configuration, but on a list of its own: it is sent that, and the log has the tool's."""
    steps: list[Step] = [
        Answer(calls=(Call("translate", {"input": "Say hello to the lynx"}),)),
        "Bonjour, lynx.",
        "It is: Bonjour, lynx.",
    ]
    with FakeProvider(steps) as provider:
        inner = Agent(name="inner", instructions="You translate.", model=model_of("responses", provider))
        tool = inner.as_tool("translate", "Translate.")
        outer = Agent(name="outer", model=model_of("responses", provider), tools=[tool])
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            await run(session, outer, "Translate a greeting")
            blocks = await blocks_of(session, store)
    assert provider.refused == []
    assert "Translate a greeting" not in json.dumps(provider.asked[1].body["input"])
    assert [block.type for block in blocks] == [
        "user.prompt",
        "react.tool.call",
        "react.tool.result",
        "assistant.completion",
    ]


async def test_what_a_handoffs_filter_adds_is_said_to_the_second_agent_and_kept_nowhere(tmp_path: Path) -> None:
    """The SDK's own session does not have it either."""

    def briefed(data: Any) -> Any:
        note = {"role": "user", "content": "Note for the tester: be strict."}
        history = data.input_history if isinstance(data.input_history, tuple) else ()
        return data.clone(input_history=(*history, note))

    steps: list[Step] = [Answer(calls=(Call("transfer_to_tester", {}),)), "Tested.", "Done."]
    with FakeProvider(steps) as provider:
        model = model_of("responses", provider)
        tester = Agent(name="tester", instructions="You test.", model=model)
        coder = Agent(name="coder", model=model, handoffs=[handoff(tester, input_filter=briefed)])
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            await run(session, coder, "Mend a.py")
            items = await session.get_items()
            await run(session, tester, "And now?")
    assert provider.refused == []
    assert "be strict" in provider.asked[1].text
    assert "be strict" not in json.dumps(items)
    assert "be strict" not in provider.asked[2].text


async def test_an_item_of_a_hosted_tool_is_sent_again_as_it_came(tmp_path: Path) -> None:
    """As the SDK sends it; the log's summaries take its place where it is covered."""
    history: list[Any] = [
        {"role": "user", "content": "What is a lynx?"},
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "lynx", "sources": [], "queries": ["lynx"]},
        },
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "A cat.", "annotations": [], "logprobs": []}],
        },
    ]
    with FakeProvider(["Yes."]) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            await session.add_items(history)
            await run(session, Agent(name="a", model=model_of("responses", provider)), "Sure?", config=QUIET)
    assert provider.refused == []
    assert [item.get("id") for item in provider.asked[0].body["input"]] == [None, "ws_1", "msg_1", None]


async def test_a_call_within_which_openai_searched_is_marked(tmp_path: Path) -> None:
    """Its usage counts the context once for each search, and measures nothing."""
    searched = {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    }
    part = {"type": "output_text", "text": "A cat.", "annotations": [], "logprobs": []}
    said = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    used = {
        "input_tokens": 90_000,
        "output_tokens": 9,
        "total_tokens": 90_009,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    reply = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-9",
        "status": "completed",
        "tools": [],
    }
    reply |= {"output": [searched, said], "usage": used, "parallel_tool_calls": True, "tool_choice": "auto"}
    with FakeProvider([Raw(json.dumps(reply).encode()), "Yes."]) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(name="a", model=model_of("responses", provider))
            await run(session, agent, "What is a lynx?", config=QUIET)
            await run(session, agent, "Sure?", config=QUIET)
            marks = [called.server_tools for called in await payloads_of(store, "model.called", "work")]
            found = await session.timeline.calibration()
    assert marks == [True, False]
    assert found.calls == 1
