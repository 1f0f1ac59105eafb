"""Retry a call that the model refused for its size: compact the context, render it again, call once more.

The token count is ours, the limit the provider's: where they differ, its refusal is the first to know.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from timeline.engine.policy_steps import run_steps
from timeline.errors import CompactionRefused, ContextRefused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from timeline.engine.pressure import Pressure
    from timeline.projection.context import RenderedContext
    from timeline.projection.reports import TakenDecision
    from timeline.wire.refusals import ContextLimit

T = TypeVar("T")
_LOGGER: Final = logging.getLogger("timeline")


async def call_with_retry(
    call: Callable[[RenderedContext], Awaitable[T]],
    *,
    render: Callable[[], Awaitable[RenderedContext]],
    shrink: Callable[[RenderedContext, int], Awaitable[list[str]]],
    refused: Callable[[BaseException], ContextLimit | None],
    failed: Callable[[RenderedContext, BaseException], Awaitable[None]],
) -> T:
    """Render and call; if the model refuses the context for its size, compact, render and call once more.

    Args:
        call: sends a context to the model and returns its reply.
        render: renders the context.
        shrink: gets the refused context and a target in tokens, compacts down to it, and returns what it did.
        refused: returns the limit that an error reports; None for any other error, which is raised as it is.
        failed: records that the call of a context was refused.

    Raises:
        ContextRefused: the smaller context was refused too, or none could be made.
    """
    context = await render()
    try:
        return await call(context)
    except Exception as error:
        refusal = refused(error)
        if refusal is None:
            raise
        await failed(context, error)
        warn_of_limit(context, refusal)
        first = error
    sent = context.account.sent
    target = refusal.target(sent)
    tried = await shrink(context, target)
    smaller = await render()
    if smaller.account.sent >= sent:
        raise ContextRefused(sent=[sent], limit=refusal.limit, target=target, tried=tried) from first
    try:
        return await call(smaller)
    except Exception as error:
        again = refused(error)
        if again is None:
            raise
        await failed(smaller, error)
        sizes = [sent, smaller.account.sent]
        raise ContextRefused(sent=sizes, limit=again.limit or refusal.limit, target=target, tried=tried) from error


def warn_of_limit(context: RenderedContext, refusal: ContextLimit) -> None:
    """Warn where a policy allows more than the model takes: a context that grows past the limit is refused first."""
    policy = context.policy
    if refusal.limit is not None and refusal.limit < policy.max_tokens:
        _LOGGER.warning(
            "the model takes %d tokens and the policy allows %d (max_tokens): each context between them is refused "
            "first and compacted then; give the conversation a policy with max_tokens=%d",
            refusal.limit,
            policy.max_tokens,
            refusal.limit,
        )


async def compact_to(pressure: Pressure, target: int) -> list[str]:
    """Compact until a request counts at most ``target`` tokens, or nothing more is gained; return what was done.

    Raises:
        CompactionSuperseded: other writers changed the range each time.
        SummarizerFailed: no summarizer gave a usable answer.
    """
    pressure = replace(pressure, reason="refused", most=target + pressure.fixed.reserved)
    tried: list[str] = []
    for _ in range(pressure.policy.attempts):
        if (await pressure.account()).sent <= target:
            break
        done = await run_steps(pressure)
        tried += [_described(taken) for taken in done.taken]
        pressure = done.pressure  # its fixed part is smaller once stages were collapsed
        if isinstance(done.failure, CompactionRefused):
            tried.append(f"refused ({done.failure.reason})")
            break
        if done.failure is not None:
            raise done.failure
    return tried


def _described(taken: TakenDecision) -> str:
    figures = ", ".join(f"{name} {value}" for name, value in taken.facts.items() if isinstance(value, int))
    return f"{taken.kind} ({figures})" if figures else taken.kind
