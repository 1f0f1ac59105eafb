"""The recall tool: a model follows a path that its context printed, and reads the block behind it.

What the model asks may be wrong in every way, and the tool's answer is the only thing it learns by: so what cannot be
read is said in plain words, with the nearest paths that exist. Long content comes in pieces, by characters: unlike
lines they divide anything, and unlike tokens they mean the same to everyone.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

from timeline.blocks import RangeSummary, Reasoning, ToolCall, ToolResult
from timeline.errors import BlockNotFound, HistoryUnavailable, InvalidPolicy
from timeline.fold.window import TOMBSTONE
from timeline.frozen import compact_json
from timeline.wire.media import content_parts
from timeline.wire.responses import CUT_CALLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.ports import TokenCounter

RecallWire: TypeAlias = Literal["anthropic", "openai_chat", "openai_responses"]

NAME: Final = "recall"
_DESCRIPTION: Final = (
    "Read back any part of this conversation that is not in front of you in full: results and arguments that are "
    "hidden or shortened, and everything that a summary stands for. Give the path as it is printed, for example "
    "tc:turn_2.call_1.result. The path of a summary gives the summary and an exact record of what it covers, with "
    "further paths. Long content comes in pieces; the answer says how to go on."
)
_PROPERTIES: Final[dict[str, JsonValue]] = {
    "path": {"type": "string", "description": "The path of the block, as it is printed."},
    "offset": {"type": ["integer", "null"], "description": "Character to begin at; 0 is the first."},
    "limit": {"type": ["integer", "null"], "description": "Most characters to give."},
}
_EXAMPLE: Final = '{"path": "tc:turn_2.call_1.result"}'
_KINDS: Final = ("ar", "tc", "fi", "so", "su", "bl")
_AROUND_PATH: Final = " \t\r\n`'\"[](){}<>.,;:…"
"""What a path is quoted in or followed by."""
_MOST_LIKELY: Final = 3
_MOST_COMPARED: Final = 200
_FRAME_TOKENS: Final = 80
"""What the lines before and after the content may take."""
_MEDIA: Final = frozenset({"image", "image_url", "input_image", "document", "input_file", "file", "audio"})
"""Types of content parts that hold no text."""
_LONGEST_WORD: Final = 2_000
"""A string in data that is longer, and has no space, is encoded: it means nothing to a reader."""


def schema(wire: RecallWire) -> dict[str, JsonValue]:
    """Return the tool's schema in a provider's shape.

    OpenAI's strict mode demands that every property is required; there, what is left out is null.

    Raises:
        InvalidPolicy: there is no such wire.
    """
    parameters: dict[str, JsonValue] = {
        "type": "object",
        "properties": _PROPERTIES,
        "required": ["path"] if wire == "anthropic" else list(_PROPERTIES),
        "additionalProperties": False,
    }
    if wire == "anthropic":
        return {"name": NAME, "description": _DESCRIPTION, "input_schema": parameters}
    function: dict[str, JsonValue] = {
        "name": NAME,
        "description": _DESCRIPTION,
        "parameters": parameters,
        "strict": True,
    }
    if wire == "openai_chat":
        return {"type": "function", "function": function}
    if wire == "openai_responses":
        return {"type": "function", **function}
    raise InvalidPolicy("wire", f"there is no recall tool for {wire!r}; there are {', '.join(get_args(RecallWire))}")


class RecallTool:
    """The tool: its schema for the request, and the handler of its calls. `Timeline.recall_tool` makes one.

    Attributes:
        name: of the tool.
        schema: what goes into the request's ``tools``.
        max_tokens: most tokens of an answer.
    """

    name: str = NAME

    def __init__(
        self,
        wire: RecallWire,
        *,
        read: Callable[[str], Awaitable[Block]],
        paths: Callable[[Collection[str]], Awaitable[Collection[str]]],
        count: Callable[[Sequence[Block]], Awaitable[list[int]]],
        counter: TokenCounter,
        max_tokens: int,
    ) -> None:
        self.schema = schema(wire)
        self.max_tokens = max_tokens
        self._read = read
        self._paths = paths
        self._count = count
        self._counter = counter

    async def handle(self, arguments: Any) -> str:
        """Answer a call of the model; what cannot be read is said in words, not raised.

        Args:
            arguments: as the model wrote them: an object, or its JSON text.

        Raises:
            StoreError: the store cannot be read.
        """
        asked = _asked(arguments)
        if isinstance(asked, str):
            return asked
        for path in dict.fromkeys((asked.path, asked.path.strip(_AROUND_PATH))):
            try:
                return await self._answer(await self._read(path), asked)
            except BlockNotFound:
                continue
            except HistoryUnavailable as gone:
                return f"[{path} · deleted] This part of the conversation was deleted and cannot be read. {gone}"
        return await self._unknown(asked.path.strip(_AROUND_PATH))

    async def _answer(self, block: Block, asked: _Asked) -> str:
        if block.text == TOMBSTONE and "redacted" in block.meta:
            reason = f" Reason: {block.meta['redacted']}." if block.meta["redacted"] else ""
            return f"[{block.path} · redacted] The content was erased for good and cannot be read back.{reason}"
        [tokens] = await self._count([block])
        content = content_of(block)
        head = f"[{block.path} · {_what(block)} · {block.turn_id} · {tokens:,} tokens]"
        if not content:
            return f"{head}\n[no content]"
        if asked.offset >= len(content):
            return f"{head}\n[nothing there: the content has {len(content):,} characters, counted from 0]"
        piece = self._piece(content, asked, self._counter.count(head))
        end = asked.offset + len(piece)
        if asked.offset == 0 and end == len(content):
            return f"{head}\n{piece}"
        rest = f"go on with offset {end}" if end < len(content) else "that is the end"
        return f"{head}\n{piece}\n[characters {asked.offset} to {end} of {len(content)}; {rest}]"

    def _piece(self, content: str, asked: _Asked, spent: int) -> str:
        """Cut a piece that fits the budget, at the end of a line where one ends in its second half."""
        wanted = content[asked.offset :] if asked.limit is None else content[asked.offset :][: asked.limit]
        piece = self._counter.truncate(wanted, max(1, self.max_tokens - spent - _FRAME_TOKENS))
        if len(piece) == len(wanted):
            return piece
        line_end = piece.rfind("\n") + 1
        return piece[:line_end] if line_end > len(piece) // 2 else piece or wanted[:1]

    async def _unknown(self, path: str) -> str:
        likely = await self._likely(path)
        advice = f"Nearest paths: {', '.join(likely)}." if likely else "Give a path exactly as it is printed."
        return f"[unknown path] This conversation has no {path!r}. {advice}"

    async def _likely(self, path: str) -> list[str]:
        """Return the paths that are most like one that does not exist: its own parts first, then its turn's."""
        kind, colon, rest = path.partition(":")
        names = [path] if colon and kind in _KINDS else [f"{known}:{path if not colon else rest}" for known in _KINDS]
        for stems in (names, [_parent(name) for name in names], [f"{_turn(name)}." for name in names]):
            found = sorted(await self._paths([stem for stem in stems if stem[3:].strip(".")]))
            near = bisect_left(found, path)
            close = found[max(0, near - _MOST_COMPARED) : near + _MOST_COMPARED]
            if close:
                return get_close_matches(path, close, n=_MOST_LIKELY, cutoff=0.0)
        return []


