from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.session import blocks, kinds, read_document
from tests.wire.sdk_schemas import check_ui_messages, is_model_message
from timeline import open_store
from timeline.blocks import ToolCall, ToolResult
from timeline.errors import ImportFailed
from timeline.events import ModelCalled
from timeline.importers import Recording, read_recording
from timeline.portable.recordings import import_recording
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

STEP = {"type": "step-start"}


def tool(call_id: str, state: str, **more: Any) -> dict[str, Any]:
    """Return the part of a tool."""
    return {"type": "tool-ls", "toolCallId": call_id, "state": state, "input": {"path": "."}, **more}


def chat() -> list[dict[str, Any]]:
    """Return a chat as an interface keeps it: two steps with a call each, an answer, and another question."""
    first = [STEP, {"type": "text", "text": "I look.", "state": "done"}, tool("c1", "output-available", output="a.py")]
    second = [STEP, tool("c2", "output-error", errorText="no such folder")]
    third = [STEP, {"type": "text", "text": "One file.", "state": "done"}]
    usage = {"inputTokens": 100, "outputTokens": 5, "cachedInputTokens": 60}
    return [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "List the files."}]},
        {"id": "a1", "role": "assistant", "parts": [*first, *second, *third], "metadata": {"usage": usage}},
        {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "Thanks."}]},
        {
            "id": "a2",
            "role": "assistant",
            "parts": [STEP, {"type": "text", "text": "Welcome.", "state": "done"}],
            "metadata": {"createdAt": "2026-01-10T02:00:00Z", "model": "claude-opus-5", "usage": usage},
        },
    ]


def model_chat() -> list[dict[str, Any]]:
    """Return a chat as a program keeps it."""
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "ls", "input": {"path": "."}}
    result = {"type": "tool-result", "toolCallId": "c1", "toolName": "ls", "output": {"type": "text", "value": "a.py"}}
    return [
        {"role": "user", "content": "List the files."},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
        {"role": "tool", "content": [result]},
        {"role": "assistant", "content": "One file."},
    ]


def read_lines(folder: Path, messages: list[Any]) -> Recording:
    """Write messages as lines, and read them as a recording."""
    path = folder / "chat.jsonl"
    path.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    return read_recording(path)[0]


def test_an_interfaces_chat_becomes_turns_responses_and_results(tmp_path: Path) -> None:
    """Each step is a response, its results right behind it; a message of one response tells what it cost."""
    check_ui_messages(chat())
    recording = read_document(tmp_path, {"id": "chat-7", "messages": chat(), "trigger": "submit-message"})
    assert kinds(recording) == [
        "user.prompt",
        *("assistant.completion", "react.tool.call", "react.tool.result"),
        *("react.tool.call", "react.tool.result", "assistant.completion"),
        *("user.prompt", "assistant.completion", "ModelCalled"),
    ]
    assert (recording.id, recording.title, recording.report.format) == ("chat-7", "List the files.", "ai-sdk-ui")
    assert [b.turn_id for b in blocks(recording)] == ["turn_1"] * 7 + ["turn_2"] * 2
    results = [b for b in blocks(recording) if isinstance(b, ToolResult)]
    assert [(r.text, r.is_error) for r in results] == [("a.py", False), ("no such folder", True)]
    [called] = [e.payload for e in recording.events if isinstance(e.payload, ModelCalled)]
    assert called.usage == Usage(input_tokens=40, output_tokens=5, cache_read_tokens=60)
    assert called.model == "claude-opus-5"
    assert recording.report.counts["missing_usage"] == 1
    assert str(recording.events[-1].at) == "2026-01-10 02:00:00+00:00"


def test_a_programs_chat_is_read_too(tmp_path: Path) -> None:
    """Times are derived, and the id follows from the first message, so that it stays as the list grows."""
    assert all(map(is_model_message, model_chat()))
    recording = read_document(tmp_path, model_chat())
    assert kinds(recording) == [
        *("user.prompt", "assistant.completion", "react.tool.call"),
        *("react.tool.result", "assistant.completion"),
    ]
    assert recording.report.format == "ai-sdk"
    assert recording.id == read_document(tmp_path, {"messages": model_chat()[:2]}).id
    assert recording.events == read_lines(tmp_path, model_chat()).events


def test_a_chat_that_begins_with_its_system_message_keeps_calls_and_results(tmp_path: Path) -> None:
    """The role alone shows no form: OpenAI's messages have it, too."""
    recording = read_document(tmp_path, [{"role": "system", "content": "You list."}, *model_chat()])
    assert kinds(recording) == [
        *("system.message", "user.prompt", "assistant.completion", "react.tool.call"),
        *("react.tool.result", "assistant.completion"),
    ]


