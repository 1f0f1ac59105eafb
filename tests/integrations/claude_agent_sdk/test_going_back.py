"""A session that is resumed at an earlier row: what came behind it is abandoned."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.depth import sampled
from tests.importers.session import use
from tests.integrations.claude_agent_sdk.test_resuming import compacted, loaded, told
from tests.integrations.claude_agent_sdk.test_sessions import rows_of
from tests.integrations.claude_agent_sdk.written import KEY, Written, feed, opened
from tests.log.counted import Counted
from tests.recorded import needs_recordings, swept
from timeline import open_store, policies
from timeline.importers.builder import UNKNOWN_TIME
from timeline.importers.claude_code import SessionFollower

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.timeline import Timeline


def edited() -> Written:
    """Return a session whose second question was edited: the new one goes on from the first answer."""
    session = Written()
    session.user("one")
    first = session.ends("answer one")
    session.row("attachment", attachment={"type": "date"})
    session.user("two")
    session.asks(use("a", command="make"))
    session.result("a", "made")
    session.ends("answer two")
    session.user("two, but other", parentUuid=first["uuid"])
    session.ends("answer three")
    return session


def shown(timeline: Timeline) -> list[str]:
    """Return the texts that the model is sent."""
    return [item.block.text for item in timeline.window.items if not item.omitted]


async def test_going_back_reads_no_event_before_the_place_that_it_goes_back_behind() -> None:
    """So it costs what is left, and not what the session did before."""
    read: list[int] = []
    for rounds in (10, 50):
        store, session = Counted(), Written().works(rounds)
        sessions = await feed(store, session.rows)
        place = session.ends("Shall I go on?")["uuid"]
        session.user("Yes")
        session.ends("Here it is.")
        await sessions.append(KEY, session.rows[-3:])
        session.user("No", parentUuid=place)
        store.events = 0
        await sessions.append(KEY, session.rows[-1:])
        read.append(store.events)
        assert shown(await opened(store))[-2:] == ["Shall I go on?", "No"]
    assert read[0] == read[1]


async def test_what_a_prompt_goes_back_behind_is_omitted_as_abandoned() -> None:
    """The lines are all there; people see what was left, and no model does."""
    session = edited()
    async with open_store("memory://") as store:
        sessions = await feed(store, session.rows)
        assert await sessions.load(KEY) == session.rows
        timeline = await opened(store)
        assert shown(timeline) == ["one", "answer one", "two, but other", "answer three"]
        gone = [item for item in timeline.window.items if item.omitted]
        assert [item.block.type for item in gone] == [
            "user.prompt",
            "assistant.completion",
            "react.tool.call",
            "react.tool.result",
            "assistant.completion",
        ]
        assert {item.hide.reason for item in gone if item.hide is not None} == {"abandoned"}
        assert timeline.window.items[-1].block.turn_id == "turn_3"
        assert (await timeline.verify()).ok


async def test_what_was_revealed_stays_so_in_the_next_process(tmp_path: Path) -> None:
    """The lines are read again there, and say nothing new."""
    session = edited()
    async with open_store(tmp_path / "agent.db") as store:
        await feed(store, session.rows)
        timeline = await opened(store)
        two = next(item.block.path for item in timeline.window.items if item.block.text == "two")
        await timeline.reveal(two)
        assert "answer two" in shown(timeline)
    async with open_store(tmp_path / "agent.db") as store:
        session.user("four")
        await feed(store, session.rows)
        assert {"two", "answer two", "four"} <= {*shown(await opened(store))}


async def test_a_compaction_over_what_was_left_is_undone() -> None:
    """No summary says what never happened."""
    session = Written().works(12)
    place = next(row for row in session.rows if row.get("message", {}).get("content") == "Step 2")
    before = session.rows[session.rows.index(place) - 2]["uuid"]
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        assert (await loaded(compacted(store)))[0]["subtype"] == "compact_boundary"
        assert (await opened(store)).window.summaries
        session.user("Something else.", parentUuid=before)
        await feed(store, session.rows)
        timeline = await opened(store)
        assert not timeline.window.summaries
        assert shown(timeline)[-2:] == ["Step 1 is done.", "Something else."]
        messages = str(told(await loaded(compacted(store, policies.cut_point(max_tokens=1_500)))))
        assert "Something else." in messages
        assert "Step 7" not in messages


@pytest.mark.parametrize(
    ("at", "texts"),
    [
        ("Running.", ["Running."]),
        ('"name": "Read"', ["Running."]),
        ("tested", ["Running.", "tested"]),
        ("made", ["Running.", "tested", "made"]),
    ],
)
async def test_a_response_is_kept_up_to_the_row_that_the_session_is_resumed_at(at: str, texts: list[str]) -> None:
    """What its calls said behind that row is in the client's context no more; a call without a result is none."""
    session = Written()
    session.user("go")
    session.asks(use("a", command="make"), use("b", "Read", file_path="test"))
    session.result("b", "tested", parentUuid=session.rows[-1]["uuid"])
    session.result("a", "made", parentUuid=session.rows[-3]["uuid"])
    session.ends("All is made.")
    place = next(row for row in session.rows if at in json.dumps(row))
    session.user("Something else.", parentUuid=place["uuid"])
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        timeline = await opened(store)
        assert [text for text in shown(timeline) if text] == ["go", *texts, "Something else."]
        sent = str((await timeline.render()).to_anthropic())
        assert "interrupted" not in sent
        assert "All is made." not in sent


