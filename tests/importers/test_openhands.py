"""Trajectories of OpenHands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.importers.session import blocks, kinds, read_document
from timeline import open_store
from timeline.blocks import ToolCall, ToolResult
from timeline.events import ModelCalled
from timeline.portable.recordings import import_recording

if TYPE_CHECKING:
    from pathlib import Path

Event = dict[str, Any]


def event(id_: int, source: str, **fields: Any) -> Event:
    """Make an event with the fields that all have."""
    return {"id": id_, "timestamp": f"2025-03-04T09:08:{id_:02}.250000", "source": source, "message": "", **fields}


def prompt(id_: int, text: str, **args: Any) -> Event:
    """Make what the user says."""
    return event(id_, "user", action="message", args={"content": text, "image_urls": None, **args})


def asked(*calls: str, content: str | None = None) -> Event:
    """Make the response that actions carry."""
    made = [
        {"id": id_, "type": "function", "function": {"name": "shell", "arguments": '{"command": "ls"}'}}
        for id_ in calls
    ]
    message = {"role": "assistant", "content": content, "tool_calls": made}
    usage = {
        "prompt_tokens": 90,
        "completion_tokens": 7,
        "total_tokens": 97,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    return {"id": "resp-1", "model": "m-1", "choices": [{"message": message}], "usage": usage}


def metadata(call: str, response: Event) -> Event:
    """Make the field that names the call of an action or an observation."""
    return {"function_name": "shell", "tool_call_id": call, "model_response": response, "total_calls_in_response": 2}


def run(id_: int, call: str, response: Event) -> Event:
    """Make an action that a response asked for."""
    args = {"command": "ls", "thought": "Look.", "hidden": False}
    return event(id_, "agent", action="run", args=args, tool_call_metadata=metadata(call, response))


def came(id_: int, cause: int, call: str, response: Event, status: int = 0) -> Event:
    """Make what came of a command."""
    ended = {"exit_code": status, "prefix": "", "suffix": f"\n[exit {status}]"}
    extras = {"command": "ls", "metadata": ended}
    named = {"cause": cause, "tool_call_metadata": metadata(call, response), "success": status == 0}
    return event(id_, "agent", observation="run", content="cards.py", extras=extras, **named)


def trajectory() -> list[Event]:
    """Return a run with a response of two calls."""
    response = asked("a", "b", content="Look.")
    return [
        event(0, "environment", observation="agent_state_changed", content="", extras={"agent_state": "running"}),
        event(1, "agent", action="system", args={"content": "You build.", "tools": []}),
        prompt(2, "Build cards."),
        run(3, "a", response),
        came(4, 3, "a", response),
        run(5, "b", response),
        came(6, 5, "b", response, 2),
        event(7, "agent", action="message", args={"content": "Done."}),
    ]


def test_calls_of_one_response_are_read_once_with_its_usage(tmp_path: Path) -> None:
    """Each action repeats the response that asked for it."""
    recording = read_document(tmp_path, trajectory())
    assert (recording.report.format, recording.title) == ("openhands", "Build cards.")
    assert kinds(recording) == [
        "system.message",
        "user.prompt",
        "assistant.completion",
        "react.tool.call",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "react.tool.result",
        "assistant.completion",
    ]
    [call] = [one.payload for one in recording.events if isinstance(one.payload, ModelCalled)]
    assert (call.model, call.usage.input_tokens, call.usage.cache_read_tokens, call.usage.output_tokens) == (
        "m-1",
        30,
        60,
        7,
    )
    results = [block for block in blocks(recording) if isinstance(block, ToolResult)]
    assert [(one.text, one.is_error, one.exit_status) for one in results] == [
        ("cards.py\n[exit 0]", False, 0),
        ("cards.py\n[exit 2]", True, 2),
    ]
    assert recording.report.counts == {"skipped": 1}


def test_an_action_without_a_response_is_a_call_that_its_observation_names(tmp_path: Path) -> None:
    """Agents that write their calls as text have no ids; an error that answers nothing is the program's word."""
    args = {"command": "make", "thought": "Build it.", "blocking": False}
    document = [
        prompt(0, "Build.", image_urls=["data:image/png;base64,aGk="]),
        event(1, "agent", action="run", args=args),
        event(2, "agent", observation="run", content="made", cause=1, extras={"command": "make", "exit_code": 0}),
        event(3, "environment", observation="error", content="No action.", extras={}),
        event(4, "user", action="run", args={"command": "ls"}),
        event(5, "agent", action="condensation", args={"summary": "Built."}),
        event(6, "agent", action="finish", args={"outputs": {}, "thought": ""}),
    ]
    recording = read_document(tmp_path, document)
    assert [block.type for block in blocks(recording)] == [
        "user.prompt",
        "user.attachment",
        "assistant.completion",
        "react.tool.call",
        "react.tool.result",
        "client.message",
        "client.message",
        "react.tool.call",
    ]
    call = next(block for block in blocks(recording) if isinstance(block, ToolCall))
    assert (call.name, call.arguments) == ("run", {"command": "make"})
    assert recording.report.counts == {"rolled_back": 1, "unanswered_call": 1}


async def test_a_trajectory_that_has_grown_adds_what_is_new(tmp_path: Path) -> None:
    """Its first event, with its time, is no other trajectory's."""
    async with open_store("memory://") as store:
        done = [
            await import_recording(store, read_document(tmp_path, document))
            for document in (trajectory()[:5], trajectory())
        ]
    assert done[0].id == done[1].id
    assert done[1].known == done[0].events
    assert done[1].events == 2
