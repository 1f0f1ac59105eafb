"""Wake-ups over a real server; `test_waking_processes.py` has the whole way from an append to a follower."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import asyncpg
import pytest

from tests.postgres import Postgres, direct_url, new_schema, schema_of, with_query, without
from timeline import open_store
from timeline.store.postgres.address import parse
from timeline.store.postgres.database import Database
from timeline.store.postgres.horizon import Horizon
from timeline.store.postgres.store import PostgresStore
from timeline.store.postgres.waking import UNHEARD, Waking
from timeline.store.testing import block_event, events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from timeline.store.postgres.waking import Heard

PROMPT = "block.appended"


@asynccontextmanager
async def waking(
    url: str, name: str, *, listens: bool = True, before: Callable[[], None] = lambda: None
) -> AsyncIterator[Waking]:
    """Make the wake-ups of one store; ``before`` is called before it connects."""

    async def connect() -> asyncpg.Connection[asyncpg.Record]:
        before()
        return await asyncpg.connect(without(url, "schema", "pgbouncer"), statement_cache_size=0)

    store = await PostgresStore.open(url)
    log = f"{schema_of(url)} {name}"  # other tests use the same database
    one = Waking(connect, log, url, horizon=Horizon(store.database), listens=listens)
    try:
        yield one
    finally:
        await one.aclose()
        await store.aclose()


class Ears:
    """Collects what is heard, from when somebody listens."""

    def __init__(self, one: Waking) -> None:
        self.heard: list[Heard] = []
        self._more = asyncio.Condition()
        self._task = asyncio.create_task(self._listen(one))

    async def _listen(self, one: Waking) -> None:
        async for heard in one.hear():
            async with self._more:
                self.heard.append(heard)
                self._more.notify_all()

    async def wait(self, count: int) -> None:
        """Wait until so many wake-ups came."""
        async with asyncio.timeout(30), self._more:
            await self._more.wait_for(lambda: len(self.heard) >= count)

    async def end(self) -> None:
        """Wait for the end of the iteration."""
        await asyncio.wait_for(self._task, 30)


async def test_a_follower_elsewhere_hears_which_conversation_got_what(postgres_url: str) -> None:
    """The first wake-up concerns everything; then those that were told, by conversation and type."""
    async with waking(postgres_url, "log") as one, waking(postgres_url, "log") as other:
        ears = Ears(other)
        await ears.wait(1)
        assert ears.heard[0].concerns("anything", {"any.type"})
        one.notify([("cards", [PROMPT])])
        await ears.wait(2)
        assert ears.heard[1].concerns("cards", {PROMPT, "model.called"})
        assert ears.heard[1].concerns(None, {PROMPT})
        assert not ears.heard[1].concerns("cards", {"model.called"})
        assert not ears.heard[1].concerns("other", {PROMPT})


async def test_what_another_transaction_hides_wakes_a_follower_once_more(postgres_url: str) -> None:
    """A transaction of the server that writes keeps what was appended after it began from readers of everything."""
    async with (
        await PostgresStore.open(postgres_url) as one,
        await PostgresStore.open(postgres_url) as other,
    ):
        await one.append("cards", events(1))
        writing = await asyncpg.connect(without(postgres_url, "schema"))
        ears = Ears(other.waking)
        await ears.wait(1)
        transaction = writing.transaction()
        await transaction.start()
        await writing.execute("SELECT pg_current_xact_id()")
        last = (await one.append("cards", events(1))).position
        await ears.wait(2)
        assert await other.head() < last
        await transaction.rollback()
        await ears.wait(3)
        assert await other.head() == last
        await writing.close()


async def test_a_store_does_not_hear_itself(postgres_url: str) -> None:
    """Its own followers were woken when it appended."""
    async with waking(postgres_url, "log") as one, waking(postgres_url, "log") as other:
        ears, others = Ears(one), Ears(other)
        await ears.wait(1)
        await others.wait(1)
        one.notify([("cards", [PROMPT])])
        await others.wait(2)
        other.notify([("plans", [PROMPT])])
        await ears.wait(2)
        assert ears.heard[1].concerns("plans", {PROMPT})


async def test_another_log_in_the_same_database_is_not_heard(postgres_url: str) -> None:
    """Schema and tenant name the channel; and a hash of a conversation is another one there."""
    async with (
        waking(postgres_url, "log") as one,
        waking(postgres_url, "log 2") as other,
        waking(postgres_url, "log 2") as third,
    ):
        ears = Ears(other)
        await ears.wait(1)
        one.notify([("cards", [PROMPT])])
        await asyncio.sleep(0.1)
        third.notify([("plans", [PROMPT])])
        await ears.wait(2)
        assert ears.heard[1].concerns("plans", {PROMPT})


async def test_what_is_sent_names_no_conversation(postgres_url: str) -> None:
    """Whoever may connect to the database may listen."""
    sent: list[str] = []
    async with waking(postgres_url, "log") as one:
        spy = await asyncpg.connect(without(postgres_url, "schema"))
        await spy.execute(f"SELECT pg_advisory_lock_shared({one.lock})")
        await spy.add_listener(one.channel, lambda *told: sent.append(str(told[-1])))
        one.notify([("the secret plan", [PROMPT])])
        while not sent:
            await spy.execute("SELECT 1")
        await spy.close()
    assert PROMPT in sent[0]
    assert "secret" not in sent[0]


async def test_nothing_is_sent_where_nobody_has_the_lock_of_those_who_listen(postgres_url: str) -> None:
    """A notification takes a lock of the whole server and a transaction, which is as much as an append takes."""
    sent: list[object] = []
    async with waking(postgres_url, "log") as one:
        spy = await asyncpg.connect(without(postgres_url, "schema"))
        await spy.add_listener(one.channel, lambda *told: sent.append(told[-1]))
        one.notify([("cards", [PROMPT])])
        await asyncio.sleep(2 * UNHEARD)
        await spy.execute("SELECT 1")
        assert not sent
        await spy.execute(f"SELECT pg_advisory_lock_shared({one.lock})")
        one.notify([("cards", [PROMPT])])
        while not sent:
            await spy.execute("SELECT 1")
        await spy.close()


async def test_who_begins_to_listen_is_woken_of_what_those_left_unsaid_who_knew_of_nobody(postgres_url: str) -> None:
    """A store that found nobody asks again later; the new follower looks once more when all have asked again."""
    async with waking(postgres_url, "log") as one, waking(postgres_url, "log") as other:
        asking = await asyncpg.connect(without(postgres_url, "schema"))
        one.notify([("cards", [PROMPT])])
        answered = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1 AND state = 'idle'"
        while not await asking.fetchval(answered, f"%{one.channel}%"):
            pass
        await asking.close()
        ears = Ears(other)
        await ears.wait(1)
        one.notify([("cards", [PROMPT])])
        await ears.wait(2)
        assert ears.heard[1].concerns("cards", {PROMPT})
        await asyncio.sleep(UNHEARD)
        one.notify([("plans", ["end"])])
        while not any(heard.concerns("plans", {"end"}) for heard in ears.heard[2:]):
            await ears.wait(len(ears.heard) + 1)


async def test_who_no_longer_listens_is_not_told(postgres_url: str) -> None:
    """The lock goes with its connection, however that ends."""
    async with waking(postgres_url, "log") as one:
        async with waking(postgres_url, "log") as other:
            ears = Ears(other)
            await ears.wait(1)
        asking = await asyncpg.connect(without(postgres_url, "schema"))
        while not await asking.fetchval(f"SELECT pg_try_advisory_lock({one.lock})"):
            pass
        await asking.close()


async def test_many_conversations_are_told_in_few_notifications(postgres_url: str) -> None:
    """What is told while one is on its way goes with the next; no payload is longer than the server takes."""
    names = [f"conversation {number}" for number in range(2_000)]
    async with waking(postgres_url, "log") as one, waking(postgres_url, "log") as other:
        ears = Ears(other)
        await ears.wait(1)
        for name in names:
            one.notify([(name, [PROMPT, "x'y\\"])])
        one.notify([("last", ["end"])])
        while not any(heard.concerns("last", {"end"}) for heard in ears.heard[1:]):
            await ears.wait(len(ears.heard) + 1)
    assert len(ears.heard) < 10
    assert all(any(heard.concerns(name, {"x'y\\"}) for heard in ears.heard[1:]) for name in names)


async def test_too_many_conversations_are_told_as_all(postgres_url: str) -> None:
    """A process that cannot send for long keeps a bounded memory of what it would."""
    async with waking(postgres_url, "log") as one, waking(postgres_url, "log") as other:
        ears = Ears(other)
        await ears.wait(1)
        for number in range(10_001):
            one.notify([(f"conversation {number}", [PROMPT])])
        await ears.wait(2)
        assert ears.heard[1].concerns("another one", {"any.type"})


async def test_a_lost_connection_comes_back_and_says_that_anything_may_have_happened(postgres_url: str) -> None:
    """The server ends the listener's connection; the next wake-ups are heard over a new one."""
    async with waking(postgres_url, "log") as one, waking(postgres_url, "log") as other:
        ears = Ears(other)
        await ears.wait(1)
        admin = await asyncpg.connect(without(postgres_url, "schema"))
        ended = await admin.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = $1", f'LISTEN "{other.channel}"'
        )
        await admin.close()
        assert len(ended) == 1
        await ears.wait(2)
        assert ears.heard[1].concerns("anything", {"any.type"})
        one.notify([("cards", [PROMPT])])
        await ears.wait(3)
        assert ears.heard[2].concerns("cards", {PROMPT})