async def test_a_branch_that_was_left_is_taken_up_again() -> None:
    """The session is resumed at a row of it: its rows are shown again, up to that one, and the other branch is left."""
    session = edited()
    two = next(row for row in session.rows if "answer two" in json.dumps(row))
    session.user("four", parentUuid=two["uuid"])
    session.ends("answer four")
    three = next(row for row in session.rows if "answer three" in json.dumps(row))
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        timeline = await opened(store)
        texts = ["one", "answer one", "two", "Running.", "", "made", "answer two", "four", "answer four"]
        assert shown(timeline) == texts
        session.user("five", parentUuid=three["uuid"])
        await feed(store, session.rows)
        timeline = await opened(store)
        assert shown(timeline) == ["one", "answer one", "two, but other", "answer three", "five"]
        assert (await timeline.verify()).ok


async def test_the_clients_own_messages_may_come_before_the_prompt_that_goes_back() -> None:
    """A command begins with a caveat of the client's."""
    session = edited()
    one = next(row for row in session.rows if "answer one" in json.dumps(row))
    session.user("Caveat: what follows is a command.", isMeta=True, parentUuid=one["uuid"])
    session.user("<command-name>/cost</command-name>")
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        texts = shown(await opened(store))
        assert texts[:2] == ["one", "answer one"]
        assert texts[2:] == ["Caveat: what follows is a command.", "<command-name>/cost</command-name>"]


async def test_parallel_calls_fork_the_links_and_leave_nothing() -> None:
    """A prompt behind the result that came first names that one."""
    session = Written()
    session.user("go")
    session.asks(use("a", command="make"), use("b", command="test"))
    session.result("b")
    first = session.result("a")
    session.row("user", parentUuid=session.rows[-2]["uuid"], message={"role": "user", "content": "stop"})
    assert first["uuid"] != session.rows[-1]["parentUuid"]
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        assert all(not item.omitted for item in (await opened(store)).window.items)


async def test_rows_that_name_each_other_are_read_to_an_end() -> None:
    """A damaged file may have such."""
    session = Written()
    session.user("go", parentUuid="later")
    session.row("attachment", uuid="x", parentUuid="y")
    session.row("attachment", uuid="y", parentUuid="x")
    session.user("on", parentUuid="x")
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        assert shown(await opened(store)) == ["go", "on"]


@needs_recordings
@sampled
@pytest.mark.parametrize("path", swept("claude-code/*.jsonl"), ids=lambda path: path.stem)
def test_no_prompt_of_a_recorded_session_is_taken_for_one_that_goes_back(path: Path) -> None:
    """None of them does."""
    follower = SessionFollower()
    for row in rows_of(path):
        assert not any(follower.turned_by(row))
        follower.read(row, UNKNOWN_TIME)
