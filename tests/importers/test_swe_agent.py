from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.session import blocks, kinds
from tests.recorded import needs_recordings, recorded
from timeline import open_store, policies
from timeline.blocks import Reasoning, ToolCall, ToolResult
from timeline.errors import ImportFailed
from timeline.events import ModelCalled
from timeline.importers import Recording, read_recording
from timeline.importers.builder import UNKNOWN_TIME
from timeline.importers.swe_agent import read_swe_agent
from timeline.lab.simulate import simulate
from timeline.portable.recordings import import_recording

if TYPE_CHECKING:
    from pathlib import Path

Entry = dict[str, Any]


class Run:
    """Collects a history and its steps; each method adds one entry and returns it, so that a test may spoil it."""

    def __init__(self) -> None:
        self.history: list[Entry] = []
        self.trajectory: list[Entry] = []
        self.more: Entry = {}

    def entry(self, role: str, content: Any, **fields: Any) -> Entry:
        """Add an entry of the main agent."""
        self.history.append({"role": role, "content": content, "agent": "main", **fields})
        return self.history[-1]

    def opening(self) -> None:
        """Add the system prompt and the task."""
        self.entry("system", "Work in the shell.", message_type="system_prompt")
        self.entry("user", "Fix the issue.\nIt is in a.py.", message_type="observation")

    def step(self, action: str, observation: str = "done", **fields: Any) -> Entry:
        """Add a step whose action is text, and what came of it."""
        said = {"content": f"I try.\n```\n{action}\n```", "thought": "I try.\n", "action": f"{action}\n"}
        told = self.entry("assistant", **said, message_type="action", tool_calls=None, **fields)
        self.entry("user", f"{observation}\nbash-$", message_type="observation")
        self.trajectory.append({**said, "response": said["content"], "observation": observation})
        return told

    def call(self, id_: str, name: str = "open", observation: str = "done", **arguments: Any) -> Entry:
        """Add a step that calls a function, and its result."""
        function = {"name": name, "arguments": json.dumps(arguments)}
        told = [{"id": id_, "type": "function", "function": function}]
        said = {"content": "I call.", "thought": "I call.", "action": f"{name} {id_}"}
        asked = self.entry("assistant", **said, message_type="action", tool_calls=told)
        self.entry("tool", observation, message_type="observation", tool_call_ids=[id_])
        self.trajectory.append({**said, "observation": observation, "execution_time": 2.5})
        return asked

    def document(self) -> Entry:
        """Return the trajectory file."""
        told = {"environment": "swe_main", "trajectory": self.trajectory, "history": self.history}
        return {**told, "info": {"exit_status": "submitted"}, **self.more}

    def read_all(self) -> list[Recording]:
        """Read the run without a file."""
        return read_swe_agent(self.document(), "issue-1", "0123456789abcdef")

    def read(self) -> Recording:
        """Read the main conversation."""
        return self.read_all()[0]


def results(recording: Recording) -> list[ToolResult]:
    """Return the results of a recording."""
    return [b for b in blocks(recording) if isinstance(b, ToolResult)]


def test_an_action_that_is_text_becomes_its_thought_and_a_call(tmp_path: Path) -> None:
    """The text is the thought alone, the call is one of the shell, and the next user message its result."""
    run = Run()
    run.opening()
    run.step("open a.py", "1: x")
    path = tmp_path / "issue-1.traj"
    path.write_text(json.dumps(run.document(), indent=2), encoding="utf-8")
    (recording,) = read_recording(path)
    assert kinds(recording) == [
        "system.message",
        "user.prompt",
        "assistant.completion",
        "react.tool.call",
        "react.tool.result",
    ]
    _, _, text, call, result = blocks(recording)
    assert isinstance(call, ToolCall)
    assert (text.text, call.name, call.arguments) == ("I try.\n", "bash", {"command": "open a.py"})
    assert (result.call_id, result.text) == (call.call_id, "1: x\nbash-$")
    assert {b.turn_id for b in blocks(recording)} == {"turn_1"}
    assert recording.id.startswith("issue-1-")
    assert (recording.title, recording.report.format) == ("Fix the issue.", "swe-agent")
    assert recording.report.counts == {"missing_time": 1}


