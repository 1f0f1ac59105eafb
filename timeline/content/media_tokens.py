"""Tokens of what no text says: pictures, documents, encrypted thoughts, and what a server's own tools found.

No tokenizer counts them. They are estimated by their size, as the providers document or bill them.
"""

from __future__ import annotations

from binascii import Error, a2b_base64
from io import BytesIO
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import Attachment, Reasoning, ToolResult, UserPrompt
from timeline.content.native import (
    DRAWN,
    FOUND_TOOLS,
    GOOGLE_FILES,
    SHELL_OUTPUT,
    google_kind,
    server_part,
    standard_base64,
)
from timeline.content.parts import typed
from timeline.frozen import canonical_json

if TYPE_CHECKING:
    from pydantic import JsonValue

    from timeline.blocks import Block

IMAGE_TOKENS: Final = 1_600
"""Tokens of a picture whose size is not at hand: what a screenshot of 1.2 megapixels costs at Anthropic."""
PATCH: Final = 28
"""Pixels of the side of a square that is a token at Anthropic; OpenAI's 32, at 1.2 tokens each, come out below."""
LONGEST_EDGE: Final = 2_576
"""Pixels of the longer edge above which Anthropic scales a picture down."""
FEWEST_IMAGE_TOKENS: Final = 1_120
"""Tokens of a small picture: what Gemini 3 takes for one of any size.

A count in a log is for every provider, so it is that of the dearest: a count below it ends in a refused request.
"""
MOST_IMAGE_TOKENS: Final = 4_784
"""Tokens of a large picture: the most that Anthropic takes."""
DOCUMENT_CHARACTERS: Final = 33
"""Characters of base64 to a token of a document: a page of some 75 KB costs up to 3,000 tokens."""
_OPAQUE_KEYS: Final = (
    *("signature", "data", "encrypted_content", "thinkingSignature", "thoughtSignature"),
    *("thought_signature", "encrypted_stdout", "redactedContent"),
)
_FILE_KEYS: Final = ("source", "file", "input_audio", "inlineData", "inline_data", "fileData", "file_data")
"""The keys under which the parts of providers hold a file."""
_PICTURE_KEYS: Final = ("source", "image_url", "inlineData", "inline_data")
"""The keys under which the parts of providers hold a picture."""
_CONTENT_KEYS: Final = ("data", "bytes", "url", "image_url", "image", "base64", "result")
"""The keys for its content, in such an object or in the part itself: base64, or an address that may hold it."""
_HEADS: Final = (4_096, 400_000)
"""Characters of base64 in which a picture says its size: nearly all do at once, a camera's behind its own pages."""
_RASTERS: Final = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
"""How the formats begin that providers take: PNG, JPEG, GIF and WebP."""
_IMAGE_PARTS: Final = frozenset({"image", "image_url", "input_image", DRAWN})


def image_count(block: Block) -> int:
    """Count the pictures that a block carries in its content parts."""
    return sum(map(_is_picture, _parts(block)))


