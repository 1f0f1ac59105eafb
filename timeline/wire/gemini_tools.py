"""What Google's server did in a response: code that it ran, calls of its own tools, and files that the model made.

A result goes back with its call, or neither does. Results belong to the call of their id, or without one to the call
right before them; code may have several.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from typing import TYPE_CHECKING, Final

from timeline.content.native import GOOGLE_CALLS, GOOGLE_FILES, google_kind
from timeline.wire.foreign import text_of
from timeline.wire.groups import Call

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.wire.groups import Placed
    from timeline.wire.media import Part

_PART: Final = "assistant.part"
_CALL_OF: Final = {result: call for call, result in GOOGLE_CALLS.items()}
_CAMEL: Final = re.compile(r"(?<=[a-z])([A-Z])")
_SENT: Final[dict[str, tuple[str, ...]]] = {
    "executableCode": ("id", "language", "code"),
    "codeExecutionResult": ("id", "outcome", "output"),
    "toolCall": ("id", "toolType", "args"),
    "toolResponse": ("id", "toolType", "response"),
    "inlineData": ("mimeType", "data", "displayName"),
    "fileData": ("mimeType", "fileUri", "displayName"),
}
"""The fields of each part that a request takes."""


def parts_sent(parts: Iterable[Placed | Call]) -> dict[int, Part]:
    """Return the parts of a response that go back as they came, by the number of their entry."""
    sent: dict[int, Part] = {}
    waiting: dict[tuple[str, str], tuple[int, Part]] = {}
    for spoken in parts:
        if isinstance(spoken, Call) or spoken.entry.type != _PART:
            continue
        part: Part = spoken.entry.data if isinstance(spoken.entry.data, dict) else {}
        kind = google_kind(part)
        if kind in GOOGLE_FILES:
            sent |= {spoken.number: own} if _is_sound(own := _request_part(part, kind)) else {}
        elif kind in GOOGLE_CALLS:
            waiting[kind, text_of(part[kind], "id")] = (spoken.number, part)
        elif kind and (call := waiting.get((_CALL_OF[kind], text_of(part[kind], "id")))) is not None:
            sent[call[0]] = _request_part(call[1], _CALL_OF[kind])
            sent[spoken.number] = _request_part(part, kind)
        elif not kind:  # the entry is hidden: a result behind it may have been its own
            waiting = {key: call for key, call in waiting.items() if key[1]}
    return sent


def _request_part(part: Part, kind: str) -> Part:
    own = {_snake(key): part[kind][key] for key in _SENT[kind] if part[kind].get(key) is not None}
    signature = text_of(part, "thoughtSignature")
    return {_snake(kind): own, **({"thought_signature": signature} if is_base64(signature) and signature else {})}


def _snake(key: str) -> str:
    return _CAMEL.sub(r"_\1", key).lower()


def _is_sound(part: Part) -> bool:
    """Return whether a file is whole: named, or base64 of a known type."""
    if "file_data" in part:
        return bool(part["file_data"].get("file_uri"))
    own = part["inline_data"]
    return bool(own.get("mime_type")) and isinstance(own.get("data"), str) and is_base64(own["data"])


def is_base64(text: str) -> bool:
    """Return whether a text is base64, in either alphabet; the SDK refuses anything else before it sends."""
    try:
        b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (Error, ValueError):
        return False
    return True
