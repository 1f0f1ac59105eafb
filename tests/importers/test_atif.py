from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.importers.session import blocks, kinds
from timeline.blocks import ToolResult, UserPrompt
from timeline.events import ModelCalled, ParentLink
from timeline.importers import Recording, read_recording
from timeline.portable.atif import trajectory
from timeline.portable.recordings import import_recording
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

Fields = dict[str, Any]

AT = "2026-03-04T09:08:07.000Z"
ASKED = {"source": "user", "message": "Build cards.", "timestamp": AT}


def called(*ids: str) -> list[Fields]:
    """Return calls."""
    return [{"tool_call_id": id_, "function_name": "bash", "arguments": {"command": id_}} for id_ in ids]


def gave(*results: Fields) -> Fields:
    """Return an observation."""
    return {"results": list(results)}


def read(folder: Path, *steps: Fields, version: str = "ATIF-v1.5", **more: Any) -> Recording:
    """Read a trajectory."""
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, start=1)]
    agent = {"name": "cards-agent", "version": "1", "model_name": "m-1"}
    file = folder / "trajectory.json"
    document = {"schema_version": version, "session_id": "s", "agent": agent, "steps": numbered, **more}
    file.write_text(json.dumps(document), encoding="utf-8")
    [recording] = read_recording(file)
    return recording


def test_a_step_of_the_agent_is_a_response_with_its_calls_and_results(tmp_path: Path) -> None:
    """Of the tokens that were sent, those that were cached count apart."""
    told = {"source": "system", "message": "You build."}
    failed = {"source_call_id": "a", "content": "no such file", "extra": {"is_error": True, "exit_status": 2}}
    ran = gave(failed, {"source_call_id": "b", "content": [{"type": "text", "text": "made"}]})
    metrics = {"prompt_tokens": 500, "completion_tokens": 20, "cached_tokens": 400, "cost_usd": 0.1}
    step = {"source": "agent", "message": "I look.", "reasoning_content": "So.", "tool_calls": called("a", "b")}
    recording = read(tmp_path, told, ASKED, {**step, "observation": ran, "metrics": metrics})
    assert (recording.report.format, recording.title) == ("atif", "Build cards.")
    assert kinds(recording) == [
        "system.message",
        "user.prompt",
        "assistant.reasoning",
        "assistant.completion",
        "react.tool.call",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "react.tool.result",
    ]
    found = [(b.text, b.is_error, b.exit_status) for b in blocks(recording) if isinstance(b, ToolResult)]
    assert found == [("no such file", True, 2), ("made", False, None)]
    [call] = [event.payload for event in recording.events if isinstance(event.payload, ModelCalled)]
    assert (call.model, call.usage) == ("m-1", Usage(input_tokens=100, output_tokens=20, cache_read_tokens=400))


def test_results_that_name_no_call_answer_the_last_calls_of_their_step(tmp_path: Path) -> None:
    """An agent at a terminal sees one screen behind all that it typed; without a call it is the environment's word."""
    typed = {"source": "agent", "message": "", "tool_calls": called("a", "b"), "observation": gave({"content": "$"})}
    waited = {"source": "agent", "message": "I wait.", "observation": gave({"content": "ready"})}
    recording = read(tmp_path, ASKED, typed, waited)
    [result] = [block for block in blocks(recording) if isinstance(block, ToolResult)]
    assert (result.call_id, result.text) == ("b", "$")
    assert [block.text for block in blocks(recording) if block.type == "client.message"] == ["ready"]
    assert recording.report.counts["unanswered_call"] == 1


def test_steps_without_times_and_strange_ones_are_told(tmp_path: Path) -> None:
    """A later version may have sources more; a subagent that said nothing is no conversation."""
    untimed = {"source": "user", "message": [{"type": "text", "text": "Build."}]}
    says_nothing, strange = {"source": "agent", "message": ""}, {"source": "critic", "message": "No."}
    asks_nothing = {"source": "user", "message": None}
    recording = read(
        tmp_path, untimed, says_nothing, asks_nothing, strange, version="ATIF-v1.9", subagent_trajectories=[{}]
    )
    assert [block.text for block in blocks(recording) if isinstance(block, UserPrompt)] == ["Build."]
    assert recording.report.counts == {"missing_time": 1, "unknown_record": 3}


def test_a_subagents_trajectory_is_a_conversation_that_names_the_call(tmp_path: Path) -> None:
    """What came of the call names it; it may have subagents of its own."""
    inner = {"schema_version": "ATIF-v1.7", "trajectory_id": "inner", "steps": [{"source": "user", "message": "Look."}]}
    outer = {**inner, "trajectory_id": "outer", "subagent_trajectories": [inner]}
    result = {"source_call_id": "a", "content": "Done.", "subagent_trajectory_ref": [{"trajectory_id": "outer"}]}
    step = {"source": "agent", "message": "", "tool_calls": called("a"), "observation": gave(result)}
    file = tmp_path / "run.json"
    document = {"schema_version": "ATIF-v1.7", "steps": [ASKED, step], "subagent_trajectories": [outer]}
    file.write_text(json.dumps(document), encoding="utf-8")
    main, first, second = read_recording(file)
    assert (first.id, second.id) == (f"{main.id}.agent-outer", f"{main.id}.agent-outer.agent-inner")
    assert first.parent == ParentLink(conversation=main.id, path="tc:turn_1.a.call", relation="subagent")
    assert second.parent == ParentLink(conversation=first.id, relation="subagent")


async def test_what_this_library_exports_reads_back_as_the_same_transcript(tmp_path: Path) -> None:
    """The log itself has more; a reader who has the trajectory alone sees all that was said and done."""
    failed = {"source_call_id": "a", "content": "no such file", "extra": {"is_error": True, "exit_status": 2}}
    step = {"source": "agent", "message": "I look.", "reasoning_content": "So.", "tool_calls": called("a")}
    recording = read(tmp_path, ASKED, {**step, "observation": gave(failed), "metrics": {"prompt_tokens": 9}})
    store = MemoryStore()
    await import_recording(store, recording)
    file = tmp_path / "exported.json"
    file.write_text(json.dumps(await trajectory(store, recording.id, library="1")), encoding="utf-8")
    [again] = read_recording(file)
    assert kinds(again) == kinds(recording)
    assert [(b.type, b.text) for b in blocks(again)] == [(b.type, b.text) for b in blocks(recording)]