def test_a_message_without_any_part_shows_no_form(tmp_path: Path) -> None:
    """An answer that failed at once has none; contents of Google's have parts, too."""
    empty = {"id": "a0", "role": "assistant", "parts": []}
    recording = read_document(tmp_path, [empty, *chat()])
    assert recording.report.format == "ai-sdk-ui"
    assert kinds(recording) == kinds(read_document(tmp_path, chat()))


def test_a_chat_of_version_4_keeps_the_invocations_of_its_tools(tmp_path: Path) -> None:
    """There a part holds the invocation, and a file of the user stands beside the parts."""
    invocation = {"state": "result", "step": 0, "toolCallId": "c1", "toolName": "ls", "args": {"path": "."}}
    told = {"type": "tool-invocation", "toolInvocation": {**invocation, "result": "a.py"}}
    file = {"name": "a.png", "contentType": "image/png", "url": "data:image/png;base64,AAAA"}
    asked: dict[str, Any] = {"id": "u1", "role": "user", "content": "List.", "experimental_attachments": [file]}
    asked["parts"] = [{"type": "text", "text": "List."}]
    said = {"id": "a1", "role": "assistant", "content": "One.", "toolInvocations": [told["toolInvocation"]]}
    said["parts"] = [STEP, told, STEP, {"type": "text", "text": "One."}]
    recording = read_document(tmp_path, [asked, said])
    assert kinds(recording) == [
        *("user.prompt", "user.attachment", "react.tool.call", "react.tool.result", "assistant.completion"),
    ]
    called, result = (block for block in blocks(recording) if isinstance(block, ToolCall | ToolResult))
    assert isinstance(called, ToolCall)
    assert (called.name, called.arguments, result.text) == ("ls", {"path": "."}, "a.py")


def test_a_chat_without_parts_has_its_calls_before_its_text(tmp_path: Path) -> None:
    """Version 3 has a text, and the invocations of all steps beside it."""
    told = [
        {"state": "result", "step": step, "toolCallId": f"c{step}", "toolName": "ls", "args": {}, "result": "a.py"}
        for step in range(2)
    ]
    said = {"id": "a1", "role": "assistant", "content": "One file.", "toolInvocations": told}
    recording = read_document(tmp_path, [{"id": "u1", "role": "user", "content": "List the files."}, said])
    assert kinds(recording) == [
        *("user.prompt", "react.tool.call", "react.tool.result"),
        *("react.tool.call", "react.tool.result", "assistant.completion"),
    ]
    assert recording.title == "List the files."


async def test_an_invocation_that_was_still_running_gets_its_result_later(tmp_path: Path) -> None:
    """Two snapshots of a chat of version 4: nothing is there twice."""
    invocation = {"state": "call", "toolCallId": "c1", "toolName": "ls", "args": {}}
    async with open_store("memory://") as store:
        added = []
        for more in ({}, {"state": "result", "result": "a.py"}):
            part = {"type": "tool-invocation", "toolInvocation": {**invocation, **more}}
            chat = {"id": "chat-4", "messages": [{"id": "a1", "role": "assistant", "content": "", "parts": [part]}]}
            added.append((await import_recording(store, read_document(tmp_path, chat))).events)
    assert added == [1, 1]


def test_lines_of_messages_are_read_like_a_document(tmp_path: Path) -> None:
    """A message a line, as a server appends them; torn and foreign lines cost no other."""
    assert read_lines(tmp_path, chat()).events == read_document(tmp_path, chat()).events
    path = tmp_path / "torn.jsonl"
    lines = [json.dumps(message) for message in chat()]
    path.write_text("\n".join([lines[0], '{"note": 1}', *lines[1:3], lines[3][:40]]), encoding="utf-8")
    recording = read_recording(path)[0]
    assert len(blocks(recording)) == 8
    assert recording.report.counts["unknown_record"] == 1
    assert recording.report.counts["torn"] == 1


async def test_a_chat_that_grew_adds_what_is_new(tmp_path: Path) -> None:
    """A snapshot in the middle of a step, then the whole chat, then the whole chat again: everything is there once."""
    early = chat()[:2]
    early[1]["parts"] = [
        *early[1]["parts"][:2],
        tool("c1", "input-available"),
        {"type": "text", "text": "On", "state": "streaming"},
    ]
    async with open_store("memory://") as store:
        added = []
        for messages in (early, chat(), chat()):
            done = await import_recording(store, read_document(tmp_path, {"id": "chat-7", "messages": messages}))
            added.append(done.events)
        texts = [event.payload.dump() async for event in store.read("chat-7", types=["block.appended"])]
    whole = len(read_document(tmp_path, chat()).events)
    assert added[2] == 0
    assert added[0] + added[1] == whole
    assert len(texts) == 9
    assert sum(str(text) == "On" for text in texts) == 0


