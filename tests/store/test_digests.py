from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlmodel import Session, create_engine, select

from tests.depth import examples
from tests.downgrade import before_digest_rows
from timeline import open_store
from timeline.digest import Artifact, Command, Digest, FileUse, HiddenBlock, Problem, Search, ToolOutputs
from timeline.events import CompactionCompleted, CompactionReverted
from timeline.store.digests import entries_of
from timeline.store.globs import parse_glob
from timeline.store.memory import MemoryStore
from timeline.store.sqlite.schema import CompactionRow, DigestEntryRow
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import compaction, event, events
from timeline.store.testing.samples import START

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from timeline.events import Event, NewEvent
    from timeline.ports import EventStore

TOOLS = st.sampled_from(["Bash", "Read", "Edit", "bash", ""])
FILES = st.sampled_from(
    ["src/app/main.py", "src/app.py", "src/a/b/c.py", "/src/app.py", "main.py", "Ä/[x].py", "a\nb", ""]
)
TEXTS = st.sampled_from(["pytest -x", "git status", "make test", "no such file", "ünïcode", "%_*", ""])
NUMBERS = st.sampled_from([0, 1, 2, 10**30])
BLOCK = st.just("tc:1")


def lists(entry: SearchStrategy[Any]) -> SearchStrategy[tuple[Any, ...]]:
    """Draw a list of a digest."""
    return st.lists(entry, max_size=2).map(tuple)


DIGESTS = st.builds(
    Digest,
    artifacts=lists(st.builds(Artifact, path=FILES)),
    tool_outputs=lists(st.builds(ToolOutputs, tool=TOOLS, count=NUMBERS, tokens=NUMBERS, errors=NUMBERS)),
    files_read=lists(st.builds(FileUse, file=FILES, tool=TOOLS, path=BLOCK)),
    files_written=lists(st.builds(FileUse, file=FILES, tool=TOOLS, path=BLOCK, times=NUMBERS)),
    commands=lists(st.builds(Command, command=TEXTS, path=BLOCK, failed=st.booleans(), output=TEXTS)),
    searches=lists(st.builds(Search, query=TEXTS, tool=TOOLS, path=BLOCK, hits=NUMBERS | st.none())),
    hidden=lists(st.builds(HiddenBlock, path=BLOCK, replacement=TEXTS)),
    errors=lists(st.builds(Problem, tool=TOOLS, path=BLOCK, message=TEXTS)),
    stages=lists(TEXTS),
)
PIECES = ["*", "**", "**/", "?", "src", "/", "app", ".py", "main", "[!a]", "[x]", "[", "Ä"]
GLOBS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "conversation": st.sampled_from(["a", "b"]),
        "since": st.integers(0, 9),
        "until": st.integers(0, 9),
        "tool": st.sampled_from(["Bash", "Read", "bash", "nothing"]),
        "path_glob": GLOBS.map("".join),
        "command": st.sampled_from(["pytest", "t", "%", "ï"]),
        "error": st.booleans() | st.sampled_from(["file", "make", "_"]),
        "compaction_number": st.integers(0, 3) | st.builds(range, st.integers(0, 2), st.integers(3, 5)),
        "reverted": st.booleans() | st.none(),
    },
)


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[str, NewEvent]]:
    """Draw appends of compactions and their reversions to two conversations."""
    made = []
    for number in range(draw(st.integers(1, 7))):
        version = st.integers(1, 9)
        payload = draw(st.builds(CompactionReverted, versions=st.lists(version, min_size=1, max_size=2).map(tuple)))
        compacted = compaction(1, 1, digest=draw(DIGESTS), round_=draw(st.integers(1, 3) | NUMBERS))
        summary = compacted.payload.block.model_copy(update={"path": f"su:{number}"})  # type: ignore[attr-defined] # made so
        compacted = compacted.model_copy(update={"payload": compacted.payload.model_copy(update={"block": summary})})
        written = compacted if draw(st.integers(0, 3)) else event(payload)
        at = START + timedelta(hours=draw(st.integers(0, 9)))
        made.append((draw(st.sampled_from("ab")), written.model_copy(update={"at": at})))
    return [*made, ("a", events(1)[0]), ("b", events(1)[0])]


