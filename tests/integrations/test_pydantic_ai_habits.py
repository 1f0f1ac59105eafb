"""Programs as users of Pydantic AI write them: our capability changes nothing of what they send and get."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
    ModelRetry,
    NativeOutput,
    RunContext,
    Tool,
    ToolDenied,
    capture_run_messages,
)
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import InMemoryConversationStore
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ImageUrl, ModelRequest, UserPromptPart
from pydantic_ai.models.fallback import FallbackModel

from tests.integrations.habits import Program, bash, calls, changes_nothing
from tests.integrations.test_pydantic_ai import model_of
from tests.providers import Answer, Call, Trouble
from timeline.integrations.pydantic_ai import TimelineCapability
from timeline.integrations.pydantic_ai_store import TimelineConversationStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pydantic_ai.messages import ModelMessage

    from tests.integrations.habits import Scene

PROGRAMS: Final[dict[str, Program]] = {}


def program(*script: Any) -> Callable[[Callable[[Scene], Awaitable[Any]]], None]:
    """Add a program, whose model answers by a script."""

    def add(play: Callable[[Scene], Awaitable[Any]]) -> None:
        PROGRAMS[play.__name__] = Program([*script], play)

    return add


def agent_of(scene: Scene, **options: Any) -> Agent[None, Any]:
    """Return an agent, with our capability or without it."""
    settings: dict[str, Any] = {
        "instructions": "You code.",
        "tools": [bash],
        "model": model_of(scene.provider),
        **options,
    }
    ours = [TimelineCapability[None](scene.store, recall=False)] if scene.store else []
    return Agent(capabilities=ours, **settings)


async def asked(
    agent: Agent[None, Any], prompt: Any, history: Sequence[ModelMessage] | None = None, **given: Any
) -> Any:
    """Run an agent on the conversation; return the result."""
    return await agent.run(prompt, message_history=history, conversation_id="c1", **given)


def texts(messages: Sequence[ModelMessage]) -> list[tuple[str, str]]:
    """Return what messages say."""
    parts: list[Any] = [part for message in messages for part in message.parts]
    return [(part.part_kind, str(getattr(part, "content", None) or getattr(part, "args", ""))) for part in parts]


@program(Answer("Let me see.", calls=calls("a", "b")), "Done.", "More.")
async def streaming_tokens(scene: Scene) -> Any:
    """Each token, as the model says it; then node by node."""
    agent = agent_of(scene)
    async with agent.run_stream("Go", conversation_id="c1") as run:
        told = [text async for text in run.stream_text(delta=True)]
    async with agent.iter("More", message_history=run.all_messages(), conversation_id="c1") as again:
        nodes = [type(node).__name__ async for node in again]
    return told, nodes


class Verdict(BaseModel):
    """What a run comes to."""

    is_fine: bool


@program(
    Answer(calls=calls("a")),
    Answer(calls=(Call("final_result", {"is_fine": "perhaps"}, "v1"),)),
    "It is fine.",
    Answer(calls=(Call("final_result", {"is_fine": True}, "v2"),)),
    Answer(calls=(Call("final_result", {"is_fine": False}, "v3"),)),
)
async def structured_output(scene: Scene) -> Any:
    """A wrong verdict and a text are sent back."""
    agent = agent_of(scene, output_type=Verdict, retries=3)
    first = await asked(agent, "Go")
    return first.output, (await asked(agent, "More", first.all_messages())).output


@program('{"is_fine": true}', "It is not.", '{"is_fine": false}')
async def native_output(scene: Scene) -> Any:
    """The provider's own form of it."""
    agent = agent_of(scene, output_type=NativeOutput(Verdict), retries=2)
    first = await asked(agent, "Go")
    return first.output, (await asked(agent, "More", first.all_messages())).output


@program(
    Answer(calls=(*calls("a"), *calls("b", tool="flaky"))), Answer(calls=calls("c", tool="flaky")), "Done.", "More."
)
async def parallel_tools_of_which_one_retries(scene: Scene) -> Any:
    """It says what to do better."""
    times = iter(range(9))

    def flaky(command: str) -> str:
        """Fail once."""
        if next(times) == 0:
            raise ModelRetry("Try again.")
        return f"ran {command}"

    agent = agent_of(scene, tools=[bash, flaky])
    first = await asked(agent, "Go")
    return texts((await asked(agent, "More", first.all_messages())).all_messages())


@program(Answer("I will.", calls=calls("a", "b")), "Done.", "More.")
async def calls_that_are_approved_and_denied(scene: Scene) -> Any:
    """In another process, from a stored history."""

    def agent() -> Agent[None, Any]:
        return agent_of(scene, tools=[Tool(bash, requires_approval=True)], output_type=[str, DeferredToolRequests])

    stored = ModelMessagesTypeAdapter.dump_json((await asked(agent(), "Go")).all_messages())
    decided = DeferredToolResults(approvals={"c_a": True, "c_b": ToolDenied("Not that.")})
    history = ModelMessagesTypeAdapter.validate_json(stored)
    done = await asked(agent(), None, history, deferred_tool_results=decided)
    return texts((await asked(agent(), "More", done.all_messages())).all_messages())


@program(Answer(calls=(*calls("a"), *calls("b", tool="slow"))), "Done.", "More.")
async def a_call_that_is_answered_from_outside(scene: Scene) -> Any:
    """The other one has run by then."""

    def slow(command: str) -> str:
        """Take long."""
        raise CallDeferred({"command": command})

    agent = agent_of(scene, tools=[bash, slow], output_type=[str, DeferredToolRequests])
    first = await asked(agent, "Go")
    come = DeferredToolResults(calls={"c_b": "at last"})
    done = await asked(agent, None, first.all_messages(), deferred_tool_results=come)
    return texts((await asked(agent, "More", done.all_messages())).all_messages())


