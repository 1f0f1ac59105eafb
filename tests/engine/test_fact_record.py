"""The record that the model is shown behind a summary: of everything before the window, and never more than is so."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from tests.depth import sampled
from tests.recorded import needs_recordings, swept
from tests.scenes import AT, COUNTER, Scribe, call, exchange, opened, payloads_of, prompt, result, small_policy, turn
from timeline import Timeline, open_store, policies
from timeline.engine.equipment import Equipment
from timeline.engine.renderer import Renderer
from timeline.importers import read_recording
from timeline.lab.alike import Alike
from timeline.lab.replay_log import ReplayLog
from timeline.lab.shown import shown_by
from timeline.lab.simulate import simulate
from timeline.store.memory import MemoryStore
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.blocks import Block
    from timeline.events import CompactionCompleted
    from timeline.ports import EventStore

POLICY = small_policy(max_tokens=8_000, keep_recent_tokens=400)
ADDRESS = re.compile(r"\((?:in )?@(\d+)\)")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventStore]:
    """Both stores."""
    url = "memory://" if request.param == "memory" else str(tmp_path / "agent.db")
    async with await open_store(url) as opened_store:
        yield opened_store


def work(number: int, tokens: int = 2_500) -> list[Block]:
    """Return a turn that writes a file, fails to write one, and runs a command that fails on even numbers."""
    status = 1 if number % 2 == 0 else 0
    return [
        prompt(30),
        *exchange(f"w{number}", 20, name="Write", arguments={"file_path": f"src/part_{number}.py"}),
        call(f"f{number}", "Write", arguments={"file_path": f"/etc/part_{number}"}),
        result(f"f{number}", text="Permission denied", is_error=True),
        call(f"m{number}", "bash", arguments={"command": f"make part_{number}"}),
        result(f"m{number}", tokens, exit_status=status),
        *turn(300, asked=30),
    ]


async def worked(store: EventStore, timeline: Timeline, turns: int) -> list[CompactionCompleted]:
    """Work and compact, turn by turn; return the compactions."""
    for number in range(turns):
        await timeline.append(*work(number))
        await timeline.compact()
    return await payloads_of(store, "compaction.completed", timeline.id)


def record_in(text: str) -> str:
    """Return the record of a summary's text."""
    return text.partition("## Done so far, from the log (read an address for the full content)\n\n")[2]


async def test_two_compactions_keep_the_facts_of_the_first(store: EventStore) -> None:
    """What the second one newly covers is not all that was done."""
    _, second = await worked(store, await opened(store, policy=POLICY, summarizer=Scribe()), 2)
    assert [use.file for use in second.digest.files_written] == ["src/part_1.py"]
    record = record_in(second.block.text)
    assert "- make part_0 (exit 1) (@" in record
    assert re.search(r"Files written:\n- src/part_1.py \(@\d+\)\n- src/part_0.py \(@\d+\)\n", record)
    assert "- make part_1 (exit 0) (@" in record


async def test_a_failed_write_is_shown_as_failed_and_as_nothing_else(store: EventStore) -> None:
    """The address leads to the call."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    *_, last = await worked(store, timeline, 2)
    record = record_in(last.block.text)
    failed = re.search(r"^- Write /etc/part_1: Permission denied \(@(\d+)\)$", record, re.MULTILINE)
    assert failed
    assert record.count("/etc/part_1") == 1
    block = await timeline.read(f"@{failed[1]}")
    assert block.path.endswith("f1.call")


@pytest.mark.parametrize("digest_tokens", [0, 20, 60, 150, 300, 1_000])
async def test_ten_compactions_keep_the_cap_and_print_addresses_that_resolve(digest_tokens: int) -> None:
    """Nothing grows with the number of compactions, and whatever has no room is counted."""
    policy = small_policy(max_tokens=8_000, keep_recent_tokens=400, digest_tokens=digest_tokens)
    store = MemoryStore()
    timeline = await opened(store, policy=policy, summarizer=Scribe())
    compactions = await worked(store, timeline, 12)
    assert len(compactions) >= 10
    for compaction in compactions:
        record = record_in(compaction.block.text)
        assert COUNTER.count(record) <= digest_tokens
        for version in ADDRESS.findall(record):
            assert (await timeline.read(f"@{version}")).call_id
        for path in re.findall(r"Full record: (\S+)$", record):
            assert (await timeline.read(path)).path == compaction.block.path
    if digest_tokens == 1_000:
        assert all(f"src/part_{number}.py" in record for number in range(12))


async def test_an_undo_takes_its_facts_back_until_they_are_covered_again(store: EventStore) -> None:
    """The record is of what the compaction covers, whichever one covered it before."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    before = await worked(store, timeline, 2)
    await timeline.undo_compaction()
    await timeline.append(*turn(400, asked=30))
    await timeline.compact()
    [*_, last] = await payloads_of(store, "compaction.completed")
    assert last.covers.ranges[0][0] == before[0].covers.ranges[0][0]
    assert all(f"src/part_{number}.py (@" in last.block.text for number in range(2))


