"""A reader of Claude Code sessions: what the model was sent, in order, and what each call reported.

Written from what is known of the format, one JSON record a line, two where a line break was lost. One response is all
rows of one message id; its results stand behind it, whenever they came. The client's summaries and rows that tell of no
message are left out, and so are its own answers (model ``<synthetic>``), which no model was called for.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Kind = Literal["prompt", "note", "thought", "text", "call", "result", "summary"]


@dataclass(frozen=True)
class Block:
    """A piece of a conversation.

    Attributes:
        kind: a note is what the client put in by itself.
        own: our count, in tokens.
        turn: number of the turn; a prompt opens one.
        response: number of the response that it belongs to; that of the one before for prompts and notes.
        file: path, and what tells the range, of the content of a file that the block holds.
    """

    kind: Kind
    own: float
    turn: int
    response: int
    file: tuple[str, ...] = ()


@dataclass
class Call:
    """A call of a model.

    Attributes:
        asked, answered: when it was sent, and when the last of its answer came; seconds.
        model: that was called.
        context: tokens of the whole request.
        before: how many blocks it was sent.
        long: it wrote to the cache for an hour, not for five minutes.
        read: tokens of the request that came from the cache.
    """

    asked: float
    answered: float
    model: str
    context: int
    before: int
    long: bool
    read: int = 0


@dataclass
class Conversation:
    """Blocks and calls of a session, or of one of its subagents."""

    blocks: list[Block] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


_CHATTER: Final = ("<command-", "<local-command-", "<bash-", "<task-notification>", "[Request interrupted")
_PICTURE: Final = 1_500
"""Tokens that a picture counts as."""
_SIGNED: Final = 3 / 16
"""Tokens for a character of a signature, which holds the whole thought: three bytes in four, four bytes a token."""
_PARTS: Final = re.compile(
    r"(?P<word>[A-Z]?[a-z]+|[A-Z]+|[^\W\d_\u2e80-\U0003ffff])|(?P<letters>[\u2e80-\U0003ffff]+)|(?P<number>\d+)"
    r"|(?P<line>\n\s*)|(?P<marks>[^\w\s]+|_+|[ \t]{2,})"
)
"""Of a text: words end at a hump; letters are of scripts that write no spaces; a line ends with its indentation."""


def read(path: Path) -> list[Conversation]:
    """Return the conversations of a file that called a model: the session, and its subagents."""
    readers: dict[str, _Reader] = {}
    for row in _rows(path):
        data = row.get("data")
        agent = data.get("agentId", "") if isinstance(data, dict) else ""
        told = {**row, **data["message"]} if agent and isinstance(data, dict) else row
        readers.setdefault(agent, _Reader()).take(told)
    found = [reader.finished() for reader in readers.values()]
    return [conversation for conversation in found if conversation.calls]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        at = 0
        while (at := line.find("{", at)) >= 0:
            try:
                row, at = decoder.raw_decode(line, at)
            except json.JSONDecodeError:
                break
            yield row


class _Reader:
    """Puts the rows of one conversation into order."""

    def __init__(self) -> None:
        self._done = Conversation()
        self._seen: set[str] = set()
        self._responses: dict[str, int] = {}
        self._late: list[Block] = []
        self._uses: dict[str, dict[str, Any]] = {}
        self._turn = 0
        self._at = 0.0

    def take(self, row: dict[str, Any]) -> None:
        """Take a row of the file."""
        message, name = row.get("message"), row.get("uuid", "")
        if row.get("type") not in {"user", "assistant"} or not isinstance(message, dict) or name in self._seen:
            return
        self._seen.add(name)
        if row["type"] == "assistant":
            if message.get("model") != "<synthetic>":
                self._answer(message, _seconds(row))
        elif not row.get("isCompactSummary"):
            self._said(message["content"], _seconds(row), meta=bool(row.get("isMeta")))

    def finished(self) -> Conversation:
        """Return what was read."""
        self._settle()
        return self._done

    def _settle(self) -> None:
        self._done.blocks += self._late
        self._late = []

    def _answer(self, message: dict[str, Any], at: float) -> None:
        number = self._responses.get(message["id"])
        usage = message["usage"]
        context = sum(usage.get(f"{part}input_tokens", 0) for part in ("", "cache_read_", "cache_creation_"))
        if number is None:
            self._settle()
            number = self._responses[message["id"]] = len(self._done.calls)
            read = usage.get("cache_read_input_tokens", 0)
            call = Call(self._at or at, at, message["model"], context, len(self._done.blocks), _long(usage), read)
            self._done.calls.append(call)
        call = self._done.calls[number]
        call.answered, call.context = at, context
        self._done.blocks += [self._part(part, number) for part in message["content"]]

    def _part(self, part: dict[str, Any], number: int) -> Block:
        match part["type"]:
            case "thinking" | "redacted_thinking":
                said = max(tokens(part.get("thinking", "")), _SIGNED * len(part.get("signature", part.get("data", ""))))
                return Block("thought", said, self._turn, number)
            case "tool_use":
                self._uses[part["id"]] = part
                said = tokens(part["name"]) + tokens(json.dumps(part["input"], ensure_ascii=False))
                file = (part["input"]["file_path"],) if part["name"] == "Write" else ()
                return Block("call", said, self._turn, number, file)
            case _:
                return Block("text", tokens(part.get("text", "")), self._turn, number)

    def _said(self, content: str | list[dict[str, Any]], at: float, *, meta: bool) -> None:
        self._at = at
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            number = len(self._done.calls) - 1
            if part["type"] == "tool_result":
                self._late.append(self._result(part, number))
                continue
            self._settle()
            text = part.get("text", "")
            beside = meta or len(parts) > 1 or text.startswith(_CHATTER)
            self._turn += not beside
            self._done.blocks.append(Block("note" if beside else "prompt", _length([part]), self._turn, number))

    def _result(self, part: dict[str, Any], number: int) -> Block:
        use = self._uses.get(part["tool_use_id"], {"name": "", "input": {}})
        content = part.get("content") or ""
        own = tokens(content) if isinstance(content, str) else _length(content)
        asked = use["input"]
        holds = use["name"] == "Read" and not part.get("is_error")
        ranges = (f"{key} {asked[key]}" for key in ("offset", "limit") if key in asked)
        file = (asked["file_path"], *ranges) if holds else ()
        return Block("result", own, self._turn, number, file)


def tokens(text: str) -> float:
    """Count a text about as a public vocabulary of 200,000 entries does: within 6 % for long texts of any kind.

    Characters alone do not do: four of them are a token of prose, and three of a listing of code.
    """
    count = 0.0
    for found in _PARTS.finditer(text):
        length = len(found[0])
        match found.lastgroup:
            case "word":
                count += 0.85 + max(0, length - 7) / 6
            case "letters":
                count += length
            case "number":
                count += 1.33 * math.ceil(length / 3)
            case "line":
                count += 3
            case _:
                count += 0.75 + (length - 1) / 5
    return count


def _long(usage: dict[str, Any]) -> bool:
    wrote: dict[str, int] = usage.get("cache_creation") or {}
    return wrote.get("ephemeral_1h_input_tokens", 0) > wrote.get("ephemeral_5m_input_tokens", 0)


def _length(parts: Iterable[dict[str, Any]]) -> float:
    return sum(tokens(part["text"]) if "text" in part else _PICTURE for part in parts)


def _seconds(row: dict[str, Any]) -> float:
    return datetime.fromisoformat(row["timestamp"]).timestamp()
