"""Convert pictures and other content parts between the forms of the providers.

A part without a form on a wire is sent as one line of text that names the block's path and content type, so that
the model knows of it and can ask for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import Attachment
from timeline.content.native import (
    COMPACTION,
    FOUND_TOOLS,
    GOOGLE_CALLS,
    JSON_TEXT,
    SERVER_CALLS,
    SHELL_OUTPUT,
    google_kind,
)
from timeline.content.parts import GOOGLE_KEYS, GOOGLE_PARTS, typed
from timeline.wire.foreign import text_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from timeline.wire.neutral import Entry
    from timeline.wire.providers import ProviderFacts

_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+-]+=[^;,]*)*;base64,(.+)", re.DOTALL | re.IGNORECASE)
_SAME_TYPES: Final = {"image/jpg": "image/jpeg"}
"""Content types that no provider takes, though servers and programs write them, each with the registered one."""
_READ_BY_ANTHROPIC: Final = {"base64": "application/pdf", "text": "text/plain"}
"""The one content type of a document that the Messages API takes, by the type of its source."""
_SOURCE_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "base64": ("media_type", "data"),
    "text": ("media_type", "data"),
    "url": ("url",),
    "file": ("file_id",),
}
"""The required keys of a source of the Messages API, by its type."""
_ANTHROPIC_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "search_result": ("source", "title"),
    "tool_reference": ("tool_name",),
    "container_upload": ("file_id",),
}
"""The required texts of parts that the Messages API alone knows, by their type."""
_ONLY_IN: Final = {"tool_reference": "result", "container_upload": "user"}
"""Where such a part may stand alone: in a result, or among the user's parts."""
_OPENAI_KEYS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "input_audio": ("input_audio", ("data", "format")),
    "file": ("file", ()),
}
"""The object inside a content part of Chat Completions, and its required keys, by the part's type."""

_CHAT_FILE: Final = ("file_id", "file_data", "filename")
"""The keys of a file in Chat Completions."""

_UNSAID: Final = frozenset(
    {
        *("text", "input_text", "output_text", JSON_TEXT["type"], SHELL_OUTPUT, FOUND_TOOLS, *SERVER_CALLS),
        *("web_search_call", "mcp_list_tools", "tool_search_call", "shell_call", "program"),
    }
)
"""Types of parts that add nothing: their words are in the block's text, in a result behind them, or in an answer."""
_ATTACHMENT: Final[str] = Attachment.model_fields["type"].default
_PDF: Final = "application/pdf"
_CONVERSE_TYPES: Final = {
    ("document", "pdf"): _PDF,
    **{("image", kind): f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp")},
}
"""The content type of a file of Bedrock's, by its kind and format, where other providers take it."""
_SUFFIXES: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "pdf": "application/pdf",
}
"""The content type of an address, by its suffix."""

Part = dict[str, Any]


def content_parts(data: JsonValue) -> list[Part]:
    """Return the content parts in a block's data without those that say nothing of their own."""
    parts = typed(data)
    listed = parts if isinstance(parts, list) else [parts]
    return [p for p in listed if isinstance(p, dict) and isinstance(p.get("type"), str) and p["type"] not in _UNSAID]


def shown_parts(entry: Entry) -> list[Part]:
    """Return the content parts that an entry shows to the model, which are sent or have a line.

    An attachment is nothing but its data. Where the data holds no part, any value counts as a part that has no form on
    any wire, so that the model knows of it.
    """
    parts = content_parts(entry.data)
    if parts or entry.data is None or entry.type != _ATTACHMENT or entry.text.strip():
        return parts
    values = entry.data if isinstance(entry.data, list) else [entry.data]
    return [{"type": _ATTACHMENT} for _ in values] or [{"type": _ATTACHMENT}]


def text_part(text: str) -> Part:
    """Return a text as a content part, which most wires write alike."""
    return {"type": "text", "text": text}


