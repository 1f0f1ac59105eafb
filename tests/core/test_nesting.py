"""JSON nested deeper than any program needs: kept as text, or refused with a typed error; never a RecursionError."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.importers.codex_rollout import Rollout
from tests.importers.session import blocks
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.errors import ImportFailed, InvalidArgument, InvalidBlock, StoreCorrupt, TimelineError
from timeline.events.encoding import decode_payload
from timeline.frozen import MOST_NESTING
from timeline.importers import read_recording
from timeline.message_lists import compact_messages
from timeline.portable import export_log, read_copies

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

DEPTHS = [255, 300, 480, 900, 5_000, 20_000]
WITH_SMALL_STACKS = """
import sys, threading
threading.stack_size(1024 * 1024)
from timeline import sync
from timeline.errors import TimelineError
value = 1
for _ in range(int(sys.argv[1])):
    value = {"a": value}
call = {"type": "tool_use", "id": "a", "name": "f", "input": value}
for _ in range(2):
    with sync.open_store(sys.argv[2]) as store:
        timeline = sync.Timeline.open(store, "c")
        try:
            timeline.append_messages([{"role": "user", "content": "Go."}, {"role": "assistant", "content": [call]}])
        except TimelineError:
            pass
        context = timeline.render()
        for wire in ("anthropic", "openai_chat", "openai_responses", "gemini", "bedrock_converse"):
            context.request(wire, model="m")
        assert timeline.verify().ok
"""
"""Appends a deep call in threads that have as much of a stack as those of Alpine, and reads it back."""


@pytest.fixture
async def timeline() -> AsyncIterator[Timeline]:
    """Give an empty conversation in memory."""
    async with open_store("memory://") as store:
        yield await Timeline.open(store, "c")


def nested(levels: int) -> Any:
    """Return an object of so many levels."""
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def nested_text(levels: int) -> str:
    """Return the JSON of `nested`, which Python's own writer cannot write."""
    return '{"a":' * levels + "1" + "}" * levels


def endless() -> Any:
    """Return a list that holds itself twice."""
    value: list[Any] = []
    value += [value, value]
    return value


@pytest.mark.parametrize("levels", DEPTHS)
async def test_a_block_that_is_nested_too_deeply_is_refused(timeline: Timeline, levels: int) -> None:
    """Whichever field it is in; nothing is written, and the next append is."""
    for field, type_ in (("arguments", "react.tool.call"), ("data", "react.tool.result"), ("meta", "user.prompt")):
        with pytest.raises(InvalidBlock):
            await timeline.append(
                {"type": type_, field: nested(levels)}
                | ({"call_id": "a"} if "tool" in type_ else {})
                | ({"name": "x"} if field == "arguments" else {})
            )
    with pytest.raises(InvalidBlock):
        await timeline.append({"type": "user.prompt", "text": "x", "meta": {"a": endless()}})
    assert timeline.version == 1
    await timeline.append(UserPrompt(text="Go on."))


@pytest.mark.parametrize("levels", DEPTHS)
async def test_a_messages_list_that_is_nested_too_deeply_is_refused(timeline: Timeline, levels: int) -> None:
    """In the forms of all providers, as arguments and as results."""
    deep = nested(levels)
    lists: list[list[dict[str, Any]]] = [
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": deep}]}],
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [deep]}]}],
        [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": deep}}]}],
        [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": deep}}]}],
        [{"type": "function_call_output", "call_id": "a", "output": deep}],
    ]
    for messages in lists:
        with pytest.raises(TimelineError):
            await timeline.append_messages(messages)
        with pytest.raises(TimelineError):
            await compact_messages(messages, policies.balanced())
    with pytest.raises(TimelineError):
        await timeline.record({"type": "message", "role": "assistant", "content": lists[0][0]["content"]})
    assert timeline.version == 1


@pytest.mark.parametrize("levels", DEPTHS)
async def test_a_text_of_deep_json_is_kept_as_the_text_that_it_is(timeline: Timeline, levels: int) -> None:
    """The model wrote the arguments, and a tool printed the output: both go on."""
    deep = nested_text(levels)
    function = {"name": "f", "arguments": deep}
    calling = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
    }
    await timeline.append_messages(
        [{"role": "user", "content": "Go."}, calling, {"role": "tool", "tool_call_id": "a", "content": deep}]
    )
    asked, answered = [item.block for item in timeline.window.items][1:]
    assert isinstance(asked, ToolCall)
    assert isinstance(answered, ToolResult)
    assert asked.arguments == answered.text == deep
    await timeline.use_policy(policies.none(max_tokens=200_000))
    context = await timeline.render()
    sent = context.to_anthropic()["messages"], context.to_openai_chat()["messages"]
    assert all(deep in str(messages) for messages in sent)
    assert (await timeline.verify()).ok


