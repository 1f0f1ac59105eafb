"""Render a context: take the decisions that are due, then project the window. `Timeline` and storeless lists share it.

The account comes first, since a render without room for messages must decide nothing. The decisions come before the
projection, since they change the window.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from timeline import checks
from timeline.engine.due_decisions import take_due_decisions
from timeline.engine.encoders import Encoders
from timeline.engine.known import Known, settle
from timeline.engine.pressure import Pressure
from timeline.engine.warm import not_sent, with_prefix
from timeline.errors import BudgetImpossible, ContextOverflow, InvalidArgument
from timeline.fold.counts import ScaledCounter
from timeline.fold.reported import NO_REPORTS
from timeline.frozen import MOST_NESTING, compact_json, is_nested_deeper, repair_json
from timeline.log.off_loop import WORTH_A_THREAD, off_loop
from timeline.planning.account import NO_TAIL, account_of, certain_total, fixed_part, no_room_from
from timeline.planning.costs import scaled
from timeline.planning.tail import tail_of
from timeline.projection.context import RenderedContext
from timeline.projection.project import PROJECTION, Projector, neutral_context

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from pydantic import JsonValue

    from timeline.engine.compactor import Compactor
    from timeline.engine.warm import SentContext, WhyAlone
    from timeline.fold.reported import Reported
    from timeline.fold.window import Window
    from timeline.frozen import JsonInput
    from timeline.log.protocol import Log
    from timeline.planning.account import Account, FixedPart, Tail
    from timeline.policy.model import Policy
    from timeline.projection.project import Projected
    from timeline.projection.reports import TakenDecision
    from timeline.wire.neutral import NeutralContext

_MOST_NAMED: Final = 10
"""How many of the largest blocks an overflow names."""
_MOST_KEPT_COUNTS: Final = 200
"""How many counts of prompts, tools and tails are kept from one render to the next."""


class Renderer:
    """Renders the contexts of one conversation. It remembers counts and entries, which saves work and changes nothing.

    Args:
        projector: makes the contexts; a new one with the current rules unless given.
        known: what earlier renders left for its decisions; nothing unless given.

    Attributes:
        known: the same.
    """

    def __init__(self, projector: Projector | None = None, known: Known | None = None) -> None:
        self.known: Known = known or Known()
        self._projector = projector or Projector()
        self._encoders = Encoders()
        self._counts: dict[tuple[str, str], int] = {}

    async def render(
        self,
        log: Log,
        compactor: Compactor,
        *,
        system: JsonInput,
        tools: Sequence[JsonInput],
        ephemeral: Sequence[str],
        now: datetime,
        at: datetime | None,
        sent: Callable[[], SentContext | WhyAlone] = not_sent,
    ) -> RenderedContext:
        """Append the decisions that are due to the log, and project the window.

        All decisions use the one time ``now``. The events get the time ``at``, or without it the time of their append.
        ``sent`` returns the context of the newest model call, to ask for a summary in; it is called once one is due.

        Raises:
            InvalidArgument: one of the values cannot be sent.
            ContextOverflow: the context is above the limit and cannot be made smaller.
            BudgetImpossible: system prompt, tools and reserves leave no room at all.
        """
        compactor = compactor.at(log.fold)
        policy = compactor.policy
        written, schemas, ephemeral = prepared(system, tools, ephemeral)
        prompt = joined_system(written, policy.system_parts)
        tail = tail_of(log.fold.window, policy, ephemeral)
        reported = log.fold.window.reported
        fixed = self.fixed(compactor, system=prompt, tools=schemas, tail=tail, reported=reported)
        empty = account_of((), fixed, policy)
        if policy.automatic and certain_total(empty, policy, reported) >= no_room_from(policy, empty):
            raise BudgetImpossible(empty.facts())
        self.known.begin(log.fold.window.items, policy)
        asked_in = partial(with_prefix, sent, prompt, schemas)
        pressure = Pressure(compactor, log, fixed, now, at, sent=asked_in, cut=self.known.cut)
        decisions = await take_due_decisions(pressure, self.known)
        if decisions:  # the tail is shorter once stages were collapsed, and the offset was for the old window
            tail, reported = tail_of(log.fold.window, policy, ephemeral), log.fold.window.reported
            fixed = self.fixed(compactor, system=prompt, tools=schemas, tail=tail, reported=reported)
        window = log.fold.window
        await settle(self.known.accounts, window.items, policy)
        projected = await self._project(window, policy, system=prompt, tools=schemas, ephemeral=tail.texts)
        account = self.known.accounts.account(window.items, fixed, policy)
        context = self._context(window, policy, projected, account, decisions)
        held = window.is_held  # after an undo the overflow is reported, and nothing is compacted
        if certain_total(account, policy, reported) > policy.max_tokens and not held:
            raise ContextOverflow(account.facts(), context.largest(_MOST_NAMED))
        return context

    def undecided(self, window: Window, policy: Policy) -> Projected:
        """Project a window in which no decision is due, on the loop.

        It is for the lab, which knows that no decision is due, and so saves the work of finding that out.

        Args:
            window: without stages, and within the policy's limit.
            policy: in force.
        """
        return self._projector.projected(window, policy.cache_points)

    def undecided_context(
        self, projected: Projected, window: Window, policy: Policy, fixed: FixedPart, *, system: JsonValue
    ) -> RenderedContext:
        """Return the context of a window that `undecided` has projected, as `render` would: without tools and tail.

        Args:
            projected: the window's.
            window: the same.
            policy: in force.
            fixed: the tokens that no compaction can free.
            system: the system prompt, repaired and joined.
        """
        neutral = neutral_context(projected, window, policy.cache_points, policy=policy.hash(), system=system)
        account = account_of(window.items, fixed, policy)
        return self._context(window, policy, (neutral, self._projector.fingerprint(neutral)), account, ())

    async def _project(self, window: Window, policy: Policy, **beside: Any) -> tuple[NeutralContext, str]:
        """Project a window; return the context and its fingerprint. A thread does it where much of the window is new.

        The thread has a projector and encoders of its own, since another render may use these meanwhile. They then take
        the place of these.
        """
        new, projector = self._projector.unknown(window), self._projector
        if new >= WORTH_A_THREAD:
            projector = projector.apart()

        def work() -> tuple[NeutralContext, str, Encoders]:
            neutral = projector.project(window, policy.cache_points, policy=policy.hash(), **beside)
            encoders = self._encoders if new < WORTH_A_THREAD else self._encoders.ahead(neutral)
            return neutral, projector.fingerprint(neutral), encoders

        neutral, fingerprint, encoders = await off_loop(new, work)
        self._projector, self._encoders = projector, encoders
        return neutral, fingerprint

    def _context(
        self,
        window: Window,
        policy: Policy,
        projected: tuple[NeutralContext, str],
        account: Account,
        decisions: Sequence[TakenDecision],
    ) -> RenderedContext:
        neutral, fingerprint = projected
        return RenderedContext(
            conversation=window.conversation,
            version=window.version,
            projection=PROJECTION,
            fingerprint=fingerprint,
            window=window,
            policy=policy,
            neutral=neutral,
            account=account,
            decisions=tuple(decisions),
            overflow=account.over_trigger,
        ).encoded_by(self._encoders)

    def next_account(self, log: Log, compactor: Compactor, *, system: JsonInput, tools: Sequence[JsonInput]) -> Account:
        """Draw up the account of a log's next request, as `render` would.

        Raises:
            InvalidArgument: system prompt or tools cannot be sent.
        """
        policy, window = compactor.policy, log.fold.window
        written, schemas, _ = prepared(system, tools, ())
        prompt = joined_system(written, policy.system_parts)
        tail = tail_of(window, policy)
        fixed = self.fixed(compactor.at(log.fold), system=prompt, tools=schemas, tail=tail, reported=window.reported)
        return self.known.accounts.account(window.items, fixed, policy)

    def fixed(
        self,
        compactor: Compactor,
        *,
        system: JsonValue = None,
        tools: Sequence[JsonValue] = (),
        tail: Tail = NO_TAIL,
        reported: Reported = NO_REPORTS,
    ) -> FixedPart:
        """Count the tokens that no compaction can free; each text is counted once and remembered."""
        counter = compactor.counter
        plain = counter.plain if isinstance(counter, ScaledCounter) else counter

        def count(text: str) -> int:
            key = (plain.name, text)
            if key not in self._counts:
                if len(self._counts) >= _MOST_KEPT_COUNTS:
                    self._counts.clear()
                self._counts[key] = plain.count(text)
            tokens = self._counts[key]
            return scaled(counter.scaled(tokens) if isinstance(counter, ScaledCounter) else tokens, compactor.policy)

        return fixed_part(compactor.policy, count, system=system, tools=tools, tail=tail, reported=reported)


def prepared(
    system: JsonInput, tools: Sequence[JsonInput], ephemeral: Sequence[str]
) -> tuple[JsonValue, Sequence[JsonValue], Sequence[str]]:
    """Check and repair the caller's parts of a request: system prompt, tools and ephemeral tail.

    A system prompt without a word is none, since no wire sends it: the account counts nothing for it, a change between
    the two is none of the prefix, and under [keep_last] the first message takes its place.

    Raises:
        InvalidArgument: one of the values cannot be sent.
    """
    if system is not None and not isinstance(system, str):
        checks.listed("system", system)
    checks.listed("tools", tools)
    checks.texts("ephemeral", ephemeral)
    prompt = _sendable("system", system)
    is_blank = all(_is_blank(part) for part in (prompt if isinstance(prompt, list) else [prompt]))
    return None if is_blank else prompt, _sendable("tools", tools), _sendable("ephemeral", ephemeral)


def _is_blank(part: JsonValue) -> bool:
    """Return whether a part of a system prompt is a text without a word, and no marker of the caller's."""
    if isinstance(part, dict) and set(part) <= {"type", "text"} and part.get("type", "text") == "text":
        part = part.get("text")
    return part is None or (isinstance(part, str) and not part.strip())


def joined_system(system: JsonValue, most: int | None) -> JsonValue:
    """Join the last texts of a system prompt, so that it has at most ``most`` parts.

    A prompt stays as it is if one of the parts to join is no text.
    """
    if most is None or not isinstance(system, list) or len(system) <= most:
        return system
    kept, rest = system[: most - 1], system[most - 1 :]
    texts = [part.get("text") if isinstance(part, dict) else part for part in rest]
    if not all(isinstance(text, str) for text in texts):
        return system
    last = rest[-1]
    joined: JsonValue = "\n".join(str(text) for text in texts)
    return [*kept, {**last, "text": joined} if isinstance(last, dict) else joined]


def _sendable(name: str, value: Any) -> Any:
    """Repair a value for JSON.

    Raises:
        InvalidArgument: the value has no form in JSON, or is nested deeper than a provider would read it.
    """
    try:
        repaired = repair_json(value)
        compact_json(repaired)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(name, str(error)) from None
    if is_nested_deeper(repaired, MOST_NESTING):
        raise InvalidArgument(name, f"is nested more than {MOST_NESTING} levels deep; write the inner levels as text")
    return repaired
