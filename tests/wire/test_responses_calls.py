"""OpenAI's calls that are no function calls: each goes back in its own form with its result, or as a function call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses.response_input_param import ResponseInputParam
from pydantic import TypeAdapter

from tests.providers import openai_responses
from tests.wire.entries import validated
from timeline import Timeline
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.content.media_tokens import with_media
from timeline.store.memory import MemoryStore
from timeline.wire.openai_responses import decode
from timeline.wire.responses import read_response

ITEMS: TypeAdapter[Any] = TypeAdapter(ResponseInputParam)
MODEL = "gpt-5.6"
SHELL = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "c1",
    "status": "completed",
    "action": {"commands": ["make"], "timeout_ms": 9, "max_output_length": 40},
    "environment": {"type": "local"},
    "created_by": "model",
}
RAN = {
    "type": "shell_call_output",
    "call_id": "c1",
    "max_output_length": 40,
    "output": [{"stdout": "built", "stderr": "a warning", "outcome": {"type": "exit", "exit_code": 2}}],
}
PATCH = {
    "type": "apply_patch_call",
    "id": "apc_1",
    "call_id": "c1",
    "status": "completed",
    "operation": {"type": "update_file", "path": "a.py", "diff": "@@\n-1\n+2"},
}
PATCHED = {"type": "apply_patch_call_output", "call_id": "c1", "status": "failed", "output": "no such line"}
CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "sql", "input": '{"is": "text"}'}
ASKED = {"type": "custom_tool_call_output", "call_id": "c1", "output": "3 rows"}
COMPUTER = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "c1",
    "status": "completed",
    "pending_safety_checks": [{"id": "sc_1", "code": "x", "message": "y"}],
    "actions": [{"type": "screenshot"}],
}
SHOWN = {
    "type": "computer_call_output",
    "call_id": "c1",
    "acknowledged_safety_checks": [{"id": "sc_1", "code": "x", "message": "y"}],
    "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="},
}
Item = dict[str, Any]
PAIRS: list[tuple[Item, Item]] = [(SHELL, RAN), (PATCH, PATCHED), (CUSTOM, ASKED), (COMPUTER, SHOWN)]
OPTIONAL = {"id", "created_by"}
"""What no request says again: an id where it may be left out, and what only a response has."""


def reply(*items: dict[str, Any]) -> dict[str, Any]:
    """Return a response with items."""
    return {"object": "response", "id": "resp_1", "model": MODEL, "status": "completed", "output": list(items)}


async def recorded(*items: dict[str, Any], results: tuple[Any, ...] = ()) -> Timeline:
    """Return a conversation with a prompt, a response and results."""
    timeline = await Timeline.open(MemoryStore(), "c")
    await timeline.append(UserPrompt(text="go"))
    await timeline.record(reply(*items))
    await timeline.append(*results)
    return timeline


async def sent(timeline: Timeline, model: str = MODEL) -> list[dict[str, Any]]:
    """Return the items of a request behind the prompt, which OpenAI takes."""
    body = (await timeline.render()).to_openai_responses(model=model)
    validated(ITEMS, body["input"])
    openai_responses.WIRE.check({"model": model, **body})
    told: list[dict[str, Any]] = body["input"][1:]
    return told


def results_of(*items: dict[str, Any]) -> tuple[Any, ...]:
    """Return the results in a list of items."""
    return tuple(block for block in decode(list(items)) if isinstance(block, ToolResult))


@pytest.mark.parametrize(("call", "output"), PAIRS, ids=lambda item: str(item["type"]))
async def test_a_call_and_its_result_go_back_in_their_own_form(call: Item, output: Item) -> None:
    """With all that a request takes of them."""
    timeline = await recorded(call, results=results_of(call, output))
    needed = {key: value for key, value in call.items() if key not in OPTIONAL or call is COMPUTER}
    assert await sent(timeline) == [needed, output]


@pytest.mark.parametrize(("call", "output"), PAIRS, ids=lambda item: str(item["type"]))
async def test_a_request_reads_back_as_what_was_recorded(call: Item, output: Item) -> None:
    """A loop that hands out its list of items is not told apart from one that records replies."""
    timeline = await recorded(call, results=results_of(call, output))
    told = await sent(timeline)
    blocks = decode(told)
    kept = [item.block for item in timeline.window.items[1:]]
    assert [(b.type, b.text, b.data) for b in blocks] == [(b.type, b.text, b.data) for b in kept]


@pytest.mark.parametrize(("call", "output"), PAIRS, ids=lambda item: str(item["type"]))
async def test_another_makers_model_gets_a_function_call(call: Item, output: Item) -> None:
    """Servers of open models have no such tools."""
    timeline = await recorded(call, results=results_of(call, output))
    told = await sent(timeline, "qwen3-coder")
    assert [item["type"] for item in told] == ["function_call", "function_call_output"]
    assert told[0]["name"] == call.get("name", call["type"].removesuffix("_call"))


@pytest.mark.parametrize(("call", "output"), PAIRS, ids=lambda item: str(item["type"]))
async def test_a_call_without_a_result_is_answered_in_its_form(call: Item, output: Item) -> None:
    """As far as that has a form without a picture; nothing is read back of what stands for the result."""
    told = await sent(await recorded(call))
    expected = "function_call_output" if call is COMPUTER else output["type"]
    assert told[1]["type"] == expected
    assert [block.type for block in decode(told)] == ["react.tool.call"]


@pytest.mark.parametrize(("call", "output"), PAIRS, ids=lambda item: str(item["type"]))
async def test_hidden_ones_stay_a_pair(call: Item, output: Item) -> None:
    """Whichever of the two is hidden."""
    for hidden in (2, 3):
        timeline = await recorded(call, results=results_of(call, output))
        await timeline.hide(timeline.window.items[hidden - 1].block.path, text="[gone]")
        told = await sent(timeline)
        assert told[1]["type"] == told[0]["type"] + "_output"
        assert "[gone]" in str(told) or hidden == 2


async def test_a_result_by_hand_answers_each_call() -> None:
    """An application appends results as it does for functions; a success and a failure differ."""
    for is_error, code, status in ((False, 0, "completed"), (True, 1, "failed")):
        done = ToolResult(call_id="c1", text="said", is_error=is_error)
        chunk = (await sent(await recorded(SHELL, results=(done,))))[1]["output"][0]
        assert (chunk["stdout"], chunk["outcome"]["exit_code"]) == ("said", code)
        patched = (await sent(await recorded(PATCH, results=(done,))))[1]
        assert (patched["output"], patched["status"]) == ("said", status)


CHUNK: Item = {"stdout": "built", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}


@pytest.mark.parametrize(
    "change", [{"stderr": None}, {"stdout": 7}, {"outcome": None}, {"outcome": {"type": "exit"}}], ids=str
)
async def test_a_shells_output_that_the_api_would_refuse_is_sent_as_its_text(change: dict[str, Any]) -> None:
    """An application writes it by hand; each later request would be refused."""
    ran: Item = {"type": "shell_call_output", "output": [CHUNK, {**CHUNK, **change}]}
    timeline = await recorded(SHELL, results=(ToolResult(call_id="c1", text="said", data=ran),))
    assert [chunk["stdout"] for chunk in (await sent(timeline))[1]["output"]] == ["said"]


@pytest.mark.parametrize(("codes", "status"), [((1, 0), 1), ((0, 0), 0), ((2, 0, 3, 0), 3)])
def test_a_shell_whose_command_failed_has_its_exit_status(codes: tuple[int, ...], status: int) -> None:
    """Whatever ran behind it: each command of a call has its own."""
    ends = [{**CHUNK, "outcome": {"type": "exit", "exit_code": code}} for code in codes]
    (result,) = results_of({"type": "shell_call_output", "call_id": "c1", "output": ends})
    assert result.exit_status == status


async def test_fields_that_a_request_has_not_are_left_out_of_a_shells_output() -> None:
    """The SDK's objects have one."""
    ran: Item = {"type": "shell_call_output", "output": [{**CHUNK, "created_by": None}]}
    timeline = await recorded(SHELL, results=(ToolResult(call_id="c1", text="said", data=ran),))
    assert (await sent(timeline))[1]["output"] == [CHUNK]


def test_what_a_shell_printed_is_counted_once() -> None:
    """In the text of its result, or in its data alone."""
    ran: Item = {"type": "shell_call_output", "output": [{**CHUNK, "stdout": "x" * 400, "stderr": "y" * 400}]}
    counts = [with_media(ToolResult(call_id="c1", text=text, data=ran), len(text) // 4) for text in ("", "x" * 400)]
    assert counts == [200, 200]


SPACED = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "ls",
    "namespace": "crm",
    "status": "completed",
    "arguments": json.dumps({"path": "src " * 100}),
}
LISTED = {"type": "function_call_output", "call_id": "c1", "output": "a.py"}


@pytest.mark.parametrize("hidden", [False, True], ids=["shown", "hidden"])
async def test_a_function_of_a_namespace_goes_back_with_it(*, hidden: bool) -> None:
    """OpenAI refuses each later request without it; servers of open models may not know the field."""
    timeline = await recorded(SPACED, results=results_of(LISTED))
    if hidden:
        await timeline.hide(timeline.window.items[1].block.path)
    assert (await sent(timeline))[0]["namespace"] == "crm"
    assert "namespace" not in (await sent(timeline, "qwen3-coder"))[0]
    assert (await timeline.verify()).ok


async def test_a_list_without_a_namespace_follows_a_reply_with_one() -> None:
    """An older log has none."""
    timeline = await recorded(SPACED, results=results_of(LISTED))
    before = timeline.version
    bare = {key: value for key, value in SPACED.items() if key != "namespace"}
    await timeline.list_follower().take([decode([item]) for item in ({"role": "user", "content": "go"}, bare, LISTED)])
    assert timeline.version == before


async def test_a_shell_that_the_server_runs_is_no_call_of_the_clients() -> None:
    """Its item and what it printed are the server's."""
    hosted = {**SHELL, "environment": {"type": "container_reference", "container_id": "cntr_1"}}
    timeline = await recorded(hosted, {**RAN, "id": "sho_1", "status": "completed"})
    assert [item.block.type for item in timeline.window.items] == [
        "user.prompt",
        "assistant.native",
        "assistant.native",
    ]
    assert [block.type for block in decode([hosted, RAN])] == ["assistant.native", "assistant.native"]


@pytest.mark.parametrize(("call", "output"), PAIRS, ids=lambda item: str(item["type"]))
async def test_a_result_that_is_appended_as_an_item_answers_its_call(call: Item, output: Item) -> None:
    """An application has nothing else than what OpenAI's documentation shows."""
    (result,) = decode([output])
    assert (await sent(await recorded(call, results=(result,))))[1] == output


def test_what_a_call_asks_for_is_its_arguments() -> None:
    """So that a file that it names is found, and a hide names it."""
    blocks = [block for call, _ in PAIRS for block in read_response(reply(call), unnamed="r").blocks]
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("shell", SHELL["action"]),
        ("apply_patch", PATCH["operation"]),
        ("sql", CUSTOM["input"]),
        ("computer", {"actions": COMPUTER["actions"]}),
    ]


async def test_the_phase_of_an_answer_goes_back_to_openais_models_alone() -> None:
    """Its newer models take a comment for the final answer without it; other servers may refuse the field."""
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary"}
    part = {"type": "output_text", "text": "I look.", "annotations": []}
    timeline = await recorded({**said, "content": [part]})
    assert await sent(timeline) == [
        {"type": "message", "role": "assistant", "content": "I look.", "phase": "commentary"}
    ]
    assert "phase" not in (await sent(timeline, "qwen3-coder"))[0]
    await timeline.hide(timeline.window.items[1].block.path, text="[gone]")
    assert [(item["content"], item["phase"]) for item in await sent(timeline)] == [("[gone]", "commentary")]
    for wire in ("to_anthropic", "to_openai_chat", "to_gemini"):
        assert "commentary" not in str(getattr(await timeline.render(), wire)())


async def test_a_list_without_phases_follows_a_reply_with_one() -> None:
    """A framework that drops the phase, or an older log, says the same answer."""
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "final_answer"}
    timeline = await recorded({**said, "content": [{"type": "output_text", "text": "Done.", "annotations": []}]})
    before = timeline.version
    listed = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "Done."}]
    await timeline.list_follower().take([decode([item]) for item in listed])
    assert timeline.version == before


@pytest.mark.parametrize("call", [*(call for call, _ in PAIRS), SPACED], ids=lambda item: str(item["type"]))
async def test_no_form_of_a_call_is_said_in_chat_completions(call: Item) -> None:
    """There it is a call of a function, and nothing of it is left unseen."""
    body = (await (await recorded(call)).render()).to_openai_chat()
    assert body["messages"][1].get("content") is None