async def test_who_may_not_listen_tries_less_and_less_often(postgres_url: str) -> None:
    """The server takes the connection and refuses the lock, as a standby refuses LISTEN: that lasts."""
    connected: asyncio.Queue[float] = asyncio.Queue()
    holder = await asyncpg.connect(without(postgres_url, "schema"))
    impatient = with_query(postgres_url, lock_timeout="1")
    async with waking(impatient, "log", before=lambda: connected.put_nowait(monotonic())) as one:
        await holder.execute(f"SELECT pg_advisory_lock({one.lock})")
        ears = Ears(one)
        moments = [await connected.get() for _ in range(5)]
        assert moments[-1] - moments[0] >= 0.1 + 0.2 + 0.4 + 0.8
        await holder.close()
        await ears.wait(1)


async def test_the_last_words_are_sent_before_the_store_is_closed(postgres_url: str) -> None:
    """A command that appends and ends wakes the followers elsewhere, too."""
    async with waking(postgres_url, "log") as other:
        ears = Ears(other)
        await ears.wait(1)
        async with waking(postgres_url, "log") as one:
            one.notify([("cards", [PROMPT])])
        await ears.wait(2)
        assert ears.heard[1].concerns("cards", {PROMPT})


async def test_an_iteration_ends_with_its_store(postgres_url: str) -> None:
    """A follower is not left waiting; afterwards there is nothing to iterate over."""
    async with waking(postgres_url, "log") as one:
        ears = Ears(one)
        await ears.wait(1)
    await ears.end()
    assert [heard async for heard in one.hear()] == []


