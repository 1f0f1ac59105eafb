"""Find where a text quotes redacted content, and take the quotes out: `Quotes`.

Texts are compared without case, and forms of a letter that look alike count as one. A text of few characters occurs
everywhere, and does not count as a quote.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from timeline.fold.window import TOMBSTONE
from timeline.frozen import compact_json, strings_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from timeline.blocks import Block

LEAST: Final = 8
"""Fewest characters of a text that is searched for."""
LEAST_PART: Final = 16
"""Fewest characters of an argument, or of a part of the data, that is searched for: types and short paths have less."""
_CUT: Final = "…"
"""The end of a text that was cut."""
_SHORTEST: Final = 64
"""So many of the shortest texts are looked for in the others. One word is redacted with thousands of blocks that say
it: where one of these is quoted, the word is, too."""
_KEPT: Final = frozenset(
    {
        "type",
        "policy",
        "system",
        "tools",
        "ephemeral",
        "fingerprint",
        "sha256",
        "path",
        "paths",
        "turn_id",
        "counter",
        "conversation",
        "relation",
        "framework",
        "summarizer",
        "wire",
        "source",
        "at",
        "author",
    }
)
"""Fields of payloads that hold no user's text, but names and hashes that other events refer to."""
_NOT_OURS: Final = frozenset({"data", "parameters", "arguments"})
"""Fields of payloads whose values are an application's or a framework's own, keys included."""
_WITH_KEYS: Final = _NOT_OURS | {"meta"}
"""The same with ``meta``, the application's own data of a block, which is redacted with the block."""


@dataclass(frozen=True)
class Quotes:
    """Texts that are to be forgotten.

    Attributes:
        texts: the texts.
    """

    texts: tuple[str, ...] = ()

    @classmethod
    def of_blocks(cls, blocks: Collection[Block]) -> Quotes:
        """Return the texts of blocks: their own text, the arguments of calls, and the texts in their data."""
        whole = [text for block in blocks if len(text := block.text.strip()) >= LEAST and text != TOMBSTONE]
        parts = [text for block in blocks for text in _parts(block) if len(text) >= LEAST_PART]
        return cls(tuple(dict.fromkeys((*whole, *parts))))

    @cached_property
    def _needles(self) -> tuple[tuple[str, str], ...]:
        """Each text folded, and as it is; also in the forms in which JSON writes it inside a string."""
        forms = {form for text in self.texts for form in (*written(text), _other_letters(text)) if form}
        longest = sorted(forms, key=len, reverse=True)
        return tuple((form.casefold(), form) for form in longest)

    @cached_property
    def _alike(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(folded(form) for _, form in self._needles))

    def prepared(self) -> Quotes:
        """Return these texts, ready to be searched for; for long texts the preparation takes a second."""
        _ = self._needles, self._alike, self._in_small_letters, self._telling, self._telling_alike
        return self

    @cached_property
    def _telling(self) -> tuple[str, ...]:
        return _without_longer(needle for needle, _ in self._needles)

    @cached_property
    def _telling_alike(self) -> tuple[str, ...]:
        return _without_longer(self._alike)

    @cached_property
    def _in_small_letters(self) -> tuple[str, ...]:
        return tuple(text.casefold() for text in self.texts)

    def are_in(self, text: str) -> bool:
        """Return whether a text quotes one of them."""
        small = text.casefold()
        return any(needle in small for needle in self._telling) or self._are_alike(text)

    def _are_alike(self, text: str) -> bool:
        if text.isascii():
            return False
        folded_text = folded(text)
        return any(needle in folded_text for needle in self._telling_alike)

    def hold(self, text: str) -> bool:
        """Return whether a text is a part of one of them."""
        words = text.removesuffix(_CUT).strip().casefold()
        return len(words) >= LEAST and any(words in whole for whole in self._in_small_letters)

    def begin_with(self, text: str) -> bool:
        """Return whether a text is the beginning of one of them that was cut, or one of them without its line breaks.

        So a client keeps a prompt as the title of a session.
        """
        is_cut = text.endswith(_CUT)
        if "\n" in text and not is_cut:
            return False
        words = _flat(text.removesuffix(_CUT))
        if len(words) < LEAST:
            return False
        return words in self._in_one_line or (is_cut and any(t.startswith(words) for t in self._in_one_line))

    def left(self, text: str) -> bool:
        """Return whether a text is one of them without what an earlier redaction took out of it."""
        return TOMBSTONE in text and any(is_left_of(text, whole) for whole in self.texts)

    @cached_property
    def _in_one_line(self) -> frozenset[str]:
        return frozenset(map(_flat, self.texts))

    def out_of(self, text: str) -> str:
        """Return a text without what it quotes."""
        if not self.are_in(text):
            return text
        small = text.casefold()
        # Make a pattern only of texts that are there: the pattern of a block of 100 MB takes gigabytes.
        for form in [form for needle, form in self._needles if needle in small]:
            text = re.sub(re.escape(form), TOMBSTONE, text, flags=re.IGNORECASE)
        if self._are_alike(text):
            text = self._without_alike(text)
        # Neither search finds a text that is equal only once letters and their marks are combined.
        return TOMBSTONE if self.are_in(text) else text

    def _without_alike(self, text: str) -> str:
        """Return a text without what looks like one of them; each letter is compared together with its marks."""
        letters = _letters(text)
        folded_letters = [folded(letter) for letter in letters]
        starts = [0, *accumulate(map(len, folded_letters))]
        whole = "".join(folded_letters)
        gone = bytearray(len(letters))
        for needle in self._alike:
            place = whole.find(needle)
            while place >= 0:
                end = place + len(needle)
                first, last = bisect_right(starts, place) - 1, bisect_left(starts, end)
                gone[first:last] = b"\1" * (last - first)
                place = whole.find(needle, end)
        parts = groupby(zip(letters, gone, strict=True), key=itemgetter(1))
        return "".join(TOMBSTONE if out else "".join(letter for letter, _ in part) for out, part in parts)

    def out_of_json(self, value: Any, fixed: Collection[str] = ()) -> Any:
        """Return a payload's JSON without what its texts quote.

        The names of its fields stay, and so do the values that other events refer to. Below a field whose values are an
        application's own, keys are cleaned, too.

        Args:
            value: the JSON.
            fixed: names of fields whose values are words of ours, such as the reason of a compaction.
        """
        if isinstance(value, str):
            return self.out_of(value)
        if isinstance(value, list):
            return [self.out_of_json(item, fixed) for item in value]
        if isinstance(value, dict):
            return {key: self._of_field(key, item, fixed) for key, item in value.items()}
        return value

    def _of_field(self, key: str, value: Any, fixed: Collection[str]) -> Any:
        if key in _KEPT or key in fixed:
            return value
        return self._everywhere(value) if key in _NOT_OURS else self.out_of_json(value, fixed)

    def out_of_value(self, text: str) -> str:
        """Return a content-addressed text (JSON, as a rule) without what it quotes, in every field of it."""
        try:
            value = json.loads(text)
        except ValueError:
            return self.out_of(text)
        has_quotes = self.are_in("\n".join(strings_and_keys(value)))
        return compact_json(self._everywhere(value)) if has_quotes else text

    def _everywhere(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._everywhere(item) for item in value]
        if isinstance(value, dict):
            return {self.out_of(key): self._everywhere(item) for key, item in value.items()}
        if _is_number(value):  # a number may be redacted content, too, such as that of a bank account
            return TOMBSTONE if self.are_in(json.dumps(value)) else value
        return self.out_of(value) if isinstance(value, str) else value


