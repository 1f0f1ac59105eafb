"""Content parts of the AI SDK, shared by its two forms of messages: files, signed reasoning, outputs of tools.

A provider's own options (signatures, encrypted reasoning) are in ``providerOptions``, which interface messages call
``providerMetadata``. Each provider of the SDK takes its own options and ignores the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.blocks import Attachment, Reasoning, ToolResult
from timeline.content.native import JSON_TEXT, is_json_text
from timeline.frozen import compact_json
from timeline.wire.foreign import arguments_of, text_of
from timeline.wire.gemini import SIGNATURE
from timeline.wire.groups import said_to_model
from timeline.wire.media import (
    attachment_block,
    content_parts,
    of_data_url,
    picture_source,
    shown_parts,
    text_part,
    translated,
    unseen_line,
)
from timeline.wire.neutral import FAILED
from timeline.wire.providers import ANTHROPIC, GEMINI, OPENAI_RESPONSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry
    from timeline.wire.providers import ProviderFacts

DENIED: Final = "Tool call execution denied."
"""The SDK's text to the model for a call that a user denied without a reason."""

_ERRORS: Final = frozenset({"error-text", "error-json", "execution-denied"})
_OUTPUTS: Final = frozenset({"text", "json", "content"}) | _ERRORS


class File(NamedTuple):
    """A file for the SDK: base64 or an address, its type, and its name where it has one."""

    mime: str
    data: str
    is_url: bool
    name: str = ""

    @property
    def url(self) -> str:
        """The file as one address."""
        return self.data if self.is_url else f"data:{self.mime};base64,{self.data}"


def file_of(part: Part) -> File | None:
    """Return a content part of any provider as a file; None for other parts, and for files given by an id only."""
    if part["type"] == "file" and isinstance(part.get("mediaType"), str):
        return _own_file(part)
    part = translated(part)
    if part["type"] == "input_audio" and isinstance(audio := part.get("input_audio"), dict):
        kind, data = text_of(audio, "format"), text_of(audio, "data")
        return File(f"audio/{kind}", data, is_url=False) if kind and data else None
    inline = part.get("inlineData")
    if isinstance(inline, dict) and text_of(inline, "mimeType") and text_of(inline, "data"):
        return File(inline["mimeType"], inline["data"], is_url=False, name=text_of(inline, "displayName"))
    source = picture_source(part)
    if source is None:
        return None
    if source["type"] == "base64":
        return File(source["media_type"], source["data"], is_url=False, name=text_of(part, "title"))
    mime = "application/pdf" if part["type"] == "document" else "image/*"
    return File(mime, source["url"], is_url=True, name=text_of(part, "title")) if source["type"] == "url" else None


def user_parts(entry: Entry, file_part: Callable[[File], Part]) -> list[Part]:
    """Return an entry that the user says as content parts; ``file_part`` writes a file in a form of messages."""
    text = said_to_model(entry)
    files = ((part, file_of(part)) for part in shown_parts(entry))
    shown = [file_part(file) if file else text_part(unseen_line(entry, part)) for part, file in files]
    return [*([text_part(text)] if text.strip() else []), *shown]


def _own_file(part: Part) -> File | None:
    data = part.get("data", part.get("url"))
    if isinstance(data, dict):
        data = data.get("data") or data.get("url")
    if not isinstance(data, str) or not data:
        return None
    if (source := of_data_url(data)) is not None:
        return File(source["media_type"], source["data"], is_url=False, name=text_of(part, "filename"))
    return File(part["mediaType"], data, is_url="://" in data[:40], name=text_of(part, "filename"))


def attachment_of(part: Part) -> Attachment:
    """Read a file or picture; pictures and PDF documents get the form that the other wires can send, too."""
    own = {"mediaType": "image/*", **part, "type": "file"}
    if "image" in own:
        own["data"] = own.pop("image")
    file = file_of(own)
    if file is None:
        return attachment_block(part)
    meta: dict[str, JsonValue] = {"file": file.name} if file.name else {}
    return Attachment(data=_form_of(file) or own, mime=file.mime, meta=meta)


def _form_of(file: File) -> Part | None:
    """Return a file in the Messages API's form; None for a file that has none, or whose type is unknown."""
    kind = _kind_of(file.mime)
    if kind and file.is_url:
        return {"type": kind, "source": {"type": "url", "url": file.data}}
    if kind and not file.mime.endswith("*"):
        return {"type": kind, "source": {"type": "base64", "media_type": file.mime, "data": file.data}}
    return None


def _kind_of(mime: str) -> str:
    return "image" if mime.startswith("image") else "document" if mime == "application/pdf" else ""


def signed_options(entry: Entry, model: str) -> tuple[str, Part] | None:
    """Return signed reasoning as its text and the provider's options; None where it is unsigned or may not be sent.

    The form of the part decides which provider's rule applies, since the SDK may talk to any provider.
    """
    data = entry.data
    if not isinstance(data, dict):
        return None
    read = _options(data)
    if read is None:
        return None
    facts, text, options = read
    return (text, options) if facts.takes_back(entry, model) else None


