"""The limits of models, as dated data: context windows, longest answers, and the tokenizer that counts for them.

The packaged table is `limits.toml`; a file of the same form overrides it, and a single figure overrides both. An entry
matches a model's name with any provider or variant written around it. A provider's row has the limit of its models
without an entry, and the trigger of all its models. Limits are looked up when a policy is made; no render looks them up
again.
"""

from __future__ import annotations

import os
from datetime import date as Date  # noqa: N812 - the class beside a field of its name; pydantic reads the annotation
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pydantic import Field

from timeline.databases import read_text
from timeline.errors import InvalidArgument, InvalidLimits
from timeline.frozen import Frozen
from timeline.policy.model_names import ahead_of, fit
from timeline.policy.reading import read_table, unreadable
from timeline.policy.text import nearest

if TYPE_CHECKING:
    from os import PathLike

LIMITS_VARIABLE: Final = "TIMELINE_LIMITS"
"""Environment variable that names a file with limits, which override the packaged ones."""
OTHER_TOKENIZER_MARGIN: Final = 0.1
"""Share added to the count for a model with another tokenizer (prune-then-summarize design, gap 6)."""


Tokenizer: TypeAlias = Literal["o200k_base", "cl100k_base", "other"]


class ModelLimits(Frozen):
    """The limits of a model, in its own tokens.

    Attributes:
        models: beginnings of the names of the models.
        context: the whole window.
        max_input: the largest request, where the provider refuses requests smaller than the window.
        max_output: the longest answer; None where it is unknown.
        long: the window that a beta flag of the provider opens; None where there is none.
        trigger: share above which a render compacts; None leaves it to the policy.
        tokenizer: the vocabulary that counts exactly, or ``other`` where the tokenizer is not public.
        ratio: of another tokenizer, its tokens for one of ``o200k_base``, at most; None where it is unknown.
        date, source: when and where the figures were read.
    """

    models: tuple[str, ...] = ()
    context: int = Field(default=80_000, ge=1_000)
    max_input: int | None = Field(default=None, ge=1_000)
    max_output: int | None = Field(default=None, ge=1)
    long: int | None = Field(default=None, ge=1_000)
    trigger: float | None = Field(default=None, gt=0, le=1)
    tokenizer: Tokenizer = "other"
    ratio: float | None = Field(default=None, ge=0.7, le=2)
    date: Date | None = None
    source: str = ""

    @property
    def counter(self) -> Literal["o200k_base", "cl100k_base"]:
        """The vocabulary to count with."""
        return "o200k_base" if self.tokenizer == "other" else self.tokenizer

    @property
    def margin(self) -> float:
        """The share to add to a count: a tenth where the tokenizer is not public."""
        return OTHER_TOKENIZER_MARGIN if self.tokenizer == "other" else 0.0

    @property
    def first_ratio(self) -> float:
        """The ratio of calibrated counts before any usage was reported: what the tokenizer counts at most."""
        return 1 + self.margin if self.ratio is None or self.tokenizer != "other" else self.ratio

    def opened(self) -> ModelLimits:
        """Return these limits with the long window, where the model has one."""
        return self if self.long is None else self.model_copy(update={"context": self.long, "max_input": None})

    def room(self, output_reserve: int) -> int:
        """Return the context limit for a policy that keeps ``output_reserve`` tokens free for the answer."""
        return self.context if self.max_input is None else min(self.context, self.max_input + output_reserve)


class ProviderLimits(Frozen):
    """The figures of a provider, for the models that it serves.

    Attributes:
        names: what is written for the provider ahead of a model's name: ``groq`` in ``groq/kimi-k2``.
        models: beginnings of the names of its models where no provider is written ahead.
        presets: the presets that the row is for; by default every policy.
        context: the window of a model without an entry of its own; by default the policy's own limit.
        max_output: the longest answer of such a model; None where it is unknown.
        tokenizer: the vocabulary that counts such a model exactly, or ``other`` where the tokenizer is not public.
        trigger: share above which a render compacts, for all its models; None leaves it to the policy.
        ratio: of the tokenizer of its models, for all of them that have none of their own.
        date, source: when and where the figures were read.
    """

    names: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()
    context: int | None = Field(default=None, ge=1_000)
    max_output: int | None = Field(default=None, ge=1)
    tokenizer: Tokenizer = "other"
    trigger: float | None = Field(default=None, gt=0, le=1)
    ratio: float | None = Field(default=None, ge=0.7, le=2)
    date: Date | None = None
    source: str = ""

    def matches(self, model: str) -> tuple[int, int]:
        """Return how well the row fits a model's name: the outermost name ahead goes before beginnings."""
        ahead = ahead_of(model)
        places = (len(ahead) - place for place, name in enumerate(ahead) if name in self.names)
        return max(places, default=0), fit(model, self.models)


