"""A conversation as a file, and its stages and attempts as stretches of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.inspector.asking import ask, segment
from tests.scenes import after, prompt, small_policy
from timeline import Timeline, __version__
from timeline.inspector.stretches import stretches_of
from timeline.portable import import_copy, read_copies
from timeline.portable.atif import trajectory
from timeline.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.inspector.sent import Sent
    from timeline.ports import EventStore


async def test_a_saved_log_is_the_log_and_a_saved_page_has_it(
    app: Any, store: EventStore, sent: Sent, tmp_path: Path
) -> None:
    """Each is a file to save, named by id and version, and of no other origin's page."""
    path = f"/v1/conversations/{segment(sent.id)}/file"
    log = await ask(app, path, {"format": "jsonl"})
    assert "attachment; filename=" in log.headers["content-disposition"]
    assert log.headers["content-disposition"].endswith('.jsonl"')
    (tmp_path / "log.jsonl").write_bytes(log.body)
    [copy] = read_copies(tmp_path / "log.jsonl") or []
    async with open_store("memory://") as other:
        assert (await import_copy(other, copy)).id == sent.id
        assert (await other.info(sent.id)).version == (await store.info(sent.id)).version
    saved = await ask(app, path, {"format": "atif"})
    assert saved.headers["content-disposition"].endswith('.atif.json"')
    assert saved.json == await trajectory(store, sent.id, library=__version__)
    page = await ask(app, path, {"mode": "chat", "contexts": "none"})
    assert page.body.startswith(b"<!doctype html>")
    assert page.headers["x-content-type-options"] == "nosniff"


async def test_a_file_that_cannot_be_made_is_refused_in_words(app: Any, sent: Sent) -> None:
    """An unknown form, and a conversation that is not there."""
    path = f"/v1/conversations/{segment(sent.id)}/file"
    assert (await ask(app, path, {"format": "docx"})).status == 400
    assert (await ask(app, path, {"id": "other"})).status == 400
    for form in ("html", "jsonl", "atif"):
        assert (await ask(app, "/v1/conversations/nobody/file", {"format": form})).status == 404


async def test_stages_and_attempts_are_stretches_with_their_outcome(app: Any, store: EventStore) -> None:
    """Approved and rewound ones, one that is open, and attempts that were completed or refused."""
    timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=9_000), now=after(0))
    await timeline.enter_stage("topic", "The topic", now=after(1))
    await timeline.append(prompt(200), now=after(2))
    await timeline.approve_stage(decision="Spaced repetition.", now=after(3))
    await timeline.enter_stage("words", now=after(4))
    await timeline.append(*(prompt(300) for _ in range(20)), now=after(5))
    await timeline.compact(now=after(6))
    found = await stretches_of(store, "c")
    assert [(one.kind, one.name, one.outcome) for one in found] == [
        ("stage", "The topic", "approved"),
        ("stage", "words", "open"),
        ("attempt", "forced", "completed"),
    ]
    assert (found[0].text, found[1].last) == ("Spaced repetition.", None)
    assert found[2].last is not None
    assert found[2].first < found[2].last
    await timeline.rewind_stage("topic", now=after(7))
    assert [one.outcome for one in await stretches_of(store, "c")][:2] == ["rewound", "rewound"]
    family = (await ask(app, "/v1/conversations/c/family")).json
    assert [one["kind"] for one in family["stretches"]] == ["stage", "stage", "attempt"]
