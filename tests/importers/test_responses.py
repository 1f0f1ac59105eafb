from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from tests.importers.session import blocks, kinds, read_document
from tests.wire.entries import contexts, legal_entries
from timeline.blocks import ToolResult
from timeline.events import ModelCalled
from timeline.importers.responses import is_responses, read_responses
from timeline.wire.groups import OPENING_LINE
from timeline.wire.neutral import INTERRUPTED
from timeline.wire.openai_responses import decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from timeline.blocks import Block
    from timeline.wire.neutral import NeutralContext

ITEMS: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List the files."}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b3BhcXVl"},
    {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"path":"."}'},
    {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
    {"type": "message", "role": "assistant", "content": "One file."},
]


def said(read_blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return what blocks say, without where they stand."""
    return [block.model_dump(exclude={"turn_id", "at", "path", "response_id"}) for block in read_blocks]


def test_items_become_turns_of_blocks(tmp_path: Path) -> None:
    """A request with its instructions, or the bare list; what the model gave without a break is one response."""
    recording = read_document(tmp_path, {"model": "gpt-5", "instructions": "You list.", "input": ITEMS})
    assert recording.report.format == "openai-responses"
    assert recording.title == "List the files."
    assert kinds(recording) == [
        "system.message",
        "user.prompt",
        "assistant.reasoning",
        "react.tool.call",
        "react.tool.result",
        "assistant.completion",
    ]
    found = blocks(recording)
    assert (found[2].data, found[3].response_id) == (ITEMS[1], found[2].response_id)
    assert found[5].response_id != found[3].response_id
    assert said(blocks(read_document(tmp_path, ITEMS))) == said(found[1:])
    assert read_document(tmp_path, ITEMS).id == read_document(tmp_path, ITEMS).id != recording.id


@given(contexts(legal_entries()))
def test_every_request_that_is_written_is_read_with_all_that_it_says(context: NeutralContext) -> None:
    """Blocks come in the order of the items, and say what the wire itself reads of them."""
    body = encode(context)
    assert is_responses(body) == bool(body["input"])
    found = [blocks(recording) for recording in read_responses(body, "items", "0" * 64)]
    assert said([block for own in found for block in own]) == said(decode(body))


def test_what_only_a_request_needs_was_said_by_nobody(tmp_path: Path) -> None:
    """The line before an assistant that speaks first, and the result of a call that has none."""
    opening = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": OPENING_LINE}]}
    interrupted = {"type": "function_call_output", "call_id": "c1", "output": INTERRUPTED}
    recording = read_document(tmp_path, {"input": [opening, ITEMS[2], interrupted]})
    assert kinds(recording) == ["react.tool.call"]
    assert recording.report.counts["unanswered_call"] == 1


@pytest.mark.parametrize(
    "document",
    [
        pytest.param([{"role": "user", "content": "Hello."}], id="a chat"),
        pytest.param([{"type": "message", "role": "user", "content": [{"type": "text", "text": "x"}]}], id="messages"),
        pytest.param([{"type": [], "role": "user", "content": [{"type": {}}]}], id="types that are none"),
        pytest.param({"input": []}, id="no items"),
        pytest.param({"input": [ITEMS[0], "x"]}, id="no list of items"),
        pytest.param({"input": [{"id": "i1"}]}, id="neither type nor role"),
    ],
)
def test_what_shows_nothing_of_these_items_is_left_to_others(document: Any) -> None:
    """A list of plain messages is one of Chat Completions."""
    assert not is_responses(document)


REPLY: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs_2", "summary": []},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One file."}]},
]


@pytest.mark.parametrize("form", ["one object", "beside"])
def test_the_output_beside_an_input_is_the_last_response_with_its_usage(tmp_path: Path, form: str) -> None:
    """As a log of calls writes them: in one object, or request and response beside each other."""
    request = {"model": "gpt-5", "input": ITEMS[:4]}
    reply = {"object": "response", "output": REPLY, "status": "completed", "usage": {"input_tokens": 9}}
    document = {"request": request, "response": reply} if form == "beside" else {**reply, **request}
    recording = read_document(tmp_path, document)
    assert [block.text for block in blocks(recording)][-3:] == ["a.py", "", "One file."]
    (called,) = [e.payload for e in recording.events if isinstance(e.payload, ModelCalled)]
    told = (called.model, called.finish_reason, called.usage.input_tokens, called.response_id)
    assert told == ("gpt-5", "completed", 9, blocks(recording)[-1].response_id)


@pytest.mark.parametrize("output", ["One file.", {"role": "assistant", "content": "One file."}])
def test_an_output_that_is_a_text_or_a_single_message_is_the_answer(tmp_path: Path, output: Any) -> None:
    """Tracing tools write the answer so."""
    assert blocks(read_document(tmp_path, {"input": ITEMS[:4], "output": output}))[-1].text == "One file."


@pytest.mark.parametrize("output", [7, {"novel": True}, [REPLY[1], "x"]])
def test_an_output_that_cannot_be_read_is_reported(tmp_path: Path, output: Any) -> None:
    """The rest is imported."""
    assert read_document(tmp_path, {"input": ITEMS[:4], "output": output}).report.counts["invalid"] == 1


def test_a_request_whose_input_is_a_text_is_a_conversation_of_one_prompt(tmp_path: Path) -> None:
    """The API takes both forms."""
    recording = read_document(tmp_path, {"input": "Hello.", "output": REPLY})
    assert [block.text for block in blocks(recording)] == ["Hello.", "", "One file."]
    assert (recording.title, kinds(read_document(tmp_path, {"input": "Hello."}))) == ("Hello.", ["user.prompt"])


@pytest.mark.parametrize(
    ("call", "answer", "failed", "status"),
    [
        ("apply_patch_call", {"status": "failed", "output": "no such file"}, True, None),
        ("apply_patch_call", {"status": "completed", "output": "done"}, False, None),
        (
            "shell_call",
            {"output": [{"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 2}}]},
            False,
            2,
        ),
        (
            "shell_call",
            {"output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
            False,
            0,
        ),
    ],
)
def test_a_call_of_openais_own_tools_says_how_it_went(
    tmp_path: Path,
    call: str,
    answer: dict[str, Any],
    failed: bool,  # noqa: FBT001 - a case
    status: int | None,
) -> None:
    """A patch has a status, a command the exit status of its outcome."""
    items = [{"role": "user", "content": "Do it."}, {"type": call, "call_id": "c", "action": {"commands": ["ls"]}}]
    recording = read_document(tmp_path, {"input": [*items, {"type": f"{call}_output", "call_id": "c", **answer}]})
    result = blocks(recording)[-1]
    assert isinstance(result, ToolResult)
    assert (result.is_error, result.exit_status) == (failed, status)


def test_a_part_whose_type_is_no_text_costs_no_other(tmp_path: Path) -> None:
    """An item of the model's is read around it."""
    parts = [{"type": ["output_text"], "text": "?"}, {"type": "output_text", "text": "Done."}]
    recording = read_document(tmp_path, {"input": [{"type": "message", "role": "assistant", "content": parts}]})
    assert [block.text for block in blocks(recording)] == ["Done."]
