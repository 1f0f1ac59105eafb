"""Programs as users of LangChain write them: our middleware changes nothing of what they send and get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    TodoListMiddleware,
    after_model,
    before_agent,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt
from openai import InternalServerError
from pydantic import BaseModel

from tests.integrations.habits import Program, bash, calls, changes_nothing
from tests.integrations.test_langchain import model_of
from tests.providers import Answer, Call, Trouble
from timeline.integrations.langchain import TimelineMiddleware

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from langchain_core.runnables import RunnableConfig

    from tests.integrations.habits import Scene

THREAD: Final[RunnableConfig] = {"configurable": {"thread_id": "t1"}, "recursion_limit": 200}
PROGRAMS: Final[dict[str, Program]] = {}


def program(*script: Any) -> Callable[[Callable[[Scene], Awaitable[Any]]], None]:
    """Add a program, whose model answers by a script."""

    def add(play: Callable[[Scene], Awaitable[Any]]) -> None:
        PROGRAMS[play.__name__] = Program([*script], play)

    return add


def agent_of(scene: Scene, *middleware: Any, tools: Sequence[Any] = (bash,), **options: Any) -> Any:
    """Return an agent, with our middleware or without it."""
    conversation = options.pop("conversation", None)
    ours = [TimelineMiddleware(scene.store, recall=False, conversation=conversation)] if scene.store else []
    settings: dict[str, Any] = {"system_prompt": "You code.", **options}
    return create_agent(model_of(scene.provider), [*tools], middleware=[*middleware, *ours], **settings)


def says(text: str) -> Any:
    """Return the input of a run with a new prompt."""
    return {"messages": [HumanMessage(text)]}


def texts(state: Any) -> list[tuple[str, str]]:
    """Return what an agent's state says."""
    return [(message.type, str(message.content)) for message in state["messages"]]


@program(Answer("Let me see.", calls=calls("a", "b")), "Done.")
async def streaming_tokens(scene: Scene) -> Any:
    """Each token, as the model says it. The tools of a response run at once, and either may be the first to end."""
    agent = agent_of(scene, checkpointer=InMemorySaver())
    tokens = [token async for token, _ in agent.astream(says("Go"), THREAD, stream_mode="messages")]
    results = sorted(str(token.content) for token in tokens if token.type == "tool")
    return [str(token.content) for token in tokens if token.type != "tool"], results


class Verdict(BaseModel):
    """What a run comes to."""

    is_fine: bool


@program(
    Answer(calls=calls("a")),
    Answer(calls=(Call("Verdict", {"is_fine": "perhaps"}, "v1"),)),
    Answer(calls=(Call("Verdict", {"is_fine": True}, "v2"),)),
    Answer(calls=(Call("Verdict", {"is_fine": False}, "v3"),)),
)
async def structured_output(scene: Scene) -> Any:
    """The first verdict is none, and is asked for again."""
    agent = agent_of(scene, response_format=ToolStrategy(Verdict), checkpointer=InMemorySaver())
    first = await agent.ainvoke(says("Go"), THREAD)
    return first["structured_response"], (await agent.ainvoke(says("More"), THREAD))["structured_response"]


@program(Answer(calls=(*calls("a"), *calls("b", tool="fail"), *calls("c"))), Answer(calls=calls("d")), "Done.")
async def parallel_tools_of_which_one_fails(scene: Scene) -> Any:
    """A middleware makes its error a result."""

    def fail(command: str) -> str:
        """Fail."""
        raise ValueError(command)

    @wrap_tool_call
    async def handled(request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except ValueError as error:
            return ToolMessage(f"no {error}", tool_call_id=request.tool_call["id"], status="error", name="fail")

    return texts(await agent_of(scene, handled, tools=(bash, fail)).ainvoke(says("Go"), THREAD))


@program(Answer(calls=calls("a", "b")), Answer(calls=calls("c")), "Done.", "More.")
async def a_human_approves_and_edits(scene: Scene) -> Any:
    """Each time in another process."""
    saver = InMemorySaver()

    async def go(given: Any) -> Any:
        human = HumanInTheLoopMiddleware(interrupt_on={"bash": True})
        return await agent_of(scene, human, checkpointer=saver).ainvoke(given, THREAD)

    edited = {"type": "edit", "edited_action": {"name": "bash", "args": {"command": "B"}}}
    await go(says("Go"))
    await go(Command(resume={"decisions": [{"type": "approve"}, edited]}))
    await go(Command(resume={"decisions": [{"type": "approve"}]}))
    return texts(await go(says("More")))


@program(Answer(calls=(*calls("a"), Call("ask", {"question": "?"}, "q1"))), "Done.", "More.")
async def a_tool_that_interrupts(scene: Scene) -> Any:
    """The other one has run by then."""

    @tool
    def ask(question: str) -> str:
        """Ask the user."""
        return f"said {interrupt(question)}"

    agent = agent_of(scene, tools=(bash, ask), checkpointer=InMemorySaver())
    await agent.ainvoke(says("Go"), THREAD)
    await agent.ainvoke(Command(resume="yes"), THREAD)
    return texts(await agent.ainvoke(says("More"), THREAD))


@program(Trouble("overloaded"), Answer(calls=calls("a")), Trouble("server"), Trouble("server"), "Done.", "More.")
async def retries_and_another_model(scene: Scene) -> Any:
    """Of two middlewares before ours."""
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0.0, jitter=False)
    other = ModelFallbackMiddleware(model_of(scene.provider, model="gpt-6-mini"))
    agent = agent_of(scene, other, retry, checkpointer=InMemorySaver())
    await agent.ainvoke(says("Go"), THREAD)
    return texts(await agent.ainvoke(says("More"), THREAD))


