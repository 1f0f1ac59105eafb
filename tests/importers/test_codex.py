from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.codex_rollout import Rollout
from tests.importers.session import START, blocks, kinds
from timeline import Timeline, policies
from timeline.blocks import Attachment, CustomBlock, Reasoning, ToolCall, ToolResult
from timeline.events import CompactionCompleted, ModelCalled, ParentLink
from timeline.importers import ImportedCompaction, Recording, read_recording
from timeline.importers.builder import parse_time
from timeline.importers.codex import UNREADABLE, read_codex
from timeline.lab.simulate import simulate
from timeline.portable.recordings import import_recording
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}


def calls(recording: Recording) -> list[ModelCalled]:
    """Return the model calls of a recording."""
    return [e.payload for e in recording.events if isinstance(e.payload, ModelCalled)]


def told(recording: Recording) -> list[tuple[str, str]]:
    """Return types and texts of a recording's blocks."""
    return [(block.type, block.text) for block in blocks(recording)]


def test_a_rollout_becomes_turns_of_blocks(tmp_path: Path) -> None:
    """Prompts, thoughts, calls, results, texts and costs are all there, once each; echoes are skipped."""
    rollout = Rollout(base_instructions={"text": "You are Codex."})
    rollout.user("<environment_context>\n<cwd>/repo</cwd>\n</environment_context>")
    rollout.user("List the files")
    rollout.event("agent_reasoning", text="Listing")
    rollout.think("Listing")
    rollout.call("a", command=["ls"])
    rollout.call("b", command=["pwd"])
    rollout.count()
    rollout.result("a", "x.py")
    rollout.result("b", "/repo")
    rollout.answer("x.py in /repo")
    rollout.count(1100, 1000, 8)
    (recording,) = read_recording(rollout.write(tmp_path))
    assert (recording.id, recording.title, recording.report.format) == ("codex-1", "List the files", "codex")
    assert kinds(recording) == [
        "system.message",
        "client.message",
        "user.prompt",
        "assistant.reasoning",
        "react.tool.call",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "react.tool.result",
        "assistant.completion",
        "ModelCalled",
    ]
    assert not recording.report.findings
    assert recording.report.counts["skipped"] == 5
    assert [block.turn_id for block in blocks(recording)] == ["turn_1"] * 9


def test_usage_is_read_once_with_the_cache_apart_and_names_model_and_start() -> None:
    """Input includes what the cache answered; a count that is written again adds nothing."""
    rollout = Rollout()
    rollout.user("Hi")
    rollout.answer("Hello")
    row = rollout.count(1000, 600, 40)
    row["payload"]["info"]["last_token_usage"]["cache_write_input_tokens"] = 100
    rollout.rows.append(row)
    (call,) = calls(rollout.read())
    usage = Usage(input_tokens=300, output_tokens=40, cache_read_tokens=600, cache_write_5m_tokens=100)
    assert (call.usage, call.model) == (usage, "gpt-5.2-codex")
    assert call.started_at == START + timedelta(seconds=3)