def _options(data: Part) -> tuple[ProviderFacts, str, Part] | None:
    match data.get("type"):
        case "thinking" if signature := text_of(data, "signature"):
            return ANTHROPIC, text_of(data, "thinking"), {"anthropic": {"signature": signature}}
        case "redacted_thinking" if redacted := text_of(data, "data"):
            return ANTHROPIC, "", {"anthropic": {"redactedData": redacted}}
        case "reasoning" if encrypted := text_of(data, "encrypted_content"):
            summary = data.get("summary")
            texts = [text_of(part) for part in summary if isinstance(part, dict)] if isinstance(summary, list) else []
            own = {"itemId": text_of(data, "id"), "reasoningEncryptedContent": encrypted}
            return OPENAI_RESPONSES, "\n\n".join(filter(None, texts)), {"openai": own}
        case "reasoning" if isinstance(options := data.get("providerOptions"), dict) and _are_options(options):
            facts = OPENAI_RESPONSES if "openai" in options else ANTHROPIC
            return facts, text_of(data), options
        case None if signature := text_of(data, SIGNATURE):
            return GEMINI, text_of(data), {"google": {SIGNATURE: signature}}
        case _:
            return None


def _are_options(value: Any) -> bool:
    return bool(value) and all(isinstance(inner, dict) for inner in value.values())


def reasoning_of(text: str, options: Any, response_id: str) -> Reasoning:
    """Read reasoning: signed by Anthropic or Google it gets their own form, otherwise it is kept as the SDK's part."""
    provider_options = options if isinstance(options, dict) else {}
    anthropic, google = provider_options.get("anthropic"), provider_options.get("google")
    if isinstance(anthropic, dict) and (signature := text_of(anthropic, "signature")):
        data: Part | None = {"type": "thinking", "thinking": text, "signature": signature}
    elif isinstance(anthropic, dict) and (redacted := text_of(anthropic, "redactedData")):
        data = {"type": "redacted_thinking", "data": redacted}
    elif isinstance(google, dict) and (signature := text_of(google, SIGNATURE)):
        data = {"text": text, "thought": True, SIGNATURE: signature}
    else:
        data = {"type": "reasoning", "text": text, "providerOptions": provider_options} if provider_options else None
    return Reasoning(text=text, data=data, response_id=response_id)


def signature_of(options: Any, response_id: str) -> list[Reasoning]:
    """Read the signature that Google put on a call or a text, as a block of its own before it, like `gemini_parts`."""
    google = options.get("google") if isinstance(options, dict) else None
    signature = text_of(google, SIGNATURE) if isinstance(google, dict) else ""
    return [Reasoning(data={SIGNATURE: signature}, response_id=response_id)] if signature else []


def output_of(entry: Entry) -> Part:
    """Return a result's output: the object that it was, a text, an error, or content parts where it shows files."""
    files = [(part, file_of(part)) for part in content_parts(entry.data)]
    lines = [unseen_line(entry, part) for part, file in files if file is None or entry.is_error]
    text = "\n".join([*([entry.text] if entry.text else []), *lines])
    shown = [file for _, file in files if file is not None]
    if entry.is_error:
        return {"type": "error-text", "value": text if text.strip() else FAILED}  # Anthropic refuses an empty one
    if not shown and not lines and is_json_text(entry.data) and isinstance(value := arguments_of(entry.text), dict):
        return {"type": "json", "value": value}
    if not shown:
        return {"type": "text", "value": text}
    texts = [{"type": "text", "text": text}] if text.strip() else []
    return {"type": "content", "value": [*texts, *map(_shown, shown)]}


def _shown(file: File) -> Part:
    is_image = _kind_of(file.mime) == "image"
    if file.is_url:
        return {"type": "image-url" if is_image else "file-url", "url": file.data}
    named = {"filename": file.name} if file.name and not is_image else {}
    return {"type": "image-data" if is_image else "file-data", "data": file.data, "mediaType": file.mime, **named}


def result_of(call_id: str, name: str, output: Any) -> ToolResult:
    """Read a tool's output: one of the SDK's kinds, or any value that the tool returned."""
    kind = text_of(output, "type") if isinstance(output, dict) else ""
    if kind not in _OUTPUTS or ("value" not in output and kind != "execution-denied"):
        return ToolResult(call_id=call_id, name=name, text=_as_text(output), data=_marked(output))
    if kind == "execution-denied":
        return ToolResult(call_id=call_id, name=name, text=text_of(output, "reason") or DENIED, is_error=True)
    value = output["value"]
    if kind != "content" or not isinstance(value, list):
        shown = "" if value == FAILED else _as_text(value)
        own = _marked(value) if kind == "json" else None
        return ToolResult(call_id=call_id, name=name, text=shown, data=own, is_error=kind in _ERRORS)
    parts = [part for part in value if isinstance(part, dict)]
    text = "\n".join(filter(None, (text_of(part) for part in parts if part.get("type") == "text")))
    media: list[JsonValue] = [_media(part) for part in parts if part.get("type") != "text"]
    data: list[JsonValue] | None = [{"type": "text", "text": text}, *media] if media else None
    return ToolResult(call_id=call_id, name=name, text=text, data=data)


def _marked(value: Any) -> JsonValue:
    """Return the mark of a text that was an object, so that it goes back as an object."""
    return dict(JSON_TEXT) if isinstance(value, dict) else None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else compact_json(value)


def _media(part: Part) -> JsonValue:
    """Return a part of a result in the form that the other wires can send, where it has one."""
    mime = text_of(part, "mediaType") or ("image/*" if str(part.get("type")).startswith("image") else "")
    if mime and text_of(part, "type") in {"image-data", "image-url", "file-data", "file-url", "media", "file"}:
        file = {**part, "type": "file", "mediaType": mime}
        data: JsonValue = attachment_of(file).data
        return data
    return part
