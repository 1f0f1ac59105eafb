"""Thoughts in Chat Completions: OpenAI's own API has no form for them, other servers of this form have several.

These servers put a thought beside the content of the answer: as a text under a key of their own, as signed details, or
as a signature on a call. Some refuse the next request without it (DeepSeek, Moonshot, Google), others refuse every key
that they do not know (Groq, Mistral). So a thought goes back as it came, and only to the model that thought it.
Mistral's models think in chunks of the content itself (`timeline.wire.chat_content`), which go back at their places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import Reasoning
from timeline.wire.chat_content import text_of_thought
from timeline.wire.foreign import text_of
from timeline.wire.groups import Call
from timeline.wire.providers import OPENAI_CHAT, SIGNED_BY
from timeline.wire.read_only import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.blocks import Block
    from timeline.wire.groups import Response
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry

THOUGHTS: Final[tuple[str, ...]] = ("reasoning_content", "reasoning", "thinking")
"""Where servers that speak this form put the text of a thought: the first is DeepSeek's and Moonshot's, the second
OpenRouter's and vLLM's, the third Ollama's own."""
DETAILS: Final[tuple[str, ...]] = ("reasoning_details", "thinking_blocks", "extra_content")
"""Where they put what is signed or encrypted: OpenRouter, LiteLLM, Google's endpoint for answers without a call."""
ON_CALLS: Final[tuple[str, ...]] = ("extra_content", "provider_specific_fields")
"""Where a call carries Google's signature: at Google's own endpoint, and at LiteLLM's."""

LEFT_OUT: Final = "[left out]"
"""Stands for the thought of a response with calls that has none, or a hidden one, for models that demand a thought."""

_GROWING: Final = ("text", "summary", "thinking")
_OF_MESSAGE: Final = "chat.reasoning"
_OF_CALL: Final = "chat.signature"
_OF_CONTENT: Final = "chat.chunk"
_KINDS: Final = frozenset({_OF_MESSAGE, _OF_CALL, _OF_CONTENT})
_CHUNK: Final = "chunk"
_ASKED: Final = "asked"


def thought_blocks(message: Part, response_id: str) -> list[Block]:
    """Read what is beside a message's content: one block of reasoning, or none."""
    key = next((key for key in THOUGHTS if text_of(message, key) not in {"", LEFT_OUT}), "")
    fields = _fields(message, DETAILS)
    if not key and not fields:
        return []
    data = {"type": _OF_MESSAGE, **({"key": key} if key else {}), **fields, **_maker(message)}
    return [Reasoning(text=text_of(message, key) or _readable(fields), data=data, response_id=response_id)]


def signature_blocks(call: Part, message: Part, response_id: str) -> list[Block]:
    """Read what a call of a message carries beside its function: one block of reasoning, which precedes it, or none."""
    fields = _fields(call, ON_CALLS)
    return [Reasoning(data={"type": _OF_CALL, **fields, **_maker(message)}, response_id=response_id)] if fields else []


def chunk_block(part: Part, message: Part, response_id: str) -> Block:
    """Read a chunk of a message's content that is a thought."""
    data = {"type": _OF_CONTENT, "fields": {_CHUNK: part}, **_maker(message)}
    return Reasoning(text=text_of_thought(part), data=data, response_id=response_id)


def chunks_given_back(entry: Entry, model: str) -> list[Part]:
    """Return the chunk of content that an entry was read from, for the model that thought it; none for another."""
    data = entry.data if entry.type == "assistant.reasoning" and isinstance(entry.data, dict) else {}
    chunk = _sent(entry, data, model).get(_CHUNK) if data.get("type") == _OF_CONTENT else None
    return [chunk] if isinstance(chunk, dict) else []


def _maker(message: Part) -> Part:
    model = text_of(message, "model")
    return {"model": model} if model else {}


def _fields(part: Part, names: Iterable[str]) -> Part:
    fields = {name: value for name in names if isinstance(value := part.get(name), dict | list) and value}
    return {"fields": fields} if fields else {}


def _readable(given: Part) -> str:
    """Return the readable texts of details that came without a text of their own."""
    lists = (value for value in given.get("fields", {}).values() if isinstance(value, list))
    parts = (part for value in lists for part in value if isinstance(part, dict))
    texts = (text_of(part, key) for part in parts for key in _GROWING)
    return "\n".join(filter(None, texts))


