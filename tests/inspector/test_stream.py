"""The server-sent events of a conversation, from a real server over real sockets."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.inspector.streams import Connection, Reader, Sent, Site, read_until, serving
from tests.scenes import FULL, Mute, Scribe, answer, prompt, small_policy
from timeline import Timeline, open_store, policies
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.errors import ContextOverflow, SummarizerFailed
from timeline.events import CompactionCompleted
from timeline.inspector import inspector
from timeline.inspector.stream import Live
from timeline.lifecycle.live import steps
from timeline.store.testing import compaction

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.blocks import Block
    from timeline.events import NewEvent
    from timeline.ports import EventStore

TRAP = "she said: \n\ndata: {}\n\nevent: compaction-complete\r\n\u2028 </script> 🎴 \x00"


@pytest.fixture
async def store() -> AsyncIterator[EventStore]:
    """A store of its own."""
    async with open_store("memory://") as store:
        yield store


async def _begun(store: EventStore, *blocks: Block, **options: Any) -> Timeline:
    timeline = await Timeline.open(store, "c", **options)
    if blocks:
        await timeline.append(*blocks)
    return timeline


async def _told(store: EventStore) -> Timeline:
    """Make a conversation with a prune, a summary with a trap in it, a failure and usage in its log."""
    pruning = policies.prune_then_summarize(
        max_tokens=6_000, output_reserve=1_000, counter="chars4", protect=1_000, minimum=500
    )
    timeline = await Timeline.open(store, "c", policy=pruning, summarizer=Scribe(answers=[TRAP]))
    for number in range(14):
        call = ToolCall(call_id=f"call_{number}", name="bash", arguments={"command": "ls"})
        await timeline.append(
            UserPrompt(text=f"Look {number}. " + "a word " * (40 if number < 11 else 500)),
            call,
            ToolResult(call_id=call.call_id, text="a line " * 400),
            AssistantCompletion(text="Looked. " + "at it " * 20),
        )
        await timeline.render()
    return timeline


async def _whole(site: Site, path: str = "/c/events?after=0", *, until: str) -> list[Sent]:
    connection, reader = await site.get(path), Reader()
    async with asyncio.timeout(10):
        while reader.last_id != until:
            reader.feed(await connection.chunk())
    await connection.close()
    return reader.events


async def _last_id(store: EventStore) -> str:
    """Return the id that the stream ends with now: that of the newest version with an event."""
    newest, end = 0, (await store.info("c")).version
    async for step in steps(store, "c", after=0):
        newest = step.version if step.events else newest
        if step.version == end:
            return str(newest)
    raise AssertionError


async def test_the_events_have_the_names_and_fields_of_the_design(store: EventStore) -> None:
    """Each has its seed's payload, in camelCase, and the id that a reader comes back with."""
    timeline = await _told(store)
    async with serving(Live(store)) as site:
        sent = await _whole(site, until=await _last_id(store))
    by_name = {one.name: one.data for one in sent}
    fields = {
        "compaction-start": {"tokensBefore", "modelLimit", "reason"},
        "compaction-prune": {"outputsPruned", "tokensSaved", "prunedTools"},
        "compaction-summarize": {"messagesCount", "expiresAt"},
        "compaction-complete": {
            "tokensBefore", "tokensAfter", "messagesCompacted", "wasPruned", "wasSummarized", "summary",
        },
        "context-usage": {"currentTokens", "limit", "percentUsed", "isWarning", "isCritical", "estimated"},
    }  # fmt: skip
    assert by_name.keys() == fields.keys()
    for name, wanted in fields.items():
        assert wanted <= by_name[name].keys(), name
        assert {"type", "conversation", "version", "at"} <= by_name[name].keys()
        assert by_name[name]["type"] == name
    assert TRAP in {one.data.get("summary") for one in sent}
    assert [int(one.id.partition(".")[0]) for one in sent] == [one.data["version"] for one in sent]
    assert len({one.id for one in sent}) == len(sent)
    assert sent[-1].data["version"] == timeline.version


async def test_a_failure_may_be_tried_again_and_says_so(store: EventStore) -> None:
    """The status has it, too, until another compaction begins."""
    policy = small_policy(max_tokens=4_000, on_failure="unchanged")
    failing = await _begun(store, *FULL, policy=policy, summarizer=Mute())
    async with serving(Live(store)) as site:
        stream, reader = await site.get("/c/events"), Reader()
        assert stream.headers["content-type"].startswith("text/event-stream")
        with pytest.raises(SummarizerFailed):
            await failing.compact()
        await read_until(stream, reader, 3)
        status = await (await site.get("/c/status")).body()
    assert [one.name for one in reader.events] == ["compaction-start", "compaction-summarize", "compaction-error"]
    failed = reader.events[-1].data
    assert (failed["canRetry"], failed["suggestNewSession"]) == (True, False)
    assert "out of service" in failed["error"]
    assert (status["error"], status["phase"], status["isCompacting"]) == (failed, "idle", False)