@program(Answer(calls=calls("a")), Trouble("server"), "Done.", "More.")
async def a_run_that_broke_off_goes_on(scene: Scene) -> Any:
    """From its newest checkpoint."""
    agent = agent_of(scene, checkpointer=InMemorySaver())
    with pytest.raises(InternalServerError):
        await agent.ainvoke(says("Go"), THREAD)
    await agent.ainvoke(None, THREAD)
    return texts(await agent.ainvoke(says("More"), THREAD))


@program("One.", "Two.", "Two again.", "Three.")
async def an_answer_is_removed_and_written_again(scene: Scene) -> Any:
    """By `RemoveMessage`."""
    agent = agent_of(scene, checkpointer=InMemorySaver())
    await agent.ainvoke(says("1"), THREAD)
    last = (await agent.ainvoke(says("2"), THREAD))["messages"][-1]
    await agent.aupdate_state(THREAD, {"messages": [RemoveMessage(id=last.id)]})
    await agent.ainvoke({"messages": []}, THREAD)
    return texts(await agent.ainvoke(says("3"), THREAD))


@program("One.", "Two.", "Three.", "Four.")
async def a_thread_is_emptied(scene: Scene) -> Any:
    """The user begins anew."""
    agent = agent_of(scene, checkpointer=InMemorySaver())
    await agent.ainvoke(says("1"), THREAD)
    await agent.ainvoke(says("2"), THREAD)
    emptied = [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("3")]
    await agent.ainvoke({"messages": emptied}, THREAD)
    return texts(await agent.ainvoke(says("4"), THREAD))


@program("One.", "Two.", "Three.", "Four.")
async def an_earlier_message_is_rewritten_in_its_place(scene: Scene) -> Any:
    """The application takes a number out of it."""
    agent = agent_of(scene, checkpointer=InMemorySaver())
    first = (await agent.ainvoke(says("My number is 555."), THREAD))["messages"][0]
    await agent.ainvoke(says("2"), THREAD)
    without = first.model_copy(update={"content": "My number is gone."})
    await agent.aupdate_state(THREAD, {"messages": [without]})
    await agent.ainvoke(says("3"), THREAD)
    return texts(await agent.ainvoke(says("4"), THREAD))


@program(Answer(calls=calls("a")), "One.", "Two.", "Three.")
async def an_old_result_is_shortened_in_its_place(scene: Scene) -> Any:
    """Its call has the shorter one for its result."""
    agent = agent_of(scene, checkpointer=InMemorySaver())
    result = (await agent.ainvoke(says("1"), THREAD))["messages"][2]
    await agent.aupdate_state(THREAD, {"messages": [result.model_copy(update={"content": "[long ago]"})]})
    await agent.ainvoke(says("2"), THREAD)
    return texts(await agent.ainvoke(says("3"), THREAD))


@program("One.", "Two.", "Three.", "Two b.", "Three b.", "Four.")
async def time_travel(scene: Scene) -> Any:
    """A question is edited at an earlier checkpoint; later the first branch is taken up again."""
    agent = agent_of(scene, checkpointer=InMemorySaver())
    for prompt in "123":
        await agent.ainvoke(says(prompt), THREAD)
    states = [state async for state in agent.aget_state_history(THREAD)]
    asked = next(s for s in states if s.next == ("model",) and len(s.values["messages"]) == 3)
    edited = HumanMessage("2 b", id=asked.values["messages"][-1].id)
    await agent.ainvoke(None, await agent.aupdate_state(asked.config, {"messages": [edited]}))
    await agent.ainvoke(says("3 b"), THREAD)
    return texts(await agent.ainvoke(says("4"), states[0].config))


