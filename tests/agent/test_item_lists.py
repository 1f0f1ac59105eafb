"""Loops that keep a list of OpenAI's items, as its documentation does: ``items += response.output``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from openai import AsyncOpenAI
from openai.types.responses import Response

from tests.providers import FakeProvider
from tests.providers.script import Answer, Call
from tests.scenes import opened, payloads_of
from timeline import Timeline, compact_messages, open_store, policies
from timeline.blocks import SystemMessage
from timeline.errors import InvalidBlock
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.providers.script import Asked, Step

ROUNDS = 12


def working(asked: Asked) -> Step:
    """Think and call two tools; then answer."""
    number, step = divmod(asked.number, 2)
    if step:
        return Answer("Done. " * 80, thought="It is done.")
    calls = tuple(Call("read", {"path": f"src/module_{number}_{n}.py"}) for n in range(2))
    return Answer("I look.", calls, thought="I should look. " * 30)


def as_objects(reply: Any) -> list[Any]:
    """Return the items of a reply as the SDK's objects."""
    return list(reply.output)


def as_dicts(reply: Any) -> list[Any]:
    """Return them as programs store them: also with fields that the SDK added."""
    return [item.model_dump(exclude_none=True) for item in reply.output]


async def rounds(client: AsyncOpenAI, items: list[Any], hook: Any, kept: Callable[[Any], list[Any]]) -> list[Any]:
    """Run a loop to its answer; return its list."""
    while True:
        sent = (await hook.prepare_step(messages=items))["messages"]
        reply = await client.responses.create(model="gpt-5.6", input=sent)
        await hook.on_step_finish(reply)
        items = [*items, *kept(reply)]
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return items
        items += [
            {"type": "function_call_output", "call_id": call.call_id, "output": f"{call.arguments}\n" * 80}
            for call in calls
        ]


@pytest.mark.parametrize("kept", [as_objects, as_dicts])
async def test_a_loop_of_items_runs_past_several_compactions_and_a_restart(
    tmp_path: Path, kept: Callable[[Any], list[Any]]
) -> None:
    """Nothing is refused, and no block is stored twice."""
    items: list[Any] = [{"role": "developer", "content": "Be brief."}]
    with FakeProvider(working) as provider:
        client = AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=0)
        for half in range(2):
            async with open_store(tmp_path / "a.db") as store:
                timeline = await Timeline.open(store, "c", policy=policies.balanced(max_tokens=8_000))
                hook = timeline.step_hook("openai_responses")
                for number in range(ROUNDS):
                    items.append({"role": "user", "content": f"Prompt {half}.{number}. " + "Look well. " * 40})
                    items = await rounds(client, items, hook, kept)
                report = await timeline.verify()
                compactions = await payloads_of(store, "compaction.completed")
                stored = await payloads_of(store, "block.appended")
    assert report.ok
    assert len(compactions) > 1
    assert provider.refused == []
    assert all(asked.body["input"][0] == items[0] for asked in provider.asked)
    said = [told.block for told in stored if not isinstance(told.block, SystemMessage)]  # a notice about hides
    assert len(said) == 2 * ROUNDS * len(["a prompt", *2 * ["a thought", "a text", "a call", "a result"]])


async def test_items_are_appended_with_the_response_that_they_are_of() -> None:
    """Thought, text and call of one reply are one response; its result belongs to the call."""
    with FakeProvider(working) as provider:
        client = AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=0)
        reply = await client.responses.create(model="gpt-5.6", input="go")
    timeline = await opened(MemoryStore())
    results = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "a.py"}
        for item in reply.output
        if item.type == "function_call"
    ]
    blocks = await timeline.append_messages([{"role": "user", "content": "go"}, *reply.output, *results])
    assert [block.type for block in blocks] == [
        *("user.prompt", "assistant.reasoning", "assistant.completion"),
        *("react.tool.call", "react.tool.call", "react.tool.result", "react.tool.result"),
    ]
    assert len({block.response_id for block in blocks[1:5]}) == 1
    assert not timeline.window.open_calls()
    body = (await timeline.render()).to_openai_responses(model="gpt-5.6")
    assert [item["type"] for item in body["input"]] == [
        *("message", "reasoning", "message", "function_call", "function_call"),
        *("function_call_output", "function_call_output"),
    ]