def test_parts_that_are_still_streamed_are_left_to_a_later_snapshot(tmp_path: Path) -> None:
    """Half a text would stay half, since what was imported is never changed."""
    messages = chat()
    messages[1]["parts"] = [STEP, {"type": "text", "text": "I lo", "state": "streaming"}, tool("c", "input-streaming")]
    recording = read_document(tmp_path, messages)
    assert len(blocks(recording)) == 3
    assert [f["kind"] for f in recording.report.findings if f["kind"] == "torn"] == ["torn"]


def test_a_message_that_was_written_again_counts_once(tmp_path: Path) -> None:
    """The last one of an id stands: a log of lines repeats a message as it grows."""
    messages = chat()
    partly = {**messages[1], "parts": messages[1]["parts"][:2]}
    recording = read_lines(tmp_path, [messages[0], partly, messages[1]])
    assert blocks(recording) == blocks(read_lines(tmp_path, messages[:2]))
    assert recording.report.counts["duplicate_record"] == 1


def test_messages_of_no_known_role_are_reported(tmp_path: Path) -> None:
    """What is no message, or says nothing, costs nobody else."""
    odd = [7, {"role": "critic", "parts": []}, {"id": "e", "role": "user", "parts": []}]
    recording = read_document(tmp_path, [*chat()[:2], *odd])
    assert len(blocks(recording)) == 7
    assert recording.report.counts["unknown_record"] == 3


def test_a_chat_in_which_nothing_was_said_is_refused(tmp_path: Path) -> None:
    """The message says what to give."""
    with pytest.raises(ImportFailed, match="no message is in it"):
        read_document(tmp_path, [{"id": "x", "role": "assistant", "parts": [STEP]}])


def test_times_are_read_in_every_form_that_applications_write(tmp_path: Path) -> None:
    """Milliseconds, seconds and text; a time that is none is missing."""
    at: list[Any] = [1_767_225_600_000, 1_767_225_601, "2026-01-01T00:00:02Z", {"odd": 1}]
    messages = [{**message, "metadata": {"createdAt": told}} for message, told in zip(chat(), at, strict=True)]
    recording = read_document(tmp_path, messages)
    assert sorted({event.at.second for event in recording.events}) == [0, 1, 2, 3]
    assert recording.report.counts["missing_time"] == 1


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["role", "parts", "id", "metadata", "content"])
PART_KEYS = st.sampled_from(["type", "text", "state", "input", "output", "toolCallId", "errorText", "approval"])


@given(
    st.lists(st.tuples(st.integers(0, 3), KEYS, JSON_VALUES), max_size=2),
    st.lists(st.tuples(st.integers(0, 7), PART_KEYS, JSON_VALUES), max_size=3),
)
def test_fields_of_any_kind_are_survived(
    tmp_path_factory: pytest.TempPathFactory, spoilt: list[tuple[int, str, Any]], parts: list[tuple[int, str, Any]]
) -> None:
    """No value in any field raises anything but an import error, and keys stay unique."""
    messages = chat()
    told = messages[1]["parts"]
    for place, key, value in parts:
        told[place % len(told)] = {**told[place % len(told)], key: value}
    for place, key, value in spoilt:
        messages[place][key] = value
    path = tmp_path_factory.getbasetemp() / "odd-ai-sdk.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    try:
        (recording,) = read_recording(path)
    except ImportFailed:
        return
    assert len({e.key for e in recording.events}) == len(recording.events)
    json.dumps(recording.report.dump())


def test_a_call_that_waits_for_an_approval_is_pending(tmp_path: Path) -> None:
    """Its result comes with a later snapshot."""
    messages = chat()[:1]
    asked = tool("c", "approval-requested", approval={"id": "x"})
    messages.append({"id": "a1", "role": "assistant", "parts": [STEP, asked]})
    [called] = [b for b in blocks(read_document(tmp_path, messages)) if isinstance(b, ToolCall)]
    assert called.pending


@pytest.mark.parametrize("id_", ["m", ""], ids=["ids", "no ids"])
def test_a_line_that_broke_off_in_the_middle_does_not_cost_the_message_behind_it(tmp_path: Path, id_: str) -> None:
    """Reading starts anew where a message begins, with an id or, as the SDK makes them, without one."""
    messages = [{"id": f"{id_}{n}", **m} if id_ else m for n, m in enumerate(model_chat())]
    first, *rest = (json.dumps(m, separators=(",", ":")) for m in messages)
    torn = json.dumps({**messages[0], "content": "Half of"}, separators=(",", ":"))[:-4]
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join([first, torn + rest[0], *rest[1:]]), encoding="utf-8")
    recording = read_recording(path)[0]
    assert recording.report.counts["quarantined"] == 1
    assert [block.text for block in blocks(recording) if block.text] == [
        "List the files.",
        "I look.",
        "a.py",
        "One file.",
    ]