def test_a_function_call_keeps_its_name_and_arguments() -> None:
    """Also where the arguments are no JSON object, and where the model used the id of a call before."""
    run = Run()
    run.opening()
    run.call("c1", "open", "1: x", path="a.py")
    run.call("c1", "edit", "2: y")["tool_calls"][0]["function"]["arguments"] = "{broken"
    recording = run.read()
    calls = [b for b in blocks(recording) if isinstance(b, ToolCall)]
    assert [(c.call_id, c.name, c.arguments) for c in calls] == [
        ("c1", "open", {"path": "a.py"}),
        ("c1", "edit", "{broken"),
    ]
    assert [(r.name, r.text) for r in results(recording)] == [("open", "1: x"), ("edit", "2: y")]
    assert recording.report.counts == Counter(missing_time=1, duplicate_call=1)


def test_times_are_derived_a_second_a_message_and_the_time_that_a_call_took() -> None:
    """The clock does not go back, and reading again gives the same times."""
    run = Run()
    run.opening()
    run.call("c1")
    run.step("ls")
    recording = run.read()
    seconds = [(e.at - UNKNOWN_TIME) / timedelta(seconds=1) for e in recording.events]
    assert seconds == [1, 2, 3, 3, 6.5, 7.5, 7.5, 8.5]
    assert recording.events == run.read().events


@pytest.mark.parametrize("took", [-1, 1e300, "long", True, None])
def test_an_execution_time_that_is_none_counts_nothing(took: Any) -> None:
    """Only a number of seconds that a call can have taken is believed."""
    run = Run()
    run.opening()
    run.call("c1")
    run.trajectory[0]["execution_time"] = took
    assert run.read().events[-1].at == UNKNOWN_TIME + timedelta(seconds=4)


def test_the_model_is_that_of_the_runs_configuration() -> None:
    """Newer versions keep the configuration as text; figures of the whole run belong to none of its calls."""
    run = Run()
    run.opening()
    run.call("c1")
    config = {"agent": {"model": {"name": "gpt-4o"}}}
    run.more["info"] = {"model_stats": {"tokens_sent": 900, "tokens_received": 20, "api_calls": 1}}
    for told in (config, json.dumps(config)):
        run.more["replay_config"] = told
        recording = run.read()
        (called,) = [e.payload for e in recording.events if isinstance(e.payload, ModelCalled)]
        assert (called.model, called.response_id) == ("gpt-4o", blocks(recording)[2].response_id)
        assert recording.report.findings[1] == {
            "kind": "missing_usage",
            "line": 1,
            "detail": "only of the run: 900 tokens sent and 20 received in 1 calls",
        }
    run.more["replay_config"] = "{torn"
    assert "ModelCalled" not in kinds(run.read())


def test_demonstrations_are_shown_but_are_neither_prompts_nor_calls() -> None:
    """What the model was shown as an example is the client's word: it opens no turn, and did nothing."""
    run = Run()
    run.entry("system", "Work in the shell.")
    run.entry("user", "Here is a demonstration.", is_demo=True, message_type="demonstration")
    calls = [{"id": "d1", "function": {"name": "open", "arguments": "{}"}}]
    run.entry("assistant", "I open it.", is_demo=True, action="open b.py", tool_calls=calls)
    run.entry("tool", "1: demo", is_demo=True, tool_call_ids=["d1"])
    run.entry("user", "Fix the issue.")
    run.step("ls")
    recording = run.read()
    shown = [b for b in blocks(recording) if b.type == "client.message"]
    assert [b.text for b in shown] == ["Here is a demonstration.", "I open it.\nopen b.py", "1: demo"]
    assert [b.meta for b in shown] == [{"demonstration": True}] * 3
    assert [b.call_id for b in results(recording)] == ["action-6"]
    assert recording.title == "Fix the issue."


def test_demonstrations_of_another_agent_were_never_shown() -> None:
    """SWE-agent sends an agent only the entries that bear its name."""
    run = Run()
    run.entry("user", "Once upon a time.", is_demo=True, agent="primary")
    run.opening()
    run.step("ls")
    (recording,) = run.read_all()
    assert "Once upon a time." not in [b.text for b in blocks(recording)]


def test_another_agent_of_the_run_has_a_conversation_of_its_own() -> None:
    """It links to the one that the history begins with."""
    run = Run()
    run.opening()
    run.entry("user", "Look it up.", agent="helper")
    run.step("ls")
    run.entry("assistant", "Found.", agent="helper")
    main, helper = run.read_all()
    assert [b.text for b in blocks(helper)] == ["Look it up.", "Found."]
    assert helper.parent is not None
    assert (helper.id, helper.parent.conversation) == (f"{main.id}.agent-helper", main.id)
    assert len(results(main)) == 1


