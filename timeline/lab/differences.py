"""Compare two policies on the same recording, call by call, with the reason for each difference.

Both replays answer the same recorded calls, so calls are matched by number. The cost of a call is that of its input and
of the summaries written right before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import AwareDatetime

from timeline.frozen import Frozen
from timeline.lab.cache import BreakCause
from timeline.lab.comparison import comparable, cost_of_call
from timeline.lab.results import ReplayedCallRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from timeline.lab.comparison import CostIn
    from timeline.lab.results import RunResult

Reason: TypeAlias = BreakCause | Literal["refused", "summary", "cold", "size"]
"""Why a call costs more under one policy; the first of these that holds.

The other policy refused; most of the difference is the summary written right before; the cause by which the call lost
more of the cached prefix; less of its input was in the cache, because of an earlier call; or it just sends more.
"""


class CallDifference(Frozen):
    """A call that costs more under one policy than under another.

    Attributes:
        file, conversation: the recording.
        max_tokens: the limit.
        policies: the names of the two.
        number: the call's number, from 1.
        at: when it was sent.
        units, money: cost under the second policy minus the cost under the first.
        reason: why the dearer call costs more.
        rows: the call under each of the two.
    """

    file: str
    conversation: str
    max_tokens: int
    policies: tuple[str, str]
    number: int
    at: AwareDatetime
    units: float
    money: float
    reason: Reason
    rows: tuple[ReplayedCallRow, ReplayedCallRow]

    def cost(self, cost_in: CostIn) -> float:
        """Return the difference in dollars or in base tokens."""
        return self.money if cost_in == "money" else self.units


def differences(first: RunResult, second: RunResult) -> list[CallDifference]:
    """Compare two runs of one conversation; calls that cost the same are left out.

    Args:
        first: the run to compare with.
        second: the other one.
    """
    found: list[CallDifference] = []
    for one, other in zip(first.rows, second.rows, strict=True):
        units = cost_of_call(other, "units") - cost_of_call(one, "units")
        if not units:
            continue
        money = cost_of_call(other, "money") - cost_of_call(one, "money")
        found.append(
            CallDifference(
                file=first.file,
                conversation=first.conversation,
                max_tokens=first.max_tokens,
                policies=(first.policy, second.policy),
                number=one.number,
                at=one.at,
                units=units,
                money=money,
                reason=_reason(*((one, other) if units < 0 else (other, one))),
                rows=(one, other),
            )
        )
    return found


def largest(found: Iterable[CallDifference], cost_in: CostIn) -> list[CallDifference]:
    """Sort by the size of the difference, whatever its sign; of equals the earlier first."""
    return sorted(found, key=lambda one: -abs(one.cost(cost_in)))


def against_the_first(runs: Sequence[RunResult]) -> dict[tuple[int, str], list[CallDifference]]:
    """Compare every policy with the first one of its limit, over all conversations, the largest difference first.

    Args:
        runs: the runs of a comparison, in its order.

    Returns:
        Differences by limit and policy; the first policies are left out.
    """
    cost_in = comparable(runs)
    base: dict[tuple[int, str, str], RunResult] = {}
    found: dict[tuple[int, str], list[CallDifference]] = {}
    for run in runs:
        first = base.setdefault((run.max_tokens, run.file, run.conversation), run)
        if first.policy != run.policy:
            found.setdefault((run.max_tokens, run.policy), []).extend(differences(first, run))
    return {key: largest(several, cost_in) for key, several in found.items()}


def _reason(dear: ReplayedCallRow, cheap: ReplayedCallRow) -> Reason:
    if cheap.refused:
        return "refused"
    more = cost_of_call(dear, "units") - cost_of_call(cheap, "units")
    if (dear.summary_units - cheap.summary_units) * 2 > more:
        return "summary"
    if dear.cause is not None and dear.lost > cheap.lost:
        return dear.cause
    return "cold" if dear.read < cheap.read else "size"
