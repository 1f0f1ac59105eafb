"""The recall tool: the model reads the block behind a path or an address that its context printed.

The model may call the tool wrongly in any way, and learns only from the answer. So an error is plain text, and for an
unknown path it lists the nearest paths. Long content comes in pieces, counted in characters, since content may have no
line breaks, and models count tokens differently. An outline of the other pieces comes before the first piece. Pictures
come as pictures, in a block that each wire sends in its own way: inside the result, or, if a result can only be text,
as the user's next message.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

from timeline.agent.recall_outline import MOST_PIECES, SCANNED, outline, unescaped
from timeline.blocks import RangeSummary, Reasoning, ToolCall, ToolResult
from timeline.content.parts import typed
from timeline.errors import BlockNotFound, HistoryUnavailable, InvalidArgument
from timeline.events.addresses import parse_address
from timeline.facts.full_record import RECORD_KEY
from timeline.facts.name_list import LIST_KEY
from timeline.fold.window import TOMBSTONE
from timeline.frozen import compact_json
from timeline.log.off_loop import in_thread
from timeline.log.recall_form import RECALL, first_line, readings
from timeline.wire.ai_sdk_parts import file_of
from timeline.wire.converse_content import has_block
from timeline.wire.media import anthropic_media, content_parts, gemini_media, openai_media, responses_media
from timeline.wire.providers import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES
from timeline.wire.responses import CUT_CALLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.events.addresses import Address
    from timeline.ports import TokenCounter
    from timeline.wire.media import Part

RecallWire: TypeAlias = Literal["anthropic", "openai_chat", "openai_responses", "gemini", "bedrock_converse", "ai_sdk"]

PartText: TypeAlias = "Callable[[Part], str]"
"""Returns the text that replaces a content part without text."""

_DESCRIPTION: Final = (
    "Read back any part of this conversation that is not in front of you in full: results and arguments that are "
    "hidden or shortened, and everything that a summary stands for. Give the path or the address as it is printed, for "
    "example tc:turn_2.call_1.result or @152. That of a summary gives the summary and an exact record of what it "
    "covers, with further paths. Long content comes in pieces; the answer says how to go on."
)
_PROPERTIES: Final[dict[str, JsonValue]] = {
    "path": {"type": "string", "description": "The path of the block, or its address such as @152, as it is printed."},
    "offset": {"type": ["integer", "null"], "description": "Character to begin at; 0 is the first."},
    "limit": {"type": ["integer", "null"], "description": "Most characters to give."},
}
_EXAMPLE: Final = '{"path": "tc:turn_2.call_1.result"}'
_REPEATED: Final = 100
"""Characters of an unknown path that an answer repeats: a model may ask for one that fills its window."""
_NAMED: Final = 300
"""Characters of a path that an answer names; a longer one goes by its address, and names of tools and turns are cut."""
_NO_PATH: Final = f"[malformed arguments] Give an object with a path. Call it like this: {_EXAMPLE}"
_PLACES: Final[dict[RecallWire, str]] = {
    "anthropic": "inside this result",
    "openai_chat": "in the message behind this result",
    "openai_responses": "inside this result",
    "gemini": "inside this result",
    "bedrock_converse": "inside this result",
    "ai_sdk": "inside this result",
}
"""Where each wire shows a picture."""
_STRICT: Final = ("openai_chat", "openai_responses")
"""Wires whose strict mode requires every property; a property that is not used is null there."""
_WORTH_A_THREAD: Final = 10_000
"""Content of so many characters is cut in a thread; for a shorter one, that takes a few milliseconds at most."""
_OUTLINED: Final = 8
"""How many of the newest outlines are kept: a model that followed an outline often reads the beginning again."""
_EXACT: Final = "Exact record of what it newly covers:"
_FRAME_TOKENS: Final = 80
"""Most tokens of the lines before and after the content."""
_LONGEST_TOKEN: Final = 16
"""Most characters of a token, apart from runs of blanks or of one sign: it bounds what is counted of a long text."""
_MEDIA: Final = frozenset(
    {
        *("image", "image_url", "input_image", "document", "input_file", "file", "audio", "input_audio", "video"),
        *("inlineData", "fileData"),
    }
)
"""Types of content parts that hold no text."""
_MOST_MEDIA: Final = 5_000_000
"""Most characters of encoded media in one answer: the providers' limit for a single picture."""
_LONGEST_WORD: Final = 2_000
"""A longer string without a space is encoded data, which nobody can read."""