@settings(max_examples=examples(60), deadline=None)
@given(log=logs(), asked=st.lists(FILTERS, min_size=3, max_size=6), page=st.integers(1, 3))
def test_a_store_finds_what_a_naive_filter_finds(
    log: list[tuple[str, NewEvent]], asked: list[dict[str, Any]], page: int
) -> None:
    """Whatever is asked of whatever log, indexes and pages change nothing; both stores answer alike."""

    async def check(store: EventStore) -> list[list[Any]]:
        for conversation, written in log:
            await store.append(conversation, [written])
        read = [e async for e in store.read_all()]
        answers = []
        for filters in asked:
            given_: dict[str, Any] = {
                key: START + timedelta(hours=v) if key in {"since", "until"} else v for key, v in filters.items()
            }
            found = [digest async for digest in store.digests(**given_, page=page)]
            assert [digest.position for digest in found] == [e.position for e in read if _naive(e, read, given_)]
            answers.append(found)
        return answers

    async def both() -> None:
        with TemporaryDirectory() as folder:
            async with await SQLiteStore.open(Path(folder) / "agent.db", durability="normal") as stored:
                assert await check(stored) == await check(MemoryStore())

    asyncio.run(both())


def _naive(e: Event, log: list[Event], filters: dict[str, Any]) -> bool:
    """Say whether an event is a compaction that filters mean, from nothing but the log."""
    payload = e.payload
    if not isinstance(payload, CompactionCompleted):
        return False
    digest = payload.digest
    files = [use.file for use in (*digest.files_read, *digest.files_written)] + [a.path for a in digest.artifacts]
    with_tool: list[Any] = [
        *digest.tool_outputs,
        *digest.files_read,
        *digest.files_written,
        *digest.searches,
        *digest.errors,
    ]
    messages = [problem.message for problem in digest.errors] + [c.output for c in digest.commands if c.failed]
    failed = bool(messages) or any(outputs.errors for outputs in digest.tool_outputs)
    undone = any(
        isinstance(other.payload, CompactionReverted)
        and other.conversation == e.conversation
        and other.version > e.version
        and e.version in other.payload.versions
        for other in log
    )
    rounds, error, reverted = filters.get("compaction_number"), filters.get("error"), filters.get("reverted", False)
    return all(
        [
            filters.get("conversation") in {None, e.conversation},
            filters.get("since", e.at) <= e.at <= filters.get("until", e.at),
            "tool" not in filters or any(entry.tool == filters["tool"] for entry in with_tool),
            "path_glob" not in filters or any(_fits(filters["path_glob"], file) for file in files),
            "command" not in filters or any(filters["command"] in c.command for c in digest.commands),
            error is None or (error == failed if isinstance(error, bool) else any(error in m for m in messages)),
            rounds is None or payload.round in (rounds if isinstance(rounds, range) else {rounds}),
            reverted is None or reverted == undone,
        ]
    )


def _fits(glob: str, path: str, before: str = "/") -> bool:
    """Match by trying every way in which the first sign of a glob can be spent; ``before`` is the sign before it."""
    if not glob:
        return not path
    if before == "/" and glob.startswith("**/"):
        rests = [path, *(path[n + 1 :] for n, sign in enumerate(path) if sign == "/")]
        return any(_fits(glob[3:], rest) for rest in rests)
    if glob.startswith("*"):
        reach = len(path) if glob.startswith("**") else len(path.partition("/")[0])
        rest = glob.lstrip("*") if glob.startswith("**") else glob[1:]
        return any(_fits(rest, path[n:], "*") for n in range(reach + 1))
    one, rest = _one_sign(glob)
    return bool(path) and one(path[0]) and _fits(rest, path[1:], glob[0])


