"""Any text in every place that takes one: a PostgreSQL store answers as a file does, or refuses as it does."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from timeline import open_store
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.digest import Command, Digest, FileUse, Problem
from timeline.errors import TimelineError
from timeline.events import BlockAppended, BlocksHidden, ConversationOpened, Replacement, UnknownPayload
from timeline.frozen import repair_text, sha256_hex
from timeline.store.testing import compaction, event, fork
from timeline.store.testing.samples import START

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from timeline.events import NewEvent, Payload
    from timeline.ports import EventStore

TEXTS: Final = {
    "nul": "a\0b",
    "escapes": "a\\0b%_'\"$1\U0001f600\uffff",
    "surrogate": "a\ud800b",
    "long": "é" * 5_000,
}


def block(text: str, path: str = "", turn_id: str = "") -> Payload:
    """Return the payload of a prompt."""
    return BlockAppended(block=UserPrompt(text=text, path=path, turn_id=turn_id), tokens=1, counter="c")


def called(text: str) -> list[Payload]:
    """Return a call of a tool with a text in all places, and its failed result."""
    call = ToolCall(call_id=text, name=text, arguments={text: text}, turn_id="t")
    result = ToolResult(call_id=text, name=text, text=text, is_error=True, turn_id="t")
    return [BlockAppended(block=one, tokens=1, counter="c") for one in (call, result)]


def digest(text: str) -> Digest:
    """Return a digest with a text in all places that are looked up."""
    return Digest(
        commands=(Command(command=text, path="p", exit_status=1),),
        files_read=(FileUse(file=text, tool=text, path="p"),),
        errors=(Problem(tool=text, message=text, path="p"),),
    )


def appends(text: str) -> dict[str, Callable[[EventStore], Any]]:
    """Return appends with a text in each place; both stores get the same events, for a conversation a place."""
    given: dict[str, list[NewEvent]] = {}

    def places(name: str, *payloads: Callable[[], Payload]) -> Callable[[EventStore], Any]:
        def append(store: EventStore) -> Any:
            if name not in given:
                given[name] = [event(payload()) for payload in payloads]
            return store.append(name, given[name])

        return append

    return {
        "text": places("text", lambda: block(text)),
        "path": places("path", lambda: block("x", text), lambda: block("y", text + ".more")),
        "turn": places("turn", lambda: block("x", "", text)),
        "title": places("title", lambda: ConversationOpened(title=text)),
        "type": places("type", lambda: UnknownPayload(type=text[:500], data={text: text})),
        "calls": places("calls", lambda: called(text)[0], lambda: called(text)[1]),
        "digest": places("digest", lambda: block("x"), lambda: compaction(1, 1, digest=digest(text)).payload),
        "hidden": places(
            "hidden",
            lambda: block("x"),
            lambda: BlocksHidden(reason=text, blocks=(Replacement(version=1, text=text),)),
        ),
        "id": lambda store: store.append(text, [given.setdefault("id", [event(block("x"))])[0]]),
        "fork": lambda store: store.append("f" + text, given.setdefault("fork", [event(fork(text, 1).payload)])),
        "value": lambda store: store.append(
            "value",
            given.setdefault("value", [event(block("x"))]),
            values={sha256_hex(repair_text(text)): text},
        ),
    }


def questions(text: str) -> dict[str, Callable[[EventStore], Any]]:
    """Return each question that takes a text, with it."""
    return {
        "info": lambda store: store.info(text),
        "read": lambda store: store.read(text),
        "title": lambda store: store.info("title"),
        "all": lambda store: store.conversations(),
        "types": lambda store: store.read_all(types=[text, "compaction.completed"]),
        "find": lambda store: store.find("path", text),
        "paths": lambda store: store.paths_taken("path", [text, "a", "é"]),
        "values": lambda store: store.values([text, sha256_hex(repair_text(text))]),
        "window": lambda store: store.load_window(text),
        "search": lambda store: store.search(text),
        "search in": lambda store: store.search("x", conversation=text),
        "digests of": lambda store: store.digests(conversation=text),
        "command": lambda store: store.digests(command=text),
        "error": lambda store: store.digests(error=text),
        "tool": lambda store: store.digests(tool=text),
        "glob": lambda store: store.digests(path_glob=text[:500]),
        "subject": lambda store: store.facts(subject=text),
        "facts": lambda store: store.facts(query=text),
        "damage": lambda store: store.examine(),
        "facts of": lambda store: store.facts(tool=text),
        "forks": lambda store: store.forks(text),
        "base": lambda store: store.load_base(text),
        "replace": lambda store: store.replace_waypoints(text, []),
        "rehearse": lambda store: store.rehearse([text]),
        "remove": lambda store: store.remove(text),
        "erase why": lambda store: store.erase("text", reason=text, at=START),
        "erase": lambda store: store.erase(text, forks="erase", at=START),
        "erased": lambda store: store.info("text"),
        "lease": lambda store: store.take_lease(repair_text(text), START, START + timedelta(seconds=1)),
    }


async def answer(asked: Any) -> str:
    """Return an answer, or the error, without what is a store's own: positions, sizes, and rounding of ranks."""
    try:
        found = [each async for each in asked] if hasattr(asked, "__aiter__") else await asked
    except TimelineError as error:
        return f"{type(error).__name__}: {error}"
    told = repr(found if not isinstance(found, set) else sorted(found))
    told = re.sub(r"(rank=\d+\.\d{6})\d+", r"\1", told)
    return re.sub(r"position=\d+|physical=\w+|(?:left|reached)=\{.*?\}, |bytes\w*=\d+|Rehearsal\(.*", "…", told)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_a_text_is_taken_found_and_refused_as_elsewhere(postgres_url: str, tmp_path: Path, text: str) -> None:
    """In an id, a path, a turn, a title, a type, a call, a digest, a value; and in every question that takes a text.

    The other store is a file, or memory where the text has U+0000: SQLite's JSON functions end a text there.
    """
    elsewhere = "memory://" if "\0" in text else tmp_path / "agent.db"
    async with open_store(postgres_url) as store, open_store(elsewhere) as other:
        for place, ask in {**appends(text), **questions(text)}.items():
            assert await answer(ask(store)) == await answer(ask(other)), place
        read = [[(e.conversation, e.version, e.payload) async for e in one.read_all()] for one in (store, other)]
        assert sorted(map(repr, read[0])) == sorted(map(repr, read[1]))
