"""What each call found in the provider's cache: what the call before had left there, what was lost, why, at what price.

The figures are those that the provider reported; the causes are those of `timeline.lab.cache`, in its order: one that
would have lost the prefix in any case comes first. No context is built, so that a lane of all calls is quick. A model
or a decision is what the log says; what follows from the provider's rules alone is likely, and said to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.inspector.shapes import CacheUse, LossCause
from timeline.inspector.tally import cost_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.audit.decisions import CallDecision
    from timeline.audit.recorded_calls import RecordedCall
    from timeline.lab.prices import Price, PriceTable
    from timeline.usage import Usage

_SLACK: Final = 0.02
"""The share of a prefix below which nothing is called lost: providers read in steps, and count a little otherwise."""
_KINDS: Final = {
    "compaction.completed": "compaction",
    "compaction.reverted": "undo",
    "blocks.hidden": "hide",
    "blocks.revealed": "reveal",
    "block.redacted": "redaction",
    "tools.changed": "tools",
    "prefix.changed": "system",
}
"""Decisions that change what was sent before; of several the one that stands first here explains the loss."""


def cache_uses(
    calls: Sequence[RecordedCall], decided: Sequence[Sequence[CallDecision]], prices: PriceTable
) -> Iterator[CacheUse | None]:
    """Yield for each call what it found in the cache; None where it reported no usage."""
    before: RecordedCall | None = None
    since: list[CallDecision] = []
    for call, decisions in zip(calls, decided, strict=True):
        since += decisions
        if not call.called.usage.sent_tokens:
            yield None  # a failed call says nothing of the cache; what was decided before it is still to be blamed
            continue
        yield _use(before, call, since, prices)
        before, since = call, []


def _use(
    before: RecordedCall | None, call: RecordedCall, decisions: Sequence[CallDecision], prices: PriceTable
) -> CacheUse:
    used, price = call.called.usage, prices.price_of(call.called.model)
    cost = cost_of(call.called.model, used, prices)
    bare = cost_of(call.called.model, _unread(used), prices)
    saved = None if cost is None or bare is None else round(bare - cost, 6)
    if before is None:
        return CacheUse(idle_seconds=None, left_tokens=0, lost_tokens=0, cause=None, extra_cost=0.0, saved_cost=saved)
    idle = _idle(before, call)
    left = _left(before.called.usage, price)
    expected = min(left, used.sent_tokens)
    lost = max(0, expected - used.cache_read_tokens)
    if lost <= max(price.rule.granularity, _SLACK * expected):
        lost = 0
    held = None if not lost else cost_of(call.called.model, _with_read(used, lost), prices)
    cause = _cause(before, call, decisions, idle, price) if lost else None
    extra = None if cost is None else 0.0 if held is None else round(cost - held, 6)
    return CacheUse(
        idle_seconds=round(idle, 3),
        left_tokens=left,
        lost_tokens=lost,
        cause=cause,
        extra_cost=extra,
        saved_cost=saved,
    )


def _idle(before: RecordedCall, call: RecordedCall) -> float:
    """Return the seconds between the end of a call and the beginning of the next one."""
    # From one end to the other, less the call itself: its beginning may lie before the first moment that there is.
    return max(0.0, (call.at - before.at).total_seconds() - (call.called.duration or 0))


def _left(used: Usage, price: Price) -> int:
    """Return the tokens that a call left in the cache: all of them where the provider keeps prefixes by itself."""
    if price.known and price.rule.match == "prefix":
        return used.sent_tokens if used.sent_tokens >= price.minimum else 0
    return used.cache_read_tokens + used.cache_write_tokens


def _unread(used: Usage) -> Usage:
    """Return the usage of the same request without any cache."""
    moved = used.cache_read_tokens + used.cache_write_tokens
    empty = {"cache_read_tokens": 0, "cache_write_5m_tokens": 0, "cache_write_1h_tokens": 0}
    return used.model_copy(update={**empty, "input_tokens": used.input_tokens + moved})


def _with_read(used: Usage, tokens: int) -> Usage:
    """Return the usage of the same request if so many more tokens had been read from the cache."""
    update, left = {"cache_read_tokens": used.cache_read_tokens + tokens}, tokens
    for name in ("cache_write_5m_tokens", "cache_write_1h_tokens", "input_tokens"):
        taken = min(left, getattr(used, name))
        update[name] = getattr(used, name) - taken
        left -= taken
    return used.model_copy(update=update)


def _cause(
    before: RecordedCall, call: RecordedCall, decisions: Sequence[CallDecision], idle: float, price: Price
) -> LossCause:
    """Return why a prefix was lost."""
    was, now = before.called, call.called
    if was.model != now.model:
        return LossCause(kind="model", text=f"the model before was {was.model or 'another one'}, with its own cache")
    kept = price.rule.seconds(long=was.usage.cache_write_1h_tokens > 0)
    if price.known and idle > kept:
        text = f"{_time(idle)} since the call before; by the provider's rules it was kept for {_time(kept)}"
        return LossCause(kind="gap", text=text, likely=True)
    if price.known and now.usage.sent_tokens < price.minimum:
        text = f"the request is shorter than the {price.minimum:,} tokens from which on a prefix is kept"
        return LossCause(kind="below_minimum", text=text, likely=True)
    for type_, kind in _KINDS.items():
        found = next((one for one in decisions if one.type == type_ and not one.keeps_prefix), None)
        if found is not None:
            return LossCause(kind=kind, text=found.text, version=found.version)
    text = "the log has no decision that explains it: the request was built otherwise, or the provider dropped it"
    return LossCause(kind="other", text=text)


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"
