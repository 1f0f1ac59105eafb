from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.importers.session import blocks, kinds
from timeline.blocks import ToolCall, ToolResult
from timeline.events import ModelCalled
from timeline.importers import Recording, read_recording
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

Message = dict[str, Any]

BEGAN = 1_770_000_000.5
"""Seconds since 1970 at which the first response came."""
REPLY = {
    "id": "chatcmpl-1",
    "model": "claude-sonnet-4-5-20250929",
    "choices": [{"finish_reason": "tool_calls", "index": 0, "message": {"role": "assistant"}}],
    "usage": {"prompt_tokens": 1_200, "completion_tokens": 40, "prompt_tokens_details": {"cached_tokens": 1_000}},
}
OPENING = [{"role": "system", "content": "Work in the shell."}, {"role": "user", "content": "Fix the tests."}]
OPENED = ["system.message", "user.prompt"]
COMPLETION, CALL, RESULT = "assistant.completion", "react.tool.call", "react.tool.result"
CLIENT = "client.message"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt"


def called(number: int, command: str) -> Message:
    """Return a response of version 2 that calls the tool, as LiteLLM's message is dumped, with what is beside it."""
    function = {"arguments": json.dumps({"command": command}), "name": "bash"}
    return {
        "content": f"Step {number}.",
        "role": "assistant",
        "tool_calls": [{"index": 0, "function": function, "id": f"toolu_{number}", "type": "function"}],
        "function_call": None,
        "extra": {
            "actions": [{"command": command, "tool_call_id": f"toolu_{number}"}],
            "response": REPLY,
            "cost": 0.01,
            "timestamp": BEGAN + number,
        },
    }


def answered(number: int, output: str, status: int, **extra: Any) -> Message:
    """Return the result of a call of version 2."""
    return {
        "role": "tool",
        "tool_call_id": f"toolu_{number}",
        "content": f"<returncode>{status}</returncode>\n<output>\n{output}</output>",
        "extra": {"raw_output": output, "returncode": status, "timestamp": BEGAN + number + 0.5, **extra},
    }


def ended(exit_status: str, submission: str = "") -> Message:
    """Return the message that ends a run of version 2."""
    return {"role": "exit", "content": submission, "extra": {"exit_status": exit_status, "submission": submission}}


def written(command: str) -> Message:
    """Return a response of version 1, whose command is in its text."""
    return {"role": "assistant", "content": f"THOUGHT: I try.\n\n```bash\n{command}\n```", "extra": {"response": REPLY}}


def read(folder: Path, *messages: Message, version: str = "mini-swe-agent-1.1") -> Recording:
    """Read a trajectory."""
    info = {"exit_status": "Submitted", "config": {"model": {"model_name": "anthropic/claude-sonnet-4-5"}}}
    file = folder / "astropy-1.traj.json"
    document = {"info": info, "messages": [*OPENING, *messages], "trajectory_format": version}
    file.write_text(json.dumps(document, indent=2), encoding="utf-8")
    [recording] = read_recording(file)
    return recording


def test_calls_have_their_results_with_exit_status_and_time(tmp_path: Path) -> None:
    """What a chat message has no field for is in `extra`."""
    recording = read(tmp_path, called(1, "pytest"), answered(1, "E assert\n", 1))
    assert (recording.report.format, recording.id[:10]) == ("mini-swe-agent", "astropy-1-")
    assert kinds(recording) == [*OPENED, COMPLETION, CALL, "ModelCalled", RESULT]
    [result] = [block for block in blocks(recording) if isinstance(block, ToolResult)]
    assert (result.call_id, result.name, result.exit_status, result.is_error) == ("toolu_1", "bash", 1, False)
    assert [event.at for event in recording.events[-2:]] == [
        datetime.fromtimestamp(BEGAN + 1, UTC),
        datetime.fromtimestamp(BEGAN + 1.5, UTC),
    ]


def test_a_response_has_the_model_and_the_usage_that_it_reports(tmp_path: Path) -> None:
    """Both are in the provider's own answer, which is kept whole beside the message."""
    recording = read(tmp_path, called(1, "ls"))
    [call] = [event.payload for event in recording.events if isinstance(event.payload, ModelCalled)]
    assert (call.model, call.finish_reason) == ("claude-sonnet-4-5-20250929", "tool_calls")
    assert call.usage == Usage(input_tokens=200, output_tokens=40, cache_read_tokens=1_000)


