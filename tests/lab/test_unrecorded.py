from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from tests.lab.talks import work
from timeline import policies
from timeline.blocks import ToolCall, ToolResult
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import replay
from timeline.lab.sizes import block_of, measure
from timeline.lab.unrecorded import MOST_FIXED, MOST_ROUNDS, USUAL_FIXED, with_history

if TYPE_CHECKING:
    from timeline.lab.results import RunResult
    from timeline.lab.sizes import Measured
    from timeline.policy.model import Policy


def talk_of(fixed: int) -> Measured:
    """Return a recording whose first call reports so much besides its blocks."""
    return measure(work(12, fixed=fixed).recording())


def replayed(measured: Measured, policy: Policy) -> RunResult:
    """Replay it at the packaged prices."""

    async def run() -> RunResult:
        return await replay(measured, policy, packaged_prices().price_of)

    return anyio.run(run)


def test_a_usual_first_call_has_no_history_before_it() -> None:
    """System prompt and tools of 40,000 tokens are nothing unusual."""
    measured = talk_of(40_000)
    assert with_history(measured) is measured


def test_what_is_above_a_usual_fixed_part_is_history() -> None:
    """Nothing is lost: fixed part and history are what the first call reported besides its blocks."""
    measured = talk_of(150_000)
    whole = with_history(measured)
    assert measured.fixed > MOST_FIXED
    assert (whole.fixed, whole.fixed + whole.unrecorded) == (USUAL_FIXED, measured.fixed)
    for before, after in zip(measured.calls, whole.calls, strict=True):
        assert after.context == before.context
        assert whole.fixed + sum(whole.tokens[: after.position]) == after.context


def test_history_is_rounds_of_a_call_and_its_result() -> None:
    """So it can be hidden and compacted, and no cut divides it."""
    whole = with_history(talk_of(150_000))
    added = [block_of(event) for event in whole.recording.events[1 : whole.calls[0].position]]
    kinds = [type(block) for block in added if isinstance(block, ToolCall | ToolResult)]
    assert kinds[:4] == [ToolCall, ToolResult, ToolCall, ToolResult]
    assert len(kinds) > 20


def test_a_first_call_that_reports_more_than_any_window_has_an_end() -> None:
    """A wrong figure is replayed in few large rounds; at their usual size they would fill the memory."""
    whole = with_history(talk_of(10**15))
    assert whole.fixed + whole.unrecorded == talk_of(10**15).fixed
    assert whole.calls[0].position <= 2 * MOST_ROUNDS + 2


def test_a_policy_compacts_history_that_the_file_does_not_hold() -> None:
    """At 100,000 tokens the conversation goes on within the limit, where its real size is above it."""
    run = replayed(with_history(talk_of(150_000)), policies.cut_point(max_tokens=100_000))
    assert run.unrecorded
    assert run.totals.compactions
    assert (run.totals.over_limit, run.totals.refusals, run.totals.orphans) == (0, 0, 0)


@pytest.mark.parametrize("left", [0, 5_000, 10_000])
def test_a_first_call_reads_what_it_was_recorded_to_read(left: int) -> None:
    """Another conversation had left it in the cache; what comes after is priced by the rules."""
    run = replayed(measure(work(4, left=left).recording()), policies.none(max_tokens=100_000))
    assert run.rows[0].read == left
    assert run.rows[1].read == run.rows[0].tokens


@pytest.mark.parametrize(("left", "read"), [(80_000, 5_000), (70_000, 4_375)])
def test_of_a_smaller_fixed_part_as_large_a_share_is_read(left: int, read: int) -> None:
    """At a limit that the fixed part does not fit, it is replayed as an eighth of the limit."""
    run = replayed(measure(work(4, fixed=80_000, left=left).recording()), policies.none(max_tokens=40_000))
    assert run.fixed == 5_000
    assert run.rows[0].read == pytest.approx(read, abs=20)
