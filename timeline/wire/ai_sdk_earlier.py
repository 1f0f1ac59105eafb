"""Messages of the AI SDK's versions 3 and 4 in the form of later ones, which the decoders read.

There a tool's part holds its invocation, with ``args`` and ``result``; before version 4.2 a message had no parts at
all, but a text with ``toolInvocations`` beside it. Files and signatures have names of their own.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from timeline.wire.foreign import text_of

if TYPE_CHECKING:
    from timeline.wire.media import Part

KEYS: Final = frozenset({"toolInvocations", "experimental_attachments"})
"""Keys that only interface messages of these versions have."""
_STEP: Final = {"type": "step-start"}
_STATES: Final = {"partial-call": "input-streaming", "call": "input-available", "result": "output-available"}


def later_message(message: Part) -> Part:
    """Return an interface message in the later form; one that has this form already does not change."""
    parts = message.get("parts")
    listed = parts if isinstance(parts, list) else _parts_of_text(message)
    read = [later for part in listed for later in (_later_parts(part) if isinstance(part, dict) else [part])]
    read += [_attached(file) for file in _objects(message.get("experimental_attachments"))]
    return {**message, "parts": read, **dict.fromkeys(KEYS & message.keys())}


def later_part(part: Part) -> Part:
    """Return a file or a thought of a message in the later form; any other part as it is."""
    if text_of(part, "type") in {"file", "image"} and "mediaType" not in part and text_of(part, "mimeType"):
        return {**_without(part, "mimeType"), "mediaType": part["mimeType"]}
    if part.get("type") == "redacted-reasoning" and text_of(part, "data"):
        return {"type": "reasoning", "text": "", **_options({"redactedData": part["data"]})}
    if part.get("type") == "reasoning" and text_of(part, "signature") and "providerOptions" not in part:
        return {**_without(part, "signature"), **_options({"signature": part["signature"]})}
    return part


def _parts_of_text(message: Part) -> list[Any]:
    """Return the parts of a message that has none: the calls of each step, then the text that ended the last step."""
    thought, text = text_of(message, "reasoning"), text_of(message, "content")
    parts: list[Any] = [{"type": "reasoning", "text": thought}] if thought else []
    invocations = _objects(message.get("toolInvocations"))
    for _, step in groupby(invocations, key=lambda invocation: invocation.get("step")):
        parts += [*({"type": "tool-invocation", "toolInvocation": invocation} for invocation in step), _STEP]
    return [*parts, {"type": "text", "text": text}] if text else parts


def _later_parts(part: Part) -> list[Part]:
    invocation = part.get("toolInvocation")
    if part.get("type") == "tool-invocation" and isinstance(invocation, dict):
        state = text_of(invocation, "state")
        named = {"toolName": text_of(invocation, "toolName"), "toolCallId": text_of(invocation, "toolCallId")}
        output = {"output": invocation["result"]} if "result" in invocation else {}
        fields = {"state": _STATES.get(state, state), "input": invocation.get("args", {}), **output}
        return [{"type": "dynamic-tool", **named, **fields}]
    if part.get("type") == "reasoning" and "text" not in part and "reasoning" in part:
        return _thoughts(part)
    if part.get("type") == "file" and "mediaType" not in part and text_of(part, "mimeType"):
        return [later_part(part)]
    return [part]


def _thoughts(part: Part) -> list[Part]:
    """Return a thought in its signed pieces; one without pieces as its text."""
    read = []
    for piece in _objects(part.get("details")):
        redacted, signature = text_of(piece, "data"), text_of(piece, "signature")
        own = {"redactedData": redacted} if redacted else {"signature": signature} if signature else {}
        signed = {"providerMetadata": {"anthropic": own}} if own else {}
        read.append({"type": "reasoning", "text": text_of(piece), **signed})
    return read or [{"type": "reasoning", "text": text_of(part, "reasoning")}]


def _attached(file: Part) -> Part:
    named = {"filename": file["name"]} if text_of(file, "name") else {}
    mime = text_of(file, "contentType") or "application/octet-stream"
    return {"type": "file", "mediaType": mime, "url": text_of(file, "url"), **named}


def _options(own: Part) -> Part:
    return {"providerOptions": {"anthropic": own}}


def _without(part: Part, key: str) -> Part:
    return {name: value for name, value in part.items() if name != key}


def _objects(value: Any) -> list[Part]:
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []
