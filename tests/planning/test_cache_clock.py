"""The cache clock: when the provider's prompt cache counts as cold (design, section 6, hiding; seed 002, TTL)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import AT, after, apply, fold_of, turn
from timeline.events import BlocksHidden, ContextRendered, ModelCalled
from timeline.planning.cache_clock import Cold, coldness, pays_back, terms_in_force
from timeline.policy.model import CachePointRule, Hiding, Policy
from timeline.usage import TERMS, CacheKind, Usage

if TYPE_CHECKING:
    from timeline.fold.fold import Fold

POLICY = Policy()
FOR_AN_HOUR = Policy(cache_points=CachePointRule(kept_long="everything"))
RENDERED = ContextRendered(version=3, projection=1, fingerprint="f", policy="p")
FIVE_MINUTES = Usage(cache_write_5m_tokens=10)
AN_HOUR = Usage(cache_write_1h_tokens=10)
READ_ONLY = Usage(cache_read_tokens=10)


def called(usage: Usage | None = None, **fields: Any) -> ModelCalled:
    """Return a model call with that usage."""
    return ModelCalled(usage=usage or Usage(), **fields)


def folded(*events: tuple[float, Any]) -> Fold:
    """Fold one turn, then events at so many seconds after `AT`."""
    fold = fold_of(*turn())
    for seconds, payload in events:
        fold.apply(fold.version + 1, after(seconds), payload)
    return fold


def is_cold(fold: Fold, seconds: float, hiding: Hiding | None = None) -> bool:
    """Say whether the cache is cold so many seconds after `AT`."""
    return coldness(fold.window, POLICY.model_copy(update={"hiding": hiding}), after(seconds)) is not None


def test_without_a_call_or_a_render_the_cache_counts_as_warm() -> None:
    """Nothing is known, so nothing is thrown away."""
    assert not is_cold(folded(), 10**9)


def test_a_cache_is_cold_once_its_ttl_and_the_grace_have_passed() -> None:
    """300 s by default, and 60 s of grace: at 360 s it is cold, a moment before it is not."""
    fold = folded((0, called()))
    assert not is_cold(fold, 359.9)
    assert coldness(fold.window, POLICY, after(360)) == Cold(360, 300, 60)


def test_the_figures_have_the_names_that_events_record() -> None:
    """Seconds idle against the two that had to pass."""
    cold = coldness(folded((0, called())).window, POLICY, after(1_000))
    assert cold is not None
    assert cold.facts() == {"idle_seconds": 1_000, "ttl_seconds": 300, "grace_seconds": 60}


def test_the_ttl_is_what_the_newest_usage_reported() -> None:
    """An hour once a call wrote for an hour, five minutes once one wrote for five minutes again."""
    assert not is_cold(folded((0, called(AN_HOUR))), 3_659)
    assert is_cold(folded((0, called(AN_HOUR))), 3_660)
    assert is_cold(folded((0, called(AN_HOUR)), (0, called(FIVE_MINUTES))), 360)


@pytest.mark.parametrize("usage", [READ_ONLY, FIVE_MINUTES, AN_HOUR])
def test_what_the_policy_asks_to_keep_for_an_hour_is_not_cold_before(usage: Usage) -> None:
    """Whatever a usage says: most tell how much was written, and not for how long."""
    fold = folded((0, called(usage)))
    assert coldness(fold.window, FOR_AN_HOUR, after(3_659)) is None
    assert coldness(fold.window, FOR_AN_HOUR, after(3_660)) == Cold(3_660, 3_600, 60)


def test_the_ttl_of_hiding_goes_before_all_others() -> None:
    """A policy that gives one knows better."""
    given = FOR_AN_HOUR.model_copy(update={"hiding": Hiding(ttl=100)})
    assert coldness(folded((0, called(AN_HOUR))).window, given, after(160)) == Cold(160, 100, 60)


def test_a_call_that_only_read_keeps_the_ttl_that_was_known() -> None:
    """Reading refreshes the entry that an earlier call wrote, for as long as that was written for."""
    fold = folded((0, called(AN_HOUR)), (100, called(READ_ONLY)))
    assert not is_cold(fold, 3_759)
    assert is_cold(fold, 3_760)


def test_a_call_that_wrote_for_both_counts_for_the_shorter_time() -> None:
    """What is kept for an hour stands first, and hiding changes what stands behind it."""
    both = Usage(cache_write_1h_tokens=1, cache_write_5m_tokens=1)
    assert is_cold(folded((0, called(both))), 360)
    assert is_cold(folded((0, called(AN_HOUR)), (0, called(both))), 360)


def test_a_ttl_of_the_policys_own_overrides_what_was_reported() -> None:
    """For providers that report none."""
    fold = folded((0, called(AN_HOUR)))
    assert is_cold(fold, 90, Hiding(ttl=30))
    assert not is_cold(fold, 89, Hiding(ttl=30))


@pytest.mark.shows("R-002-8")
def test_the_grace_of_seed_002_as_first_shipped_makes_it_cold_ten_seconds_early() -> None:
    """A lifetime of 300 s, and a grace of -10."""
    fold = folded((0, called()))
    assert is_cold(fold, 290, Hiding(ttl=300, grace=-10))
    assert not is_cold(fold, 289, Hiding(ttl=300, grace=-10))


def test_a_clock_that_went_back_counts_as_warm() -> None:
    """Whatever the figures: a negative idle time says nothing."""
    fold = folded((0, called()))
    assert not is_cold(fold, -5_000)
    assert not is_cold(fold, -5_000, Hiding(ttl=1, grace=-10_000))


def test_without_a_cache_a_clock_that_went_back_waits_for_nothing() -> None:
    """There is nothing that could be warm, whatever another writer's clock said."""
    policy = Policy(cache="none")
    fold = folded((86_400, called()))
    assert coldness(fold.window, policy, after(86_460)) == Cold(60, 0, 0)
    assert coldness(fold.window, policy, AT) == Cold(0, 0, 0)


