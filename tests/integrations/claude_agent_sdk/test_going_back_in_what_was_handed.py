"""A session that was handed out compacted, and is resumed at a row of what was handed out."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
import pytest

from tests.importers.session import use
from tests.integrations.claude_agent_sdk.test_going_back import shown
from tests.integrations.claude_agent_sdk.test_resuming import compacted, loaded, told
from tests.integrations.claude_agent_sdk.written import KEY, SUB, Written, feed, opened
from timeline import open_store, policies
from timeline.integrations.claude_agent_sdk import TimelineSessionStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from timeline.ports import EventStore

ROUNDS: Final = 12
TAIL: Final = policies.cut_point(max_tokens=3_000, keep_recent_tokens=1_500)
"""Shows a summary, the end of the turn before the newest one, and the newest turn whole."""

Row = dict[str, Any]


def tailed(store: EventStore) -> TimelineSessionStore:
    """Return a session store that hands out a summary with some turns behind it."""
    return compacted(store, TAIL)


def row_that_says(rows: Sequence[Row], text: str) -> Row:
    """Return the newest row with a text."""
    return next(row for row in reversed(rows) if text in json.dumps(row.get("message", row)))


def going_on(number: int, place: Row, prompt: str, answer: str) -> list[Row]:
    """Return what the client writes when it was resumed at a row."""
    written = Written(f"{KEY['session_id']}-{number}", answers=100 * number)
    written.user(prompt, parentUuid=place["uuid"])
    written.ends(answer)
    return [{**row, "sessionId": KEY["session_id"]} for row in written.rows]


async def reasons(store: EventStore) -> dict[str, str]:
    """Return the texts that are omitted, each with its reason."""
    items = (await opened(store)).window.items
    return {item.block.text: item.hide.reason for item in items if item.omitted and item.hide is not None}


async def sent_after(store: EventStore) -> str:
    """Return what a session that is resumed now sends, compacted anew."""
    return str(told(await loaded(compacted(store, policies.cut_point(max_tokens=1_500)))))


async def test_what_was_handed_out_behind_a_row_is_abandoned_with_it() -> None:
    """People see the rows' originals, and no model does: neither the answer that was left, nor what the tools said."""
    async with open_store("memory://") as store:
        await feed(store, Written().works(ROUNDS).rows)
        sessions = tailed(store)
        place = row_that_says(await loaded(sessions), "Step 10 is done.")
        await sessions.append(KEY, going_on(1, place, "Something else.", "As you like."))
        timeline = await opened(store)
        assert timeline.window.summaries
        assert shown(timeline)[-3:] == ["Step 10 is done.", "Something else.", "As you like."]
        gone = await reasons(store)
        assert {"Step 11", "Step 11 is done."} <= gone.keys()
        assert set(gone.values()) == {"abandoned"}
        assert (await timeline.verify()).ok
        sent = await sent_after(store)
        assert "As you like." in sent
        assert "Step 11" not in sent
        assert "made 11" not in sent
        await timeline.reveal(next(i.block.path for i in timeline.window.items if i.block.text == "Step 11"))
        assert {"Step 11", "Step 11 is done."} <= {*shown(await opened(store))}


@pytest.mark.parametrize(
    ("at", "kept", "left"),
    [
        ("Running.", ["Step 10 is done.", "Step 11", "Running."], ["made 11", "file 11", "Step 11 is done."]),
        ("make 11", ["Step 10 is done.", "Step 11", "Running."], ["made 11", "file 11", "Step 11 is done."]),
        ("x = 1", ["Step 11", "Running.", "made 11", "file 11"], ["Step 11 is done."]),
        ("Step 11 is done.", ["Step 11", "made 11", "Step 11 is done."], []),
    ],
)
async def test_a_response_is_kept_up_to_the_row_that_the_client_goes_on_from(
    at: str, kept: list[str], left: list[str]
) -> None:
    """The client sends a call whose result it left with a text in place of that; here it is no call any more."""
    async with open_store("memory://") as store:
        await feed(store, Written().works(ROUNDS).rows)
        sessions = tailed(store)
        place = row_that_says(await loaded(sessions), at)
        await sessions.append(KEY, going_on(1, place, "Something else.", "As you like."))
        timeline = await opened(store)
        texts = "\n".join(shown(timeline))
        assert [text for text in kept if text not in texts] == []
        assert [text for text in left if text in texts] == []
        context = await timeline.render()
        sent = str(context.to_anthropic())
        assert [text for text in left if text in sent] == []
        assert "interrupted" not in sent


