"""Damaged databases on the command line: the damage of one conversation hides no other one."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from tests.store.tampering import make
from timeline import Timeline, open_store
from timeline.blocks import UserPrompt
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

EVERY: Final = ["c", "fork", "other", "old"]
PAGE: Final = 4096
TABLE_LEAF: Final = 0x0D
"""How a page begins that holds rows, and no entries of an index."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store with compacted conversations, a fork and a scavenged one."""
    file = tmp_path_factory.mktemp("made") / "agent.db"
    asyncio.run(make(file))
    return file


@pytest.fixture
def damaged(run: Callable[..., Done], made: Path, db: Path) -> Path:
    """Return the database of the command, to be damaged: a copy of that store."""
    del run  # it looks at a database that is not there yet
    shutil.copy(made, db)
    return db


def _lose_event(file: Path, conversation: str, which: str) -> None:
    """Fill the page of a conversation's first event of a kind with zeros."""
    with closing(sqlite3.connect(file)) as connection:
        ((id_,),) = connection.execute(
            f"SELECT event_id FROM events WHERE {which} AND conversation ="  # noqa: S608 - the test's own condition
            " (SELECT key FROM conversations WHERE id = ?) ORDER BY position LIMIT 1",
            (conversation,),
        ).fetchall()
    content = file.read_bytes()
    pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]
    lost = next(number for number, page in enumerate(pages) if page[0] == TABLE_LEAF and id_.encode() in page)
    pages[lost] = bytes(PAGE)
    file.write_bytes(b"".join(pages))


def _exported(out: str) -> set[str]:
    lines = [json.loads(line) for line in out.splitlines()]
    return {line["conversation"] for line in lines if line["timeline"] == "event"}


def _versions(out: str) -> set[int]:
    lines = [json.loads(line) for line in out.splitlines()]
    return {line["version"] for line in lines if line["timeline"] == "event"}


def test_a_lost_compaction_hides_no_conversation(run: Callable[..., Done], damaged: Path) -> None:
    """The list has all of them, an export what reads of each, and a verification says which are damaged."""
    _lose_event(damaged, "other", "type = 'compaction.completed'")
    listed = run("ls")
    assert listed.code == Exit.DATABASE
    assert [line.split("\t")[0] for line in listed.out.splitlines()[1:]] == EVERY
    assert "when conversation 'other' was compacted do not read" in listed.err
    assert len(run("ls", "--json").out.splitlines()) > len(EVERY)
    exported = run("export", "--all")
    assert (exported.code, _exported(exported.out)) == (Exit.DATABASE, set(EVERY))
    assert "when conversation 'other' was compacted" in exported.err
    assert run("export", "other").code == Exit.DATABASE
    verified = run("verify", "--json")
    assert verified.code == Exit.NOT_SO
    assert {each["conversation"]: each["ok"] for each in verified.json["conversations"]}.keys() == set(EVERY)
    assert "when conversation 'other' was compacted" in verified.json["problems"][0]
    deep = run("verify", "--deep", "--json")
    assert (deep.code, len(deep.json["conversations"])) == (Exit.NOT_SO, len(EVERY))
    assert run("repair").code == Exit.NOT_SO


def test_an_agent_goes_on_where_a_compaction_of_long_ago_is_lost(run: Callable[..., Done], damaged: Path) -> None:
    """Its window is behind it."""
    before = run("render", "other").out
    _lose_event(damaged, "other", "type = 'compaction.completed'")
    assert run("render", "other").out == before

    async def go_on() -> None:
        async with await open_store(damaged) as store:
            timeline = await Timeline.open(store, "other")
            await timeline.append(UserPrompt(text="And now?"))
            assert (await timeline.render()).to_openai_chat()["messages"][-1]["content"] == "And now?"

    asyncio.run(go_on())


def test_a_lost_page_of_scavenged_history_ends_no_export(run: Callable[..., Done], damaged: Path) -> None:
    """Where nobody can say whether all is there, the log begins where its row says that it does."""
    _lose_event(damaged, "old", "checksum = ''")
    exported = run("export", "--all")
    assert exported.code == Exit.DATABASE
    assert _exported(exported.out) == set(EVERY), exported.err


def test_an_export_lacks_no_more_than_what_was_lost(run: Callable[..., Done], damaged: Path) -> None:
    """What lies before a lost page and behind it is written, although a page of the store is read whole or not."""
    whole = _versions(run("export", "other").out)
    _lose_event(damaged, "other", "version > 20")
    lost = sorted(whole - _versions(run("export", "other").out))
    assert 0 < len(lost) <= lost[-1] - lost[0] + 1 < 15
    assert _versions(run("export", "other").out) >= {1, 2, 3}
    assert run("copy", "--from", str(damaged), "--to", f"{damaged}.copy").code == Exit.DATABASE
    assert _versions(run("export", "other", "--db", f"{damaged}.copy").out) == set(range(1, lost[0]))


def test_a_conversation_whose_redactions_do_not_read_is_left_out(run: Callable[..., Done], damaged: Path) -> None:
    """So is its parent, of which it may have redacted something; all others are exported."""

    async def redact() -> None:
        async with await open_store(damaged) as store:
            fork = await Timeline.open(store, "fork")
            said = await fork.append(
                *(UserPrompt(text=Random(n).randbytes(3_000).hex()) for n in range(4))
            )  # they fill pages
            await fork.redact(said[-1].path, "a secret")

    asyncio.run(redact())
    _lose_event(damaged, "fork", "type = 'block.redacted'")
    exported = run("export", "--all")
    assert exported.code == Exit.DATABASE
    assert _exported(exported.out) == {"other", "old"}
    assert "fork is left out, because it cannot be found out what was redacted in it" in exported.err


def test_a_conversation_whose_row_is_gone_is_told_of(run: Callable[..., Done], damaged: Path) -> None:
    """Its events are there, and nothing leads to them: each command that lists all says so behind the others."""
    with closing(sqlite3.connect(damaged)) as connection, connection:
        connection.execute("DELETE FROM conversations WHERE id = 'other'")
    said = "there are events of conversations whose rows are gone: 1 of them are not listed"
    for command in (["ls"], ["export", "--all"], ["copy", "--from", str(damaged), "--to", f"{damaged}.copy"]):
        done = run(*command)
        assert done.code == Exit.DATABASE
        assert said in done.err
    verified = run("verify")
    assert verified.code == Exit.NOT_SO
    assert said in verified.out
