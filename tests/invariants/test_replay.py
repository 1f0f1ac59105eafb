from __future__ import annotations

import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import assume, given, reject
from hypothesis import strategies as st

from tests.downgrade import unpack
from tests.invariants.places import new_store
from tests.invariants.playing import AT, run, search
from tests.invariants.strategies import LOGS, ORDERLY_LOGS, Step, small
from tests.invariants.watched import Watched
from timeline.audit.verify import verify
from timeline.events.encoding import checksum
from timeline.projection.context import RenderedContext
from timeline.store import open_store
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.audit.verify import VerifyReport

SYSTEM = "You are careful."


async def _recorded(file: Path, steps: list[Step]) -> RenderedContext | None:
    """Play steps into a database file, with a recorded render after each; return the last context."""
    async with open_store(file) as store:
        watched = Watched(store, await Timeline.open(store, "c", policy=small(), now=AT), system=SYSTEM)
        outcome: object = None
        for step in steps:
            await watched.play(step)
            outcome = await watched.outcome()
        return outcome if isinstance(outcome, RenderedContext) else None


async def _verified(file: Path) -> VerifyReport:
    async with open_store(file) as store:
        return await verify(store, "c")


def _tampered(steps: list[Step], change: Callable[[sqlite3.Connection, RenderedContext], object]) -> VerifyReport:
    """Record a conversation, change its file with plain SQL, and verify it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tampered.db"
        context = run(_recorded(file, steps))
        if context is None or not context.neutral.entries:
            reject()
        assert run(_verified(file)).ok
        with closing(sqlite3.connect(file)) as database:
            unpack(database)
            change(database, context)
            database.commit()
        return run(_verified(file))


@search(8)
@given(ORDERLY_LOGS, st.data())
def test_an_event_that_was_changed_is_noticed_by_its_checksum(steps: list[Step], data: st.DataObject) -> None:
    """Whichever event is changed, however little, the report names it."""
    versions: list[int] = []

    def change(database: sqlite3.Connection, context: RenderedContext) -> None:
        versions.append(data.draw(st.integers(1, context.version)))
        changed = "UPDATE events SET payload = substr(payload, 1, length(payload) - 1) || ' }' WHERE version = ?"
        database.execute(changed, versions)

    report = _tampered(steps, change)
    assert not report.ok
    assert report.checksum == 1
    assert f"event {versions[0]} " in report.problems[0]


@search(8)
@given(ORDERLY_LOGS, st.data())
def test_a_changed_block_with_a_forged_checksum_is_a_mismatch(steps: list[Step], data: st.DataObject) -> None:
    """Who can forge the checksum too is found out by the contexts that showed the block."""

    def change(database: sqlite3.Connection, context: RenderedContext) -> None:
        entry = data.draw(st.sampled_from(context.neutral.entries))
        row = database.execute(
            "SELECT version, event_id, type, schema_version, at, payload FROM events WHERE path = ?", [entry.path]
        ).fetchone()
        payload: dict[str, Any] = json.loads(row[5])
        block = payload["block"]
        assume("hidden" not in {b.state for b in context.blocks if b.path == entry.path})
        if block["type"] == "react.tool.call":
            block["arguments"] = {"forged": True}
        else:
            block["text"] = f"{block.get('text', '')} forged"
        text = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        forged = checksum("c", row[0], row[1], row[2], row[3], row[4], text)
        database.execute("UPDATE events SET payload = ?, checksum = ? WHERE path = ?", [text, forged, entry.path])

    report = _tampered(steps, change)
    assert not report.ok
    assert report.checksum == 0
    assert report.replay >= 1


@search(5)
@given(ORDERLY_LOGS, st.sampled_from([json.dumps("You are careless."), "no JSON", "{}", ""]))
def test_a_changed_system_prompt_or_policy_is_noticed(steps: list[Step], text: str) -> None:
    """A stored value is held against the hash that it is addressed by; a change never escapes as another error."""
    report = _tampered(
        steps, lambda database, _: database.execute("UPDATE stored_values SET text = ?", [text]) and None
    )
    assert not report.ok


@search(5)
@given(ORDERLY_LOGS, st.data())
def test_an_event_that_is_gone_is_noticed(steps: list[Step], data: st.DataObject) -> None:
    """Versions have no gaps, and the log ends where the conversation says."""

    def change(database: sqlite3.Connection, _: RenderedContext) -> None:
        (last,) = database.execute("SELECT max(version) FROM events").fetchone()  # a repeated render appends nothing
        version = data.draw(st.integers(1, last))
        assert database.execute("DELETE FROM events WHERE version = ?", [version]).rowcount == 1

    report = _tampered(steps, change)
    assert not report.ok
    assert report.checksum >= 1


@search(15)
@given(LOGS, st.sampled_from([{}, {"system": SYSTEM}, {"tools": [{"name": "bash"}]}, {"ephemeral": ["now"]}]))
def test_hashes_alone_make_a_context_unverifiable_only_where_a_value_is_missing(
    steps: list[Step], prompt: dict[str, Any]
) -> None:
    """Contexts without prompt, tools and tail are rebuilt all the same; the others are counted, and break nothing."""

    async def story() -> None:
        store = await new_store()
        watched = Watched(store, await Timeline.open(store, "c", policy=small(), now=AT), **prompt)
        for step in steps:
            await watched.play(step)
            await watched.outcome(record="hash")
        hashed = await watched.timeline.verify()
        assert hashed.ok, hashed.problems
        assert hashed.unverifiable == ({"unrecorded_prefix": hashed.renders} if prompt and hashed.renders else {})
        await watched.outcome(record="full")
        full = await watched.timeline.verify()
        assert full.ok, full.problems
        if full.renders > hashed.renders:
            assert full.unverifiable == {}, "the values are known now"

    run(story())
