"""What the replays of one recording have in common: everything before a policy's first decision of its own.

Until then contexts, costs and rows are the same under all policies that count alike, place cache markers alike, and
leave the same out of new results. So one run that decides nothing else goes ahead of them, and leaves marks. A policy's
own run begins at the newest mark before the first call at which the policy might decide anything else.
"""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.lab.alike import Alike
from timeline.lab.due import is_full, may_be_cold
from timeline.lab.replay import UNLIMITED, Run
from timeline.planning.account import AccountCache
from timeline.planning.hide import plan_hide
from timeline.policy.model import Never, OverThreshold, Policy

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.fold.window import Window
    from timeline.lab.results import ReplayedCallRow
    from timeline.usage import KeptLong

_UNREAD: Final = (
    "counter",  # a replay has its own
    "output_reserve",
    "safety_buffer",
    "results_counted_as",
    "abridged_counted_as",
    "response_tokens",
    "target",
    "stop_at",
    "on_failure",
    "form",
    "boundary",
    "summary_tokens",
    "turn_prefix_tokens",
    "digest_tokens",
    "preview_tokens",
    "carried_share",
    "min_progress",
    "min_progress_tokens",
    "attempts",
    "hiding",
    "compact_when_cold",
    "memory_digest",  # of stages, which end what is in common
    "stage_data",
    "system_parts",  # of a list
)
"""Fields of a policy that change nothing of what is sent before its first decision of its own, nor its price."""
_CHARGED: Final = (
    "results_counted_as",
    "abridged_counted_as",
    "message_tokens",
    "response_tokens",
    "margin",
    "counts",
)
"""Fields that say how many tokens the messages of the same conversation are counted as."""
APART: Final = 16
"""Calls between two marks at first."""
_MOST_MARKS: Final = 16
"""From so many marks on every other one is dropped, and the next ones are twice as far apart."""


def undecided(policy: Policy, kept_long: KeptLong) -> Policy:
    """Return a policy that abridges, sends and marks what another one does until that one decides anything else.

    Under a threshold the system prompt costs a message's tokens, so that trigger stays, with them.

    Args:
        policy: the other one.
        kept_long: what is kept for the long time in its replay: all of it, where the recorded client asked for that.
    """
    threshold = policy.trigger if isinstance(policy.trigger, OverThreshold) else None
    plain = {name: Policy.model_fields[name].default for name in _UNREAD}
    own: dict[str, Any] = {"name": "undecided", "max_tokens": UNLIMITED, "steps": ()}
    own |= {"trigger": threshold or Never(), "message_tokens": policy.message_tokens if threshold else 0}
    own["cache_points"] = policy.cache_points.model_copy(update={"kept_long": kept_long})
    return policy.model_copy(update=plain | own)


class Beginnings:
    """The beginnings of one recording's replays, by what they have in common. All have the same prices.

    Args:
        apart: calls between two marks at first.

    Attributes:
        alike: what the replays make alike.
    """

    def __init__(self, apart: int = APART) -> None:
        self.alike: Alike = Alike()
        self._apart = apart
        self._leaders: dict[tuple[str, int], _Leader] = {}

    async def lead(self, run: Run) -> None:
        """Bring a run that has not begun near its first decision of its own, or to its end where it makes none.

        A run that looks for facts, or takes up a log's past, goes all the way by itself.
        """
        if run.measured.past is not None or run.facts is not None:
            return
        policy = undecided(run.compactor.policy, run.kept_long)
        key = policy.hash(), run.fixed
        if key not in self._leaders:
            ahead = Run(run.measured, policy, run.price_of, None, fixed=run.fixed, alike=run.alike)
            self._leaders[key] = _Leader(ahead, self._apart)
        try:
            await self._leaders[key].lead(run)
        except BaseException:  # in the midst of a call: what it was to append is missing
            del self._leaders[key]
            raise


class _Rendered(NamedTuple):
    """What a policy would have decided by at one call."""

    window: Window
    now: datetime


class _Size(NamedTuple):
    """The tokens of the conversation at a call: those by which a policy decides, and those that are sent."""

    counted: int
    sent: int


