"""Calibration by differences: what was appended between two calls, counted by the provider and by us."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import AT, answer, opened, prompt
from timeline.agent.calibration import FACTS, REWRITES, Calibration, calibrate
from timeline.events import BlocksHidden, ContextRendered, Event, ModelCalled, Payload, event_id
from timeline.events.encoding import PAYLOADS
from timeline.store.memory import MemoryStore
from timeline.usage import Usage


def log(*payloads: Payload) -> list[Event]:
    """Number payloads as the events of a conversation."""
    return [
        Event(id=event_id(AT), at=AT, payload=p, conversation="c", version=n, position=n, checksum="")
        for n, p in enumerate(payloads, start=1)
    ]


def step(number: int, counted: int, reported: int, *, model: str = "m", **rendered: Any) -> list[Payload]:
    """Return a render as the event of that number, and the call that answers it."""
    fields: dict[str, Any] = {
        "version": 0,
        "projection": 1,
        "fingerprint": "",
        "policy": "",
        "tokens": counted,
        **rendered,
    }
    usage = Usage(input_tokens=10, cache_read_tokens=reported - 10)
    return [ContextRendered(**fields), ModelCalled(model=model, usage=usage, answers=number)]


@given(st.integers(0, 50_000), st.floats(0.71, 1.49), st.lists(st.integers(300, 5_000), min_size=4, max_size=9))
def test_the_ratio_is_that_of_the_text_whatever_stands_before_it(hidden: int, ratio: float, grown: list[int]) -> None:
    """A prompt of the provider's own, or one that we were not given, is never charged to the conversation."""
    counted, payloads = 100, list[Payload]()
    for number, more in enumerate(grown):
        counted += more
        payloads += step(2 * number + 1, counted, hidden + 10 + round(ratio * counted))
    found = calibrate(log(*payloads))
    if sum(grown[1:]) >= 1_000:
        assert found.ratio == pytest.approx(ratio, abs=0.01)
    else:
        assert found.ratio == 1.0


@pytest.mark.parametrize(("reported", "ratio"), [(90_000, 1.5), (1_100, 0.7)])
def test_the_ratio_is_held_within_bounds(reported: int, ratio: float) -> None:
    """Beyond them something else was measured."""
    assert calibrate(log(*step(1, 1_000, 1_000), *step(3, 3_000, reported))).ratio == ratio


@pytest.mark.parametrize(
    "payloads",
    [
        [],
        step(1, 5_000, 9_000),
        [*step(1, 1_000, 1_000), *step(3, 1_900, 9_000)],
        [*step(1, 1_000, 1_000), BlocksHidden(reason="cold", blocks=()), *step(4, 5_000, 9_000)],
        [*step(1, 1_000, 1_000), *step(3, 5_000, 9_000, system="other")],
        [*step(1, 1_000, 1_000), *step(3, 5_000, 9_000, tools="other")],
        [*step(1, 1_000, 1_000), *step(3, 5_000, 9_000, model="other")],
        [*step(1, 1_000, 1_000), *step(7, 5_000, 9_000)],
        [ModelCalled(usage=Usage(input_tokens=9)), ModelCalled(usage=Usage(input_tokens=9_000))],
    ],
    ids=["nothing", "one", "little", "rewritten", "system", "tools", "model", "unknown render", "no render"],
)
def test_what_cannot_be_compared_leaves_the_ratio_at_one(payloads: list[Payload]) -> None:
    """Only what was appended between two calls over one prefix says anything."""
    assert calibrate(log(*payloads)).ratio == 1.0


def test_the_newest_model_is_the_one_that_counts() -> None:
    """Another tokenizer is another ratio; calls of a second model in between do not divide its own."""
    payloads = [*step(1, 1_000, 1_000, model="a"), *step(3, 3_000, 3_000, model="b"), *step(5, 5_000, 5_800, model="a")]
    assert calibrate(log(*payloads)) == Calibration(ratio=1.2, reported=4_800, counted=4_000, model="a")


def test_every_fact_is_an_event_that_exists_or_is_named_in_the_design() -> None:
    """A misspelt type would never be found."""
    assert set(FACTS) <= PAYLOADS.keys()
    assert set(REWRITES) < set(FACTS)


async def test_a_timeline_tells_its_calibration_from_what_was_recorded() -> None:
    """Renders and model calls in the log are all it takes."""
    timeline = await opened(MemoryStore())
    for number in range(3):
        await timeline.append(prompt(1_000))
        context = await timeline.render(system="You help.")
        usage = Usage(input_tokens=700 + context.account.sent * 6 // 5)
        await timeline.record_model_call(usage, model="m")
        await timeline.append(answer(1_000, response_id=f"r{number}"))
    found = await timeline.calibration()
    assert (found.ratio, found.counted, found.model) == (1.2, 4_000, "m")
