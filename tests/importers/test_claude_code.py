from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.session import START, Session, block_of, blocks, kinds, said, thought, use
from tests.recorded import needs_recordings, recorded
from timeline.blocks import Attachment, CustomBlock, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled, ParentLink
from timeline.importers import ImportedCompaction, ImportedHide, Recording, read_recording
from timeline.importers.claude_branches import Turned
from timeline.importers.claude_code import SessionFollower, read_claude_code
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path


def read(session: Session) -> Recording:
    """Read a session's main conversation without a file."""
    return read_claude_code(session.text().encode(), "file")[0]


def calls(recording: Recording) -> list[ModelCalled]:
    """Return the model calls of a recording."""
    return [e.payload for e in recording.events if isinstance(e.payload, ModelCalled)]


def test_rows_of_one_response_are_collected_before_its_results() -> None:
    """A call that was answered while its response still streamed stands behind the whole response."""
    session = Session()
    session.user("go")
    session.answer("m1", thought("hm"))
    session.answer("m1", use("a"))
    session.result("a")
    session.answer("m1", use("b"))
    session.result("b")
    session.answer("m2", said("done"))
    assert kinds(read(session)) == [
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


def test_what_a_branch_copied_is_counted_in_its_parent_alone(tmp_path: Path) -> None:
    """Its rows name the session that they are from; some versions write each of them twice."""
    branch = Session("branch")
    copied: dict[str, Any] = {"forkedFrom": {"sessionId": "session-1", "messageUuid": "u"}}
    for number, more in enumerate((copied, {}, {})):
        branch.user(f"Question {number}", **more)
        branch.answer(f"msg_{max(number, 1)}", said(f"Answer {number}"), **more)
    recording = branch.read(tmp_path)
    assert recording.parent == ParentLink(conversation="session-1", relation="fork")
    calls = [event.payload for event in recording.events if isinstance(event.payload, ModelCalled)]
    assert [called.usage.sent_tokens for called in calls] == [0, 1053]


def test_usage_is_counted_once_a_response_from_its_last_row() -> None:
    """Each row repeats the usage, and only the last one has it whole."""
    session = Session()
    session.user("go")
    session.answer("m1", said("a"))
    session.answer("m1", said("b"))["message"] |= {"usage": {"output_tokens": 99}, "stop_reason": "end_turn"}
    (call,) = calls(read(session))
    assert (call.usage, call.finish_reason, call.started_at) == (
        Usage(output_tokens=99),
        "end_turn",
        START.replace(second=1),
    )


def test_cache_tokens_are_told_apart_by_lifetime() -> None:
    """Writes for five minutes and for an hour have prices of their own."""
    session = Session()
    session.answer("m1", said("a"))
    session.answer("m2", said("b"))["message"]["usage"].pop("cache_creation")
    first, second = calls(read(session))
    assert first.usage == Usage(
        input_tokens=3, output_tokens=7, cache_read_tokens=1000, cache_write_5m_tokens=20, cache_write_1h_tokens=30
    )
    assert (second.usage.cache_write_5m_tokens, second.usage.cache_write_1h_tokens) == (50, 0)


def test_what_the_client_made_up_is_no_model_call() -> None:
    """A synthetic answer keeps its text; an API error is the client's message."""
    session = Session()
    session.user("go")
    session.answer("s1", said("No response requested."), model="<synthetic>")
    session.answer("s2", said("API Error: 500"), model="<synthetic>", isApiErrorMessage=True)
    recording = read(session)
    assert kinds(recording) == ["user.prompt", "assistant.completion", "client.message"]


def test_only_a_real_prompt_opens_a_turn() -> None:
    """Slash commands, caveats, skill texts and interruptions belong to the turn that is open, by the author client."""
    session = Session()
    session.user("<command-name>/ide</command-name>")
    session.user("first")
    session.answer("m1", said("yes"))
    for chatter in ("<local-command-stdout>Bye!</local-command-stdout>", [said("[Request interrupted by user]")]):
        session.user(chatter)
    session.user([said("Base directory for this skill")], isMeta=True)
    session.user("second")
    told = [(b.type, b.author, b.turn_id) for b in blocks(read(session))]
    assert told == [
        ("client.message", "client", "turn_1"),
        ("user.prompt", "user", "turn_1"),
        ("assistant.completion", "assistant", "turn_1"),
        ("client.message", "client", "turn_1"),
        ("client.message", "client", "turn_1"),
        ("client.message", "client", "turn_1"),
        ("user.prompt", "user", "turn_2"),
    ]


def test_pictures_in_a_prompt_are_attachments_of_its_turn() -> None:
    """The content part is kept as it is, and opens no turn beside its prompt."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    session = Session()
    session.user([picture, said("see")])
    session.user([picture], isMeta=True)
    attachment, prompt, meta = blocks(read(session))
    assert isinstance(attachment, Attachment)
    assert (attachment.data, attachment.mime, attachment.turn_id) == (picture, "image/png", prompt.turn_id)
    assert meta.author == "client"


def test_reasoning_keeps_the_providers_part_as_it_is() -> None:
    """Thinking has its text, and the part with its signature; a redacted one the part alone."""
    redacted = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    session = Session()
    session.answer("m1", thought("hm"), redacted)
    first, second = blocks(read(session))
    assert isinstance(first, Reasoning)
    assert (first.text, first.data) == ("hm", thought("hm"))
    assert (second.text, second.data) == ("", redacted)


def test_results_say_what_they_answer_and_how_it_went() -> None:
    """A result has its tool's name, its error flag, its exit status, and its pictures."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    session = Session()
    session.answer("m1", use("a"), use("b"), use("c", "Read"))
    session.result("a", "Exit code 127\nno such command", is_error=True, toolUseResult="Error: Exit code 127")
    session.result("b", "ok", toolUseResult={"stdout": "ok", "stderr": "", "interrupted": False})
    session.result("c", [said("one"), said("two"), picture])
    results = [b for b in blocks(read(session)) if isinstance(b, ToolResult)]
    assert [(r.name, r.is_error, r.exit_status) for r in results] == [
        ("Bash", True, 127),
        ("Bash", False, 0),
        ("Read", False, None),
    ]
    assert (results[2].text, results[2].data) == ("one\ntwo", [said("one"), said("two"), picture])


def test_a_text_beside_a_result_is_a_prompt_behind_it() -> None:
    """What a user typed while refusing a call opens a turn."""
    session = Session()
    session.user("go")
    session.answer("m1", use("a"))
    refused = {"type": "tool_result", "tool_use_id": "a", "content": "refused", "is_error": True}
    session.user([said("use pagination"), refused])
    assert [(b.type, b.turn_id) for b in blocks(read(session))][-2:] == [
        ("react.tool.result", "turn_1"),
        ("user.prompt", "turn_2"),
    ]


def test_a_compaction_is_its_summary_with_the_boundarys_figures() -> None:
    """The boundary and the summary row are one event; what came before stays where it was."""
    session = Session()
    session.user("go")
    metadata = {"trigger": "auto", "preTokens": 155_241}
    session.row("system", subtype="compact_boundary", compactMetadata=metadata)
    session.user("This session is being continued", isCompactSummary=True)
    session.answer("m1", said("on"))
    events = read(session).events
    assert events[1].payload == ImportedCompaction("This session is being continued", "auto", 155_241)


def test_a_microcompaction_hides_the_results_that_it_names() -> None:
    """The recorded client stopped sending these results."""
    session = Session()
    session.answer("m1", use("a"))
    session.result("a")
    metadata = {"trigger": "auto", "preTokens": 9, "tokensSaved": 4, "compactedToolIds": ["a"]}
    session.row("system", subtype="microcompact_boundary", microcompactMetadata=metadata)
    assert read(session).events[-1].payload == ImportedHide(("a",), "auto", 9, 4)


def test_a_result_that_came_after_the_next_response_stays_there() -> None:
    """Moving it would show the model what it could not have seen."""
    session = Session()
    session.answer("m1", use("a"))
    session.answer("m2", said("meanwhile"))
    session.result("a")
    late = blocks(read(session))[-1]
    assert isinstance(late, ToolResult)
    assert late.name == "Bash"


def test_pairs_that_do_not_match_are_kept_and_reported() -> None:
    """Orphan results, unanswered and repeated calls and second results are findings, with their lines."""
    session = Session()
    session.answer("m1", use("a"), use("b"))
    session.result("nobody")
    session.result("a")
    session.result("a")
    session.answer("m2", use("b"))
    recording = read(session)
    assert Counter(kinds(recording))["react.tool.result"] == 3
    assert recording.report.counts == Counter(orphan_result=1, unanswered_call=1, duplicate_call=2)
    assert {(f["kind"], f["line"]) for f in recording.report.findings} == {
        ("orphan_result", 2),
        ("duplicate_call", 4),
        ("duplicate_call", 5),
        ("unanswered_call", 5),
    }


def test_a_result_before_its_call_is_put_behind_it() -> None:
    """Rows out of order still pair."""
    session = Session()
    session.user("go")
    session.result("a")
    session.answer("m1", use("a"))
    assert kinds(read(session)) == ["user.prompt", "react.tool.call", "ModelCalled", "react.tool.result"]


def test_a_row_that_is_written_again_is_read_once() -> None:
    """A resumed session repeats its last row under the same uuid; the same uuid with other content is another row."""
    session = Session()
    session.user("go")
    row = session.answer("m1", said("yes"))
    session.rows += [{**row, "version": "2.1.12"}, {**row, "message": {**row["message"], "content": [said("more")]}}]
    recording = read(session)
    assert [b.text for b in blocks(recording)] == ["go", "yes", "more"]
    assert recording.report.counts["duplicate_record"] == 1
    assert len({e.key for e in recording.events}) == len(recording.events)


def test_times_are_kept_as_recorded_and_reported_where_they_do_not_hold() -> None:
    """A clock that goes back is kept; a row without a time takes the one before it."""
    session = Session()
    session.user("one")
    session.user("two")["timestamp"] = "2026-01-20T08:00:00+01:00"
    session.user("three")["timestamp"] = "soon"
    recording = read(session)
    assert [e.at.hour for e in recording.events] == [9, 7, 7]
    assert recording.report.counts == Counter(clock_back=1, missing_time=1)


def test_the_title_is_this_sessions_own_or_its_first_prompt() -> None:
    """A summary row of another session is no title."""
    session = Session()
    session.user("\nFix the parser, please\nand more")
    foreign = {"type": "summary", "summary": "Another session", "leafUuid": "elsewhere"}
    session.rows.append(foreign)
    assert read(session).title == "Fix the parser, please"
    session.rows.append({**foreign, "summary": "Parser", "leafUuid": "session-1-uuid-1"})
    assert read(session).title == "Parser"


def test_subagents_become_conversations_of_their_own() -> None:
    """Their steps come from progress rows, with texts that have no row of their own, and link to the call."""
    session = Session()
    session.user("go")
    session.answer("m1", use("task", "Task", prompt="look"))
    inner = Session("inner")
    asked = inner.user([said("look")])
    spoke = inner.answer("n1", said("I will"))
    called = inner.answer("n1", use("x", "Grep"))
    for told, message in ((None, asked), ([asked, spoke], called), ([asked, spoke, called], inner.result("x"))):
        data: dict[str, Any] = {"type": "agent_progress", "agentId": "abc", "message": message}
        session.row("progress", data=data | ({"normalizedMessages": told} if told else {}), parentToolUseID="task")
    session.result("task", "found")
    main, agent = read_claude_code(session.text().encode(), "file")
    assert kinds(main) == ["user.prompt", "react.tool.call", "ModelCalled", "react.tool.result"]
    assert agent.id == "session-1.agent-abc"
    assert kinds(agent) == [
        "user.prompt",
        "assistant.completion",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
    ]
    assert agent.parent is not None
    assert agent.parent.model_dump() == {
        "conversation": "session-1",
        "version": None,
        "path": "tc:turn_1.task.call",
        "relation": "subagent",
    }


def test_side_chains_are_told_apart_by_their_root() -> None:
    """Rows of a side chain belong together though they name no agent, and a circle of parents ends."""
    session = Session()
    session.user("go")
    first = session.user("look", isSidechain=True)
    session.answer("n1", said("found"), isSidechain=True, parentUuid=first["uuid"])
    session.user("another", isSidechain=True, agentId="z")
    loop = session.user("round", isSidechain=True)
    loop["parentUuid"] = loop["uuid"]
    ids = [(r.id, len(r.events)) for r in read_claude_code(session.text().encode(), "file")]
    assert ids == [
        ("session-1", 1),
        ("session-1.agent-session-1-uuid-2", 3),
        ("session-1.agent-z", 1),
        ("session-1.agent-session-1-uuid-5", 1),
    ]


def test_rows_of_a_second_session_are_kept_in_file_order_and_reported() -> None:
    """The conversation has the first session's id."""
    session = Session()
    session.user("one")
    session.user("two", sessionId="session-2")
    recording = read(session)
    assert (recording.id, len(recording.events)) == ("session-1", 2)
    assert recording.report.findings[0]["kind"] == "second_conversation"


def queue(session: Session, operation: str, **fields: str) -> None:
    """Add a row of the queue of prompts, which has no uuid."""
    del session.row("queue-operation", operation=operation, **fields)["uuid"]


def test_what_a_user_said_while_the_model_worked_is_a_prompt_behind_the_results_of_its_response() -> None:
    """Only the queue has the words: the client gave them to the model when it took them out again."""
    session = Session()
    session.user("reply to all comments")
    session.answer("m1", use("a"))
    queue(session, "enqueue", content="commit first")
    queue(session, "remove")
    session.result("a")
    session.answer("m2", said("Let me commit first."))
    told = blocks(read(session))
    assert [(b.type, b.text, b.turn_id) for b in told if b.type != "react.tool.call"] == [
        ("user.prompt", "reply to all comments", "turn_1"),
        ("react.tool.result", "done", "turn_1"),
        ("user.prompt", "commit first", "turn_2"),
        ("assistant.completion", "Let me commit first.", "turn_2"),
    ]


def test_a_queued_prompt_that_the_model_was_not_given_from_the_queue_is_no_block_of_its_own() -> None:
    """It was edited, or follows as a row; the client's notices do, and are never taken out."""
    session = Session()
    session.answer("m1", said("working"))
    queue(session, "enqueue", content="sent as a row")
    queue(session, "dequeue")
    session.user("sent as a row")
    queue(session, "enqueue", content="edit me")
    queue(session, "popAll", content="edit me")
    queue(session, "enqueue", content="<task-notification>done</task-notification>")
    queue(session, "enqueue", content="given")
    queue(session, "remove")
    queue(session, "remove")
    recording = read(session)
    assert [b.text for b in blocks(recording)] == ["working", "sent as a row", "given"]
    assert recording.report.counts["skipped"] == 7


def attachment(session: Session, prompt: Any, **fields: Any) -> dict[str, Any]:
    """Add what newer clients write when they give the model a prompt from the queue."""
    return session.row("attachment", attachment={"type": "queued_command", "prompt": prompt, **fields})


def test_a_file_that_the_user_named_and_what_a_hook_said_were_given_to_the_model() -> None:
    """Newer clients write both beside the conversation; they open no turn, and other state stays the client's."""
    session = Session()
    file = {"filePath": "/p/a.py", "content": "print(1)", "numLines": 1, "startLine": 1, "totalLines": 1}
    session.row("attachment", attachment={"type": "hook_additional_context", "content": ["Be brief.", "Be kind."]})
    session.user("Explain @a.py")
    named = {"type": "file", "filename": "/p/a.py", "content": {"type": "text", "file": file}, "displayPath": "a.py"}
    attached = session.row("attachment", attachment=named)
    session.rows.append(attached)
    session.row("attachment", attachment={"type": "file", "filename": "b.png", "content": {"type": "image"}})
    session.row("attachment", attachment={"type": "todo_reminder", "content": []})
    session.row("attachment", attachment="none")
    session.answer("m1", said("It prints."))
    recording = read(session)
    told = [(block.text, block.author, block.turn_id) for block in blocks(recording) if block.type == "client.message"]
    assert told == [("Be brief.\nBe kind.", "client", "turn_1"), ("/p/a.py\n\nprint(1)", "client", "turn_1")]
    assert [block.type for block in blocks(recording)][1:3] == ["user.prompt", "client.message"]
    assert (recording.report.counts["skipped"], recording.report.counts["duplicate_record"]) == (3, 1)


def test_what_changed_in_files_and_a_folders_instructions_were_given_to_the_model() -> None:
    """The client puts each beside the conversation, with the path that it is of; a file without text says nothing."""
    session = Session()
    session.user("go")
    rules = {"path": "/p/a/RULES.md", "type": "Project", "content": "Be brief."}
    start = {"line": 2, "character": 4}
    found = {"message": "unused name", "severity": "Warning", "range": {"start": start, "end": start}}
    for attached in (
        {"type": "nested_memory", "path": "/p/a/RULES.md", "content": rules},
        {"type": "edited_text_file", "filename": "/p/a.py", "snippet": "3\tprint(2)"},
        {"type": "edited_text_file", "filename": "/p/b.py"},
        {"type": "diagnostics", "files": [{"uri": "file:///p/a.py", "diagnostics": [found]}], "isNew": True},
    ):
        session.row("attachment", attachment=attached)
    told = [block.text for block in blocks(read(session)) if block.type == "client.message"]
    assert told == [
        "/p/a/RULES.md\n\nBe brief.",
        "/p/a.py\n\n3\tprint(2)",
        "file:///p/a.py\n\n3:5 Warning: unused name",
    ]


def test_what_is_given_again_with_a_compaction_stays_behind_its_summary() -> None:
    """The client writes it between the mark and the summary; the model reads it after the summary."""
    session = Session()
    session.user("go")
    session.answer("m1", said("gone"))
    session.row("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9})
    session.row("attachment", attachment={"type": "hook_additional_context", "content": ["Be brief."]})
    session.user("A summary.", isCompactSummary=True)
    recording = read(session)
    assert kinds(recording)[-2:] == ["ImportedCompaction", "client.message"]


@pytest.mark.parametrize("rows", ["attachment", "queue", "attachment queue", "queue attachment"])
def test_a_prompt_that_the_queue_and_an_attachment_tell_is_one_block(rows: str) -> None:
    """Newer clients write both, in either order; a text that is given twice is two prompts."""
    session = Session()
    session.user("go")
    session.answer("m1", use("a"))
    for _ in range(2):
        queue(session, "enqueue", content="stop")
    session.result("a")
    for row in rows.split() * 2:
        if row == "attachment":
            attachment(session, "stop", commandMode="prompt")
        else:
            queue(session, "remove", content="stop", reason="absorbed_mid_turn")
    session.answer("m2", said("stopped"))
    assert [b.text for b in blocks(read(session)) if b.type == "user.prompt"] == ["go", "stop", "stop"]


def test_an_attached_prompt_has_its_picture_and_is_dated_when_the_model_was_given_it() -> None:
    """Its row has the time at which the user wrote; a picture is in no row of the queue."""
    session = Session()
    session.user("go")
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    queue(session, "enqueue", content="later")
    queue(session, "enqueue")
    session.answer("m1", use("a"))
    session.result("a")
    queue(session, "remove", reason="absorbed_mid_turn")
    attachment(session, [said("like this"), picture])["timestamp"] = "2026-01-20T09:00:01.000Z"
    attachment(session, "<task-notification>done</task-notification>", commandMode="task-notification")
    session.row("attachment", attachment={"type": "todo_reminder"})
    recording = read(session)
    told = blocks(recording)
    types = ["user.prompt", "react.tool.call", "react.tool.result", "user.prompt", "user.attachment", "client.message"]
    assert [b.type for b in told] == types
    assert (told[3].text, told[3].turn_id, told[3].at) == ("like this", "turn_2", told[2].at)
    assert recording.report.counts == Counter(skipped=4)


def test_a_queued_prompt_that_was_taken_out_for_another_reason_was_not_given_to_the_model() -> None:
    """The client's notices are given out of turn; a text that waits behind them goes on waiting."""
    session = Session()
    session.user("go")
    queue(session, "enqueue", content="wait")
    queue(session, "enqueue", content="never mind")
    queue(session, "remove", content="<task-notification>done</task-notification>", reason="absorbed_mid_turn")
    queue(session, "remove", content="never mind", reason="cancelled")
    queue(session, "dequeue")
    session.user("wait")
    assert [b.text for b in blocks(read(session))] == ["go", "wait"]


def test_a_followed_session_has_what_an_attachment_tells() -> None:
    """A log that grows with the session gets it at once."""
    session, follower = Session(), SessionFollower()
    rows = [session.user("go"), session.answer("m1", said("on it")), attachment(session, "stop")]
    for row in (*rows, attachment(session, "of a subagent") | {"isSidechain": True}):
        follower.read(row, START)
    assert taken(follower) == ["user.prompt", "assistant.completion", "ModelCalled", "user.prompt"]


def test_bookkeeping_is_counted_and_unknown_rows_are_reported() -> None:
    """What is no conversation costs no block, and nothing is fatal."""
    session = Session()
    session.user("go")
    session.row("progress", data={"type": "bash_progress"})
    session.row("file-history-snapshot")
    session.row("novelty")
    session.row("user", message="odd")
    session.user({"not": "content"})
    report = read(session).report
    assert report.counts == Counter(skipped=2, unknown_record=1, invalid=2)
    assert (report.lines, report.records) == (6, 6)


_parts = st.one_of(
    st.builds(said, st.text(min_size=1, max_size=8)),
    st.builds(thought, st.text(max_size=8)),
    st.builds(use, st.sampled_from(["a", "b", "c"])),
)


@given(st.lists(st.tuples(st.sampled_from(["user", "m1", "m2", "result"]), _parts), min_size=1, max_size=14))
def test_every_part_of_any_order_of_rows_is_imported_once_and_keyed_stably(
    told: list[tuple[str, dict[str, Any]]],
) -> None:
    """Texts, calls and results are all there, whatever their order, and reading again gives the same keys."""
    session = Session()
    session.user("go")
    for who, part in told:
        if who == "result":
            session.result(str(part.get("id", "a")))
        elif who == "user":
            session.user(str(part.get("text", "prompt")))
        else:
            session.answer(who, part)
    recording = read(session)
    found = blocks(recording)
    answered = [part for who, part in told if who in {"m1", "m2"}]
    assert Counter(b.call_id for b in found if isinstance(b, ToolCall)) == Counter(
        p["id"] for p in answered if p["type"] == "tool_use"
    )
    assert Counter(b.text for b in found if b.type == "assistant.completion") == Counter(
        p["text"] for p in answered if p["type"] == "text"
    )
    assert sum(isinstance(b, ToolResult) for b in found) == sum(who == "result" for who, _ in told)
    assert sum(isinstance(b, UserPrompt) for b in found) == 1 + sum(who == "user" for who, _ in told)
    keys = [e.key for e in recording.events]
    assert len(set(keys)) == len(keys)
    assert keys == [e.key for e in read(session).events]


def count_simply(path: Path) -> Counter[str]:
    """Count a recorded file's main conversation without the importer: JSON values, told apart by a few fields."""
    counts: Counter[str] = Counter()
    responses: set[str] = set()
    seen: set[str] = set()
    decoder = json.JSONDecoder()
    for line in path.read_text(encoding="utf-8").split("\n"):
        at = 0
        while at < len(line):
            row, at = decoder.raw_decode(line, at)
            counts["prompts"] += row.get("operation") == "remove"  # given to the model from the client's queue
            if row["type"] not in {"user", "assistant"} or row["uuid"] in seen:
                continue
            seen.add(row["uuid"])
            content = row["message"]["content"]
            parts = [said(content)] if isinstance(content, str) else content
            counts.update(p["type"] for p in parts if p["type"] in {"tool_use", "tool_result", "thinking"})
            if row["type"] == "assistant" and row["message"]["model"] != "<synthetic>":
                responses.add(row["message"]["id"])
            if row["type"] == "user" and not row.get("isMeta") and not row.get("isCompactSummary"):
                texts = [p["text"] for p in parts if p["type"] == "text"]
                counts["prompts"] += sum(not t.startswith(("<", "[Request interrupted")) for t in texts)
            counts["compactions"] += bool(row.get("isCompactSummary"))
    return counts + Counter(responses=len(responses))


def taken(follower: SessionFollower) -> list[str]:
    """Return what the events are that a follower gives next."""
    found = follower.take()
    return [block.type if (block := block_of(event)) else type(event.payload).__name__ for event in found]


def test_a_session_is_followed_row_by_row_and_each_event_is_given_once() -> None:
    """A call of the model is given when its response is over: it said so, or something else follows."""
    session, follower = Session(), SessionFollower()
    steps: list[tuple[dict[str, Any], list[str]]] = [
        (session.user("go"), ["user.prompt"]),
        (session.answer("m1", thought("hm")), ["assistant.reasoning"]),
        (session.answer("m1", use("a")), ["react.tool.call"]),
        (session.result("a"), ["ModelCalled", "react.tool.result"]),
        (session.answer("m2", said("done")), ["assistant.completion"]),
        (session.user("on"), ["ModelCalled", "user.prompt"]),
        (session.answer("m3", said("let me")), ["assistant.completion"]),
    ]
    for row, events in steps:
        follower.read(row, START)
        assert taken(follower) == events
    last = session.answer("m3", said("see"))
    last["message"]["stop_reason"] = "end_turn"
    follower.read(last, START)
    assert taken(follower) == ["assistant.completion", "ModelCalled"]
    assert taken(follower) == []
    assert follower.title == "go"
    assert follower.path_of_call("a") == "tc:turn_1.a.call"


def test_a_follower_reads_the_side_that_the_conversation_is_on() -> None:
    """Old versions wrote a subagent's rows into the session's file; now each subagent has a file of its own."""
    session, side = Session(), Session()
    rows = [session.user("go"), session.user("aside", isSidechain=True), session.user("on")]
    own = [side.user("aside", isSidechain=True), side.user("go on", isSidechain=True)]
    for given_rows, texts in ((rows, ["go", "on"]), (own, ["aside", "go on"])):
        follower = SessionFollower()
        for row in given_rows:
            follower.read(row, START)
        assert [block.text for event in follower.take() if (block := block_of(event))] == texts


def test_a_prompt_says_what_it_goes_back_behind() -> None:
    """Not the response that it goes on from, whose parallel calls fork the links, nor rows of the client's own."""
    session, follower = Session(), SessionFollower()
    first = session.user("one", parentUuid=None)
    answer = session.answer("m1", use("a"), parentUuid=first["uuid"])
    fork = session.answer("m1", use("b"), parentUuid=answer["uuid"])
    result = session.result("b", parentUuid=fork["uuid"])
    session.result("a", parentUuid=answer["uuid"])
    note = session.row("attachment", parentUuid=result["uuid"])
    session.user("two", parentUuid=note["uuid"])
    for row in session.rows:
        assert not any(follower.turned_by(row))
        follower.read(row, START)
    two = session.rows[-1]["uuid"]
    assert follower.turned_by(session.user("other", parentUuid=note["uuid"])) == Turned(frozenset({two}))
    assert not any(follower.turned_by(session.user("other", parentUuid=note["uuid"], isMeta=True)))
    assert not any(follower.turned_by(session.user("new", parentUuid="lost")))


@needs_recordings
def test_recorded_sessions_hold_what_a_simple_count_finds() -> None:
    """Responses, calls, results, reasoning, prompts and compactions of every real file are all imported."""
    paths = recorded("claude-code*/*.jsonl")
    assert paths
    for path in paths:
        recording = read_recording(path)[0]
        found = Counter(kinds(recording))
        assert count_simply(path) == +Counter(
            responses=found["ModelCalled"],
            tool_use=found["react.tool.call"],
            tool_result=found["react.tool.result"],
            thinking=found["assistant.reasoning"],
            prompts=found["user.prompt"],
            compactions=found["ImportedCompaction"],
        )
        turns = {b.turn_id for b in blocks(recording)}
        assert len(turns) == found["user.prompt"]
        assert not [b for b in blocks(recording) if isinstance(b, CustomBlock) and b.type != "client.message"]


def test_the_title_that_the_user_gave_goes_before_the_one_that_the_model_made() -> None:
    """Newer clients write both as rows; the newest of each counts, and another session's does not."""
    session = Session()
    session.user("go")
    rows = [
        {"type": "custom-title", "customTitle": "Cards", "sessionId": session.id},
        {"type": "ai-title", "aiTitle": "Build flashcards", "sessionId": session.id},
        {"type": "custom-title", "customTitle": "Elsewhere", "sessionId": "session-2"},
    ]
    session.rows += rows[1:]
    assert read(session).title == "Build flashcards"
    session.rows.append(rows[0])
    assert read(session).title == "Cards"


def test_rows_of_the_clients_own_state_are_no_unknown_records() -> None:
    """Newer clients note the mode of a session, and what was asked last."""
    session = Session()
    kept = {"mode": "mode", "permission-mode": "permissionMode", "last-prompt": "lastPrompt", "agent-name": "agentName"}
    session.rows += [{"type": type_, field: "x", "sessionId": session.id} for type_, field in kept.items()]
    session.user("go")
    assert read(session).report.counts == Counter(skipped=4)