def schema(wire: RecallWire) -> dict[str, JsonValue]:
    """Return the tool's schema in a provider's shape.

    For Google it is one of a tool's ``function_declarations``; for the AI SDK it is the JSON of a function tool, from
    which the program makes a ``tool`` of its own.

    Raises:
        InvalidArgument: there is no such wire.
    """
    parameters: dict[str, JsonValue] = {
        "type": "object",
        "properties": _PROPERTIES,
        "required": list(_PROPERTIES) if wire in _STRICT else ["path"],
        "additionalProperties": False,
    }
    described: dict[str, JsonValue] = {"name": RECALL, "description": _DESCRIPTION}
    match wire:
        case "anthropic":
            return {**described, "input_schema": parameters}
        case "openai_chat":
            return {"type": "function", "function": {**described, "parameters": parameters, "strict": True}}
        case "openai_responses":
            return {"type": "function", **described, "parameters": parameters, "strict": True}
        case "gemini":
            return {**described, "parameters_json_schema": parameters}
        case "bedrock_converse":
            return {"toolSpec": {**described, "inputSchema": {"json": parameters}}}
        case "ai_sdk":
            return {"type": "function", **described, "inputSchema": parameters}
    raise InvalidArgument("wire", f"there is no recall tool for {wire!r}; there are {', '.join(get_args(RecallWire))}")