class _Sizes:
    """The tokens of the conversation at each call, as policies count them that charge alike for a message."""

    def __init__(self) -> None:
        self._costs = AccountCache()
        self._found: list[_Size] = []

    def at(self, number: int, window: Window, policy: Policy) -> _Size:
        """Return the tokens at a call. Calls are asked for in order, and again at will."""
        if number == len(self._found):
            costs = self._costs.costs(window.items, policy)
            self._found.append(_Size(costs.total, costs.total - costs.unsent))
        return self._found[number]


class _Leader:
    """A run that decides nothing but what to leave out of new results, as far as others needed it.

    Args:
        run: the run, before it began.
        apart: calls between two marks at first.
    """

    def __init__(self, run: Run, apart: int) -> None:
        self._run = run
        self._calls: list[_Rendered] = []
        self._marks: list[Run] = []
        self._apart = apart
        self._sizes: defaultdict[tuple[object, ...], _Sizes] = defaultdict(_Sizes)

    async def lead(self, run: Run) -> None:
        """Bring a run as near to its first decision as there is a mark."""
        policy = run.compactor.policy
        decides, number = _Decides(run, self._sizes[tuple(getattr(policy, name) for name in _CHARGED)]), 0
        while await self._reaches(number) and not decides.at(self._calls[number]):
            number += 1
        ended = number == len(self._calls)
        # The call before its decision is one of its own: a summary may be asked for in that context, by its account.
        near = self._run if ended else next((m for m in reversed(self._marks) if len(m.rows) < number), None)
        if near is None:
            return
        run.adopt(near)
        run.rows = list(map(decides.counted, run.rows, decides.sent))

    async def _reaches(self, number: int) -> bool:
        """Go on to a call; return whether the recording has it."""
        while len(self._calls) <= number:
            sent = await self._run.next_call()
            if sent is None:
                return False
            if sent.shown is None:
                raise ValueError(f"a policy without a limit refused a context: {sent.refused}")
            self._calls.append(_Rendered(sent.shown.window, sent.call.start))
            if len(self._calls) % self._apart == 0:
                self._mark()
        return True

    def _mark(self) -> None:
        mark = copy(self._run)
        mark.metered = copy(self._run.metered)
        mark.adopt(self._run)
        self._marks.append(mark)
        if len(self._marks) == _MOST_MARKS:
            del self._marks[::2]
            self._apart *= 2


class _Decides:
    """Finds the first call at which a run might decide anything; each is looked at once, in order.

    Args:
        run: the run, before it began.
        sizes: of the conversation, as its policy counts them.

    Attributes:
        sent: tokens of the conversation that are sent at the calls that were looked at.
    """

    def __init__(self, run: Run, sizes: _Sizes) -> None:
        self._run, self._policy, self._sizes = run, run.compactor.policy, sizes
        self._fixed = run.fixed_part
        self._replacements, self._contents = run.alike.replacements, run.renderer.known.contents
        self.sent: list[int] = []

    def counted(self, row: ReplayedCallRow, messages: int) -> ReplayedCallRow:
        """Return another run's row with the figures that this one's account would give it."""
        over_limit = self._fixed.tokens - self._fixed.reserved + messages > self._run.limit
        if (row.shown, row.over_limit) == (messages, over_limit):
            return row
        return row.model_copy(update={"shown": messages, "over_limit": over_limit})

    def at(self, call: _Rendered) -> bool:
        """Return whether a decision is not ruled out: a context at its trigger or limit, or something to hide."""
        policy, window, line = self._policy, call.window, self._run.line
        size = self._sizes.at(len(self.sent), window, policy)
        self.sent.append(size.sent)
        total = self._fixed.tokens + size.counted
        if is_full(window, total, line):
            return True
        if not may_be_cold(window, policy, call.now):
            return False
        if policy.compact_when_cold is not None and total > policy.compact_when_cold * policy.max_tokens:
            return True
        return self._hides(window)

    def _hides(self, window: Window) -> bool:
        policy, hiding = self._policy, self._policy.hiding
        if hiding is None:
            return False
        least, made, contents = int(hiding.minimum * policy.max_tokens), self._replacements, self._contents
        counter = self._run.counter
        planned = plan_hide(window, policy, hiding, counter, least=least, replacements=made, contents=contents)
        return planned is not None
