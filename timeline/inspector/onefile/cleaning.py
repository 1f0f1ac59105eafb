"""Take credentials and the paths of home folders out of what a file is to carry, and list what was taken.

A row shows the beginning of a text, which may end inside a credential. So the texts are cleaned first, as a whole; what
was found in them is then taken out of everything else, also where only its beginning is left at an end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.forgetting.credentials import Credential, credentials_in

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOME: Final = re.compile(r"(?<![\w.])(?:/(?:home|Users)/|[A-Za-z]:\\\\?Users\\\\?)(?P<name>[^\s/\\:\"'<>|]+)")
_SHOWN: Final = 4
"""Characters of a credential that the list shows, to recognise it by."""
_LEAST: Final = 8
"""A beginning of fewer characters says nothing of a credential."""


class Removed(NamedTuple):
    """What was taken out at a place, so that a person can look over it: its kind, and its first characters."""

    place: str
    kind: str
    beginning: str
    times: int


class Cleaner:
    """Cleans texts, and remembers what it took out of them."""

    def __init__(self) -> None:
        self._secrets: dict[str, str] = {}
        self._taken: dict[tuple[str, str, str], int] = {}

    @property
    def taken(self) -> list[Removed]:
        """What was taken out, by place."""
        return [Removed(*key, times) for key, times in self._taken.items()]

    def learn(self, text: str) -> None:
        """Look for credentials in a text that is not carried itself: its beginning may be, somewhere."""
        for found in credentials_in(text):
            self._secrets.setdefault(text[found.start : found.end], found.kind)

    def clean(self, value: Any, place: str) -> Any:
        """Return a JSON value without credentials and home folders."""
        if isinstance(value, str):
            return self._text(value, place)
        if isinstance(value, list | tuple):
            return [self.clean(one, place) for one in value]
        if isinstance(value, dict):
            return {self._text(key, place): self.clean(one, place) for key, one in value.items()}
        return value

    def _text(self, text: str, place: str) -> str:
        parts: list[str] = []
        at = 0
        for kind, start, end in self._found(text):
            if start < at:
                continue
            self._note(place, kind, text[start:end])
            parts += [text[at:start], f"[{kind} left out]"]
            at = end
        cleaned = "".join((*parts, text[at:])) if parts else text
        return _HOME.sub(lambda match: self._home(match, place), self._without_end(cleaned, place))

    def _found(self, text: str) -> list[Credential]:
        self.learn(text)
        return sorted({*credentials_in(text), *self._known(text)}, key=lambda found: (found.start, -found.end))

    def _known(self, text: str) -> Iterator[Credential]:
        for secret, kind in self._secrets.items():
            start = text.find(secret)
            while start >= 0:
                yield Credential(kind, start, start + len(secret))
                start = text.find(secret, start + len(secret))

    def _without_end(self, text: str, place: str) -> str:
        """Return a text without the beginning of a known credential at its end, where it was cut."""
        tail = text.rstrip("…")
        for secret, kind in self._secrets.items():
            for length in range(min(len(secret) - 1, len(tail)), _LEAST - 1, -1):
                if tail.endswith(secret[:length]):
                    self._note(place, kind, secret)
                    return f"{tail[:-length]}[{kind} left out]"
        return text

    def _home(self, match: re.Match[str], place: str) -> str:
        self._note(place, "home folder", match["name"])
        return "~"

    def _note(self, place: str, kind: str, text: str) -> None:
        key = (place, kind, f"{text[:_SHOWN]}…")
        self._taken[key] = self._taken.get(key, 0) + 1
