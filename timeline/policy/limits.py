"""The limits of models, as dated data: context windows, longest answers, and the tokenizer that counts for them.

The packaged table is `limits.toml`; a file of the same form overrides it, and a single figure overrides both. An entry
matches a model's name with any provider or variant written around it. Nothing is looked up while a context is
made: a policy holds the figures that were found when it was made.
"""

from __future__ import annotations

import os
import re
from datetime import date as Date  # noqa: N812 - the class beside a field of its name; pydantic reads the annotation
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field, ValidationError

from timeline.databases import read_text
from timeline.errors import InvalidLimits
from timeline.frozen import Frozen
from timeline.policy.reading import InvalidToml, read_toml
from timeline.policy.text import problem_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike


_AHEAD: Final = re.compile(r"(?:.*/)?(?:ft:)?(?:[a-z-]+\.)*(?=[a-z])")
"""Prefixes that a model's name may have: ``openai/``, ``openrouter/anthropic/``, ``us.anthropic.``, ``ft:``."""
_AFTER: Final = ("", "-", "@", ":", "[")
"""Suffixes that still name the same model: none, or a variant."""


def fit(model: str, starts: Iterable[str]) -> int:
    """Return the length of the longest of ``starts`` that a model's name begins with; 0 where it begins with none."""
    names = {model.lower(), _AHEAD.sub("", model.lower(), count=1)}
    return max((len(start) for start in starts if any(_begins(name, start.lower()) for name in names)), default=0)


def _begins(name: str, start: str) -> bool:
    return name.startswith(start) and name[len(start) : len(start) + 1] in _AFTER


LIMITS_VARIABLE: Final = "TIMELINE_LIMITS"
"""Environment variable that names a file with limits, which override the packaged ones."""
OTHER_TOKENIZER_MARGIN: Final = 0.1
"""Share added to the count for a model with another tokenizer (prune-then-summarize design, gap 6)."""


class ModelLimits(Frozen):
    """The limits of a model, in its own tokens.

    Attributes:
        models: beginnings of the names of the models.
        context: the whole window.
        max_input: the largest request, where the provider refuses requests smaller than the window.
        max_output: the longest answer; None where it is unknown.
        long: the window that a beta flag of the provider opens; None where there is none.
        tokenizer: the vocabulary that counts exactly, or ``other`` where the tokenizer is not public.
        date, source: when and where the figures were read.
    """

    models: tuple[str, ...] = ()
    context: int = Field(default=80_000, ge=1_000)
    max_input: int | None = Field(default=None, ge=1_000)
    max_output: int | None = Field(default=None, ge=1)
    long: int | None = Field(default=None, ge=1_000)
    tokenizer: Literal["o200k_base", "cl100k_base", "other"] = "other"
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

    def opened(self) -> ModelLimits:
        """Return these limits with the long window, where the model has one."""
        return self if self.long is None else self.model_copy(update={"context": self.long, "max_input": None})

    def room(self, output_reserve: int) -> int:
        """Return the context limit for a policy that keeps ``output_reserve`` tokens free for the answer."""
        return self.context if self.max_input is None else min(self.context, self.max_input + output_reserve)


class LimitsTable(Frozen):
    """A file of limits."""

    limits: tuple[ModelLimits, ...] = ()

    def find(self, model: str) -> ModelLimits | None:
        """Return the limits of the longest entry that the model's name begins with, with or without its provider."""
        best = max(self.limits, key=lambda limits: fit(model, limits.models), default=None)
        return best if best is not None and fit(model, best.models) else None


OURS: Final = ModelLimits()
"""The limits of an unknown model, unless a policy has its own default."""


def limits_of(
    model: str,
    *,
    file: str | PathLike[str] | None = None,
    default: ModelLimits = OURS,
    context: int | None = None,
    max_output: int | None = None,
) -> ModelLimits:
    """Return the limits of a model.

    Args:
        model: its name, with or without a provider in front (``openai/gpt-4o``, ``gpt-4o-2024-08-06``).
        file: limits that override those of the file that TIMELINE_LIMITS names, which override the packaged ones.
        default: the limits of an unknown model.
        context: overrides the window.
        max_output: overrides the longest answer.

    Raises:
        InvalidLimits: a file cannot be read, or an entry of it does not hold.
    """
    named = (file, os.environ.get(LIMITS_VARIABLE))
    tables = (*(read_limits(name) for name in named if name), packaged_limits())
    found = next((limits for table in tables if (limits := table.find(model)) is not None), default)
    if context is not None:
        found = found.model_copy(update={"context": context, "max_input": None})
    return found if max_output is None else found.model_copy(update={"max_output": max_output})


@cache
def packaged_limits() -> LimitsTable:
    """Return the table that comes with the library."""
    resource = files(__package__) / "limits.toml"
    return _parsed(resource.read_text(encoding="utf-8"), resource.name)


def read_limits(file: str | PathLike[str]) -> LimitsTable:
    """Read a file of limits.

    Raises:
        InvalidLimits: it cannot be read, or an entry of it does not hold.
    """
    try:
        text = read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise InvalidLimits(str(file), "", f"it cannot be read: {reason}") from None
    return _parsed(text, str(file))


def _parsed(text: str, name: str) -> LimitsTable:
    try:
        return LimitsTable.model_validate(read_toml(text))
    except InvalidToml as error:
        raise InvalidLimits(name, "", str(error)) from None
    except ValidationError as error:
        field, problem = problem_of(error, LimitsTable)
        raise InvalidLimits(name, field, problem) from None