async def test_what_nothing_makes_fit_suggests_a_new_session(store: EventStore) -> None:
    """The overflow has its figures, and the status both."""
    timeline = await _begun(store, prompt(30), answer(1_200), policy=small_policy(max_tokens=1_000))
    async with serving(Live(store)) as site:
        stream, reader = await site.get("/c/events"), Reader()
        with pytest.raises(ContextOverflow):
            await timeline.render()
        await read_until(stream, reader, 2)
        status = await (await site.get("/c/status")).body()
        await timeline.append(answer(5))
        later = await (await site.get("/c/status")).body()
        await timeline.hide("@2", text="gone")
        await timeline.hide("@3", text="gone")
        await timeline.render()
        await timeline.append(answer(5))
        over = await (await site.get("/c/status")).body()
    problem, overflow = reader.events
    assert (problem.name, overflow.name) == ("compaction-error", "context-overflow")
    assert (problem.data["canRetry"], problem.data["suggestNewSession"]) == (False, True)
    assert (overflow.data["currentTokens"], overflow.data["limit"]) == (1_230, 1_000)
    assert overflow.data["percentUsed"] == pytest.approx(123)
    assert (status["error"], status["overflow"]) == (problem.data, overflow.data)
    assert later["overflow"] == overflow.data, "an append makes nothing fit"
    assert over["overflow"] is None
    assert over["usage"]["estimated"]


async def test_cut_anywhere_and_resumed_nothing_is_lost_and_nothing_comes_twice(store: EventStore) -> None:
    """Over the bytes of a whole stream: at each end of an event, one byte beside it, and at 25 places between."""
    await _told(store)
    async with serving(Live(store)) as site:
        end = await _last_id(store)
        whole = await _whole(site, until=end)
        reader, size, edges = Reader(), 0, set[int]()
        connection = await site.get("/c/events?after=0")
        while reader.last_id != end:
            data = await connection.chunk()
            edges |= {size + place for place in range(len(data)) if data[place : place + 2] == b"\n\n"}
            size += len(data)
            reader.feed(data)
        await connection.close()
        chosen = random.Random(23)
        near = {edge + beside for edge in chosen.sample(sorted(edges), 10) for beside in (0, 1, 2)}
        for place in sorted(near | set(chosen.sample(range(1, size), 25))):
            assert await _in_two_parts(site, place, end) == whole, place


async def _in_two_parts(site: Site, place: int, end: str) -> list[Sent]:
    reader = Reader()
    connection = await site.get("/c/events?after=0")
    left = place
    async with asyncio.timeout(10):
        while left > 0 and reader.last_id != end:
            data = (await connection.chunk())[:left]
            left -= len(data)
            reader.feed(data)
    await connection.close()
    reader.cut()
    rest = await site.get("/c/events?after=0", last_event_id=reader.last_id)
    async with asyncio.timeout(10):
        while reader.last_id != end:
            reader.feed(await rest.chunk())
    await rest.close()
    return reader.events


async def test_a_reader_goes_on_where_it_was_when_the_server_comes_back(tmp_path: Path) -> None:
    """The server died in the middle; what happened meanwhile is sent, and nothing again."""
    reader = Reader()
    async with open_store(str(tmp_path / "agent.db")) as store:
        timeline = await _begun(store, *FULL, policy=small_policy(max_tokens=4_000), summarizer=Scribe())
        await timeline.render()
        async with serving(Live(store)) as site:
            connection = await site.get("/c/events?after=0")
            await read_until(connection, reader, 3)
        reader.cut()
        await timeline.append(*FULL)
        await timeline.render()
    async with open_store(str(tmp_path / "agent.db"), readonly=True) as store, serving(Live(store)) as site:
        end = await _last_id(store)
        connection = await site.get("/c/events?after=0", last_event_id=reader.last_id)
        async with asyncio.timeout(10):
            while reader.last_id != end:
                reader.feed(await connection.chunk())
        assert reader.events == await _whole(site, until=end)


