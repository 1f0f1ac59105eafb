"""Real agents of LangChain over a timeline, against a fake of the provider on loopback."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    wrap_model_call,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

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
from tests.providers import Answer, Call, FakeProvider, Trouble
from timeline import Timeline, open_store
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult
from timeline.errors import ContextRefused, InvalidArgument
from timeline.integrations.langchain import TimelineMiddleware
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from timeline.ports import EventStore

THREAD: Final[RunnableConfig] = {"configurable": {"thread_id": "t1"}, "recursion_limit": 200}
FIX: Final[Any] = {"messages": [{"role": "user", "content": "Fix it."}]}


def model_of(provider: FakeProvider, **options: Any) -> ChatOpenAI:
    """Return LangChain's OpenAI model, over the real SDK."""
    reached = {"base_url": provider.openai_url, "api_key": "none", "max_retries": 0}
    settings: dict[str, Any] = {"model": "gpt-6", "use_responses_api": False, **reached, **options}
    return ChatOpenAI(**settings)


def agent_of(provider: FakeProvider, *middleware: Any, tools: Sequence[Any] = (bash,), **options: Any) -> Any:
    """Return an agent."""
    settings = {"system_prompt": "You code.", **options}
    return create_agent(model_of(provider), list(tools), middleware=middleware, **settings)


async def timeline_of(store: EventStore, conversation: str = "t1") -> Timeline:
    """Open what a thread's log says."""
    return await Timeline.open(store, conversation, create=False)


@pytest.mark.parametrize("endpoint", ["openai_chat", "openai_responses"])
async def test_a_long_run_is_compacted_and_nothing_is_lost(endpoint: str) -> None:
    """Each request is valid and within bounds, the agent's state stays whole, and all of it is in the log."""
    store = MemoryStore()
    with FakeProvider(working(), limit=4_500) as provider:
        model = model_of(provider, use_responses_api=endpoint == "openai_responses")
        middleware = TimelineMiddleware(store, policy=small())
        settings: Any = {"system_prompt": "You code.", "checkpointer": InMemorySaver()}
        agent: Any = create_agent(model, [bash], middleware=[middleware], **settings)
        reply = await agent.ainvoke(FIX, THREAD)
    timeline_ = await timeline_of(store)
    assert all_fine(await timeline_.verify(), provider)
    assert await compactions_in(store, "t1") >= 3
    assert len(provider.asked) == ROUNDS + 1
    assert all((asked.wire, asked.system) == (endpoint, "You code.") for asked in provider.asked)
    told = [b.text for b in await blocks_in(store, "t1") if isinstance(b, ToolResult)]
    assert told == [m.content for m in reply["messages"] if isinstance(m, ToolMessage)]
    assert len(told) == ROUNDS + ROUNDS // 2
    path = next(b.path for b in await blocks_in(store, "t1") if isinstance(b, ToolResult))
    assert (await timeline_.read(path)).text == told[0]


async def test_a_second_instance_goes_on_and_the_same_history_appends_nothing(tmp_path: Path) -> None:
    """The log is known by what it says: only the new reply is new."""
    with FakeProvider(working(8)) as provider:
        async with open_store(tmp_path / "a.db") as store:
            agent = agent_of(provider, TimelineMiddleware(store, policy=small()))
            first = await agent.ainvoke(FIX, THREAD)
            before = await blocks_in(store, "t1")
        async with open_store(tmp_path / "a.db") as store:
            agent = agent_of(provider, TimelineMiddleware(store, policy=small()))
            asked = HumanMessage("And now?")
            second = await agent.ainvoke({"messages": [*first["messages"], asked]}, THREAD)
            after = await blocks_in(store, "t1")
            assert [b.text for b in after[len(before) :]] == ["And now?", "Done after 9."]
            await agent.ainvoke({"messages": second["messages"]}, THREAD)
            assert [b.text for b in (await blocks_in(store, "t1"))[len(after) :]] == ["Done after 10."]
            assert all_fine(await (await timeline_of(store)).verify(), provider)


def test_an_agent_without_an_event_loop_streams(tmp_path: Path) -> None:
    """`stream` gives the tokens as the model says them, and the log holds what they came to."""
    with timeline.sync.open_store(tmp_path / "a.db") as store, FakeProvider(working(8)) as provider:
        agent = agent_of(provider, TimelineMiddleware(store, policy=small()), checkpointer=InMemorySaver())
        pieces = [
            piece for piece, _ in agent.stream(FIX, THREAD, stream_mode="messages") if piece.type == "AIMessageChunk"
        ]
        opened = timeline.sync.Timeline.open(store, "t1", create=False)
        assert all_fine(opened.verify(), provider)
        assert opened.window.items[-1].block.text == "Done after 8."
        assert "".join(piece.text for piece in pieces).endswith("Done after 8.")
        assert len(pieces) > len(provider.asked) * 2
        assert all(asked.stream for asked in provider.asked)


