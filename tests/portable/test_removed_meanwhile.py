"""Exports and copies of a log from which content goes meanwhile: whole and sound, or a clear error."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.meanwhile import Meanwhile
from tests.portable.test_copying import HIDDEN, POLICY, more, talk
from tests.scenes import prompt
from timeline import Timeline
from timeline.audit.deep import verify_deep
from timeline.cli.markdown import transcript
from timeline.errors import ConversationErased, HistoryUnavailable, ImportFailed, RemovedMeanwhile
from timeline.forgetting import find_subject, redact
from timeline.portable import Copied, copy_store, export_log, import_copy, read_exported
from timeline.retention import scavenge
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from timeline.ports import EventStore

REMOVALS = ("redacted", "scavenged", "erased")


async def world(removed: str) -> tuple[MemoryStore, Callable[[], Awaitable[object]]]:
    """Return a store with a conversation and its fork, and what removes content of the first one."""
    store = MemoryStore()
    timeline = await talk(store, "a", rounds=4)
    [said] = await timeline.append(prompt(text=HIDDEN, turn_id="turn_2"))
    await timeline.fork(conversation="fork")
    await timeline.append(*[prompt(900, turn_id="turn_3") for _ in range(5)])
    await timeline.render(system="be brief")
    await timeline.set_retention("window")
    if removed == "scavenged":
        return store, partial(scavenge, store)
    if removed == "erased":
        return store, partial(store.erase, "a", forks="copy")
    return store, partial(timeline.redact, said.path, "a secret")


async def check_sound(store: EventStore) -> None:
    """Check that a verification finds nothing wrong with a store."""
    report = await verify_deep(store)
    problems = [problem for each in report.conversations for problem in each.problems]
    assert report.ok, (problems, report.differences)


async def imported(lines: list[str], *, is_whole: bool) -> EventStore:
    """Return a store that took exported lines in; of a log that is not whole it takes none."""
    other = MemoryStore()
    for copy in read_exported("\n".join(lines).encode(), "lines"):
        with suppress(*[] if is_whole else [ImportFailed]):
            await import_copy(other, copy)
    return other


@pytest.mark.parametrize("removed", REMOVALS)
async def test_an_export_is_one_that_an_import_takes_and_verifies_or_an_error(removed: str) -> None:
    """Between any two steps of the export; one that ends without an error behind a redaction has none of it."""
    for step in count(1):
        store, removal = await world(removed)
        meanwhile = Meanwhile(store, removal, step)
        try:
            lines = [line async for line in export_log(meanwhile.as_store, ["a", "fork"])]
        except (RemovedMeanwhile, ConversationErased):
            continue
        assert removed != "redacted" or not meanwhile.has_happened or HIDDEN not in "".join(lines), step
        await check_sound(await imported(lines, is_whole=removed != "scavenged"))
        if not meanwhile.has_happened:
            assert step > 10
            return


async def test_a_transcript_is_all_of_before_or_all_of_behind_or_an_error() -> None:
    """It is written as it is read, so that it cannot begin again."""
    whole, redaction = await world("redacted")
    before = [part async for part in transcript(whole, "a")]
    await redaction()
    behind = [part async for part in transcript(whole, "a")]
    for step in count(1):
        store, redaction = await world("redacted")
        meanwhile = Meanwhile(store, redaction, step)
        try:
            parts = [part async for part in transcript(meanwhile.as_store, "a")]
        except RemovedMeanwhile:
            continue
        is_right = parts == (behind if meanwhile.has_happened else before)
        assert is_right, step
        if not meanwhile.has_happened:
            assert step > 10
            return


@pytest.mark.parametrize("removed", REMOVALS)
async def test_a_copy_is_sound_and_says_if_it_holds_what_was_removed_meanwhile(removed: str) -> None:
    """Between any two steps of the copy: the copy is a log of before or of behind; what looks like damage is none."""
    for step in count(1):
        store, removal = await world(removed)
        other = MemoryStore()
        meanwhile = Meanwhile(store, removal, step)
        outcomes = [outcome async for outcome in copy_store(meanwhile.as_store, other)]
        await check_sound(other)
        for outcome in outcomes:
            if not isinstance(outcome, Copied):
                told = (RemovedMeanwhile, HistoryUnavailable, ConversationErased, ImportFailed)
                assert isinstance(outcome.error, told), step
                assert outcome.events == 0 or "with that content" in str(outcome.error), step
        if not meanwhile.has_happened:
            assert step > 10
            return


async def test_a_copy_of_which_nothing_was_written_yet_can_be_repeated() -> None:
    """The error says so; the next copy has what the first one would have had behind the redaction."""
    store, redaction = await world("redacted")
    other = MemoryStore()
    [stopped, _] = [outcome async for outcome in copy_store(Meanwhile(store, redaction, 7).as_store, other)]
    assert not isinstance(stopped, Copied)
    assert "Nothing of it was copied: copy it again" in str(stopped.error)
    assert all([isinstance(outcome, Copied) async for outcome in copy_store(store, other)])
    assert HIDDEN not in "".join([line async for line in export_log(other, ["a", "fork"])])


async def test_a_copy_brings_nothing_back_that_is_redacted_in_the_other_store_meanwhile() -> None:
    """Between any two steps of the copy: neither snapshots nor forks of before come behind the redaction."""
    for step in count(1, 3):
        store, other = MemoryStore(), MemoryStore()
        timeline = await Timeline.open(store, "a", policy=POLICY)
        await timeline.append(prompt(text=HIDDEN, turn_id="turn_1"))
        await more(timeline, 0, 12)
        await (await timeline.fork(conversation="fork")).append(prompt(text="own", turn_id="turn_2"))
        meanwhile = Meanwhile(store, partial(redacted_in, other), step)
        outcomes = [outcome async for outcome in copy_store(meanwhile.as_store, other)]
        await check_sound(other)
        assert all(isinstance(each, Copied) or isinstance(each.error, ImportFailed) for each in outcomes), step
        if not meanwhile.has_happened:
            assert step > 10
            return


async def redacted_in(store: EventStore) -> None:
    """Redact what is hidden, wherever it is by now."""
    for id_ in [info.id async for info in store.conversations()]:
        if places := [found.place async for found in find_subject(store, HIDDEN, [id_]) if found.kind == "block"]:
            await redact(store, id_, places, "a secret", text=HIDDEN)