@program(Answer(calls=(Call("ask", {"question": "x"}, "q1"),)), "Sub.", "Done.", "More.")
async def a_subagent_as_a_tool(scene: Scene) -> Any:
    """It has a conversation of its own."""
    other = agent_of(scene, tools=(), system_prompt="You help.", conversation="helper")

    @tool
    async def ask(question: str) -> str:
        """Ask another agent."""
        return str((await other.ainvoke(says(question)))["messages"][-1].content)

    agent = agent_of(scene, tools=(ask,), checkpointer=InMemorySaver())
    await agent.ainvoke(says("Go"), THREAD)
    return texts(await agent.ainvoke(says("More"), THREAD))


@program(Answer(calls=(Call("hand", {}, "h1"),)), "Done.", "More.")
async def a_tool_that_writes_the_state(scene: Scene) -> Any:
    """By a `Command` with two messages."""

    @tool
    def hand(tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Hand it over."""
        result = ToolMessage("handed", tool_call_id=tool_call_id)
        return Command(update={"messages": [result, HumanMessage("And this.")]})

    agent = agent_of(scene, tools=(hand,), checkpointer=InMemorySaver())
    await agent.ainvoke(says("Go"), THREAD)
    return texts(await agent.ainvoke(says("More"), THREAD))


@program(Answer(calls=calls("a")), "One.", "Two.")
async def prompts_and_tools_that_change(scene: Scene) -> Any:
    """With each call of the model."""
    number = iter(range(9))

    @dynamic_prompt
    def prompt(request: Any) -> str:
        del request
        return f"You code, {next(number)}."

    @wrap_model_call
    async def fewer(request: Any, handler: Any) -> Any:
        tools = request.tools if len(request.messages) < 4 else []
        return await handler(request.override(tools=tools, model_settings={"temperature": 0.5}))

    agent = agent_of(scene, prompt, fewer, checkpointer=InMemorySaver())
    await agent.ainvoke(says("1"), THREAD)
    return texts(await agent.ainvoke(says("2"), THREAD))


@program(Answer(calls=calls("mail ada@example.org")), "Mailed to ada@example.org.", "More.")
async def other_middleware_writes_messages(scene: Scene) -> Any:
    """In front of a run, behind a reply, and in results."""

    @before_agent
    async def told(state: Any, runtime: Any) -> Any:
        del state, runtime
        return {"messages": [SystemMessage("It is Monday.")]}

    @after_model
    async def checked(state: Any, runtime: Any) -> Any:
        del runtime
        last = state["messages"][-1]
        return {"messages": [last.model_copy(update={"content": f"{last.content} (checked)"})]}

    private = PIIMiddleware("email", apply_to_output=True, apply_to_tool_results=True)
    agent = agent_of(scene, told, checked, private, TodoListMiddleware(), checkpointer=InMemorySaver())
    await agent.ainvoke(says("Write to bob@example.org"), THREAD)
    return texts(await agent.ainvoke(says("More"), THREAD))


@program(Answer(calls=(Call("scale", '{"factor": NaN}', "n1"),)), "Done.", "More.")
async def arguments_that_json_has_no_form_for(scene: Scene) -> Any:
    """Python reads them, and so does the tool."""

    def scale(factor: float) -> str:
        """Scale it."""
        return f"by {factor}"

    agent = agent_of(scene, tools=(scale,), checkpointer=InMemorySaver())
    await agent.ainvoke(says("Go"), THREAD)
    return texts(await agent.ainvoke(says("More"), THREAD))


@program(*["Yes."] * 4)
async def the_same_words_again_and_again(scene: Scene) -> Any:
    """Without a checkpointer: the application keeps roles and texts."""
    agent, history = agent_of(scene), []
    for _ in range(4):
        history.append({"role": "user", "content": "Continue."})
        answer = (await agent.ainvoke({"messages": history}, THREAD))["messages"][-1]
        history.append({"role": "assistant", "content": answer.content})
    return history


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_program_sends_and_gets_the_same_with_our_middleware(name: str) -> None:
    """While nothing has to be compacted."""
    await changes_nothing(PROGRAMS[name])
