from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.playing import AT, run, search
from tests.invariants.strategies import LOGS, Decide, Step, small
from tests.invariants.watched import Watched
from tests.scenes import after, answer, call, exchange, prompt, result, small_policy
from timeline import Timeline, open_store
from timeline.audit.verify import verify
from timeline.errors import ImportFailed, StoreCorrupt, StoreTooNew
from timeline.events import BlockRedacted, NewEvent, UnknownPayload, event_id
from timeline.events.encoding import checksum
from timeline.fold.snapshot import take_snapshot
from timeline.frozen import sha256_hex
from timeline.log.history import fold_history
from timeline.portable import Exported, LogCopy, export_log, import_copy, read_copies
from timeline.portable.lines import event_line
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.portable.recordings import Imported
    from timeline.ports import EventStore

SECRET = "hunter2-swordfish"  # noqa: S105 - no password of anybody


async def export(store: EventStore, *ids: str) -> list[str]:
    """Return the lines of conversations; all of them unless some are named."""
    wanted = ids or [info.id async for info in store.conversations()]
    return [line async for line in export_log(store, wanted, library="1.0")]


async def read_lines(store: EventStore) -> list[str]:
    """Return the lines of a store's own events, written from what is read of each."""
    lines = []
    async for info in store.conversations():
        chained = {event.version: event async for event in store.chained(info.id)}
        lines += [event_line(e, None, chained[e.version]) async for e in store.read(info.id, after=info.base)]
    return lines


def copies(lines: Sequence[str | bytes]) -> list[LogCopy]:
    """Read lines as a file."""
    data = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "log.jsonl"
        file.write_bytes(data)
        return read_copies(file) or []


async def take(store: EventStore, lines: Sequence[str | bytes]) -> list[Imported]:
    """Import lines into a store."""
    return [await import_copy(store, copy) for copy in copies(lines)]


def counts(done: Sequence[Imported]) -> dict[str, int]:
    """Return what the reports of an import count, all together."""
    total: dict[str, int] = {}
    for imported in done:
        for kind, count in imported.report["counts"].items():
            total[kind] = total.get(kind, 0) + count
    return total


async def reports(store: EventStore) -> list[dict[str, Any]]:
    """Verify every conversation."""
    ids = [info.id async for info in store.conversations()]
    return [(await verify(store, id_)).model_dump() for id_ in ids]


async def talk(store: EventStore, id_: str = "c", turns: int = 6) -> Timeline:
    """Keep a conversation with calls, recorded contexts and a compaction."""
    timeline = await Timeline.open(store, id_, policy=small_policy(max_tokens=1_000), title="Do it", now=after(0))
    for number in range(turns):
        await timeline.append(prompt(10), now=after(number * 10))
        await timeline.append(*exchange(f"c{number}", 200), answer(5), now=after(number * 10 + 1))
        await timeline.render(system="You code.", tools=[{"name": "run"}], now=after(number * 10 + 2))
    return timeline


async def redact(store: EventStore, timeline: Timeline, version: int, reason: str = "") -> None:
    """Erase a block by its event."""
    payload = BlockRedacted(version=version, reason=reason)
    await store.append(timeline.id, [NewEvent(id=event_id(AT), at=after(1_000), payload=payload)])


@search(60)
@given(LOGS, st.integers(0, 40))
def test_any_log_comes_back_event_for_event(steps: list[Step], at: int) -> None:
    """Versions, ids, checksums, values and forks are the same, and so is what verification says of them."""

    async def play() -> None:
        store, other = MemoryStore(), MemoryStore()
        watched = Watched(store, await Timeline.open(store, "c", policy=small(), now=AT), system="x")
        for step in steps:
            if not (isinstance(step, Decide) and step.kind == "redact"):
                await watched.play(step)
                await watched.outcome()
        await watched.timeline.fork(conversation="fork", at=1 + at % watched.timeline.version)
        lines = await export(store)
        assert [line for line in lines if line.startswith('{"timeline":"event"')] == await read_lines(store)
        done = await take(other, lines)
        assert not counts(done)
        assert await export(other) == lines
        assert await reports(other) == await reports(store)
        again = await take(other, lines)
        assert [i.events for i in again] == [0, 0]
        assert [i.known for i in again] == [i.events for i in done]

    run(play())


