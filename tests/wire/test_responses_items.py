"""OpenAI's items that its server makes go back to it as they came, with what they belong to."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses.response_input_param import ResponseInputParam
from pydantic import TypeAdapter

from tests.providers import openai_responses
from tests.wire.entries import call as called
from tests.wire.entries import prompt as said_by_user
from tests.wire.entries import result as answered_by
from tests.wire.entries import validated
from timeline import Timeline
from timeline.blocks import CustomBlock, ToolCall, ToolResult, UserPrompt
from timeline.content.media_tokens import IMAGE_TOKENS, with_media
from timeline.engine.encoders import Encoders
from timeline.store.memory import MemoryStore
from timeline.wire.neutral import Entry, NeutralContext
from timeline.wire.openai_responses import decode, encode
from timeline.wire.streams import StreamReader

ITEMS: TypeAdapter[Any] = TypeAdapter(ResponseInputParam)
MODEL = "gpt-5.6"
Item = dict[str, Any]

THOUGHT: Item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "QUJD"}
SAID: Item = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "So.", "annotations": [], "logprobs": []}],
}
SEARCHED: Item = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "q", "queries": ["q"]},
}
FILES: Item = {
    "type": "file_search_call",
    "id": "fs_1",
    "status": "completed",
    "queries": ["q"],
    "results": [{"file_id": "f", "filename": "a.md", "score": 1.0, "text": "found"}],
}
CODE: Item = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "container_id": "cntr_1",
    "code": "print(1)",
    "outputs": [{"type": "logs", "logs": "1"}],
}
DRAWN: Item = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="}
LISTED: Item = {
    "type": "mcp_list_tools",
    "id": "mcpl_1",
    "server_label": "wiki",
    "tools": [{"name": "ask", "input_schema": {"type": "object"}}],
}
CALLED: Item = {
    "type": "mcp_call",
    "id": "mcp_1",
    "server_label": "wiki",
    "name": "ask",
    "arguments": '{"q": 1}',
    "output": "found",
    "status": "completed",
}
COMPACTED: Item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "QUJD"}
SEARCHED_TOOLS: Item = {
    "type": "tool_search_call",
    "execution": "server",
    "status": "completed",
    "arguments": {"paths": ["crm"]},
}
TOOL: Item = {"type": "function", "name": "list_orders", "description": "", "parameters": {}, "strict": True}
TOOLS: Item = {"type": "tool_search_output", "execution": "server", "status": "completed", "tools": [TOOL]}
SHELL: Item = {
    "type": "shell_call",
    "call_id": "c1",
    "status": "completed",
    "action": {"commands": ["ls"]},
    "environment": {"type": "container_reference", "container_id": "cntr_1"},
}
RAN: Item = {
    "type": "shell_call_output",
    "call_id": "c1",
    "status": "completed",
    "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
}
PROGRAM: Item = {"type": "program", "id": "prog_1", "call_id": "p1", "code": "text(1)", "fingerprint": "fp"}
RESULT: Item = {"type": "program_output", "id": "po_1", "call_id": "p1", "result": "1", "status": "completed"}
OF_PROGRAM: Item = {
    "type": "function_call",
    "call_id": "c9",
    "name": "ls",
    "arguments": "{}",
    "caller": {"type": "program", "caller_id": "p1"},
}
ASKED: Item = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "wiki",
    "name": "ask",
    "arguments": '{"q": 1}',
}
APPROVED: Item = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
GO = [{"role": "user", "content": "go"}]
OWN = [[SEARCHED], [FILES], [CODE], [DRAWN], [LISTED], [CALLED], [COMPACTED], [SEARCHED_TOOLS, TOOLS], [SHELL, RAN]]


async def recorded(*replies: list[Item], store: MemoryStore | None = None) -> Timeline:
    """Return a conversation with a prompt and responses."""
    timeline = await Timeline.open(store or MemoryStore(), "c")
    await timeline.append(UserPrompt(text="go"))
    for number, output in enumerate(replies):
        reply = {"object": "response", "id": f"resp_{number}", "model": MODEL, "status": "completed"}
        await timeline.record({**reply, "output": output})
    return timeline


async def sent(timeline: Timeline, model: str = MODEL) -> list[Item]:
    """Return the items of a request behind the prompt, which OpenAI takes."""
    body = (await timeline.render()).to_openai_responses(model=model)
    validated(ITEMS, body["input"])
    openai_responses.WIRE.check({"model": model, **body})
    items: list[Item] = body["input"][1:]
    return items


def spoken(item: Item) -> Item:
    """Return a message of the model's as a request has it."""
    return {"type": "message", "role": "assistant", "content": item["content"][0]["text"]}


@pytest.mark.parametrize("own", OWN, ids=lambda own: str(own[0]["type"]))
async def test_what_the_server_made_goes_back_as_it_came(own: list[Item]) -> None:
    """Behind the thought that led to it: without a stored response the model knows nothing else of it."""
    timeline = await recorded([THOUGHT, *own, SAID])
    items = await sent(timeline)
    assert [{key: value for key, value in item.items() if value is not None} for item in items] == [
        THOUGHT,
        *own,
        spoken(SAID),
    ]
    assert (await timeline.verify()).ok


@pytest.mark.parametrize("own", OWN, ids=lambda own: str(own[0]["type"]))
async def test_a_list_of_such_items_is_what_was_recorded(own: list[Item]) -> None:
    """A loop that keeps the list, as the API's documentation does, adds nothing."""
    timeline = await recorded([THOUGHT, *own, SAID])
    before = len(timeline.window.items)
    await timeline.step_hook("openai_responses").prepare_step(messages=[*GO, THOUGHT, *own, SAID])
    assert len(timeline.window.items) == before


@pytest.mark.parametrize("own", OWN, ids=lambda own: str(own[0]["type"]))
async def test_an_item_that_an_older_log_holds_as_a_part_is_known(own: list[Item]) -> None:
    """It stays as it was recorded, and is in no request."""
    timeline = await recorded()
    await timeline.append(*[CustomBlock(type="assistant.part", author="assistant", data=item) for item in own])
    before, items = len(timeline.window.items), await sent(timeline)
    await timeline.step_hook("openai_responses").prepare_step(messages=[*GO, *own])
    assert (len(timeline.window.items), items) == (before, [])


@pytest.mark.parametrize("own", [[SEARCHED], [FILES], [CALLED]], ids=lambda own: str(own[0]["type"]))
async def test_an_item_whose_thought_is_left_out_is_left_out(own: list[Item]) -> None:
    """OpenAI refuses it: "was provided without its required 'reasoning' item"."""
    stored = {key: value for key, value in THOUGHT.items() if key != "encrypted_content"}
    items = await sent(await recorded([stored, *own, SAID]))
    assert {item["type"] for item in items} == {"message"}


async def test_another_makers_model_gets_the_words_about_what_was_found() -> None:
    """It cannot read the item."""
    items = await sent(await recorded([SEARCHED, CALLED, SAID]), "qwen3-coder")
    assert [item["content"] for item in items] == [
        "[not shown here: mcp_call, text/plain, bl:turn_1.assistant.native.2]",
        "So.",
    ]


@pytest.mark.parametrize("hidden", [2, 3])
async def test_an_output_goes_back_with_its_call_alone(hidden: int) -> None:
    """And a call with its output; the hidden one is its replacement."""
    timeline = await recorded([SHELL, RAN, SAID])
    await timeline.hide(timeline.window.items[hidden - 1].block.path, text="[gone]")
    items = await sent(timeline)
    assert {item["type"] for item in items} == {"message"}
    assert items[0]["content"] == "[gone]" or hidden == 3


async def test_a_picture_that_was_drawn_counts_as_a_picture() -> None:
    """And not by its base64."""
    (block,) = decode([{**DRAWN, "result": "QUJD" * 100_000}])
    assert with_media(block, 0) == IMAGE_TOKENS


async def test_a_call_of_a_program_goes_back_with_the_program() -> None:
    """And its result names the program, which the server goes on with."""
    timeline = await recorded([PROGRAM, OF_PROGRAM])
    await timeline.append(ToolResult(call_id="c9", text="a"))
    answer = {"type": "function_call_output", "call_id": "c9", "output": "a", "caller": OF_PROGRAM["caller"]}
    assert await sent(timeline) == [PROGRAM, OF_PROGRAM, answer]
    reply = {"object": "response", "id": "resp_9", "model": MODEL, "output": [RESULT, SAID]}
    await timeline.record(reply)
    assert (await sent(timeline))[3:] == [RESULT, spoken(SAID)]


