"""A counter in the provider's tokens, for a replay: its summaries and replacements are measured as its blocks are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

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