def unseen_lines(entry: Entry) -> list[str]:
    """Return what is sent instead of a part of a response that this wire cannot send."""
    parts = [part for part in content_parts(entry.data) if not _is_in_vain(part)]
    kind = google_kind(entry.data) if isinstance(entry.data, dict) else ""
    if kind and kind not in GOOGLE_CALLS:
        parts = [{"type": kind}]
    return [unseen_line(entry, part) for part in parts]


def _is_in_vain(part: Part) -> bool:
    """Return whether a part is a compaction of Anthropic's that failed: it replaces nothing."""
    return part["type"] == COMPACTION and "content" in part and not part["content"]


def unseen_line(entry: Entry, part: Part | None = None) -> str:
    """Return what is sent instead of content that this wire cannot send: its words, or else a line."""
    if part and (words := words_of(part)):
        return words
    kind = part.get("type") if part else entry.type
    return f"[not shown here: {kind}, {entry.mime}, {entry.path}]"


def words_of(part: Part) -> str:
    """Return the words of a part of Anthropic's that says nothing else: a search result, a text, a compaction."""
    if part["type"] == COMPACTION:
        return text_of(part, "content")
    if part["type"] == "search_result":
        return _titled(part, part.get("content"))
    source = part.get("source") if part["type"] == "document" else None
    key = {"text": "data", "content": "content"}.get(str(source.get("type"))) if isinstance(source, dict) else None
    return _titled(part, source.get(key)) if key and isinstance(source, dict) else ""


def _titled(part: Part, content: JsonValue) -> str:
    """Return a part's texts behind its title and source; nothing where it has more than texts."""
    listed = content if isinstance(content, list) else [content]
    texts = [inner if isinstance(inner, str) else text_of(inner) for inner in listed if isinstance(inner, str | dict)]
    if not texts or not all(text.strip() for text in texts):
        return ""
    head = ", ".join(filter(None, (text_of(part, "title"), text_of(part, "source"))))
    return "\n".join(filter(None, (head, text_of(part, "context"), *texts)))


def translated(part: Part) -> Part:
    """Return a picture or PDF document of OpenAI's or Bedrock's, or of an MCP tool, in the form that other wires read.

    The Responses API has its own names; a file is a document where its data says that it is a PDF. The content type
    gets the name that the providers take. Any other part is returned as it is.
    """
    if isinstance(source := part.get("source"), dict):
        return {**part, "source": _standard(source, part)}
    if part["type"] == "image" and (mime := text_of(part, "mimeType")) and (data := text_of(part, "data")):  # of MCP
        return {"type": "image", "source": {"type": "base64", "media_type": _standard_type(mime), "data": data}}
    if part["type"] == "input_image" and (url := _url_of(part)):
        detail = {"detail": part["detail"]} if isinstance(part.get("detail"), str) else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    file = part.get("file") if part["type"] == "file" else part if part["type"] == "input_file" else None
    source = of_data_url(text_of(file, "file_data")) if isinstance(file, dict) else None
    if not isinstance(file, dict) or source is None or source["media_type"] != _PDF:
        return part
    titled = {"title": file["filename"]} if text_of(file, "filename") else {}
    return {"type": "document", "source": source, **titled}


def of_data_url(url: str) -> Part | None:
    """Return the file in a ``data:`` address as a source of the Messages API; None for any other address."""
    matched = _DATA_URL.fullmatch(url)
    return {"type": "base64", "media_type": _standard_type(matched[1]), "data": matched[2]} if matched else None


def _standard_type(mime: str) -> str:
    return _SAME_TYPES.get(mime.lower(), mime.lower())


def _standard(source: Part, part: Part) -> Part:
    """Return a source of the Messages API: its content type as providers name it, or the file of another form."""
    if source.get("type") == "url" and (held_in_url := of_data_url(text_of(source, "url"))):
        return held_in_url
    if source.get("type") == "base64" and isinstance(mime := source.get("media_type"), str):
        return {**source, "media_type": _standard_type(mime)}
    mime = _CONVERSE_TYPES.get((part["type"], text_of(part, "format")), "")
    held = text_of(source, "bytes")
    return {"type": "base64", "media_type": mime, "data": held} if mime and held and "type" not in source else source