@search(60)
@given(LOGS)
def test_any_log_with_redactions_leaves_without_what_is_redacted_and_still_verifies(steps: list[Step]) -> None:
    """Nothing breaks that held before: contexts that showed what is gone are unverifiable, and the rest is rebuilt."""

    async def play() -> None:
        store, other = MemoryStore(), MemoryStore()
        watched = Watched(store, await Timeline.open(store, "c", policy=small(), now=AT), system="x")
        for step in steps:
            await watched.play(step)
            await watched.outcome()
        lines = await export(store)
        found = counts(await take(other, lines)).keys()
        assert found <= {"chain"}, "every line is sound"
        (before,), (there,) = await reports(store), await reports(other)
        before.pop("unverifiable")
        unverifiable = there.pop("unverifiable")
        before.pop("problems"), there.pop("problems")
        if found:  # what was taken out has left another chain
            before.pop("head"), there.pop("head")
        assert there == before
        assert unverifiable.keys() <= {"redacted"}
        assert await export(other) == lines or unverifiable or any('"redacted":true' in line for line in lines)
        assert [i.events for i in await take(other, lines)] == [0]
        assert [i.events for i in await take(store, lines)] == [0]

    run(play())


async def test_recorded_contexts_are_rebuilt_from_the_file_alone() -> None:
    """Policies, prompts and tools come along, each once, before the events that name them."""
    store, other = MemoryStore(), MemoryStore()
    await talk(store)
    lines = await export(store)
    await take(other, lines)
    report = await verify(other, "c")
    assert report.ok
    assert report.renders >= 6
    assert not report.unverifiable
    kinds = [json.loads(line)["timeline"] for line in lines]
    assert kinds.count("value") == 3
    assert kinds.index("value") < kinds.index("event", kinds.index("value"))


async def test_each_line_can_be_checked_without_the_library() -> None:
    """Header, values and events say their own sums, as the format's description has it."""
    store = MemoryStore()
    await talk(store)
    for line in await export(store):
        told = json.loads(line)
        match told.pop("timeline"):
            case "value":
                assert sha256_hex(told["text"]) == told["hash"]
            case "log":
                sum_ = told.pop("checksum")
                rest = json.dumps({"timeline": "log", **told}, separators=(",", ":"), ensure_ascii=False)
                assert sha256_hex(rest) == sum_
            case "event":
                payload = json.dumps(told["payload"], separators=(",", ":"), ensure_ascii=False)
                parts = [told[k] for k in ("conversation", "version", "id", "type", "schema_version", "at")]
                assert sha256_hex("\n".join(map(str, [*parts, payload]))) == told["checksum"]


async def test_an_imported_log_has_the_head_that_it_had() -> None:
    """Salts, commitments and links come along: a head that was kept of the one proves the other."""
    store, other = MemoryStore(), MemoryStore()
    timeline = await talk(store)
    await timeline.fork(conversation="f", at=8)
    assert not counts(await take(other, await export(store, "f")))
    assert not counts(await take(other, await export(store)))
    for conversation in ("c", "f"):
        head = await store.chain_head(conversation)
        assert await other.chain_head(conversation) == head
        report = await verify(other, conversation, head=head)
        assert (report.ok, report.proved_until) == (True, (await store.info(conversation)).version)


async def test_a_log_whose_links_are_missing_gets_a_chain_of_its_own_and_says_so() -> None:
    """A file of an earlier release has none, and what was taken out of one is not proved by the rest."""
    store, other = MemoryStore(), MemoryStore()
    await talk(store)
    lines = []
    for line in await export(store):
        told = json.loads(line)
        bare = {name: value for name, value in told.items() if name not in {"salt", "c", "link"}}
        lines.append(json.dumps(bare, separators=(",", ":"), ensure_ascii=False))
    assert counts(await take(other, lines)) == {"chain": 1}
    report = await verify(other, "c", head=await store.chain_head("c"))
    assert (report.chain, report.proved) == (1, report.events)


