from __future__ import annotations

import gzip
import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.session import Session, blocks, kinds, read_document
from timeline.databases import read_file
from timeline.errors import ImportFailed
from timeline.events import ModelCalled
from timeline.importers import FORMATS, read_recording
from timeline.portable.reading import read_copies
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

OPENAI = {
    "model": "gpt-5",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "List the files."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}},
                {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{broken"}},
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
        },
        {"role": "tool", "tool_call_id": "c2", "content": "bad arguments"},
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "assistant", "content": "One file."},
        {"role": "user", "content": "Thanks."},
    ],
}
ANTHROPIC = {
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": "List the files."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "."}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}]},
        {"role": "assistant", "content": "One file."},
    ],
}


def test_an_openai_conversation_becomes_turns_of_blocks(tmp_path: Path) -> None:
    """Roles, calls, raw arguments, results in their order, usage and turns are all there."""
    recording = read_document(tmp_path, OPENAI)
    assert kinds(recording) == [
        "system.message",
        "user.prompt",
        "react.tool.call",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "react.tool.result",
        "assistant.completion",
        "user.prompt",
    ]
    assert [b.turn_id for b in blocks(recording)] == ["turn_1"] * 7 + ["turn_2"]
    call = next(e.payload for e in recording.events if isinstance(e.payload, ModelCalled))
    assert call.usage == Usage(input_tokens=6, output_tokens=2, cache_read_tokens=4)
    assert (recording.report.format, recording.title) == ("openai-chat", "List the files.")
    assert recording.report.counts == {"missing_time": 1}


def test_a_long_first_prompt_gives_a_short_title(tmp_path: Path) -> None:
    """A title is one line, however much was asked."""
    recording = read_document(tmp_path, [{"role": "user", "content": f"List {'many ' * 40}files.\nAnd more."}])
    assert recording.title.startswith("List many")
    assert recording.title.endswith("…")
    assert len(recording.title) <= 80


def test_an_anthropic_conversation_becomes_turns_of_blocks(tmp_path: Path) -> None:
    """The system prompt beside the messages is the first block; a result is no prompt and opens no turn."""
    recording = read_document(tmp_path, ANTHROPIC, "odd-name.jsonl")
    assert kinds(recording) == [
        "system.message",
        "user.prompt",
        "assistant.reasoning",
        "react.tool.call",
        "react.tool.result",
        "assistant.completion",
    ]
    assert {b.turn_id for b in blocks(recording)} == {"turn_1"}
    assert recording.report.format == "anthropic"


