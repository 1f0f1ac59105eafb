"""The queries of a PostgreSQL store have the same answers as SQLite's to the same log."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import pytest

from timeline import open_store
from timeline.blocks import ToolCall, ToolResult
from timeline.events import BlockAppended, BlockRedacted, CompactionReverted
from timeline.store.postgres.store import PostgresStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, compaction, event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.events import NewEvent
    from timeline.ports import EventStore


LONG = "x" * 5_000
SIGNS = "back\\slash \\0 and\0null"


def _call(number: int, arguments: dict[str, Any]) -> list[NewEvent]:
    call = ToolCall(path=f"tc:t.{number}.call", turn_id="t", call_id=str(number), name="Bash", arguments=arguments)
    done = ToolResult(path=f"tc:t.{number}.result", turn_id="t", call_id=str(number), text=f"exit {SIGNS} {number}")
    return [event(BlockAppended(block=block, tokens=1, counter="chars")) for block in (call, done)]


def _log() -> list[tuple[str, list[NewEvent]]]:
    texts = [
        "the parser fails on getUserName in src/app/main.py, see https://example.org/a",
        "the the the parser parser works",
        SIGNS + " parser",
        "word " * 3_000 + "needle haystack parser",
        " ".join(f"w{number}" for number in range(40_000)) + " parser",
        "a b c d e f g h i j k l m n o p q r s t u v w x y z parser " * 40,
        "ΐ" * 64 + " 数据库迁移失败了 getUserName",
        "",
    ]
    prompts = [block_event(f"p{number}", text) for number, text in enumerate(texts)]
    commands = [
        each
        for number, command in enumerate(["ls", f"cat {SIGNS}", f"echo {LONG}", "git show 0f3a9c1b"])
        for each in _call(number, {"command": command})
    ]
    return [
        ("a", prompts[:4]),
        (LONG, prompts[4:]),
        ("a\\0\0", commands),
        ("a", [compaction(1, 2), event(BlockRedacted(version=2))]),
        ("a", [compaction(1, 3, round_=2), event(CompactionReverted(versions=(5,)))]),
        ("a", [block_event("late", "a late parser")]),
    ]


ASKED = [
    "parser",
    "the parser",
    '"the the"',
    "pars*",
    "w1*",
    "getUserName",
    "user",
    "src/app/main.py",
    "needle word",
    '"word word word needle"',
    '"word needle haystack"',
    '"a b c d e f g h i j k l m n o p q r s t u v w x y z parser a b"',
    '"z parser a"',
    "w0 w39999",
    "w16381 w16382",
    '"w15999 w16000 w16001 w16002"',
    '"w249 w250 w251"',
    "迁移",
    "null slash",
    "cats\ud800parser",
]


@pytest.fixture
async def both(postgres_url: str, tmp_path: Path) -> AsyncIterator[tuple[EventStore, EventStore]]:
    """Play one log into a SQLite and a PostgreSQL store."""
    async with await SQLiteStore.open(tmp_path / "a.db") as first, await PostgresStore.open(postgres_url) as second:
        for conversation, events in _log():
            await first.append(conversation, events)
            await second.append(conversation, events)
        yield first, second


async def test_a_search_finds_the_same_blocks_in_the_same_order_at_the_same_ranks(
    both: tuple[EventStore, EventStore],
) -> None:
    """Long texts, which are several vectors, phrases across their seams, and signs that PostgreSQL refuses included."""
    hits = 0
    for asked in ASKED:
        for filters in ({}, {"conversation": "a"}, {"types": ["user.prompt"]}):
            first, second = [
                [
                    (f.conversation, f.version, f.path, f.type, f.at, f.snippet, round(f.rank, 6))
                    async for f in store.search(asked, **filters)
                ]
                for store in both
            ]
            assert second == first, (asked, filters)
            hits += len(first)
    assert hits > 2 * len(ASKED)


SAID = " ".join(f"said{number}" for number in range(20))
"""More words than two vectors of a text share."""
TOLD = " ".join(first + second for first in ascii_lowercase[:10] for second in ascii_lowercase)
"""More words than the server is asked for at once, in fewer characters than a query may have."""
RUN = "zzz" + "q" * 900
"""A run of letters that is cut into many words."""
HUMPS = "".join(f"Ab{sign}" for sign in "abcdefghijklmnopqr")
MANY = "filler " * 600
"""Makes several vectors of a text."""
PHRASES = (SAID, TOLD, RUN, HUMPS)


def _phrases() -> list[tuple[str, list[NewEvent]]]:
    """Return two conversations in which more texts hold a long phrase than are found, some of them its beginning."""
    texts = [
        text
        for number, phrase in enumerate(PHRASES)
        for text in (
            *(f"needle {phrase} tail{number}", f"{phrase} and {phrase}", f"needle {phrase[:-1]}", f"{phrase} later"),
            *(f"needle {MANY}{phrase}", f"{MANY}{phrase} {MANY}", f"needle {phrase[:-1]} {MANY}", f"needle {number}"),
        )
    ]
    texts += [f"nothing of that {number}" for number in range(40)]
    prompts = [block_event(f"p{number}", text) for number, text in enumerate(texts)]
    return [("a", prompts[::2]), ("b", prompts[1::2])]


async def test_a_long_phrase_has_the_same_ranks_however_many_texts_hold_it(postgres_url: str, tmp_path: Path) -> None:
    """In memory, in a file and on a server; also where few of the texts that hold it are hits."""
    quoted = [f'"{phrase}"' for phrase in (SAID, TOLD)]
    phrases = [*quoted, RUN, HUMPS, f"{RUN[:-2]}*"]
    asked = [*phrases, *(f"needle {phrase}" for phrase in phrases), " ".join(phrases[:2]), f"{quoted[0]} tail0"]
    hits = 0
    async with (
        open_store("memory://") as memory,
        open_store(tmp_path / "a.db") as file,
        open_store(postgres_url) as server,
    ):
        stores: list[EventStore] = [memory, file, server]
        for store in stores:
            for conversation, events in _phrases():
                await store.append(conversation, events)
        for query in asked:
            for filters in ({}, {"conversation": "a"}, {"types": ["user.prompt"]}):
                first, second, third = [await _ranked(store, query, filters) for store in stores]
                assert first == second, (query[:80], filters)
                assert third == second, (query[:80], filters)
                hits += len(second)
    assert hits > 2 * len(asked)


async def _ranked(store: EventStore, query: str, filters: dict[str, Any]) -> list[tuple[str, int, float]]:
    return [(f.conversation, f.version, round(f.rank, 6)) async for f in store.search(query, **filters)]


async def test_facts_are_the_same(both: tuple[EventStore, EventStore]) -> None:
    """All but their positions, which each store gives by its own rule."""
    for filters in (
        {},
        {"conversation": "a\\0\0"},
        {"subject": "\\"},
        {"subject": "null"},
        {"subject": "\0"},
        {"subject": LONG[:40]},
        {"kind": "command", "failed": False},
        {"tool": "Bash"},
        {"covered": True},
        {"query": "ls"},
        {"subject": "\ud800"},
    ):
        first, second = [
            [
                (f.conversation, f.kind, f.subject, f.at, f.path, f.version, f.tool, f.detail, f.covered, f.failed)
                async for f in store.facts(**filters, page=2)
            ]
            for store in both
        ]
        assert second == first, filters
    for conversation in ("a", LONG, "a\\0\0"):
        assert await both[1].fact_record(conversation) == await both[0].fact_record(conversation)


async def test_digests_are_the_same(both: tuple[EventStore, EventStore]) -> None:
    """In force, undone, and both, by any filter."""
    for filters in (
        {"reverted": None},
        {"reverted": True},
        {},
        {"path_glob": "**"},
        {"compaction_number": range(2, 9)},
    ):
        first, second = [
            [
                (d.conversation, d.version, d.at, d.compaction_number, d.digest, d.matched, d.reverted_by)
                async for d in store.digests(**filters, page=1)
            ]
            for store in both
        ]
        assert second == first, filters