async def test_a_call_of_a_program_that_is_hidden_is_the_models_own() -> None:
    """OpenAI knows no such program."""
    timeline = await recorded([PROGRAM, OF_PROGRAM])
    await timeline.hide(timeline.window.items[1].block.path, text="[gone]")
    assert not any("caller" in item for item in await sent(timeline))


@pytest.mark.parametrize("prompt", [False, True])
def test_a_request_that_goes_on_knows_the_programs_before_it(monkeypatch: pytest.MonkeyPatch, *, prompt: bool) -> None:
    """Up to the user's newest message, also where an older item is another one."""
    monkeypatch.setattr("timeline.engine.encoders._OPEN_ITEMS", 1)
    monkeypatch.setattr("timeline.engine.encoders._MARKED_ITEMS", 2)
    form = {"type": "function_call", "caller": {"type": "program", "caller_id": "p1"}}
    program = Entry(path="p", type="assistant.native", role="assistant", data=dict(PROGRAM), response_id="r0")
    entries = [said_by_user("go"), program]
    for number in range(6):
        entries += [called(f"c{number}", data=form, response_id=f"r{number + 1}"), answered_by(f"c{number}")]
    entries[8:8] = [said_by_user("and?")] if prompt else []
    encoders = Encoders()
    for end in [*range(2, len(entries) + 1), 5, len(entries)]:
        context = NeutralContext(model=MODEL, entries=tuple(entries[:end]))
        body = encoders.encode("openai_responses", context)
        assert body == encode(context)
    changed = [*entries[:6], entries[6].model_copy(update={"arguments": {"other": 1}}), *entries[7:]]
    context = NeutralContext(model=MODEL, entries=tuple(changed))
    body = encoders.encode("openai_responses", context)
    assert body == encode(context)
    assert ("caller" in body["input"][-2]) != prompt


async def test_an_answer_goes_back_with_its_request() -> None:
    """OpenAI refuses it alone: "approval responses but weren't passed as input"."""
    timeline = await recorded([ASKED])
    await timeline.append_messages([APPROVED])
    assert await sent(timeline) == [ASKED, APPROVED]
    assert not timeline.window.open_calls()


async def test_a_request_that_nobody_answers_is_denied() -> None:
    """What the user says meanwhile goes out all the same, and the answer may still come."""
    timeline = await recorded([ASKED])
    await timeline.append(UserPrompt(text="and?"))
    assert [(item["type"], item.get("approve")) for item in (await sent(timeline))[:2]] == [
        ("mcp_approval_request", None),
        ("mcp_approval_response", False),
    ]
    assert [block.type for block in decode((await sent(timeline))[:2])] == ["react.tool.call"]
    await timeline.append_messages([{**APPROVED, "approve": False, "reason": "too risky"}])
    assert (await sent(timeline))[1] == {**APPROVED, "approve": False, "reason": "too risky"}


async def test_what_is_approved_has_the_bytes_that_were_asked_for() -> None:
    """Also where they are not ours."""
    for raw in ('{"q":1}', '{ "q" : 1 }', "{"):
        assert (await sent(await recorded([{**ASKED, "arguments": raw}])))[0]["arguments"] == raw


@pytest.mark.parametrize("hidden", [2, 3, 4])
async def test_an_approved_call_never_looks_as_if_it_had_not_run(hidden: int) -> None:
    """Whichever of the three is hidden: the server would run it again."""
    timeline = await recorded([ASKED])
    await timeline.append_messages([APPROVED])
    reply = {"object": "response", "id": "resp_9", "model": MODEL}
    await timeline.record({**reply, "output": [{**CALLED, "approval_request_id": "mcpr_1"}, SAID]})
    await timeline.hide(timeline.window.items[hidden - 1].block.path, text="[gone]")
    items = await sent(timeline)
    waits = any(item["type"] == "mcp_approval_response" for item in items)
    ran = any(item.get("approval_request_id") == "mcpr_1" for item in items if item["type"] == "mcp_call")
    assert ran == waits
    assert "[gone]" in str(items) or hidden == 2


