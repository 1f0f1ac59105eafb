"""The log of a replay: a fold in memory of the recording's events and the policy's decisions.

Its counter counts in the provider's tokens, so that summaries and replacements are measured like recorded blocks.
"""

from __future__ import annotations

from copy import copy
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from timeline.events import CompactionCompleted, ContextRendered, ConversationOpened, appended_block, block_appended
from timeline.facts.full_record import MOST
from timeline.facts.of_items import WindowFacts
from timeline.facts.record import record_of
from timeline.fold.fold import Fold
from timeline.log.dry_run import FoldedLog
from timeline.log.first_message import FirstMessage
from timeline.projection.project import PROJECTION, Projector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import Covers, Payload
    from timeline.fold.window import Item
    from timeline.lab.alike import Alike
    from timeline.lab.shown import ShownContext
    from timeline.ports import TokenCounter
    from timeline.projection.project import Form
    from timeline.queries import FactRecord
    from timeline.wire.neutral import Entry, NeutralContext


FIXED_PART: Final = "[system prompt and tools of the recorded client]"
"""The text in place of system prompt and tools, which no recording has: its bytes never change."""


_REMEMBERED: Final = 8_192
"""Short texts whose counts are remembered: what takes the place of a block is the same under many policies."""
_SHORT: Final = 1_000
"""Characters of such a text."""


@cache
def _remembering(count: Callable[[str], int]) -> Callable[[str], int]:
    """Return a vocabulary's ``count``, which remembers the newest texts in this process."""
    return lru_cache(maxsize=_REMEMBERED)(count)


class ProviderCounter:
    """Counts like the provider of a recording, by the measured ratio.

    Args:
        inner: counts with one of our vocabularies.
        ratio: the provider's tokens for one token of ``inner``.
        fixed: the tokens of `FIXED_PART`.
    """

    def __init__(self, inner: TokenCounter, ratio: float, fixed: int) -> None:
        self._inner, self._ratio, self._fixed = inner, ratio, fixed
        self._known = _remembering(inner.count)

    @property
    def name(self) -> str:
        """The name of the vocabulary."""
        return self._inner.name

    def count(self, text: str) -> int:
        """Count one text's tokens."""
        if text == FIXED_PART:
            return self._fixed
        return round((self._known(text) if len(text) <= _SHORT else self._inner.count(text)) * self._ratio)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count many texts."""
        return [round(count * self._ratio) for count in self._inner.count_many(texts)]

    def truncate(self, text: str, tokens: int) -> str:
        """Return the longest prefix of a text with at most ``tokens`` tokens."""
        return self._inner.truncate(text, int(tokens / self._ratio))


class UnhashedProjector(Projector):
    """Projects as usual, without fingerprints: a replay compares its contexts, and keeps none.

    Args:
        alike: has what other replays of the recording projected.
    """

    def __init__(self, alike: Alike) -> None:
        super().__init__()
        self._alike = alike

    def entries_of(self, item: Item, form: Form) -> tuple[Entry, ...]:
        """Return the entries of one item."""
        return self._alike.entries(item, form, super().entries_of)

    def fingerprint(self, neutral: NeutralContext) -> str:
        """Return an empty text."""
        del neutral
        return ""


class ReplayLog(FoldedLog):
    """The log of a replay: a fold, its paths, and the decisions since the last call of `decided`.

    Args:
        conversation: its id.
        at: time of its opening.
        alike: has the blocks of other replays of the recording.
    """

    def __init__(self, conversation: str, at: datetime, alike: Alike) -> None:
        super().__init__(Fold(conversation), at)
        self._alike = alike
        self._first_message = FirstMessage()
        self._decided: list[Payload] = []
        self._sent: ShownContext | None = None
        self._fold.apply(1, at, ConversationOpened())

    def copy(self) -> ReplayLog:
        """Return an independent copy of a log in which nothing was decided: it has the facts of no covered block."""
        twin = copy(self)
        twin._fold, twin._paths = self._fold.copy(), {*self._paths}  # noqa: SLF001 - of its own class
        twin._facts, twin._decided = WindowFacts(), []  # noqa: SLF001 - of its own class
        twin._first_message = copy(self._first_message)  # noqa: SLF001 - of its own class
        return twin

    def append(self, position: int, block: Block, at: datetime, tokens: int, counter: str) -> Block:
        """Append the block of an event of the recording, with its measured tokens; return it with its path."""
        avoid: set[str] = set()
        while True:
            (addressed,) = self._fold.address([(block, at)], avoid=avoid)
            if addressed.path not in self._paths or block.path:
                break
            avoid.add(addressed.path)
        addressed = self._alike.block(position, addressed)
        self._take(addressed)
        self._fold.apply(self._fold.version + 1, at, block_appended(addressed, tokens, counter))
        return addressed

    def past(self, payload: Payload, at: datetime) -> None:
        """Append an event as a log has it, in the log's order: a decision too, which covers or hides what it did."""
        if (block := appended_block(payload)) is not None:
            self._take(block)
        if isinstance(payload, CompactionCompleted):
            self._facts.cover(payload, self._fold.window.items)
        self._fold.apply(self._fold.version + 1, at, payload)

    def _take(self, block: Block) -> None:
        self._paths.add(block.path)
        self._first_message.take(self._fold.version + 1, block)

    def note(self, payload: Payload, at: datetime) -> None:
        """Append an event that is neither block nor decision: a model call, a stage."""
        self._fold.apply(self._fold.version + 1, at, payload)

    def record(self, shown: ShownContext, at: datetime) -> None:
        """Fold what a recorded render appends, so that versions, and the addresses made of them, are a stored log's.

        Contexts are compared, not hashed: a hash of each one would make a replay cost the square of its calls.
        """
        before, self._sent = self._sent, shown
        if before is None or not _is_same(before, shown):
            rendered = ContextRendered(version=shown.window.version, projection=PROJECTION, fingerprint="", policy="")
            self.note(rendered, at)

    def everything(self, covers: Covers) -> FactRecord:
        """Return the whole record of what was done and named in some versions, as a read of their summary shows it."""
        return record_of(self._facts.within(covers, self._fold.window.items), MOST)

    async def first_prompt(self) -> str | None:
        """Return what the user's first message says."""
        return self._first_message.text

    async def commit(
        self,
        payloads: Sequence[Payload],
        *,
        at: datetime | None,
        expected: int | None = None,
        values: Mapping[str, str] | None = None,
        snapshot: bool = False,
    ) -> int:
        """Fold the decisions, and keep them for `decided`."""
        self._decided += payloads
        return await super().commit(payloads, at=at, expected=expected, values=values, snapshot=snapshot)

    def decided(self) -> list[Payload]:
        """Return the decisions since the last call."""
        decided, self._decided = self._decided, []
        return decided


def _is_same(one: ShownContext, other: ShownContext) -> bool:
    """Return whether two contexts are the same; most entries of one are the very objects of the other."""
    if len(one.entries) != len(other.entries):
        return False
    return one.entries == other.entries and one.points == other.points