_SHARED: Final = {"context", "max_output", "tokenizer", "date", "source"}
"""The figures of a provider's row that a model without an entry has."""


class LimitsTable(Frozen):
    """A file of limits."""

    limits: tuple[ModelLimits, ...] = ()
    providers: tuple[ProviderLimits, ...] = ()

    def find(self, model: str, preset: str) -> ModelLimits | None:
        """Return the limits of the longest entry that the model's name begins with, or those of its provider."""
        best = max(self.limits, key=lambda limits: fit(model, limits.models), default=None)
        if best is not None and fit(model, best.models):
            return best
        row = self.provider(model, preset)
        if row is None or row.context is None:
            return None
        return ModelLimits.model_validate(row.model_dump(include=_SHARED))

    def provider(self, model: str, preset: str) -> ProviderLimits | None:
        """Return the row of the provider of a model: one for the preset goes before one for every policy."""
        rows = [row for row in self.providers if any(row.matches(model)) and (not row.presets or preset in row.presets)]
        return max(rows, key=lambda row: (bool(row.presets), row.matches(model)), default=None)


OURS: Final = ModelLimits()
"""The limits of an unknown model, unless a policy has its own default."""


def limits_of(
    model: str,
    *,
    file: str | PathLike[str] | None = None,
    default: ModelLimits = OURS,
    context: int | None = None,
    max_output: int | None = None,
    preset: str = "",
) -> ModelLimits:
    """Return the limits of a model.

    Args:
        model: its name, with or without a provider in front (``openai/gpt-4o``, ``anthropic:claude-opus-5``).
        file: limits that override those of the file that TIMELINE_LIMITS names, which override the packaged ones.
        default: the limits of an unknown model.
        context: overrides the window.
        max_output: overrides the longest answer.
        preset: takes the providers' figures that are for this preset, too.

    Raises:
        InvalidArgument: ``model`` is not a name.
        InvalidLimits: a file cannot be read, or an entry of it does not hold.
    """
    if not isinstance(model, str):
        raise InvalidArgument("model", f"must be a model's name, such as 'gpt-4o', not of type {type(model).__name__}")
    tables = _tables(file)
    found = next((limits for table in tables if (limits := table.find(model, preset)) is not None), default)
    if found.trigger is None:
        rows = (row for table in tables if (row := table.provider(model, preset)) is not None)
        found = found.model_copy(update={"trigger": next((row.trigger for row in rows if row.trigger), None)})
    if found.ratio is None:
        rows = (row for table in tables if (row := table.provider(model, preset)) is not None)
        found = found.model_copy(update={"ratio": next((row.ratio for row in rows if row.ratio), None)})
    if context is not None:
        found = found.model_copy(update={"context": context, "max_input": None})
    return found if max_output is None else found.model_copy(update={"max_output": max_output})


def unknown_model(model: str, preset: str) -> str | None:
    """Return, of a model that no table has, a sentence which says so and names the nearest that one has.

    Returns:
        None where its limits are known.

    Raises:
        InvalidLimits: the file that TIMELINE_LIMITS names cannot be used.
    """
    tables = _tables()
    if any(table.find(model, preset) is not None for table in tables):
        return None
    starts = {start for table in tables for limits in table.limits for start in limits.models}
    return f"No limits are known for the model {model!r}{nearest(model, starts)}."


def _tables(file: str | PathLike[str] | None = None) -> tuple[LimitsTable, ...]:
    named = (file, os.environ.get(LIMITS_VARIABLE))
    return (*(read_limits(name) for name in named if name), packaged_limits())


def own_limits(model: str, preset: str) -> ModelLimits | None:
    """Return what the file that TIMELINE_LIMITS names has for a model under a preset; None without such a file or row.

    Raises:
        InvalidLimits: the file cannot be read, or an entry of it does not hold.
    """
    named = os.environ.get(LIMITS_VARIABLE)
    if not named:
        return None
    table = read_limits(named)
    found, row = table.find(model, preset), table.provider(model, preset)
    if row is None or row.trigger is None or (found is not None and found.trigger is not None):
        return found
    return (found or ModelLimits()).model_copy(update={"trigger": row.trigger})


@cache
def packaged_limits() -> LimitsTable:
    """Return the table that comes with the library."""
    resource = files(__package__) / "limits.toml"
    return read_table(LimitsTable, resource.read_text(encoding="utf-8"), partial(InvalidLimits, resource.name))


def read_limits(file: str | PathLike[str]) -> LimitsTable:
    """Read a file of limits.

    Raises:
        InvalidLimits: it cannot be read, or an entry of it does not hold.
    """
    try:
        text = read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidLimits(str(file), "", unreadable(error)) from None
    return read_table(LimitsTable, text, partial(InvalidLimits, str(file)))