async def test_a_store_without_a_loop_serves_agents_that_are_awaited_too(tmp_path: Path) -> None:
    """One middleware for `invoke` and `ainvoke`."""
    with timeline.sync.open_store(tmp_path / "a.db") as store, FakeProvider(working(4)) as provider:
        agent = agent_of(provider, TimelineMiddleware(store, policy=small()), checkpointer=InMemorySaver())
        async for _ in agent.astream(FIX, THREAD, stream_mode="updates"):
            pass
        reply = await asyncio.to_thread(agent.invoke, {"messages": [HumanMessage("And?")]}, THREAD)
        assert reply["messages"][-1].content == "Done after 5."
        assert all_fine(timeline.sync.Timeline.open(store, "t1", create=False).verify(), provider)


async def test_a_store_of_a_loop_says_what_to_open_instead() -> None:
    """Called without a loop, an agent cannot await the store."""
    with FakeProvider() as provider:
        agent = agent_of(provider, TimelineMiddleware(MemoryStore()))
        with pytest.raises(InvalidArgument, match=r"timeline\.sync\.open_store"):
            await asyncio.to_thread(agent.invoke, FIX, THREAD)


async def test_a_run_without_a_thread_is_told_what_to_give() -> None:
    """No conversation is made up."""
    with FakeProvider() as provider:
        with pytest.raises(InvalidArgument, match="thread_id"):
            await agent_of(provider, TimelineMiddleware(MemoryStore())).ainvoke(FIX)
        store = MemoryStore()
        await agent_of(provider, TimelineMiddleware(store, conversation="mine")).ainvoke(FIX)
        of_user = TimelineMiddleware(store, conversation=lambda config: f"ada/{config['configurable']['thread_id']}")
        await agent_of(provider, of_user).ainvoke(FIX, THREAD)
    assert {info.id async for info in store.conversations()} == {"mine", "ada/t1"}


async def test_threads_are_conversations_of_their_own_even_at_the_same_time() -> None:
    """One agent serves many users."""
    store = MemoryStore()
    with FakeProvider(lambda asked: f"You said: {asked.said[-1][1]}") as provider:
        agent = agent_of(provider, TimelineMiddleware(store))
        await asyncio.gather(
            *(
                agent.ainvoke({"messages": [HumanMessage(f"I am {n}")]}, {"configurable": {"thread_id": f"t{n}"}})
                for n in range(8)
            )
        )
    for number in range(8):
        told = [block.text for block in await blocks_in(store, f"t{number}")]
        assert told == [f"I am {number}", f"You said: I am {number}"]


async def test_usage_is_recorded_after_each_call() -> None:
    """What the cache answered, how it ended, which model, and which context it answers."""
    store = MemoryStore()
    with FakeProvider(working(1)) as provider:
        await agent_of(provider, TimelineMiddleware(store)).ainvoke(FIX, THREAD)
    first, last = await calls_in(store, "t1")
    assert (first.model, first.finish_reason, last.finish_reason) == ("gpt-6", "tool_calls", "stop")
    assert (last.usage.cache_read_tokens, last.usage.input_tokens) == (40, provider.asked[-1].tokens)
    assert first.answers is not None
    assert first.started_at is not None
    assert first.duration is not None
    said = {b.response_id for b in await blocks_in(store, "t1") if isinstance(b, ToolCall | AssistantCompletion)}
    assert said == {first.response_id, last.response_id}


async def test_a_context_that_is_refused_twice_is_a_typed_error() -> None:
    """The error names the sizes."""
    with FakeProvider(working(), limit=150) as provider:
        agent = agent_of(provider, TimelineMiddleware(MemoryStore(), policy=small()))
        with pytest.raises(ContextRefused):
            await agent.ainvoke({"messages": [HumanMessage("word " * 600)]}, THREAD)


async def test_a_call_that_is_made_again_by_others_is_recorded_as_often_and_answered_once() -> None:
    """A middleware that retries stands before this one."""
    store = MemoryStore()
    with FakeProvider([Trouble("overloaded"), Trouble("server"), "At last."]) as provider:
        retry = ModelRetryMiddleware(max_retries=3, initial_delay=0.0, jitter=False)
        await agent_of(provider, retry, TimelineMiddleware(store)).ainvoke(FIX, THREAD)
    assert [block.text for block in await blocks_in(store, "t1")] == ["Fix it.", "At last."]
    failed = [call.error for call in await calls_in(store, "t1")]
    assert [bool(error) for error in failed] == [True, True, False]


