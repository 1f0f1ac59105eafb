"""Verification: each kind of damage is found and named (design, section 5)."""

from __future__ import annotations

import json
import sqlite3
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.downgrade import unpack
from tests.scenes import AT, Scribe, answer, call, exchange, opened, prompt, result, small_policy, turn
from tests.wire.entries import GOOGLE_FILE, SERVER_RESULT
from timeline.audit.verify import VerifyReport, verify
from timeline.blocks import CustomBlock, RangeSummary
from timeline.digest import Command, Digest
from timeline.errors import ConversationNotFound
from timeline.events import (
    NOBODY,
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    CallRequest,
    CompactionCompleted,
    ContextRendered,
    Covers,
    ModelCalled,
    NewEvent,
    Payload,
    Replacement,
    UnknownPayload,
    WrittenBy,
    event_id,
)
from timeline.frozen import canonical_json, sha256_hex
from timeline.policy.model import Policy
from timeline.projection.project import PROJECTION, Projector
from timeline.retention import scavenge
from timeline.store import open_store
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from pydantic import JsonValue

    from timeline.events import Event
    from timeline.ports import EventStore

REPLY = {"id": "m1", "choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}
POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)
INVARIANTS = ("checksum", "coverage", "pairing", "progress", "replay", "recall", "order", "prefix")


def broken(report: VerifyReport) -> dict[str, int]:
    """Return the invariants that are broken, and how often."""
    counts = {name: getattr(report, name) for name in INVARIANTS}
    assert report.ok is not any(counts.values())
    assert bool(report.problems) is any(counts.values())
    return {name: count for name, count in counts.items() if count}


async def put(store: EventStore, *payloads: Payload) -> None:
    """Append events behind the shell's back, as a faulty writer would."""
    await store.append("c", [NewEvent(id=event_id(AT), at=AT, payload=payload) for payload in payloads])


def compaction(*ranges: tuple[int, int], **changes: Any) -> CompactionCompleted:
    """Return a compaction that says that it did well."""
    fields: dict[str, Any] = {
        "block": RangeSummary(turn_id="x", path="su:x.conv.range.summary", text="s", at=AT),
        "tokens": 1,
        "counter": "chars4",
        "covers": Covers(ranges=ranges, summaries=changes.pop("summaries", ())),
        "before_tokens": 1_000,
        "after_tokens": 100,
        "written_by": WrittenBy(summarizer="faulty"),
    }
    return CompactionCompleted(**{**fields, **changes})


async def lively(store: EventStore) -> None:
    """Write a conversation with two compactions, previews and five recorded contexts."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(1_500))
    await timeline.render(system="S", tools=[{"name": "run"}], ephemeral=["noon"])
    await timeline.append(prompt(20), *exchange("a", 1_500), *exchange("b", 1_000), *exchange("d", 400))
    await timeline.render(system="S")
    await timeline.append(call("e"), call("f"))
    await timeline.render(system="S")
    await timeline.append(result("f"), result("e", 1_500), answer(1_000, response_id="m1"))
    await timeline.render(system="S")
    await timeline.append(*turn(1_000), *turn(400))
    await timeline.render(system="S")


async def test_a_sound_conversation_is_ok() -> None:
    """Every context is built again, every compaction checked; the figures say how many."""
    store = MemoryStore()
    await lively(store)
    report = await (await opened(store)).verify()
    assert broken(report) == {}
    assert (report.renders, report.compactions, report.unverifiable) == (5, 2, {})
    assert report.events == (await store.info("c")).version
    assert report.blocks == 20


async def test_verifying_writes_nothing() -> None:
    """It only reads."""
    store = MemoryStore()
    await lively(store)
    version = (await store.info("c")).version
    await (await Timeline.open(store, "c")).verify()
    assert (await store.info("c")).version == version


async def test_an_unknown_conversation_is_a_typed_error() -> None:
    """There is nothing to verify."""
    with pytest.raises(ConversationNotFound):
        await verify(MemoryStore(), "c")


# Coverage


@pytest.mark.parametrize(
    "ranges", [((2, 3), (3, 4)), ((4, 5), (2, 3)), ((3, 2),)], ids=["overlap", "order", "backwards"]
)
async def test_ranges_that_are_not_disjoint_and_rising_are_found(ranges: tuple[tuple[int, int], ...]) -> None:
    """A compaction's ranges are a set of versions, written in one way."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn(), *turn())
    await put(store, compaction(*ranges))
    assert broken(await timeline.verify())["coverage"] >= 1


