"""Take credentials and the paths of home folders out of what a file is to carry, and list what was taken.

A credential is often recognised by what is beside it, and said again elsewhere without that; a row shows the beginning
of a text, which may end inside a credential. So everything is learned from first. What was found is then taken out
wherever it is, also where only its beginning is left at an end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.errors import InvalidArgument
from timeline.forgetting.credentials import credentials_in
from timeline.frozen import sha256_hex
from timeline.inspector.shapes import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_INSIDE: Final = r"\s/\\:\"'<>|`,;()\[\]"
"""What ends the name of a home folder."""
_HOME: Final = re.compile(
    r"(?:(?<![\w.])|(?<=\\[nrt]))(?:/(?:home|Users)/|[A-Za-z]:\\\\?Users\\\\?)"
    rf"(?P<name>[^{_INSIDE}]*[^{_INSIDE}.…!?])"
)
"""A home folder; a line break before it may be written as an escape, in a text that is JSON."""
_HOME_KIND: Final = "home folder"
_SHOWN: Final = 4
"""Most characters of a credential that the list shows, to recognise it by; of a short one fewer."""
_SHOWN_PART: Final = 5
"""The list shows one of so many characters of a credential."""
_AROUND: Final = 36
"""Characters that the list shows before a finding, and behind it."""
_LEAST: Final = 8
"""A beginning of fewer characters says nothing of a credential."""
_LEAST_TEXT: Final = 6
"""A text of fewer characters has neither a credential nor a home folder."""
_BEGINNING: Final = 6
"""The first characters of a credential, by which many are looked up at once: the shortest has no more."""
_FEW: Final = 100
"""Credentials that are looked for one by one, which is quicker for as many as a log has by itself."""
_ROOTS: Final = ("/home/", "Users")
"""What a text has that names a home folder, before it is looked at more closely."""
_NAME: Final = 8
"""Characters of a finding's name."""


class _Span(NamedTuple):
    """A finding in a text: where it is, what it is, and what is written instead."""

    start: int
    end: int
    kind: str
    secret: str

    @property
    def instead(self) -> str:
        return "~" if self.kind == _HOME_KIND else f"[{self.kind} left out]"


@dataclass(slots=True)
class _Taken:
    kind: str
    place: str
    excerpt: str
    times: int = 0
    places: set[str] = field(default_factory=set)