class _Asked(NamedTuple):
    path: str
    offset: int
    limit: int | None


def _asked(arguments: Any) -> _Asked | str:
    """Read the arguments of a call, or say in words what is wrong with them."""
    told = arguments
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except (ValueError, RecursionError):
            return f"[malformed arguments] The arguments are no JSON. Call it like this: {_EXAMPLE}"
    path = told.get("path") if isinstance(told, dict) else None
    if not isinstance(told, dict) or not isinstance(path, str) or not path.strip():
        return f"[malformed arguments] Give an object with a path. Call it like this: {_EXAMPLE}"
    try:
        offset, limit = _number(told.get("offset")), _number(told.get("limit"))
    except ValueError:
        return "[malformed arguments] offset and limit are whole numbers of characters, not below 0 and 1."
    return _Asked(path, offset or 0, limit or None)


def _number(value: Any) -> int | None:
    """Return a count of characters, None where none is given.

    Raises:
        ValueError: it is something else.
    """
    if value is None or value == "":
        return None
    number = int(value) if isinstance(value, str) or (isinstance(value, float) and value.is_integer()) else value
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"{value!r} is no count")
    return number


def _parent(path: str) -> str:
    return f"{path.rpartition('.')[0]}."


def _turn(path: str) -> str:
    return path.partition(".")[0]


def _what(block: Block) -> str:
    """Say in a few words what a block is."""
    named = f"{block.type} of {block.name}" if isinstance(block, ToolCall | ToolResult) and block.name else block.type
    if not isinstance(block, ToolResult):
        return named
    failed = " · failed" if block.is_error else ""
    return named + failed + (f" · exit status {block.exit_status}" if block.exit_status is not None else "")


def content_of(block: Block) -> str:
    """Return all that can be read of a block: its text, its arguments or data as JSON, and a summary's whole record.

    Signed reasoning gives its text alone: what is encrypted is of use to nobody but its provider.
    """
    parts = [block.text]
    if isinstance(block, ToolCall):
        parts.insert(0, block.arguments if isinstance(block.arguments, str) else compact_json(block.arguments))
    if isinstance(block, RangeSummary):
        covered = {key: block.meta[key] for key in ("covered_turn_ids", "compaction_digest") if key in block.meta}
        parts.append(f"Exact record of what it covers:\n{json.dumps(covered, ensure_ascii=False, indent=1)}")
    elif block.data is not None and not isinstance(block, Reasoning):
        data: Any = content_parts(block.data) if block.text else block.data
        parts.append(compact_json(_readable(data)) if data else "")
    if cut := block.meta.get(CUT_CALLS):
        parts.append(f"[cut off in the middle of these calls, which were never run: {compact_json(cut)}]")
    return "\n\n".join(part for part in parts if part)


def _readable(value: Any) -> Any:
    """Put a note in the place of every picture and document, and of every string that is encoded data."""
    if isinstance(value, dict) and value.get("type") in _MEDIA:
        return f"[{value['type']}: it is not text, so that only the application can look at it]"
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_readable(inner) for inner in value]
    if isinstance(value, str) and len(value) > _LONGEST_WORD and not any(c.isspace() for c in value[:_LONGEST_WORD]):
        return f"[{len(value)} characters of encoded data]"
    return value
