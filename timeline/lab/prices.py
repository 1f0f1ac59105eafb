"""The price model: what providers charge for a prompt, and which prefixes they keep between calls. Dated data.

The packaged table is `caches.toml`; a file of the same form takes precedence over it. Costs have two units: US dollars,
and base tokens, where 1 is the cost of one token of uncached input.
"""

from __future__ import annotations

from datetime import date as Date  # noqa: N812 - the class beside a field of its name; pydantic reads the annotation
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field, model_validator

from timeline.databases import read_text
from timeline.errors import InvalidPrices
from timeline.frozen import Frozen
from timeline.policy.model_names import fit
from timeline.policy.reading import read_table, unreadable

if TYPE_CHECKING:
    from os import PathLike

    from timeline.usage import Usage

_MILLION: Final = 1_000_000


class CacheRule(Frozen):
    """How a provider keeps the prefixes of prompts.

    Attributes:
        name: the name that prices refer to.
        match: ``markers``: the provider keeps the prefix before each marker, and finds it again from a marker.
            ``prefix``: the provider finds the longest common prefix by itself.
        markers: the most markers of one request.
        lookback: how many blocks before a marker are searched for a kept prefix; None for any number.
        minimum: tokens of the shortest prefix that is kept.
        granularity: tokens; a prefix is read in steps of this size.
        short, long: seconds that a prefix is kept after its last use; ``long`` if the request asks for the longer time.
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
    """The price of a model's tokens, in US dollars a million.

    Attributes:
        models: beginnings of the model names that it applies to.
        cache: name of the provider's cache rule.
        minimum: tokens of the shortest prefix that is kept; None for the rule's own.
        input: tokens of uncached input.
        read: tokens read from the cache.
        write, write_long: tokens written to the cache, for the short and the long time; None for the price of
            ``input``, and of ``write``.
        output: tokens of the answer.
        tier: above this many tokens of input, all input of a call costs ``tier_input`` times as much, and its output
            ``tier_output`` times; None if there is no tier.
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
        """Return the price of a token written to the cache."""
        short = self.input if self.write is None else self.write
        return short if not long or self.write_long is None else self.write_long


class Price(Frozen):
    """A model's price together with its cache rule.

    ``known`` is False if the model is in no table; `UNKNOWN` is then used in its place.
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
        """Return the cost of a call in base tokens: 1 is the cost of one token of uncached input.

        Args:
            read: tokens read from the cache.
            written: tokens written to the cache.
            uncached: the other tokens of input.
            output: tokens of the answer.
            written_long: how many of the written tokens are for the long time.
        """
        price = self.model
        above = price.tier is not None and read + written + uncached > price.tier
        write = (written - written_long) * price.written(long=False) + written_long * price.written(long=True)
        asked = read * price.read + write + uncached * price.input
        answered = output * price.output
        return (
            asked * (price.tier_input if above else 1) + answered * (price.tier_output if above else 1)
        ) / price.input

    def units_of(self, usage: Usage) -> float:
        """Return the cost of a call in base tokens by what its provider reported."""
        return self.units(
            read=usage.cache_read_tokens,
            written=usage.cache_write_tokens,
            written_long=usage.cache_write_1h_tokens,
            uncached=usage.input_tokens,
            output=usage.output_tokens,
        )

    def money(self, units: float) -> float:
        """Return the price of base tokens in US dollars."""
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
        """Return the union of two tables; entries of this one take precedence."""
        own = {rule.name for rule in self.caches}
        kept = tuple(rule for rule in other.caches if rule.name not in own)
        return PriceTable(caches=(*self.caches, *kept), prices=(*self.prices, *other.prices))

    def price_of(self, model: str) -> Price:
        """Return the price of a model, by the longest matching beginning of its name; the first of equals.

        A model without an entry has the price `UNKNOWN`.
        """
        best = max(self.prices, key=lambda price: fit(model, price.models), default=UNKNOWN)
        known = fit(model, best.models) > 0
        price = best if known else UNKNOWN
        rule = next((rule for rule in self.caches if rule.name == price.cache), _UNKNOWN_RULE)
        return Price(model=price, rule=rule, known=known)


UNKNOWN: Final = ModelPrice(
    cache="anthropic", input=1.0, read=0.1, write=1.25, write_long=2.0, output=5.0, source="the commonest ratios"
)
"""The price of a model that is in no table: the usual ratios, at a dollar a million; its dollars mean nothing."""
_UNKNOWN_RULE: Final = CacheRule(name="anthropic", lookback=20)


@cache
def packaged_prices() -> PriceTable:
    """Return the table that comes with the library."""
    resource = files(__package__) / "caches.toml"
    return read_table(PriceTable, resource.read_text(encoding="utf-8"), partial(InvalidPrices, resource.name))


def read_prices(file: str | PathLike[str] | None = None) -> PriceTable:
    """Return the packaged table, with the entries of a file taking precedence if one is named.

    Raises:
        InvalidPrices: the file cannot be read, or an entry is not valid or names an unknown cache.
    """
    if file is None:
        return packaged_prices()
    try:
        text = read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPrices(str(file), "", unreadable(error)) from None
    table = read_table(PriceTable, text, partial(InvalidPrices, str(file))).over(packaged_prices())
    known = {rule.name for rule in table.caches}
    if lost := next((price.cache for price in table.prices if price.cache not in known), None):
        raise InvalidPrices(str(file), "cache", f"there is no cache {lost!r}; there are {', '.join(sorted(known))}")
    return table
