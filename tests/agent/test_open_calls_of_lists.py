"""Lists of messages that end in calls without results: the application runs the tools, and goes on with the list."""

from __future__ import annotations

from typing import Any

import pytest

from tests.invariants.wires import check_openai_chat
from timeline import compact_messages, policies
from timeline.errors import StoreError
from timeline.wire.neutral import INTERRUPTED

TALK = [("user", "Question. " * 150), ("assistant", "Answer. " * 150)] * 10


def anthropic(answered: int) -> list[Any]:
    """Return a list of Anthropic's form with two calls, of which some are answered."""
    talk: list[Any] = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in TALK]
    uses = [{"type": "tool_use", "id": f"c{n}", "name": "run", "input": {}} for n in range(2)]
    results = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "ok"} for n in range(answered)]
    asked = [*talk, {"role": "user", "content": "Do it."}, {"role": "assistant", "content": uses}]
    return [*asked, {"role": "user", "content": results}] if results else asked


def chat(answered: int) -> list[Any]:
    """Return the same in the form of chat completions."""
    talk: list[Any] = [{"role": role, "content": text} for role, text in TALK]
    function = {"type": "function", "function": {"name": "run", "arguments": "{}"}}
    calls = [{"id": f"c{n}", **function} for n in range(2)]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": "ok"} for n in range(answered)]
    return [*talk, {"role": "user", "content": "Do it."}, {"role": "assistant", "tool_calls": calls}, *results]


def items(answered: int) -> list[Any]:
    """Return the same as items of the Responses API."""
    talk: list[Any] = [{"role": role, "content": text} for role, text in TALK]
    calls = [{"type": "function_call", "call_id": f"c{n}", "name": "run", "arguments": "{}"} for n in range(2)]
    results = [{"type": "function_call_output", "call_id": f"c{n}", "output": "ok"} for n in range(answered)]
    return [*talk, {"role": "user", "content": "Do it."}, *calls, *results]


def gemini(answered: int) -> list[Any]:
    """Return the same in Google's form."""
    talk: list[Any] = [{"role": role.replace("assistant", "model"), "parts": [{"text": text}]} for role, text in TALK]
    calls = [{"function_call": {"id": f"c{n}", "name": "run", "args": {}}} for n in range(2)]
    answer = {"name": "run", "response": {"output": "ok"}}
    results = [{"function_response": {"id": f"c{n}", **answer}} for n in range(answered)]
    asked = [*talk, {"role": "user", "parts": [{"text": "Do it."}]}, {"role": "model", "parts": calls}]
    return [*asked, {"role": "user", "parts": results}] if results else asked


@pytest.mark.parametrize("answered", [0, 1])
@pytest.mark.parametrize("made", [anthropic, chat, items, gemini])
async def test_calls_that_a_list_ends_with_get_their_results_from_the_application_alone(
    made: Any, answered: int
) -> None:
    """A result that was made up for a call is one too many once the tool has run: the provider refuses the list."""
    given = made(answered)
    compacted = await compact_messages(given, policies.cut_point(max_tokens=2_000))
    assert compacted.compaction_number == 1
    assert compacted.messages[len(TALK) - len(given) :] == given[len(TALK) :]
    assert INTERRUPTED not in str(compacted.messages)


async def test_an_approval_of_a_call_that_is_still_to_run_stays_with_it() -> None:
    """The AI SDK runs the tool when it goes on with the list; a result that was made up would keep it from that."""
    talk: list[Any] = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in TALK]
    asked = {"type": "tool-call", "toolCallId": "c0", "toolName": "run", "input": {}}
    request = {"type": "tool-approval-request", "approvalId": "a0", "toolCallId": "c0"}
    response = {"type": "tool-approval-response", "approvalId": "a0", "approved": True}
    tail = [{"role": "assistant", "content": [asked, request]}, {"role": "tool", "content": [response]}]
    compacted = await compact_messages([*talk, *tail], policies.cut_point(max_tokens=2_000))
    assert compacted.compaction_number == 1
    assert compacted.messages[-2:] == tail


async def test_a_call_that_the_user_went_on_behind_keeps_the_word_that_nothing_came() -> None:
    """Such a list is sent as it is."""
    given = [*chat(0), {"role": "user", "content": "Never mind."}]
    compacted = await compact_messages(given, policies.cut_point(max_tokens=2_000))
    assert [message["content"] for message in compacted.messages[-3:]] == [INTERRUPTED, INTERRUPTED, "Never mind."]
    check_openai_chat({"messages": compacted.messages})


def test_without_an_event_loop_of_asyncio_no_list_is_compacted() -> None:
    """Under another library, such as trio, it worked until the first compaction, and ended in an error of Python's."""
    messages = [{"role": "user", "content": "Write a card."}]
    with pytest.raises(StoreError, match=r"compact_messages needs a running event loop of asyncio.*timeline\.sync"):
        compact_messages(messages, policies.cut_point(max_tokens=8_000)).send(None)
