"""The log of a replay: a fold in memory, to which a recording's events and the policy's decisions are appended.

Its counter counts in the provider's tokens: summaries and replacements are measured as the recording's blocks are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import UserPrompt
from timeline.events import ConversationOpened, block_appended
from timeline.fold.fold import Fold
from timeline.log.dry_run import FoldedLog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import Payload
    from timeline.ports import TokenCounter


FIXED_PART: Final = "[system prompt and tools of the recorded client]"
"""Stands for what no recording holds: its bytes never change, and it counts as it was measured."""


class ProviderCounter:
    """Counts as the provider of a recording did, by the ratio that was measured.

    Args:
        inner: counts with a vocabulary of ours.
        ratio: the provider's tokens for one of those.
        fixed: what `FIXED_PART` counts.
    """

    def __init__(self, inner: TokenCounter, ratio: float, fixed: int) -> None:
        self._inner, self._ratio, self._fixed = inner, ratio, fixed

    @property
    def name(self) -> str:
        """The name of the vocabulary."""
        return self._inner.name

    def count(self, text: str) -> int:
        """Count one text's tokens."""
        return self._fixed if text == FIXED_PART else round(self._inner.count(text) * self._ratio)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count many texts."""
        return [round(count * self._ratio) for count in self._inner.count_many(texts)]

    def truncate(self, text: str, tokens: int) -> str:
        """Return the longest prefix of a text that counts at most so many tokens."""
        return self._inner.truncate(text, int(tokens / self._ratio))


class ReplayLog(FoldedLog):
    """The log of a replay: a fold, all its paths, and what was decided since it was last asked."""

    def __init__(self, conversation: str, at: datetime) -> None:
        super().__init__(Fold(conversation))
        self._first_prompt: str | None = None
        self._decided: list[Payload] = []
        self._fold.apply(1, at, ConversationOpened())

    def append(self, block: Block, at: datetime, tokens: int, counter: str) -> Block:
        """Append a block that counts so many tokens; return it with its path."""
        avoid: set[str] = set()
        while True:
            (addressed,) = self._fold.address([(block, at)], avoid=avoid)
            if addressed.path not in self._paths:
                break
            avoid.add(addressed.path)
        self._paths.add(addressed.path)
        if self._first_prompt is None and type(addressed) is UserPrompt and addressed.text.strip():
            self._first_prompt = addressed.text
        self._fold.apply(self._fold.version + 1, at, block_appended(addressed, tokens, counter))
        return addressed

    def note(self, payload: Payload, at: datetime) -> None:
        """Append what is no block and no decision: a model call, a stage."""
        self._fold.apply(self._fold.version + 1, at, payload)

    async def first_prompt(self) -> str | None:
        """Return what the conversation began with."""
        return self._first_prompt

    async def commit(
        self,
        payloads: Sequence[Payload],
        *,
        at: datetime,
        expected: int | None = None,
        values: Mapping[str, str] | None = None,
        snapshot: bool = False,
    ) -> int:
        """Fold what was decided, and remember it."""
        self._decided += payloads
        return await super().commit(payloads, at=at, expected=expected, values=values, snapshot=snapshot)

    def decided(self) -> list[Payload]:
        """Return what was decided since this was last asked."""
        decided, self._decided = self._decided, []
        return decided
