"""`load` with ``resume="compacted"``: a session in the client's own format that begins with our context."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.depth import sampled
from tests.importers.session import use
from tests.integrations.claude_agent_sdk.test_sessions import rows_of
from tests.integrations.claude_agent_sdk.written import KEY, SUB, Written, feed, opened
from tests.recorded import needs_recordings, swept
from timeline import Timeline, open_store, policies
from timeline.importers import read_recording
from timeline.integrations.claude_agent_sdk import TimelineSessionStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.policy.model import Policy
    from timeline.ports import EventStore


def compacted(store: EventStore, policy: Policy | None = None) -> TimelineSessionStore:
    """Return a session store that hands out what a small policy shows."""
    return TimelineSessionStore(store, resume="compacted", policy=policy or policies.cut_point(max_tokens=3_000))


async def loaded(sessions: TimelineSessionStore, key: Any = KEY) -> list[dict[str, Any]]:
    """Load a session that is there."""
    rows = await sessions.load(key)
    assert rows is not None
    return rows


def told(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages that the client sends: from the newest boundary on, along the links, roles merged."""
    by_id = {row["uuid"]: row for row in rows if "uuid" in row}
    newest, chain = next((row for row in reversed(rows) if "uuid" in row), None), []
    while newest is not None:
        chain.append(newest)
        newest = by_id.get(newest["parentUuid"])
    messages: list[dict[str, Any]] = []
    for row in reversed(chain):
        if "message" not in row:
            continue
        content = row["message"]["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if messages and messages[-1]["role"] == row["message"]["role"]:
            messages[-1]["content"] = [*messages[-1]["content"], *parts]
        else:
            messages.append({"role": row["message"]["role"], "content": list(parts)})
    return messages


def listed(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages with each text as a part, as `told` has them."""
    return [
        {**m, "content": [{"type": "text", "text": m["content"]}] if isinstance(m["content"], str) else m["content"]}
        for m in messages
    ]


async def test_a_session_that_the_policy_shows_whole_is_loaded_as_it_is() -> None:
    """There is nothing to spare."""
    session = Written().works(1)
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        assert await loaded(compacted(store, policies.balanced(max_tokens=80_000))) == session.rows


async def test_a_session_of_whose_newest_result_only_numbers_are_left_out_is_loaded_as_it_is() -> None:
    """All of it is in sight: that is no reason to write a session anew that was interrupted behind the result."""
    session = Written().works(1)
    session.user("Read the file.")
    session.asks(use("call_2", "Read", file_path="a.py"))
    session.result("call_2", "\n".join(f"{number:6}→this is line {number} of the file" for number in range(1, 60)))
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        rows = await loaded(compacted(store, policies.balanced(max_tokens=80_000)))
        assert any(item.state == "abridged" for item in (await opened(store)).window.items)
    assert rows == session.rows


async def test_a_compacted_session_says_what_the_policy_shows() -> None:
    """Behind a boundary, as the client writes one: the links lead from the newest row to it and end there."""
    session = Written().works(12)
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        rows = await loaded(compacted(store))
        context = await (await opened(store)).render()
    assert (rows[0]["subtype"], rows[0]["parentUuid"]) == ("compact_boundary", None)
    assert rows[0]["logicalParentUuid"] == session.rows[-1]["uuid"]
    assert rows[0]["compactMetadata"]["preTokens"] > 3_000
    assert [row["parentUuid"] for row in rows[1:]] == [row["uuid"] for row in rows[:-1]]
    assert {row["sessionId"] for row in rows} == {KEY["session_id"]}
    (summary,) = (row for row in rows if row.get("isCompactSummary"))
    assert summary["message"]["content"].startswith("[Summary of the earlier conversation")
    bare = context.model_copy(update={"neutral": context.neutral.model_copy(update={"cache_points": ()})})
    assert told(rows) == listed(bare.to_anthropic()["messages"])
    assert len(json.dumps(rows)) < len(json.dumps(session.rows)) / 2


async def test_the_client_is_given_our_count_of_the_context_not_the_one_before() -> None:
    """It compacts by the newest usage: one from before would have it compact at once."""
    async with open_store("memory://") as store:
        await feed(store, Written().works(12).rows)
        rows = await loaded(compacted(store))
        tokens = (await opened(store)).window.tokens
    usages = [row["message"]["usage"] for row in rows if row["type"] == "assistant"]
    assert usages
    assert all(sum(usage.values()) == tokens for usage in usages)


async def test_the_same_session_is_handed_out_as_the_same_lines() -> None:
    """Loading changes nothing that the next load sees, and nothing of the lines that are kept."""
    session = Written().works(12)
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        sessions = compacted(store)
        assert await loaded(sessions) == await loaded(sessions) == await loaded(compacted(store))
        assert await loaded(TimelineSessionStore(store)) == session.rows


async def test_what_was_handed_out_is_kept_once_the_client_goes_on_from_it(tmp_path: Path) -> None:
    """The log has what happened; a later load as it was goes on from the same context, and so does the next process."""
    session = Written().works(12)
    async with open_store(tmp_path / "agent.db") as store:
        await feed(store, session.rows)
        sessions = compacted(store)
        handed = await loaded(sessions)
        before = len((await opened(store)).window.items)
        next_prompt = Written(f"{KEY['session_id']}-next", answers=100)
        next_prompt.user("And now?", parentUuid=handed[-1]["uuid"])
        next_prompt.ends("All is well.")
        state = {"type": "mode", "mode": "normal"}  # by itself, where the SDK flushes eagerly
        await sessions.append(KEY, [state])
        await sessions.append(KEY, [{"type": "last-prompt", "lastPrompt": "And now?"}, *next_prompt.rows])
    async with open_store(tmp_path / "agent.db") as store:
        rows = await loaded(TimelineSessionStore(store))
        assert rows == [
            *session.rows,
            state,
            *handed,
            {"type": "last-prompt", "lastPrompt": "And now?"},
            *next_prompt.rows,
        ]
        said = [part["text"] for message in told(rows)[-2:] for part in message["content"] if "text" in part]
        assert said[-2:] == ["And now?", "All is well."]
        timeline = await opened(store)
        assert len(timeline.window.items) == before + 2
        assert (await timeline.verify()).ok
        texts = [item.block.text for item in timeline.window.items]
        assert texts[-2:] == ["And now?", "All is well."]
        again = await loaded(compacted(store))
        assert told(again)[-1]["content"][0]["text"] == "All is well."


async def test_a_session_that_the_client_compacted_itself_is_loaded_as_it_is_until_ours_is_smaller() -> None:
    """Its own summary is one of the log, and covered by ours."""
    session = Written().works(6)
    session.row("system", parentUuid=None, subtype="compact_boundary", compactMetadata={"trigger": "auto"})
    session.user("The story so far.", isCompactSummary=True)
    session.works(1)
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        assert await loaded(compacted(store)) == session.rows
        await feed(store, session.works(12).rows)
        rows = await loaded(compacted(store))
    assert rows[0]["subtype"] == "compact_boundary"
    (summary,) = (row for row in rows if row.get("isCompactSummary"))
    assert "The story so far." in summary["message"]["content"]


async def test_what_the_client_kept_word_for_word_behind_its_own_summary_is_handed_out_too() -> None:
    """Newer versions keep the newest messages, and name their rows in the boundary; they are written once."""
    session = Written().works(3)
    kept = [row["uuid"] for row in session.rows[-7:] if "uuid" in row]
    metadata = {"trigger": "auto", "preservedMessages": {"anchorUuid": "x", "uuids": kept}}
    session.row("system", parentUuid=None, subtype="compact_boundary", compactMetadata=metadata)
    session.user("The story so far.", isCompactSummary=True)
    session.user("And now?", parentUuid=kept[-1])
    session.ends("All is well.")
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        timeline = await opened(store)
        texts = [item.block.text for item in timeline.window.items if not item.omitted]
        assert "The story so far." in texts[0]
        assert texts[1:3] == ["Step 2", "Running."]
        assert texts[-3:] == ["Step 2 is done.", "And now?", "All is well."]
        assert await loaded(compacted(store, policies.balanced(max_tokens=80_000))) == session.rows
        await timeline.hide(timeline.window.items[-2].block.path, mode="omit")
        messages = str(told(await loaded(compacted(store, policies.balanced(max_tokens=80_000)))))
    assert "made 2" in messages
    assert "made 1" not in messages


async def test_a_session_that_is_forked_from_a_compacted_one_has_its_context_and_no_call_of_it() -> None:
    """The client copies what it was handed into the new session; no model was called for that."""
    forked = {**KEY, "session_id": "7b1f0c52-7f7e-4c0e-9d55-0d3a5d7c1b11"}
    async with open_store("memory://") as store:
        await feed(store, Written().works(12).rows)
        sessions = compacted(store)
        handed = await loaded(sessions)
        copied = [{**row, "sessionId": forked["session_id"]} for row in handed]
        await sessions.append(forked, copied)
        timeline, source = await opened(store, forked["session_id"]), await opened(store)
        assert timeline.window.tokens > source.window.tokens / 2
        assert timeline.window.items[-1].block.text == source.window.items[-1].block.text
        assert timeline.window.summaries
        assert [call async for call in timeline.calls()] == []
        assert await loaded(sessions) == handed
        assert await loaded(TimelineSessionStore(store), forked) == copied


async def test_a_call_that_was_never_answered_is_answered_by_a_fixed_text() -> None:
    """The client was killed while a tool ran: what it is handed is a request that a provider takes."""
    session = Written().works(12)
    session.user("One more.")
    session.asks(use("open", command="sleep 1000"))
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        messages = told(await loaded(compacted(store)))
    assert messages[-1]["content"][0]["tool_use_id"] == "open"
    assert "interrupted" in messages[-1]["content"][0]["content"]


async def test_a_subagent_and_a_session_that_is_not_there_are_loaded_as_they_are() -> None:
    """The client reads a subagent's transcript itself."""
    async with open_store("memory://") as store:
        sessions = compacted(store)
        assert await sessions.load(KEY) is None
        side = Written().works(12)
        await sessions.append(SUB, side.rows)
        assert await loaded(sessions, SUB) == side.rows


@needs_recordings
@sampled
@pytest.mark.parametrize("path", swept("claude-code/*.jsonl"), ids=lambda path: path.stem)
async def test_recorded_sessions_are_handed_out_compacted_and_read_back_as_such(path: Path, tmp_path: Path) -> None:
    """Those with boundaries, too: what is handed out is a session that the importer reads as our context."""
    rows = rows_of(path)
    key = {"project_key": "p", "session_id": next(row["sessionId"] for row in rows if row.get("sessionId"))}
    async with open_store("memory://") as store:
        for start in range(0, len(rows), 100):
            await TimelineSessionStore(store).append(key, rows[start : start + 100])
        handed = await loaded(compacted(store, policies.balanced(max_tokens=20_000)), key)
        assert await loaded(TimelineSessionStore(store), key) == rows
        shown = await (await Timeline.open(store, key["session_id"], create=False)).render()
        tokens = shown.window.tokens
    assert handed[0]["subtype"] == "compact_boundary"
    file = tmp_path / "handed.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in handed), encoding="utf-8")
    (recording, *_) = read_recording(file)
    assert recording.report.counts["orphan_result"] == recording.report.counts["unanswered_call"] == 0
    assert tokens < 20_000