async def test_a_carried_version_that_is_not_there_is_found() -> None:
    """What a compaction says that it kept must be in the window."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn(), *turn())
    await put(store, compaction((2, 3), carried=(1,)))
    assert broken(await timeline.verify()) == {"coverage": 1}


async def test_blocks_that_a_later_summary_forgets_are_found() -> None:
    """A summary that supersedes another without taking its range loses blocks."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn(), *turn())
    await put(store, compaction((2, 3)))
    second = RangeSummary(turn_id="x", path="su:x.conv.range.summary.2", text="s", at=AT)
    await put(store, compaction((4, 4), block=second, summaries=(6,)))
    report = await timeline.verify()
    assert broken(report) == {"coverage": 2}
    assert "ar:turn_1.user.prompt is neither in the window nor covered" in report.problems[0]


async def test_what_was_covered_behind_a_summary_that_nobody_wrote_is_named() -> None:
    """As logs hold it in which a summarizer was cancelled from inside; undoing it shows the blocks again."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn(), *turn())
    await put(store, compaction((2, 3), written_by=WrittenBy(summarizer=NOBODY)))
    report = await timeline.verify()
    assert broken(report) == {"coverage": 1}
    assert "su:x.conv.range.summary: nobody wrote a summary of the 2 blocks that it covers" in report.problems[0]


async def test_an_event_that_only_says_that_no_summary_was_due_is_not_believed() -> None:
    """Whether one was due is derived from the blocks."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn(), *turn())
    await put(store, compaction((2, 3), written_by=WrittenBy(summarizer=NOBODY), none_due=True))
    assert broken(await timeline.verify()) == {"coverage": 1}


async def test_covering_failed_responses_alone_needs_no_summary() -> None:
    """The model was shown nothing of them."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(answer(text="", response_id="m1", meta={"error": "overloaded"}), *turn())
    await put(store, compaction((2, 2), written_by=WrittenBy(summarizer=NOBODY), none_due=True))
    assert broken(await timeline.verify()) == {}


# Pairing


async def test_an_omitted_result_takes_its_call_with_it() -> None:
    """Neither half of the pair is shown: the model does not see an interrupted call."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(prompt(), *exchange("a"))
    await put(store, BlocksHidden(mode="omit", reason="faulty", blocks=(Replacement(version=4),)))
    context = await timeline.render()
    assert [entry.path for entry in context.neutral.entries] == ["ar:turn_1.user.prompt"]
    assert broken(await timeline.verify()) == {}


# Progress


@pytest.mark.parametrize(("after_tokens", "least"), [(1_000, 0), (1_200, 0), (800, 256)])
async def test_a_compaction_that_freed_too_little_is_found(after_tokens: int, least: int) -> None:
    """Nothing, less than nothing, or less than the policy asked for."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn(), *turn())
    await put(store, compaction((2, 3), after_tokens=after_tokens, least_progress=least))
    assert broken(await timeline.verify()) == {"progress": 1}


async def test_an_imported_compaction_answers_for_no_progress() -> None:
    """What another client did is recorded, not judged."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn(), *turn())
    await put(store, compaction((2, 3), after_tokens=1_200, source="imported", reason="imported"))
    assert broken(await timeline.verify()) == {}


# Replay