def test_a_count_without_a_last_figure_is_the_difference_of_the_totals() -> None:
    """Older versions told totals alone."""
    rollout = Rollout()
    for input_tokens in (1000, 2500):
        rollout.user("Hi")
        rollout.answer("Hello")
        total = {"input_tokens": input_tokens, "output_tokens": input_tokens // 10}
        rollout.event("token_count", info={"total_token_usage": total, "last_token_usage": {}})
    assert [(c.usage.input_tokens, c.usage.output_tokens) for c in calls(rollout.read())] == [(1000, 100), (1500, 150)]


def test_a_count_without_totals_is_the_last_call_once() -> None:
    """It is written again with the account's limits; two calls that cost the same have a response each."""
    rollout = Rollout()
    for _ in range(2):
        rollout.user("Hi")
        rollout.answer("Hello")
        for _ in range(2):
            rollout.event("token_count", info={"last_token_usage": {"input_tokens": 1000, "output_tokens": 40}})
    recording = rollout.read()
    assert [(c.usage.input_tokens, c.usage.output_tokens) for c in calls(recording)] == [(1000, 40)] * 2
    assert not recording.report.findings


def test_counts_that_stand_before_their_response_pay_for_it() -> None:
    """Versions that wrote a response down when it was over did so behind its count, calls and results by turns."""
    rollout = Rollout()
    rollout.user("Do it")
    rollout.count(100, 0, 10)
    for call_id in "ab":
        rollout.call(call_id)
        rollout.result(call_id)
    rollout.count(200, 0, 20)
    rollout.answer("Done")
    rollout.user("Thanks")
    recording = rollout.read()
    assert [c.usage.output_tokens for c in calls(recording)] == [10, 20]
    responses = [b.response_id for b in blocks(recording) if b.response_id]
    assert [responses.index(r) for r in responses] == [0, 0, 2]
    assert not recording.report.findings


def test_a_call_of_which_no_answer_was_written_is_recorded_with_its_cost() -> None:
    """The count of a compaction's own call belongs to no response."""
    rollout = Rollout()
    rollout.user("Hi")
    rollout.answer("Hello")
    rollout.count(100, 0, 10)
    rollout.count(5000, 0, 900)
    rollout.row("compacted", message="They said hello.")
    recording = rollout.read()
    assert [c.usage.output_tokens for c in calls(recording)] == [10, 900]
    (compaction,) = [e.payload for e in recording.events if isinstance(e.payload, ImportedCompaction)]
    assert (compaction.summary, compaction.pre_tokens) == ("They said hello.", 5000)


@pytest.mark.parametrize(
    ("output", "text", "status", "failed"),
    [
        ("plain", "plain", None, False),
        ("Exit code: 2\nWall time: 1 seconds\nOutput:\nno", None, 2, False),
        ("Chunk ID: 1\nProcess exited with code 0\nOutput:\nyes", None, 0, False),
        ('{"output":"x","metadata":{"exit_code":1,"duration_seconds":0.1}}', None, 1, False),
        ({"content": "no such file", "success": False}, "no such file", None, True),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", None, False),
        ({"anything": [1]}, '{"anything":[1]}', None, False),
    ],
)
def test_results_are_what_the_model_saw(output: Any, text: str | None, status: int | None, failed: bool) -> None:  # noqa: FBT001 - a case
    """Every form of an output is read, with the exit status that it tells."""
    rollout = Rollout()
    rollout.user("Do it")
    rollout.call("a")
    rollout.result("a", output)
    result = blocks(rollout.read())[-1]
    assert isinstance(result, ToolResult)
    assert (result.text, result.exit_status, result.is_error, result.name) == (text or output, status, failed, "shell")


def test_pictures_are_kept_in_prompts_and_results() -> None:
    """A picture stands beside its text, with its content type."""
    rollout = Rollout()
    rollout.user("Look", PICTURE)
    rollout.call("a", "view_image")
    rollout.result("a", [{"type": "input_text", "text": "here"}, PICTURE])
    _, picture, _, result = blocks(rollout.read())
    assert isinstance(picture, Attachment)
    assert (picture.mime, picture.data) == ("image/png", PICTURE)
    assert (result.text, result.data) == ("here", [{"type": "input_text", "text": "here"}, PICTURE])


def test_every_kind_of_call_is_paired_with_its_result() -> None:
    """Custom tools, local shells and tool searches are calls; a web search is the model's own part."""
    rollout = Rollout()
    rollout.user("Do it")
    rollout.item("custom_tool_call", call_id="a", name="apply_patch", input="*** Begin Patch", status="completed")
    action = {"type": "exec", "command": ["pwd"]}
    rollout.item("local_shell_call", call_id="b", action=action, status="completed")
    rollout.item("tool_search_call", call_id="c", execution="client", arguments={"query": "x"})
    rollout.item("web_search_call", status="completed", action={"type": "search", "query": "y"})
    rollout.item("custom_tool_call_output", call_id="a", output="ok")
    rollout.item("function_call_output", call_id="b", output="/repo")
    rollout.item("tool_search_output", call_id="c", status="completed", execution="client", tools=[{"name": "t"}])
    found = blocks(rollout.read())[1:]
    assert [(b.name, b.arguments) for b in found if isinstance(b, ToolCall)] == [
        ("apply_patch", "*** Begin Patch"),
        ("local_shell", action),
        ("tool_search", {"query": "x"}),
    ]
    assert [(b.name, b.text) for b in found if isinstance(b, ToolResult)] == [
        ("apply_patch", "ok"),
        ("local_shell", "/repo"),
        ("tool_search", '[{"name":"t"}]'),
    ]
    (search,) = [b for b in found if isinstance(b, CustomBlock)]
    assert isinstance(search.data, dict)
    assert search.data["action"] == {"type": "search", "query": "y"}


def test_a_search_for_tools_that_the_provider_ran_is_part_of_its_response() -> None:
    """It has no call id: its result belongs to no call of ours, and does not end the response."""
    rollout = Rollout()
    rollout.user("Do it")
    rollout.item("tool_search_call", call_id=None, execution="server", arguments={"paths": ["crm"]})
    rollout.item("tool_search_output", call_id=None, execution="server", tools=[{"name": "t"}])
    rollout.call("a")
    rollout.count()
    rollout.result("a")
    recording = rollout.read()
    assert [b.type for b in blocks(recording)[1:]] == [
        *("assistant.native", "assistant.native", "react.tool.call", "react.tool.result"),
    ]
    assert len(calls(recording)) == 1
    assert not recording.report.counts["orphan_result"]


def test_the_tools_of_a_request_are_no_response() -> None:
    """Newer versions write them as an item before the first prompt."""
    rollout = Rollout()
    rollout.item("additional_tools", role="developer", tools=[{"type": "custom", "name": "exec"}])
    rollout.user("Hi")
    recording = rollout.read()
    assert [b.type for b in blocks(recording)] == ["user.prompt"]
    assert not calls(recording)


def test_rows_of_the_clients_state_are_skipped() -> None:
    """None of them is conversation, nor unknown."""
    rollout = Rollout()
    rollout.user("Hi")
    before = rollout.read().report.counts["skipped"]
    for kind in ("world_state", "token_usage_record", "security_risk_score", "retained_context", "realtime_item"):
        rollout.row(kind, x=1)
    rollout.event("sub_agent_activity", event_id="a")
    counts = rollout.read().report.counts
    assert (counts["skipped"] - before, counts["unknown_record"]) == (6, 0)


def test_a_response_without_figures_turns_no_clock_back() -> None:
    """That none come is known only with the next response; the call keeps the time of its own."""
    rollout = Rollout()
    rollout.user("Hi")
    at = rollout.answer("Half")["timestamp"]
    rollout.event("turn_aborted", reason="interrupted")
    rollout.user("Again")
    rollout.answer("Whole")
    rollout.count()
    recording = rollout.read()
    first = next(event for event in recording.events if isinstance(event.payload, ModelCalled))
    assert first.at == parse_time(at)
    assert not recording.report.counts["clock_back"]


def test_namespaces_of_tools_and_phases_of_texts_are_kept_beside_them() -> None:
    """Tools of two servers may have one name, and a text may be no final answer."""
    rollout = Rollout()
    rollout.user("Do it")
    rollout.answer("I look.")["payload"]["phase"] = "commentary"
    rollout.call("a", "search")["payload"]["namespace"] = "mcp__wiki__"
    said, called = blocks(rollout.read())[1:]
    assert (said.data, called.data) == (
        {"phase": "commentary"},
        {"type": "function_call", "namespace": "mcp__wiki__"},
    )


def test_reasoning_is_kept_as_the_provider_gave_it() -> None:
    """Encrypted content is there byte for byte, and the summary is its text."""
    rollout = Rollout()
    rollout.user("Hi")
    payload = rollout.think("Thinking")["payload"]
    thought = blocks(rollout.read())[-1]
    assert isinstance(thought, Reasoning)
    assert (thought.text, thought.data) == ("Thinking", payload)


async def test_a_compaction_stands_for_everything_before_it() -> None:
    """The summary is imported, and stands in the window; simulations leave it out, and make their own."""
    rollout = Rollout()
    rollout.user("First")
    rollout.answer("Yes")
    rollout.count(100_000)
    rollout.row("compacted", message="We said yes.", replacement_history=[{"type": "message"}])
    rollout.event("context_compacted")
    rollout.user("Second")
    recording = rollout.read()
    store = MemoryStore()
    await import_recording(store, recording)
    timeline = await Timeline.open(store, "codex-1")
    assert [item.block.type for item in timeline.window.items] == ["conv.range.summary", "user.prompt"]
    (done,) = [e.payload async for e in store.read("codex-1") if isinstance(e.payload, CompactionCompleted)]
    assert done.source == "imported"
    assert (await timeline.verify()).ok
    assert (await simulate(store, recording, policies.cut_point())).compactions == 0


def test_a_summary_that_is_encrypted_is_said_to_be() -> None:
    """A compaction of the provider's own has no text; it is reported."""
    rollout = Rollout()
    rollout.user("First")
    rollout.row("compacted", message="", replacement_history=[{"type": "compaction", "encrypted_content": "gAA"}])
    recording = rollout.read()
    assert recording.events[-1].payload == ImportedCompaction(UNREADABLE)
    assert recording.report.counts["invalid"] == 1


@pytest.mark.parametrize(
    ("header", "parent"),
    [
        ({"forked_from_id": "other"}, ParentLink(conversation="other", relation="fork")),
        (
            {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "other", "depth": 1}}}},
            ParentLink(conversation="other", relation="subagent"),
        ),
        ({"parent_thread_id": "other"}, ParentLink(conversation="other", relation="subagent")),
        ({"source": {"subagent": "review"}}, None),
        ({}, None),
    ],
)
def test_a_session_names_where_it_comes_from(header: dict[str, Any], parent: ParentLink | None) -> None:
    """A fork repeats its parent's header, which is no second conversation."""
    rollout = Rollout()
    rollout.rows[0]["payload"] |= header
    rollout.row("session_meta", id="other", timestamp="2026-01-20T08:00:00Z")
    rollout.user("Hi")
    recording = rollout.read()
    assert (recording.id, recording.parent) == ("codex-1", parent)
    assert recording.report.counts["second_conversation"] == ("forked_from_id" not in header)