async def test_many_cuts_while_the_conversation_goes_on_lose_and_repeat_nothing(store: EventStore) -> None:
    """A reader that is cut off every few bytes has the same events in the end as one that never was."""
    chosen = random.Random(5)
    timeline = await _begun(store, policy=small_policy(max_tokens=2_000))
    async with serving(Live(store, interval=0.05)) as site:
        steady, steadily = await site.get(f"/{timeline.id}/events?after=0"), Reader()
        restless = Reader()

        async def work() -> None:
            for _ in range(12):
                await timeline.append(prompt(100), answer(100))
                await timeline.render()
                await asyncio.sleep(0.01)

        working = asyncio.create_task(work())
        async with asyncio.timeout(20):
            while not working.done() or restless.last_id != str(timeline.version):
                path = f"/{timeline.id}/events?after=0"
                connection = await site.get(path, last_event_id=restless.last_id)
                left = chosen.randrange(1, 3_000)
                while left > 0 and restless.last_id != str(timeline.version):
                    data = (await connection.chunk())[:left]
                    left -= len(data)
                    restless.feed(data)
                await connection.close()
                restless.cut()
            await working
            while steadily.last_id != str(timeline.version):
                steadily.feed(await steady.chunk())
        await steady.close()
    assert restless.events == steadily.events
    assert {"compaction-complete", "context-usage"} <= {one.name for one in restless.events}


async def test_the_usage_moves_with_each_append_and_is_exact_with_each_render(store: EventStore) -> None:
    """Between two renders it is that of the last one with what was appended since, marked as an estimate."""
    timeline = await _begun(store, prompt(100), policy=small_policy(max_tokens=4_000))
    await timeline.render()
    async with serving(Live(store)) as site:
        connection, reader = await site.get(f"/{timeline.id}/events"), Reader()
        await timeline.append(answer(200), prompt(300))
        await timeline.render()
        await read_until(connection, reader, 3)
        await connection.close()
    first, second, exact = [one.data for one in reader.events]
    assert second["currentTokens"] - first["currentTokens"] == 300
    assert (first["estimated"], second["estimated"], exact["estimated"]) == (True, True, False)
    assert abs(exact["currentTokens"] - second["currentTokens"]) < 20
    assert second["percentUsed"] == pytest.approx(100 * second["currentTokens"] / 4_000)


async def test_a_quiet_stream_says_that_it_is_there_and_moves_the_readers_place(store: EventStore) -> None:
    """A comment comes each heartbeat, with the id of the newest version that was read."""
    timeline = await _begun(store, prompt(), policy=small_policy(max_tokens=4_000))
    async with serving(Live(store, interval=0.02, heartbeat=0.05)) as site:
        connection, reader = await site.get(f"/{timeline.id}/events"), Reader()
        async with asyncio.timeout(10):
            while len(reader.comments) < 3:
                reader.feed(await connection.chunk())
        await connection.close()
    assert reader.events == []
    assert reader.retry == 2_000
    assert reader.last_id == str(timeline.version)


async def test_a_reader_that_takes_nothing_is_cut_off_and_goes_on_later(store: EventStore) -> None:
    """What it does not take stays in the log: the server holds a page of it, and lets go after its patience."""
    await store.append("c", [_large(number) for number in range(120)])
    live = Live(store, patience=0.3)
    async with serving(live) as site:
        tracemalloc.start()
        connection = await site.get("/c/events?after=0", limit=2**12)
        async with asyncio.timeout(20):
            while live._open:  # noqa: ASYNC110 - it offers no event to wait for
                await asyncio.sleep(0.05)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        reader = await _all_that_was_sent(connection)
        rest = await site.get("/c/events?after=0", last_event_id=reader.last_id)
        async with asyncio.timeout(20):
            while reader.last_id != "120":
                reader.feed(await rest.chunk())
        await rest.close()
    complete = [one.data["summary"].partition(" ")[0] for one in reader.events if one.name == "compaction-complete"]
    assert complete == [str(number) for number in range(120)]
    assert most < 8_000_000, "of the 12 MB that were to be sent no more than a page was held"


def _large(number: int) -> NewEvent:
    """Make a compaction whose summary takes 100 KB."""
    made = compaction(number + 1, number + 1)
    assert isinstance(made.payload, CompactionCompleted)
    block = made.payload.block.model_copy(update={"text": f"{number} " + "said " * 20_000})
    return made.model_copy(update={"payload": made.payload.model_copy(update={"block": block})})


async def _all_that_was_sent(connection: Connection) -> Reader:
    reader = Reader()
    try:
        async with asyncio.timeout(10):
            while data := await connection.chunk():
                reader.feed(data)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        await connection.close()
    reader.cut()
    return reader