async def test_a_context_that_is_not_what_was_recorded_is_found() -> None:
    """A fingerprint that the log does not give is a mismatch."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    context = await timeline.render()
    forged = ContextRendered(version=2, projection=PROJECTION, fingerprint=context.fingerprint, policy=POLICY.hash())
    text = POLICY.canonical()
    event = NewEvent(id=event_id(AT), at=AT, payload=forged)
    await store.append("c", [event], values={sha256_hex(text): text})
    report = await timeline.verify()
    assert broken(report) == {"replay": 1}
    assert "version 2" in report.problems[0]


@pytest.mark.parametrize(("number", "data"), [(3, SERVER_RESULT), (4, SERVER_RESULT), (5, GOOGLE_FILE)])
async def test_a_context_of_an_earlier_projection_is_built_by_its_rules(number: int, data: JsonValue) -> None:
    """3 and 4 sent nothing of what a provider's server found, 5 nothing of Google's; one log has contexts of all."""
    store = MemoryStore()
    timeline = await opened(store)
    found = CustomBlock(type="assistant.part", author="assistant", data=data, response_id="r")
    await timeline.append(prompt(), found, answer(response_id="r"))
    window = await timeline.render(record=False)
    old = Projector(number)
    neutral = old.project(window.window, POLICY.cache_points, policy=POLICY.hash())
    assert (len(neutral.entries), len(window.neutral.entries)) == (2, 3)
    text = POLICY.canonical()
    rendered = ContextRendered(
        version=window.version, projection=number, fingerprint=old.fingerprint(neutral), policy=POLICY.hash()
    )
    event = NewEvent(id=event_id(AT), at=AT, payload=rendered)
    await store.append("c", [event], values={sha256_hex(text): text})
    await timeline.catch_up()
    await timeline.render()
    report = await timeline.verify()
    assert (report.ok, report.renders, report.unverifiable) == (True, 2, {})


@pytest.mark.parametrize("shown", [-3, 100_000])
async def test_a_context_that_shows_a_version_of_no_log_before_it_is_found(shown: int) -> None:
    """It is never built again, so nothing else would notice it; nothing was scavenged that could explain it."""
    store = MemoryStore()
    await lively(store)
    recorded = [e.payload async for e in store.read("c", types=["context.rendered"])]
    assert isinstance(recorded[-1], ContextRendered)
    await put(store, recorded[-1].model_copy(update={"version": shown}))
    assert broken(await verify(store, "c")) == {"replay": 1}


async def test_a_call_that_names_an_event_that_is_no_context_is_found() -> None:
    """Nothing was scavenged that could explain it."""
    store = MemoryStore()
    await lively(store)
    request = CallRequest(wire="anthropic", encoder=1, model="m", sha256="0" * 64)
    end = (await store.info("c")).version
    await put(store, ModelCalled(answers=2, request=request), ModelCalled(answers=end + 2, request=request))
    report = await verify(store, "c")
    assert (broken(report), report.unverifiable) == ({"replay": 2}, {})


async def test_a_call_whose_context_a_later_release_recorded_is_unverifiable() -> None:
    """An event of a later version is not damaged."""
    store = MemoryStore()
    await lively(store)
    later = UnknownPayload(type="context.rendered", data={"version": 3}, stored_schema_version=9)
    await put(store, later)
    request = CallRequest(wire="anthropic", encoder=1, model="m", sha256="0" * 64)
    await put(store, ModelCalled(answers=(await store.info("c")).version, request=request))
    report = await verify(store, "c")
    assert (broken(report), report.unverifiable) == ({}, {"projection": 1})


async def test_hashes_alone_cannot_be_built_again() -> None:
    """``record="hash"``: without prompt, tools and tail the context is unverifiable, which breaks nothing."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    for given in ({"system": "S"}, {"tools": [{"name": "run"}]}, {"ephemeral": ["noon"]}):
        await timeline.render(**given, record="hash")
    report = await timeline.verify()
    assert broken(report) == {}
    assert report.unverifiable == {"unrecorded_prefix": 3}


async def test_hashes_of_nothing_are_verified() -> None:
    """A context without prompt, tools and tail needs no stored values but the policy."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn())
    await timeline.render(record="hash")
    report = await timeline.verify()
    assert (report.ok, report.renders, report.unverifiable) == (True, 1, {})


async def test_a_context_of_another_projection_is_unverifiable() -> None:
    """Another format's bytes are not compared with this one's."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    await put(store, ContextRendered(version=3, projection=99, fingerprint="f", policy="p"))
    report = await timeline.verify()
    assert (broken(report), report.unverifiable) == ({}, {"projection": 1})


class Meanwhile(MemoryStore):
    """A store in which something happens once, before somebody's n-th reading."""

    happens: Callable[[], Awaitable[object]] | None = None
    readings = 0

    async def read(self, conversation: str, **options: Any) -> AsyncIterator[Event]:
        """Read, or let it happen first."""
        self.readings -= 1
        if self.happens is not None and not self.readings:
            happens, self.happens = self.happens, None
            await happens()
        async for event in super().read(conversation, **options):
            yield event


