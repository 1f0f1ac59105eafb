"""Equal terms: every policy leaves the same part of the limit free for the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
import pytest

from tests.lab.talks import work
from timeline import policies
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import replay, reserving
from timeline.lab.results import together
from timeline.lab.sizes import measure
from timeline.policy.files import find_policy

if TYPE_CHECKING:
    from timeline.lab.results import RunResult
    from timeline.policy.model import Policy

LIMIT: Final = 24_000
RESERVE: Final = 6_000


def replayed(policy: Policy, reserve: int | None) -> RunResult:
    """Replay forty rounds of work."""
    measured = measure(work(40, fixed=4_000).recording())

    async def run() -> RunResult:
        return await replay(measured, policy, packaged_prices().price_of, reserve=reserve)

    return anyio.run(run)


@pytest.mark.parametrize("name", ["balanced", "cut_point", "cline", "pi", "keep_ratio"])
def test_a_policy_leaves_what_is_reserved(name: str) -> None:
    """Whatever it would leave by itself; its limit in the results is the true one."""
    run = replayed(find_policy(name, max_tokens=LIMIT), RESERVE)
    assert 0 < run.totals.largest <= LIMIT - RESERVE
    assert (run.max_tokens, run.totals.over_limit, run.totals.refusals) == (LIMIT, 0, 0)


def test_without_a_reserve_more_is_sent() -> None:
    """The default leaves the room to the policy."""
    policy = policies.cut_point(max_tokens=LIMIT)
    assert replayed(policy, None).totals.largest > LIMIT - RESERVE
    assert reserving(policy, None) is policy


@pytest.mark.parametrize("own", [0, 4_000, 10_000])
def test_what_a_policy_calls_its_own_reserve_makes_no_difference(own: int) -> None:
    """One that keeps 4,000 free is not cheaper than one that keeps 10,000 for having less room."""
    policy = policies.prune_then_summarize(max_tokens=40_000, output_reserve=own, safety_buffer=0)
    made = reserving(policy, RESERVE)
    assert made.max_tokens - made.output_reserve - made.safety_buffer == 40_000 - RESERVE


def test_calls_of_no_policy_are_counted_above_what_is_left() -> None:
    """It is sent whole all the same."""
    plain, reserved = (replayed(policies.none(max_tokens=LIMIT), kept) for kept in (None, RESERVE))
    sent = [row.tokens for row in plain.rows]
    assert [row.tokens for row in reserved.rows] == sent
    assert plain.totals.over_limit == sum(tokens > LIMIT for tokens in sent)
    assert reserved.totals.over_limit == sum(tokens > LIMIT - RESERVE for tokens in sent)
    assert reserved.totals.over_limit > plain.totals.over_limit


def test_the_largest_of_several_runs_is_the_largest_of_all() -> None:
    """It is no sum."""
    run = replayed(policies.cut_point(max_tokens=LIMIT), None).totals
    assert together([run, run]).largest == run.largest == together([run]).largest
    assert together([]).largest == 0
