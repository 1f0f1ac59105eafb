"""Looking at a conversation as it was: `Timeline.at` (design, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import AT, Scribe, after, answer, log_of, opened, paths, prompt, small_policy, turn
from timeline import Timeline, open_store
from timeline.errors import BlockNotFound, ContextOverflow, HistoryUnavailable
from timeline.events import BlockRedacted, event_id
from timeline.events.other_payloads import CompactionStarted
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400, hiding=None)


async def compacted(store: EventStore) -> tuple[Timeline, int]:
    """Return a conversation that was compacted and went on, and the version before the compaction."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(1_200), *turn(1_200), *turn(400, asked=300))
    before = timeline.version
    await timeline.append(*turn(500))
    await timeline.render(now=AT)
    await timeline.append(*turn(20))
    return timeline, before


async def test_the_past_is_what_was_there_then(tmp_path: Path) -> None:
    """What a later summary covers is visible before it."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline, before = await compacted(store)
        past = await timeline.at(before)
        assert (past.id, past.version) == ("c", before)
        assert [item.state for item in past.window.items] == ["visible"] * 6
        assert timeline.window.summary is not None


async def test_a_past_renders_what_a_render_would_have_sent() -> None:
    """By the policy that is in force now, and without recording anything."""
    store = MemoryStore()
    timeline, before = await compacted(store)
    length = len(await log_of(store))
    context = await (await timeline.at(before)).render(system="You help.", now=AT)
    assert [entry.path for entry in context.neutral.entries] == paths((await timeline.at(before)).window.items)
    assert len(context.explanation.blocks) == 6
    assert len(await log_of(store)) == length


async def test_a_past_above_the_trigger_is_compacted_in_its_own_render_only() -> None:
    """Twice the same, since nothing of it is kept."""
    timeline, before = await compacted(MemoryStore())
    past = await timeline.at(before + 2)
    first, second = await past.render(now=AT), await past.render(now=AT)
    for context in (first, second):
        assert [taken.kind for taken in context.decisions] == ["compacted"]
        assert context.neutral.entries[0].type == "conv.range.summary"
    assert past.version == before + 2


async def test_a_recorded_context_is_rendered_again_from_its_version() -> None:
    """The same bytes: the past is exactly what it was."""
    store = MemoryStore()
    timeline, _ = await compacted(store)
    [rendered] = [event for event in await log_of(store) if event.type == "context.rendered"]
    past = await timeline.at(rendered.version - 1)
    assert (await past.render(now=AT)).fingerprint == getattr(rendered.payload, "fingerprint", None)


async def test_a_past_that_is_compacted_sends_the_bytes_that_the_render_then_sent() -> None:
    """Its summary gets the path that is free in that past: what came later took none of it."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(*turn(1_200), *turn(1_200), *turn(400, asked=300), *turn(500))
    before = timeline.version
    sent = await timeline.render(now=AT)
    assert [taken.kind for taken in sent.decisions] == ["compacted"]
    context = await (await timeline.at(before)).render(now=AT)
    assert (context.neutral.entries[0].path, context.fingerprint) == (sent.neutral.entries[0].path, sent.fingerprint)


async def test_the_summarizer_of_a_past_is_told_no_task_that_was_given_later() -> None:
    """A conversation that began without a prompt had none yet."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe)
    await timeline.append(*(answer(600, response_id=f"r{number}") for number in range(8)))
    before = timeline.version
    await timeline.append(prompt(text="Never touch the invoices."))
    await (await timeline.at(before)).render(now=AT)
    assert [request.original_task for request in scribe.asked] == [None]


async def test_a_past_that_does_not_fit_says_so() -> None:
    """As a render would have."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000, hiding=None))
    await timeline.append(answer(2_000))
    version = timeline.version
    with pytest.raises(ContextOverflow):
        await (await timeline.at(version)).render(now=AT)


async def test_a_past_reads_only_what_was_there() -> None:
    """A later block is not found; a later redaction holds all the same."""
    timeline, before = await compacted(MemoryStore())
    past = await timeline.at(before)
    assert (await past.read("ar:turn_1.user.prompt")).text == "abc " * 5
    with pytest.raises(BlockNotFound):
        await past.read("ar:turn_4.user.prompt")
    await timeline.decide([BlockRedacted(version=2)], at=AT, ids=[event_id(AT)])
    assert (await past.read("ar:turn_1.user.prompt")).text == "[redacted]"


async def test_between_a_compaction_and_its_undo_the_summary_stands() -> None:
    """What was taken back later had not been taken back then."""
    timeline, _ = await compacted(MemoryStore())
    standing = timeline.version
    summary = timeline.window.summary
    assert summary is not None
    await timeline.undo_compaction(now=AT)
    past = await timeline.at(standing)
    assert past.window.summary == summary
    assert past.window.hold is None
    assert (await timeline.at(timeline.version)).window == timeline.window


async def test_a_compaction_that_was_under_way_does_not_keep_a_past_from_rendering() -> None:
    """Nobody writes that summary any more."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(1_800), *turn(1_800), *turn(500))
    await timeline.decide([CompactionStarted(expires_at=after(10**6))], at=AT, ids=[event_id(AT)])
    past = await timeline.at(timeline.version)
    assert [taken.kind for taken in (await past.render(now=AT)).decisions] == ["compacted"]


@pytest.mark.parametrize("version", [0, -1, 4])
async def test_a_version_that_the_log_does_not_hold_is_refused(version: int) -> None:
    """The error names those that it does hold."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn())
    with pytest.raises(HistoryUnavailable, match="holds the versions 1 to 3") as gone:
        await timeline.at(version)
    assert (gone.value.version, gone.value.first_version, gone.value.last_version) == (version, 1, 3)


async def test_the_first_version_is_an_empty_conversation() -> None:
    """It was only opened."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn())
    past = await timeline.at(1)
    assert past.window.items == ()
    assert (await past.render(now=AT)).neutral.entries == ()


async def test_a_past_sees_what_another_writer_appended() -> None:
    """The log is asked, not this timeline's view of it."""
    store = MemoryStore()
    timeline = await opened(store)
    other = await opened(store)
    await other.append(prompt())
    assert len((await timeline.at(2)).window.items) == 1
