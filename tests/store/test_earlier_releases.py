"""Databases that earlier commits wrote: they open, verify, and render the same bytes.

That of d518f55, before the modules moved, holds conversations under five policies, with compactions, hides, a pin, an
undo, a fork and stages. That of 66240d07, the first with a chain, has a redaction, requests of calls, content of the
providers' own servers, and contexts of projection 4. The expected digests of the requests were written by the code of
that commit, not by this one.

Those of 0ace9080 and cae1b190, of the first hours, have snapshots that folds go on from no more: the first does not say
which event recorded the newest context, the second keeps previews that an undo took back. Nothing builds their contexts
again, which are of projections 1 and 2.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from timeline import Timeline, open_store
from timeline.audit.deep import repair, verify_deep
from timeline.audit.replay import rebuild_contexts, recorded_contexts
from timeline.audit.verify import verify
from timeline.frozen import sha256_hex
from timeline.log.history import fold_history, load_fold
from timeline.retention import scavenge

if TYPE_CHECKING:
    from timeline.projection.context import RenderedContext

KEPT: Final = Path(__file__).with_name("earlier")
EXPECTED: Final[dict[str, dict[str, Any]]] = {
    f"{commit} {conversation}": expected
    for commit in ("d518f55", "66240d07")
    for conversation, expected in json.loads((KEPT / f"{commit}.json").read_text(encoding="utf-8")).items()
}
"""What each conversation was, by the commit that wrote it and its id."""
EACH: Final = pytest.mark.parametrize(("commit", "conversation"), [tuple(name.split()) for name in EXPECTED])


@pytest.fixture
def database(tmp_path: Path, commit: str) -> Path:
    """Return a copy of the database that a commit wrote."""
    file = tmp_path / f"{commit}.db"
    file.write_bytes(lzma.decompress((KEPT / f"{commit}.db.xz").read_bytes()))
    return file


def sent(context: RenderedContext) -> str:
    """Return a digest of what two providers would be sent."""
    return sha256_hex(json.dumps([context.to_anthropic(), context.to_openai_chat()], ensure_ascii=False))[:16]


@EACH
async def test_every_recorded_context_of_an_earlier_database_is_the_same_bytes(
    database: Path, commit: str, conversation: str
) -> None:
    """The database is brought up to date when it is opened; what the models saw does not change with that."""
    expected = EXPECTED[f"{commit} {conversation}"]
    async with open_store(database) as store:
        report = await verify(store, conversation)
        built = await rebuild_contexts(store, conversation, await recorded_contexts(store, conversation))
    assert report.ok, report.problems
    figures = {"version": report.events, "blocks": report.blocks, "compactions": report.compactions}
    assert figures == {name: expected[name] for name in figures}
    assert {str(context.version): sent(context) for context in built} == expected["contexts"]
    assert [f"{b.path} {b.state} {b.shown_tokens}" for b in built[-1].blocks][-6:] == expected["head"]


@EACH
async def test_the_model_calls_of_an_earlier_database_are_counted(database: Path, conversation: str) -> None:
    """Its snapshots lack their number, so that the log is asked; a call goes on from there."""
    async with open_store(database) as store:
        calls = len([event async for event in store.read(conversation, types=["model.called"])])
        timeline = await Timeline.open(store, conversation)
        assert timeline.window.calls == calls
        await timeline.record_model_call(model="m")
        assert (await timeline.call(calls + 1)).model == "m"


@EACH
async def test_a_conversation_of_an_earlier_database_goes_on(database: Path, conversation: str) -> None:
    """Its policy is read under the names of its time, and what follows verifies with what was there."""
    async with open_store(database) as store:
        timeline = await Timeline.open(store, conversation, create=False)
        for number in range(3):
            said = {"type": "assistant.completion", "text": f"Part {number}. " + "Each line is read once. " * 200}
            await timeline.append({"type": "user.prompt", "text": "And now?"}, said)
        assert [taken.kind for taken in await timeline.compact()][-1] == "compacted"
        context = await timeline.render()
        assert context.blocks[-1].path.endswith(".assistant.completion")
        report = await timeline.verify()
    assert report.ok, report.problems


@pytest.mark.parametrize(("commit", "events", "compactions"), [("0ace9080", 73, 5), ("cae1b190", 77, 4)])
async def test_a_conversation_with_a_snapshot_of_the_first_hours_is_folded_from_its_log(
    database: Path, events: int, compactions: int
) -> None:
    """It verifies, goes on, and is shown as its log says; a repair makes the snapshot anew."""
    async with open_store(database) as store:
        report = await verify(store, "c")
        assert (report.ok, report.problems, report.events, report.compactions) == (True, (), events, compactions)
        assert (await verify_deep(store)).ok
        assert (await load_fold(store, "c")).window == (await fold_history(store, "c")).window
        assert [each.what for each in (await repair(store, dry_run=False)).mended] == ["snapshots"]
        assert (await store.load_window("c")).snapshot is not None
        assert (await load_fold(store, "c")).window == (await fold_history(store, "c")).window
        timeline = await Timeline.open(store, "c", create=False)
        await timeline.append({"type": "user.prompt", "text": "And now?"})
        await timeline.render()
        assert (await timeline.verify()).ok


@pytest.mark.parametrize("commit", ["0ace9080", "cae1b190"])
async def test_nothing_is_scavenged_behind_a_snapshot_of_the_first_hours(database: Path) -> None:
    """The log could not be folded from it afterwards."""
    async with open_store(database) as store:
        timeline = await Timeline.open(store, "c", create=False)
        await timeline.set_retention("window")
        await scavenge(store)
        assert (await store.info("c")).first_version == 1
        await repair(store, dry_run=False)
        await scavenge(store)
        assert (await store.info("c")).first_version > 1
        report = await verify(store, "c")
        assert report.ok, report.problems