@pytest.mark.parametrize("erased", [2, 3, 4])
async def test_an_approved_call_whose_content_is_redacted_has_still_run(erased: int) -> None:
    """The server would run it again; whichever of the three is redacted, also behind a restart."""
    store = MemoryStore()
    timeline = await recorded([ASKED], store=store)
    await timeline.append_messages([APPROVED])
    reply = {"object": "response", "id": "resp_9", "model": MODEL}
    call = {**CALLED, "arguments": '{"q": "secret"}', "output": "secret", "approval_request_id": "mcpr_1"}
    await timeline.record({**reply, "output": [call, SAID]})
    await timeline.redact(timeline.window.items[erased - 1].block.path, "personal")
    items = await sent(await Timeline.open(store, "c"))
    waits = any(item["type"] == "mcp_approval_response" for item in items)
    ran = [item for item in items if item.get("approval_request_id") == "mcpr_1" and item["type"] == "mcp_call"]
    assert bool(ran) == waits
    assert (erased == 4) == ("secret" not in str(items))


async def test_the_names_of_found_tools_are_what_the_client_found() -> None:
    """A search that the client runs goes back with its tools."""
    call = {**SEARCHED_TOOLS, "execution": "client", "call_id": "c7"}
    found = {**TOOLS, "execution": "client", "call_id": "c7"}
    timeline = await recorded([call])
    (block,) = await timeline.append_messages([found])
    assert block.text == "list_orders"
    assert await sent(timeline) == [call, found]


async def test_a_list_may_begin_with_what_openai_stores_or_compacted() -> None:
    """Each goes back: the rest of the list is about it."""
    timeline = await Timeline.open(MemoryStore(), "c")
    stored = {"type": "item_reference", "id": "msg_7"}
    await timeline.append_messages([COMPACTED, stored, {"role": "user", "content": "And now?"}])
    assert (await sent(timeline))[:2] == [COMPACTED, stored]


@pytest.mark.parametrize("item", [APPROVED, RAN, TOOLS], ids=lambda item: str(item["type"]))
async def test_an_item_alone_is_a_list_of_items(item: Item) -> None:
    """It needs no role."""
    timeline = await recorded()
    assert await timeline.append_messages([item])


async def test_a_local_shell_goes_back_as_a_function() -> None:
    """The model that had it is gone."""
    call = {"type": "local_shell_call", "id": "lsh_1", "call_id": "c7", "action": {"command": ["ls"]}}
    timeline = await recorded([call])
    await timeline.append_messages([{"type": "local_shell_call_output", "id": "c7", "output": "a"}])
    assert [item["type"] for item in await sent(timeline)] == ["function_call", "function_call_output"]


async def test_half_an_item_is_not_sent() -> None:
    """A stream was cut in it; what was approved may have run, and is said to have begun."""
    begun = {**CALLED, "status": "in_progress", "output": None}
    timeline = await recorded([ASKED])
    await timeline.append_messages([APPROVED])
    reply = {"object": "response", "id": "resp_9", "model": MODEL}
    await timeline.record({**reply, "output": [{**begun, "approval_request_id": "mcpr_1"}, {**begun, "id": "mcp_2"}]})
    items = [item for item in await sent(timeline) if item["type"] == "mcp_call"]
    assert [(item["id"], item["status"]) for item in items] == [("mcp_1", "incomplete")]


def test_the_answer_to_a_request_for_an_approval_is_the_result_of_its_tool() -> None:
    """The item names the request alone."""
    [asked, answered] = decode([ASKED, APPROVED])
    assert isinstance(asked, ToolCall)
    assert isinstance(answered, ToolResult)
    assert (answered.call_id, answered.name) == (asked.call_id, "ask")


def test_half_a_request_for_an_approval_is_no_request() -> None:
    """Nobody can approve what is not known."""
    reader = StreamReader()
    reader.take({"type": "response.created", "response": {"id": "r1", "model": MODEL}})
    reader.take({"type": "response.output_item.added", "output_index": 0, "item": {**ASKED, "arguments": ""}})
    response = reader.response(unnamed="r")
    assert response is not None
    assert not [block for block in response.blocks if isinstance(block, ToolCall)]
