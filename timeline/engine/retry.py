"""Retry a call that the model refused for its size: compact the context, render it again, call once more.

The token count is ours and the limit is the provider's. Where they differ, only the provider's refusal shows it.
The same holds for what has no limit in tokens: the bytes of a request, its pictures, the signatures of its reasoning.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from timeline.display.logs import logger_of
from timeline.engine.hiding import CompactionProgress, hide_planned
from timeline.engine.policy_steps import run_steps
from timeline.engine.restoring import restore
from timeline.errors import CompactionRefused, CompactionSuperseded, ContextRefused, SummarizerFailed
from timeline.planning.hide_parts import outweighs_text, plan_media, plan_reasoning
from timeline.planning.repeats import References
from timeline.projection.reports import TakenDecision
from timeline.wire import encoded_alone
from timeline.wire.refused_parts import ReasoningRefused, refused_parts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from timeline.engine.pressure import Pressure
    from timeline.fold.window import Window
    from timeline.planning.plans import HideDecision
    from timeline.policy.model import Policy
    from timeline.projection.context import RenderedContext
    from timeline.wire.refusals import ContextLimit
    from timeline.wire.refused_parts import PartsRefused

T = TypeVar("T")
_LOGGER: Final = logger_of("timeline")


async def call_with_retry(
    call: Callable[[RenderedContext], Awaitable[T]],
    *,
    render: Callable[[], Awaitable[RenderedContext]],
    pressure: Callable[[RenderedContext], Pressure],
    refused: Callable[[BaseException], ContextLimit | None],
    failed: Callable[[RenderedContext, BaseException], Awaitable[None]],
) -> T:
    """Render and call; if the model refuses the context for its size, compact, render and call once more.

    If the model refuses parts of the context, these are left out, and it is called once more, too. A refusal of parts
    is raised as it is, like any other error, where none of them may be left out, or in the second call.

    Args:
        call: sends a context to the model and returns its reply.
        render: renders the context.
        pressure: returns the means to make a refused context smaller.
        refused: returns the limit that an error reports; None for any other error.
        failed: records that the call of a context was refused.

    Raises:
        ContextRefused: the smaller context was refused for its size too, or none could be made.
    """
    context = await render()
    try:
        return await call(context)
    except Exception as error:
        refusal, parts = refused(error), refused_parts(error)
        if refusal is None and (parts is None or not may_give_way(pressure(context), context, parts)):
            raise
        await failed(context, error)
        first = error
    smaller, tried = await render_smaller(
        context, refusal, parts, pressure=pressure(context), render=render, cause=first
    )
    try:
        return await call(smaller)
    except Exception as error:
        again = refused(error)
        if again is None:
            raise
        await failed(smaller, error)
        sizes, said = [context.account.sent, smaller.account.sent], again if refusal is None else refusal
        limit = again.limit or said.limit
        raise ContextRefused(sent=sizes, limit=limit, target=said.target(sizes[0]), tried=tried) from error


async def render_smaller(
    context: RenderedContext,
    refusal: ContextLimit | None,
    parts: PartsRefused | None,
    *,
    pressure: Pressure,
    render: Callable[[], Awaitable[RenderedContext]],
    cause: BaseException,
) -> tuple[RenderedContext, list[str]]:
    """Make a refused context smaller, and render it again; return the new context, and what was done.

    Raises:
        ContextRefused: its size was refused, and it did not get smaller.
        CompactionSuperseded, SummarizerFailed: as `compact_to`.
    """
    warn_of_limit(context.policy, refusal)
    sent = context.account.sent
    target = None if refusal is None else refusal.target(sent)
    tried = await make_smaller(pressure, context, target, parts)
    smaller = await render()
    if refusal is not None and target is not None and smaller.account.sent >= sent:
        raise ContextRefused(sent=[sent], limit=refusal.limit, target=target, tried=tried) from cause
    return smaller, tried


def may_give_way(pressure: Pressure, context: RenderedContext, parts: PartsRefused) -> bool:
    """Return whether any of the parts that the provider refused may be left out of a context."""
    return _plan_without(pressure, context, parts)(pressure.window) is not None


async def make_smaller(
    pressure: Pressure, context: RenderedContext, target: int | None, parts: PartsRefused | None
) -> list[str]:
    """Make a refused context smaller; return what was done.

    Parts are left out where they were refused, or where a request of too many bytes is mostly pictures and documents.
    Otherwise the context is compacted.

    Args:
        pressure: the log.
        context: what was refused.
        target: tokens to come down to; None where the size was not refused.
        parts: which parts were refused.

    Raises:
        CompactionSuperseded, SummarizerFailed: as `compact_to`.
    """
    tried: list[str] = []
    if parts is not None and (target is None or outweighs_text(pressure.window)):
        plan = _plan_without(pressure, context, parts)
        tried = [_described(taken) for taken in await hide_planned(plan, CompactionProgress(pressure))]
    if tried or target is None:
        return tried
    return [_described(taken) for taken in await compact_to(pressure, target)]


def _plan_without(
    pressure: Pressure, context: RenderedContext, parts: PartsRefused
) -> Callable[[Window], HideDecision | None]:
    """Return the function that plans the hides of refused parts for a window."""
    policy, counter = pressure.policy, pressure.compactor.counter
    if isinstance(parts, ReasoningRefused):
        return partial(plan_reasoning, policy=policy, counter=counter)
    named = parts.named_in(encoded_alone(parts.wire, context.neutral)) if parts.wire else []
    return partial(plan_media, policy=policy, counter=counter, crowd=parts.crowd, named=named, most=parts.most)


def warn_of_limit(policy: Policy, refusal: ContextLimit | None) -> None:
    """Warn where a policy allows more than the model takes: each context that grows too large is refused first."""
    limit, allowed = None if refusal is None else refusal.limit, policy.max_tokens
    if limit is not None and limit < allowed:
        _LOGGER.warning(
            "the model takes %d tokens and the policy allows %d (max_tokens): a context between the two is compacted "
            "only after the model refused it. Give the conversation a policy with max_tokens=%d",
            limit,
            allowed,
            limit,
        )


async def compact_to(pressure: Pressure, target: int) -> list[TakenDecision]:
    """Compact until a request counts at most ``target`` tokens, or nothing more is gained; return the decisions.

    Tokens that are counted and not sent are added to the target, since the policy's decisions count them, too. Results
    that leave out what a compaction took out of sight are shown whole again at once: otherwise the next render would do
    that, and make the request larger.

    Raises:
        CompactionSuperseded: other writers changed the range each time.
        SummarizerFailed: no summarizer gave a usable answer.
    """
    pressure = replace(pressure, reason="refused")
    decisions: list[TakenDecision] = []
    references = References()
    for _ in range(pressure.policy.attempts):
        account = await pressure.account()
        if account.sent <= target:
            break
        done = await run_steps(replace(pressure, most=target + pressure.fixed.reserved + account.unsent))
        decisions += done.taken
        pressure = done.pressure  # the fixed part is smaller once stages were collapsed
        if isinstance(done.failure, CompactionRefused):
            decisions.append(TakenDecision(kind="refused", reason=done.failure.reason, facts=done.failure.facts))
            break
        done.raise_failure()
        await restore(pressure, references)
    return decisions


async def compact_for_full_window(pressure: Pressure, limit: ContextLimit) -> list[TakenDecision]:
    """Compact a context that filled the model's window, as one that the model refused; a failure is a decision, too."""
    warn_of_limit(pressure.policy, limit)
    sent = (await pressure.account()).sent
    try:
        return await compact_to(pressure, limit.target(sent))
    except (CompactionSuperseded, SummarizerFailed) as failure:
        return [TakenDecision(kind="failed", reason=str(failure))]


def _described(taken: TakenDecision) -> str:
    figures = ", ".join(f"{name} {value}" for name, value in taken.facts.items() if isinstance(value, int))
    details = taken.reason if taken.kind == "refused" else figures
    return f"{taken.kind} ({details})" if details else taken.kind
