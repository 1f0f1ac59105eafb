"""Calls that the provider gave no id: their results answer them, however the list comes, and nothing is there twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from timeline.blocks import ToolCall, ToolResult
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

Message = dict[str, Any]


def asked(wire: str) -> Message:
    """Return a prompt."""
    return {"role": "user", "content": "Go."} if wire == "openai_chat" else {"role": "user", "parts": [{"text": "Go."}]}


def called(wire: str, *names: str, number: int = 0) -> Message:
    """Return a response with calls that have no id."""
    if wire == "gemini":
        return {"role": "model", "parts": [{"functionCall": {"name": n, "args": {"n": number}}} for n in names]}
    told = [{"function": {"name": name, "arguments": json.dumps({"n": number})}} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": told}


def answered(wire: str, *names: str, number: int = 0) -> list[Message]:
    """Return the messages with the results of such calls."""
    if wire == "gemini":
        told = [{"name": n, "response": {"output": f"{n} {number}"}} for n in names]
        return [{"role": "user", "parts": [{"functionResponse": one} for one in told]}]
    return [{"role": "tool", "tool_name": name, "content": f"{name} {number}"} for name in names]


def reply_of(wire: str, message: Message, name: str) -> Message:
    """Return a provider's reply with a message."""
    if wire == "gemini":
        return {"responseId": name, "candidates": [{"content": message, "finishReason": "STOP"}]}
    return {"id": name, "choices": [{"message": message, "finish_reason": "tool_calls"}]}


def pairs(timeline: Timeline) -> list[tuple[str, str]]:
    """Return each call's tool, and the text of the result that answers it."""
    items = timeline.window.items
    results = {item.answers: item.block.text for item in items if isinstance(item.block, ToolResult)}
    return [(i.block.name, results.get(i.version, "")) for i in items if isinstance(i.block, ToolCall)]


async def opened() -> Timeline:
    """Open a conversation in a store of its own."""
    return await Timeline.open(MemoryStore(), "cards")


wires = pytest.mark.parametrize("wire", ["openai_chat", "gemini"])


@wires
async def test_results_answer_calls_that_an_earlier_append_brought(wire: Any) -> None:
    """Out of order, and in an append of their own."""
    timeline = await opened()
    for messages in ([asked(wire)], [called(wire, "ls", "cat")], answered(wire, "cat", "ls")):
        await timeline.append_messages(messages, wire=wire)
    assert pairs(timeline) == [("ls", "ls 0"), ("cat", "cat 0")]


@wires
async def test_results_answer_calls_of_a_recorded_reply(wire: Any) -> None:
    """Two calls of one tool are answered in their order, over two appends."""
    timeline = await opened()
    await timeline.record(reply_of(wire, called(wire, "ls", "ls"), "one"))
    for message in answered(wire, "ls") + answered(wire, "ls", number=1):
        await timeline.append_messages([message], wire=wire)
    assert pairs(timeline) == [("ls", "ls 0"), ("ls", "ls 1")]


@wires
async def test_a_part_of_a_history_with_keys_answers_the_call_before_it(wire: Any) -> None:
    """What is known already, in front of the new result, takes no call from it."""
    timeline = await opened()
    history = [asked(wire), called(wire, "ls", "ls"), *answered(wire, "ls"), *answered(wire, "ls", number=1)]
    keys = ["m1", "m2", "m3", "m4"]
    await timeline.append_messages(history[:3], wire=wire, keys=keys[:3])
    for start in (2, 1):
        await timeline.append_messages(history[start:], wire=wire, keys=keys[start:])
    assert pairs(timeline) == [("ls", "ls 0"), ("ls", "ls 1")]


async def test_an_old_function_message_answers_a_call_that_an_earlier_append_brought() -> None:
    """It has the name of its function alone."""
    timeline = await opened()
    told = {"role": "assistant", "content": None, "function_call": {"name": "ls", "arguments": "{}"}}
    await timeline.append_messages([told])
    await timeline.append_messages([{"role": "function", "name": "ls", "content": "a.py"}])
    assert pairs(timeline) == [("ls", "a.py")]


@wires
async def test_a_call_that_waits_for_an_approval_leaves_the_result_to_the_newest_response(wire: Any) -> None:
    """Although it is older, and of the same tool."""
    timeline = await opened()
    await timeline.append(ToolCall(call_id="waits", name="ls", pending=True, response_id="r1"))
    await timeline.append_messages([called(wire, "ls")], wire=wire)
    await timeline.append_messages(answered(wire, "ls"), wire=wire)
    assert pairs(timeline) == [("ls", ""), ("ls", "ls 0")]


@wires
@pytest.mark.parametrize("saves", [True, False])
async def test_a_step_hook_appends_a_call_without_an_id_once(wire: Any, *, saves: bool) -> None:
    """Whether the reply was saved or only the list has it, and the list goes out as it came."""
    timeline = await opened()
    hook = timeline.step_hook(wire)
    history = [asked(wire)]
    for number in (0, 1, 1):
        await hook.prepare_step(messages=history)
        if saves:
            await hook.on_step_finish(reply_of(wire, called(wire, "ls", number=number), f"reply {len(history)}"))
        history += [called(wire, "ls", number=number), *answered(wire, "ls", number=number)]
    step = await hook.prepare_step(messages=history)
    assert pairs(timeline) == [("ls", "ls 0"), ("ls", "ls 1"), ("ls", "ls 1")]
    assert step["messages"] == history


@wires
async def test_a_new_step_hook_knows_the_calls_without_an_id_of_the_one_before(wire: Any) -> None:
    """As after a restart."""
    timeline = await opened()
    history = [asked(wire), called(wire, "ls"), *answered(wire, "ls")]
    for _ in range(2):
        await timeline.step_hook(wire).prepare_step(messages=history)
    assert pairs(timeline) == [("ls", "ls 0")]


@wires
async def test_a_list_that_came_back_is_gone_on_with_by_calls_without_an_id(wire: Any) -> None:
    """The ids in it are those of the log."""
    timeline = await opened()
    messages = [asked(wire)]
    for number in (0, 1, 1):
        step = await timeline.step_hook(wire).prepare_step(messages=messages)
        messages = [*step["messages"], called(wire, "ls", number=number), *answered(wire, "ls", number=number)]
    await timeline.step_hook(wire).prepare_step(messages=messages)
    assert pairs(timeline) == [("ls", "ls 0"), ("ls", "ls 1"), ("ls", "ls 1")]
