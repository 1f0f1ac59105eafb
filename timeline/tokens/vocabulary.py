"""The vocabularies that ship with the library: tiktoken itself carries none and would download them.

Each is a pack (`timeline.tokens.pages`). `timeline.tokens.pack` writes packs; the sha256 is the one that tiktoken
expects of the same vocabulary in its own base64 form, which proves that a pack is the original vocabulary.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from pkgutil import get_data
from typing import TYPE_CHECKING, Final

from timeline.tokens.pages import Pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LONGEST_TOKEN: Final = 128
"""Bytes of the longest token of both vocabularies (a run of spaces)."""
OTHER_LETTER: Final = "\u00aa"
"""Stands for all letters without case in `Vocabulary.plain_pattern`."""
MARK: Final = "\u0301"
"""Stands there for all combining marks."""
_PLAIN: Final = (
    (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", f"[A-Z{OTHER_LETTER}{MARK}]"),
    (r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", f"[a-z{OTHER_LETTER}{MARK}]"),
    (r"?\p{L}+", f"?[A-Za-z{OTHER_LETTER}]+"),
    (r"\p{N}{", "[0-9]{"),
    (r"\p{L}", f"A-Za-z{OTHER_LETTER}"),
    (r"\p{N}", "0-9"),
    ("$", r"\Z"),
)
"""What the classes of Unicode in the quick patterns become in the plain one, the longer expressions first."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A vocabulary's facts besides its tokens.

    Attributes:
        name: tiktoken's name of the encoding.
        sha256: hash of the vocabulary in tiktoken's base64 form, as `tiktoken_ext.openai_public` expects it.
        pattern: tiktoken's expression that splits a text into the pieces that are encoded one by one.
        quick_pattern: an expression that makes the same pieces in less time; see below.
        special_tokens: special tokens and their ids; tiktoken requires them, counting never uses them.
    """

    name: str
    sha256: str
    pattern: str
    quick_pattern: str
    special_tokens: Mapping[str, int]

    @property
    def pack_name(self) -> str:
        """The pack's file name inside this package."""
        return f"{self.name}.tokens"

    def pages(self) -> Pages:
        """Read the pack, to look up some tokens."""
        data = get_data(__package__, self.pack_name)  # as an import reads a module, which is what it is part of
        if data is None:
            raise FileNotFoundError(self.pack_name)
        return Pages(data)

    def ranks(self) -> dict[bytes, int]:
        """Read all tokens with their ranks, which are exactly 0 … n-1."""
        return self.pages().all()

    def plain_pattern(self) -> re.Pattern[str]:
        """Return an expression for `re`, which knows no classes of Unicode, that makes the same pieces.

        It is for texts of ASCII, `OTHER_LETTER` and `MARK`.
        """
        pattern = self.quick_pattern
        for classes, plain in _PLAIN:
            pattern = pattern.replace(classes, plain)
        return re.compile(pattern, re.ASCII)


# Patterns and special tokens are copied from tiktoken_ext.openai_public, whose functions cannot be called without
# fetching the vocabulary first; a test compares them with the installed tiktoken.
#
# Finding the pieces is most of the cost of counting. tiktoken's engine (fancy-regex) can look ahead and match
# possessively, which the faster engine below it cannot, so it tries the alternatives of such a pattern one after the
# other. It hands parts that need neither down to the faster engine, whole groups of alternatives included: in the
# quick patterns, all alternatives before the one that looks ahead are one group. A possessive part differs from a
# greedy one only where giving a character back can save a match, and there is no such place here. So both patterns
# make the same pieces; tests compare them.
_LOOKING_AHEAD: Final = r"\s+(?!\S)"
_O200K_PLAIN: Final = "|".join(  # noqa: FLY002 - one alternative a line, as tiktoken writes them
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
    )
)
O200K_BASE: Final = Vocabulary(
    name="o200k_base",
    sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    pattern=rf"{_O200K_PLAIN}|{_LOOKING_AHEAD}|\s+",
    quick_pattern=rf"(?:{_O200K_PLAIN})|{_LOOKING_AHEAD}|\s+",
    special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
)
CL100K_BASE: Final = Vocabulary(
    name="cl100k_base",
    sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    pattern="|".join(  # noqa: FLY002 - the same
        (
            r"'(?i:[sdmt]|ll|ve|re)",
            r"[^\r\n\p{L}\p{N}]?+\p{L}++",
            r"\p{N}{1,3}+",
            r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
            r"\s++$",
            r"\s*[\r\n]",
            _LOOKING_AHEAD,
            r"\s",
        )
    ),
    quick_pattern=(
        r"(?:'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n])"
        rf"|{_LOOKING_AHEAD}|\s"
    ),
    special_tokens={
        "<|endoftext|>": 100257,
        "<|fim_prefix|>": 100258,
        "<|fim_middle|>": 100259,
        "<|fim_suffix|>": 100260,
        "<|endofprompt|>": 100276,
    },
)
VOCABULARIES: Final[Mapping[str, Vocabulary]] = {v.name: v for v in (O200K_BASE, CL100K_BASE)}


def parse_tiktoken(text: bytes) -> list[bytes]:
    """Read tiktoken's own form: a line a token, base64 and rank.

    Raises:
        ValueError: the ranks are not 0 … n-1 in order, or a line is something else.
    """
    tokens: list[bytes] = []
    for rank, line in enumerate(text.splitlines()):
        encoded, number = line.split()
        if int(number) != rank:
            raise ValueError(f"line {rank + 1} holds rank {int(number)}, not {rank}")
        tokens.append(base64.b64decode(encoded, validate=True))
    return tokens


def tiktoken_sha256(tokens: Iterable[bytes]) -> str:
    """Hash tokens in tiktoken's own form, the hash that tiktoken checks a download with."""
    lines = (base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
    return hashlib.sha256(b"".join(lines)).hexdigest()
