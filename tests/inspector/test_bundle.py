"""The bug bundle, read by `zipfile`, `json` and `hashlib` alone: what is in it, and that it imports again."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from io import BytesIO
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

from tests.inspector.exporting import SECRET, converse, reply
from tests.scenes import after, small_policy
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.errors import ContextOverflow, ConversationNotFound, InvalidArgument
from timeline.events import NewEvent, event_id
from timeline.events.other_payloads import HookFailed
from timeline.inspector.bundle import bundle
from timeline.portable import import_copy, read_exported

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.inspector.bundle import Bundle
    from timeline.ports import EventStore

FILES = {
    "README.txt",
    "log.jsonl",
    "policy.json",
    "conversation.json",
    "verify.json",
    "errors.json",
    "versions.json",
    "left-out.json",
}


def _files(made: Bundle) -> dict[str, str]:
    with ZipFile(BytesIO(made.data)) as packed:
        assert packed.testzip() is None
        return {name: packed.read(name).decode() for name in packed.namelist()}


def _lines(files: dict[str, str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files["log.jsonl"].splitlines()]


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _sum(line: dict[str, Any]) -> str:
    """Return the checksum of a line, as docs/formats.md describes it."""
    if line["timeline"] == "value":
        return hashlib.sha256(line["text"].encode()).hexdigest()
    if line["timeline"] == "log":
        own = {name: value for name, value in line.items() if name != "checksum"}
        return hashlib.sha256(_compact(own).encode()).hexdigest()
    fields = [str(line[name]) for name in ("conversation", "version", "id", "type", "schema_version", "at")]
    return hashlib.sha256("\n".join([*fields, _compact(line["payload"])]).encode()).hexdigest()


async def _told(store: EventStore, conversation: str) -> dict[str, str]:
    return _files(await bundle(store, conversation))


async def test_it_has_what_a_report_needs_and_no_credential(store: EventStore) -> None:
    """All of its files, readable by anything; neither a secret nor the name of a home folder in one of them."""
    files = await _told(store, (await converse(store)).id)
    assert files.keys() == FILES
    assert not [name for name, text in files.items() if SECRET in text or "/home/ada" in text]
    reports = {name: json.loads(text) for name, text in files.items() if name.endswith(".json")}
    assert reports["policy.json"]["max_tokens"] == 2_000
    assert {"timeline-engine", "python", "system", "sqlite", "packages"} <= reports["versions.json"].keys()
    assert reports["verify.json"]["stored"]["ok"]
    assert {one["kind"] for one in reports["left-out.json"]} == {"github", "home folder"}


async def test_every_line_matches_its_checksum_and_nothing_else_changed(store: EventStore) -> None:
    """What was taken out is marked; every other line is the one of the log."""
    timeline = await converse(store)
    files = await _told(store, timeline.id)
    stored = {event.version: event async for event in store.read(timeline.id)}
    lines = _lines(files)
    assert [_sum(line) for line in lines] == [line.get("checksum", line.get("hash")) for line in lines]
    events = [line for line in lines if line["timeline"] == "event"]
    assert [line["version"] for line in events] == list(stored)
    assert any(line.get("redacted") for line in events)
    for line in events:
        same = stored[line["version"]].checksum == line["checksum"]
        assert same is not line.get("redacted", False)
        assert str(stored[line["version"]].id) == line["id"]


async def test_what_is_left_imports_again_and_verifies(store: EventStore) -> None:
    """Only what was sent cannot be proved where something in it was taken out: the report names it."""
    timeline = await converse(store)
    files = await _told(store, timeline.id)
    said = json.loads(files["verify.json"])["bundled"]
    assert said["ok"]
    assert said["unverifiable"] == {"redacted": 24}
    async with open_store("memory://") as other:
        for copy in read_exported(files["log.jsonl"].encode(), "log.jsonl"):
            await import_copy(other, copy)
        again = await Timeline.open(other, timeline.id, create=False)
        shown = [block.path for block in (await again.render(record=False)).blocks]
    assert shown == [block.path for block in (await timeline.render(record=False)).blocks]


async def test_contexts_from_before_the_first_finding_are_still_proved(store: EventStore) -> None:
    """A secret that came late takes no proof of what was sent before it."""
    timeline = await Timeline.open(store, "c", policy=small_policy())
    for number, text in enumerate(["Hello.", f"Use token={SECRET} now."]):
        await timeline.append(UserPrompt(text=text))
        context = await timeline.render()
        await timeline.record(reply(number), request=context.request("anthropic", model="claude-opus-5"))
    said = json.loads((await _told(store, "c"))["verify.json"])["bundled"]
    assert (said["ok"], said["calls"], said["unverifiable"]) == (True, 2, {"redacted": 2})


async def test_a_secret_in_a_system_prompt_is_taken_out_and_its_hash_follows(store: EventStore) -> None:
    """Events name the text by the hash that it has now; nothing names the old one, by which it could be guessed."""
    timeline = await Timeline.open(store, "c", policy=small_policy())
    await timeline.append(UserPrompt(text="Hello."))
    await timeline.render(system=f"Deploy with token={SECRET}.\nWork in /home/ada/app.", tools=[{"name": "/home/ada"}])
    files = await _told(store, "c")
    hashes = {line["hash"] for line in _lines(files) if line["timeline"] == "value"}
    [rendered] = [line["payload"] for line in _lines(files) if line.get("type") == "context.rendered"]
    assert {rendered["system"], rendered["tools"], rendered["policy"]} <= hashes
    assert SECRET not in files["log.jsonl"]
    assert "/home/ada" not in files["log.jsonl"]
    assert json.loads(files["verify.json"])["bundled"]["ok"]


async def test_a_fork_brings_its_parent_and_loses_its_proof_too(store: EventStore) -> None:
    """The shared past is cleaned once, and a context of the fork that showed it has no fingerprint."""
    timeline = await Timeline.open(store, "c", policy=small_policy())
    await timeline.append(UserPrompt(text=f"Use token={SECRET} now."))
    fork = await timeline.fork(conversation="f")
    await fork.append(UserPrompt(text="Go on."))
    context = await fork.render()
    await fork.record(reply(1), request=context.request("anthropic", model="claude-opus-5"))
    files = await _told(store, "f")
    assert SECRET not in files["log.jsonl"]
    said = json.loads(files["verify.json"])["bundled"]
    assert (said["ok"], said["unverifiable"]) == (True, {"redacted": 2})


@pytest.mark.parametrize("failed_as", [{"is_error": True}, {"exit_status": 1}])
async def test_the_newest_errors_are_named(store: EventStore, failed_as: dict[str, Any]) -> None:
    """Failed tools with their words, the newest first, without what is taken out."""
    timeline = await Timeline.open(store, "c", policy=small_policy())
    call = ToolCall(call_id="call_1", name="bash", arguments={"command": "deploy"})
    await timeline.append(
        UserPrompt(text="Go."), call, ToolResult(call_id="call_1", text=f"denied: token={SECRET}", **failed_as)
    )
    [error] = json.loads((await _told(store, "c"))["errors.json"])["errors"]
    assert error["text"] == "denied: token=[github left out]"


async def test_what_failed_beside_the_tools_is_named_too(store: EventStore) -> None:
    """A render that was refused, with its figures; and a hook that raised, without what its error quotes."""
    timeline = await Timeline.open(store, "c", policy=policies.none(max_tokens=1_000, counter="chars4"))
    await timeline.append(UserPrompt(text="word " * 2_000))
    with pytest.raises(ContextOverflow):
        await timeline.render()
    failed = HookFailed(hook="on_append", error=f"no room for {SECRET}")
    await store.append("c", [NewEvent(id=event_id(after(9)), at=after(9), payload=failed)])
    files = await _told(store, "c")
    hook, overflow = json.loads(files["errors.json"])["errors"]
    assert (hook["type"], hook["text"]) == ("hook.failed", "on_append: no room for [github left out]")
    assert (overflow["type"], overflow["text"][-5:]) == ("context.overflowed", "1,000")
    assert json.loads(files["policy.json"])["max_tokens"] == 1_000


async def test_the_same_log_gives_the_same_bytes(store: EventStore) -> None:
    """With fixed dates, so that two reports of one fault can be held against each other."""
    timeline = await converse(store)
    first, second = await bundle(store, timeline.id), await bundle(store, timeline.id)
    assert first.data == second.data
    with ZipFile(BytesIO(first.data)) as packed:
        assert {one.date_time for one in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {one.external_attr >> 16 & 0o777 for one in packed.infolist()} == {0o600}


async def test_a_finding_is_kept_by_its_name_alone(store: EventStore) -> None:
    """A name that no finding has is refused: a typing error would take out what is to stay."""
    timeline = await converse(store)
    [home] = [one for one in (await bundle(store, timeline.id)).cleaner.taken if one.kind == "home folder"]
    files = _files(await bundle(store, timeline.id, [home.name]))
    assert "/home/ada/3.txt" in files["log.jsonl"]
    assert SECRET not in files["log.jsonl"]
    with pytest.raises(InvalidArgument, match="names no finding: 00000000"):
        await bundle(store, timeline.id, ["00000000"])
    with pytest.raises(ConversationNotFound):
        await bundle(store, "nobody")


async def test_of_a_damaged_log_everything_else_is_bundled_and_the_damage_is_named(tmp_path: Path) -> None:
    """That is what a report is for: the event is left out, and each report says what it could not do."""
    file = tmp_path / "talk.db"
    async with open_store(file) as store:
        id_ = (await converse(store)).id
    with closing(sqlite3.connect(file)) as database:
        database.execute("update events set checksum = printf('%064d', 0) where version = 30")
        database.commit()
    async with open_store(file, readonly=True) as store:
        files = await _told(store, id_)
    assert json.loads(files["errors.json"])["unreadable_events"] == [[id_, 30]]
    verified = json.loads(files["verify.json"])
    assert not verified["stored"]["ok"]
    assert len([line for line in _lines(files) if line["timeline"] == "event"]) > 80