class RecallTool:
    """The tool: its schema for the request, and the handler of its calls. `Timeline.recall_tool` makes one.

    Attributes:
        name: the tool's name.
        schema: an entry of the request's ``tools``; for Google, of the ``function_declarations`` of one of them.
        max_tokens: most tokens of an answer.
    """

    name: str = RECALL

    def __init__(
        self,
        wire: RecallWire,
        *,
        read: Callable[[str], Awaitable[tuple[Address, Block]]],
        count: Callable[[Sequence[Block]], Awaitable[list[int]]],
        counter: TokenCounter,
        max_tokens: int,
    ) -> None:
        self.schema: dict[str, JsonValue] = schema(wire)
        self._wire = wire
        self.max_tokens = max_tokens
        self._read = read
        self._count = count
        self._counter = counter
        self._outlines: OrderedDict[tuple[str, str], str] = OrderedDict()
        """The outline in front of the content of a first answer, by the answer's first line and the content."""

    async def handle(self, arguments: Any) -> str:
        """Answer a call of the model with text; a wrong call gets an explanation, not an exception.

        Pictures are only named: `answer` shows them.

        Args:
            arguments: the model's arguments: an object, or its JSON text.

        Raises:
            StoreError: the store cannot be read.
        """
        return (await self.look(arguments)).text

    async def look(self, arguments: Any) -> Recalled:
        """Answer a call as `handle` does; return the text with its path, state and range.

        Raises:
            StoreError: the store cannot be read.
        """
        found = await self._find(arguments)
        return found if isinstance(found, Recalled) else await self._recalled(*found, _unshown)

    async def answer(self, call: ToolCall) -> ToolResult:
        """Answer a call of the model with the block to append, including the pictures and documents at its path.

        They come only with offset 0: the result's ``data`` then holds them as they were recorded, if the wire has a
        form for them, up to 5 MB encoded together. A wire sends them inside the result; OpenAI's chat completions,
        whose results are text only, send them in the user's next message.

        Raises:
            StoreError: the store cannot be read.
        """
        found = await self._find(call.arguments)
        if isinstance(found, Recalled):
            return ToolResult(call_id=call.call_id, name=call.name, text=found.text)
        address, block, asked = found
        block = block.model_copy(update={"data": typed(block.data)})
        shown, note = self._media(block)
        recalled = await self._recalled(address, block, asked, note)
        data = shown if shown and asked.offset == 0 else None
        return ToolResult(call_id=call.call_id, name=call.name, text=recalled.text, data=data)

    async def _find(self, arguments: Any) -> tuple[Address, Block, _Asked] | Recalled:
        """Return the requested block with its address, or an answer that explains why there is none."""
        asked = _asked(arguments)
        if isinstance(asked, str):
            return Recalled(asked, "malformed")
        answer = Recalled(_NO_PATH, "malformed")
        for path in readings(asked.path):
            try:
                return *(await self._read(path)), asked
            except BlockNotFound as unknown:
                answer = _unknown(path, unknown)
            except HistoryUnavailable as gone:
                why = f"This part of the conversation was deleted and cannot be read. {gone}"
                return Recalled(f"{first_line(_short(path), 'deleted')} {why}", "deleted", path)
        return answer

    def _media(self, block: Block) -> tuple[list[JsonValue], PartText]:
        """Return the parts of a block to show, and the function that names each part in its text."""
        shown: list[JsonValue] = []
        notes: dict[int, str] = {}
        room = _MOST_MEDIA
        for part in content_parts(block.data):
            size = len(compact_json(part))
            if not _has_form(part, self._wire):
                continue
            if size > room:
                notes[id(part)] = f"[{part['type']}: too large to be shown, {size:,} characters of encoded data]"
                continue
            room -= size
            shown.append(part)
            notes[id(part)] = f"[{part['type']}: comes with offset 0, {_PLACES[self._wire]}]"
        return shown, lambda part: notes.get(id(part)) or _unshown(part)

    async def _recalled(self, address: Address, block: Block, asked: _Asked, note: PartText) -> Recalled:
        named = (block.path, str(address)) if len(block.path) <= _NAMED else (str(address),)
        if block.text == TOMBSTONE and "redacted" in block.meta:
            reason = f" Reason: {block.meta['redacted']}." if block.meta["redacted"] else ""
            line = first_line(*named, "redacted")
            text = f"{line} The content was erased for good and cannot be read back.{reason}"
            return Recalled(text, "redacted", block.path, address=str(address))
        [tokens] = await self._count([block])
        content = content_of(block, note)
        head = first_line(*named, _what(block), _short(block.turn_id), f"{tokens:,} tokens")
        if not content:
            return Recalled(f"{head}\n[no content]", "found", block.path, address=str(address))
        if asked.offset >= len(content):
            text = f"{head}\n[nothing there: the content has {len(content):,} characters, counted from 0]"
            return Recalled(text, "found", block.path, asked.offset, asked.offset, len(content), str(address))
        known = self._outlines.get((head, content))
        work = partial(self._cut, block, content, asked, head, known)
        further, piece = work() if len(content) < _WORTH_A_THREAD else await in_thread(work)
        if not asked.offset and asked.limit is None and len(piece) < len(content):
            self._keep((head, content), further)
        end = asked.offset + len(piece)
        text = f"{head}\n{further}{piece}"
        if asked.offset > 0 or end < len(content):
            rest = f"go on with offset {end}" if end < len(content) else "that is the end"
            text += f"\n[characters {asked.offset} to {end} of {len(content)}; {rest}]"
        return Recalled(text, "found", block.path, asked.offset, end, len(content), str(address))

    def _cut(self, block: Block, content: str, asked: _Asked, head: str, known: str | None) -> tuple[str, str]:
        """Return the outline of the pieces further on, empty where there are none, and the piece that was asked for."""
        spent = self._counter.count(head)
        piece = self._piece(content, asked, spent)
        if asked.offset or asked.limit is not None or len(piece) == len(content):
            return "", piece
        further = self._further_on(block, content, len(piece), spent) if known is None else known
        return further, self._piece(content, asked, spent + self._counter.count(further))

    def _keep(self, key: tuple[str, str], outline: str) -> None:
        """Keep the outline of the content that was read now, and drop the one that was read longest ago."""
        self._outlines[key] = outline
        self._outlines.move_to_end(key)
        if len(self._outlines) > _OUTLINED:
            self._outlines.popitem(last=False)

    def _further_on(self, block: Block, content: str, begin: int, spent: int) -> str:
        """Return the outline of a content that is longer than its first answer; empty where it has no names.

        It takes at most half of the answer, and no more than what does not fit.
        """
        half = (self.max_tokens - spent - _FRAME_TOKENS) // 2
        room = min(half, self._counter.count(content[begin : begin + half * _LONGEST_TOKEN]))
        if room <= 0:
            return ""
        names = self._names_behind(block, content, spent, room, room)
        if (used := self._counter.count(names)) < room:  # a shorter outline leaves room for more of the beginning
            names = self._names_behind(block, content, spent, room, used)
        return names

    def _names_behind(self, block: Block, content: str, spent: int, room: int, used: int) -> str:
        """Return the outline of the text that does not fit beside an outline of ``used`` tokens, within ``room``."""
        text = content[:SCANNED]
        offsets = [len(self._piece(text, _Asked("", 0, None), spent + used))]
        while offsets[-1] < len(text) and len(offsets) <= MOST_PIECES:
            offsets.append(offsets[-1] + len(self._piece(text, _Asked("", offsets[-1], None), spent)))
        if offsets[-1] == len(text) < len(content):
            offsets.pop()  # in the whole content, that piece may end elsewhere
        return outline(_named_text(block, text), len(content), offsets, room, self._counter)

    def _piece(self, content: str, asked: _Asked, spent: int) -> str:
        """Return the longest piece that fits; if a line ends in the piece's second half, stop there."""
        wanted = content[asked.offset :] if asked.limit is None else content[asked.offset :][: asked.limit]
        piece = self._counter.truncate(wanted, max(1, self.max_tokens - spent - _FRAME_TOKENS))
        if len(piece) == len(wanted):
            return piece
        line_end = piece.rfind("\n") + 1
        return piece[:line_end] if line_end > len(piece) // 2 else piece or wanted[:1]


