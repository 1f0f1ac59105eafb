"""Make facts of a log's blocks by fixed rules: what a call did by its result, and what a text names.

The rules have one number, `FORM`. Facts are stored with it. A change of any rule raises it, and an index with another
number is made again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from timeline.blocks import RangeSummary, ToolCall, ToolResult, UserPrompt
from timeline.content.native import server_part
from timeline.content.server_words import words_said
from timeline.facts.answers import asks_user
from timeline.facts.model import Fact
from timeline.facts.program_names import program_names
from timeline.facts.requests import asked_in, is_users
from timeline.facts.tool_use import tool_uses
from timeline.frozen import strings_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.facts.model import FactKind
    from timeline.facts.requests import Asked
    from timeline.facts.tool_use import CallFields, UseKind

FORM: Final = 10
"""Number of the rules of this package; raise it whenever a rule changes what is extracted of any block."""
MOST_NAMED: Final = 100
"""The most URLs, and the most identifiers, that are taken from one block: the first ones of its text."""
_REMEMBERED: Final = 4_096
"""Most texts whose names are remembered: a compaction looks at the same texts three times, and a comparison of policies
looks at all of them once for each policy."""
_BLOCKS_REMEMBERED: Final = 2_048
"""Most blocks whose facts are remembered: a compaction asks about each block three times."""
_SHORT: Final = 8_000
"""Most characters of a text that counts among the `_REMEMBERED` ones."""
_LONG_REMEMBERED: Final = 128
"""Most longer texts whose names are remembered: few, so that what is remembered stays small."""
_LONGEST_REMEMBERED: Final = 64_000
"""Most characters of a remembered text; a longer one is read again."""
BY_USER: Final = "prompt"
"""The ``detail`` of a URL or an identifier that a user's prompt names."""

_KINDS: Final[dict[UseKind, FactKind]] = {
    "read": "file_read",
    "write": "file_written",
    "delete": "file_deleted",
    "command": "command",
    "search": "search",
}
_new: Final = tuple.__new__
"""Makes a fact in a third of the time that its constructor takes: a query may make those of a whole log."""
_FIRST_WORDS: Final = 200
_HEAD: Final = 2_000
_TAIL: Final = 200
_STATUSES: Final = range(-(2**63) + 1, 2**63)
"""The numbers that a database column can hold; no process ends with another one."""
_WORDED: Final = r"(?:(?:Process |Command )?exited with (?:exit )?code|Exit code):? (-?\d{1,10})[ \t\r.]*(?:\n|\Z)"
"""How clients word an exit status. ``exit status 1`` is not theirs: programs print it about other programs."""
_FIRST_STATUS: Final = re.compile(rf"\s*(?:(?:Chunk ID|Wall time): [^\n]*\n)*{_WORDED}", re.IGNORECASE)
_LAST_STATUS: Final = re.compile(
    rf"^{_WORDED}(?:(?:Signal|Background PIDs|Process Group PGID): [^\n]*\n?)*\s*\Z", re.MULTILINE | re.IGNORECASE
)
"""Only a client's own lines may be beside its status; a status among the lines of an output is another program's."""
_HITS_BEGIN: Final = "Ff0123456789"
_HITS: Final = re.compile(
    r"(?:Found )?(\d{1,12}) (?:total )?(?:files?|matches|match|results?|hits?|occurrences?)\b", re.IGNORECASE
)


def facts_of_result(
    call: CallFields, call_version: int, result: ToolResult, result_version: int, at: datetime
) -> tuple[Fact, ...]:
    """Return what a call did, by its result: files, commands, searches, and the error of a call that failed.

    A failed call did not do what it was asked to. Its facts are marked as failed, so a failed write does not count as a
    written file. The fact of a failed command shows the failure by itself; any other failed call also gives an error.
    The user's answer to a tool that asks is a request, which the result alone does not show.

    Args:
        call: the call.
        call_version: version of the event that appended it.
        result: its result.
        result_version: version of the event that appended the result.
        at: time of the work, which is the time of the result.
    """
    status, failed, detail = result.exit_status, result.is_error, ""
    if status is not None and status not in _STATUSES:
        status, failed = None, True
    facts: list[Fact] = []
    ran = False
    for kind, subjects in tool_uses(call):
        if kind == "command":
            ran = True
            status = status_in(result.text) if status is None else status
        if failed or status:
            failed, detail = True, detail or first_words_of_failure(result.text)
        of_call = kind in {"write", "delete"}
        path, version = (call.path, call_version) if of_call else (result.path, result_version)
        details = detail if failed or kind != "search" else hits_in(result.text)
        done = _KINDS[kind]
        facts += [_new(Fact, (done, each, path, version, at, call.name, status, failed, details)) for each in subjects]
    if (failed or status) and not ran:
        words = detail or first_words_of_failure(result.text)
        facts.append(Fact("error", call.name, result.path, result_version, at, call.name, status, True, words))
    if asks_user(call.name) and not is_users(result):
        facts += _requests(asked_in(result, call), result.path, result_version, at)
    return tuple(facts)


