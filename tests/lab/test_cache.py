from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeline.lab.cache import CacheRequest, Charge, PromptCache, Segment, charges
from timeline.lab.prices import CacheRule, ModelPrice, Price

RULE = CacheRule(name="markers", match="markers", markers=4, lookback=3, minimum=100, short=300, long=3_600)
MODEL = ModelPrice(cache="markers", input=10.0, read=1.0, write=12.5, write_long=20.0, output=50.0)
AUTOMATIC = CacheRule(name="prefix", match="prefix", minimum=200, granularity=128, short=300)


def price_of(model: str) -> Price:
    """Price every model by markers; one whose name says so by prefix."""
    if model == "automatic":
        return Price(model=ModelPrice(cache="prefix", input=10.0, read=1.0, output=50.0), rule=AUTOMATIC)
    return Price(model=MODEL, rule=RULE)


def asked(names: str, at: float = 0.0, *, took: float = 10.0, model: str = "m", **fields: Any) -> CacheRequest:
    """Return a request of segments of 100 tokens, a letter each; markers on the first and the last unless given."""
    markers = fields.pop("markers", tuple(sorted({0, len(names) - 1})))
    segments = tuple(Segment(ord(name), 100) for name in names)
    return CacheRequest(at, at + took, model, segments, fields.pop("tools", 0), 1, markers, **fields)


def paid(*requests: CacheRequest) -> list[tuple[int, int, int]]:
    """Return what each request reads, writes and pays in full."""
    return [(one.read, one.written, one.uncached) for one in charges(requests, price_of)]


def last(*requests: CacheRequest) -> Charge:
    """Return what the last request costs."""
    return charges(requests, price_of)[-1]


def test_the_first_call_writes_up_to_its_last_marker() -> None:
    """What stands behind it is neither read nor written."""
    assert paid(asked("sabc", markers=(0, 2))) == [(0, 300, 100)]


def test_what_only_grew_is_read_and_the_rest_is_written() -> None:
    """The next request reads all that the one before it left."""
    assert paid(asked("sab"), asked("sabcd", 20)) == [(0, 300, 0), (300, 200, 0)]


def test_a_pause_longer_than_the_lifetime_loses_it_all() -> None:
    """The lifetime runs from the end of the answer to the next request."""
    assert paid(asked("sab", took=10), asked("sabc", 310))[1] == (300, 100, 0)
    charge = last(asked("sab", took=10), asked("sabc", 310.5))
    assert (charge.read, charge.lost, charge.cause, charge.collapsed) == (0, 300, "gap", True)


def test_a_read_keeps_the_prefix_for_another_lifetime() -> None:
    """The system prompt, too, stays as long as it is read inside of what is longer."""
    calls = [asked("sab" + "c" * number, 300.0 * number) for number in range(4)]
    assert [read for read, _, _ in paid(*calls)] == [0, 300, 400, 500]
    assert paid(*calls, asked("sxyz", 1_000))[-1][0] == 100


def test_the_long_lifetime_holds_an_hour_and_costs_more_to_write() -> None:
    """What was written for the long time is found after it."""
    charge, later = charges([asked("sab", long=2), asked("sab", 3_600, long=2)], price_of)
    assert (charge.units, later.read) == (600.0, 300)


def test_a_head_that_is_kept_for_long_outlives_what_stands_behind_it() -> None:
    """It is written at its own price, read behind a pause of the messages', and lost behind one of an hour."""
    first, behind, later = charges(
        [asked("sabc", long=1), asked("sxyz", 400, long=1), asked("sxyzq", 4_200, long=1)], price_of
    )
    assert (first.written, first.written_long, first.units) == (400, 100, 200 + 375)
    assert (behind.read, behind.written, behind.written_long) == (100, 300, 0)
    assert (behind.lost, behind.cause, behind.collapsed) == (300, "gap", True)
    assert (later.read, later.written_long, later.cause) == (0, 100, "gap")


def test_a_head_kept_for_long_stays_so_when_it_is_marked_for_the_short_time() -> None:
    """What was written for an hour is there for an hour."""
    assert last(asked("sab", long=1), asked("sabc", 20), asked("sx", 1_000)).read == 100


@pytest.mark.parametrize(
    ("request_", "cause"),
    [
        (asked("sxbcd", 20, changes=frozenset({"hide"})), "hide"),
        (asked("sxbcd", 20, changes=frozenset({"hide", "compaction"})), "compaction"),
        (asked("sxbcd", 20, changes=frozenset({"undo"})), "undo"),
        (asked("sxbcd", 20), "other"),
        (asked("xabcd", 20), "system"),
        (asked("xabcd", 20, tools=1), "tools"),
        (asked("sabcd", 20, model="other"), "model"),
        (asked("sxbcd", 2_000, changes=frozenset({"hide"})), "gap"),
        (asked("sabcdefghi", 20, markers=(0, 9)), "lookback"),
    ],
)
def test_a_lost_prefix_has_its_cause(request_: CacheRequest, cause: str) -> None:
    """What would have been lost in any case comes before what was decided besides."""
    charge = last(asked("sabcd"), request_)
    assert (charge.cause, charge.lost) == (cause, 500 - charge.read)