class Recalled(NamedTuple):
    """An answer of the tool.

    Attributes:
        text: the answer for the model.
        outcome: whether the content was found, redacted or deleted, the path is unknown, or the call malformed.
        path: path of the block; if there is no block, the requested path, of a long one its beginning.
        address: address of the block; empty if there is no block.
        begin: first character of the content in the text, counted from 0.
        end: the character behind the last one.
        characters: length of the whole content.
    """

    text: str
    outcome: Literal["found", "redacted", "deleted", "unknown", "malformed"]
    path: str = ""
    begin: int = 0
    end: int = 0
    characters: int = 0
    address: str = ""


class _Asked(NamedTuple):
    path: str
    offset: int
    limit: int | None


def _unknown(path: str, error: BlockNotFound) -> Recalled:
    """Return the answer for a path or address that names no block."""
    kind = "address" if parse_address(path) is not None else "path"
    problem = f": {error.problem}" if error.problem else ""
    advice = f"Give {'an' if kind == 'address' else 'a'} {kind} exactly as it is printed."
    if nearest := [name for name in error.nearest if len(name) <= _NAMED]:
        advice = f"Nearest {'addresses' if parse_address(nearest[0]) else 'paths'}: {', '.join(nearest)}."
    shown = path if len(path) <= _REPEATED else f"{path[:_REPEATED]}…"
    return Recalled(f"[unknown {kind}] This conversation has no {shown!r}{problem}. {advice}", "unknown", shown)


def _asked(arguments: Any) -> _Asked | str:
    """Read the arguments of a call, or return an explanation of what is wrong with them."""
    values = arguments
    if isinstance(values, str):
        try:
            values = json.loads(values)
        except (ValueError, RecursionError):
            return f"[malformed arguments] The arguments are not JSON. Call it like this: {_EXAMPLE}"
    path = values.get("path") if isinstance(values, dict) else None
    if not isinstance(values, dict) or not isinstance(path, str) or not path.strip():
        return _NO_PATH
    try:
        offset, limit = _number(values.get("offset")), _number(values.get("limit"))
    except ValueError:
        return "[malformed arguments] offset and limit are whole numbers of characters, 0 or more; limit 0 sets none."
    return _Asked(path, offset or 0, limit or None)