async def test_a_fork_shows_the_shared_past_and_nothing_of_what_its_parent_did_later(store: EventStore) -> None:
    """Addresses up to the fork's base are its parent's."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await worked(store, timeline, 1)
    branch = await timeline.fork(conversation="branch")
    await timeline.append(*work(7))
    await timeline.compact()
    await branch.append(*work(8))
    await branch.compact()
    [*_, last] = await payloads_of(store, "compaction.completed", "branch")
    record = record_in(last.block.text)
    assert "src/part_0.py (@" in record
    assert "src/part_8.py (@" in record
    assert "part_7" not in record
    for version in ADDRESS.findall(record):
        assert (await branch.read(f"@{version}")).call_id


async def test_a_log_without_a_store_shows_the_same_record(store: EventStore) -> None:
    """The same bytes, compaction by compaction: a simulation shows what an agent will see."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    log = ReplayLog("c", AT, Alike())
    compactor = Equipment(Scribe()).compactor(POLICY)
    renderer = Renderer()
    for number in range(10):
        blocks = work(number)
        await timeline.append(*blocks)
        for place, block in enumerate(blocks, start=number * len(blocks)):
            log.append(place, block, AT, COUNTER.count(block.countable()), COUNTER.name)
        await timeline.render(now=AT)
        context = await renderer.render(log, compactor, system=None, tools=(), ephemeral=(), now=AT, at=AT)
        log.record(shown_by(context), AT)
        stored, folded = timeline.window.summary, log.fold.window.summary
        assert (stored is None) == (folded is None)
        if stored is not None and folded is not None:
            assert stored.block.text == folded.block.text
            assert "src/part_0.py" in stored.block.text
    assert timeline.window.compactions >= 3


async def test_a_dry_run_shows_the_same_record(store: EventStore) -> None:
    """A dry run has the facts of the store."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await worked(store, timeline, 2)
    await timeline.append(*work(5, tokens=9_000))
    dry = await timeline.render(now=AT, record=False)
    wet = await timeline.render(now=AT)
    assert [decision.kind for decision in wet.decisions] == ["compacted"]
    texts = [next(item.block.text for item in context.window.items if item.is_summary) for context in (dry, wet)]
    assert record_in(texts[0]) == record_in(texts[1])
    assert "src/part_0.py" in record_in(texts[1])


async def test_the_digests_of_twenty_compactions_are_about_as_large_as_their_facts() -> None:
    """Each holds what it newly covers, once."""
    store = MemoryStore()
    policy = small_policy(max_tokens=8_000, keep_recent_tokens=400)
    compactions = await worked(store, await opened(store, policy=policy, summarizer=Scribe()), 20)
    assert len(compactions) == 20
    stored = sum(len(json.dumps(compaction.digest.dump())) for compaction in compactions)
    copies = sum(len(json.dumps(compaction.block.meta.get("compaction_digest", ""))) for compaction in compactions)
    facts = [fact async for fact in store.facts(conversation="c", covered=True)]
    size = sum(len(json.dumps({name: value for name, value in asdict(f).items() if value}, default=str)) for f in facts)
    assert stored + copies <= 1.2 * size


@needs_recordings
@sampled
@pytest.mark.parametrize("path", swept("claude-code/*.jsonl"), ids=lambda path: path.stem)
async def test_recorded_work_is_shown_or_counted_over_all_compactions(path: Path) -> None:
    """Files written before the window are in the record or in its count; the record keeps its cap."""
    store, policy = MemoryStore(), policies.balanced(max_tokens=16_000)
    counter = get_counter(policy.counter)
    for recording in read_recording(path):
        run = await simulate(store, recording, policy)
        timeline = await Timeline.open(store, run.id, create=False)
        for compaction in await payloads_of(store, "compaction.completed", run.id):
            record = record_in(compaction.block.text)
            assert counter.count(record) <= policy.digest_tokens
            await _agrees(store, timeline, compaction, record)


async def _agrees(store: EventStore, timeline: Timeline, compaction: CompactionCompleted, record: str) -> None:
    facts = [fact async for fact in store.facts(conversation=timeline.id)]
    written = {
        fact.subject
        for fact in facts
        if fact.kind == "file_written" and not fact.failed and fact.version in compaction.covers
    }
    section: Any = re.search(r"^Files written[^\n]*:\n((?:- [^\n]*\n?)+)", record, re.MULTILINE)
    left = re.search(r"(\d+) files? written", record)
    shown = section[1].count("- ") if section else 0
    assert not record or shown + (int(left[1]) if left else 0) == len(written)
    for version in ADDRESS.findall(record):
        assert (await timeline.read(f"@{version}")).path
