"""Globs over file paths: ``*`` and ``?`` stay inside a folder, ``**`` crosses folders, ``[a-z]`` is a class.

A path is matched in one pass: the bits of one number are the places in the glob that the part of the path read so far
can have reached. There is no backtracking, so no glob takes longer than its length times the path's.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from timeline.errors import InvalidFilter

_PIECES: Final = re.compile(
    r"(?P<folders>(?<![^/])\*\*(?:/\*\*)*/)|(?P<all>\*{2,})|(?P<some>\*)|(?P<one>\?)|(?P<set>\[!?+\]?+[^]]*\])"
)
_LONGEST: Final = 1_000


class Glob:
    """A compiled glob.

    Args:
        text: the glob as it was written.
        field: name of the parameter that it was given as, for errors.

    Attributes:
        prefix: the text that every match begins with.
        coarse: a glob of SQLite's (its ``*`` crosses folders) that matches at least everything that this one matches.

    Raises:
        InvalidFilter: a class matches no character.
    """

    def __init__(self, text: str, field: str = "path_glob") -> None:
        places = _Places()
        coarse: list[str] = []
        end = 0
        for piece in _PIECES.finditer(text):
            literal = text[end : piece.start()]
            for character in literal:
                places.add_character(character)
            places.add_piece(piece, text, field)
            coarse += [_literal(literal), "?" if piece.lastgroup in {"one", "set"} else "*"]
            end = piece.end()
        for character in text[end:]:
            places.add_character(character)
        first = _PIECES.search(text)
        self.prefix: str = text[: first.start()] if first else text
        self.coarse: str = "".join(coarse) + _literal(text[end:])
        self._places = places
        self._steps: dict[str, int] = {}

    def fits(self, path: str) -> bool:
        """Return whether the whole path matches."""
        if not path.startswith(self.prefix):
            return False
        places, steps = self._places, self._steps
        reached = places.closed(1)
        for character in path:
            accepts = steps.get(character)
            if accepts is None:
                accepts = steps[character] = places.accepting(character)
            stays = reached & (places.folders | places.all)
            if character == "/":
                moved = (reached & accepts) << 1 | (reached & places.folders) << 1
            else:
                stays |= reached & places.some
                moved = (reached & accepts) << 1
            # A place in a run of folders may be left only at a slash, a place in a star at any character.
            reached = stays | places.closed(moved | stays & (places.some | places.all))
            if not reached:
                return False
        return bool(reached >> places.count & 1)


class _Class(NamedTuple):
    place: int
    members: re.Pattern[str]


class _Places:
    """The places of a glob, a bit each; the bit of ``count`` is its end."""

    def __init__(self) -> None:
        self.count = 0
        self.some = self.all = self.folders = 0
        self._one = 0
        self._characters: dict[str, int] = {}
        self._classes: list[_Class] = []

    def add_character(self, character: str) -> None:
        self._characters[character] = self._characters.get(character, 0) | self._next()

    def add_piece(self, piece: re.Match[str], glob: str, field: str) -> None:
        match piece.lastgroup:
            case "folders":
                self.folders |= self._next()
            case "all":
                self.all |= self._next()
            case "some":
                self.some |= self._next()
            case "one":
                self._one |= self._next()
            case _:
                self._classes.append(_Class(self._next(), _members(piece[0], glob, field)))

    def _next(self) -> int:
        self.count += 1
        return 1 << (self.count - 1)

    def accepting(self, character: str) -> int:
        """Return the places from which a character leads to the next one, without those of stars."""
        accepting = self._characters.get(character, 0)
        if character != "/":
            accepting |= self._one
            for place, members in self._classes:
                if members.match(character):
                    accepting |= place
        return accepting

    def closed(self, places: int) -> int:
        """Return places, and those that can be reached from them by a star that matches nothing."""
        while more := (places & (self.some | self.all | self.folders)) << 1 & ~places:
            places |= more
        return places


@lru_cache(64)
def parse_glob(glob: str, field: str = "path_glob") -> Glob:
    """Compile a glob. A ``[`` without a closing ``]`` is a literal; ``field`` names the parameter in errors.

    Raises:
        InvalidFilter: it is empty, too long, or has a class that matches no character.
    """
    if not 0 < len(glob) <= _LONGEST:
        raise InvalidFilter(field, f"a glob has 1 to {_LONGEST} characters, for example src/**/*.py")
    return Glob(glob, field)


def _members(piece: str, glob: str, field: str) -> re.Pattern[str]:
    """Return the expression of a class."""
    inner = piece[1:-1]
    negated = inner.startswith("!")
    # Python's set operators, and the hyphen that would begin one, are literal characters here.
    members = re.sub(r"[\\^\[\]&~|]|(?<=-)-", r"\\\g<0>", inner.removeprefix("!"))
    try:
        return re.compile(f"[{'^' if negated else ''}{members}]", re.DOTALL)
    except re.error as error:
        raise InvalidFilter(field, f"{glob!r} holds a class that cannot be read ({error})") from None


def _literal(text: str) -> str:
    return text.replace("[", "[[]")