def _number(value: Any) -> int | None:
    """Return a count of characters, or None if there is none.

    Raises:
        ValueError: the value is not a count.
    """
    if value is None or value == "":
        return None
    number = int(value) if isinstance(value, str) or (isinstance(value, float) and value.is_integer()) else value
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"{value!r} is not a count")
    return number


def _short(name: str) -> str:
    return name if len(name) <= _NAMED else f"{name[:_NAMED]}…"


def _what(block: Block) -> str:
    """Describe a block in a few words: type, tool, outcome."""
    name = block.name if isinstance(block, ToolCall | ToolResult) else ""
    named = f"{block.type} of {_short(name)}" if name else block.type
    if not isinstance(block, ToolResult):
        return named
    failed = " · failed" if block.is_error else ""
    return named + failed + (f" · exit status {block.exit_status}" if block.exit_status is not None else "")


def content_of(block: Block, note: PartText) -> str:
    """Return a block's readable content: its text, its arguments or data as JSON, and the full record of a summary.

    Of signed reasoning only the text is returned: only its provider can read the encrypted part. ``note`` returns the
    replacement of a picture or document.
    """
    parts = [block.text]
    if isinstance(block, ToolCall):
        parts.insert(0, block.arguments if isinstance(block.arguments, str) else compact_json(block.arguments))
    if isinstance(block, RangeSummary) and LIST_KEY not in block.meta:
        if record := block.meta.get(RECORD_KEY):
            parts.append(f"Full record of everything that it covers:\n{record}")
        covered = {key: block.meta[key] for key in ("covered_turn_ids", "compaction_digest") if key in block.meta}
        parts.append(f"{_EXACT}\n{json.dumps(covered, ensure_ascii=False, indent=1)}")
    elif block.data is not None and not isinstance(block, Reasoning | RangeSummary):
        data: Any = content_parts(block.data) if block.text else typed(block.data)
        parts.append(compact_json(_readable(data, note)) if data else "")
    if cut := block.meta.get(CUT_CALLS):
        parts.append(f"[cut off in the middle of these calls, which were never run: {compact_json(cut)}]")
    return "\n\n".join(part for part in parts if part)


def _named_text(block: Block, content: str) -> str:
    """Return the part of a content in which names are looked for, every character in its place.

    The exact record of a summary is left out: the full record in front of it has its names, and the rest are ids. Lists
    of names are left out, too, since their beginning has what is needed most.
    """
    if LIST_KEY in block.meta:
        return ""
    if isinstance(block, ToolCall):
        return unescaped(content)
    return content.partition(f"\n\n{_EXACT}")[0] if isinstance(block, RangeSummary) else content


def _unshown(part: Part) -> str:
    return f"[{part['type']}: it is not text, so that only the application can look at it]"


def _has_form(part: Part, wire: RecallWire) -> bool:
    """Return whether a wire can show a content part."""
    match wire:
        case "anthropic":
            return anthropic_media(part, ANTHROPIC) is not None
        case "openai_chat":
            return openai_media(part, OPENAI_CHAT) is not None
        case "openai_responses":
            return responses_media(part, OPENAI_RESPONSES) is not None
        case "gemini":
            return gemini_media(part, GEMINI) is not None
        case "bedrock_converse":
            return has_block(part, "result")
        case "ai_sdk":
            return file_of(part) is not None


def _readable(value: Any, note: PartText) -> Any:
    """Replace pictures, documents and encoded strings in a value by notes."""
    if isinstance(value, dict) and value.get("type") in _MEDIA:
        return note(value)
    if isinstance(value, dict):
        return {key: _readable(inner, note) for key, inner in value.items()}
    if isinstance(value, list):
        return [_readable(inner, note) for inner in value]
    if isinstance(value, str) and len(value) > _LONGEST_WORD and not any(c.isspace() for c in value[:_LONGEST_WORD]):
        return f"[{len(value)} characters of encoded data]"
    return value