def test_an_agent_behind_one_that_was_only_demonstrated_is_read() -> None:
    """The demonstrations of another agent are left out, and nothing else."""
    run = Run()
    run.opening()
    run.entry("user", "Once upon a time.", is_demo=True, agent="primary")
    run.entry("user", "Look it up.", agent="helper")
    run.entry("assistant", "Found.", agent="helper")
    main, helper = run.read_all()
    assert helper.id == f"{main.id}.agent-helper"


def test_other_attempts_of_a_run_are_conversations_of_their_own() -> None:
    """The chosen attempt stands in the file twice, and is read once."""
    first, second = Run(), Run()
    for run, action in ((first, "ls"), (second, "pwd")):
        run.opening()
        run.step(action)
    second.more["attempts"] = [first.document(), second.document()]
    chosen, other = second.read_all()
    assert other.id == f"{chosen.id}.attempt-1"
    alone = read_swe_agent({"attempts": [first.document()]}, "issue-1", "0123456789abcdef")
    assert [r.id for r in alone] == [other.id]


def test_the_observation_that_ended_the_run_is_its_last_result() -> None:
    """The history breaks off behind the last action; the steps alone know what came of it."""
    run = Run()
    run.opening()
    run.step("ls")
    run.step("submit", "diff --git")
    run.history.pop()
    recording = run.read()
    assert results(recording)[-1].text == "diff --git"
    assert recording.report.counts == {"missing_time": 1}


@pytest.mark.parametrize("key", ["query", "messages"])
def test_without_a_history_the_steps_are_read(key: str) -> None:
    """What the model was asked is in the first step, if anywhere, under either name."""
    run = Run()
    run.opening()
    asked = list(run.history)
    run.step("ls", "a.py")
    run.step("submit", "diff")
    run.trajectory[0][key] = asked
    run.history = []
    recording = run.read()
    assert [b.text for b in blocks(recording)] == [
        "Work in the shell.",
        "Fix the issue.\nIt is in a.py.",
        "I try.\n",
        "",
        "a.py",
        "I try.\n",
        "",
        "diff",
    ]


def test_what_the_client_says_of_an_answer_without_an_action_is_no_prompt() -> None:
    """It opens no turn; what a person says does."""
    run = Run()
    run.opening()
    run.entry("assistant", "I am done.", action="", thought="I am done.")
    run.entry("user", "No action was found.", message_type="observation")
    run.entry("user", "Try again.", message_type="user")
    told = [(b.type, b.turn_id) for b in blocks(run.read())]
    assert told[-2:] == [("client.message", "turn_1"), ("user.prompt", "turn_2")]


def test_signed_thinking_stands_before_the_text_as_it_was() -> None:
    """The provider's own part is kept, and what else says the same is not."""
    part = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    run = Run()
    run.opening()
    run.step("ls", thinking_blocks=[part], reasoning_content="hm")
    thinking, text = blocks(run.read())[2:4]
    assert isinstance(thinking, Reasoning)
    assert (thinking.text, thinking.data, text.text) == ("hm", part, "I try.\n")


def test_a_picture_before_a_prompt_is_part_of_its_turn() -> None:
    """The first thing that the user says opens the turn, and the first words give the title."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    run = Run()
    run.opening()
    run.step("open a.py", "1: x")
    run.entry("user", [picture, {"type": "text", "text": "Now this one."}])
    recording = run.read()
    assert [b.turn_id for b in blocks(recording)][-2:] == ["turn_2", "turn_2"]
    assert recording.title == "Fix the issue."


def test_pictures_of_an_observation_are_kept() -> None:
    """An observation may be parts, and breaks of lines stay as they are."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    run = Run()
    run.opening()
    run.call("c1")
    run.history[-1]["content"] = parts = [{"type": "text", "text": "seen\r\nso"}, picture]
    (result,) = results(run.read())
    assert (result.text, result.data) == ("seen\r\nso", parts)


def test_entries_that_are_damaged_are_reported_and_cost_nothing_else() -> None:
    """An entry without a role, one that is no object, one that says nothing and a lost result are findings."""
    run = Run()
    run.opening()
    del run.entry("user", "lost")["role"]
    run.history.append("torn")  # type: ignore[arg-type]
    run.entry("assistant", "")
    run.call("c1")
    run.history.pop()
    run.trajectory.clear()
    run.step("ls")
    recording = run.read()
    assert recording.report.counts == Counter(missing_time=1, invalid=2, unknown_record=1, unanswered_call=1)
    assert [r.call_id for r in results(recording)] == ["action-7"]


