from __future__ import annotations

import asyncio
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import asyncpg
import pytest

import timeline
from tests.postgres import without
from timeline import store as stores
from timeline.errors import ConversationErased, InvalidBlock, VersionConflict
from timeline.ports import Appended, Expected
from timeline.store.codec import encode
from timeline.store.postgres import committing, writer
from timeline.store.postgres.address import parse
from timeline.store.postgres.store import PostgresStore
from timeline.store.postgres.writer import FEWEST, Writer
from timeline.store.testing import block_event, events, fork

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import FrameType

OURS: Final = tuple(str(Path(str(package.__file__)).parent) for package in (timeline, stores))
LOCKED = (
    "SELECT count(*) FROM pg_stat_activity AS a WHERE a.wait_event_type = 'Lock' AND $1 = ANY(pg_blocking_pids(a.pid))"
)


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    """Open a store in a schema of its own."""
    async with await PostgresStore.open(postgres_url) as store:
        yield store


async def test_conversations_are_opened_together(store: PostgresStore) -> None:
    """Those of one transaction are listed in the order in which they came, and each continues."""
    names = [f"c{number}" for number in range(2 * FEWEST - 1)]
    placed = await asyncio.gather(*(store.append(name, events(2), expected=Expected.NO_STREAM) for name in names))
    assert [(each.first_version, each.version) for each in placed] == [(1, 2)] * len(names)
    assert store.figures.groups == 1
    assert [info.id async for info in store.conversations()] == names
    assert [event.conversation async for event in store.read_all()] == [name for name in names for _ in range(2)]
    assert (await store.append("c7", events(1), expected=2)).version == 3


async def test_very_many_conversations_are_opened_by_few_transactions(store: PostgresStore) -> None:
    """Each is opened once, whichever transaction is first."""
    names = {f"c{number}" for number in range(200)}
    await asyncio.gather(*(store.append(name, events(1), expected=Expected.NO_STREAM) for name in names))
    assert store.figures.groups <= 4
    listed = [info.id async for info in store.conversations()]
    assert len(listed) == 200
    assert set(listed) == names


async def test_of_those_that_are_opened_together_each_is_accepted_or_refused_for_itself(store: PostgresStore) -> None:
    """One exists, one was erased, one comes twice, one is a fork of another that comes before it."""
    await store.append("there", events(1))
    await store.append("gone", events(1))
    await store.erase("gone")
    outcomes = await asyncio.gather(
        store.append("new", events(2), expected=0),
        store.append("there", events(1), expected=Expected.NO_STREAM),
        store.append("gone", events(1)),
        store.append("twice", events(1), expected=Expected.NO_STREAM),
        store.append("twice", events(1), expected=Expected.NO_STREAM),
        store.append("fork", [fork("there", 1), block_event()]),
        store.append("nobody", events(1), expected=Expected.STREAM_EXISTS),
        return_exceptions=True,
    )
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds[:4] == [Appended, VersionConflict, ConversationErased, Appended]
    assert kinds[4:] == [VersionConflict, Appended, VersionConflict]
    held = {info.id: info.version async for info in store.conversations()}
    assert held == {"there": 1, "new": 2, "twice": 1, "fork": 3}


async def test_two_stores_that_open_the_same_conversations_open_each_once(
    store: PostgresStore, postgres_url: str
) -> None:
    """One of them is first for each; the other's append is refused, or comes behind."""
    names = [f"c{number}" for number in range(40)]
    async with await PostgresStore.open(postgres_url) as other:
        done = await asyncio.gather(
            *(each.append(name, events(1), expected=Expected.NO_STREAM) for name in names for each in (store, other)),
            return_exceptions=True,
        )
    assert sum(isinstance(outcome, Appended) for outcome in done) == 40
    assert sum(isinstance(outcome, VersionConflict) for outcome in done) == 40
    assert [info.version async for info in store.conversations()] == [1] * 40


