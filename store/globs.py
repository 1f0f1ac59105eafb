"""Globs over file paths: ``*`` and ``?`` stay inside a folder, ``**`` goes over folders."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from timeline.errors import InvalidFilter

_PIECES: Final = re.compile(
    r"(?P<folders>(?<![^/])\*\*(?:/\*\*)*/)|(?P<all>\*{2,})|(?P<some>\*)|(?P<one>\?)|(?P<set>\[!?\]?[^]]*\])"
)
_LONGEST: Final = 1_000


class Glob(NamedTuple):
    """A glob, ready to match.

    ``prefix`` is the text that every match begins with; ``coarse`` is a glob of SQLite's (its ``*`` crosses folders)
    that fits at least whatever ``whole`` fits.
    """

    whole: re.Pattern[str]
    prefix: str
    coarse: str

    def fits(self, path: str) -> bool:
        """Say whether the whole path fits."""
        return self.whole.fullmatch(path) is not None


@lru_cache(64)
def parse_glob(glob: str) -> Glob:
    """Read a glob. A ``[`` that no ``]`` closes is itself.

    Raises:
        InvalidFilter: it is empty, too long, or holds a class that nothing can be in.
    """
    if not 0 < len(glob) <= _LONGEST:
        raise InvalidFilter("path_glob", f"a glob has 1 to {_LONGEST} characters, for example src/**/*.py")
    whole: list[str] = []
    coarse: list[str] = []
    end = 0
    for piece in _PIECES.finditer(glob):
        literal = glob[end : piece.start()]
        whole += [re.escape(literal), _expression(piece)]
        coarse += [_literal(literal), "?" if piece.lastgroup in {"one", "set"} else "*"]
        end = piece.end()
    first = _PIECES.search(glob)
    try:
        expression = re.compile("".join(whole) + re.escape(glob[end:]), re.DOTALL)
    except re.error as error:
        raise InvalidFilter("path_glob", f"{glob!r} holds a class that cannot be read ({error})") from None
    return Glob(expression, glob[: first.start()] if first else glob, "".join(coarse) + _literal(glob[end:]))


def _expression(piece: re.Match[str]) -> str:
    match piece.lastgroup:
        case "folders":
            return "(?:.*/)?"
        case "all":
            return ".*"
        case "some":
            return "[^/]*"
        case "one":
            return "[^/]"
    inner = piece[0][1:-1]
    negated = inner.startswith("!")
    # Python's own set operators and the hyphen that would begin one are only characters here.
    members = re.sub(r"[\\^\[\]&~|]|(?<=-)-", r"\\\g<0>", inner.removeprefix("!"))
    return f"(?!/)[{'^' if negated else ''}{members}]"


def _literal(text: str) -> str:
    return text.replace("[", "[[]")
