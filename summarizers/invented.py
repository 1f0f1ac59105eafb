"""Find the names in a summary that its author invented, and take them out.

They are paths, identifiers, ids and long numbers that are nowhere in what the summary covers.

A name that is wrong is worse than one that is missing: the model opens it, edits it, or quotes it to the user. The
rules are strict about names that were made to be exact, and leave ordinary language alone: counted numbers, versions,
dates, plurals, names of well-known products, and a path whose folder and file the record has apart.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.ports import SummaryRequest

_WORD: Final = re.compile(r"(?:(?<![\w/.~@-])(?:~|\.{1,2})?/)?[\w@][\w@.+~/-]*…?|(?:~|\.{1,2})?/[\w@.+~/-]+…?")
"""A run of the characters of names; an ellipsis at its end marks a name that was cut."""
_LINE_NUMBER: Final = re.compile(r"(?::\d+){1,2}(?:-\d+)?\b")
_EXTENSION: Final = re.compile(
    r"\.(?:py|pyi|js|jsx|ts|tsx|mjs|cjs|vue|svelte|rs|go|java|kt|c|cc|cpp|h|hpp|cs|rb|php|swift|scala|lua|sh|bash|sql"
    r"|md|rst|txt|json|jsonl|toml|yaml|yml|ini|cfg|conf|lock|xml|html|css|scss|csv|log|ipynb|proto|tf|env)\Z"
)
_SNAKE: Final = re.compile(r"[^\W_](?:\w*[^\W_])?_+\w*[^\W_]")
_CAMEL: Final = re.compile(r"[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+")
_HEX: Final = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}")
_NUMBER: Final = re.compile(r"\d{4,}|\d{1,3}(?:[,_]\d{3})+")
_DATE: Final = re.compile(r"(?:19|20)\d\d(?:[-/.]?[01]?\d(?:[-/.]?[0-3]?\d)?(?:T[\d:.]*Z?)?)?")
_ABOUT: Final = re.compile(
    r"(?:~|≈|\b(?:about|around|approximately|roughly|nearly|almost|over|some|ca\.?)) ?\Z", re.IGNORECASE
)
_NAMES_OF_PRODUCTS: Final = (
    "airflow bitbucket cloudflare codesandbox devops digitalocean dockerhub dynamodb elasticsearch fastapi github "
    "gitlab graphql homebrew ios ipad iphone javascript kotlin langchain latex linkedin macos mariadb matplotlib "
    "mongodb mypy mysql nodejs npm numpy openai openapi opentelemetry paypal playwright postgresql powershell "
    "pycharm pytest pytorch rabbitmq readme scikit sqlalchemy sqlite stackoverflow tailwindcss tensorflow "
    "typescript vscode webassembly websocket websockets whatsapp wordpress xcode youtube"
)
_PRODUCTS: Final = frozenset(_NAMES_OF_PRODUCTS.split())
"""Names with humps that need no record to be known."""
_OF_NOBODY: Final = re.compile(r"/dev/(?:null|zero|tty|stdin|stdout|stderr|u?random|fd/\d)|/path/to(?:/.*)?")
"""Paths that every machine has, and the one that stands for any path."""
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|(?<=[\u3002\uff01\uff1f\uff1b])")
_MARK: Final = re.compile(r"\s*(?:[-*•]\s+(?:\[[ xX]\]\s*)?|\d{1,3}[.)]\s+|#{1,6}\s+)?")


def invented_names(text: str, request: SummaryRequest) -> list[str]:
    """Return the names in a summary that nothing in its request has, each once, in the order of the text.

    The names are paths and file names, identifiers with humps or underscores, hexadecimal ids of seven characters or
    more, and numbers of four digits or more. What the request has is what is covered, the earlier summary, the tasks
    and the instructions.
    """
    candidates = dict.fromkeys(_names(text))
    if not candidates:
        return []
    known = _Known("\n".join(texts_of(request)))
    return [name for name in candidates if not known.has(name)]


def without_names(text: str, names: list[str]) -> str:
    """Return a summary without the sentences that hold one of these names; a row of a table goes whole."""
    kept: list[str] = []
    for line in text.splitlines():
        if not any(name in line for name in names):
            kept.append(line)
        elif not line.lstrip().startswith("|"):
            found = _MARK.match(line)
            mark = found[0] if found else ""
            left = [part for part in _SENTENCE.split(line[len(mark) :]) if not any(name in part for name in names)]
            if any(part.strip() for part in left):
                kept.append(mark + " ".join(left))
    return "\n".join(kept)


def _names(text: str) -> Iterator[str]:
    """Yield the exact names of a text, without the line numbers and the marks around them."""
    for found in _WORD.finditer(text):
        word = found[0].rstrip(".-/+@~")
        if word.endswith("…"):  # marked as cut: its beginning has to be known
            word = word.rstrip("….-/+@~")
        if not word:
            continue
        if _is_path(word):
            yield word
            continue
        for part in re.split(r"[^\w]+", word):
            if _SNAKE.fullmatch(part.strip("_")) or _CAMEL.fullmatch(part) or _HEX.fullmatch(part):
                yield part.strip("_")
    plain = _LINE_NUMBER.sub(" ", text)
    for found in _NUMBER.finditer(plain):
        if _is_figure(plain, found.start(), found.end()):
            yield found[0]


def _is_path(word: str) -> bool:
    folders = word.count("/")
    file = word.rpartition("/")[2]
    stem = file.partition(".")[0]
    named = _EXTENSION.search(file) is not None and (folders > 0 or len(stem) > 2) and stem.casefold() not in _JS
    return (
        named
        or (folders > 0 and word.startswith(("/", "./", "../", "~/")) and any(map(str.isalpha, word)))
        or folders > 2
    )


_JS: Final = frozenset({"node", "next", "vue", "nuxt", "express", "react", "three", "discord", "socket", "chart"})


def _is_figure(text: str, start: int, end: int) -> bool:
    """Return whether a number is exact by itself: no date, version, part of a name, or figure that was rounded."""
    before, behind = text[start - 1 : start], text[end : end + 2]
    if before.isalnum() or before in {"_", "-", ".", "/", "#"} or behind[:1].isalnum() or behind[:1] in {"_", "-", "/"}:
        return False
    if (behind[:1] in {".", ":", ","} and behind[1:].isdigit()) or before in {":", ","}:
        return False
    number = text[start:end]
    if _DATE.fullmatch(number) and len(number) in {4, 8}:
        return False
    return not (number.endswith("00") and _ABOUT.search(text, max(start - 20, 0), start))


class _Known:
    """What a request holds, to look names up in.

    Args:
        text: all its texts.
    """

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        self._digits: str | None = None

    def has(self, name: str) -> bool:
        """Return whether the text has a name: as it is, in the singular, or as the pieces of a path."""
        folded = name.casefold()
        if folded in self._text or folded in _PRODUCTS or _OF_NOBODY.fullmatch(folded):
            return True
        if _NUMBER.fullmatch(name):
            return self._has_number(re.sub(r"[,_]", "", name))
        if "/" in name or _EXTENSION.search(name):
            return self._has_path(folded)
        return any(folded.endswith(end) and folded.removesuffix(end) in self._text for end in ("s", "es", "ed"))

    def _has_number(self, digits: str) -> bool:
        if self._digits is None:
            self._digits = re.sub(r"(?<=\d)[,_. ](?=\d{3})", "", self._text)
        return re.search(rf"(?<!\d){digits}(?!\d)", self._digits) is not None

    def _has_path(self, path: str) -> bool:
        """Return whether a path is joined of a folder and a file that the text has apart, or written otherwise."""
        bare = path.removeprefix("~").removeprefix(".").removeprefix(".").lstrip("/")
        if bare in self._text or bare.replace("/", "\\") in self._text:
            return True
        if bare == path and _EXTENSION.search(path) is None and all(map(self._has_file, path.split("/"))):
            return True  # alternatives: "build/test/deploy"
        cuts = [at for at, sign in enumerate(bare) if sign == "/"]
        return any(len(bare[:at]) > 2 and bare[:at] in self._text and self._has_file(bare[at + 1 :]) for at in cuts)

    def _has_file(self, name: str) -> bool:
        return len(name) > 3 and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", self._text) is not None


def texts_of(request: SummaryRequest) -> Iterator[str]:
    """Yield all texts of a request: what is covered, the earlier summary, the tasks and the instructions."""
    yield from filter(None, (request.previous, request.task, request.original_task, request.instructions))
    for block in request.blocks:
        yield block.text
        yield block.path
        if isinstance(block, ToolCall):
            yield block.name
            yield from _strings(block.arguments)
        for value in block.meta.values():
            if isinstance(value, str):
                yield value
        yield getattr(block, "name", "") or ""


def _strings(value: Any) -> Iterator[str]:
    """Yield the texts and numbers inside a JSON value, keys too; without recursion, since values may be deep."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif value is not None:
            yield str(value)
