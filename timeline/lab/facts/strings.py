"""Find the exact strings of a text that an agent must get right: paths, names of files, URLs, ids, numbers, names.

`StringFinder` finds which of many such strings a text holds. It looks each word up once for a whole recording, since
contexts repeat the same texts at every call.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

FactClass: TypeAlias = Literal["url", "path", "file", "id", "number", "name"]
"""A URL; a path; the name of a file; a hexadecimal id of 7 characters or more; a number of 4 digits or more; and a name
with humps or underscores."""
CLASSES: Final[tuple[FactClass, ...]] = get_args(FactClass)

_EXTENSIONS: Final = (
    "astro|bash|bat|c|cc|cfg|cjs|conf|cpp|cs|css|csv|cts|cxx|dart|db|diff|env|erb|ex|exs|go|gradle|graphql|h|hpp|hs|html"
    "|ini|ipynb|java|jpeg|jpg|js|json|jsonl|jsx|kt|kts|less|lock|log|lua|m|md|mdx|mjs|mm|mts|nix|parquet|patch|pdf|php"
    "|pl|png|prisma|proto|ps1|py|pyi|pyx|r|rb|rs|rst|sass|scala|scss|sh|sol|sql|sqlite|svelte|svg|swift|tf|toml|ts|tsv"
    "|tsx|txt|vue|wasm|webp|xml|yaml|yml|zig|zip|zsh"
)
_UUID: Final = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_RULES: Final[dict[FactClass, str]] = {
    "url": r"https?://[\w./~@+:%#?=&$*!-]+",
    "path": r"(?<![\w./~@+-])(?:(?:~|\.{1,2})?/)?[\w.@+-]+(?:/[\w.@+-]+)+/?",
    "file": rf"(?<![\w./@+-])[\w+-][\w.+-]*\.(?:{_EXTENSIONS})(?![\w/-]|\.\w)",
    "id": rf"(?<![\w-])(?:{_UUID}|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{{7,64}})(?![\w-])",
    "number": r"(?<![\w.,-])[0-9]{4,18}(?![\w-]|\.[0-9])",
    "name": r"(?<!\w)(?=\w*(?:[a-z0-9][A-Z]|[A-Za-z0-9]_+[A-Za-z0-9]))[A-Za-z_]\w{3,79}(?!\w)",
}
_FACT: Final = re.compile("|".join(f"(?P<{kind}>{rule})" for kind, rule in _RULES.items()))
_END: Final = ".,:;!?*-"
_FOLDERS: Final = 2
"""A path without a leading slash and without an extension is one only with so many slashes: ``and/or`` is none."""
_NAMED: Final = re.compile(rf"\.(?:{_EXTENSIONS})\Z")
_WORD: Final = re.compile(r"[\w./~@+:%#?=&$*!-]{4,}")
"""The longest runs of characters that a fact may have: a fact never reaches over the end of one."""
_SHORTEST: Final = 4
_LETTERS: Final = re.compile(r"[^\W\d_]{4,}")


def facts_in(text: str) -> dict[str, FactClass]:
    """Return the facts of a text, each with its class, in order; a part of one is not a fact of its own."""
    found: dict[str, FactClass] = {}
    for match in _FACT.finditer(text):
        kind = match.lastgroup
        fact = match[0].rstrip(_END)
        if kind == "path" and not _is_path(fact):
            for part in match[0].split("/"):
                found = {**facts_in(part), **found}
            continue
        if len(fact) < _SHORTEST:
            continue
        for known in CLASSES:
            if known == kind:
                found.setdefault(fact, known)
    return found


def _is_path(text: str) -> bool:
    return text[0] in "/~." or text.rstrip("/").count("/") >= _FOLDERS or _NAMED.search(text) is not None


def has_word(text: str) -> bool:
    """Return whether a text has a word that is worth a query: four letters or more."""
    return _LETTERS.search(text) is not None


def words_beside(fact: str, text: str, others: Iterable[str]) -> str:
    """Return the last word before a fact and the first one behind it, on its line; no part of another fact."""
    at = text.find(fact)
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    before, behind = text[start:at], text[at + len(fact) : len(text) if end < 0 else end]
    for other in sorted(others, key=len, reverse=True):
        before, behind = before.replace(other, "|"), behind.replace(other, "|")
    return " ".join([*_LETTERS.findall(before)[-1:], *_LETTERS.findall(behind)[:1]])


class StringFinder:
    """Finds which of some strings a text holds; a string inside a longer word is held, too.

    Args:
        strings: what to look for; each without white space.
    """

    def __init__(self, strings: Collection[str]) -> None:
        self._strings = tuple(strings)
        self._of_word: dict[str, frozenset[str]] = {}
        self._of_text: dict[str, frozenset[str]] = {}

    def learn(self, texts: Iterable[str]) -> None:
        """Look the words of many texts up at once."""
        new = {word for text in texts if text not in self._of_text for word in _WORD.findall(text)}
        self._look_up(new - self._of_word.keys())

    def within(self, text: str) -> frozenset[str]:
        """Return the strings that a text holds."""
        known = self._of_text.get(text)
        if known is None:
            words = set(_WORD.findall(text))
            if new := words - self._of_word.keys():
                self._look_up(new)
            none: frozenset[str] = frozenset()
            known = self._of_text[text] = none.union(*(self._of_word[word] for word in words))
        return known

    def _look_up(self, new: Collection[str]) -> None:
        """Search all new words at once: one long text of them, a line each."""
        words = list(new)
        starts: list[int] = []
        size = 0
        for word in words:
            starts.append(size)
            size += len(word) + 1
        text = "\n".join(words)
        found: dict[int, set[str]] = {}
        for string in self._strings:
            at = text.find(string)
            while at >= 0:
                place = bisect_right(starts, at) - 1
                found.setdefault(place, set()).add(string)
                at = text.find(string, starts[place] + len(words[place]))
        nothing: frozenset[str] = frozenset()
        for place, word in enumerate(words):
            self._of_word[word] = frozenset(found[place]) if place in found else nothing