def anthropic_media(part: Part, facts: ProviderFacts, place: str = "user") -> Part | None:
    """Return a content part in the form of the Messages API, without cache markers; None if it has none.

    Args:
        part: the part.
        facts: the provider's rules.
        place: where it goes: ``user``, among the user's parts, or ``result``, into a tool's result.
    """
    part = translated(part)
    if part["type"] in _ANTHROPIC_KEYS:
        return _anthropic_own(part) if _ONLY_IN.get(part["type"], place) == place else None
    if part["type"] == "image_url":
        return _anthropic_picture(part, facts)
    source = part.get("source")
    if part["type"] not in {"image", "document"} or not isinstance(source, dict) or not _is_source(source):
        return None
    if part["type"] == "image" and source["type"] in {"text", "content"}:
        return None
    if part["type"] == "image" and source["type"] == "base64" and source["media_type"] not in facts.picture_types:
        return None
    if part["type"] == "document" and _READ_BY_ANTHROPIC.get(source["type"], mime := source.get("media_type")) != mime:
        return None
    cited = part.get("citations") if part["type"] == "document" else None
    citations = {"citations": cited} if isinstance(cited, dict) else {}
    return {"type": part["type"], "source": source, **_optional_texts(part, ("title", "context")), **citations}


def _anthropic_own(part: Part) -> Part | None:
    """Return a part that the Messages API alone knows as it came, if it is whole."""
    if not all(isinstance(part.get(key), str) and part[key] for key in _ANTHROPIC_KEYS[part["type"]]):
        return None
    if part["type"] == "search_result" and not words_of(part):
        return None
    return {key: value for key, value in part.items() if key != "cache_control"}


def openai_media(part: Part, facts: ProviderFacts) -> Part | None:
    """Return a content part in the form of Chat Completions; None if it has none."""
    part = translated(part) if part["type"] in {"input_image", "image"} else part
    if part["type"] == "input_file" and not text_of(part, "file_url"):
        part = {"type": "file", "file": {key: part[key] for key in _CHAT_FILE if text_of(part, key)}}
    if part["type"] == "image_url":
        url = _url_of(part)
        detail = part["image_url"].get("detail") if isinstance(part.get("image_url"), dict) else None
        more = {"detail": detail} if detail in {"auto", "low", "high"} else {}
        return {"type": "image_url", "image_url": {"url": url, **more}} if url else None
    if part["type"] in _OPENAI_KEYS:
        key, needed = _OPENAI_KEYS[part["type"]]
        inner = part.get(key)
        holds = isinstance(inner, dict) and inner and all(isinstance(inner.get(k), str) for k in needed)
        return {"type": part["type"], key: inner} if holds else None
    source = part.get("source")
    if part["type"] != "image" or not isinstance(source, dict) or not _is_source(source):
        return None
    if source["type"] == "url":
        return {"type": "image_url", "image_url": {"url": source["url"]}}
    if source["type"] == "base64" and source["media_type"] in facts.picture_types:
        return {"type": "image_url", "image_url": {"url": f"data:{source['media_type']};base64,{source['data']}"}}
    return None


def responses_media(part: Part, facts: ProviderFacts) -> Part | None:
    """Return a content part in the form of OpenAI's Responses API; None if it has none."""
    if part["type"] == "input_image":
        detail = part.get("detail") if part.get("detail") in {"auto", "low", "high"} else "auto"
        named = {key: part[key] for key in ("image_url", "file_id") if isinstance(part.get(key), str) and part[key]}
        return {"type": "input_image", "detail": detail, **named} if named else None
    if part["type"] in {"input_file", "file"}:
        source = part if part["type"] == "input_file" else part.get("file")
        keys = ("file_id", "file_data", "file_url", "filename")
        named = {k: source[k] for k in keys if isinstance(source.get(k), str)} if isinstance(source, dict) else {}
        return {"type": "input_file", **named} if named.keys() - {"filename"} else None
    picture = openai_media(part, facts)
    if picture is None or picture["type"] != "image_url":
        return None
    source = picture["image_url"]
    return {"type": "input_image", "image_url": source["url"], "detail": source.get("detail", "auto")}


