"""Count the first texts of a process with a vocabulary alone, exactly, before an engine is worth its start.

tiktoken takes 0.3 s to read the vocabulary and to make its tables, and toktok 0.4 to 0.7 s to start. A process that
opens a conversation, appends a prompt and renders counts some thousand characters: `re` splits them and Python merges
them long before an engine could begin. Since `re` knows no classes of Unicode, it splits a copy of the text in which
one character of each class stands for the others.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final
from unicodedata import category

from timeline.tokens.counter import TiktokenCounter, ToktokCounter
from timeline.tokens.vocabulary import MARK, OTHER_LETTER, VOCABULARIES, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.ports import TokenCounter

WORTH_AN_ENGINE: Final = 100_000
"""Characters in all that are counted here: Python takes 25 ms for them, an eighth of what starting tiktoken takes."""
WORTH_TOKTOK: Final = 5_000_000
"""Characters in all that toktok, which counts three times as fast, takes as long for as tiktoken: it starts later."""
_MERGED: Final = 4
"""A piece that is merged costs its squared length, divided by this, in characters."""
_UNSETTLED: Final = frozenset({"Cn", "Cs"})
"""Classes that an engine or a repair decides: characters that this Python does not know, and surrogates."""


class FirstCounter:
    """Exact counts: of the first texts by the vocabulary alone, of all others by an engine.

    The engine is the extra ``fast`` where that is installed, otherwise tiktoken. It starts with the first text that
    has characters unknown to this Python, or that exceeds what is worth counting without it, and then counts
    everything.

    Args:
        name: ``o200k_base`` or ``cl100k_base``; another name is a `KeyError`.
    """

    def __init__(self, name: str) -> None:
        self._vocabulary = VOCABULARIES[name]
        self._few: _FewTexts | None = None
        self._engine: TokenCounter | None = None

    @property
    def name(self) -> str:
        """The encoding's name: the counts are those of tiktoken's ids."""
        return self._vocabulary.name

    @property
    def started(self) -> bool:
        """Whether the engine runs: the next text may start it otherwise."""
        return self._engine is not None

    @property
    def engine(self) -> TokenCounter:
        """The engine; the first access starts it."""
        if self._engine is None:
            self._few = None
            self._engine = _quickest(self.name)
        return self._engine

    def start(self, characters: int | None) -> None:
        """Start the engine that counts so many characters in the least time, its start included; of few, none.

        Args:
            characters: about how many are to come; None for more than a few million.
        """
        if self._engine is None and (characters is None or characters > WORTH_AN_ENGINE):
            many = characters is None or characters > WORTH_TOKTOK
            self._few, self._engine = None, _quickest(self.name) if many else TiktokenCounter(self.name)
            self._engine.count("")  # toktok makes its tables with the first text

    def count(self, text: str) -> int:
        """Count one text's tokens."""
        if self._engine is not None:
            return self._engine.count(text)
        if len(text) <= WORTH_AN_ENGINE:
            few = self._few = self._few or _FewTexts(self._vocabulary)
            counted = few.count(text)
            if counted is not None:
                return counted
        return self.engine.count(text)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count many texts."""
        if self._engine is not None or sum(map(len, texts)) > WORTH_AN_ENGINE:
            return self.engine.count_many(texts)
        return [self.count(text) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """Return the longest prefix of the repaired text that counts at most ``tokens``."""
        return self.engine.truncate(text, tokens)


def _quickest(name: str) -> TokenCounter:
    """Return the engine that counts a character in the least time."""
    try:
        return ToktokCounter(name)
    except ImportError:
        return TiktokenCounter(name)


class _FewTexts:
    """Counts texts until they are too many."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._rank = vocabulary.pages().rank
        self._pattern = vocabulary.plain_pattern()
        self._left = WORTH_AN_ENGINE

    def count(self, text: str) -> int | None:
        """Count one text's tokens; None where an engine is to do it."""
        self._left -= len(text)
        if self._left < 0 or not (text.isascii() or _UNSETTLED.isdisjoint(map(category, set(text)))):
            return None
        pieces = self._pieces(text)
        others = [piece for piece in pieces if self._rank(piece) is None]
        self._left -= sum(len(piece) ** 2 for piece in others) // _MERGED
        if self._left < 0:
            return None
        return len(pieces) - len(others) + sum(merged(piece, self._rank) for piece in others)

    def _pieces(self, text: str) -> list[bytes]:
        if text.isascii():
            return [piece.encode() for piece in self._pattern.findall(text)]
        alike = text.translate(_ALIKE)
        return [text[found.start() : found.end()].encode() for found in self._pattern.finditer(alike)]


class _Alike(dict[int, str]):
    """For each character one that the patterns treat alike, by its class; of ASCII the character itself."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = alike = character if code < _ASCII else _class_of(character)
        return alike


_ASCII: Final = 128
_LONG_S: Final = "\u017f"
"""The one character beyond ASCII that is a letter of a contraction, where case is ignored: an s."""
_BY_CLASS: Final = {"Lu": "B", "Lt": "B", "Ll": "b", "Lm": OTHER_LETTER, "Lo": OTHER_LETTER}
_ALIKE: Final = _Alike()


def _class_of(character: str) -> str:
    """Return what replaces a character beyond ASCII: no letter of a contraction, no line break, no slash."""
    class_ = category(character)
    if character == _LONG_S:
        return "s"
    if character.isspace():
        return "\v"
    return _BY_CLASS.get(class_) or {"M": MARK, "N": "0"}.get(class_[0], "!")


def merged(piece: bytes, rank_of: Callable[[bytes], int | None]) -> int:
    """Return how many tokens a piece becomes: the pair that makes the token of lowest rank merges first."""
    parts = [bytes((byte,)) for byte in piece]
    while True:
        found = [(rank, at) for at, (a, b) in enumerate(pairwise(parts)) if (rank := rank_of(a + b)) is not None]
        if not found:
            return len(parts)
        _, at = min(found)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