class Cleaner:
    """Cleans texts, and remembers what it took out of them.

    Args:
        keep: the names of findings that are left where they are: false alarms, and what is known already.
    """

    def __init__(self, keep: Collection[str] = ()) -> None:
        self._keep = frozenset(keep)
        self._kept: set[str] = set()
        self._secrets: dict[str, str] = {}
        self._beginning: dict[str, dict[int, set[str]]] = {}
        """The secrets by their first characters and their length: of a planted page there may be thousands."""
        self._longest = 0
        self._homes: dict[str, re.Pattern[str]] = {}
        self._taken: dict[str, _Taken] = {}
        self._learned: set[str] = set()
        """Texts that were learned from; the names of fields and much else come again and again."""
        self._sound: set[str] = set()
        """Texts in which nothing was found of what is known."""

    @property
    def taken(self) -> list[Finding]:
        """What was taken out: a row for each finding, in the order in which they were found."""
        return [
            Finding(
                name=name,
                kind=one.kind,
                times=one.times,
                places=len(one.places),
                place=one.place,
                excerpt=one.excerpt,
            )
            for name, one in self._taken.items()
        ]

    @property
    def kinds(self) -> dict[str, int]:
        """How often each kind was taken out."""
        kinds: dict[str, int] = {}
        for one in self._taken.values():
            kinds[one.kind] = kinds.get(one.kind, 0) + one.times
        return dict(sorted(kinds.items()))

    def check_kept(self) -> None:
        """Check that whatever is to be kept was found.

        Raises:
            InvalidArgument: nothing has such a name: a typing error would take out what is to stay.
        """
        if unknown := sorted(self._keep - self._kept):
            problem = f"names no finding: {', '.join(unknown)}. Take the names from the list that a dry run prints"
            raise InvalidArgument("keep", problem)

    def learn(self, value: Any) -> None:
        """Look for credentials and home folders in a JSON value, whether it is carried itself or not."""
        if isinstance(value, str):
            self._learn(value)
        elif isinstance(value, list | tuple):
            for one in value:
                self.learn(one)
        elif isinstance(value, dict):
            for key, one in value.items():
                self._learn(key)
                self.learn(one)

    def clean(self, value: Any, place: str) -> Any:
        """Return a JSON value without credentials and home folders."""
        if isinstance(value, str):
            return self._text(value, place)
        if isinstance(value, list | tuple):
            return [self.clean(one, place) for one in value]
        if isinstance(value, dict):
            return {self._text(key, place): self.clean(one, place) for key, one in value.items()}
        return value

    def _learn(self, text: str) -> None:
        if len(text) < _LEAST_TEXT or text in self._learned:
            return
        self._learned.add(text)
        for found in credentials_in(text):
            secret = text[found.start : found.end]
            if secret not in self._secrets and not self._keeps(found.kind, secret):
                self._secrets[secret] = found.kind
                self._beginning.setdefault(secret[:_BEGINNING], {}).setdefault(len(secret), set()).add(secret)
                self._longest = max(self._longest, len(secret))
                self._sound.clear()
        if not any(root in text for root in _ROOTS):
            return
        for match in _HOME.finditer(text):
            name = match["name"]
            if name not in self._homes and not self._keeps(_HOME_KIND, name):
                self._homes[name] = _known_home(name)
                self._sound.clear()

    def _keeps(self, kind: str, secret: str) -> bool:
        name = _name_of(kind, secret)
        if name in self._keep:
            self._kept.add(name)
        return name in self._keep

    def _text(self, text: str, place: str) -> str:
        self._learn(text)
        if text in self._sound:
            return text
        spans = self._spans(text)
        parts: list[str] = []
        at = 0
        for number, span in enumerate(spans):
            self._note(span, place, text, spans, number)
            parts += [text[at : span.start], span.instead]
            at = span.end
        cleaned = self._without_end("".join((*parts, text[at:])) if parts else text, place)
        if cleaned == text:
            self._sound.add(text)
        return cleaned

    def _spans(self, text: str) -> list[_Span]:
        """Return what is to be taken out of a text, in order, nothing inside another."""
        apart: list[_Span] = []
        for span in sorted(self._found(text), key=lambda one: (one.start, -one.end)):
            if not apart or span.start >= apart[-1].end:
                apart.append(span)
        return apart

    def _found(self, text: str) -> Iterator[_Span]:
        if len(self._secrets) > _FEW:
            yield from self._found_by_beginning(text)
        else:
            for secret, kind in self._secrets.items():
                start = text.find(secret)
                while start >= 0:
                    yield _Span(start, start + len(secret), kind, secret)
                    start = text.find(secret, start + len(secret))
        for name, home in self._homes.items():
            if name in text:
                for match in home.finditer(text):
                    yield _Span(*match.span(), _HOME_KIND, name)

    def _found_by_beginning(self, text: str) -> Iterator[_Span]:
        """Yield the known credentials of a text in one pass, however many are known."""
        for start in range(len(text)):
            for length, secrets in self._beginning.get(text[start : start + _BEGINNING], {}).items():
                if (secret := text[start : start + length]) in secrets:
                    yield _Span(start, start + length, self._secrets[secret], secret)

    def _without_end(self, text: str, place: str) -> str:
        """Return a text without the beginning of a known credential at its end, where it was cut."""
        tail = text.rstrip("…")
        for start in range(max(len(tail) - self._longest + 1, 0), len(tail) - _LEAST + 1):
            cut = tail[start:]
            known = self._beginning.get(cut[:_BEGINNING], {})
            longer = (one for length, secrets in known.items() if length > len(cut) for one in secrets)
            if whole := min((secret for secret in longer if secret.startswith(cut)), default=None):
                span = _Span(start, len(tail), self._secrets[whole], whole)
                self._note(span, place, tail, [span], 0)
                return f"{tail[:start]}{span.instead}"
        return text

    def _note(self, span: _Span, place: str, text: str, spans: list[_Span], number: int) -> None:
        name = _name_of(span.kind, span.secret)
        taken = self._taken.get(name)
        if taken is None:
            taken = self._taken[name] = _Taken(span.kind, place, _excerpt(text, spans, number))
        taken.times += 1
        taken.places.add(place)


def _known_home(name: str) -> re.Pattern[str]:
    """Return what a home folder is found by once its name is known: also behind an option, and with dashes."""
    own = re.escape(name)
    paths = rf"(?:/(?:home|Users)/|(?:[A-Za-z]:)?\\\\?Users\\\\?){own}(?![\w-])"
    return re.compile(rf"{paths}|(?<![A-Za-z0-9])-(?:home|Users)-{own}(?![A-Za-z0-9])")


def _name_of(kind: str, secret: str) -> str:
    return sha256_hex(f"{kind}\n{secret}")[:_NAME]


def _excerpt(text: str, spans: list[_Span], number: int) -> str:
    """Return what is around a finding, on one line and without the findings beside it."""
    span = spans[number]
    # As many as there is room for around it: none of them is empty, and a text may have thousands.
    earlier, later = spans[max(number - _AROUND, 0) : number], spans[number + 1 : number + 1 + _AROUND]
    begin = max(0, span.start - _AROUND)
    end = min(len(text), span.end + _AROUND)
    before = _cleaned(text, min([begin, *(one.start for one in earlier if one.end > begin)]), span.start, earlier)
    behind = _cleaned(text, span.end, max([end, *(one.end for one in later if one.start < end)]), later)
    around = f"{'…' if begin else ''}{before}{_shown(span, text)}{behind}{'…' if end < len(text) else ''}"
    return " ".join(around.split())


def _cleaned(text: str, begin: int, end: int, spans: list[_Span]) -> str:
    """Return a part of a text with the findings that are wholly in it replaced."""
    parts: list[str] = []
    at = begin
    for span in spans:
        if begin <= span.start and span.end <= end:
            parts += [text[at : span.start], span.instead]
            at = span.end
    return "".join((*parts, text[at:end]))


def _shown(span: _Span, text: str) -> str:
    """Return a home folder as it is, and of a credential enough to recognise it by."""
    if span.kind == _HOME_KIND:
        return f"«{text[span.start : span.end]}»"
    begins = span.secret[: min(_SHOWN, len(span.secret) // _SHOWN_PART)]
    return f"«{begins}… {len(span.secret)} characters»"