def test_a_request_below_the_least_prefix_is_not_kept() -> None:
    """It pays in full, and what was there before counts as lost."""
    short = CacheRequest(20, 30, "m", (Segment(1, 60),), 0, 1, (0,))
    assert paid(short) == [(0, 0, 60)]
    assert last(asked("sabcd"), short).cause == "below_minimum"


def test_an_intact_prefix_loses_nothing() -> None:
    """No cause stands where nothing was lost."""
    charge = last(asked("sab"), asked("sabc", 20))
    assert (charge.lost, charge.cause, charge.collapsed) == (0, None, False)


def test_a_small_loss_is_no_collapse() -> None:
    """A collapse loses more than half of what was there."""
    charge = last(asked("sabcd", markers=(0, 3, 4)), asked("sabcX", 20))
    assert (charge.lost, charge.collapsed) == (100, False)


def test_a_provider_that_caches_by_itself_needs_no_marker() -> None:
    """The longest common prefix is read, in whole steps, and writing costs nothing more."""
    first, second = asked("sabc", model="automatic", markers=()), asked("sabX", 20, model="automatic", markers=())
    assert paid(first, second) == [(0, 0, 400), (256, 0, 144)]


@pytest.mark.parametrize(
    ("names", "charged"), [("sabcX", (384, 0, None)), ("sabX", (256, 0, None)), ("saX", (0, 384, "other"))]
)
def test_a_step_that_is_read_no_more_is_no_loss(names: str, charged: tuple[int, int, str | None]) -> None:
    """Such a provider reads in steps: what changed behind the last one or two of them broke nothing."""
    charge = last(asked("sabc", model="automatic", markers=()), asked(names, 20, model="automatic", markers=()))
    assert (charge.read, charge.lost, charge.cause) == charged


@pytest.mark.parametrize(("names", "read"), [("sabcdefg", 500), ("sabcdefgh", 100)])
def test_a_marker_finds_what_was_kept_as_many_blocks_before_it_as_the_provider_looks_back(
    names: str, read: int
) -> None:
    """Three, here; one block further away it finds the prefix of its other marker only."""
    assert last(asked("sabcd"), asked(names, 20)).read == read


def test_a_cost_is_that_of_what_was_read_written_and_neither() -> None:
    """Units and money follow from the tokens."""
    charge = last(asked("sab"), asked("sabcd", 20, markers=(0, 3)))
    assert (charge.read, charge.written, charge.uncached) == (300, 100, 100)
    assert charge.units == pytest.approx(30 + 125 + 100)
    assert charge.money == pytest.approx(charge.units * 10 / 1e6)


REQUESTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=9).map("".join),
        st.sets(st.integers(0, 9), max_size=5),
        st.integers(0, 500),
        st.sampled_from(["m", "n", "automatic"]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=8,
)


@given(REQUESTS)
def test_the_chain_finds_what_comparing_whole_prefixes_finds(drawn: list[Any]) -> None:
    """Against a cache that keeps every written prefix as it is, and looks at all of them each time."""
    kept: list[tuple[str, str, float]] = []
    cache, now = PromptCache(price_of), 0.0
    for said, places, pause, model, long in drawn:
        now += pause
        names = "s" + said
        markers = tuple(sorted({0, *(p for p in places if p < len(names))}))
        charge = cache.call(asked(names, now, took=5, model=model, markers=markers, long=long))
        price = price_of(model)
        by_markers = price.rule.match == "markers"
        marked = markers[-4:] if by_markers else tuple(range(len(names)))
        near = (price.rule.lookback or 0) if by_markers else 99
        found = [
            len(prefix)
            for prefix, owner, until in kept
            if owner == model and now <= until and names.startswith(prefix)
            if any(0 <= mark + 1 - len(prefix) <= near for mark in marked)
        ]
        read = max(found, default=0) * 100
        read -= read % price.rule.granularity
        read = read if read >= price.minimum else 0
        tokens = list(accumulate([100] * len(names)))
        writes = [mark for mark in marked if tokens[mark] >= price.minimum]
        all_long = 0 < len(markers) <= long
        stays = {mark: price.rule.seconds(long=mark in markers[:long] if by_markers else all_long) for mark in writes}
        kept += [(names[: mark + 1], model, now + 5 + stays[mark]) for mark in writes]
        written = max(0, tokens[writes[-1]] - read) if writes and by_markers else 0
        longest = max((tokens[mark] for mark in writes if mark in markers[:long]), default=0) if by_markers else 0
        assert (charge.read, charge.written, charge.written_long) == (read, written, max(0, longest - read))
        assert charge.read + charge.written + charge.uncached == 100 * len(names)
        now += 5