def _one_sign(glob: str) -> tuple[Callable[[str], bool], str]:
    """Return what the first sign of a glob says of one character, and the rest of the glob."""
    begun = len("[!]") if glob.startswith("[!]") else len("[]") if glob.startswith("[]") else 1
    end = glob.find("]", begun)
    if glob[0] == "?":
        return lambda sign: sign != "/", glob[1:]
    if glob[0] != "[" or end < 0:
        return lambda sign: sign == glob[0], glob[1:]
    members = glob[1:end].removeprefix("!")
    return lambda sign: sign != "/" and (sign in members) != glob.startswith("[!"), glob[end + 1 :]


@pytest.mark.parametrize(
    ("glob", "fits", "others"),
    [
        ("src/*.py", ["src/a.py", "src/.py"], ["src/a/b.py", "src/a.pyc", "/src/a.py"]),
        ("src/**", ["src/", "src/a", "src/a/b"], ["src", "xsrc/a"]),
        ("src/**/*.py", ["src/a.py", "src/a/b.py", "src/a/b/c.py"], ["src/a", "a.py"]),
        ("**/a.py", ["a.py", "x/a.py", "/x/y/a.py"], ["ba.py", "x/a.pyc"]),
        ("**/**/a", ["a", "b/a", "b/c/a"], ["ba"]),
        ("**", ["", "a", "a/b", "a\nb"], []),
        ("*", ["", "a", "a.b"], ["a/b"]),
        ("a**b", ["ab", "a/b", "axb", "a/x/b"], ["a", "ab/"]),
        ("a?c", ["abc", "a.c"], ["ac", "a/c", "abbc"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "-x", "x"]),
        ("[!a-c]x", ["dx"], ["ax", "/x"]),
        ("[!a]", ["b"], ["a", "/"]),
        ("a[/]b", [], ["a/b"]),
        ("[]]", ["]"], ["[", ""]),
        ("[-a]", ["-", "a"], ["b"]),
        ("[[]x]", ["[x]"], ["x"]),
        ("[^a]", ["^", "a"], ["b"]),
        ("[&&~|]", ["&", "~", "|"], ["x"]),
        ("a[b", ["a[b"], ["ab"]),
        ("a.b+(c)$", ["a.b+(c)$"], ["axb+(c)$"]),
        ("Ä/ü", ["Ä/ü"], ["ä/ü"]),
    ],
)
def test_a_glob_fits_whole_paths(glob: str, fits: list[str], others: list[str]) -> None:
    """Stars and question marks stay in a folder, two stars do not; classes are of characters, and never of slashes."""
    parsed = parse_glob(glob)
    assert [path for path in fits if not parsed.fits(path)] == []
    assert [path for path in others if parsed.fits(path)] == []


@pytest.mark.timeout(60)  # trying each way takes longer than anybody waits
@pytest.mark.parametrize("piece", ["*a", "**a", "*?", "**/*", "*[a]", "?*"])
def test_a_glob_of_many_stars_is_as_quick_as_any(piece: str) -> None:
    """A path that nearly fits costs its length times the glob's, not two to the power of the stars."""
    glob, path = parse_glob(f"/{piece * 200}*b"), f"/{'a' * 20_000}"
    assert not glob.fits(path)
    assert glob.fits(f"{path}b") or "/" in piece


@pytest.mark.timeout(60)
@pytest.mark.parametrize("url", ["memory://", "file"])
async def test_a_query_by_a_glob_of_many_stars_is_answered(url: str, tmp_path: Path) -> None:
    """In memory and in SQLite, whose own globs find the candidates."""
    written = (FileUse(file="/" + "a" * 100, tool="write", path="tc:turn_1.call_1.call"),)
    covered = [*events(2), compaction(1, 2, digest=Digest(files_written=written))]
    async with open_store(str(tmp_path / "x.db") if url == "file" else url) as store:
        await store.append("c", covered)
        assert [d async for d in store.digests(path_glob="/*a*a*a*a*a*a*a*a*a*b")] == []
        assert len([d async for d in store.digests(path_glob="/*a*a*a*a*a*a*a*a*a*")]) == 1


