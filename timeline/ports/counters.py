"""What counts tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class TokenCounter(Protocol):
    """Counts the tokens of a text. Counting never fails: special tokens are ordinary text here."""

    @property
    def name(self) -> str:
        """The name that is stored beside every count, such as ``o200k_base``."""
        ...

    def count(self, text: str, /) -> int:
        """Count one text's tokens."""
        ...

    def count_many(self, texts: Sequence[str], /) -> list[int]:
        """Count many texts, on several cores where that helps."""
        ...

    def truncate(self, text: str, tokens: int, /) -> str:
        """Return the longest prefix of a text, at a character boundary, that counts at most ``tokens``."""
        ...


def ratio_of(counter: object) -> float:
    """Return how many tokens a request's counter counts for one token of the policy; 1 unless counts are calibrated."""
    ratio = getattr(counter, "ratio", 1.0)
    return ratio if isinstance(ratio, float) and ratio > 0 else 1.0