def written(text: str) -> tuple[str, str, str]:
    """Return a text as it is, and as JSON writes it inside a string: with other letters escaped, or as they are."""
    return text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]


def is_left_of(text: str, whole: str) -> bool:
    """Return whether a text, with places where a redaction took words out, says what else another text says."""
    first, *others, last = text.strip().split(TOMBSTONE)
    whole = whole.strip()
    place = len(first)
    if len(text) - text.count(TOMBSTONE) * len(TOMBSTONE) < LEAST or not whole.startswith(first):
        return False
    for part in others:
        found = whole.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return whole.endswith(last) and place + len(last) <= len(whole)


def words_of_path(path: str) -> str:
    """Return a path with its ids as they were before they were percent-encoded; that is no path any more."""
    return unquote(path)


def folded(text: str) -> str:
    """Return a text without case, and with one form for each letter of several compatible forms."""
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _flat(text: str) -> str:
    """Return a text without case, on one line."""
    return " ".join(text.split()).casefold()


def _without_longer(needles: Iterable[str]) -> tuple[str, ...]:
    """Return texts without those that hold one of the shortest: a text that quotes these quotes that one."""
    by_length = sorted(set(needles), key=len)
    shortest = by_length[:_SHORTEST]
    return tuple(text for text in by_length if not any(one in text and one != text for one in shortest))


def strings_and_keys(value: Any) -> Iterator[str]:
    """Yield the strings and numbers of a JSON value, the keys of its objects, and what strings of JSON say inside."""
    yield from strings_in(value)
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif _is_number(value):
            yield json.dumps(value)


def words_of(value: Any, fixed: Collection[str]) -> Iterator[str]:
    """Yield the strings of a payload's JSON, and the keys and numbers of application data; see `out_of_json`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from words_of(item, fixed)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in _WITH_KEYS:
                yield from strings_and_keys(item)
            elif key not in fixed:
                yield from words_of(item, fixed)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _letters(text: str) -> list[str]:
    """Return the letters of a text, each with its marks."""
    found: list[str] = []
    for character in text:
        if found and unicodedata.combining(character):
            found[-1] += character
        else:
            found.append(character)
    return found


def _other_letters(text: str) -> str:
    """Return a text in the form that plain letters have; empty if it has that form already."""
    return "" if text.isascii() or (plain := folded(text)) == text.casefold() else plain


def _parts(block: Block) -> Iterable[str]:
    fields: Mapping[str, Any] = block.dump()
    for name in ("arguments", "data"):
        yield from map(str.strip, strings_in(fields.get(name)))
