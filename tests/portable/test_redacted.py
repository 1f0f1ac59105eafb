"""A fork whose past was redacted leaves its parent behind: its file and its copy prove what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import AT, opened, prompt
from timeline import Timeline
from timeline.portable import copy_conversation, export_log, import_copy, read_copies
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

WORDS = "the birds are called kestrel"


async def by_copy(store: MemoryStore, folder: Path) -> MemoryStore:
    """Return a store to which the newest fork was copied."""
    del folder
    other = MemoryStore()
    await copy_conversation(store, "fork", other)
    return other


async def by_file(store: MemoryStore, folder: Path) -> MemoryStore:
    """Return a store into which the newest fork's export was imported."""
    file = folder / "fork.jsonl"
    file.write_text("\n".join([line async for line in export_log(store, ["fork"])]), encoding="utf-8")
    other = MemoryStore()
    for found in read_copies(file) or []:
        await import_copy(other, found)
    return other


async def asked_of_the_parent(timeline: Timeline) -> None:
    """Fork, then redact in the parent."""
    await timeline.fork(conversation="fork")
    await timeline.redact("@2", "asked for")


async def asked_of_the_fork(timeline: Timeline) -> None:
    """Fork, then redact in the fork."""
    fork = await timeline.fork(conversation="fork")
    await fork.redact("@2", "asked for")


async def of_a_past_that_is_forked_afterwards(timeline: Timeline) -> None:
    """Redact, then fork what lies before the redaction."""
    version = timeline.version
    await timeline.redact("@2", "asked for")
    await timeline.fork(at=version, conversation="fork")


async def of_words_alone_and_forked_afterwards(timeline: Timeline) -> None:
    """Redact words of an event that holds no block, then fork what lies before."""
    version = timeline.version
    await timeline.redact("@3", "asked for", text=WORDS)
    await timeline.fork(at=version, conversation="fork")


async def of_words_alone(timeline: Timeline) -> None:
    """Redact words of an event that holds no block and that a fork shares."""
    await timeline.fork(conversation="fork")
    await timeline.redact("@3", "asked for", text=WORDS)


async def in_a_fork_of_a_fork(timeline: Timeline) -> None:
    """Redact what a fork of a fork shares with both."""
    middle = await timeline.fork(conversation="middle")
    await middle.append(prompt(5))
    await middle.fork(conversation="fork")
    await timeline.redact("@2", "asked for")


@pytest.mark.parametrize("moved", [by_copy, by_file])
@pytest.mark.parametrize(
    "redacted",
    [
        asked_of_the_parent,
        asked_of_the_fork,
        of_a_past_that_is_forked_afterwards,
        of_words_alone_and_forked_afterwards,
        of_words_alone,
        in_a_fork_of_a_fork,
    ],
)
async def test_a_fork_without_what_its_parent_appended_later_is_proved(
    redacted: Callable[[Timeline], Awaitable[None]],
    moved: Callable[[MemoryStore, Path], Awaitable[MemoryStore]],
    tmp_path: Path,
) -> None:
    """The redaction of the parent lies behind what the fork shares, so the fork's own says what was written anew."""
    store = MemoryStore()
    timeline = await opened(store, "cards")
    await timeline.append(prompt(text=WORDS))
    await timeline.enter_stage("build", f"Build it: {WORDS}", now=AT)
    await timeline.append(prompt(5))
    await redacted(timeline)
    other = await moved(store, tmp_path)
    for each in [info.id async for info in other.conversations()]:
        report = await (await Timeline.open(other, each, create=False)).verify()
        assert (report.ok, report.problems) == (True, ())
        assert report.rewritten > 0
