"""The facts of a log are what the independent reader finds in the same file: all of them, failed ones as failed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from tests.depth import DEPTH, sampled
from tests.independent_reader.logged import NamedCalls, differences, logged
from tests.independent_reader.made import SESSIONS
from tests.independent_reader.reading import read
from tests.recorded import needs_recordings, recorded
from timeline.blocks import ToolCall
from timeline.events import appended_block
from timeline.importers import read_recording
from timeline.portable.recordings import import_recording
from timeline.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.independent_reader.acts import Act
    from timeline.ports import EventStore

NEITHER: Final = {"LICENSE", "README.md"}
FILES: Final = [path for path in (*recorded("*.jsonl"), *recorded("*/*")) if path.name not in NEITHER]
LEAST: Final = 100
"""Fewer acts than that in a set of recordings are none to compare."""


@pytest.mark.parametrize("client", SESSIONS)
async def test_the_facts_of_a_made_session_are_what_the_reader_finds(tmp_path: Path, client: str) -> None:
    """Every client, with calls that fail, are refused, or have no result."""
    file, acts = SESSIONS[client](tmp_path)
    compared, wrong = await compare(tmp_path, file)
    assert wrong == []
    assert compared >= len(acts)


@sampled
@needs_recordings
async def test_the_facts_of_recordings_are_what_the_reader_finds(tmp_path: Path) -> None:
    """Files, commands, searches and errors of sessions and of their subagents."""
    compared, wrong = 0, list[str]()
    for file in FILES[:: DEPTH.step]:
        more, found = await compare(tmp_path, file)
        compared, wrong = compared + more, wrong + found
    assert wrong == []
    assert compared > LEAST


async def compare(folder: Path, file: Path) -> tuple[int, list[str]]:
    """Import a file into a database of its own; return how many acts agree with its facts, and what does not."""
    read_by_name = {conversation.name: conversation for conversation in read(file)}
    agreed, wrong = 0, list[str]()
    async with await open_store(folder / f"{file.parent.name}-{file.stem}.db") as store:
        for recording in read_recording(file):
            done = await import_recording(store, recording)
            conversation = read_by_name.pop(recording.id.partition(".agent-")[2])
            acts, facts = Counter(conversation.acts), await facts_of(store, done.id)
            agreed += (acts & facts).total()
            wrong += [f"{file.stem} {conversation.name}: {line}" for line in differences(acts, facts)]
    lost = [act for conversation in read_by_name.values() for act in conversation.acts]
    return agreed, [*wrong, *(f"{file.stem}: not imported: {act}" for act in lost)]


async def facts_of(store: EventStore, conversation: str) -> Counter[Act]:
    """Return the facts of a log as the acts of its calls."""
    calls = NamedCalls()
    async for event in store.read(conversation):
        if isinstance(block := appended_block(event.payload), ToolCall):
            calls.take(block)
    return Counter(await logged(store, conversation, calls.by_path))
