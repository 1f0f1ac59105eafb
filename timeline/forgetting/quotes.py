"""What was redacted, as texts: find where another text quotes them, and take the quotes out.

Texts are compared without their case, as a search does. A text of few characters is in everything, and is no quote.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from timeline.fold.window import TOMBSTONE
from timeline.frozen import compact_json, strings_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from timeline.blocks import Block

LEAST: Final = 8
"""Characters of a text that is looked for in what may quote it."""
LEAST_PART: Final = 16
"""Characters of an argument, or a part of the data, that is looked for: a type or a short path is not made of it."""
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
    }
)
"""Fields of payloads that hold no text of a user's, but names and hashes that other events refer to."""


@dataclass(frozen=True)
class Quotes:
    """Texts that go.

    Attributes:
        texts: the texts.
    """

    texts: tuple[str, ...] = ()

    @classmethod
    def of_blocks(cls, blocks: Collection[Block]) -> Quotes:
        """Return the texts of blocks: their words, the arguments of calls, and what their parts say."""
        whole = [text for block in blocks if len(text := block.text.strip()) >= LEAST and text != TOMBSTONE]
        parts = [text for block in blocks for text in _parts(block) if len(text) >= LEAST_PART]
        return cls(tuple(dict.fromkeys((*whole, *parts))))

    @cached_property
    def _needles(self) -> tuple[tuple[str, str], ...]:
        """Each text with its case folded, and as it is; also as JSON writes it inside a string."""
        forms = {form for text in self.texts for form in (text, json.dumps(text)[1:-1], _json(text)) if form}
        longest = sorted(forms, key=len, reverse=True)
        return tuple((form.casefold(), form) for form in longest)

    def prepared(self) -> Quotes:
        """Return these texts, made ready to be looked for: of long ones that takes a second."""
        _ = self._needles, self._in_small_letters
        return self

    @cached_property
    def _in_small_letters(self) -> tuple[str, ...]:
        return tuple(text.casefold() for text in self.texts)

    def are_in(self, text: str) -> bool:
        """Return whether a text quotes one of them."""
        folded = text.casefold()
        return any(needle in folded for needle, _ in self._needles)

    def hold(self, text: str) -> bool:
        """Return whether a text is a part of one of them."""
        said = text.removesuffix("…").strip().casefold()
        return len(said) >= LEAST and any(said in whole for whole in self._in_small_letters)

    def out_of(self, text: str) -> str:
        """Return a text without what it quotes."""
        folded = text.casefold()
        quoted = [form for needle, form in self._needles if needle in folded]
        if not quoted:
            return text
        # Only of these a pattern is made: that of a block of 100 MB takes gigabytes.
        for form in quoted:
            text = re.sub(re.escape(form), TOMBSTONE, text, flags=re.IGNORECASE)
        # Letters that only casefold() knows to be equal, such as "ß" and "SS", are not found by the pattern.
        return TOMBSTONE if self.are_in(text) else text

    def out_of_json(self, value: Any) -> Any:
        """Return a JSON value without what its texts and keys quote; fields that others refer to stay."""
        if isinstance(value, str):
            return self.out_of(value)
        if isinstance(value, list | tuple):
            return [self.out_of_json(item) for item in value]
        if isinstance(value, dict):
            return {
                key if key in _KEPT else self.out_of(key): item if key in _KEPT else self.out_of_json(item)
                for key, item in value.items()
            }
        return value

    def out_of_value(self, text: str) -> str:
        """Return a content-addressed text (JSON, as a rule) without what it quotes, in every field of it."""
        if not self.are_in(text):
            return text
        try:
            return compact_json(self._everywhere(json.loads(text)))
        except ValueError:
            return self.out_of(text)

    def _everywhere(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._everywhere(item) for item in value]
        if isinstance(value, dict):
            return {self.out_of(key): self._everywhere(item) for key, item in value.items()}
        return self.out_of(value) if isinstance(value, str) else value


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _parts(block: Block) -> Iterable[str]:
    fields: Mapping[str, Any] = block.dump()
    for name in ("arguments", "data"):
        yield from map(str.strip, strings_in(fields.get(name)))