def _requests(asked: Iterable[Asked], path: str, version: int, at: datetime) -> Iterator[Fact]:
    return (Fact("request", one.text, path, version, at, detail=one.manner) for one in asked)


def status_in(text: str) -> int | None:
    """Return the exit status that a client states in the first or the last line of an output; None if neither does."""
    if len(text) <= _HEAD and "xit" not in text and "XIT" not in text:
        return None  # one test for both lines, which is enough for most outputs
    tail = max(len(text) - _TAIL, 0)
    for states, start, end in ((_FIRST_STATUS.match, 0, _HEAD), (_LAST_STATUS.search, tail, len(text))):
        if (text.find("xit", start, end) >= 0 or text.find("EXIT", start, end) >= 0) and (
            found := states(text, start, end)
        ) is not None:
            return int(found[1])
    return None


def hits_in(text: str) -> str:
    """Return the number of hits that the first or the last line of a search's output states; empty if none does."""
    for start in (0, text.rfind("\n", -_TAIL) + 1):
        if text[start : start + 1] in _HITS_BEGIN and (found := _HITS.match(text, start)) is not None:
            return found[1]
    return ""


def first_words_of_failure(text: str) -> str:
    """Return the first 200 characters of what a failure said, on one line."""
    words = " ".join(text[: _FIRST_WORDS * 4].split())
    return words if len(words) <= _FIRST_WORDS else words[:_FIRST_WORDS] + "…"


# What a text names

_URL: Final = re.compile(r"https?://[^\s<>\"'`\\|{}^\[\]\x00-\x1f]{1,2000}")
_URL_END: Final = ".,;:!?*_"
_TOKEN: Final = re.compile(r"(?<![A-Za-z0-9_#-])(?=[A-Za-z_#-]*[0-9])(?:[A-Za-z0-9_#-]{4,}|#[0-9]{1,6})")
"""A word with a digit: every identifier has one, and most words of a text have none."""
_NUMBERED: Final = re.compile(r"#[0-9]{1,6}")
_HEX: Final = re.compile(r"(?:[0-9a-f]{7,12}|[0-9a-f]{40}|[0-9a-f]{64})")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_TICKET: Final = re.compile(r"([A-Z][A-Z0-9]{1,9})-[0-9]{1,6}|(CVE)-[0-9]{4}-[0-9]{4,7}")
_PREFIXED: Final = re.compile(r"[a-z]{1,10}[_-]([A-Za-z0-9]{8,64})")
_MADE: Final = re.compile(r"[0-9][A-Za-z]+[0-9]|^[0-9][0-9A-Za-z]{15}")
_ULID: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_LONGEST_TOKEN: Final = 80
_STANDARDS: Final = (
    "AES ANSI ARM BASE CP CRC EC ECMA GB GCC GPT HTTP IEC IEEE IPV ISO KOI LATIN MD MP NIST PEP PKCS RFC RIPEMD RSA SHA"
    " TLS UCS UTC UTF GMT JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"
)
_NO_TICKETS: Final = frozenset(_STANDARDS.split())
"""Words before a number that are names of standards or parts of dates, and make no ticket."""


def facts_named(block: Block, version: int, at: datetime) -> tuple[Fact, ...]:
    """Return the URLs and identifiers that a block names, and what a user's prompt asks for, in the order of its text.

    An **identifier** is a word that was made to name one thing, by its shape: a UUID; an abbreviated or full hash (7 to
    12, 40 or 64 lower-case hexadecimal digits, with digits and letters); a ticket (``ENT-241``, ``CVE-2024-1234``, but
    no standard such as ``UTF-8``); a number of an issue (``#123``); a prefix with a random part of 8 characters or more
    (``toolu_01Ab2…``, ``i-0ab12…``); a ULID. In a user's prompt and in a call's arguments, names of a program count,
    too (``getUserName``, ``max_tokens``); in results there are too many of them.

    A **request** is a sentence of a prompt, of a user's reason to refuse a call, or of an answer to a call's questions,
    see `timeline.facts.requests`; its ``detail`` is how it asks.

    A block of what a provider's server did names what its tools were asked and found.

    At most `MOST_NAMED` of each kind; a summary names nothing of its own. The time is linear in the text.
    """
    return _named(_Said(block, version, at))


class _Said:
    """An appended block as the key of the names in it. It compares objects, which is enough since blocks are frozen.

    It keeps no block alive: of thousands of screenshots, only a few names are remembered.
    """

    __slots__ = ("_hash", "at", "block", "version")

    def __init__(self, block: Block, version: int, at: datetime) -> None:
        self.block, self.version, self.at = ref(block), version, at
        self._hash = hash((id(block), version))  # by both: a new block may have the id of one that is gone

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Said):
            return NotImplemented
        block = self.block()  # None if it is gone: another block may have its id by now
        return block is not None and block is other.block() and (self.version, self.at) == (other.version, other.at)