@program(Trouble("overloaded"), Answer(calls=calls("a")), Trouble("server"), "Done.", "More.")
async def another_model_where_one_fails(scene: Scene) -> Any:
    """By a fallback model."""
    both = FallbackModel(model_of(scene.provider), model_of(scene.provider))
    agent = agent_of(scene, model=both)
    first = await asked(agent, "Go")
    return texts((await asked(agent, "More", first.all_messages())).all_messages())


@program(Answer(calls=calls("a")), Trouble("server"), "Done.", "More.")
async def a_run_that_broke_off_goes_on(scene: Scene) -> Any:
    """From the messages that were captured."""
    agent = agent_of(scene)
    with capture_run_messages() as messages, pytest.raises(ModelHTTPError):
        await asked(agent, "Go")
    done = await asked(agent, None, messages)
    return texts((await asked(agent, "More", done.all_messages())).all_messages())


@program("One.", Trouble("server"), "Two.", "More.")
async def a_turn_that_failed_is_tried_again(scene: Scene) -> Any:
    """With the same prompt, on the history before it."""
    agent = agent_of(scene)
    first = await asked(agent, "1")
    with pytest.raises(ModelHTTPError):
        await asked(agent, "2", first.all_messages())
    again = await asked(agent, "2", first.all_messages())
    return texts((await asked(agent, "More", again.all_messages())).all_messages())


@program("One.", "Two.", "Two b.", "Two c.", "Three.")
async def a_prompt_is_edited_and_its_answer_written_again(scene: Scene) -> Any:
    """On an earlier history."""
    agent = agent_of(scene)
    first = await asked(agent, "1")
    await asked(agent, "2", first.all_messages())
    edited = await asked(agent, "2 b", first.all_messages())
    again = await asked(agent, None, edited.all_messages()[:-1])
    return texts((await asked(agent, "3", again.all_messages())).all_messages())


@program("One.", "Two.", "Three.", "Four.")
async def an_earlier_prompt_is_rewritten_in_its_place(scene: Scene) -> Any:
    """The application takes a number out of it, by a part of its own."""
    agent = agent_of(scene)
    first = await asked(agent, "My number is 555.")
    history = (await asked(agent, "2", first.all_messages())).all_messages()
    history[0] = ModelRequest([UserPromptPart("My number is gone.")])
    third = await asked(agent, "3", history)
    return texts((await asked(agent, "4", third.all_messages())).all_messages())


@program(Answer(calls=calls("a")), "One.", "Two.", "Three.")
async def an_old_result_is_shortened_in_its_place(scene: Scene) -> Any:
    """Its call has the shorter one for its result."""
    agent = agent_of(scene)
    history = (await asked(agent, "1")).all_messages()
    result: Any = history[2].parts[0]
    history[2] = ModelRequest([replace(result, content="[long ago]")])
    second = await asked(agent, "2", history)
    return texts((await asked(agent, "3", second.all_messages())).all_messages())


@program(Answer(calls=(Call("ask", {"question": "x"}, "q1"),)), "Sub.", "Done.")
async def a_subagent_as_a_tool(scene: Scene) -> Any:
    """It has a conversation of its own."""
    other = agent_of(scene, tools=[], instructions="You help.")

    async def ask(ctx: RunContext[None], question: str) -> str:
        """Ask another agent."""
        return str((await other.run(question, usage=ctx.usage)).output)

    return texts((await asked(agent_of(scene, tools=[ask]), "Go")).all_messages())


@program(Answer(calls=calls("a")), "One.", "Two.", "Three.")
async def agents_that_hand_a_history_on(scene: Scene) -> Any:
    """Each has its own instructions, and the first one a system prompt."""
    one = agent_of(scene, instructions=None, system_prompt="You code.")
    other = agent_of(scene, instructions="You review.")
    first = await asked(one, "1")
    second = await asked(other, "2", first.all_messages())
    return texts((await asked(one, "3", second.all_messages())).all_messages())


@program(Answer(calls=(Call("shot", {}, "s1"),)), "One.", "Two.")
async def pictures(scene: Scene) -> Any:
    """In a prompt and in a result."""
    picture = BinaryContent(b"\x89PNG\r\n\x1a\n0000", media_type="image/png")

    def shot() -> BinaryContent:
        """Take a picture."""
        return picture

    agent = agent_of(scene, tools=[shot])
    first = await asked(agent, ["Look", picture, ImageUrl("https://example.org/a.png"), "at these."])
    return (await asked(agent, "2", first.all_messages())).output


@program(*["Yes."] * 4)
async def the_same_words_again_and_again(scene: Scene) -> Any:
    """The application keeps the new messages of each run."""
    agent = agent_of(scene)
    history: list[ModelMessage] = []
    for _ in range(4):
        history += (await asked(agent, "Continue.", history)).new_messages()
    return texts(history)


@program(Answer(calls=calls("a")), "One.", "Two.", "Two b.")
async def a_conversation_that_is_stored_and_branched(scene: Scene) -> Any:
    """By the framework's protocol, in our store and in its own."""
    stored: Any = TimelineConversationStore(scene.store) if scene.store else InMemoryConversationStore()
    agent = agent_of(scene)
    await stored.save(await agent.run("1", conversation=Conversation(conversation_id="c1")))
    second = await agent.run("2", conversation=await stored.load("c1"))
    await stored.save(second)
    branch = await stored.branch("c1", at=4, expected_revision=second.conversation.revision)
    return texts((await agent.run("2 b", conversation=branch)).all_messages())


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_program_sends_and_gets_the_same_with_our_capability(name: str) -> None:
    """While nothing has to be compacted."""
    await changes_nothing(PROGRAMS[name])