def test_messages_of_bedrocks_become_turns_of_blocks(tmp_path: Path) -> None:
    """As its Converse API takes them: content blocks without a type; the reply stands beside them."""
    use = {"toolUse": {"toolUseId": "t1", "name": "ls", "input": {"path": "."}}}
    answered = {"toolResult": {"toolUseId": "t1", "content": [{"json": {"files": 1}}]}}
    document = {
        "system": [{"text": "You list."}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {"role": "user", "content": [{"text": "List the files."}]},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [answered]},
        ],
        "output": {"message": {"role": "assistant", "content": [{"text": "One file."}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 9, "outputTokens": 3, "cacheReadInputTokens": 900},
    }
    recording = read_document(tmp_path, document)
    assert recording.report.format == "bedrock-converse"
    assert [(block.type, block.text) for block in blocks(recording)] == [
        ("system.message", "You list."),
        ("user.prompt", "List the files."),
        ("react.tool.call", ""),
        ("react.tool.result", '{"files":1}'),
        ("assistant.completion", "One file."),
    ]
    (called,) = [e.payload for e in recording.events if isinstance(e.payload, ModelCalled)]
    assert (called.finish_reason, called.usage.sent_tokens) == ("end_turn", 909)


def test_contents_of_googles_become_turns_of_blocks(tmp_path: Path) -> None:
    """As its API takes them, a request with its system prompt or the bare list."""
    call = {"functionCall": {"id": "c1", "name": "ls", "args": {"path": "."}}}
    answer = {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.py"}}}
    contents = [
        {"role": "user", "parts": [{"text": "List the files."}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [answer]},
        {"role": "model", "parts": [{"text": "One file."}]},
    ]
    recording = read_document(tmp_path, {"contents": contents, "systemInstruction": {"parts": [{"text": "You list."}]}})
    assert recording.report.format == "gemini"
    assert [(block.type, block.text) for block in blocks(recording)] == [
        ("system.message", "You list."),
        ("user.prompt", "List the files."),
        ("react.tool.call", ""),
        ("react.tool.result", "a.py"),
        ("assistant.completion", "One file."),
    ]
    assert blocks(read_document(tmp_path, contents)) == blocks(recording)[1:]


def test_a_content_of_googles_without_a_role_is_the_users(tmp_path: Path) -> None:
    """The API takes it so, and most of its examples are written so."""
    recording = read_document(tmp_path, {"contents": [{"parts": [{"text": "List the files."}]}]})
    assert [(block.type, block.text) for block in blocks(recording)] == [("user.prompt", "List the files.")]
    assert recording.report.format == "gemini"


def test_a_bare_list_of_messages_is_read_too(tmp_path: Path) -> None:
    """The list alone gives the same events as the document around it."""
    assert read_document(tmp_path, OPENAI["messages"]).events == read_document(tmp_path, OPENAI).events


def test_reading_a_document_again_gives_the_same_recording(tmp_path: Path) -> None:
    """Id, keys and times are derived from content and position alone."""
    first, second = read_document(tmp_path, OPENAI), read_document(tmp_path, OPENAI)
    assert (first.id, first.events) == (second.id, second.events)
    assert len({e.key for e in first.events}) == len(first.events)
    assert [e.at for e in first.events] == sorted(e.at for e in first.events)
    assert read_document(tmp_path, ANTHROPIC).id != first.id


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"\x00\x00", "the file is empty"),
        (b"hello", re.escape(", ".join(FORMATS))),
        (b'{"messages": []}', "format is not known"),
        (b'{"a": 1}\n{"b": 2}\n', "format is not known"),
        (
            b'{"messages": [{"info": {"role": "user"}, "parts": [{"type": "text", "text": "a"}]}]}',
            "format is not known",
        ),
        (
            b'{"type": "message", "role": "assistant", "content": [{"type": "text", "text": "a"}]}',
            "format is not known",
        ),
        (b'{"messages": [{"role": "user", "content": ""}]}', "no message is in it"),
        (b'{"sessionId": "s", "uuid": "u", "type": "progress"}\n', "no message is in it"),
        (gzip.compress(b"{}", mtime=0), re.escape("the file is compressed (gzip). Unpack it")),
        (b"\x28\xb5\x2f\xfd\x00", re.escape("the file is compressed (zstd). Unpack it")),
        ("[]".encode("utf-16"), "the file is in UTF-16. Save it in UTF-8"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_with_the_cure(tmp_path: Path, content: bytes, problem: str) -> None:
    """The error names the file, what is wrong with it, and what can be read."""
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(ImportFailed, match=problem) as caught:
        read_recording(path)
    assert caught.value.source == str(path)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    """Neither is a recording, and neither is a surprise."""
    with pytest.raises(ImportFailed, match="this is a folder"):
        read_recording(tmp_path)
    for missing in (tmp_path / "none.json", tmp_path / ("x" * 300), "nul\x00l"):
        with pytest.raises(ImportFailed):
            read_recording(missing)


def test_a_named_pipe_among_the_recordings_is_refused(tmp_path: Path) -> None:
    """Reading one waits for somebody who writes to it."""
    pipe = tmp_path / "session.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is not a regular file"):
        read_file(pipe)
    assert read_copies(pipe) is None
    with pytest.raises(ImportFailed, match="this is not a regular file"):
        read_recording(pipe)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("role", "content", "type", "text", "id", "tool_calls", "function", "name", "arguments", "input", "source")
odd_parts = st.dictionaries(st.sampled_from(KEYS), json_values, max_size=6)
odd_messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "function", "critic", ""])},
    optional={
        "content": json_values | st.lists(odd_parts | st.just({"type": "tool_use"}), max_size=3),
        "tool_calls": st.lists(odd_parts, max_size=2),
        "function_call": odd_parts,
        "tool_call_id": json_values,
        "usage": json_values,
        "refusal": json_values,
    },
)


@given(st.lists(odd_messages, min_size=1, max_size=5))
def test_messages_of_any_shape_are_imported_or_refused(tmp_path_factory: pytest.TempPathFactory, told: Any) -> None:
    """No shape of a message raises anything but an import error."""
    path = tmp_path_factory.getbasetemp() / "odd.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    try:
        recording = read_recording(path)[0]
    except ImportFailed:
        return
    assert recording.events