@pytest.mark.parametrize("what", ["redaction", "scavenge"])
async def test_what_is_removed_while_a_log_is_verified_is_no_mismatch(what: str) -> None:
    """Whenever it happens: contexts that were read before it would be compared with what is left behind it."""
    for readings in count(1):
        store = Meanwhile()
        timeline = await opened(store, policy=POLICY)
        [secret, *_] = await timeline.append(*turn(1_500), *turn(1_500), *turn(400, asked=300))
        context = await timeline.render()
        await timeline.record(REPLY, request=context.request("openai_chat", model="m"))
        await timeline.set_retention("window")
        removes = (
            partial(timeline.redact, secret.path, "asked for") if what == "redaction" else partial(scavenge, store)
        )
        store.happens, store.readings = removes, readings
        report = await verify(store, "c")
        assert report.ok, (readings, report.problems)
        if store.happens is not None:
            assert readings > 5
            return


async def test_a_context_after_a_redaction_shows_the_tombstone_and_is_verified() -> None:
    """What was recorded after the redaction can be built again."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(prompt(text="my password is x"), answer())
    await put(store, BlockRedacted(version=2, reason="asked"))
    context = await timeline.render()
    assert context.neutral.entries[0].text == "[redacted]"
    report = await timeline.verify()
    assert (broken(report), report.renders, report.unverifiable) == ({}, 1, {})


async def test_a_policy_of_a_later_version_does_not_stop_the_verification() -> None:
    """A field that this version does not know makes the context unverifiable; nothing is raised."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    text = canonical_json({**Policy().model_dump(mode="json"), "moonphase": "full"})
    later = ContextRendered(version=3, projection=PROJECTION, fingerprint="f", policy=sha256_hex(text))
    await store.append("c", [NewEvent(id=event_id(AT), at=AT, payload=later)], values={sha256_hex(text): text})
    report = await timeline.verify()
    assert (broken(report), report.unverifiable) == ({}, {"policy": 1})


# Recall


async def test_a_hide_of_what_is_no_block_is_found() -> None:
    """A replacement prints a path; there must be something behind it."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    await put(
        store,
        BlocksHidden(reason="faulty", blocks=(Replacement(version=1, text="x"), Replacement(version=77, text="x"))),
    )
    assert broken(await timeline.verify()) == {"recall": 2}


async def test_a_digest_that_names_an_unknown_path_is_found() -> None:
    """Every path that is printed must resolve."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn(), *turn())
    digest = Digest(commands=(Command(command="make", path="tc:nowhere.call"),))
    await put(store, compaction((2, 3), digest=digest))
    report = await timeline.verify()
    assert broken(report) == {"recall": 1}
    assert "tc:nowhere.call" in report.problems[0]


async def test_a_block_without_a_path_is_found() -> None:
    """A block that cannot be addressed cannot be read back."""
    store = MemoryStore()
    timeline = await opened(store)
    await put(store, BlockAppended(block=prompt(turn_id="t"), tokens=5, counter="chars4"))
    assert broken(await timeline.verify()) == {"recall": 1}


# Damage in a file, through SQLite itself


async def stored_file(path: Path) -> None:
    """Write the lively conversation to a file."""
    async with open_store(path) as store:
        await lively(store)


async def report_of(path: Path) -> VerifyReport:
    """Verify it as a command would."""
    async with open_store(path) as store:
        return await verify(store, "c")


def tamper(path: Path, *statements: str) -> None:
    """Change a store's file with SQLite alone."""
    connection = sqlite3.connect(path)
    with connection:
        unpack(connection)
        for statement in statements:
            assert connection.execute(statement).rowcount == 1
    connection.close()


async def test_a_sound_file_is_ok(tmp_path: Path) -> None:
    """The same conversation in a file is as sound as in memory."""
    path = tmp_path / "agent.db"
    await stored_file(path)
    assert broken(await report_of(path)) == {}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = replace(payload, 'abc abc abc', 'abd abc abc') WHERE version = 2",
        "UPDATE events SET payload = '{}' WHERE version = 2",
        "UPDATE events SET payload = 'no json' WHERE version = 3",
        "UPDATE events SET at = '2026-03-01T12:00:01.000000Z' WHERE version = 3",
        "UPDATE events SET type = 'note' WHERE version = 3",
        "UPDATE events SET schema_version = 2 WHERE version = 3",
        "UPDATE events SET checksum = replace(checksum, substr(checksum, 1, 1), 'x') WHERE version = 5",
        "UPDATE events SET event_id = '019ca945-0a00-72e6-99e9-931c8e389fc7' WHERE version = 5",
    ],
    ids=["one letter", "emptied", "no json", "time", "type", "schema version", "checksum", "id"],
)
async def test_any_change_of_an_event_breaks_its_checksum(tmp_path: Path, statement: str) -> None:
    """SQLite does not notice a changed row; the checksum does, and the report says which event."""
    path = tmp_path / "agent.db"
    await stored_file(path)
    tamper(path, statement)
    report = await report_of(path)
    assert not report.ok
    assert broken(report)["checksum"] >= 1


