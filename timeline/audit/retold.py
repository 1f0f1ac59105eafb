"""Find what is left of a block's words in the successive summaries that stood for it.

The content of a covered block is not lost yet: its summary may have it, and a later summary may leave it out. Words are
compared, and not meaning: a summary that says the same in other words counts as one that lost it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from timeline.events.addresses import Address
from timeline.frozen import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from timeline.audit.block_decisions import Compaction
    from timeline.blocks import Block

_WIDE: Final = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Letters of scripts without spaces between words: each letter counts as a word."""
_WORD: Final = re.compile(rf"[{_WIDE}]|[^\W{_WIDE}]{{3,}}")
"""A word; shorter ones, such as articles, say nothing about what is left."""
_BRIDGED: Final = 2
"""Most words between two lost ones that are quoted with them, so that a sentence stays together."""
_LONGEST: Final = 500
"""Characters of what is quoted as lost."""


@dataclass(frozen=True, slots=True)
class Retold:
    """A summary that stood for a block, and what it says of it.

    Attributes:
        address: the summary's address.
        compaction_number: of the compaction that made it.
        reason: why it compacted.
        at: its time.
        before_tokens, after_tokens: of the context, before and after that compaction.
        summarizer: wrote the summary.
        words: how many of the block's words the summary has, each counted once.
        of: how many words the block has.
        lost: the parts of the block's text whose words are in every earlier summary, and not in this one. A word that
            comes back later, as some do in another matter, is not lost twice.
    """

    address: str
    compaction_number: int
    reason: str
    at: datetime
    before_tokens: int
    after_tokens: int
    summarizer: str
    words: int
    of: int
    lost: str


def retold(block: Block, compactions: Iterable[Compaction], summaries: dict[int, frozenset[str]]) -> tuple[Retold, ...]:
    """Return what each summary that stood for a block has of its words, the first summary first.

    ``summaries`` keeps the words of each summary by its version, for the next block that it stood for.
    """
    text = block.text or compact_json(block.dump().get("arguments") or {})
    words = _words(text)
    never_lost = words
    found: list[Retold] = []
    for event, made in compactions:
        if event.version not in summaries:
            summaries[event.version] = _words(made.block.text)
        kept = words & summaries[event.version]
        summary = Retold(
            address=str(Address(event.version)),
            compaction_number=made.round,
            reason=made.reason,
            at=event.at,
            before_tokens=made.before_tokens,
            after_tokens=made.after_tokens,
            summarizer=made.written_by.summarizer,
            words=len(kept),
            of=len(words),
            lost=_quoted(text, never_lost - kept),
        )
        never_lost &= kept
        found.append(summary)
    return tuple(found)


def worst(summaries: Sequence[Retold]) -> int | None:
    """Return the place of the summary that lost most of what the summary before it had; None where none lost any."""
    drops = [before.words - after.words for before, after in pairwise(summaries)]
    return drops.index(max(drops)) + 1 if any(drop > 0 for drop in drops) else None


def _words(text: str) -> frozenset[str]:
    return frozenset(map(str.casefold, _WORD.findall(text)))


def _quoted(text: str, lost: frozenset[str]) -> str:
    """Quote the parts of a text that have the lost words."""
    quotes = (" ".join(text[start:end].split()) for start, end in _runs(text, lost))
    return " … ".join(dict.fromkeys(quotes))[:_LONGEST]


def _runs(text: str, lost: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield where each lost word is first, those close to each other together."""
    start, end, between = -1, -1, 0
    left = set(lost)
    for match in _WORD.finditer(text) if left else ():
        if (word := match[0].casefold()) not in left:
            between += 1
            continue
        left.remove(word)
        if start >= 0 and between > _BRIDGED:
            yield start, end
            start = -1
        start, end, between = (match.start() if start < 0 else start), match.end(), 0
        if not left:
            break
    if start >= 0:
        yield start, end
