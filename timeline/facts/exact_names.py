"""Find the exact names in any text: URLs, paths, files, ids, and names with humps or underscores.

By their shape alone, in one pass over the words of a text. Block paths are found, too, so that no part of one counts as
a name of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.facts.program_names import FILE_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST: Final = 3
"""Characters of a name."""
_END: Final = ".,:;!?*-/"
"""Marks that belong to a sentence, not to the path before them."""
_UUID: Final = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_WORD: Final = re.compile(r"\\?[\w./~@+:%#?=&$-]{3,}+")
"""Whatever may be a name, or several: a name never reaches over the end of one. Most words of a text come often.
Behind a backslash none begins: the ``n`` of ``\\nThen`` is no part of a name."""
_IS_COMPOUND: Final = re.compile(r"[a-z0-9][A-Z]|[/._]|[0-9][a-f]|[a-f][0-9]")
"""Without any of these there is no name in a word."""
_NAMED: Final = re.compile(
    r"(?P<block>(?<![\w.:/-])(?:ar|bl|fi|su|tc):[\w%-]+(?:\.[\w%~-]+)+)"
    r"|(?P<url>https?://[\w./~@+:%#?=&$-]{1,300}+)"
    r"|(?P<path>(?<![\w./~@+-])(?:(?:~|\.{1,2})?/)?[\w.@+-]{1,100}(?:/[\w.@+-]{1,100}){1,30})"
    rf"|(?P<file>(?<![\w./@+-])[\w+-]{{1,60}}+{FILE_SUFFIX.pattern}(?![\w/-]|\.\w))"
    rf"|(?P<id>(?<![\w-])(?:{_UUID}|(?=[a-f]*+[0-9])(?=[0-9]*+[a-f])[0-9a-f]{{7,64}})(?![\w-]))"
    r"|(?P<name>(?<![\w$])(?=\w*(?:[a-z0-9][A-Z]|[A-Za-z0-9]_+[A-Za-z0-9]))[A-Za-z_$][\w$]{3,79}(?![\w$]))"
)
_FOLDERS: Final = 2
"""Slashes of a path that neither begins like one nor ends like a file: ``and/or`` is none."""


class ExactName(NamedTuple):
    """A name, where its first word begins it, and what it is: ``url``, ``path``, ``file``, ``id`` or ``name``."""

    text: str
    begin: int
    kind: str


def exact_names(text: str) -> Iterator[ExactName]:
    """Yield the names of a text, each word looked at where it comes first. The time is linear in the text."""
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
