"""A server that shows some conversations of a file, and of the others not even that they are there."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.integrations.mcp.recorded import ask, asking, asking_process, record, said
from tests.scenes import AT
from timeline import Timeline, open_store
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.errors import InvalidArgument
from timeline.events import NewEvent, UnknownPayload, event_id
from timeline.integrations.mcp.scope import Scope

if TYPE_CHECKING:
    from pathlib import Path

    from mcp import Client

SECRETS: Final = ("zebra", "Quokka", "hidden.py", "acme-secret")
MINE: Final = Scope.of(["mine-*"])


@pytest.fixture
async def db(tmp_path: Path) -> Path:
    """Give a database with a conversation of ours, another one, and a fork of that which is ours."""
    file = tmp_path / "recorded.db"
    await record(file, "mine-1")
    await record(file, "acme-secret", title="The zebra")
    async with open_store(file) as store:
        other = await Timeline.open(store, "acme-secret")
        await other.append(
            UserPrompt(text="login of the Quokka"),
            ToolCall(call_id="z1", name="edit", arguments={"file_path": "zebra/hidden.py"}),
            ToolResult(call_id="z1", text="edited the zebra"),
        )
        branch = await other.fork(conversation="mine-fork", at=2)
        await branch.append(UserPrompt(text="login of mine"))
    return file


def test_a_single_text_is_no_list_of_conversations() -> None:
    """The letters of "mine-*" are ids, and its star is a prefix that every id has: the client saw all of them."""
    with pytest.raises(InvalidArgument, match="put a single one into brackets"):
        Scope.of("mine-*")


async def _everything(client: Client, words: tuple[str, ...]) -> list[str]:
    """Ask all that may give another conversation away; return every answer, errors too."""
    names = ["acme-secret", "acme-secre", "mine-1", "mine-fork", "nothing"]
    asked: list[tuple[str, dict[str, Any]]] = [
        ("conversations", {}),
        ("conversations", {"query": "acme"}),
        ("conversations", {"query": "the"}),
        ("digests", {}),
        ("facts", {}),
        ("facts", {"failed": True}),
        *(("search", {"query": word}) for word in words),
        *((tool, {"conversation": name}) for tool in ("digests", "facts", "record") for name in names),
        *(("search", {"query": "login", "conversation": name}) for name in names),
        *(("read", {"conversation": name, "path": path}) for name in names for path in _PATHS),
        *(("read", {"path": f"{name}@{number}"}) for name in names for number in (1, 2, 40)),
    ]
    return [str(await client.call_tool(tool, arguments)) for tool, arguments in asked]


_PATHS: Final = ("ar:turn_1.user.prompt", "@2", "@40", "acme-secret@2", "tc:turn_1.z1.result")


def _shown(answers: list[str]) -> list[str]:
    """Return the answers that give a word of another conversation away; a name that the client itself gave is none."""
    given = [
        re.sub(r"(conversation|there is no) '?acme-secret?'?|acme-secret@\d+|'acme-secret?'", "", a) for a in answers
    ]
    return [answer for answer in given if any(word in answer for word in SECRETS)]


async def test_no_answer_and_no_error_shows_another_conversation(db: Path) -> None:
    """By any tool: not its id, its title, its text, its files, nor a suggestion, nor as the parent of a fork."""
    async with asking(db) as client:
        assert _shown(await _everything(client, ("zebra", "Quokka", "login")))
    async with asking(db, scope=MINE) as client:
        assert _shown(await _everything(client, ("zebra", "Quokka", "login"))) == []


async def test_what_is_in_the_scope_is_served_as_ever(db: Path) -> None:
    """Lists, hits, facts, records and blocks of both conversations of ours, and what the fork shares."""
    async with asking(db, scope=MINE) as client:
        listed = (await ask(client, "conversations"))["conversations"]
        assert {row["id"] for row in listed} == {"mine-1", "mine-fork"}
        assert [row["parent"] for row in listed] == [None, None]
        found = (await ask(client, "search", query="login"))["found"]
        assert {row["conversation"] for row in found} == {"mine-1", "mine-fork"}
        assert (await ask(client, "facts", conversation="mine-1"))["facts"]
        assert (await ask(client, "facts"))["facts"]
        assert (await ask(client, "digests"))["digests"]
        assert (await ask(client, "record", conversation="mine-1"))["lines"]
        assert "login test pass" in (await ask(client, "read", path="mine-fork@2"))["content"]
        assert (await ask(client, "read", conversation="mine-1", path="ar:turn_1.user.prompt"))["outcome"] == "found"


async def test_the_facts_of_a_fork_are_those_of_the_past_that_it_shares_too(db: Path) -> None:
    """As in its record, and by addresses of its own: whose past it was is not told."""
    async with asking(db, scope=MINE) as client:
        facts = (await ask(client, "facts", conversation="mine-fork"))["facts"]
        assert {fact["conversation"] for fact in facts} == {"mine-fork"}
        shared = [fact for fact in facts if fact["address"] == "mine-fork@2"]
        assert shared
        assert shared[0]["subject"] in (await ask(client, "read", path="mine-fork@2"))["content"]


async def test_another_conversation_is_answered_as_one_that_does_not_exist(db: Path) -> None:
    """The same words, but for the name."""
    async with asking(db, scope=MINE) as client:
        for tool, arguments in (("record", {}), ("read", {"path": "@2"}), ("facts", {}), ("search", {"query": "x"})):
            other, none = [
                said(await client.call_tool(tool, {**arguments, "conversation": name}))
                for name in ("acme-secret", "acme-sacred")
            ]
            assert other.replace("acme-secret", "acme-sacred") == none


async def test_damage_of_another_conversation_is_not_told_by_its_name(db: Path) -> None:
    """A search that reads the log meets it; the error says only that something is damaged."""
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(
            "UPDATE events SET payload = replace(payload, 'zebra', 'cobra') WHERE payload LIKE '%edited the zebra%'"
        )
        connection.commit()
    async with asking(db, scope=MINE) as client:
        answers = await _everything(client, ("cobra", "zebra", "login"))
        assert _shown(answers) == []
        assert (await ask(client, "read", conversation="mine-1", path="@2"))["outcome"] == "found"


async def test_what_a_later_version_wrote_is_said_without_its_name(db: Path) -> None:
    """It is no damage, and the server is what has to be upgraded."""
    later = UnknownPayload(type="blocks.pinned", data={"versions": [2], "until": 9})
    async with open_store(db) as store:
        at = (await store.append("mine-1", [NewEvent(id=event_id(AT), at=AT, payload=later)])).version
    async with asking(db, scope=MINE) as client:
        answer = said(await client.call_tool("read", {"conversation": "mine-1", "path": f"@{at}"}))
    assert "to upgrade it" in answer
    assert "damaged" not in answer


@pytest.mark.parametrize("more", [0, 60])
async def test_hits_of_others_crowd_none_out(tmp_path: Path, more: int) -> None:
    """The best thousand hits of the file are another conversation's, however many conversations are in the scope."""
    file = tmp_path / "recorded.db"
    async with open_store(file) as store:
        other = await Timeline.open(store, "acme-secret")
        await other.append(*(UserPrompt(text=f"zebra zebra {number}") for number in range(1_100)))
        mine = await Timeline.open(store, "mine-1")
        await mine.append(UserPrompt(text="one zebra in a long prompt " + "and more words " * 50))
        for number in range(more):
            await Timeline.open(store, f"mine-{number + 2}")
    async with asking(file, scope=MINE) as client:
        found = (await ask(client, "search", query="zebra"))["found"]
        assert [row["conversation"] for row in found] == ["mine-1"]


async def test_the_command_serves_what_it_is_told_to(db: Path) -> None:
    """By ids and by beginnings of ids."""
    async with asking_process(db, "--only", "mine-1", "--only", "nothing*") as client:
        assert [row["id"] for row in (await ask(client, "conversations"))["conversations"]] == ["mine-1"]
        assert (await client.call_tool("record", {"conversation": "mine-fork"})).is_error