@lru_cache(maxsize=_BLOCKS_REMEMBERED)
def _named(source: _Said) -> tuple[Fact, ...]:
    block, version, at = source.block(), source.version, source.at
    if block is None or isinstance(block, RangeSummary):
        return ()
    by_user = isinstance(block, UserPrompt)
    urls: dict[str, None] = {}
    identifiers: dict[str, None] = {}
    for text in _texts(block):
        _take(_urls_in(text), urls)
        _take(_identifiers_in(text), identifiers)
    if by_user or isinstance(block, ToolCall):
        for text in strings_in(block.arguments) if isinstance(block, ToolCall) else (block.text,):
            _take(_programs_in(text), identifiers)  # not in the keys of arguments, which are the tool's words
    named: list[tuple[FactKind, str]] = [("url", url) for url in urls]
    named += [("identifier", identifier) for identifier in identifiers]
    tool, who = (block.name if isinstance(block, ToolCall) else ""), (BY_USER if by_user else "")
    facts = [Fact(kind, subject, block.path, version, at, tool, detail=who) for kind, subject in named]
    facts += _requests(asked_in(block), block.path, version, at)
    return tuple(facts)


def _remembered(find: Callable[[str], Iterable[str]]) -> Callable[[str], tuple[str, ...]]:
    """Return a function that gives the first names of a text, each once, up to the most that one block may give."""

    def first(text: str) -> tuple[str, ...]:
        names: dict[str, None] = {}
        _take(find(text), names)
        return tuple(names)

    short, long = lru_cache(maxsize=_REMEMBERED)(first), lru_cache(maxsize=_LONG_REMEMBERED)(first)

    def found(text: str) -> tuple[str, ...]:
        if len(text) <= _SHORT:
            return short(text)
        return long(text) if len(text) <= _LONGEST_REMEMBERED else first(text)

    return found


def _texts(block: Block) -> Iterator[str]:
    if block.text:
        yield block.text
    elif (part := server_part(block)) is not None:
        yield from words_said(part)
    if isinstance(block, ToolCall):
        yield from _keys_and_strings(block.arguments)


def _take(found: Iterable[str], named: dict[str, None]) -> None:
    """Take what a text names, up to the most that a block gives."""
    for name in found:
        if len(named) >= MOST_NAMED:
            return
        named[name] = None


def _keys_and_strings(value: Any) -> Iterator[str]:
    """Yield the strings inside a JSON value with its keys, in order; without recursion, since values may be deep."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            for key, entry in reversed(value.items()):
                waiting += (entry, key)


def _urls_in(text: str) -> Iterator[str]:
    if "://" not in text:
        return
    for found in _URL.finditer(text):
        url = _without_end(found[0])
        if not url.endswith("/") or url.count("/") > 2:
            yield url


def _without_end(url: str) -> str:
    """Return a URL without the marks of its sentence, and without the end of brackets that were opened before it."""
    end, unopened = len(url), url.count(")") - url.count("(")
    while end and (url[end - 1] in _URL_END or (unopened > 0 and url[end - 1] == ")")):
        end -= 1
        unopened -= url[end] == ")"
    return url[:end]


@_remembered
def _identifiers_in(text: str) -> Iterator[str]:
    """Yield the identifiers that a text names, see `facts_named`."""
    text = _without_urls(text)  # an identifier inside a URL is a part of the URL
    for found in _TOKEN.finditer(text):
        start, end = found.span()
        if end - start > _LONGEST_TOKEN:
            continue
        token = found[0].strip("-_")
        if token and _is_identifier(token) and not _is_glued(text, start):
            yield token


@_remembered
def _programs_in(text: str) -> Iterator[str]:
    return program_names(_without_urls(text))


def _without_urls(text: str) -> str:
    return _URL.sub(" ", text) if "://" in text else text


def _is_glued(text: str, start: int) -> bool:
    """Return whether a number sign belongs to the text before it, as in an entity, or a name with a fragment."""
    return text[start] == "#" and start > 0 and (text[start - 1] in "&/" or text[start - 1].isalnum())


def _is_identifier(token: str) -> bool:
    if token.isalpha() or token.isdecimal():
        return False
    if _HEX.fullmatch(token):
        return not token.isdecimal()
    if token[0] == "#":
        return _NUMBERED.fullmatch(token) is not None
    if (ticket := _TICKET.fullmatch(token)) is not None:
        return (ticket[1] or ticket[2]) not in _NO_TICKETS
    if (prefixed := _PREFIXED.fullmatch(token)) is not None:
        return _MADE.search(prefixed[1]) is not None
    return _UUID.fullmatch(token) is not None or _ULID.fullmatch(token) is not None
