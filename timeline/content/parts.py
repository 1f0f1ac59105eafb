"""Content parts that say their kind by a key: files in the forms of Google and of Amazon Bedrock.

All other providers write a type into a part, and so does everything here that reads parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.content.native import standard_base64

if TYPE_CHECKING:
    from pydantic import JsonValue

GOOGLE_PARTS: Final = {"inlineData": "inline_data", "fileData": "file_data"}
"""Google's parts that hold a file, as on the wire and as its SDK takes them."""
GOOGLE_KEYS: Final[dict[str, dict[str, str]]] = {
    "inlineData": {"mimeType": "mime_type", "data": "data", "displayName": "display_name"},
    "fileData": {"fileUri": "file_uri", "mimeType": "mime_type", "displayName": "display_name"},
}
"""The keys of these, likewise; the first two are required."""
BEDROCK_FILES: Final = ("image", "document", "video", "audio")
"""The kinds of Bedrock's content blocks that hold a file."""


def typed(data: JsonValue) -> Any:
    """Return a block's data with a type on each file that lacks one; anything else as it is."""
    if isinstance(data, list):
        return [typed(part) for part in data]
    if not isinstance(data, dict) or "type" in data:
        return data
    for kind in BEDROCK_FILES:
        block = data.get(kind)
        if isinstance(block, dict) and isinstance(block.get("format"), str) and isinstance(block.get("source"), dict):
            return {"type": kind, **block}
    for kind, name in GOOGLE_PARTS.items():
        if isinstance(own := data.get(kind, data.get(name)), dict):
            return _of_google(kind, own)
    return data


def _of_google(kind: str, own: dict[str, JsonValue]) -> dict[str, Any]:
    content = {key: own.get(key, own.get(name)) for key, name in GOOGLE_KEYS[kind].items()}
    mime, data = content["mimeType"], content.get("data")
    form = "document" if mime == "application/pdf" else "image" if str(mime).startswith("image/") else ""
    if form and isinstance(data, str) and data:
        return {"type": form, "source": {"type": "base64", "media_type": mime, "data": standard_base64(data)}}
    return {"type": kind, kind: content}
