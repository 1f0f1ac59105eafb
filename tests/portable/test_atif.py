"""A conversation as a trajectory: steps, calls with their results, and what each response used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from timeline import Timeline, open_store, policies
from timeline.blocks import AssistantCompletion, Reasoning, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.errors import ConversationNotFound, InvalidArgument
from timeline.portable.atif import trajectory
from timeline.usage import Usage

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.ports import EventStore


async def _written(store: EventStore, *blocks: Block) -> dict[str, Any]:
    timeline = await Timeline.open(store, "c", policy=policies.none(max_tokens=10_000))
    for block in blocks:
        await timeline.append(block)
    return await trajectory(store, "c", library="1.2.3")


def _call(id_: str, arguments: Any = None, **given: Any) -> ToolCall:
    return ToolCall(call_id=id_, name="bash", arguments=arguments or {"command": "ls"}, **given)


async def test_a_response_is_one_step_with_its_calls_and_their_results() -> None:
    """Thought, answer and both calls; each result names the call of its step."""
    async with open_store("memory://") as store:
        made = await _written(
            store,
            UserPrompt(text="List the files."),
            Reasoning(text="Two folders.", response_id="r1"),
            AssistantCompletion(text="I look.", response_id="r1"),
            _call("a", response_id="r1"),
            _call("b", response_id="r1"),
            ToolResult(call_id="b", text="two", is_error=True, exit_status=2),
            ToolResult(call_id="a", text="one"),
            AssistantCompletion(text="There are two.", response_id="r2"),
        )
        assert [step["step_id"] for step in made["steps"]] == [1, 2, 3]
        assert [step["source"] for step in made["steps"]] == ["user", "agent", "agent"]
        step = made["steps"][1]
        assert (step["reasoning_content"], step["message"]) == ("Two folders.", "I look.")
        assert [call["tool_call_id"] for call in step["tool_calls"]] == ["a", "b"]
        assert step["observation"]["results"] == [
            {"source_call_id": "b", "content": "two", "extra": {"is_error": True, "exit_status": 2}},
            {"source_call_id": "a", "content": "one"},
        ]
        assert made["agent"] == {"name": "timeline-engine", "version": "1.2.3"}


async def test_what_a_call_used_is_with_its_response() -> None:
    """The tokens that were sent include those from the cache; the totals are those of all calls."""
    async with open_store("memory://") as store:
        timeline = await Timeline.open(store, "c", policy=policies.none(max_tokens=10_000))
        for number in (1, 2):
            await timeline.append(UserPrompt(text="Go on."))
            await timeline.append(AssistantCompletion(text="Done.", response_id=f"r{number}"))
            usage = Usage(input_tokens=10, output_tokens=number, cache_read_tokens=5)
            await timeline.record_model_call(model="m", usage=usage, response_id=f"r{number}")
        made = await trajectory(store, "c", library="1")
        used = [step["metrics"] for step in made["steps"] if step["source"] == "agent"]
        assert used == [{"prompt_tokens": 15, "completion_tokens": n, "cached_tokens": 5} for n in (1, 2)]
        assert made["final_metrics"] == {
            "total_prompt_tokens": 30,
            "total_completion_tokens": 3,
            "total_cached_tokens": 10,
            "total_steps": 4,
        }
        assert made["agent"]["model_name"] == "m"


async def test_every_block_is_named_in_the_step_that_holds_it() -> None:
    """By version and path, with the content that the format has no place for."""
    async with open_store("memory://") as store:
        picture: Any = {"source": {"type": "base64", "data": "aGk="}}
        made = await _written(
            store, UserPrompt(text="Look.", data=picture), SystemMessage(text="It is late."), _call("a")
        )
        blocks = [block for step in made["steps"] for block in step["extra"]["blocks"]]
        assert [block["version"] for block in blocks] == [event.version async for event in _blocks(store)]
        assert blocks[0]["data"] == picture
        assert made["steps"][1]["source"] == "system"


async def test_arguments_that_are_no_object_stay_as_text() -> None:
    """The format wants an object; what the model wrote is in it."""
    async with open_store("memory://") as store:
        made = await _written(
            store, UserPrompt(text="Go."), ToolCall(call_id="a", name="bash", arguments='{"command": ')
        )
        assert made["steps"][1]["tool_calls"][0]["arguments"] == {"raw": '{"command": '}


async def test_a_result_without_its_call_is_an_observation_of_the_system() -> None:
    """A result may name a call of its own step alone."""
    async with open_store("memory://") as store:
        made = await _written(store, UserPrompt(text="Go."), ToolResult(call_id="gone", text="late"))
        step = made["steps"][1]
        assert (step["source"], step["observation"]["results"]) == ("system", [{"content": "late"}])


async def test_a_summary_is_a_step_and_what_it_covers_stays() -> None:
    """A trajectory says what happened, and not what the model saw later."""
    async with open_store("memory://") as store:
        timeline = await Timeline.open(store, "c", policy=policies.cut_point(max_tokens=2_000))
        for number in range(12):
            await timeline.append(UserPrompt(text=f"Question {number}. " + "word " * 150))
            await timeline.append(AssistantCompletion(text=f"Answer {number}. " + "word " * 150))
            await timeline.render()
        made = await trajectory(store, "c", library="1")
        summaries = [s for s in made["steps"] if s["extra"]["blocks"][0]["type"] == "conv.range.summary"]
        assert summaries
        assert {step["source"] for step in summaries} == {"system"}
        said = "".join(step["message"] for step in made["steps"] if step["source"] == "user")
        assert all(f"Question {number}." in said for number in range(12))


async def test_redacted_content_is_not_in_it() -> None:
    """As in every other file that leaves a store."""
    async with open_store("memory://") as store:
        timeline = await Timeline.open(store, "c", policy=policies.none(max_tokens=10_000))
        await timeline.append(UserPrompt(text="The password is swordfish."))
        await timeline.redact("ar:turn_1.user.prompt", reason="a password")
        assert "swordfish" not in str(await trajectory(store, "c", library="1"))


async def test_nothing_to_write_is_an_error() -> None:
    """No such conversation, and one without a message."""
    async with open_store("memory://") as store:
        with pytest.raises(ConversationNotFound):
            await trajectory(store, "c", library="1")
        timeline = await Timeline.open(store, "c", policy=policies.none(max_tokens=10_000))
        await timeline.record_model_call(model="m")
        with pytest.raises(InvalidArgument, match="no message yet"):
            await trajectory(store, "c", library="1")


async def _blocks(store: EventStore) -> Any:
    async for event in store.read("c"):
        if event.payload.type == "block.appended":
            yield event