async def test_at_the_summary_what_it_does_not_tell_is_abandoned_and_what_it_tells_of_a_left_turn_is_taken_back() -> (
    None
):
    """The turn whose prompt follows the summary never happened: no summary tells how it began."""
    async with open_store("memory://") as store:
        await feed(store, Written().works(ROUNDS).rows)
        sessions = tailed(store)
        handed = await loaded(sessions)
        assert handed[1]["isCompactSummary"]
        await sessions.append(KEY, going_on(1, handed[1], "Something else.", "As you like."))
        timeline = await opened(store)
        assert not timeline.window.summaries
        assert shown(timeline)[-3:] == ["Step 9 is done.", "Something else.", "As you like."]
        assert {"Step 10", "Step 10 is done.", "Step 11"} <= (await reasons(store)).keys()
        events = [event.payload.type async for event in store.read(timeline.id)]
        reverted = events.index("compaction.reverted")
        assert events[reverted + 1] == "blocks.hidden"
        again = await loaded(tailed(store))
        assert again[0]["uuid"] != handed[0]["uuid"]
        sent = str(told(again))
        assert "As you like." in sent
        assert "Step 10" not in sent
        assert "make 10" not in sent


async def test_at_the_summary_of_whole_turns_the_summary_stays() -> None:
    """What follows it is abandoned; nothing that it tells was left."""
    async with open_store("memory://") as store:
        await feed(store, Written().works(ROUNDS).rows)
        sessions = compacted(store, policies.cut_point(max_tokens=3_000, keep_recent_tokens=900, on_split="whole_turn"))
        handed = await loaded(sessions)
        await sessions.append(KEY, going_on(1, handed[1], "Something else.", "As you like."))
        timeline = await opened(store)
        assert timeline.window.summaries
        assert shown(timeline)[1:] == ["Something else.", "As you like."]
        assert "Step 11 is done." in await reasons(store)


async def test_before_the_summary_all_is_abandoned() -> None:
    """At the boundary the client has no context: it sends the new prompt alone."""
    async with open_store("memory://") as store:
        await feed(store, Written().works(ROUNDS).rows)
        sessions = tailed(store)
        handed = await loaded(sessions)
        await sessions.append(KEY, going_on(1, handed[0], "From the start.", "As you like."))
        timeline = await opened(store)
        assert shown(timeline) == ["From the start.", "As you like."]
        assert told(await loaded(tailed(store)))[0]["content"][0]["text"] == "From the start."
        assert (await timeline.verify()).ok


async def test_a_session_goes_back_twice_and_to_what_it_had_left() -> None:
    """Each time the context is that of the client: what it takes up again is shown again, what it left stays left."""
    async with open_store("memory://") as store:
        await feed(store, Written().works(ROUNDS).rows)
        sessions = tailed(store)
        handed = await loaded(sessions)
        early, late = row_that_says(handed, "Step 10 is done."), row_that_says(handed, "Step 11 is done.")
        first = going_on(1, early, "First.", "Answer one.")
        await sessions.append(KEY, first)
        await TimelineSessionStore(store).append(KEY, going_on(2, early, "Second.", "Answer two."))
        assert shown(await opened(store))[-3:] == ["Step 10 is done.", "Second.", "Answer two."]
        await sessions.append(KEY, going_on(3, late, "Third.", "Answer three."))
        texts = shown(await opened(store))
        assert texts[-3:] == ["Step 11 is done.", "Third.", "Answer three."]
        assert not {"First.", "Answer one.", "Second.", "Answer two."} & {*texts}
        await tailed(store).append(KEY, going_on(4, first[-1], "Fourth.", "Answer four."))
        timeline = await opened(store)
        assert shown(timeline)[-5:] == ["Step 10 is done.", "First.", "Answer one.", "Fourth.", "Answer four."]
        assert (await timeline.verify()).ok