async def test_behind_pgbouncer_wakeups_are_sent_and_none_are_heard(caplog: pytest.LogCaptureFixture) -> None:
    """A pooled connection cannot listen, which is said once; a direct one hears what it tells."""
    place = Postgres(pooled=True)
    async with (
        new_schema(place) as pooled,
        waking(with_query(direct_url(place), schema=schema_of(pooled)), "log") as direct,
    ):
        ears = Ears(direct)
        await ears.wait(1)
        async with waking(pooled, "log", listens=False) as one:
            assert [heard async for heard in one.hear()] == []
            assert [heard async for heard in one.hear()] == []
            one.notify([("cards", [PROMPT])])
            await ears.wait(2)
        assert ears.heard[1].concerns("cards", {PROMPT})
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1
    assert "listen_url=" in warned[0]


async def test_telling_never_waits_for_a_server_that_is_away() -> None:
    """An append is done before anybody is told, and goes on without."""
    address = parse("postgresql://nobody@/none?host=/nowhere")
    database = Database(address)
    one = Waking.of(database, Horizon(database))
    for number in range(100):
        one.notify([(str(number), [PROMPT])])
        await asyncio.sleep(0)
    await one.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(aiter(one.hear()))


def test_a_listen_url_may_have_the_settings_of_the_store() -> None:
    """It is mostly a copy of the store's own URL; the server would refuse settings that it does not know."""
    given = quote("postgresql://ann@db/agents?schema=a&tenant=3&pgbouncer=true&sslmode=disable", safe="")
    address = parse(f"postgresql://ann@pool/agents?schema=a&tenant=3&pgbouncer=true&listen_url={given}")
    assert address.listen_url == "postgresql://ann@db/agents?sslmode=disable&application_name=timeline"


@pytest.mark.parametrize(
    "wrong", ["postgresql://ann:sesame@db:none/x", "postgresql://x@/none{}&foo=1"], ids=["port", "setting"]
)
async def test_a_listen_url_that_cannot_be_used_is_said_once(caplog: pytest.LogCaptureFixture, wrong: str) -> None:
    """Followers poll then, which nobody would notice; a password is not said."""
    place = Postgres(pooled=True)
    async with new_schema(place) as pooled:
        server = "?" + urlsplit(direct_url(place)).query
        async with open_store(with_query(pooled, listen_url=wrong.format(server))) as store:
            await store.append("cards", [block_event("a")])
            await asyncio.sleep(0.5)
            await store.append("cards", [block_event("b")])
    warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warned) == 1
    assert "Check listen_url" in warned[0]
    assert "sesame" not in warned[0]