async def test_an_event_that_is_gone_from_the_middle_is_found(tmp_path: Path) -> None:
    """Versions have no gaps."""
    path = tmp_path / "agent.db"
    await stored_file(path)
    tamper(path, "DELETE FROM events WHERE version = 3")
    assert broken(await report_of(path))["checksum"] >= 1


async def test_an_event_that_is_gone_from_the_end_is_found(tmp_path: Path) -> None:
    """The log must end where the conversation says."""
    path = tmp_path / "agent.db"
    await stored_file(path)
    tamper(path, "DELETE FROM events WHERE version = (SELECT max(version) FROM events)")
    assert broken(await report_of(path))["checksum"] == 1


async def test_a_changed_value_is_found(tmp_path: Path) -> None:
    """A system prompt that is no longer what was sent does not hash to its address."""
    path = tmp_path / "agent.db"
    await stored_file(path)
    tamper(path, """UPDATE stored_values SET text = '"T"' WHERE text = '"S"'""")
    assert broken(await report_of(path))["checksum"] >= 1


async def test_a_value_that_is_gone_makes_its_contexts_unverifiable(tmp_path: Path) -> None:
    """A missing prompt cannot be compared."""
    path = tmp_path / "agent.db"
    await stored_file(path)
    tamper(path, """DELETE FROM stored_values WHERE text = '"S"'""")
    report = await report_of(path)
    assert report.unverifiable == {"unrecorded_prefix": 5}


async def test_a_damaged_snapshot_is_found(tmp_path: Path) -> None:
    """A snapshot has a checksum of its own."""
    path = tmp_path / "agent.db"
    await stored_file(path)
    tamper(path, "UPDATE snapshots SET body = replace(body, '\"tokens\":', '\"token\":')")
    assert broken(await report_of(path)) == {"checksum": 1}


async def test_a_snapshot_that_says_something_else_than_the_log_is_found(tmp_path: Path) -> None:
    """Even with a right checksum: the window from the snapshot must project like the full fold."""
    path = tmp_path / "agent.db"
    await stored_file(path)
    connection = sqlite3.connect(path)
    [(body,)] = connection.execute("SELECT body FROM snapshots").fetchall()
    state = json.loads(body)
    state["state"]["items"][-1]["omitted"] = True
    forged = canonical_json(state)
    with connection:
        connection.execute("UPDATE snapshots SET body = ?, checksum = ?", (forged, sha256_hex(forged)))
    connection.close()
    assert broken(await report_of(path)) == {"order": 1}


async def test_a_hundred_problems_are_counted_and_fifty_told() -> None:
    """The report stays readable."""
    store = MemoryStore()
    timeline = await opened(store)
    blocks = tuple(Replacement(version=n, text="x") for n in range(1_000, 1_100))
    await put(store, BlocksHidden(reason="faulty", blocks=blocks))
    report = await timeline.verify()
    assert (report.recall, len(report.problems)) == (100, 50)


async def test_a_log_that_grows_meanwhile_is_sound(tmp_path: Path) -> None:
    """Another writer appends and compacts while the log is read: both folds are compared at one version."""
    async with open_store(tmp_path / "agent.db") as store, open_store(tmp_path / "agent.db") as others:
        timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=4_000, keep_recent_tokens=400))
        for _ in range(20):
            await timeline.append(*turn(50))
        done = False

        async def write() -> None:
            nonlocal done
            for _ in range(60):
                await timeline.append(*turn(50))
                await timeline.render()
            done = True

        reports: list[VerifyReport] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            while not done:
                reports.append(await verify(others, "c"))
        assert len({report.events for report in reports}) > 1
        assert [report.problems for report in reports if not report.ok] == []
