"""What docs/bytes.md says of the stored bytes, held against real files by the page's own verifier."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.project.pages import code_blocks
from tests.project.sources import ROOT
from tests.scenes import Scribe, small_policy
from timeline import Timeline, open_store
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.fold.states import block_states
from timeline.retention import scavenge
from timeline.store.packing import _DICTIONARY

PAGE: Final = ROOT / "docs" / "bytes.md"
POLICY: Final = small_policy(max_tokens=4_000, keep_recent_tokens=400)
EDITS: Final = {
    "a payload": "UPDATE events SET payload = replace(payload, 'look', 'lock'), packed = NULL WHERE version = 2",
    "a packed payload": "UPDATE events SET packed = substr(packed, 1, 40) WHERE packed IS NOT NULL AND checksum <> ''",
    "a time": "UPDATE events SET at = '2001-01-01T00:00:00.000000Z' WHERE version = 9",
    "a salt": "UPDATE events SET salt = randomblob(16) WHERE version = 7",
    "a path of what was scavenged": "UPDATE events SET path = path || 'x' WHERE checksum = '' AND path IS NOT NULL",
    "a type of what was scavenged": "UPDATE events SET turn_id = 'hook.failed' WHERE type = 'scavenged'",
    "an event in the middle": "DELETE FROM events WHERE version = 12",
    "the newest event": "DELETE FROM events WHERE version = (SELECT max(version) FROM events)",
    "a head": "UPDATE conversations SET head = randomblob(33)",
    "a stored text": "UPDATE stored_values SET text = text || ' '",
    "the owner of a shared event": "UPDATE conversations SET base = base - 1 WHERE base > 0",
}


@pytest.fixture(scope="module")
def verifier() -> dict[str, Any]:
    """Return the names that the page's program defines."""
    names: dict[str, Any] = {}
    for block in code_blocks(PAGE.read_text(encoding="utf-8")):
        exec(compile(block.text, PAGE.name, "exec"), names)  # noqa: S102 - our own page
    return names


async def work(timeline: Timeline, rounds: int) -> None:
    """Go on with calls, results, contexts and model calls; the policy hides and compacts."""
    for n in range(rounds):
        context = await timeline.render(system="Be brief.")
        await timeline.record_model_call(request=context.request("anthropic", model="m", max_tokens=1))
        id_ = f"{timeline.window.version}"
        call = ToolCall(call_id=id_, name="bash", arguments={"command": f"pytest {n}"}, response_id=f"m{id_}")
        await timeline.append(call, ToolResult(call_id=id_, text=f"failed {n} in src/{n}.py\n" * 40))


async def make(path: Path) -> None:
    """Make a file with all that the page speaks of."""
    async with await open_store(path, durability="normal") as store:
        timeline = await Timeline.open(store, "cards", policy=POLICY, summarizer=Scribe())
        await timeline.append(UserPrompt(text="look at all of it"))
        await work(timeline, 80)
        await timeline.hide(f"@{timeline.window.items[-1].version}")
        fork = await timeline.fork(conversation="fork")
        await work(fork, 12)
        await fork.undo_compaction()
        await timeline.redact([f"@{timeline.window.items[-3].version}"], "asked for")
        scavenged = await Timeline.open(store, "scavenged", policy=POLICY, summarizer=Scribe())
        await scavenged.append(UserPrompt(text="look at all of this, too"))
        await work(scavenged, 2)
        await scavenged.hide(f"@{scavenged.window.items[-1].version}")
        await work(scavenged, 30)
        await scavenged.set_retention("window")
        await scavenge(store, conversations=["scavenged"])
        parent = await Timeline.open(store, "erased", policy=POLICY, summarizer=Scribe())
        await parent.append(UserPrompt(text="look"))
        await parent.fork(conversation="copy")
        await store.erase("erased", forks="copy")
    with closing(sqlite3.connect(path)) as connection:
        packed, salted = "packed IS NOT NULL AND checksum <> ''", "salt IS NULL AND link IS NOT NULL"
        for condition in (packed, salted, "checksum = ''", "type = 'scavenged'", "type = 'compaction.reverted'"):
            assert connection.execute(f"SELECT 1 FROM events WHERE {condition}").fetchone(), condition  # noqa: S608


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the file once."""
    path = tmp_path_factory.mktemp("bytes") / "agent.db"
    asyncio.run(make(path))
    return path


@pytest.fixture
def file(made: Path, tmp_path: Path) -> Path:
    """Return a copy of the file, to be edited."""
    return Path(shutil.copy(made, tmp_path / "agent.db"))


async def test_the_page_defines_the_bytes_that_are_stored(file: Path, verifier: dict[str, Any]) -> None:
    """A sound file has no fault, and the heads are those of the store."""
    async with await open_store(file) as store:
        heads = {info.id: await store.chain_head(info.id) async for info in store.conversations()}
    assert verifier["audit"](file, [head.hex() for head in heads.values()]) == ([], heads)


async def test_the_page_defines_the_state_of_each_block_at_each_version(file: Path, verifier: dict[str, Any]) -> None:
    """And the summary that replaces it."""
    rows, events, _ = verifier["read"](file)
    async with await open_store(file) as store:
        for key, row in rows.items():
            if row["id"] == "scavenged":
                continue
            chain = verifier["log"](rows, events, key)
            stored = [event async for event in store.read(row["id"])]
            for version in range(1, len(stored) + 1, 7):
                _, blocks = block_states(stored[:version], row["id"])
                expected = {block.version: (block.state, block.covered_by) for block in blocks}
                assert verifier["window"](chain, version) == expected


@pytest.mark.parametrize("what", EDITS)
async def test_the_pages_verifier_finds_an_edit_of(what: str, file: Path, verifier: dict[str, Any]) -> None:
    """Each is named."""
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute(EDITS[what]).rowcount > 0
    assert verifier["audit"](file)[0]


async def test_the_pages_verifier_finds_a_head_that_is_gone(file: Path, verifier: dict[str, Any]) -> None:
    """Of a chain that was computed anew, or cut off."""
    assert verifier["audit"](file, ["01" * 33])[0] == [f"no event has the link {'01' * 33}"]


def test_the_page_has_the_dictionary_of_packed_payloads(verifier: dict[str, Any]) -> None:
    """Without it nobody reads them."""
    assert verifier["DICTIONARY"] == _DICTIONARY


async def test_the_page_names_every_table_and_each_column_of_the_log(file: Path) -> None:
    """A reader who finds another one knows that the file is of a later version."""
    text = PAGE.read_text(encoding="utf-8")
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        own = {name for name in tables if not name.startswith(("sqlite_", "search_index"))}
        assert {name for name in own if f"`{name}`" not in text} == set()
        for table in ("conversations", "events"):
            columns = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
            assert {name for name in columns if f"`{name}`" not in text} == set()
