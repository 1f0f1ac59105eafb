"""Find the requests of users that a text says word for word: a record need not repeat them; a hide loses the others."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final, cast

from timeline.facts.requests import Asked, Manner, asked_in, is_part

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from timeline.blocks import Block
    from timeline.facts.tool_use import CallFields
    from timeline.queries import FactEntry, FactRecord


_FEW: Final = 12
"""Most characters of a request that counts as said only where spaces are around it."""


def searchable_line(texts: Iterable[str]) -> str:
    """Return texts as one line between two spaces, in which a sentence is found however it was wrapped."""
    return f" {' '.join(chain.from_iterable(text.split() for text in texts))} "


def says_all(context: str, block: Block, call: CallFields | None = None) -> bool:
    """Return whether a text, as `searchable_line` makes it, says word for word all that a user says in a block.

    Args:
        context: the text.
        block: the block.
        call: the call that a result answers; None where it is not known.
    """
    return searchable_line([block.text]) in context or all(_says(context, asked) for asked in asked_in(block, call))


def is_said(entry: FactEntry, text: str) -> bool:
    """Return whether a text, as `searchable_line` makes it, says a request word for word."""
    return _says(text, asked_by(entry))


def asked_by(entry: FactEntry) -> Asked:
    """Return the request of an entry."""
    return Asked(entry.subject, cast("Manner", entry.detail))


def _says(context: str, asked: Asked) -> bool:
    words = f" {asked.text} " if len(asked.text) <= _FEW else asked.text  # "no" is in many words
    return words in context and not is_part(asked)


def without_said(record: FactRecord, text: str, whole: Collection[int]) -> FactRecord:
    """Return a record without the requests that a text says word for word, and without those of prompts shown whole."""
    asked = record.done.get("request", ())
    left = tuple(entry for entry in asked if not is_said(entry, text) and not _all_in(entry.versions, whole))
    if len(left) == len(asked):
        return record
    counts = {**record.counts, "request": record.counts["request"] - len(asked) + len(left)}
    return replace(record, done={**record.done, "request": left}, counts=counts)


def _all_in(versions: Sequence[int], whole: Collection[int]) -> bool:
    return bool(versions) and all(version in whole for version in versions)
