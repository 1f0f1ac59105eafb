"""The price model: what providers charge for a prompt, and what they keep of it between two calls. Dated data.

The packaged table is `caches.toml`; a file of the same form goes before it. Costs are told twice: in US dollars, and in
base tokens, where 1 is one token of input that no cache answers.
"""

from __future__ import annotations

import tomllib
from datetime import date as Date  # noqa: N812 - the class beside a field of its name; pydantic reads the annotation
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field, ValidationError, model_validator

from timeline.databases import read_text
from timeline.errors import InvalidPrices
from timeline.frozen import Frozen
from timeline.policy.limits import fit
from timeline.policy.text import problem_of

if TYPE_CHECKING:
    from os import PathLike

_MILLION: Final = 1_000_000


class CacheRule(Frozen):
    """How a provider keeps the prefixes of prompts.

    Attributes:
        name: that prices refer to.
        match: ``markers``: what stands in front of a marker is kept, and found again from one; ``prefix``: the provider
            finds the longest common prefix by itself.
        markers: of one request, at the most.
        lookback: blocks that are walked back from a marker to find what was kept; None for any number.
        minimum: tokens of the shortest prefix that is kept.
        granularity: tokens; a prefix is read in steps of so many.
        short, long: seconds that a prefix is kept after its last use; ``long`` where a longer time is asked for.
        date, source: when and where the rule was read.
    """

    name: str
    match: Literal["markers", "prefix"] = "markers"
    markers: int = Field(default=4, ge=0)
    lookback: int | None = Field(default=None, ge=0)
    minimum: int = Field(default=1_024, ge=0)
    granularity: int = Field(default=1, ge=1)
    short: int = Field(default=300, ge=1)
    long: int | None = Field(default=None, ge=1)
    date: Date | None = None
    source: str = ""

    def seconds(self, *, long: bool) -> int:
        """Return how long a prefix is kept after its last use."""
        return self.long if long and self.long is not None else self.short


class ModelPrice(Frozen):
    """What a model's tokens cost, in US dollars a million.

    Attributes:
        models: beginnings of the names that this is about.
        cache: name of the rule that its provider keeps prefixes by.
        minimum: tokens of the shortest prefix that is kept; the rule's own where None.
        input: tokens that no cache answers.
        read: tokens that one answers.
        write, write_long: tokens that it takes in, for the short and the long time; as ``input``, and as ``write``,
            where None.
        output: tokens of the answer.
        tier: above so many tokens of input, everything of a call costs ``tier_input`` and ``tier_output`` times as
            much; None where there is no such line.
        date, source: when and where the prices were read.
    """

    models: tuple[str, ...] = ()
    cache: str
    minimum: int | None = Field(default=None, ge=0)
    input: float = Field(gt=0)
    read: float = Field(ge=0)
    write: float | None = Field(default=None, ge=0)
    write_long: float | None = Field(default=None, ge=0)
    output: float = Field(ge=0)
    tier: int | None = Field(default=None, ge=1)
    tier_input: float = Field(default=1.0, gt=0)
    tier_output: float = Field(default=1.0, gt=0)
    date: Date | None = None
    source: str = ""

    def written(self, *, long: bool) -> float:
        """Return the price of what the cache takes in."""
        short = self.input if self.write is None else self.write
        return short if not long or self.write_long is None else self.write_long


class Price(Frozen):
    """What a model costs, and the rule of its cache, found together.

    ``known`` is False where the model is in no table, and taken for the unknown one.
    """

    model: ModelPrice
    rule: CacheRule
    known: bool = True

    @property
    def minimum(self) -> int:
        """Tokens of the shortest prefix that is kept."""
        return self.rule.minimum if self.model.minimum is None else self.model.minimum

    def units(
        self, *, read: int = 0, written: int = 0, uncached: int = 0, output: int = 0, written_long: int = 0
    ) -> float:
        """Return what a call costs in base tokens: 1 is one token of input that no cache answers.

        Args:
            read: tokens that the cache answers.
            written: tokens that it takes in.
            uncached: tokens of input besides.
            output: tokens of the answer.
            written_long: how many of those that are written are to be kept for the long time.
        """
        price = self.model
        above = price.tier is not None and read + written + uncached > price.tier
        write = (written - written_long) * price.written(long=False) + written_long * price.written(long=True)
        asked = read * price.read + write + uncached * price.input
        said = output * price.output
        return (asked * (price.tier_input if above else 1) + said * (price.tier_output if above else 1)) / price.input

    def money(self, units: float) -> float:
        """Return what base tokens cost in US dollars."""
        return units * self.model.input / _MILLION


class PriceTable(Frozen):
    """A file of prices and cache rules."""

    caches: tuple[CacheRule, ...] = ()
    prices: tuple[ModelPrice, ...] = ()

    @model_validator(mode="after")
    def _names_are_unique(self) -> PriceTable:
        names = [rule.name for rule in self.caches]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"the cache {twice!r} is there twice")
        return self

    def over(self, other: PriceTable) -> PriceTable:
        """Return this table before another one: what both have is this one's."""
        own = {rule.name for rule in self.caches}
        kept = tuple(rule for rule in other.caches if rule.name not in own)
        return PriceTable(caches=(*self.caches, *kept), prices=(*self.prices, *other.prices))

    def price_of(self, model: str) -> Price:
        """Return what a model costs: of the longest beginning that its name has; the first of equals.

        A model that no entry is about is taken for `UNKNOWN`.
        """
        best = max(self.prices, key=lambda price: fit(model, price.models), default=UNKNOWN)
        known = fit(model, best.models) > 0
        price = best if known else UNKNOWN
        rule = next((rule for rule in self.caches if rule.name == price.cache), _UNKNOWN_RULE)
        return Price(model=price, rule=rule, known=known)


UNKNOWN: Final = ModelPrice(
    cache="anthropic", input=1.0, read=0.1, write=1.25, write_long=2.0, output=5.0, source="the commonest ratios"
)
"""Of a model that is in no table: the ratios of most, and a dollar a million; its money says nothing."""
_UNKNOWN_RULE: Final = CacheRule(name="anthropic", lookback=20)


@cache
def packaged_prices() -> PriceTable:
    """Return the table that comes with the library."""
    resource = files(__package__) / "caches.toml"
    return _parsed(resource.read_text(encoding="utf-8"), resource.name)


def read_prices(file: str | PathLike[str] | None = None) -> PriceTable:
    """Return the packaged table, behind a file of one's own where one is named.

    Raises:
        InvalidPrices: the file cannot be read, an entry of it does not hold, or names a cache that is nowhere.
    """
    if file is None:
        return packaged_prices()
    try:
        text = read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise InvalidPrices(str(file), "", f"it cannot be read: {reason}") from None
    table = _parsed(text, str(file)).over(packaged_prices())
    known = {rule.name for rule in table.caches}
    if lost := next((price.cache for price in table.prices if price.cache not in known), None):
        raise InvalidPrices(str(file), "cache", f"there is no cache {lost!r}; there are {', '.join(sorted(known))}")
    return table


def _parsed(text: str, name: str) -> PriceTable:
    try:
        return PriceTable.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidPrices(name, "", f"it is no TOML: {error}") from None
    except ValidationError as error:
        field, problem = problem_of(error, PriceTable)
        raise InvalidPrices(name, field, problem) from None
