from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab.talks import FIXED, RATIO, UNCACHED, Talk, work
from tests.portable.recordings import TALK, recording
from tests.scenes import answer, prompt
from timeline.events import ModelCalled
from timeline.lab.sizes import measure
from timeline.usage import Usage


def test_sizes_add_up_to_the_reported_growth_exactly() -> None:
    """What stands before each call, with the fixed part, is the context that it reported."""
    talk = work(24).recording()
    measured = measure(talk)
    assert measured.calls
    for call in measured.calls:
        assert measured.fixed + sum(measured.tokens[: call.position]) == call.context


def test_the_fixed_part_and_the_ratio_are_told_by_the_usage() -> None:
    """Nothing of system prompt and tools is in the recording, nor which tokenizer it was."""
    measured = measure(work(24).recording())
    assert measured.fixed == pytest.approx(FIXED, abs=30)
    assert measured.ratio == pytest.approx(RATIO, abs=0.05)


def test_a_fixed_part_that_is_given_stands() -> None:
    """What an application knows better is not measured."""
    assert measure(work(4).recording(), fixed=77).fixed == 77


def test_growth_that_no_tokenizer_explains_is_not_spread() -> None:
    """Where a client sent something that no event holds, the blocks beside it keep the usual ratio."""
    talk = work(12)
    talk.context += 50_000
    talk.respond(text="I was told a lot.")
    talk.respond(text="And nobody knows what.")
    measured = measure(talk.recording())
    assert max(measured.tokens) < 5_000
    assert measured.ratio == pytest.approx(RATIO, abs=0.05)


def test_a_compaction_is_no_growth() -> None:
    """The context behind it says nothing of the blocks before it; its summary has a size."""
    talk = work(12)
    talk.compact("What was done so far. " * 40)
    talk.ask("Go on.")
    talk.respond(text="I go on.")
    measured = measure(talk.recording())
    assert measured.ratio == pytest.approx(RATIO, abs=0.05)
    assert sum(measured.tokens) == pytest.approx(sum(measure(work(12).recording()).tokens) + RATIO * 210, rel=0.05)


def test_each_response_counts_as_a_call_where_none_is_recorded() -> None:
    """Such a recording is measured in our own tokens, without a fixed part."""
    things = [thing for thing in TALK if not isinstance(thing, ModelCalled)]
    measured = measure(recording(*things))
    assert [(call.position, call.usage, call.context) for call in measured.calls] == [(1, None, 0), (3, None, 0)]
    assert (measured.fixed, measured.ratio) == (0, 1.0)


def test_a_response_without_a_call_was_made_up_by_the_client() -> None:
    """Where other calls are recorded it is none."""
    assert [call.position for call in measure(recording(*TALK)).calls] == [1]


def test_a_call_that_failed_before_it_was_counted_is_none() -> None:
    """An aborted call reports nothing; one that answered without a usage is a call all the same."""
    failed = ModelCalled(model="m", response_id="m1", finish_reason="aborted")
    unknown = ModelCalled(model="m", response_id="m2")
    things = [prompt(), answer(response_id="m1"), failed, answer(response_id="m2"), unknown]
    [call] = measure(recording(*things)).calls
    assert (call.position, call.usage, call.model) == (3, None, "m")


def test_most_calls_say_how_long_the_cache_was_to_keep() -> None:
    """A replayed call writes as most recorded ones did."""
    assert measure(work(4, long=True).recording()).long
    assert not measure(work(4).recording()).long
    assert not measure(work(4, long_head=True).recording()).long
    assert measure(work(4, long_head=True).recording()).long_head


def test_a_call_begins_before_the_events_that_answer_it() -> None:
    """Its start is when the client sent it, its end when the answer was complete."""
    [first, *_] = measure(work(4).recording()).calls
    assert first.start < first.end
    assert first.usage == Usage(input_tokens=UNCACHED, output_tokens=50, cache_write_5m_tokens=first.context - UNCACHED)


def test_an_empty_recording_has_no_calls() -> None:
    """Nothing is measured, and nothing fails."""
    measured = measure(replace(Talk().recording(), events=()))
    assert (measured.calls, measured.tokens, measured.fixed) == ((), (), 0)