@pytest.mark.parametrize("levels", [MOST_NESTING + 1, *DEPTHS])
async def test_a_request_that_is_nested_too_deeply_is_refused(timeline: Timeline, levels: int) -> None:
    """Before anything is sent: the argument is named."""
    deep = nested(levels)
    with pytest.raises(InvalidArgument, match="tools"):
        await timeline.render(tools=[{"name": "f", "input_schema": deep}])
    with pytest.raises(InvalidArgument, match="system"):
        await timeline.render(system=[deep])
    with pytest.raises(InvalidArgument, match="tools"):
        await timeline.render(tools=endless())


@pytest.mark.parametrize("levels", DEPTHS)
def test_recorded_lines_that_are_nested_too_deeply_cost_no_other_line(tmp_path: Path, levels: int) -> None:
    """A record that is too deep is put aside; one that holds deep JSON as a text is read."""
    rollout = Rollout()
    rollout.user("List the files")
    rollout.call("a")
    rollout.result("a", f'{{"output":{nested_text(levels)}}}')
    rollout.item("function_call", name="f", arguments=nested_text(levels), call_id="b")
    rollout.answer("Done.")
    lines = rollout.text().splitlines()
    envelope = '{"timestamp":"2026-01-20T09:00:09.000Z","type":"response_item","payload":'
    lines.insert(4, f"{envelope}{nested_text(levels)}}}")
    path = tmp_path / "rollout.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    (recording,) = read_recording(path)
    kinds = [block.type for block in blocks(recording)]
    assert kinds == [
        "user.prompt",
        *["react.tool.call"],
        "react.tool.result",
        "react.tool.call",
        "assistant.completion",
    ]
    assert recording.report.counts["quarantined"] == 1


@pytest.mark.parametrize("levels", DEPTHS)
@pytest.mark.parametrize("begins", ['[{"role":"user","content":', '{"sessionId":"s","projectHash":"p","messages":', ""])
def test_a_document_that_is_nested_too_deeply_is_refused(tmp_path: Path, levels: int, begins: str) -> None:
    """The error says so."""
    path = tmp_path / "chat.json"
    ends = "}]" if begins.startswith("[") else "}" if begins else ""
    path.write_text(f"{begins}{nested_text(levels)}{ends}", encoding="utf-8")
    with pytest.raises(ImportFailed):
        read_recording(path)


@pytest.mark.parametrize("levels", DEPTHS)
async def test_an_exported_line_that_is_nested_too_deeply_costs_its_own_event(
    timeline: Timeline, tmp_path: Path, levels: int
) -> None:
    """It is put aside, and the log ends before the gap."""
    await timeline.append(UserPrompt(text="One."))
    await timeline.append(UserPrompt(text="Two."))
    lines = [line async for line in export_log(timeline._store, ["c"])]
    place = next(n for n, line in enumerate(lines) if "Two." in line)
    lines[place] = lines[place].replace('"text":"Two."', f'"meta":{nested_text(levels)},"text":"Two."')
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    [copied] = read_copies(path) or []
    assert sorted(copied.events) == [1, 2]


@pytest.mark.parametrize("levels", DEPTHS)
def test_a_stored_event_that_is_nested_too_deeply_is_damage(levels: int) -> None:
    """Nothing that this library writes is as deep; the store says which event it is."""
    meta = f'{{"block":{{"type":"user.prompt","text":"x","meta":{nested_text(levels)}}},"tokens":1,"counter":"chars4"}}'
    with pytest.raises(StoreCorrupt, match=r"block\.appended"):
        decode_payload("block.appended", 1, meta)


@pytest.mark.parametrize("levels", [MOST_NESTING, MOST_NESTING + 1, 195, 215])
def test_a_deep_call_ends_no_process_whose_threads_have_small_stacks(tmp_path: Path, levels: int) -> None:
    """Pydantic goes down a value on the stack of its thread: too deep a one has to be refused before that."""
    program = [sys.executable, "-c", WITH_SMALL_STACKS, str(levels), str(tmp_path / "agent.db")]
    assert subprocess.run(program, timeout=60, check=False).returncode == 0