def test_a_call_touches_the_cache_when_it_starts() -> None:
    """The provider reads and writes it then, however long the answer takes."""
    fold = folded((200, called(started_at=AT)))
    assert is_cold(fold, 360)
    assert not is_cold(folded((200, called())), 360)


def test_a_failed_call_touches_nothing() -> None:
    """Nobody knows whether it reached the cache."""
    assert is_cold(folded((0, called()), (300, called(finish_reason="error"))), 360)


def test_renders_count_only_until_the_first_call() -> None:
    """A recorded render stands for a call that nobody recorded; once calls are recorded, they alone count."""
    assert is_cold(folded((0, RENDERED)), 360)
    assert not is_cold(folded((0, RENDERED), (100, RENDERED)), 360)
    assert is_cold(folded((0, called()), (300, RENDERED)), 360)
    assert not is_cold(folded((0, RENDERED), (100, called())), 360)


def test_decisions_touch_nothing() -> None:
    """Hiding does not warm a cache."""
    fold = folded((0, called()))
    apply(fold, fold.version + 1, BlocksHidden(reason="cold", blocks=()))
    assert is_cold(fold, 360)


@pytest.mark.parametrize("zone", [1, -7])
def test_idle_time_is_the_same_in_every_zone(zone: int) -> None:
    """Moments compare as moments."""
    from datetime import timezone  # noqa: PLC0415 - only here

    now = after(360).astimezone(timezone(timedelta(hours=zone)))
    assert coldness(folded((0, called())).window, POLICY, now) == Cold(360, 300, 60)


@pytest.mark.parametrize(("kind", "warm"), [("5m", 359), ("1h", 3_659), ("automatic", 359)])
def test_the_kind_of_cache_that_a_policy_is_told_says_when_it_is_cold(kind: CacheKind, warm: int) -> None:
    """Whatever was reported: gateways report nothing, or something else."""
    told = Policy(cache=kind)
    for usage in (READ_ONLY, FIVE_MINUTES, AN_HOUR):
        fold = folded((0, called(usage)))
        assert coldness(fold.window, told, after(warm)) is None
        assert coldness(fold.window, told, after(warm + 1)) is not None


def test_without_a_cache_it_is_cold_at_any_time() -> None:
    """Nothing is lost when the prefix changes, so no grace has to pass either."""
    fold = folded((0, called()))
    assert coldness(fold.window, Policy(cache="none"), AT) == Cold(0, 0, 0)
    assert coldness(fold.window, Policy(cache="none", hiding=Hiding(ttl=100)), after(159)) is None


def test_the_terms_in_force_are_those_of_the_reported_or_asked_lifetime() -> None:
    """Before any call they are those of five minutes."""
    assert terms_in_force(folded().window, POLICY) == TERMS["5m"]
    assert terms_in_force(folded((0, called(AN_HOUR))).window, POLICY) == TERMS["1h"]
    assert terms_in_force(folded((0, called(FIVE_MINUTES))).window, POLICY) == TERMS["5m"]
    assert terms_in_force(folded((0, called(FIVE_MINUTES))).window, FOR_AN_HOUR) == TERMS["1h"]
    assert terms_in_force(folded((0, called(AN_HOUR))).window, Policy(cache="automatic")) == TERMS["automatic"]


@pytest.mark.parametrize(("kind", "calls"), [("5m", 12), ("1h", 19), ("automatic", 9), ("none", 0)])
def test_a_changed_prefix_pays_back_later_where_writing_is_dearer(kind: CacheKind, calls: int) -> None:
    """1,000 tokens freed in front of 1,000: 1,150, 1,900, 900 and 0 to pay, for 100 a call."""
    assert pays_back(1_000, 1_000, TERMS[kind], calls)
    assert not pays_back(1_000, 1_000, TERMS[kind], calls - 1) or kind == "none"
