"""Find the exact names in any text: URLs, paths, files, ids, and names with humps or underscores.

Names are recognised by their shape alone, in one pass over the words of a text. Block paths are found, too, so that no
part of one counts as a name of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.facts.program_names import FILE_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST: Final = 3
"""Fewest characters of a name."""
_END: Final = ".,:;!?*-/"
"""Marks that belong to a sentence, not to the path before them."""
_UUID: Final = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_WORD: Final = re.compile(r"\\?[\w./~@+:%#?=&$-]{3,}+")
"""A word, which may be one name or several; no name goes beyond the end of its word. Most words of a text come often.
No name begins right behind a backslash: the ``n`` of ``\\nThen`` is no part of a name."""
_IS_COMPOUND: Final = re.compile(r"[a-z0-9][A-Z]|[/._]|[0-9][a-f]|[a-f][0-9]")
"""A word without any of these holds no name."""
_NAMED: Final = re.compile(
    r"(?P<block>(?<![\w.:/-])(?:ar|bl|fi|su|tc):[\w%-]+(?:\.[\w%~-]+)+)"
    r"|(?P<url>https?://[\w./~@+:%#?=&$-]{1,300}+)"
    r"|(?P<path>(?<![\w./~@+-])(?:(?:~|\.{1,2})?/)?[\w.@+-]{1,100}(?:/[\w.@+-]{1,100}){1,30})"
    rf"|(?P<file>(?<![\w./@+-])[\w+-]{{1,60}}+{FILE_SUFFIX.pattern}(?![\w/-]|\.\w))"
    rf"|(?P<id>(?<![\w-])(?:{_UUID}|(?=[a-f]*+[0-9])(?=[0-9]*+[a-f])[0-9a-f]{{7,64}})(?![\w-]))"
    r"|(?P<name>(?<![\w$])(?=\w*(?:[a-z0-9][A-Z]|[A-Za-z0-9]_+[A-Za-z0-9]))[A-Za-z_$][\w$]{3,79}(?![\w$]))"
)
_FOLDERS: Final = 2
"""Fewest slashes of a path that neither begins like a path nor ends like a file: ``and/or`` is no path."""


class ExactName(NamedTuple):
    """A name, its place in the text, and its kind: ``url``, ``path``, ``file``, ``id`` or ``name``."""

    text: str
    begin: int
    kind: str


def exact_names(text: str) -> Iterator[ExactName]:
    """Yield the names of a text. Each word is looked at only where it comes first. The time is linear in the text."""
    first: dict[str, int] = {}
    for found in _WORD.finditer(text):
        first.setdefault(found[0], found.start())
    for word, begin in first.items():
        if word[0] == "\\" or _IS_COMPOUND.search(word) is None:
            continue
        for found in _NAMED.finditer(word):
            kind, name = found.lastgroup or "", found[0].rstrip(_END)
            if len(name) >= _LEAST and kind != "block" and (kind != "path" or _is_path(name)):
                yield ExactName(name, begin + found.start(), kind)


def _is_path(text: str) -> bool:
    return text[0] in "/~." or text.count("/") >= _FOLDERS or FILE_SUFFIX.search(text) is not None