def with_media(block: Block, counted: int) -> int:
    """Return a block's tokens: those counted of its text, and an estimate for its pictures and documents.

    Pictures and documents are sent only in inputs. Encrypted reasoning costs the tokens of the original thought,
    which no counter can see: it is charged by its size if its readable text counts less.
    """
    if block.data is None:
        return counted
    if isinstance(block, Reasoning):
        return max(counted, _opaque_characters(block.data) * 3 // 16)
    if (part := server_part(block)) is not None and not _is_file(block):
        opaque = _opaque_within(part)
        return counted + opaque * 3 // 16 + (len(canonical_json(part)) - opaque) // 4
    return counted + media_tokens(block)


def media_tokens(block: Block) -> int:
    """Return the estimate for a block's pictures, documents and search results, by their size: no text has them."""
    if not _sends_files(block):
        return 0
    tokens = 0
    for part in _parts(block):
        if _is_picture(part):
            tokens += _picture_tokens(part)
        elif _kind_of(part) == FOUND_TOOLS:
            tokens += max(0, len(canonical_json(part)) - len(block.text)) // 4
        elif _kind_of(part) == SHELL_OUTPUT:
            tokens += max(0, _shell_characters(part) - len(block.text)) // 4
        elif (characters := _text_characters(part)) is not None:
            tokens += characters // 4
        elif (characters := _file_characters(part)) is not None:
            tokens += max(IMAGE_TOKENS, characters // DOCUMENT_CHARACTERS)
    return tokens


def _sends_files(block: Block) -> bool:
    """Return whether a request has the pictures and documents of a block: those of inputs, and what the model drew."""
    return block.data is not None and (isinstance(block, UserPrompt | Attachment | ToolResult) or _is_file(block))


def _is_file(block: Block) -> bool:
    """Return whether a block is a file that the model made."""
    part = server_part(block)
    return part is not None and (google_kind(part) in GOOGLE_FILES or _kind_of(part) == DRAWN)


def media_characters(block: Block) -> int:
    """Count the characters of the parts in requests that hold a picture, document, sound or film: mostly base64."""
    parts = (part for part in _parts(block) if _holds_file(part)) if _sends_files(block) else ()
    return sum(len(canonical_json(part)) for part in parts)


def media_within(block: Block, tokens: int) -> int:
    """Return the estimate for a block's pictures and documents as far as its stored tokens hold it.

    Earlier releases counted no file in some providers' forms, and all pictures alike; a block keeps its count.
    """
    media = media_tokens(block)
    return media if media <= tokens else 0


def _holds_file(part: dict[str, Any]) -> bool:
    if _is_picture(part) or _inline_type(part):
        return True
    return _text_characters(part) is None and _file_characters(part) is not None


def _kind_of(part: dict[str, Any]) -> str:
    """Return a part's type; an empty text where it has none, as a part of foreign data may."""
    kind = part.get("type")
    return kind if isinstance(kind, str) else ""


def _is_picture(part: dict[str, Any]) -> bool:
    """Return whether a part is a picture; the AI SDK's file names its content type beside its own."""
    own = part.get("mediaType") if _kind_of(part) == "file" else ""
    return _kind_of(part) in _IMAGE_PARTS or any(str(mime).startswith("image/") for mime in (own, _inline_type(part)))


def _inline_type(part: dict[str, Any]) -> str:
    """Return the content type of a part of Google's."""
    inline = part.get("inlineData", part.get("inline_data"))
    mime = inline.get("mimeType", inline.get("mime_type")) if isinstance(inline, dict) else None
    return mime if isinstance(mime, str) else ""


def _picture_tokens(part: dict[str, Any]) -> int:
    size = _pixels(_picture_content(part))
    if size is None:
        return IMAGE_TOKENS
    scale = min(1.0, LONGEST_EDGE / max(size))
    width, height = (ceil(edge * scale / PATCH) for edge in size)
    return min(max(width * height, FEWEST_IMAGE_TOKENS), MOST_IMAGE_TOKENS)


def _picture_content(part: dict[str, Any]) -> str:
    """Return the base64 of a picture, or what a part has instead, such as an address."""
    holders = [inner for key in _PICTURE_KEYS if isinstance(inner := part.get(key), dict)]
    values = (holder.get(key) for holder in (*holders, part) for key in _CONTENT_KEYS)
    content = next((value for value in values if isinstance(value, str)), "")
    return content.partition(",")[2] if content[:5].lower() == "data:" else content


def _pixels(content: str) -> tuple[int, int] | None:
    """Return width and height of a picture in base64; None where its beginning does not say them."""
    import imagesize  # noqa: PLC0415 - only a picture asks, and it brings a client of HTTP that nothing here calls

    for most in _HEADS:
        head = _decoded(content[:most])
        if not head.startswith(_RASTERS):
            return None
        width, height = imagesize.get(BytesIO(head))
        if width > 0 and height > 0:
            return width, height
    return None


def _decoded(text: str) -> bytes:
    """Return the bytes of the beginning of a base64 text, none where it is no base64; line ends may divide it."""
    joined = "".join(text.split())
    try:
        return a2b_base64(standard_base64(joined[: len(joined) // 4 * 4]))
    except Error:
        return b""


def _shell_characters(part: dict[str, Any]) -> int:
    """Return the characters that a shell printed: an application may say some of them in the block's text, or none."""
    chunks = part.get("output")
    outputs = [chunk for chunk in chunks if isinstance(chunk, dict)] if isinstance(chunks, list) else []
    printed = (chunk.get(key) for chunk in outputs for key in ("stdout", "stderr"))
    return sum(len(text) for text in printed if isinstance(text, str))


def _text_characters(part: dict[str, Any]) -> int | None:
    """Return the characters of a search result or a document of text, in Anthropic's form; None for any other part."""
    source = part.get("source")
    content = part.get("content") if part.get("type") == "search_result" else None
    if isinstance(source, dict) and _kind_of(source) in {"text", "content"}:
        content = source.get("data", source.get("content"))
    return None if content is None else len(canonical_json(content))


def _file_characters(part: dict[str, Any]) -> int | None:
    """Return the characters of base64 in a document, sound or film of any provider; None for any other part.

    One that is given by its address or id has none at hand.
    """
    for key in _FILE_KEYS:
        if isinstance(inner := part.get(key), dict):
            contents = (inner.get(name) for name in ("data", "file_data", "bytes"))
            return next((len(content) for content in contents if isinstance(content, str)), 0)
    if part.get("type") == "input_file":
        return len(content) if isinstance(content := part.get("file_data"), str) else 0
    own = part.get("data", part.get("url"))
    return len(own) if part.get("type") == "file" and isinstance(own, str) else None


def _opaque_characters(data: JsonValue) -> int:
    """Count the characters of base64 in a reasoning part: three bytes in four, four bytes a token."""
    part = data if isinstance(data, dict) else {}
    beside = part.get("fields")  # of a server of OpenAI's chat form, at any depth
    own = sum(len(value) for key in _OPAQUE_KEYS if isinstance(value := part.get(key), str))
    return own + (_opaque_within(beside) if isinstance(beside, dict) else 0)


def _opaque_within(value: JsonValue) -> int:
    if isinstance(value, list):
        return sum(map(_opaque_within, value))
    if not isinstance(value, dict):
        return 0
    own = sum(len(inner) for key in _OPAQUE_KEYS if isinstance(inner := value.get(key), str))
    return own + sum(map(_opaque_within, value.values()))


def _parts(block: Block) -> list[dict[str, Any]]:
    """Return a block's parts; the pictures in a document of Anthropic's stand behind it, which is text without them."""
    data = typed(block.data)
    parts = [part for part in (data if isinstance(data, list) else [data]) if isinstance(part, dict)]
    return [inner for part in parts for inner in _apart(part)]


def _apart(part: dict[str, Any]) -> list[dict[str, Any]]:
    source = part.get("source")
    content = source.get("content") if isinstance(source, dict) and source.get("type") == "content" else None
    inner = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    pictures = [each for each in inner if _is_picture(each)]
    if not pictures:
        return [part]
    texts = [each for each in inner if not _is_picture(each)]
    return [{**part, "source": {"type": "content", "content": texts}}, *pictures]
