"""Pictures, documents and results of Amazon Bedrock's Converse API: content blocks into parts, and parts into blocks.

A content block is an object whose one key says its kind. Pictures and PDF documents take the form of Anthropic's parts,
which the other wires can send, too; a film, a sound, another document and a file in S3 keep their fields under a type.
Bytes are base64 text, as the service reads them: see `timeline.wire.converse_body` for what its SDK takes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import Attachment, ToolResult
from timeline.content.native import JSON_TEXT, is_json_text, standard_base64
from timeline.content.parts import BEDROCK_FILES
from timeline.frozen import compact_json, sha256_hex
from timeline.wire.foreign import arguments_of, object_of, text_of
from timeline.wire.gemini_tools import is_base64
from timeline.wire.groups import OPENING_LINE
from timeline.wire.media import anthropic_media, shown_parts, text_part, translated, unbroken, unseen_line
from timeline.wire.providers import BEDROCK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry

NO_OUTPUT: Final = "[no output]"
"""Text of a result without any: the API refuses an error without content, and some models every empty result."""
_FIELDS: Final = ("format", "name", "source", "context", "citations")
_SOURCES: Final = frozenset({"bytes", "s3Location", "text", "content"})
_PDF: Final = "application/pdf"
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9 ()\[\]-]+")
_NAME_LENGTH: Final = 100
"""Characters of a document's title that go into its name: the API takes 200, with what makes the name unique."""


def is_content_block(part: Any) -> bool:
    """Return whether a value is a content block of this API: it says its kind by its key, and has no type."""
    return isinstance(part, dict) and "type" not in part and not _KINDS.isdisjoint(part)


_KINDS: Final = frozenset(
    {
        *BEDROCK_FILES,
        *("text", "toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent", "citationsContent"),
        *("searchResult", "toolAddition", "toolRemoval"),
    }
)


def shown_blocks(entry: Entry, place: str) -> list[Part]:
    """Return the content blocks of an entry's pictures, documents and other parts, or a line for each without a form.

    Args:
        entry: the entry.
        place: where they go: ``user``, among the user's blocks, or ``result``, into a tool's result.
    """
    made = ((part, _block_of(part, place, f"{entry.path}#{n}")) for n, part in enumerate(shown_parts(entry)))
    return [block or {"text": unseen_line(entry, part)} for part, block in made]


def has_block(part: Part, place: str) -> bool:
    """Return whether a part has a content block of its own at a place, see `shown_blocks`."""
    return _block_of(part, place, "") is not None


def _block_of(part: Part, place: str, origin: str) -> Part | None:
    if part["type"] in BEDROCK_FILES and _is_own(source := object_of(part, "source")):
        return _own_block(part, source, place)
    part = translated(part)
    made = anthropic_media(part, BEDROCK, place)
    source = object_of(made, "source")
    data, mime = standard_base64(unbroken(text_of(source, "data"))), text_of(source, "media_type")
    if source.get("type") != "base64" or not data or not is_base64(data):
        return None
    if part["type"] != "document":
        return {"image": {"format": mime.partition("/")[2], "source": {"bytes": data}}}
    name = _document_name(text_of(part, "title"), origin)
    return {"document": {"format": "pdf", "name": name, "source": {"bytes": data}}} if mime == _PDF else None


def _is_own(source: Part) -> bool:
    """Return whether a source has this API's form, which says by a key what Anthropic's says by a type."""
    return "type" not in source and not _SOURCES.isdisjoint(source)


def _own_block(part: Part, source: Part, place: str) -> Part | None:
    """Return a block that came in this form, if it is whole; a result takes no sound."""
    held = source.get("bytes")
    is_whole = held is None or (isinstance(held, str) and bool(held) and is_base64(held))
    if not is_whole or (part["type"] == "audio" and place == "result"):
        return None
    return {part["type"]: {key: part[key] for key in _FIELDS if part.get(key) is not None}}


def _document_name(title: str, origin: str) -> str:
    """Return a name that the API takes: few signs, no two of a request alike."""
    stem = re.sub(r"\.\w{1,5}$", "", title)
    kept = " ".join(_NOT_IN_NAMES.sub(" ", stem).split())[:_NAME_LENGTH].strip()
    return f"{kept or 'document'} {sha256_hex(origin)[:8]}"


def named_documents(blocks: Iterable[Part]) -> str:
    """Return the line that goes before documents without a word: the API refuses a message that is nothing else."""
    names = [text_of(block["document"], "name") for block in blocks if "document" in block]
    return f"[attached: {', '.join(names)}]" if names else ""


def result_content(entry: Entry) -> list[Part]:
    """Return the content of a call's result: the object that its text is, or its text, and what it shows beside it."""
    shown = shown_blocks(entry, "result")
    said: list[Part] = []
    if is_json_text(entry.data) and isinstance(value := arguments_of(entry.text), dict):
        said = [{"json": value}]
    elif entry.text.strip():
        said = [{"text": entry.text}]
    return [*said, *shown] or [{"text": NO_OUTPUT}]


def result_block(part: Part, name: str) -> ToolResult:
    """Decode the result of a call."""
    listed = part.get("content")
    content = [inner for inner in listed if isinstance(inner, dict)] if isinstance(listed, list) else []
    said = [
        inner["json"] if "json" in inner else text_of(inner) for inner in content if inner.keys() & {"json", "text"}
    ]
    texts = [each if isinstance(each, str) else compact_json(each) for each in said]
    text = "\n".join(each for each in texts if each and each != NO_OUTPUT)
    is_object = len(said) == 1 and isinstance(said[0], dict)
    media: list[JsonValue] = [file_part(inner) for inner in content if not inner.keys() & {"json", "text"}]
    data: JsonValue = dict(JSON_TEXT) if is_object else None
    if media:
        data = [dict(JSON_TEXT) if is_object else text_part(text), *media]
    return ToolResult(
        call_id=text_of(part, "toolUseId") or "unknown",
        name=name,
        text=text,
        data=data,
        is_error=part.get("status") == "error",
    )


def file_part(block: Part) -> Part:
    """Return a block with a file as a part that says its type: a picture or a PDF as Anthropic's, where it is one."""
    kind = next(iter(block))
    own = block[kind] if isinstance(block[kind], dict) else {}
    data, format_ = text_of(object_of(own, "source"), "bytes"), text_of(own, "format")
    mime = f"image/{format_}" if kind == "image" else _PDF if (kind, format_) == ("document", "pdf") else ""
    if kind == "searchResult":
        return {**own, "type": "search_result", "content": _texts(own.get("content"))}
    if not mime or not data:
        return {"type": kind, **{key: value for key, value in own.items() if key != "type"}}
    titled = {"title": own["name"]} if text_of(own, "name") else {}
    source = {"type": "base64", "media_type": mime, "data": data}
    return {"type": kind, "source": source, **titled}


def _texts(content: Any) -> list[Part]:
    listed = content if isinstance(content, list) else []
    return [text_part(text_of(inner)) for inner in listed if isinstance(inner, dict)]


def attachment(block: Part) -> Attachment:
    """Decode a block of the user's that is no text."""
    part = file_part(block)
    source = object_of(part, "source")
    title = text_of(part, "title") or text_of(part, "name")
    mime = text_of(source, "media_type") or "application/octet-stream"
    return Attachment(data=part, mime=mime, meta={"file": title} if title else {})


def said_by_user(block: Part) -> str | None:
    """Return the text of a block that is the user's words; None where it is none."""
    guarded = object_of(object_of(block, "guardContent"), "text")
    text = block.get("text", guarded.get("text"))
    return text if isinstance(text, str) and text != OPENING_LINE else None