async def test_under_another_id_a_log_begins_a_chain_of_its_own_beside_the_first_and_says_so() -> None:
    """The same events and contexts, in the same database too; importing it again adds nothing."""
    store = MemoryStore()
    await talk(store)
    (copy,) = copies(await export(store))
    done = await import_copy(store, copy.under("d"))
    assert (done.id, done.events) == ("d", (await store.info("c")).version)
    (finding,) = done.report["findings"]
    assert finding["detail"] == "d: it was exported as c; here it has a chain of its own, with another head"
    first = [(e.id, e.at, e.payload) async for e in store.read("c")]
    assert [(e.id, e.at, e.payload) async for e in store.read("d")] == first
    report = await verify(store, "d")
    assert (report.ok, report.proved) == (True, report.events)
    assert report.renders == (await verify(store, "c")).renders > 0
    again = await import_copy(store, copy.under("d"))
    assert (again.events, again.known) == (0, done.events)


async def test_a_line_with_another_salt_is_put_aside() -> None:
    """It proves nothing."""
    store, other = MemoryStore(), MemoryStore()
    await talk(store)
    lines = await export(store)
    told = json.loads(lines[-1])
    lines[-1] = json.dumps({**told, "salt": "00" * 16}, separators=(",", ":"), ensure_ascii=False)
    assert counts(await take(other, lines))["quarantined"] == 1


async def test_an_imported_conversation_goes_on_and_opens_from_a_snapshot() -> None:
    """What is imported is a conversation like any other."""
    store, other = MemoryStore(), MemoryStore()
    await talk(store)
    await take(other, await export(store))
    stored = await other.load_window("c")
    assert stored.snapshot is not None
    timeline = await Timeline.open(other, "c")
    await timeline.append(prompt(5))
    await timeline.render()
    assert (await timeline.verify()).ok


async def test_a_long_log_that_is_imported_is_never_far_from_a_snapshot_of_its_past() -> None:
    """Each is the fold of the log as it was then; a log that was never compacted has none."""
    store, other = MemoryStore(), MemoryStore()
    timeline = await talk(store, turns=40)
    for number in range(25):
        await timeline.append(*(prompt(10) for _ in range(100)), now=after(1_000 + number))
        await timeline.render(now=after(1_000 + number))
    plain = await Timeline.open(store, "plain", now=after(0))
    await plain.append(*(prompt(10) for _ in range(2_000)), now=after(1))
    await take(other, await export(store))
    versions = await other.waypoints("c")
    assert len(versions) > 1
    for version in versions:
        assert await other.load_waypoint("c", version) == take_snapshot(await fold_history(other, "c", until=version))
    assert await other.waypoints("plain") == []


async def test_a_fork_brings_what_it_shares_and_no_more() -> None:
    """Its parent comes along up to where it left; importing the whole parent later goes on from there."""
    store, other = MemoryStore(), MemoryStore()
    timeline = await talk(store)
    fork = await timeline.fork(conversation="f", at=8)
    nested = await (await Timeline.open(store, "f")).fork(conversation="g", at=9)
    await fork.append(prompt(3))
    done = await take(other, await export(store, "g"))
    assert [(i.id, i.events) for i in done] == [("c", 8), ("f", 1), ("g", 1)]
    assert [(await other.info(id_)).base for id_ in ("c", "f", "g")] == [0, 8, 9]
    assert [e.checksum async for e in other.read("g")] == [e.checksum async for e in nested._store.read("g")]
    await take(other, await export(store))
    assert await export(other) == await export(store)


async def test_a_fork_whose_opening_line_is_lost_still_begins_behind_what_it_shares() -> None:
    """Its first event says of which conversation it is a fork, and at which version."""
    store, other = MemoryStore(), MemoryStore()
    timeline = await talk(store)
    fork = await timeline.fork(conversation="f", at=8)
    await fork.append(prompt(3))
    lines = await export(store)
    opening = next(line for line in lines if line.startswith('{"timeline":"log"') and '"conversation":"f"' in line)
    await take(other, [line for line in lines if line != opening])
    assert (await other.info("f")).base == 8
    assert await export(other) == lines


async def test_a_fork_without_its_parent_is_refused_and_says_what_to_do() -> None:
    """A fork cannot stand without what it shares."""
    store, other = MemoryStore(), MemoryStore()
    timeline = await talk(store, turns=1)
    await timeline.fork(conversation="f", at=3)
    lines = [line for line in await export(store) if '"conversation":"f"' in line]
    with pytest.raises(ImportFailed, match="forked from 'c' at version 3"):
        await take(other, lines)