class Details:
    """Joins the details that a stream brings in pieces: texts of one place are joined, other fields are replaced."""

    def __init__(self) -> None:
        self._details: list[Any] = []
        self._texts: list[dict[str, list[str]]] = []

    def take(self, pieces: list[Any]) -> None:
        """Add the details of the next chunk; a detail without an ``index`` continues the last one of its type."""
        for piece in pieces:
            place = self._place_of(piece)
            if place is None:
                place = len(self._details)
                self._details.append(dict(piece) if isinstance(piece, dict) else piece)
                self._texts.append({})
            if isinstance(piece, dict):
                self._details[place] |= {key: value for key, value in piece.items() if value is not None}
                for key in _GROWING:
                    if isinstance(text := piece.get(key), str):
                        self._texts[place].setdefault(key, []).append(text)

    def whole(self) -> list[Any]:
        """Return the details so far."""
        pairs = zip(self._details, self._texts, strict=True)
        return [
            {**detail, **{key: "".join(pieces) for key, pieces in texts.items()}} if texts else detail
            for detail, texts in pairs
        ]

    def _place_of(self, piece: Any) -> int | None:
        """Return the place of the detail that a piece continues; None where the piece begins a new one."""
        if not isinstance(piece, dict):
            return None
        known = self._details
        places = [n for n, one in enumerate(known) if isinstance(one, dict) and one.get("type") == piece.get("type")]
        if "index" in piece:
            return next((place for place in places if known[place].get("index") == piece["index"]), None)
        last = len(known) - 1
        return last if last in places and piece.keys() & {*_GROWING, "signature"} else None


def asked_as(block: Block, model: str) -> Block:
    """Return a thought that also names the model of its request, where the reply names another model.

    A deployment, or a gateway's alias, has a name of its own, and the next request uses that name again.
    """
    data = block.data
    if not isinstance(block, Reasoning) or not isinstance(data, dict) or text_of(data, "type") not in _KINDS:
        return block
    if _is_of(text_of(data, "model"), model):
        return block
    return block.model_copy(update={"data": {**data, _ASKED: model}})


def said_alike(thought: Reasoning) -> Any:
    """Return what distinguishes a thought from others with the same text.

    A list of messages does not say which model thought it, and older logs kept the text alone, so neither counts. An
    item of OpenAI's is compared by its encrypted content, since frameworks add fields to the item that had no value.
    """
    data = thought.data
    if not isinstance(data, dict):
        return data
    if data.get("type") == "reasoning":
        return data.get("encrypted_content") or data.get("id")
    if text_of(data, "type") not in _KINDS:
        return {key: value for key, value in data.items() if key != SIGNED_BY}
    return None if thought.text else data.get("fields")


def given_back(response: Response, model: str) -> tuple[Part, list[Part]]:
    """Return the fields of a response's message that hold its thoughts, and those of each of its calls, in order.

    Args:
        response: the response.
        model: the model that the request is for; empty where that is not known.
    """
    beside: Part = {}
    on_calls: list[Part] = []
    waiting: Part = {}
    for part in response.parts:
        if isinstance(part, Call):
            on_calls.append(waiting)
            waiting = {}
        elif part.entry.type == "assistant.reasoning" and isinstance(data := part.entry.data, dict):
            if data.get("type") == _OF_CALL:
                waiting = _sent(part.entry, data, model)
            elif data.get("type") == _OF_MESSAGE:
                beside |= _sent(part.entry, data, model)
    if on_calls and OPENAI_CHAT.demands_thought(model) and not beside.keys() & {*THOUGHTS}:
        beside[THOUGHTS[0]] = LEFT_OUT
    return beside, on_calls


def _sent(entry: Entry, data: Part, model: str) -> Part:
    """Return what is sent of a thought: its text also to a model that demands one, signed fields by their own rule.

    The text goes back under the key that it came with, and to another model under the one that is demanded.
    """
    own = _is_of(text_of(data, "model"), model) or (_ASKED in data and _is_of(text_of(data, _ASKED), model))
    key, fields = text_of(data, "key"), data.get("fields")
    to = key if own else THOUGHTS[0]
    text = {to: entry.text} if key in THOUGHTS and (own or OPENAI_CHAT.demands_thought(model)) else {}
    signed = fields if own and isinstance(fields, dict) and OPENAI_CHAT.takes_back(entry, model) else {}
    return {**text, **plain(signed)}  # copied: it is the log's, and what a caller changes in a body is the body's alone


def _is_of(maker: str, model: str) -> bool:
    """Return whether a model is the one that thought, if both are known: a name may come with a host or a date."""
    one, other = (name.rpartition("/")[2].lower() for name in (maker, model))
    return one.startswith(other) or other.startswith(one)