def gemini_media(part: Part, facts: ProviderFacts) -> Part | None:
    """Return a content part in the form of Google's Gen AI API; None if it has none.

    A picture given by its address has a form only where the address shows its type.
    """
    own = part.get(part["type"]) if part["type"] in {"inlineData", "fileData"} else None
    if isinstance(own, dict):
        keys = GOOGLE_KEYS[part["type"]]
        own_fields = {
            snake: own[camel] for camel, snake in keys.items() if isinstance(own.get(camel), str) and own[camel]
        }
        needed = list(keys.values())[:2]
        return {GOOGLE_PARTS[part["type"]]: own_fields} if all(key in own_fields for key in needed) else None
    if part["type"] == "input_audio":
        audio = openai_media(part, facts)
        inner = audio["input_audio"] if audio else None
        return _inline(f"audio/{inner['format']}", inner["data"]) if inner else None
    part = translated(part)
    source = picture_source(part)
    if source is None:
        return None
    if source["type"] == "base64":
        is_taken = part["type"] == "document" or source["media_type"] in facts.picture_types
        return _inline(source["media_type"], source["data"]) if is_taken else None
    suffix = source["url"].partition("?")[0].rpartition(".")[2].lower() if source["type"] == "url" else ""
    mime = _SUFFIXES.get(suffix)
    return {"file_data": {"file_uri": source["url"], "mime_type": mime}} if mime else None


def picture_source(part: Part) -> Part | None:
    """Return the source of another API's picture or document, as a source of the Messages API."""
    source = _url_source(part) if part["type"] == "image_url" else part.get("source")
    if part["type"] not in {"image", "document", "image_url"} or not isinstance(source, dict) or not _is_source(source):
        return None
    return source


def _inline(mime: str, data: str) -> Part:
    return {"inline_data": {"mime_type": mime, "data": unbroken(data)}}


def unbroken(base64: str) -> str:
    """Return base64 without the line ends that programs for mail write into it, and that some providers refuse."""
    return "".join(base64.split())


def _url_source(part: Part) -> Part | None:
    """Return an OpenAI picture's address as a source of the Messages API."""
    url = _url_of(part)
    if url and (source := of_data_url(url)):
        return source
    return {"type": "url", "url": url} if url and url[:5].lower() != "data:" else None


def attachment_block(part: Part, author: str = "user") -> Attachment:
    """Read a picture or document of any provider; the part itself is kept."""
    file = part.get("file")
    title = text_of(part, "title") or text_of(file if isinstance(file, dict) else part, "filename")
    return Attachment(author=author, data=part, mime=_mime_of(part), meta={"file": title} if title else {})


def _mime_of(part: Part) -> str:
    """Return the content type that a part names, or the general one."""
    source = part.get("source")
    if isinstance(source, dict) and isinstance(source.get("media_type"), str):
        return str(source["media_type"])
    url = _url_of(part)
    matched = _DATA_URL.match(url) if url else None
    return matched.group(1) if matched else "application/octet-stream"


def _is_source(source: Part) -> bool:
    if source.get("type") == "content":
        content = source.get("content")
        return bool(content) and (isinstance(content, str) or all(isinstance(p, dict) for p in _listed(content)))
    needed = _SOURCE_KEYS.get(str(source.get("type")))
    return needed is not None and all(isinstance(source.get(key), str) and source[key] for key in needed)


def _listed(content: JsonValue) -> list[JsonValue]:
    return content if isinstance(content, list) else [None]


def _optional_texts(part: Part, keys: tuple[str, ...]) -> Part:
    return {k: part[k] for k in keys if part["type"] == "document" and isinstance(part.get(k), str)}


def _url_of(part: Part) -> str | None:
    picture = part.get("image_url")
    url = picture.get("url") if isinstance(picture, dict) else picture
    return url if isinstance(url, str) and url else None


def _anthropic_picture(part: Part, facts: ProviderFacts) -> Part | None:
    source = _url_source(part)
    if source is None or (source["type"] == "base64" and source["media_type"] not in facts.picture_types):
        return None
    return {"type": "image", "source": source}