async def test_what_was_left_before_a_session_is_handed_out_stays_left() -> None:
    """Also where the client goes back to a row right in front of it, or behind it."""
    session = Written().works(ROUNDS)
    session.user("Wrong.", parentUuid=session.rows[-1]["uuid"])
    session.ends("Wrong answer.")
    session.user("Right.", parentUuid=row_that_says(session.rows, "Step 11 is done.")["uuid"])
    session.ends("Right answer.")
    for place, end in (("Step 11 is done.", "Step 11 is done."), ("Right answer.", "Right answer.")):
        async with open_store("memory://") as store:
            await feed(store, session.rows)
            sessions = tailed(store)
            at = row_that_says(await loaded(sessions), place)
            await sessions.append(KEY, going_on(1, at, "On.", "Gone on."))
            texts = shown(await opened(store))
            assert texts[-3:] == [end, "On.", "Gone on."]
            assert not {"Wrong.", "Wrong answer."} & {*texts}


async def test_the_next_load_hands_out_the_branch_that_the_client_is_on() -> None:
    """The lines as they are, where nothing else was decided: the links lead past what was left."""
    async with open_store("memory://") as store:
        await feed(store, Written().works(ROUNDS).rows)
        sessions = tailed(store)
        place = row_that_says(await loaded(sessions), "Step 10 is done.")
        await sessions.append(KEY, going_on(1, place, "Something else.", "As you like."))
        rows = await loaded(sessions)
        assert rows == await loaded(TimelineSessionStore(store))
        messages = str(told(rows))
        assert "As you like." in messages
        assert "Step 11" not in messages


async def test_what_the_client_keeps_word_for_word_of_what_it_was_handed_stays_in_view() -> None:
    """It compacts by itself, and names rows that stand for lines of the session."""
    async with open_store("memory://") as store:
        await feed(store, Written().works(ROUNDS).rows)
        sessions = tailed(store)
        handed = await loaded(sessions)
        rows = going_on(1, handed[-1], "Something else.", "As you like.")
        kept = [row["uuid"] for row in handed[handed.index(row_that_says(handed, "Step 10 is done.")) :]]
        written = Written(f"{KEY['session_id']}-2", answers=200)
        metadata = {"trigger": "auto", "preservedMessages": {"uuids": [*kept, *(row["uuid"] for row in rows)]}}
        written.row("system", parentUuid=None, subtype="compact_boundary", compactMetadata=metadata)
        written.user("The story so far.", isCompactSummary=True)
        written.user("On.")
        await sessions.append(KEY, [*rows, *written.rows])
        timeline = await opened(store)
        texts = [text for text in shown(timeline) if text]
        assert "The story so far." in texts[0]
        assert texts[1:4] == ["Step 10 is done.", "Step 11", "Running."]
        assert texts[-4:] == ["Step 11 is done.", "Something else.", "As you like.", "On."]
        assert (await timeline.verify()).ok


async def test_a_subagent_of_what_was_left_keeps_its_conversation() -> None:
    """It is no part of the session's context: its call is abandoned, and people read what it said."""
    session, side = Written().works(ROUNDS), Written()
    session.user("Have it looked at.")
    session.asks(use("toolu_9", "Agent", prompt="Look at it."))
    session.result("toolu_9", "It is fine.")
    session.ends("It was looked at.")
    side.unnamed("agent_metadata", agentType="general-purpose", toolUseId="toolu_9")
    side.user("Look at it.", isSidechain=True)
    side.ends("It is fine.", isSidechain=True)
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        sessions = tailed(store)
        await sessions.append(SUB, side.rows)
        place = row_that_says(await loaded(sessions), "Have it looked at.")
        await sessions.append(KEY, going_on(1, place, "Do it yourself.", "Done."))
        assert shown(await opened(store))[-3:] == ["Have it looked at.", "Do it yourself.", "Done."]
        assert {"It is fine.", "It was looked at."} <= (await reasons(store)).keys()
        assert await sessions.list_subkeys(KEY) == [SUB["subpath"]]
        assert await sessions.load(SUB) == side.rows
        agent = await opened(store, f"{KEY['session_id']}.agent-a75353995cda43722")
        assert shown(agent) == ["Look at it.", "It is fine."]
        assert "It is fine." not in await sent_after(store)