def test_a_reply_that_names_no_model_still_has_its_usage(tmp_path: Path) -> None:
    """Neither the reply nor the run says which model it was; what it used is known all the same."""
    told = called(1, "ls")
    told["extra"]["response"] = {key: value for key, value in REPLY.items() if key != "model"}
    file = tmp_path / "astropy-1.traj.json"
    document = {"info": {}, "messages": [*OPENING, told], "trajectory_format": "mini-swe-agent-1.1"}
    file.write_text(json.dumps(document), encoding="utf-8")
    [recording] = read_recording(file)
    [call] = [event.payload for event in recording.events if isinstance(event.payload, ModelCalled)]
    assert (call.model, call.usage) == ("", Usage(input_tokens=200, output_tokens=40, cache_read_tokens=1_000))


def test_the_output_that_submits_is_the_result_of_its_command(tmp_path: Path) -> None:
    """The run ends in the middle of the command: the output is in the message that ends it."""
    recording = read(tmp_path, called(1, SUBMIT), ended("Submitted", "diff --git"))
    assert blocks(recording)[-1].text == "diff --git"
    assert recording.report.counts["unanswered_call"] == 0


def test_a_run_that_a_limit_ended_says_so_and_opens_no_turn(tmp_path: Path) -> None:
    """The agent's program says it, not the user."""
    recording = read(tmp_path, called(1, "ls"), answered(1, "a", 0), ended("LimitsExceeded"))
    assert (kinds(recording)[-1], blocks(recording)[-1].text) == (CLIENT, "LimitsExceeded")


def test_a_command_that_could_not_run_failed(tmp_path: Path) -> None:
    """It timed out, for example."""
    recording = read(tmp_path, called(1, "sleep 99"), answered(1, "", -1, exception_info="timed out"))
    assert [block.is_error for block in blocks(recording) if isinstance(block, ToolResult)] == [True]


def test_a_command_in_a_text_is_a_call_and_what_follows_its_result(tmp_path: Path) -> None:
    """The text keeps what is beside the command, as it does where the model calls a tool."""
    answer = {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"}
    recording = read(tmp_path, written("ls -la"), answer, version="mini-swe-agent-1")
    assert kinds(recording) == [*OPENED, COMPLETION, CALL, "ModelCalled", RESULT]
    said, call, result = blocks(recording)[2:]
    assert said.text == "THOUGHT: I try."
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments) == ("bash", {"command": "ls -la"})
    assert result.text == answer["content"]


def test_what_answers_a_text_without_a_command_is_no_prompt(tmp_path: Path) -> None:
    """The agent's program asks for one; nobody has asked for anything else."""
    asks = {"role": "user", "content": "Please always provide EXACTLY ONE action in triple backticks."}
    recording = read(tmp_path, {"role": "assistant", "content": "I think."}, asks, version="mini-swe-agent-1")
    assert kinds(recording)[-1] == CLIENT


def test_what_a_user_says_in_between_is_a_prompt(tmp_path: Path) -> None:
    """The agent's program marks it as an interruption, as it does its own words."""
    task = {"role": "user", "content": "The user added a new task: docs", "extra": {"interrupt_type": "UserNewTask"}}
    error = {"role": "user", "content": "No tool calls found.", "extra": {"interrupt_type": "FormatError"}}
    assert kinds(read(tmp_path, task, error))[-2:] == ["user.prompt", CLIENT]


def test_responses_of_openais_responses_api_are_read_item_by_item(tmp_path: Path) -> None:
    """The agent keeps each as the API gave it, among the messages."""
    item = {"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": '{"command": "ls"}'}
    response = {
        "object": "response",
        "model": "gpt-5.5",
        "status": "completed",
        "output": [{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look."}]}, item],
        "usage": {"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 25}},
        "extra": {"timestamp": BEGAN},
    }
    output = {"type": "function_call_output", "call_id": "call_1", "output": "a.py", "extra": {"timestamp": BEGAN + 1}}
    recording = read(tmp_path, response, output)
    assert kinds(recording) == [*OPENED, "assistant.reasoning", CALL, "ModelCalled", RESULT]
    [call] = [event.payload for event in recording.events if isinstance(event.payload, ModelCalled)]
    assert (call.model, call.usage.cache_read_tokens) == ("gpt-5.5", 25)