async def test_an_export_leaves_nothing_out_that_a_later_version_wrote(tmp_path: Path) -> None:
    """It ends with an error that says what to do: a log without that event would be a log of something else."""
    async with open_store(tmp_path / "agent.db") as store:
        await Timeline.open(store, "c", now=AT)
        later = UnknownPayload(type="blocks.pinned", data={"versions": [1], "until": 9})
        await store.append("c", [NewEvent(id=event_id(AT), at=AT, payload=later)])
        with pytest.raises(StoreTooNew, match="Upgrade timeline-engine"):
            await export(store, "c")


async def test_a_damaged_line_ends_the_import_before_it_and_a_sound_file_goes_on() -> None:
    """Versions have no gaps: what stands behind the damage waits, is counted, and comes with the next file."""
    store, other = MemoryStore(), MemoryStore()
    await talk(store, turns=2)
    lines = await export(store)
    place = next(n for n, line in enumerate(lines) if '"version":5,' in line)
    total = (await store.info("c")).version
    fields, mark, payload = lines[place].partition('"payload":')  # hashes before it may hold any three letters
    assert "abc" in payload
    broken = [*lines[:place], fields + mark + payload.replace("abc", "abd", 1), *lines[place + 1 :]]
    (done,) = await take(other, broken)
    assert (done.events, done.report["counts"]) == (4, {"quarantined": 1, "gap": 1})
    (gap,) = [f["detail"] for f in done.report["findings"] if f["kind"] == "gap"]
    assert gap.startswith(f"c: version 5 is missing or damaged; {total - 5} events after it were left out")
    assert (await verify(other, "c")).ok
    (rest,) = await take(other, lines)
    assert (rest.known, rest.events) == (4, total - 4)
    assert await export(other) == lines


@pytest.mark.parametrize(
    ("spoil", "finding", "lost"),
    [
        (lambda lines: [*lines[:-1], lines[-1][:-20]], "quarantined", 1),
        (lambda lines: lines[:-1], "gap", 1),
        (lambda lines: [*lines[:-2], lines[-2] + lines[-1]], "glued", 0),
        (lambda lines: [*lines, lines[-1]], "duplicate_record", 0),
        (lambda lines: [lines[0][:-9], *lines[1:]], "quarantined", 0),
        (lambda lines: [*lines, "junk", "[1]"], "quarantined", 0),
        (lambda lines: [*lines, '{"timeline":"event","version":9}'], "quarantined", 0),
        (lambda lines: [line.encode() + b"\xff" for line in lines], "encoding", 0),
        (lambda lines: [*lines, '{"timeline":"value","hash":"x","text":"y"}'], "quarantined", 0),
        (lambda lines: lines[::-1], None, 0),
    ],
    ids=["torn", "short", "glued", "twice", "header", "junk", "fields", "bytes", "value", "order"],
)
async def test_damage_is_reported_and_costs_what_it_must(spoil: Any, finding: str | None, lost: int) -> None:
    """Every line is checked by itself, in whatever order they come."""
    store, other = MemoryStore(), MemoryStore()
    timeline = await Timeline.open(store, "c", now=after(0))
    await timeline.append(prompt(5), answer(5), prompt(5))
    (done,) = await take(other, spoil(await export(store)))
    assert done.events == 4 - lost
    assert finding is None or done.report["counts"][finding] >= 1
    assert (await verify(other, "c")).ok


async def test_a_value_that_is_damaged_costs_the_contexts_that_name_it() -> None:
    """They are there, and cannot be built again; nothing else is lost."""
    store, other = MemoryStore(), MemoryStore()
    await talk(store, turns=2)
    lines = [line.replace("You code.", "You sing.") if '"value"' in line else line for line in await export(store)]
    (done,) = await take(other, lines)
    report = await verify(other, "c")
    assert done.report["counts"] == {"quarantined": 1}
    assert (report.ok, report.unverifiable) == (True, {"unrecorded_prefix": report.renders})


async def test_another_conversation_of_the_same_id_is_refused() -> None:
    """Two logs are never mixed, and the one that is there stays as it is."""
    store, other = MemoryStore(), MemoryStore()
    await talk(store, turns=1)
    await talk(other, turns=1)
    before = await export(other)
    with pytest.raises(ImportFailed, match="the two differ from version 1 on"):
        await take(other, await export(store))
    assert await export(other) == before