async def test_importing_a_run_twice_adds_nothing_and_simulating_it_leaves_no_loose_ends() -> None:
    """Calls are paired, every block is in a state and no context is above the limit, also when it is compacted."""
    run = Run()
    run.opening()
    for number in range(8):
        run.step(f"cat {number}.py", f"line {number} " * 120)
        run.call("always-the-same", "open", f"row {number} " * 120, path=f"{number}.py")
    recording = run.read()
    async with open_store("memory://") as store:
        added = [(await import_recording(store, recording)).events for _ in range(2)]
        simulated = await simulate(store, recording, policies.cut_point(max_tokens=2_000))
    assert added == [len(recording.events), 0]
    assert simulated.compactions > 0
    counts = (simulated.orphans, simulated.uncovered, simulated.over_limit, simulated.typed_errors)
    assert counts == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"history": [{"role": "user", "content": "a", "agent": "ma', r"breaks in line 1, column \d\d"),
        ('{"history": [{"role": "user", "content": "no agent"}]}', "format is not known"),
        ('{"history": [], "trajectory": []}', "format is not known"),
        ('{"history": [{"role": "user", "content": "", "agent": "main"}]}', "no message is in it"),
        ('{"history": [{"role": "user", "content": "a", "agent": "main", "is_demo": true}]}', "no message is in it"),
    ],
)
def test_what_is_no_trajectory_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    """A torn file, a list of messages of another program, and a run in which nothing was said."""
    path = tmp_path / "run.traj"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ImportFailed, match=problem):
        read_recording(path)


_odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "function", "name", "arguments", "type", "text"]), inner, max_size=4)
    ),
    max_leaves=8,
)
_fields = st.sampled_from(
    ["role", "content", "agent", "thought", "action", "tool_calls", "tool_call_ids", "thinking_blocks", "is_demo"]
)
_step_fields = st.sampled_from(["action", "observation", "execution_time", "query", "response"])


@given(
    st.lists(st.tuples(st.integers(0, 5), _fields, _odd), max_size=6),
    st.lists(st.tuples(st.integers(0, 1), _step_fields, _odd), max_size=3),
    st.dictionaries(st.sampled_from(["info", "replay_config", "attempts", "history", "trajectory"]), _odd, max_size=2),
)
def test_fields_of_any_shape_are_imported_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    spoilt: list[tuple[int, str, Any]],
    steps: list[tuple[int, str, Any]],
    more: Entry,
) -> None:
    """No value in any field raises anything but an import error, and keys stay unique."""
    run = Run()
    run.opening()
    run.step("ls")
    run.call("c1")
    for place, key, value in spoilt:
        run.history[place][key] = value
    for place, key, value in steps:
        run.trajectory[place][key] = value
    path = tmp_path_factory.getbasetemp() / "odd.traj"
    path.write_text(json.dumps({**run.document(), **more}), encoding="utf-8")
    try:
        recordings = read_recording(path)
    except ImportFailed:
        return
    for recording in recordings:
        assert len({e.key for e in recording.events}) == len(recording.events)
        json.dumps(recording.report.dump())
    assert len({recording.id for recording in recordings}) == len(recordings)


@needs_recordings
def test_recorded_runs_hold_what_a_simple_count_finds() -> None:
    """Prompts, answers, actions and observations of every real file are all imported, each call with its result."""
    paths = recorded("swe-agent/*.traj")
    assert paths
    for path in paths:
        history = json.loads(path.read_text(encoding="utf-8"))["history"]
        recording = read_recording(path)[0]
        found = Counter(kinds(recording))
        roles = Counter(entry["role"] for entry in history)
        assert found["system.message"] == roles["system"]
        assert found["user.prompt"] == 1
        assert found["react.tool.call"] == found["react.tool.result"] == roles["assistant"]
        assert found["assistant.completion"] == sum(bool(entry.get("thought")) for entry in history)
        said = {b.text for b in blocks(recording)}
        assert all(entry["content"] in said for entry in history if entry["role"] != "assistant")
        assert not {"unanswered_call", "orphan_result", "unknown_record", "invalid"} & set(recording.report.counts)