async def test_two_replies_of_two_lists_are_two_responses() -> None:
    """Their items have no response's id; each list names its own."""
    timeline = await opened(MemoryStore())
    for text in ("one", "two"):
        await timeline.append_messages([{"role": "user", "content": text}], wire="openai_responses")
        call = {"type": "function_call", "call_id": text, "name": "ls", "arguments": "{}"}
        await timeline.append_messages([call, {"type": "function_call_output", "call_id": text, "output": "a"}])
    ids = [item.block.response_id for item in timeline.window.items if item.block.response_id]
    assert len(set(ids)) == len(ids) == 2


async def test_a_plain_list_of_items_is_compacted_without_ids_of_thoughts_that_are_gone() -> None:
    """The API refuses an item whose id belongs to a thought that is not sent."""
    with FakeProvider(working) as provider:
        client = AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=0)
        items: list[Any] = []
        for number in range(ROUNDS):
            items.append({"role": "user", "content": f"Prompt {number}. " + "Look well. " * 40})
            for _ in range(2):
                done = await compact_messages(items, policies.cut_point(max_tokens=6_000))
                items = done.messages
                reply = await client.responses.create(model="gpt-5.6", input=items)
                calls = [item for item in reply.output if item.type == "function_call"]
                outputs = [
                    {"type": "function_call_output", "call_id": call.call_id, "output": "line\n" * 200}
                    for call in calls
                ]
                items = [*items, *[item.model_dump(exclude_unset=True) for item in reply.output], *outputs]
    assert done.compaction_number > 1
    assert provider.refused == []


NATIVE: list[dict[str, Any]] = [
    {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    },
    {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "c1",
        "status": "completed",
        "action": {"commands": ["ls"]},
    },
    {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "c2",
        "status": "completed",
        "pending_safety_checks": [],
        "actions": [{"type": "click", "x": 1, "y": 2, "button": "left"}],
    },
]
"""What OpenAI's own tools did and ask for, whose objects in the SDK have fields that were not sent."""


@pytest.mark.parametrize("options", [{}, {"exclude_none": True}, {"exclude_unset": True}], ids=str)
async def test_items_are_known_however_the_sdks_objects_were_dumped(options: dict[str, Any]) -> None:
    """A dump may have null in each field that was not sent; no call is made twice for it."""
    told = {"id": "r1", "object": "response", "model": "gpt-5.6", "created_at": 1, "status": "completed"}
    reply = Response.model_validate(
        {**told, "output": NATIVE, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    )
    timeline = await opened(MemoryStore())
    hook = timeline.step_hook("openai_responses")
    items: list[Any] = [{"role": "user", "content": "go"}]
    await hook.prepare_step(messages=items)
    await hook.on_step_finish(reply)
    before = timeline.version
    await hook.prepare_step(messages=[*items, *(item.model_dump(**options) for item in reply.output)])
    assert [item.version for item in timeline.window.items if item.version > before] == []


async def test_what_is_never_sent_is_known_to_a_process_that_goes_on_behind_a_summary() -> None:
    """The list that it is given has the newest reply as it came."""
    store = MemoryStore()
    timeline = await opened(store, policy=policies.cut_point(max_tokens=3_000, counter="chars4"))
    hook = timeline.step_hook("openai_responses")
    items: list[Any] = [{"role": "user", "content": "Look well. " * 1_080}, {"role": "assistant", "content": "Yes."}]
    sent = (await hook.prepare_step(messages=[*items, {"role": "user", "content": "And now?"}]))["messages"]
    assert timeline.window.summaries
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}  # the provider has stored it
    said = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}
    output = [thought, NATIVE[0], said]
    await hook.on_step_finish({"object": "response", "id": "r1", "model": "gpt-5.6", "output": output})
    before = timeline.version
    again = await opened(store, policy=timeline.policy)
    await again.step_hook("openai_responses").prepare_step(messages=[*sent, *output])
    assert [item.block.type for item in again.window.items if item.version > before] == []


CHATS: list[dict[str, Any]] = [
    {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "ls", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}]},
]
"""Calls and results in messages of other forms."""


@pytest.mark.parametrize("message", CHATS)
async def test_a_message_of_another_form_among_items_is_refused(message: dict[str, Any]) -> None:
    """Its call would be lost, and its result be something that the user said."""
    timeline = await opened(MemoryStore())
    call = {"type": "function_call", "call_id": "c2", "name": "ls", "arguments": "{}"}
    with pytest.raises(InvalidBlock, match="give lists of one form"):
        await timeline.append_messages([{"role": "user", "content": "go"}, message, call])


async def test_a_part_of_a_content_is_no_item() -> None:
    """A list of parts is refused, as before."""
    timeline = await opened(MemoryStore())
    with pytest.raises(InvalidBlock, match="needs a role"):
        await timeline.append_messages([{"type": "text", "text": "x"}])