@pytest.mark.parametrize("decision", ["edit", "reject"])
async def test_what_a_human_decided_is_what_happened(decision: str) -> None:
    """An edited call is in the log as it was edited, also when the run goes on in another process."""
    store, saver = MemoryStore(), InMemorySaver()
    decisions: dict[str, Any] = {
        "edit": {"type": "edit", "edited_action": {"name": "bash", "args": {"command": "ls"}}},
        "reject": {"type": "reject", "message": "Not that."},
    }
    with FakeProvider([Answer(calls=(Call("bash", {"command": "rm"}, "c1"),)), "Done."]) as provider:

        def agent() -> Any:
            human = HumanInTheLoopMiddleware(interrupt_on={"bash": True})
            return agent_of(provider, human, TimelineMiddleware(store), checkpointer=saver)

        stopped = await agent().ainvoke(FIX, THREAD)
        assert stopped["__interrupt__"]
        await agent().ainvoke(Command(resume={"decisions": [decisions[decision]]}), THREAD)
    state = (await agent().aget_state(THREAD)).values["messages"]
    [call] = [b for b in await blocks_in(store, "t1") if isinstance(b, ToolCall)]
    [result] = [b for b in await blocks_in(store, "t1") if isinstance(b, ToolResult)]
    assert (call.arguments, result.text) == (state[1].tool_calls[0]["args"], state[2].content)
    assert ("ran ls" if decision == "edit" else "Not that.") in result.text
    assert all_fine(await (await timeline_of(store)).verify(), provider)


async def test_what_other_middleware_made_of_an_answer_is_what_was_said() -> None:
    """An address that is taken out of the agent's state is not in the log either."""
    store = MemoryStore()
    with FakeProvider("Write to ada@example.org.") as provider:
        redacting = PIIMiddleware("email", apply_to_output=True)
        await agent_of(provider, redacting, TimelineMiddleware(store)).ainvoke(FIX, THREAD)
    assert "ada@" not in (await blocks_in(store, "t1"))[-1].text


async def test_what_other_middleware_says_for_once_is_sent_and_kept_nowhere() -> None:
    """It stands at the end of its own request."""
    store = MemoryStore()

    @wrap_model_call
    async def reminding(request: Any, handler: Any) -> Any:
        said = f"By the way: {len(request.messages)}"
        return await handler(request.override(messages=[*request.messages, HumanMessage(said)]))

    with FakeProvider(working(2)) as provider:
        await agent_of(provider, reminding, TimelineMiddleware(store)).ainvoke(FIX, THREAD)
    assert [asked.said[-1][1] for asked in provider.asked] == ["By the way: 1", "By the way: 3", "By the way: 6"]
    assert [asked.text.count("By the way") for asked in provider.asked] == [1, 1, 1]
    assert not any("By the way" in block.text for block in await blocks_in(store, "t1"))
    assert all_fine(await (await timeline_of(store)).verify(), provider)


async def test_examples_that_other_middleware_puts_in_front_stay_there_and_are_kept_nowhere() -> None:
    """Others with each request, as where they are looked up."""
    store = MemoryStore()

    @wrap_model_call
    async def exemplifying(request: Any, handler: Any) -> Any:
        number = len(request.messages)
        examples = [HumanMessage(f"example {number}"), AIMessage(f"its answer {number}")]
        return await handler(request.override(messages=[*examples, *request.messages]))

    with FakeProvider(working(2)) as provider:
        await agent_of(provider, exemplifying, TimelineMiddleware(store)).ainvoke(FIX, THREAD)
    first = [[text for _, text in asked.said[:3]] for asked in provider.asked]
    assert first == [[f"example {n}", f"its answer {n}", "Fix it."] for n in (1, 3, 6)]
    assert not any("example" in text for asked in provider.asked for _, text in asked.said[2:])
    blocks = await blocks_in(store, "t1")
    assert [block.text for block in blocks if block.type == "user.prompt"] == ["Fix it."]
    assert len(blocks) == len((await timeline_of(store)).window.items) == 9
    assert all_fine(await (await timeline_of(store)).verify(), provider)


async def test_summaries_of_langchains_own_are_not_imported() -> None:
    """Another middleware cut the state; the log has what it cut, and shows it as its own policy says."""
    store = MemoryStore()
    with FakeProvider(working(6)) as provider:
        theirs = SummarizationMiddleware(
            model_of(provider), trigger=("messages", 6), keep=("messages", 2), summarizer=lambda _: "THEIR SUMMARY"
        )
        agent = agent_of(provider, theirs, TimelineMiddleware(store), checkpointer=InMemorySaver())
        reply = await agent.ainvoke(FIX, THREAD)
    assert any("THEIR SUMMARY" in str(message.content) for message in reply["messages"])
    assert not any("THEIR SUMMARY" in asked.text for asked in provider.asked)
    assert sum(isinstance(b, ToolResult) for b in await blocks_in(store, "t1")) == 9
    assert all_fine(await (await timeline_of(store)).verify(), provider)