@pytest.mark.parametrize("rewritten", [True, False])
@pytest.mark.parametrize(
    "header",
    [{"forked_from_id": "codex-1"}, {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "codex-1"}}}}],
)
def test_what_a_fork_copied_is_counted_in_its_parent_alone(header: dict[str, Any], rewritten: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Its calls stay calls, without usage; most versions give what they copy the time of the copying."""
    parent = Rollout()
    for number in range(3):
        parent.user(f"Question {number}")
        parent.answer(f"Answer {number}")
        parent.count()
    fork = Rollout("codex-2")
    fork.rows[0]["payload"] |= header
    fork.rows, fork.total = [{**fork.rows[0]}, *[{**row} for row in parent.rows]], parent.total
    fork.rows[0]["timestamp"] = "2026-01-20T09:30:00.000Z"
    for number, row in enumerate(fork.rows[1:] if rewritten else []):
        row["timestamp"] = f"2026-01-20T09:30:00.{number:03}Z"
    own = len(fork.rows)
    fork.user("What else?")
    fork.answer("This.")
    fork.count(500, 0, 7)
    for number, row in enumerate(fork.rows[own:]):
        row["timestamp"] = f"2026-01-20T09:30:{number + 2:02}.000Z"
    recording = fork.read()
    assert [called.usage.sent_tokens for called in calls(recording)] == [0, 0, 0, 500]
    assert [called.usage.sent_tokens for called in calls(parent.read())] == [1000] * 3
    assert recording.report.counts["second_conversation"] == 0


def test_what_the_client_says_in_the_users_place_opens_no_turn() -> None:
    """Environment, project instructions and aborts are the client's; developers speak as the system."""
    rollout = Rollout()
    rollout.item("message", role="developer", content=[{"type": "input_text", "text": "Be brief."}])
    for text in ("# AGENTS.md instructions for /repo\n\nx", "<user_instructions>x", "<turn_aborted>\nx", "Hi"):
        rollout.user(text)
    found = [type_ for type_, _ in told(rollout.read())]
    assert found == ["system.message", *["client.message"] * 3, "user.prompt"]


@pytest.mark.parametrize(
    "text",
    [
        '<codex_internal_context source="goal">\nGo on.\n</codex_internal_context>',
        "<goal_context>Go on.</goal_context>",
        "<recommended_plugins>\n- Drive\n</recommended_plugins>",
        '<hook_prompt hook_run_id="h1">Run the tests.</hook_prompt>',
    ],
)
def test_what_newer_clients_say_in_the_users_place_opens_no_turn(text: str) -> None:
    """Goals, plugins and hooks speak in the user's role."""
    rollout = Rollout()
    rollout.user("Hi")
    rollout.answer("Hello")
    rollout.user(text)
    assert [(b.type, b.turn_id) for b in blocks(rollout.read())][-1] == ("client.message", "turn_1")


def test_a_message_may_say_of_each_part_whose_it_is() -> None:
    """Then no text is judged by how it begins."""
    rollout = Rollout()
    more = [{"type": "input_text", "text": "<skill> is what I ask about."}]
    row = rollout.user("The model was changed.", *more)
    kinds_of_parts = ["model.notice", "user.text"]
    row["payload"]["internal_chat_message_metadata_passthrough"] = {"content_item_kinds": kinds_of_parts}
    assert [b.type for b in blocks(rollout.read())] == ["client.message", "user.prompt"]


def test_aborted_turns_rollbacks_and_unknown_records_are_reported() -> None:
    """Nothing that is not understood is lost silently; an item of an unknown type is kept whole, too."""
    rollout = Rollout()
    rollout.user("Hi")
    rollout.call("a")
    rollout.event("turn_aborted", reason="interrupted")
    rollout.event("thread_rolled_back", num_turns=1)
    rollout.event("something_new", x=1)
    rollout.row("row_of_a_new_kind", x=1)
    rollout.item("brand_new", x=1)
    rollout.item("ghost_snapshot", ghost_commit={"id": "x"})
    recording = rollout.read()
    counts = recording.report.counts
    assert (counts["aborted_turn"], counts["rolled_back"], counts["unknown_record"]) == (1, 1, 3)
    assert counts["unanswered_call"] == 1
    assert blocks(recording)[-1].data == {"type": "brand_new", "x": 1}


def test_instructions_are_imported_once() -> None:
    """An old header's instructions are left out where a message holds them."""
    alone = Rollout(instructions="Use tabs.")
    alone.user("Hi")
    both = Rollout(instructions="Use tabs.")
    both.user("<user_instructions>\n\nUse tabs.\n\n</user_instructions>")
    both.user("Hi")
    assert [type_ for type_, _ in told(alone.read())] == ["system.message", "user.prompt"]
    assert [type_ for type_, _ in told(both.read())] == ["client.message", "user.prompt"]


def old_rows() -> list[dict[str, Any]]:
    """Make the rows of a rollout before there was an envelope."""
    return [
        {"id": "old-1", "timestamp": "2025-07-01T10:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None},
        {"type": "function_call", "id": "fc_1", "name": "shell", "arguments": "{}", "call_id": "a"},
        {"type": "function_call_output", "call_id": "a", "output": "ok"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
    ]


def test_rollouts_without_an_envelope_are_read(tmp_path: Path) -> None:
    """Bare items begin at the header's time, which is all that is known; so do those of the first version's JSON."""
    file, document = tmp_path / "rollout.jsonl", tmp_path / "rollout.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in old_rows()), encoding="utf-8")
    header, _, *items = old_rows()
    document.write_text(json.dumps({"session": header, "items": items}), encoding="utf-8")
    (lines,), (whole,) = read_recording(file), read_recording(document)
    assert (lines.id, whole.id) == ("old-1", "old-1")
    assert told(lines) == told(whole)
    assert [type_ for type_, _ in told(lines)][-1] == "assistant.completion"
    assert {event.at.isoformat() for event in lines.events} == {"2025-07-01T10:00:00+00:00"}
    assert lines.report.counts["missing_time"] > 0


async def test_a_session_that_is_imported_before_its_newest_count_has_each_call_once() -> None:
    """The count comes behind the items of its response; until then there is no call."""
    rollout = Rollout()
    rollout.user("Hi")
    rollout.answer("Hello")
    store = MemoryStore()
    await import_recording(store, rollout.read())
    assert rollout.read().report.counts["missing_usage"] == 1
    rollout.count()
    await import_recording(store, rollout.read())
    found = [event.payload async for event in store.read("codex-1", types=["model.called"])]
    assert [call.usage.output_tokens for call in found if isinstance(call, ModelCalled)] == [40]


def test_the_last_response_of_a_turn_that_is_over_is_a_call_without_a_count() -> None:
    """An aborted response gets no count; neither does any of a provider that tells none."""
    aborted, untold = Rollout(), Rollout()
    for rollout in (aborted, untold):
        rollout.user("Hi")
        rollout.answer("Hel")
    aborted.event("turn_aborted", reason="interrupted")
    untold.user("Again")
    untold.answer("Hello")
    assert (len(calls(aborted.read())), len(calls(untold.read()))) == (1, 2)


async def test_a_session_that_was_resumed_adds_what_is_new() -> None:
    """Rows have no ids: their lines are their keys, and a file grows at its end."""
    rollout = Rollout()
    rollout.user("First")
    rollout.answer("Yes")
    rollout.count()
    store = MemoryStore()
    first = await import_recording(store, rollout.read())
    rollout.user("Second")
    rollout.answer("No")
    rollout.count()
    again = await import_recording(store, rollout.read())
    assert (again.known, again.events) == (first.events, 3)
    assert (await import_recording(store, rollout.read())).events == 0


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda v: st.lists(v, max_size=3), max_leaves=5))
def test_any_value_in_any_field_is_read_without_an_error(value: Any) -> None:
    """A field that is something else than it should be costs its row at most."""
    rollout = Rollout()
    rollout.user("Hi")
    rollout.call("a")
    rollout.result("a")
    rollout.count()
    rollout.row("compacted", message="x")
    for row in list(rollout.rows):
        for key in row["payload"]:
            rollout.rows.append({**row, "payload": {**row["payload"], key: value}})
    assert read_codex(rollout.text().encode("utf-8", "surrogatepass"), "file")


def readable(text: str) -> dict[str, Any]:
    """Make the part of an agent's message that can be read."""
    return {"type": "input_text", "text": text}


def delivery(kind: str, task: str, sender: str, payload: str = "") -> str:
    """Return an agent's message in the form that Codex gives it."""
    return f"Message Type: {kind}\nTask name: {task}\nSender: {sender}\nPayload:\n{payload}"


def test_what_another_agent_says_is_said_to_the_model(tmp_path: Path) -> None:
    """In the user's role with its sender, between the responses; a task that is handed over begins a turn."""
    rollout = Rollout()
    rollout.agent("/lead", "/lead/audit", readable(delivery("NEW_TASK", "/lead/audit", "/lead", "Audit it.")))
    rollout.call("a", command=["ls"])
    rollout.count()
    rollout.result("a")
    rollout.agent("/lead", "/lead/audit", readable("Leave the tests out."), triggers=False)
    rollout.answer("All is well.")
    rollout.count(1100, 1000, 8)
    rollout.agent("/lead", "/lead/audit", readable("Look again."), triggers=True)
    rollout.answer("Still well.")
    rollout.count(1200, 1100, 8)
    (recording,) = read_recording(rollout.write(tmp_path))
    assert kinds(recording) == [
        "user.prompt",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "client.message",
        "assistant.completion",
        "ModelCalled",
        "user.prompt",
        "assistant.completion",
        "ModelCalled",
    ]
    said = [b for b in blocks(recording) if b.author in {"user", "client"}]
    assert [b.text for b in said[1:]] == ["Leave the tests out.", "Look again."]
    assert all(b.meta == {"author": "/lead", "recipient": "/lead/audit"} for b in said)
    assert [b.turn_id for b in said] == ["turn_1", "turn_1", "turn_2"]
    assert "unknown_record" not in recording.report.counts


def test_an_agents_message_that_is_encrypted_says_so_and_is_kept(tmp_path: Path) -> None:
    """The model of its recipient can read it, and nobody else."""
    rollout = Rollout()
    rollout.user("Review it.")
    rollout.answer("I asked for it.")
    rollout.count()
    head = readable(delivery("FINAL_ANSWER", "/lead", "/lead/review"))
    rollout.agent("/lead/review", "/lead", head, {"type": "encrypted_content", "encrypted_content": "gAAAAAB"})
    (recording,) = read_recording(rollout.write(tmp_path))
    answer = blocks(recording)[-1]
    assert answer.type == "client.message"
    assert answer.text.endswith("Payload:\n[encrypted by the provider]")
    assert answer.meta["encrypted_content"] == ["gAAAAAB"]


def test_an_agents_message_in_a_row_of_its_own_is_the_same(tmp_path: Path) -> None:
    """As versions wrote it before it was an item."""
    rollout = Rollout()
    told = {"author": "/lead", "recipient": "/lead/audit", "other_recipients": []}
    rollout.row("inter_agent_communication", **told, content="Audit it.", trigger_turn=True)
    rollout.answer("All is well.")
    rollout.count()
    rollout.row("inter_agent_communication", **told, content="Thanks.", trigger_turn=False)
    rollout.item("agent_message", author="/lead", recipient="/lead/audit", content=[])
    (recording,) = read_recording(rollout.write(tmp_path))
    assert [(b.type, b.text) for b in blocks(recording)] == [
        ("user.prompt", "Audit it."),
        ("assistant.completion", "All is well."),
        ("client.message", "Thanks."),
    ]
    assert recording.report.counts["invalid"] == 1


def ended(rollout: Rollout, status: int, source: str = "unified_exec_startup") -> None:
    """Add the client's note that a command ended."""
    item = {"type": "CommandExecution", "id": "exec-1", "source": source, "exit_code": status}
    rollout.event("item_completed", item=item)


def scripts(*results: tuple[str, str, list[int]]) -> list[ToolResult]:
    """Return the results of calls that are scripts, each with its output and how the commands in it ended."""
    rollout = Rollout()
    rollout.user("go")
    for call_id, output, statuses in results:
        rollout.item("custom_tool_call", call_id=call_id, name="exec", input="await tools.exec_command({cmd: 'make'})")
        for status in statuses:
            ended(rollout, status)
        said = [{"type": "input_text", "text": f"{output}\nWall time 0.4 seconds\nOutput:\n"}]
        rollout.item("custom_tool_call_output", call_id=call_id, output=said)
    return [block for block in blocks(rollout.read()) if isinstance(block, ToolResult)]


def test_a_script_has_the_exit_status_of_the_first_of_its_commands_that_failed() -> None:
    """Since the model's calls are scripts, their outputs do not say how commands ended; the client notes it beside."""
    done = "Script completed"
    found = scripts(("a", done, [0]), ("b", done, [0, 2, 1]), ("c", done, []))
    assert [result.exit_status for result in found] == [0, 2, None]
    assert not any(result.is_error for result in found)


def test_a_script_that_failed_is_an_error() -> None:
    """Its output says so in its first line."""
    [failed] = scripts(("a", "Script failed", []))
    assert failed.is_error


def test_a_command_that_the_user_typed_ends_no_call() -> None:
    """The client notes it in the same form, while a call waits."""
    rollout = Rollout()
    rollout.user("go")
    rollout.item("custom_tool_call", call_id="a", name="exec", input="text('hm')")
    ended(rollout, 1, source="user_shell")
    rollout.item("custom_tool_call_output", call_id="a", output="Script completed")
    [result] = [block for block in blocks(rollout.read()) if isinstance(block, ToolResult)]
    assert result.exit_status is None


def test_of_two_calls_that_wait_neither_has_the_status_of_a_command() -> None:
    """The client's note does not say whose command ended."""
    rollout = Rollout()
    rollout.user("go")
    for call_id in ("a", "b"):
        rollout.item("custom_tool_call", call_id=call_id, name="exec", input="text('hm')")
    ended(rollout, 1)
    for call_id in ("a", "b"):
        rollout.item("custom_tool_call_output", call_id=call_id, output="Script completed")
    results = [block for block in blocks(rollout.read()) if isinstance(block, ToolResult)]
    assert [result.exit_status for result in results] == [None, None]