@given(st.data())
def test_damaged_sessions_are_imported_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Rows with any value in any field, and bytes changed anywhere, raise nothing but an import error."""
    session = Session()
    session.user("go")
    for _ in range(data.draw(st.integers(0, 4))):
        row = session.answer("m1", data.draw(odd_parts | st.just({"type": "tool_use", "id": "a"})))
        row[data.draw(st.sampled_from(sorted(row)))] = data.draw(json_values)
        session.user(data.draw(json_values | st.lists(odd_parts)), toolUseResult=data.draw(json_values))
    text = bytearray(session.text().encode())
    for place, byte in data.draw(st.lists(st.tuples(st.integers(0, len(text) - 1), st.integers(0, 255)), max_size=3)):
        text[place] = byte
    path = tmp_path_factory.getbasetemp() / "odd.jsonl"
    path.write_bytes(bytes(text))
    try:
        recordings = read_recording(path)
    except ImportFailed:
        return
    for recording in recordings:
        assert len({e.key for e in recording.events}) == len(recording.events)
        json.dumps(recording.report.dump())


ASKED = [{"role": "user", "content": "List the files."}]
OF_OPENAI = {
    "messages": ASKED,
    "model": "gpt-5",
    "choices": [{"message": {"role": "assistant", "content": "One file."}, "finish_reason": "stop"}, {"message": {}}],
    "usage": {"prompt_tokens": 9},
}
OF_ANTHROPIC = {
    "messages": ASKED,
    "type": "message",
    "role": "assistant",
    "model": "gpt-5",
    "content": [{"type": "text", "text": "One file."}],
    "stop_reason": "stop",
    "usage": {"input_tokens": 9},
}
OF_GEMINI = {
    "contents": [{"role": "user", "parts": [{"text": "List the files."}]}],
    "candidates": [{"content": {"parts": [{"text": "One file."}], "role": "model"}, "finishReason": "stop"}],
    "usageMetadata": {"promptTokenCount": 9},
    "modelVersion": "gpt-5",
}


def test_a_chat_that_gemini_cli_saved_is_read_without_the_opening_of_its_client(tmp_path: Path) -> None:
    """The client makes an id for a call where the API gave none, and gives it to the result alone."""
    answer = {"id": "ls-1759-a3f", "name": "ls", "response": {"output": "a.py"}}
    history = [
        {"role": "user", "parts": [{"text": "This is the Gemini CLI. We are setting up the context for our chat."}]},
        {"role": "model", "parts": [{"text": "Got it. Thanks for the context!"}]},
        {"role": "user", "parts": [{"text": "List the files."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {"path": "."}}}]},
        {"role": "user", "parts": [{"functionResponse": answer}]},
    ]
    recording = read_document(tmp_path, {"history": history, "authType": "oauth-personal"})
    assert kinds(recording)[0] == "client.message"
    assert kinds(recording)[2:] == ["user.prompt", "react.tool.call", "react.tool.result"]
    assert recording.title == "List the files."
    assert not recording.report.counts.keys() & {"orphan_result", "unanswered_call"}


def test_the_summary_in_a_chat_that_gemini_cli_saved_is_no_prompt(tmp_path: Path) -> None:
    """What it stands for is not in the file: the client saves what it sends."""
    history = [
        {"role": "user", "parts": [{"text": "<session_context>\nThis is the Gemini CLI.\n</session_context>"}]},
        {
            "role": "user",
            "parts": [{"text": "<state_snapshot>\n<overall_goal>Cards.</overall_goal>\n</state_snapshot>"}],
        },
        {"role": "model", "parts": [{"text": "Got it. Thanks for the additional context!"}]},
        {"role": "user", "parts": [{"text": "Now the deck."}]},
    ]
    recording = read_document(tmp_path, history)
    assert kinds(recording) == ["client.message", "client.message", "assistant.completion", "user.prompt"]
    assert recording.title == "Now the deck."


@pytest.mark.parametrize("document", [OF_OPENAI, OF_ANTHROPIC, OF_GEMINI], ids=["openai", "anthropic", "gemini"])
@pytest.mark.parametrize("form", ["one object", "beside"])
def test_the_reply_beside_a_request_is_its_last_response_with_its_usage(
    tmp_path: Path, document: dict[str, Any], form: str
) -> None:
    """As a log of calls writes them: in one object, or request and response beside each other."""
    request = {key: document[key] for key in document if key in {"messages", "contents"}}
    reply = {key: document[key] for key in document if key not in request}
    recording = read_document(tmp_path, {"request": request, "response": reply} if form == "beside" else document)
    assert [block.text for block in blocks(recording)] == ["List the files.", "One file."]
    (called,) = [e.payload for e in recording.events if isinstance(e.payload, ModelCalled)]
    assert (called.model, called.finish_reason, called.usage.input_tokens) == ("gpt-5", "stop", 9)
    assert recording.report.counts["branch"] == (document is OF_OPENAI)


def test_a_reply_that_the_messages_end_with_is_read_once(tmp_path: Path) -> None:
    """Some logs are written when the reply was appended to the list."""
    answered = [*ASKED, {"role": "assistant", "content": "One file."}]
    assert len(blocks(read_document(tmp_path, {**OF_OPENAI, "messages": answered}))) == 2