async def test_a_thread_that_was_summarised_before_keeps_its_summary() -> None:
    """It is all that is known of what came before."""
    summary = HumanMessage("THEIR SUMMARY", additional_kwargs={"lc_source": "summarization"})
    store = MemoryStore()
    with FakeProvider() as provider:
        agent = agent_of(provider, TimelineMiddleware(store))
        await agent.ainvoke({"messages": [summary, HumanMessage("Go on.")]}, THREAD)
    assert provider.asked[0].text == "THEIR SUMMARY\nGo on."


async def test_placeholders_of_langchains_own_are_not_imported() -> None:
    """A cleared result is in the log in full."""
    store = MemoryStore()
    with FakeProvider(working(6)) as provider:
        clearing = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=200, keep=1, clear_tool_inputs=True)])
        await agent_of(provider, clearing, TimelineMiddleware(store)).ainvoke(FIX, THREAD)
    assert not any("[cleared]" in asked.text for asked in provider.asked)
    results = [b.text for b in await blocks_in(store, "t1") if isinstance(b, ToolResult)]
    assert len(results) == 9
    assert len({*results}) == 9
    assert all_fine(await (await timeline_of(store)).verify(), provider)


async def test_the_model_reads_back_what_is_covered() -> None:
    """The recall tool comes with the middleware, and finds the conversation by the thread."""
    store = MemoryStore()
    with FakeProvider(recalling("ar:turn_1.user.prompt")) as provider:
        await agent_of(provider, TimelineMiddleware(store, policy=small())).ainvoke(FIX, THREAD)
    assert any("[ar:turn_1.user.prompt · @2 · user.prompt" in text for _, text in provider.asked[13].said)
    assert "recall" not in str(
        agent_of(provider, TimelineMiddleware(store, recall=False)).nodes["tools"].bound.tools_by_name
    )


class Verdict(BaseModel):
    """What a run comes to."""

    is_fine: bool


async def test_structured_output_is_what_the_agent_says() -> None:
    """The call that carries it has its result in the next request."""
    store = MemoryStore()
    verdict = Answer(calls=(Call("Verdict", {"is_fine": True}, "v1"),))
    with FakeProvider([verdict, "Because."]) as provider:
        agent = agent_of(
            provider, TimelineMiddleware(store), response_format=ToolStrategy(Verdict), checkpointer=InMemorySaver()
        )
        assert (await agent.ainvoke(FIX, THREAD))["structured_response"] == Verdict(is_fine=True)
        plain = agent_of(provider, TimelineMiddleware(store))
        state = await agent.aget_state(THREAD)
        await plain.ainvoke({"messages": [*state.values["messages"], HumanMessage("Why?")]}, THREAD)
    assert all_fine(await (await timeline_of(store)).verify(), provider)


async def test_a_state_that_begins_with_a_system_message_keeps_it_as_its_prefix() -> None:
    """Some applications have their prompt in the list."""
    store = MemoryStore()
    with FakeProvider(working(10)) as provider:
        agent = agent_of(provider, TimelineMiddleware(store, policy=small()), system_prompt=None)
        await agent.ainvoke({"messages": [SystemMessage("You code."), HumanMessage("Fix it.")]}, THREAD)
    assert all(asked.system == "You code." for asked in provider.asked)
    assert all("[system message]" not in asked.text for asked in provider.asked)
    assert not any(block.type == "system.message" for block in (await blocks_in(store, "t1"))[:3])


async def test_answers_that_ran_out_of_room_stay_pairs() -> None:
    """Half a call is answered by LangChain, and both go on."""
    store = MemoryStore()
    half = Answer("Look", calls=(Call("bash", '{"comm', "c1"),), stop="length")
    with FakeProvider([half, "Sorry."]) as provider:
        agent = agent_of(provider, TimelineMiddleware(store), checkpointer=InMemorySaver())
        await agent.ainvoke(FIX, THREAD)
        await agent.ainvoke({"messages": [HumanMessage("Again.")]}, THREAD)
    assert all_fine(await (await timeline_of(store)).verify(), provider)


def test_a_missing_framework_is_told_by_its_extra() -> None:
    """The cure is one line."""
    code = "import sys; sys.modules['langchain_core'] = None; import timeline.integrations.langchain"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'timeline-engine[langchain]'" in done.stderr
