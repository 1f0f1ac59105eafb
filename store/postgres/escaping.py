r"""Write any text so that PostgreSQL can hold it, and keep what is indexed short.

PostgreSQL refuses U+0000 in text, and index entries above some 2,700 bytes. So ``\`` is written as ``\\`` and U+0000 as
``\0`` in every text that is no JSON (JSON escapes both itself). A prefix of a text stays a prefix of it when both are
escaped. A search for a part of a text may find too much; the event decides.

A key of an index is the text itself, or, of a long one, its head and its hash: one character longer than any text that
is its own key, so that no two texts have the same key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from timeline.frozen import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST: Final = 500
"""Characters of a text that is its own key."""
HASH: Final = 64
"""Characters of the hash that a longer text's key ends with. They are bytes in every encoding, so that a server whose
database is in SQL_ASCII, and takes each byte for a character, cuts them off at the same place."""
HEAD: Final = MOST + 1 - HASH
"""Characters of a longer text that its key begins with."""
ESCAPED: Final = "\\0"
"""What a content-addressed text begins with that is stored escaped; JSON, which nearly all of them are, never does."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"\\([\\0])")


def holds_escaped(text: str) -> bool:
    """Return whether a text is not stored as it is."""
    return "\\" in text or "\0" in text


def escaped(text: str) -> str:
    """Return a text as it is stored."""
    if holds_escaped(text):
        return text.replace("\\", "\\\\").replace("\0", "\\0")
    return text


def unescaped(text: str) -> str:
    """Return a stored text as it was."""
    return _ESCAPE.sub(lambda found: "\0" if found[1] == "0" else "\\", text) if "\\" in text else text


def storable(texts: Iterable[str]) -> list[str]:
    """Return those of some texts, each once, that a store can hold: the others are in none."""
    return [text for text in set(texts) if not _SURROGATE.search(text)]


def text_as_stored(text: str) -> str:
    """Return a content-addressed text as it is stored: without U+0000, and mostly as it is: the server can hash it."""
    return ESCAPED + escaped(text) if "\0" in text or text.startswith(ESCAPED) else text


def text_as_given(stored: str) -> str:
    """Return a stored content-addressed text as it was."""
    return unescaped(stored[len(ESCAPED) :]) if stored.startswith(ESCAPED) else stored


def key_of(text: str) -> str:
    """Return the key of a text that is not escaped yet, to look it up by."""
    return split(text)[0]


def split(text: str) -> tuple[str, str | None]:
    """Return the key of a text, and what has to be stored beside it: the rest behind the head of a long text."""
    stored = escaped(text)
    if len(stored) <= MOST:
        return stored, None
    return stored[:HEAD] + sha256_hex(stored), stored[HEAD:]


def joined(key: str, rest: str | None) -> str:
    """Return the text of a key and the rest beside it."""
    return unescaped(key if rest is None else key[:HEAD] + rest)


def prefix_bounds(prefix: str) -> tuple[str, str]:
    """Return the two ends of the range of keys of the texts that begin with a prefix; it may hold a few others."""
    begin = escaped(prefix)[:HEAD]
    return begin, begin + "\U0010ffff"  # a noncharacter: no path continues with it