async def test_a_session_that_an_earlier_release_handed_out_keeps_what_it_stood_for() -> None:
    """Its lines do not say what they stand for; what came behind them is left as before."""
    async with open_store("memory://") as store:
        await feed(store, Written().works(ROUNDS).rows)
        handed = [
            {**row, "timelineContext": {k: v for k, v in row["timelineContext"].items() if k != "through"}}
            for row in await loaded(tailed(store))
        ]
        place = row_that_says(handed, "Step 10 is done.")
        sessions = TimelineSessionStore(store)
        await sessions.append(KEY, [*handed, *going_on(1, handed[-1], "On.", "Gone on.")])
        await sessions.append(KEY, going_on(2, place, "Something else.", "As you like."))
        texts = shown(await opened(store))
        assert texts[-3:] == ["Step 11 is done.", "Something else.", "As you like."]
        assert not {"On.", "Gone on."} & {*texts}


DYING: Final = """
import asyncio, json, os, signal, sys
from timeline import open_store, policies
from timeline.integrations.claude_agent_sdk import TimelineSessionStore

async def main():
    key, place, rows, left = json.loads(sys.stdin.readline())
    async with open_store(sys.argv[1]) as store:
        policy = policies.cut_point(max_tokens=3_000, keep_recent_tokens=1_500)
        sessions = TimelineSessionStore(store, resume="compacted", policy=policy)
        assert any(row["uuid"] == place for row in await sessions.load(key))
        append = type(store).append
        async def dying(self, *arguments, **options):
            nonlocal left
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return await append(self, *arguments, **options)
        type(store).append = dying
        await sessions.append(key, rows)

asyncio.run(main())
"""


def killed_behind(appends: int, database: Path, place: Row, rows: list[Row]) -> int:
    """Go back in another process, which is killed behind so many appends to the store; return how it ended."""
    given = json.dumps([KEY, place["uuid"], rows, appends])
    command = [sys.executable, "-c", DYING, str(database)]
    return subprocess.run(command, input=given, text=True, check=False).returncode


@pytest.mark.parametrize("appends", [0, 1, 2, 3])
async def test_killed_while_it_goes_back_the_next_process_leaves_what_was_left(tmp_path: Path, appends: int) -> None:
    """Before its lines are written, before the tail is omitted, before the new blocks are there, and behind them."""
    database = tmp_path / "agent.db"
    async with open_store(database) as store:
        await feed(store, Written().works(ROUNDS).rows)
        handed = await loaded(tailed(store))
    place = row_that_says(handed, "Step 10 is done.")
    rows = going_on(1, place, "Something else.", "As you like.")
    ended = await anyio.to_thread.run_sync(killed_behind, appends, database, place, rows)
    assert ended == (0 if appends == 3 else -signal.SIGKILL)
    async with open_store(database) as store:
        sessions = tailed(store)
        if not any(row["uuid"] == place["uuid"] for row in await loaded(TimelineSessionStore(store)) if "uuid" in row):
            assert appends == 0
            assert [row["uuid"] for row in await loaded(sessions)] == [row["uuid"] for row in handed]
        await sessions.append(KEY, rows)
        timeline = await opened(store)
        assert shown(timeline)[-3:] == ["Step 10 is done.", "Something else.", "As you like."]
        assert "Step 11 is done." in await reasons(store)
        assert (await timeline.verify()).ok
        assert "Step 11" not in await sent_after(store)