@asynccontextmanager
async def held(url: str, *conversations: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """Hold the rows of conversations, so that an append to one of them waits."""
    connection = await asyncpg.connect(without(url, "schema"), server_settings={"search_path": parse(url).schema})
    try:
        async with connection.transaction():
            await connection.execute("SELECT FROM conversations WHERE id = ANY($1) FOR UPDATE", conversations)
            yield connection
    finally:
        await connection.close()


async def waited_for(connection: asyncpg.Connection[asyncpg.Record], waiting: int = 1) -> None:
    """Wait until so many others wait for what a connection holds."""
    async with asyncio.timeout(30):
        while await connection.fetchval(LOCKED, connection.get_server_pid()) < waiting:  # noqa: ASYNC110 - the server knows
            await asyncio.sleep(0.01)


async def test_many_conversations_do_not_wait_for_the_group_of_another_one(
    store: PostgresStore, postgres_url: str
) -> None:
    """One whose row somebody holds keeps its own appends waiting; the next ones to it keep their order behind it."""
    names = [f"c{number}" for number in range(FEWEST)]
    for name in ("held", *names):
        await store.append(name, events(1))
    async with held(postgres_url, "held") as holder:
        made = events(3)
        waiting = [asyncio.create_task(store.append("held", [event])) for event in made[:1]]
        await waited_for(holder)
        waiting += [asyncio.create_task(store.append("held", [event])) for event in made[1:]]
        others = asyncio.gather(*(store.append(name, events(1)) for name in names))
        assert [each.version for each in await asyncio.wait_for(others, 30)] == [2] * FEWEST
        assert not any(task.done() for task in waiting)
    assert [each.version for each in await asyncio.gather(*waiting)] == [2, 3, 4]
    assert [event.id async for event in store.read("held", after=1)] == [event.id for event in made]


async def test_a_few_appends_go_together_and_many_in_two_groups(store: PostgresStore) -> None:
    """A statement for each of a few would keep the server longer than one for all."""
    names = [f"c{number}" for number in range(8 * FEWEST)]
    await asyncio.gather(*(store.append(name, events(1)) for name in names))
    groups = []
    for together in (names[: 2 * FEWEST - 1], names):
        before = store.figures.groups
        await asyncio.gather(*(store.append(name, events(1)) for name in together))
        groups.append(store.figures.groups - before)
    assert groups == [1, 2]


async def test_two_groups_that_are_answered_at_once_are_followed_by_two_of_their_size(
    store: PostgresStore, postgres_url: str
) -> None:
    """Whom the second one answered append again in a moment, so that those of the first one are a half already."""
    names = [f"c{number}" for number in range(4 * FEWEST)]
    await asyncio.gather(*(store.append(name, events(1)) for name in names))
    sizes: list[int] = []
    writer = Writer(store.database, lambda written: sizes.append(len(written)))

    async def work(name: str) -> None:
        for event in events(4):
            await writer.append(encode(name, [event], Expected.ANY, {}, None))

    async with held(postgres_url, names[0], names[-1]) as holder:
        tasks = [asyncio.create_task(work(name)) for name in names]
        await waited_for(holder, 2)
        release = asyncio.create_task(holder.execute("COMMIT; BEGIN"))
        await asyncio.sleep(0)  # it is sent
        time.sleep(0.1)  # noqa: ASYNC251 - both answers are there before this process looks at one of them
        await release
        await asyncio.gather(*tasks)
    await writer.stop()
    assert sizes[:6] == [2 * FEWEST] * 6  # in the last two nobody appends again, and what is left may be halved


async def test_who_appends_again_and_again_is_served_without_a_task_for_each_append(store: PostgresStore) -> None:
    """The task that committed the last append waits for the next one a moment, before it ends."""
    await store.append("c", events(1))
    made = []

    def noted(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        made.append(work)
        return asyncio.Task(work, loop=loop, **options)

    asyncio.get_running_loop().set_task_factory(noted)
    for _ in range(30):
        await store.append("c", events(1))
    assert len(made) < 15


async def test_an_append_among_others_takes_few_calls_of_functions_of_ours(store: PostgresStore) -> None:
    """The client's processor bounds how many go through: 64 tasks keep it busy for nine tenths of the time."""
    names = [f"c{number}" for number in range(64)]
    made = {name: events(3) for name in names}
    await asyncio.gather(*(store.append(name, events(1)) for name in names))

    async def work(name: str) -> None:
        for event in made[name]:
            await store.append(name, [event])

    called = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal called
        code = frame.f_code
        called += event == "call" and code.co_filename.startswith(OURS) and not code.co_name.startswith("<")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        await asyncio.gather(*map(work, names))
    finally:
        sys.setprofile(before)
    assert called < 23 * 3 * len(names)  # 26 once; a frame that is resumed counts once more


async def test_conversations_of_which_the_heads_are_forgotten_go_on(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of one group are more than are remembered, so that some are forgotten before the group is written."""
    monkeypatch.setattr(committing, "MOST_HEADS", 3)
    names = [f"c{number}" for number in range(10)]
    for version in (1, 2, 3):
        done = await asyncio.gather(*(store.append(name, events(1)) for name in names))
        assert [appended.version for appended in done] == [version] * len(names)


async def test_every_conversation_keeps_the_order_of_its_appends_over_all_groups(store: PostgresStore) -> None:
    """Appends to 50 conversations are queued at once, 20 to each, and more while these are written."""
    made = {f"c{number}": events(40) for number in range(50)}

    async def work(name: str) -> None:
        for event in made[name][20:]:
            await store.append(name, [event])

    queued = [store.append(name, [made[name][place]]) for place in range(20) for name in made]
    tasks = [asyncio.create_task(append) for append in queued]
    await asyncio.gather(*tasks)
    await asyncio.gather(*map(work, made))
    for name, each in made.items():
        assert [event.id async for event in store.read(name)] == [event.id for event in each]
    assert store.figures.waiting == store.figures.waiting_characters == 0


async def test_cancelled_appends_keep_no_place_in_a_group(store: PostgresStore) -> None:
    """All that would have been the first group are cancelled while they wait; the others are written."""
    names = [f"c{number}" for number in range(4 * FEWEST)]
    await asyncio.gather(*(store.append(name, events(1)) for name in names))
    tasks = [asyncio.create_task(store.append(name, events(1))) for name in names]
    await asyncio.sleep(0)  # all have queued their appends, and no group is taken yet
    for task in tasks[: 2 * FEWEST]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes] == [True] * 16 + [False] * 16
    held = {info.id: info.version async for info in store.conversations()}
    assert [held[name] for name in names] == [1] * 16 + [2] * 16


async def test_an_append_that_is_too_long_for_a_message_is_refused(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes count, not the characters; the server would break the connection, as if the append were in doubt."""
    await store.append("a", [block_event(text="é" * 1_000)])
    async with store.database.moment() as connection:
        size = await connection.fetchval("SELECT octet_length(payload) FROM events")
    monkeypatch.setattr(writer, "MOST_BYTES", size)
    assert (await store.append("b", [block_event(text="é" * 1_000)])).version == 1
    monkeypatch.setattr(writer, "MOST_BYTES", size - 1)
    with pytest.raises(InvalidBlock, match=rf"at most {size - 1:,} bytes on a server, not {size:,}; split the block"):
        await store.append("c", [block_event(text="é" * 1_000)])
    assert store.figures.waiting == store.figures.waiting_characters == 0