async def test_more_streams_than_the_limit_are_refused_until_one_ends(store: EventStore) -> None:
    """A page that opens streams without end takes no others away."""
    timeline = await _begun(store, prompt(), policy=small_policy(max_tokens=4_000))
    live = Live(store, most=2, interval=0.05)
    async with serving(live) as site:
        path = f"/{timeline.id}/events"
        one, two = await site.get(path), await site.get(path)
        refused = await site.get(path)
        assert (refused.status, (await refused.body())["detail"]) == (503, "2 streams are open, which is the limit.")
        await one.close()
        async with asyncio.timeout(10):
            while live._open == 2:  # noqa: ASYNC110 - it offers no event to wait for
                await asyncio.sleep(0.02)
        again = await site.get(path)
        assert again.status == 200
        for connection in (two, again):
            await connection.close()


async def test_a_conversation_that_is_erased_meanwhile_ends_its_stream_with_an_event(store: EventStore) -> None:
    """The reader hears of it, and whoever comes back is answered 410, which ends a browser's tries."""
    timeline = await _begun(store, prompt(), policy=small_policy(max_tokens=4_000))
    async with serving(Live(store, interval=0.05)) as site:
        connection, reader = await site.get(f"/{timeline.id}/events"), Reader()
        await store.erase(timeline.id)
        async with asyncio.timeout(10):
            while data := await connection.chunk():
                reader.feed(data)
        assert [(one.name, one.data) for one in reader.events] == [
            ("conversation-erased", {"conversation": timeline.id})
        ]
        for path in ("events", "status"):
            assert (await site.get(f"/{timeline.id}/{path}")).status == 410


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nobody/events", 404),
        ("/nobody/status", 404),
        ("/c/other", 404),
        ("/events", 404),
        ("/c/events?after=x", 400),
        ("/c/events?after=-1", 400),
        ("/c/events?after=99999", 400),
        ("/c/events?after=" + "9" * 5_000, 400),
        ("/c/events?after=1.x", 400),
        ("/c/events?after=0.1", 400),
        ("/c/events?after=%F0", 400),
    ],
)
async def test_what_cannot_be_followed_is_refused_with_the_reason(store: EventStore, path: str, status: int) -> None:
    """An answer that is no stream ends a browser's tries, and says what was wrong."""
    await _begun(store, prompt(), policy=small_policy(max_tokens=4_000))
    async with serving(Live(store)) as site:
        answered = await site.get(path)
        assert answered.status == status
        assert (await answered.body())["detail"]
        assert (await site.get("/c/status", method="POST")).status == 405


async def test_the_status_is_what_the_events_up_to_its_version_say(store: EventStore) -> None:
    """A page shows it first, and follows behind its version."""
    timeline = await _told(store)
    async with serving(Live(store)) as site:
        sent = await _whole(site, until=await _last_id(store))
        status: dict[str, Any] = await (await site.get("/c/status")).body()
    info = await store.info("c")
    assert status["version"] == timeline.version
    assert (status["phase"], status["isCompacting"]) == ("complete", False)
    assert status["usage"] == next(one.data for one in reversed(sent) if one.name == "context-usage")
    assert status["compactionCount"] == info.compactions > 0
    complete = next(one.data for one in reversed(sent) if one.name == "compaction-complete")
    for name in ("tokensBefore", "tokensAfter", "percentSaved"):
        assert status[name] == complete[name]


@pytest.mark.parametrize("id_", ["a/b c", "会話 😀", "100%"])
async def test_any_id_is_reached_by_its_quoted_form(store: EventStore, id_: str) -> None:
    """An id may hold what a path may not."""
    await Timeline.open(store, id_)
    async with serving(Live(store)) as site:
        status = await (await site.get(f"/{quote(id_, safe='')}/status")).body()
    assert status["conversation"] == id_


async def test_the_inspector_has_the_stream_of_each_conversation_behind_its_doors(store: EventStore) -> None:
    """At `v1/conversations/{id}/events` and `/status`, for those who may ask."""
    timeline = await _begun(store, prompt(100), policy=small_policy(max_tokens=4_000))
    async with serving(inspector(store)) as site:
        path = "/v1/conversations/c"
        connection, reader = await site.get(f"{path}/events"), Reader()
        await timeline.render()
        await read_until(connection, reader, 1)
        assert [one.name for one in reader.events] == ["context-usage"]
        status = await (await site.get(f"{path}/status")).body()
        assert status["usage"] == reader.events[0].data
        assert (await site.get(f"{path}/events", method="POST")).status == 405
        head = await site.get(f"{path}/events", method="HEAD")
        assert (head.status, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        for asked in ("events", "status"):
            refused = await site.get(f"{path}/{asked}", host="evil.example")
            assert refused.status == 403
