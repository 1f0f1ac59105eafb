"""The log of a replay: a fold in memory of the recording's events and the policy's decisions.

Its counter counts in the provider's tokens, so that summaries and replacements are measured like recorded blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import UserPrompt
from timeline.engine.recording import context_events, is_recorded
from timeline.events import ConversationOpened, block_appended
from timeline.fold.fold import Fold
from timeline.log.dry_run import FoldedLog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import Payload
    from timeline.ports import TokenCounter
    from timeline.projection.context import RenderedContext


FIXED_PART: Final = "[system prompt and tools of the recorded client]"
"""The text in place of system prompt and tools, which no recording has: its bytes never change."""


class ProviderCounter:
    """Counts like the provider of a recording, by the measured ratio.

    Args:
        inner: counts with one of our vocabularies.
        ratio: the provider's tokens for one token of ``inner``.
        fixed: the tokens of `FIXED_PART`.
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
        """Return the longest prefix of a text with at most ``tokens`` tokens."""
        return self._inner.truncate(text, int(tokens / self._ratio))


class ReplayLog(FoldedLog):
    """The log of a replay: a fold, its paths, and the decisions since the last call of `decided`."""

    def __init__(self, conversation: str, at: datetime) -> None:
        super().__init__(Fold(conversation), at)
        self._first_prompt: str | None = None
        self._decided: list[Payload] = []
        self._fold.apply(1, at, ConversationOpened())

    def append(self, block: Block, at: datetime, tokens: int, counter: str) -> Block:
        """Append a block with its measured tokens; return it with its path."""
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
        """Append an event that is neither block nor decision: a model call, a stage."""
        self._fold.apply(self._fold.version + 1, at, payload)

    def record(self, context: RenderedContext, at: datetime) -> None:
        """Fold what a recorded render appends, so that versions, and the addresses made of them, are a stored log's."""
        known = self._fold.window.rendered
        if known is None or not is_recorded(context, known, "full"):
            for payload in context_events(context, known, "full")[0]:
                self.note(payload, at)

    async def first_prompt(self) -> str | None:
        """Return the first prompt of the conversation."""
        return self._first_prompt

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
