from __future__ import annotations

import pytest

from tests.lab.talks import FIXED, UNCACHED, Talk, work
from tests.recorded import needs_recordings, recorded
from timeline.lab.prices import packaged_prices
from timeline.lab.sizes import measure
from timeline.lab.validation import Check, check, check_together
from timeline.lab.work import measured_file

FILES = recorded("claude-code*/*.jsonl")
PRICE_OF = packaged_prices().price_of


def checked(talk: Talk) -> Check:
    """Hold the prediction for a talk against its usage."""
    return check(measure(talk.recording()), PRICE_OF)


@pytest.mark.parametrize("pauses", [{}, {10: 400.0}, {5: 290.0, 15: 4_000.0}])
def test_a_strict_provider_is_predicted_call_by_call(pauses: dict[int, float]) -> None:
    """Growing contexts and pauses: reads are right to the few tokens that stand behind its last marker."""
    found = checked(work(24, pauses=pauses))
    assert found.missed == ()
    assert found.predicted.read == pytest.approx(found.recorded.read, abs=UNCACHED * found.calls)
    assert found.errors["units"] == pytest.approx(0, abs=0.001)


def test_a_cache_of_an_hour_is_known_by_the_usage() -> None:
    """A pause of forty minutes loses nothing there, and writing costs twice the input."""
    found = checked(work(24, pauses={10: 2_400.0}, long=True))
    assert found.missed == ()
    assert found.errors["units"] == pytest.approx(0, abs=0.001)


def test_a_head_that_was_cached_for_an_hour_is_known_by_the_usage() -> None:
    """It is read behind a pause that loses the messages, and its writes have their own price."""
    found = checked(work(24, pauses={10: 2_400.0, 18: 4_000.0}, long_head=True))
    assert found.missed == ()
    assert found.errors["units"] == pytest.approx(0, abs=0.001)


def test_behind_a_compaction_of_the_client_the_head_is_read() -> None:
    """System prompt and tools survive it; what the client sends again beside its summary does not."""
    talk = work(16)
    talk.compact("What was done so far. " * 40)
    talk.ask("Go on.")
    talk.respond(text="I go on.")
    found = checked(talk)
    assert found.missed == ()
    assert found.recorded.read == pytest.approx(found.predicted.read, rel=0.001)


def test_a_miss_inside_the_lifetime_is_reported_as_one() -> None:
    """The model is strict: what it cannot explain is shown, with the tokens that it is off by."""
    talk = work(16)
    talk.cached = 0
    talk.respond(text="The provider forgot.")
    [missed] = checked(talk).missed
    assert (missed.cause, missed.recorded) == ("miss", 0)
    assert missed.predicted > FIXED


def test_a_hit_after_the_lifetime_is_reported_as_one() -> None:
    """Providers may keep a prefix for longer than they promise."""
    talk = work(16)
    talk.wait(301)
    talk.ended = talk.seconds
    talk.respond(text="It is still there.")
    assert [missed.cause for missed in checked(talk).missed] == ["late_hit"]


def test_a_read_beyond_what_was_sent_tells_of_another_call() -> None:
    """A client that asks something beside its conversation writes into the same cache."""
    talk = work(16)
    talk.ask("One more thing. " * 400)
    talk.cached = talk.context - UNCACHED
    talk.respond(text="I know it already.")
    found = checked(talk)
    assert [missed.cause for missed in found.missed] == ["unrecorded_call"]
    assert found.causes["unrecorded_call"]["calls"] == 1


def test_several_conversations_are_summed() -> None:
    """Together they have the sums, and every call that is off."""
    one, other = checked(work(16)), checked(work(8, long=True))
    both = check_together([one, other])
    assert both.calls == one.calls + other.calls
    assert both.predicted.read == one.predicted.read + other.predicted.read
    assert both.dump()["errors"]["read"] == both.errors["read"]


def test_nothing_recorded_has_no_error() -> None:
    """A share of nothing is told as none."""
    assert checked(Talk()).errors == {"read": None, "written": None, "units": None}


@needs_recordings
def test_real_sessions_are_predicted_within_two_percent_of_reads_and_ten_of_cost() -> None:
    """The bars of the lab, over all recorded sessions together."""
    found = check_together([check(one, PRICE_OF) for file in FILES for one in measured_file(str(file))])
    assert found.errors["read"] == pytest.approx(0, abs=0.02)
    assert found.errors["units"] == pytest.approx(0, abs=0.1)
