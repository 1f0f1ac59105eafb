"""Retry a call that the model refused for its size: compact the context, render it again, call once more.

The token count is ours, the limit the provider's: where they differ, its refusal is the first to know. That holds the
more for what has no limit in tokens: the bytes of a request, the number and the size of its pictures.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from timeline.engine.hiding import CompactionProgress, hide_planned
from timeline.engine.policy_steps import run_steps
from timeline.errors import CompactionRefused, ContextRefused
from timeline.planning.hide_media import outweighs_text, plan_media
from timeline.wire import encoded_alone
from timeline.wire.refused_media import refused_media

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from timeline.engine.compactor import Pressure
    from timeline.projection.context import RenderedContext
    from timeline.projection.reports import TakenDecision
    from timeline.wire.refusals import ContextLimit
    from timeline.wire.refused_media import MediaRefused

T = TypeVar("T")


async def call_with_retry(
    call: Callable[[RenderedContext], Awaitable[T]],
    *,
    render: Callable[[], Awaitable[RenderedContext]],
    shrink: Callable[[RenderedContext, int, MediaRefused | None], Awaitable[list[str]]],
    refused: Callable[[BaseException], ContextLimit | None],
    failed: Callable[[RenderedContext, BaseException], Awaitable[None]],
) -> T:
    """Render and call; if the model refuses the context for its size, compact, render and call once more.

    So it is where the model refuses a picture or document, or all of them; nothing to leave out is no refusal for size.

    Args:
        call: sends a context to the model and returns its reply.
        render: renders the context.
        shrink: gets the refused context, a target in tokens and what was refused of its pictures; makes it smaller, and
            returns what it did.
        refused: returns the limit that an error reports; None for any other error, which is raised as it is.
        failed: records that the call of a context was refused.

    Raises:
        ContextRefused: the smaller context was refused too, or none could be made.
    """
    context = await render()
    try:
        return await call(context)
    except Exception as error:
        refusal, media = refused(error), refused_media(error)
        if refusal is None and media is None:
            raise
        await failed(context, error)
        first = error
    sent = context.account.sent
    target = sent if refusal is None else refusal.target(sent)
    tried = await shrink(context, target, media)
    smaller = await render() if tried or refusal is not None else context
    if smaller.account.sent >= sent:
        if refusal is None:
            raise first
        raise ContextRefused(sent=[sent], limit=refusal.limit, target=target, tried=tried) from first
    try:
        return await call(smaller)
    except Exception as error:
        again = refused(error)
        if again is None and refused_media(error) is None:
            raise
        await failed(smaller, error)
        if again is None:
            raise
        sizes = [sent, smaller.account.sent]
        limit = again.limit or (None if refusal is None else refusal.limit)
        raise ContextRefused(sent=sizes, limit=limit, target=target, tried=tried) from error


async def make_smaller(
    pressure: Pressure, context: RenderedContext, target: int, media: MediaRefused | None
) -> list[str]:
    """Make a refused context smaller; return what was done.

    Pictures and documents give way where they were refused, or where a request of too many bytes consists of them;
    otherwise the context is compacted.

    Args:
        pressure: the log.
        context: what was refused.
        target: tokens to come down to; not below those of ``context`` where pictures alone were refused.
        media: what was refused of its pictures and documents.

    Raises:
        CompactionSuperseded, SummarizerFailed: as `compact_to`.
    """
    tried: list[str] = []
    alone = target >= context.account.sent
    if media is not None and (alone or outweighs_text(pressure.window)):
        named = media.named_in(encoded_alone(media.wire, context.neutral)) if media.wire else []
        policy, counter = pressure.policy, pressure.compactor.counter
        plan = partial(plan_media, policy=policy, counter=counter, crowd=media.crowd, named=named)
        tried = [_described(taken) for taken in await hide_planned(plan, CompactionProgress(pressure))]
    return tried if tried or alone else await compact_to(pressure, target)


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
