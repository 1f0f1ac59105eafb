"""Replay a recording as if the provider kept its cache for five minutes, for an hour, by itself, or not at all.

What a recording's calls reported says how their cache was kept, and the policies' own clock reads the same reports. So
both are rewritten: the reports of the calls, and the prices that the replay charges. How much a call sent stays as it
was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from timeline.events import ModelCalled
from timeline.lab.prices import UNKNOWN, CacheRule, ModelPrice, Price
from timeline.usage import LONG_CACHE_SECONDS, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.events import Payload
    from timeline.importers.recording import ImportedCompaction, ImportedHide
    from timeline.lab.prices import PriceTable
    from timeline.lab.sizes import Measured, ReplayedPast
    from timeline.usage import CacheKind

MARKERS: Final = "anthropic"
"""The packaged rule of a provider with markers, two lifetimes and a price for writing."""
AUTOMATIC: Final = "openai"
"""The packaged rule for models whose own provider has no automatic cache."""
_NO_CACHE: Final = CacheRule(name="none", markers=0)


def kept_by(price: Price, *, long: bool) -> str:
    """Return how a price's provider keeps what is sent: ``automatic``, ``none``, or a time such as ``5m`` or ``1h``.

    Args:
        price: of the called model.
        long: whether the messages are kept for the long time, where the provider has one.
    """
    rule = price.rule
    if rule.match == "prefix":
        return "automatic"
    if not rule.markers:
        return "none"
    seconds = rule.seconds(long=long)
    return f"{seconds // LONG_CACHE_SECONDS}h" if seconds % LONG_CACHE_SECONDS == 0 else f"{seconds // 60}m"


def priced_as_kept(price_of: Callable[[str], Price], kept: CacheKind, table: PriceTable) -> Callable[[str], Price]:
    """Return the function that returns a model's price under another cache.

    Reading costs what the model's provider takes for it; a provider that keeps prompts in that way keeps its own rule.

    Args:
        price_of: returns the price of a model.
        kept: how prompts are kept.
        table: has the rules.
    """
    rules = {rule.name: rule for rule in table.caches}
    return lambda model: _repriced(price_of(model), kept, rules)


def _repriced(price: Price, kept: CacheKind, rules: dict[str, CacheRule]) -> Price:
    if kept == "none":
        plain = price.model.model_copy(update={"read": price.model.input, "write": None, "write_long": None})
        return price.model_copy(update={"model": plain, "rule": _NO_CACHE})
    if kept == "automatic":
        free = price.model.model_copy(update={"write": None, "write_long": None})
        rule = price.rule if price.rule.match == "prefix" else rules[AUTOMATIC]
        return price.model_copy(update={"model": free, "rule": rule})
    own = price.rule.match == "markers" and price.rule.long is not None
    return price.model_copy(update={"model": _with_writes(price.model), "rule": price.rule if own else rules[MARKERS]})


def _with_writes(model: ModelPrice) -> ModelPrice:
    """Return a price with prices for writing: its own, or at the ratios of the commonest ones."""
    short = model.written(long=False) if model.write is not None else model.input * UNKNOWN.written(long=False)
    long = model.input * UNKNOWN.written(long=True) if model.write_long is None else model.write_long
    return model.model_copy(update={"write": short, "write_long": long})


def as_kept(measured: Measured, kept: CacheKind) -> Measured:
    """Return a recording whose calls report the use of another cache: each sent as much as it did."""
    recording = measured.recording
    events = tuple(replace(event, payload=_reporting(event.payload, kept)) for event in recording.events)
    calls = tuple(
        call if call.usage is None else replace(call, usage=_reported(call.usage, kept)) for call in measured.calls
    )
    past = None if measured.past is None else _past(measured.past, kept)
    return replace(measured, recording=replace(recording, events=events), calls=calls, past=past, cache=kept)


def _past(past: ReplayedPast, kept: CacheKind) -> ReplayedPast:
    events = (
        event.model_copy(update={"payload": _reporting(event.payload, kept)})
        if isinstance(event.payload, ModelCalled)
        else event
        for event in past.events
    )
    return replace(past, events=tuple(events))


def _reporting(
    payload: Payload | ImportedCompaction | ImportedHide, kept: CacheKind
) -> Payload | ImportedCompaction | ImportedHide:
    """Return a call's event with another report, and any other payload as it is."""
    if not isinstance(payload, ModelCalled):
        return payload
    return payload.model_copy(update={"usage": _reported(payload.usage, kept)})


def _reported(usage: Usage, kept: CacheKind) -> Usage:
    """Return the report that a provider with this cache would make of the same input."""
    new = usage.input_tokens + usage.cache_write_tokens
    read, output = usage.cache_read_tokens, usage.output_tokens
    match kept:
        case "5m":
            return Usage(output_tokens=output, cache_read_tokens=read, cache_write_5m_tokens=new)
        case "1h":
            return Usage(output_tokens=output, cache_read_tokens=read, cache_write_1h_tokens=new)
        case "automatic":
            return Usage(input_tokens=new, output_tokens=output, cache_read_tokens=read)
        case "none":
            return Usage(input_tokens=new + read, output_tokens=output)
