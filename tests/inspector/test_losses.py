"""What a call lost of the provider's cache: why, and at what price."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.abridged import read_numbered
from tests.scenes import log_of
from timeline.audit.decisions import CallDecision, decision_of
from timeline.audit.recorded_calls import RecordedCall
from timeline.events import ModelCalled
from timeline.inspector.losses import cache_uses
from timeline.lab.prices import read_prices
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from timeline.inspector.shapes import CacheUse

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MODEL = "claude-opus-4-5"


def call(number: int, seconds: float, *, model: str = MODEL, **used: int) -> RecordedCall:
    """Return a call that ended so many seconds after the start."""
    called = ModelCalled(model=model, usage=Usage(**used))
    return RecordedCall(number, number * 10, START + timedelta(seconds=seconds), called)


def second(now: RecordedCall, *types: str, **used: int) -> CacheUse:
    """Return what a call found of what the call before it had left, with decisions in between."""
    before = call(1, 0, model=MODEL, **(used or {"cache_write_5m_tokens": 20_000}))
    decided = [CallDecision(15, START, type_, f"it was {type_}") for type_ in types]
    [_, found] = cache_uses([before, now], [(), decided], read_prices())
    assert found is not None
    return found


def test_a_prefix_that_was_read_is_not_lost() -> None:
    """What the cache saved is the price of the same request without one, less what it cost."""
    found = second(call(2, 60, cache_read_tokens=20_000, cache_write_5m_tokens=500))
    assert (found.left_tokens, found.lost_tokens, found.cause, found.extra_cost, found.idle_seconds) == (
        20_000,
        0,
        None,
        0.0,
        60.0,
    )
    assert found.saved_cost == pytest.approx((20_000 * (5 - 0.5) + 500 * (5 - 6.25)) / 1e6)


@pytest.mark.parametrize(
    ("now", "types", "kind"),
    [
        ({"seconds": 60, "model": "claude-haiku-4-5"}, ("compaction.completed",), "model"),
        ({"seconds": 400}, ("compaction.completed",), "gap"),
        ({"seconds": 60, "sent": 900}, ("compaction.completed",), "below_minimum"),
        ({"seconds": 60}, ("blocks.hidden", "compaction.completed"), "compaction"),
        ({"seconds": 60}, ("compaction.reverted",), "undo"),
        ({"seconds": 60}, ("policy.changed", "blocks.hidden"), "hide"),
        ({"seconds": 60}, ("blocks.revealed",), "reveal"),
        ({"seconds": 60}, ("block.redacted",), "redaction"),
        ({"seconds": 60}, ("tools.changed",), "tools"),
        ({"seconds": 60}, ("prefix.changed",), "system"),
        ({"seconds": 60}, ("blocks.pinned",), "other"),
    ],
)
def test_the_cause_is_one_that_would_have_lost_it_in_any_case_or_else_a_decision(
    now: dict[str, Any], types: tuple[str, ...], kind: str
) -> None:
    """In the order of the lab; a decision is named with its version."""
    sent = now.pop("sent", 20_000)
    found = second(call(2, now.pop("seconds"), cache_write_5m_tokens=sent, **now), *types)
    assert found.lost_tokens == sent
    assert found.cause is not None
    assert found.cause.kind == kind
    assert found.cause.likely is (kind in {"gap", "below_minimum"}), "what the log does not say"
    assert found.cause.version == (None if kind in {"model", "gap", "below_minimum", "other"} else 15)
    if "model" not in now:
        assert found.extra_cost == pytest.approx(sent * (6.25 - 0.5) / 1e6)


def test_calls_at_the_first_moment_there_is_follow_one_another_at_once() -> None:
    """A recorder without a clock dates everything so; the second call took a while all the same."""
    first = datetime.min.replace(tzinfo=UTC)
    called = ModelCalled(model=MODEL, usage=Usage(cache_read_tokens=20_000), duration=12.5)
    calls = [RecordedCall(number, number * 10, first, called) for number in (1, 2)]
    [_, found] = cache_uses(calls, [(), ()], read_prices())
    assert found is not None
    assert found.idle_seconds == 0


async def test_what_new_results_were_sent_without_is_no_cause() -> None:
    """They were never in the cache: the decision changes nothing that was sent before."""
    store = MemoryStore()
    timeline = await read_numbered(store)
    [abridged] = [decision_of(event) for event in await log_of(store, timeline.id) if event.type == "blocks.hidden"]
    calls = [call(1, 0, cache_write_5m_tokens=20_000), call(2, 60, cache_write_5m_tokens=20_000)]
    [_, found] = cache_uses(calls, [(), (abridged,)], read_prices())
    assert found is not None
    assert found.cause is not None
    assert found.cause.kind == "other"


def test_an_hour_is_kept_for_an_hour_and_a_call_without_usage_hides_no_loss() -> None:
    """A failed call in between says nothing of the cache; what was decided before it still explains the loss."""
    assert second(call(2, 400, cache_read_tokens=20_000), cache_write_1h_tokens=20_000).lost_tokens == 0
    calls = [call(1, 0, cache_write_5m_tokens=9_000), call(2, 20), call(3, 40, cache_write_5m_tokens=9_000)]
    hidden = CallDecision(15, START, "blocks.hidden", "hidden")
    first, failed, third = cache_uses(calls, [(), (hidden,), ()], read_prices())
    assert (first is not None, failed) == (True, None)
    assert third is not None
    assert third.cause is not None
    assert (third.cause.kind, third.idle_seconds) == ("hide", 40.0)


def test_a_model_without_a_price_has_losses_without_one() -> None:
    """And nothing is said of how long its provider keeps a prefix."""
    calls = [call(n, n * 9_000, model="house-model", cache_write_5m_tokens=9_000) for n in (1, 2)]
    _, found = cache_uses(calls, [(), ()], read_prices())
    assert found is not None
    assert (found.lost_tokens, found.extra_cost, found.saved_cost) == (9_000, None, None)
    assert found.cause is not None
    assert found.cause.kind == "other"
