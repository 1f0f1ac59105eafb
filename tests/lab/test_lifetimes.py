"""What a conversation costs under each kind of cache, worked out by hand from the sizes of its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
import pytest

from tests.lab.talks import code, work
from timeline import policies
from timeline.events import ModelCalled
from timeline.lab.lifetimes import as_kept, kept_by
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import replay
from timeline.lab.sizes import measure
from timeline.lab.work import Options

if TYPE_CHECKING:
    from timeline.lab.results import RunResult
    from timeline.lab.sizes import Measured
    from timeline.usage import CacheKind

KINDS: Final[tuple[CacheKind, ...]] = ("5m", "1h", "automatic", "none")
PAUSE: Final = 600
"""Seconds before the last of three calls: longer than five minutes, shorter than an hour."""


def talk(*, model: str = "claude-opus-4-5", **fields: bool) -> Measured:
    """Return a recording of three calls; each sends what the one before it did, and more."""
    return measure(work(3, pauses={2: PAUSE}, model=model, **fields).recording())


def replayed(cache: CacheKind | None, of: Measured) -> RunResult:
    """Replay it under no policy."""
    measured = of if cache is None else as_kept(of, cache)

    async def run() -> RunResult:
        return await replay(measured, policies.none(max_tokens=100_000), Options(cache=cache).price_of())

    return anyio.run(run)


def in_steps(tokens: int) -> int:
    """Return what an automatic cache reads of a prefix."""
    return tokens // 128 * 128


def test_each_kind_of_cache_costs_what_its_prices_say() -> None:
    """Read 0.1; written 1.25 and 2.0; a pause of ten minutes loses all but what is kept for an hour."""
    sent = [row.tokens for row in replayed("none", talk()).rows]
    first, second, third = sent
    assert first < second < third
    cost = {kind: [row.units for row in replayed(kind, talk()).rows] for kind in KINDS}
    assert cost["5m"] == pytest.approx([1.25 * first, 0.1 * first + 1.25 * (second - first), 1.25 * third])
    assert cost["1h"] == pytest.approx(
        [2 * first, 0.1 * first + 2 * (second - first), 0.1 * second + 2 * (third - second)]
    )
    read = in_steps(first)
    assert cost["automatic"] == pytest.approx([first, 0.1 * read + second - read, third])
    assert cost["none"] == sent


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_costs_the_same_whatever_was_recorded(kind: CacheKind, *, long: bool) -> None:
    """The same words, recorded with five minutes and with an hour."""
    assert replayed(kind, talk(long=long)).totals.units == replayed(kind, talk()).totals.units


@pytest.mark.parametrize(("long", "kind"), [(False, "5m"), (True, "1h")])
def test_the_recorded_kind_asked_for_changes_nothing(kind: CacheKind, *, long: bool) -> None:
    """As recorded is the default."""
    asked, recorded = replayed(kind, talk(long=long)), replayed(None, talk(long=long))
    assert asked.rows == recorded.rows
    assert asked.lifetime == recorded.lifetime == kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_says_how_its_prompts_were_kept(kind: CacheKind) -> None:
    """In the words that ask for it."""
    assert replayed(kind, talk()).lifetime == kind


@pytest.mark.parametrize(
    ("model", "long", "lifetime"),
    [
        ("claude-opus-5", True, "1h"),
        ("claude-opus-5", False, "5m"),
        ("gpt-5.6-sol", False, "30m"),
        ("gpt-5.1", True, "automatic"),
        ("deepseek-v4-pro", False, "automatic"),
    ],
)
def test_the_lifetime_of_a_recorded_run_is_that_of_its_providers_rule(model: str, lifetime: str, *, long: bool) -> None:
    """Of the packaged table."""
    assert kept_by(packaged_prices().price_of(model), long=long) == lifetime


@pytest.mark.parametrize(
    ("model", "kind", "shares"),
    [
        ("claude-opus-5-5", "5m", (0.05, 1.25, 2.0)),
        ("gpt-5.1", "1h", (0.1, 1.25, 2.0)),
        ("gpt-5.6-sol", "5m", (0.1, 1.25, 2.0)),
        ("claude-opus-4-5", "automatic", (0.1, 1.0, 1.0)),
        ("deepseek-v4-flash", "automatic", (0.02, 1.0, 1.0)),
        ("gpt-4.1", "none", (1.0, 1.0, 1.0)),
    ],
)
def test_reading_and_writing_cost_what_the_kind_and_the_provider_take(
    model: str, kind: CacheKind, shares: tuple[float, float, float]
) -> None:
    """The discount for reading is the provider's; a surcharge for writing is there only where markers are."""
    price = Options(cache=kind).price_of()(model)
    read, short = price.units(read=100), price.units(written=100)
    assert (read, short, price.units(written=100, written_long=100)) == pytest.approx([100 * s for s in shares])


def test_an_automatic_cache_is_the_models_own_where_it_has_one() -> None:
    """DeepSeek keeps prompts for hours; a model without such a cache has OpenAI's rule."""
    price_of = Options(cache="automatic").price_of()
    assert price_of("deepseek-v4-pro").rule.name == "deepseek"
    assert (price_of("claude-opus-4-5").rule.name, price_of("claude-opus-4-5").rule.short) == ("openai", 300)


@pytest.mark.parametrize("kind", KINDS)
def test_calls_send_as_much_as_they_did(kind: CacheKind) -> None:
    """Sizes are measured by what was reported: the sums stay."""
    of = talk()
    kept = as_kept(of, kind)
    assert [call.context for call in kept.calls] == [call.context for call in of.calls]
    sums = [
        [e.payload.usage.sent_tokens for e in m.recording.events if isinstance(e.payload, ModelCalled)]
        for m in (of, kept)
    ]
    assert sums[0] == sums[1] == [call.context for call in of.calls]


def test_a_recording_without_reports_is_kept_as_asked() -> None:
    """What was not reported cannot be rewritten: the hour is asked for all the same."""
    of = work(3, pauses={2: PAUSE})
    events = [e for e in of.events if not isinstance(e.payload, ModelCalled)]
    of.events = events
    rows = replayed("1h", measure(of.recording(), fixed=10_000)).rows
    assert rows[-1].written_long == rows[-1].written > 0
    assert rows[-1].cause is None


def test_a_read_that_would_fetch_a_fact_costs_all_of_its_input_without_a_cache() -> None:
    """No prefix is read for less."""
    price = Options(cache="none").price_of()("claude-opus-4-5")
    assert price.units(read=1_000, written=len(code("a"))) == 1_000 + len(code("a"))
