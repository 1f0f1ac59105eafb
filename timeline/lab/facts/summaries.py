"""Judge the summaries of a run: what they hold of what later answers used, and what they hold that nobody said.

A summary is judged by its range alone: the facts that a block of it mentioned, and that the answer right behind the
compaction or a later one needs. What the summarizer wrote and the record behind it are counted apart, since the record
is the same for every summarizer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from timeline.blocks import ToolCall
from timeline.frozen import compact_json
from timeline.lab.facts.needs import block_strings
from timeline.lab.facts.strings import facts_in

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.events import CompactionCompleted
    from timeline.lab.facts.needs import Needs
    from timeline.ports import TokenCounter


class Judged(NamedTuple):
    """The figures of some summaries.

    Attributes:
        summary_facts: facts of their ranges that later answers used.
        summary_held: how many of these they hold, the record behind them included.
        summary_said: how many of these the summarizer's own text holds.
        summary_tokens: their tokens, the record included.
        summary_said_tokens: tokens of the summarizer's own text.
        summary_invented: facts of that text that no block of the range holds as a whole: half of a name is another one.
    """

    summary_facts: int = 0
    summary_held: int = 0
    summary_said: int = 0
    summary_tokens: int = 0
    summary_said_tokens: int = 0
    summary_invented: int = 0


class SummaryJudge:
    """Follows a replay, and judges the summaries that it writes.

    Args:
        needs: of the recording.
        counter: counts the texts of summarizers.
    """

    def __init__(self, needs: Needs, counter: TokenCounter) -> None:
        self._needs, self._counter = needs, counter
        self._version: dict[int, int] = {}
        self._texts: dict[int, list[str]] = {}

    def take(self, place: int, version: int, block: Block) -> None:
        """Note a block of the recording: its place there, and its version in the log.

        Summaries may print its path, and the names of its arguments.
        """
        self._version[place] = version
        keys = [compact_json(block.arguments)] if isinstance(block, ToolCall) else []
        self._texts[place] = [*block_strings(block), *keys, block.path]

    def judge(self, done: CompactionCompleted, position: int) -> Judged:
        """Judge the summary of a compaction right before the call at a place of the recording."""
        needs, held = self._needs, self._needs.held
        covered = {place for place, version in self._version.items() if version in done.covers}
        replaced = {place for place in covered if self._version[place] not in done.carried}
        used = {need.fact for call, of_call in needs.of_call.items() if call >= position for need in of_call}
        wanted = {fact for fact in used if not replaced.isdisjoint(needs.mentions[fact])}
        summary = f"{done.parts.history}\n{done.parts.turn_prefix}".strip()
        everything = "\n".join(text for place in sorted(covered) for text in self._texts[place])
        return Judged(
            summary_facts=len(wanted),
            summary_held=len(wanted & held.within(done.block.text)),
            summary_said=len(wanted & held.within(summary)),
            summary_tokens=done.tokens,
            summary_said_tokens=self._counter.count(summary),
            summary_invented=sum(_is_invented(fact, summary, everything) for fact in facts_in(summary)),
        )


def _is_invented(fact: str, summary: str, text: str) -> bool:
    """Return whether a text has a fact of a summary nowhere as a whole, where no letter or digit goes on with it.

    The letter of a JSON escape in front is no part of a name; and a summary may say itself that it leaves the end out.
    """
    if fact not in text or f"{fact}…" in summary:
        return fact not in text
    begin, end = r"(?:(?<!\w)|(?<=\\[nrt])|(?!\w))", r"(?:(?!\w)|(?<!\w))"
    return re.search(f"{begin}{re.escape(fact)}{end}", text) is None
