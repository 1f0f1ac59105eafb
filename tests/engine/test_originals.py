"""What the summarizer of a timeline is given: under our presets no stand-ins, made or recorded conversations alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.depth import at_night
from tests.recorded import needs_recordings, recorded
from tests.scenes import AT, after, exchange, opened, prompt, words
from timeline import policies
from timeline.events import ModelCalled, event_id
from timeline.importers import read_recording
from timeline.lab.simulate import simulate
from timeline.policy.model import Hiding
from timeline.ports import CUT_KEY, HIDDEN_KEY, window_of
from timeline.store.memory import MemoryStore
from timeline.summarizers import CallableSummarizer, ExtractiveSummarizer, FallbackSummarizer

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.policy.model import Policy
    from timeline.ports import Summary, SummaryRequest

FILES = recorded("*/*.jsonl")
PRESETS = ("gentle", "balanced", "economical")


class Reader:
    """The extractive summarizer, with a window; it remembers what it was asked."""

    name = "reader"

    def __init__(self, window_tokens: int | None = None) -> None:
        self.window_tokens = window_tokens
        self.asked: list[SummaryRequest] = []

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Remember a request, and answer it."""
        self.asked.append(request)
        return await ExtractiveSummarizer().summarize(request)

    def hidden(self) -> list[str]:
        """Return what was given in place of blocks."""
        return [block.text for request in self.asked for block in request.blocks if HIDDEN_KEY in block.meta]


async def asked(reader: Reader, policy: Policy, tokens: int = 60, rounds: int = 15) -> Reader:
    """Hide old results once the cache is cold, compact, and return what the summarizer was asked."""
    store = MemoryStore()
    timeline = await opened(store, policy=policy, summarizer=reader)
    await timeline.append(prompt(600))
    for number in range(rounds):
        await timeline.append(*exchange(f"r{number}", tokens, response_id=f"m{number}"))
    await timeline.decide([ModelCalled()], at=AT, ids=[event_id(AT)])
    hidden = await timeline.render(now=after(7_300))
    assert {(taken.kind, taken.reason) for taken in hidden.decisions} >= {("hidden", "cold")}
    await timeline.append(prompt(text="Go on."), *exchange("last", 5, response_id="m99"))
    await timeline.compact()
    return reader


def policy(**changes: Any) -> Policy:
    """Return `balanced`, counted in quarters of characters, which compacts when it is asked to."""
    small = {
        "counter": "chars4",
        "compact_when_cold": 0.9,
        "hiding": {"intact": 6, "files": 30, "old": 8},
        "target": 0.8,
        "keep_recent": 0.001,
        "digest_tokens": 0,
        "max_tokens": 20_000,
    }
    return policies.balanced(**{**small, **changes})


async def test_a_summary_of_our_presets_is_written_from_what_was_said() -> None:
    """The model itself sees lines about the old results."""
    reader = await asked(Reader(), policy())
    results = [block for request in reader.asked for block in request.blocks if block.type == "react.tool.result"]
    assert len(results) >= 6
    assert {block.text for block in results} == {words(60)}
    assert reader.hidden() == []


async def test_under_a_published_design_it_is_written_from_what_the_model_saw() -> None:
    """The same conversation and the same hides, with the step as the designs have it."""
    [step] = policy().steps
    literal = policy(steps=[step.model_copy(update={"source": "shown"})])
    assert len((await asked(Reader(), literal)).hidden()) >= 6


async def test_what_is_large_is_cut_to_the_window_of_the_summarizer() -> None:
    """A small window gets less than the few thousand tokens that any request may have more."""

    def given(reader: Reader) -> int:
        return sum(len(block.countable()) // 4 for request in reader.asked for block in request.blocks)

    hiding = policy(hiding=Hiding(intact=1, files=1))
    wide, small = Reader(), Reader(window_tokens=3_000)
    for reader in (wide, small):
        await asked(reader, hiding, tokens=600, rounds=30)
    assert given(small) < 1_800
    assert given(wide) > given(small) + 300
    assert any(CUT_KEY in block.meta for request in small.asked for block in request.blocks)


async def test_a_chain_has_the_window_of_its_first_summarizer() -> None:
    """Which answers unless it fails."""

    async def ask(message: str) -> str:
        return message

    own = CallableSummarizer(ask, window_tokens=3_000)
    assert FallbackSummarizer(own, ExtractiveSummarizer()).window_tokens == 3_000
    assert FallbackSummarizer(ExtractiveSummarizer(), own).window_tokens is None


@pytest.mark.parametrize(("named", "window"), [(9_000, 9_000), (None, None), (0, None), ("9000", None)])
def test_a_window_counts_where_it_is_a_number_of_tokens(named: Any, window: int | None) -> None:
    """No type checker sees an application's summarizer."""
    assert window_of(Reader(named)) == window


@needs_recordings
@pytest.mark.parametrize(
    ("file", "preset"),
    [
        pytest.param(
            file, preset, id=f"{file.stem}-{preset}", marks=() if (n - m) % (2 * len(PRESETS)) == 0 else at_night
        )
        for n, file in enumerate(FILES)
        for m, preset in enumerate(PRESETS)
    ],
)
async def test_no_recorded_conversation_is_summarised_from_hidden(file: Path, preset: str) -> None:
    """At a limit that makes most of them hide and compact several times; at night each under every preset."""
    store, reader = MemoryStore(), Reader()
    for recording in read_recording(file):
        await simulate(store, recording, getattr(policies, preset)(max_tokens=48_000), summarizer=reader)
    assert reader.hidden() == []