async def test_a_file_of_a_later_format_is_refused() -> None:
    """It may mean something else by its lines."""
    with pytest.raises(ImportFailed, match="format 2"):
        copies(['{"timeline":"log","format":2}'])


async def test_a_file_in_which_nothing_can_be_read_is_refused() -> None:
    """All lines are damaged."""
    with pytest.raises(ImportFailed, match="all lines are damaged"):
        copies(['{"timeline":"event","version":1}'])


async def test_damaged_events_are_left_out_of_an_export_and_named() -> None:
    """Everything else is written, what stands behind them too."""
    store = MemoryStore()
    await talk(store, turns=1)
    log = store._logs["c"]
    log.rows[2] = (*log.rows[2][:-1], "x")
    done = Exported()
    lines = [line async for line in export_log(store, ["c"], library="1.0", result=done)]
    assert done.damaged == [("c", 3)]
    assert done.events == sum('"timeline":"event"' in line for line in lines) == log.version - 1


async def test_what_reads_is_exported_however_much_is_damaged() -> None:
    """Behind a thousand damaged events the whole export failed, and told to export what still reads."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "a")
    await timeline.append(*[prompt() for _ in range(1_100)])
    await talk(store, turns=1)
    log = store._logs["a"]
    log.rows[1:] = [(*row[:7], "damaged", *row[8:]) for row in log.rows[1:]]
    done = Exported()
    lines = [line async for line in export_log(store, ["a", "c"], library="1.0", result=done)]
    assert len(done.damaged) == 1_100
    assert sum('"timeline":"event"' in line for line in lines) == 1 + (await store.info("c")).version


@pytest.mark.parametrize(
    ("place", "value"),
    [(2, "0" * 36), (2, '"},{"'), (5, "2026-01-01T00:00:00Z"), (5, "today"), (4, 2), (8, "other"), (9, "t9"), (10, 7)],
)
async def test_no_row_is_exported_that_cannot_be_read(place: int, value: Any) -> None:
    """What no hash covers is compared with the payload, and what is hashed anew still has to be an event."""
    store = MemoryStore()
    await talk(store, turns=1)
    log = store._logs["c"]
    row = [*log.rows[2]]
    row[place] = value
    row[7] = checksum("c", row[1], row[2], row[3], row[4], row[5], row[6])
    log.rows[2] = tuple(row)
    try:
        read = [event.version async for event in store.read("c", after=2, until=3)]
    except StoreCorrupt:
        read = []
    done = Exported()
    lines = [line async for line in export_log(store, ["c"], library="1.0", result=done)]
    assert done.damaged == ([] if read else [("c", 3)])
    assert all(json.loads(line) for line in lines)
    assert sum('"version":3,' in line for line in lines) == len(read)


async def secretive(store: EventStore) -> Timeline:
    """Keep a conversation in which the first prompt, a call and its result say a secret, and compact it."""
    timeline = await Timeline.open(
        store, "c", policy=small_policy(max_tokens=1_000), title=f"Use {SECRET}", now=after(0)
    )
    await timeline.append(prompt(text=f"Use {SECRET} please"), now=after(0))
    await timeline.append(call("a", arguments={"command": f"login {SECRET}"}), now=after(1))
    await timeline.append(result("a", text=f"welcome {SECRET}\n" * 3), answer(5), now=after(2))
    await timeline.render(now=after(3))
    for number in range(6):
        await timeline.append(prompt(20), *exchange(f"c{number}", 200), answer(5), now=after(10 + number))
        await timeline.render(now=after(10 + number))
    return timeline


async def test_what_is_redacted_is_nowhere_in_an_export() -> None:
    """Not in its own event, a title, a replacement, a summary or a digest, nor as a hash that a guess could match."""
    store, other = MemoryStore(), MemoryStore()
    timeline = await secretive(store)
    assert any(SECRET in line for line in await export(store))
    for version in (2, 3, 4):
        await redact(store, timeline, version, "a password")
    await (await Timeline.open(store, "c")).render(now=after(2_000))
    whole = {event.version: event async for event in store.read("c")}
    lines = await export(store)
    text = "\n".join(lines)
    assert SECRET not in text
    assert not [v for v in (1, 2, 3, 4) if whole[v].checksum in text]
    assert whole[5].checksum in text
    assert counts(await take(other, lines)) == {"chain": 1}
    report = await verify(other, "c")
    assert report.ok
    assert report.unverifiable == {"redacted": report.renders}, "all were before it, or show a summary of it"
    block = await (await Timeline.open(other, "c")).read("ar:turn_1.user.prompt")
    assert (block.text, block.meta) == ("[redacted]", {"redacted": "a password"})


async def test_no_hash_of_a_body_with_redacted_content_leaves_the_store() -> None:
    """A short secret could be guessed from it; a call behind the redaction keeps its proof."""
    store, other = MemoryStore(), MemoryStore()
    timeline = await Timeline.open(store, "c", policy=small_policy(), now=after(0))
    await timeline.append(prompt(5), answer(text=SECRET), prompt(5), now=after(0))
    seen = (await timeline.render()).request("anthropic", model="m", max_tokens=9)
    unseen = (await timeline.render(record=False)).request("anthropic", model="m", max_tokens=8)
    await timeline.record_model_call(request=seen, error=f"{SECRET} is no JSON")
    await timeline.record_model_call(request=unseen)
    await redact(store, timeline, 3)
    timeline = await Timeline.open(store, "c")
    await timeline.record_model_call(request=(await timeline.render()).request("anthropic", model="m", max_tokens=9))
    text = "\n".join(lines := await export(store))
    assert [word for word in (SECRET, seen.sha256, unseen.sha256) if word in text] == []
    await take(other, lines)
    copied = await Timeline.open(other, "c")
    assert [call.unproved async for call in copied.calls()] == ["redacted", "unrecorded", None]
    report = await copied.verify()
    assert (report.ok, report.calls, report.unverifiable) == (True, 3, {"redacted": 2, "unrecorded": 1})


async def test_contexts_behind_a_redaction_are_verified() -> None:
    """They showed the tombstone, which is in the copy."""
    store, other = MemoryStore(), MemoryStore()
    timeline = await Timeline.open(store, "c", policy=small_policy(), now=after(0))
    await timeline.append(prompt(5), answer(text=SECRET), prompt(5), now=after(0))
    await timeline.render(now=after(1))
    await redact(store, timeline, 3)
    timeline = await Timeline.open(store, "c")
    await timeline.append(answer(5), now=after(2_000))
    await timeline.render(now=after(2_001))
    await take(other, await export(store))
    report = await verify(other, "c")
    assert (report.ok, report.renders, report.unverifiable) == (True, 2, {"redacted": 1})


async def test_a_redaction_of_what_is_not_there_yet_redacts_nothing() -> None:
    """The fold passes over it, and a block that comes later leaves whole."""
    store, other = MemoryStore(), MemoryStore()
    timeline = await Timeline.open(store, "c", policy=small_policy(), now=after(0))
    await redact(store, timeline, 3)
    timeline = await Timeline.open(store, "c")
    await timeline.append(prompt(text="kept"), now=after(1))
    await timeline.render(now=after(2))
    lines = await export(store)
    assert any('"text":"kept"' in line for line in lines)
    await take(other, lines)
    assert (await verify(other, "c")).ok


async def test_a_fork_and_its_parent_leave_without_what_either_redacts() -> None:
    """A block is erased where it stands, whichever of the conversations that are written said so."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", now=after(0))
    await timeline.append(prompt(5), answer(text=SECRET), prompt(5), now=after(0))
    fork = await timeline.fork(conversation="f", at=4)
    await timeline.fork(conversation="g", at=4)
    await redact(store, fork, 3)
    assert SECRET in "".join(await export(store, "c")), "the parent alone did not redact it"
    assert SECRET not in "".join(await export(store, "f"))
    assert SECRET not in "".join(await export(store))
    await redact(store, timeline, 3)
    assert SECRET not in "".join(await export(store, "g"))


async def test_a_redacted_copy_and_its_original_know_each_other() -> None:
    """Importing one over the other adds nothing, either way."""
    store, other = MemoryStore(), MemoryStore()
    timeline = await Timeline.open(store, "c", now=after(0))
    await timeline.append(prompt(5), answer(text=SECRET), now=after(0))
    whole = await export(store)
    await redact(store, timeline, 3)
    erased = await export(store)
    await take(other, erased)
    assert [i.events for i in await take(other, whole)] == [0]
    assert [i.events for i in await take(store, erased)] == [0]