async def test_every_entry_of_a_digest_that_a_filter_asks_for_is_a_row(tmp_path: Path) -> None:
    """The rows can be queried with SQLModel: one for the compaction, one for each such entry, with its columns.

    Hidden blocks are only in the event: their rows were as large as all others together, and no filter read them.
    """
    digest = Digest(
        hidden=(HiddenBlock(path="tc:1", replacement="[cleared]"),),
        stages=("one",),
        tool_outputs=(ToolOutputs(tool="Bash", count=2, tokens=90, errors=1),),
        files_written=(FileUse(file="src/a.py", tool="Edit", path="tc:2", times=3),),
        commands=(Command(command="make", path="tc:3", exit_status=2, failed=True, output="no rule"),),
        errors=(Problem(tool="Edit", path="tc:4", message="no such string"),),
    )
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        await store.append("a", [*events(2), compaction(1, 2, digest=digest, round_=4)])
        assert [stored.digest async for stored in store.digests(tool="Bash")] == [digest]
    engine = create_engine(f"sqlite:///{tmp_path / 'agent.db'}")
    with Session(engine) as session:
        (row,) = session.exec(select(CompactionRow)).all()
        assert (row.position, row.version, row.round, row.source, row.summary) == (
            3,
            3,
            4,
            "engine",
            "su:turn_1.conv.range.summary.1.2",
        )
        assert (row.first_version, row.last_version, row.before_tokens, row.after_tokens, row.errors) == (
            1,
            2,
            100,
            20,
            3,
        )
        entries = session.exec(select(DigestEntryRow)).all()
        assert {
            (e.list, e.subject, e.tool, e.times, e.tokens, e.exit_status, e.errors, e.message) for e in entries
        } == {
            ("tool_outputs", "Bash", "Bash", 2, 90, None, 1, ""),
            ("files_written", "src/a.py", "Edit", 3, None, None, 0, ""),
            ("commands", "make", None, None, None, 2, 1, "no rule"),
            ("errors", "Edit", "Edit", None, None, None, 1, "no such string"),
        }
    engine.dispose()


@pytest.mark.parametrize("damaged", [False, True])
async def test_a_store_of_the_schema_before_gets_its_rows(tmp_path: Path, damaged: bool) -> None:  # noqa: FBT001 - pytest
    """Opened for writing, it has rows for the compactions that are in its log; one that is damaged stops nothing."""
    file = tmp_path / "agent.db"
    digests = [Digest(commands=(Command(command=f"make {n}", path="tc:1"),)) for n in range(250)]
    async with await SQLiteStore.open(file, durability="normal") as store:
        await store.append("a", [compaction(n, n, digest=digest) for n, digest in enumerate(digests)])
        await store.append("b", [*events(2), compaction(1, 1)])
        await store.append("a", [event(CompactionReverted(versions=(250, 249)))])
        before = [digest async for digest in store.digests(reverted=None)]
    before_digest_rows(file)
    if damaged:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE events SET payload = 'x' WHERE version = 7 AND conversation = 1")
            before = [digest for digest in before if (digest.conversation, digest.version) != ("a", 7)]
    async with await SQLiteStore.open(file) as store:
        assert [digest async for digest in store.digests(reverted=None)] == before
        assert [digest.version async for digest in store.digests(command="make 200")] == [201]
        assert [digest.version async for digest in store.digests(reverted=True)] == [249, 250]
        assert [found.conversation async for found in store.search("hello 1")] == ["b"]


def test_entries_come_list_by_list() -> None:
    """An entry knows its list and its place in it."""
    digest = Digest(stages=("one", "two"), hidden=(HiddenBlock(path="tc:1", replacement="[cleared]"),))
    assert [(e.list, e.number, e.subject, e.message) for e in entries_of(digest)] == [
        ("hidden", 0, "tc:1", "[cleared]"),
        ("stages", 0, "one", ""),
        ("stages", 1, "two", ""),
    ]
