"""What is sent together is stored as if each had been sent alone, whatever it has in common."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from timeline.audit.verify import verify
from timeline.blocks import UserPrompt
from timeline.events import BlockAppended, BlocksPinned, NewEvent, UnknownPayload, event_id
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from timeline.events import Payload

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = (
    "SELECT e.version, event_id, type, schema_version, at, path, path_rest, turn_id, tokens, payload, length(checksum),"
    " length(salt), c, length(link) FROM events AS e JOIN conversations AS c ON c.key = e.conversation WHERE c.id = $1"
    " ORDER BY e.version"
)


def block(path: str, turn: str, text: str = "x") -> Payload:
    """Make the payload of a prompt."""
    return BlockAppended(block=UserPrompt(text=text, path=path, turn_id=turn, at=START), tokens=3, counter="c")


ALIKE = [block(f"p:{number}", "t_1") for number in range(3)]
WITHOUT = [block("", "") for _ in range(2)]
DIFFERENT = [
    block("q:1", "t_1"),
    block("", "t\\\0_2", "äöü \0 \\"),
    BlocksPinned(versions=(1,)),
    block("long:" + "/ü" * 400, ""),
    block("q:\\\0", "t_1"),
    UnknownPayload(type="later\\kind", data={"block": {"type": "later"}}, stored_schema_version=7),
]


async def test_events_that_are_sent_together_are_stored_like_those_that_are_sent_alone(postgres_url: str) -> None:
    """Each value of a column may be the same in all rows, missing in all, or any."""
    appends = [ALIKE, WITHOUT, DIFFERENT, DIFFERENT[:1]]
    made = [[event(number, payload) for number, payload in enumerate(each)] for each in appends]
    async with await PostgresStore.open(postgres_url) as store:
        for number, events in enumerate(made):
            await store.append(f"together {number}", events)
            for each in events:
                await store.append(f"alone {number}", [each])
            assert await rows(store, f"together {number}") == await rows(store, f"alone {number}")
            stored = (await store.load_window(f"together {number}")).events
            assert [each.payload for each in stored] == [each.payload for each in events]


async def test_heads_that_move_on_together_may_have_nothing_in_common(postgres_url: str) -> None:
    """How many events they get, how many were removed, and the links before: each is a column, or one value for all."""
    sizes = {"a": 1, "b": 3, "c": 2}
    async with await PostgresStore.open(postgres_url) as store:
        for name, size in sizes.items():
            await store.append(name, events(size))
        async with store.database.begun() as connection:
            await connection.execute("UPDATE conversations SET first_version = version WHERE id = 'b'")
    async with await PostgresStore.open(postgres_url) as store:
        for times in (2, 3):
            groups = store.figures.groups
            done = await asyncio.gather(*[store.append(name, events(size)) for name, size in sizes.items()])
            assert (store.figures.groups - groups, store.figures.lost) == (1, 0)
            assert [each.version for each in done] == [times * size for size in sizes.values()]
        for name, size in sizes.items():
            report = await verify(store, name)
            assert (report.events, report.checksum, report.order, report.chain) == (3 * size, 0, 0, 0)


def event(number: int, payload: Payload) -> NewEvent:
    """Make an event of the given payload, each at a time of its own but for the first two."""
    at = START + timedelta(seconds=max(1, number))
    return NewEvent(id=event_id(at), at=at, payload=payload)


async def rows(store: PostgresStore, conversation: str) -> list[tuple[Any, ...]]:
    """Return the rows of a conversation without what differs by chance."""
    return await store.database.rows(ROWS, conversation)
