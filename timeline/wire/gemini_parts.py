"""Content parts of Google's Gen AI API: texts, thoughts, calls, inline data, and answers of functions.

Keys come as they stand in JSON (``functionCall``) or as the Python SDK writes them (``function_call``); `camel` gives
them one form.

Pictures and PDF documents take the form of Anthropic's parts, which the wires can send; any other part is kept as it is
under a type, so that the model is told of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, Attachment, CustomBlock, Reasoning, ToolCall, ToolResult
from timeline.frozen import compact_json
from timeline.wire.foreign import from_object, text_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.wire.media import Part

FAILED: Final = frozenset({"error", "cancelled"})
"""How a call went whose result is an error, in the client's words."""
SHELL: Final = "run_shell_command"
EXIT_CODE: Final = re.compile(r"^Exit Code: (\d{1,9})\s*$", re.MULTILINE)
"""How the shell tool tells a command's exit status, behind its output."""

SIGNATURE: Final = "thoughtSignature"
_SNAKE: Final = re.compile(r"_([a-z])")
_OPEN: Final = frozenset({"args", "response", "partMetadata"})
"""Keys whose values are an application's own."""


def camel(value: Any) -> Any:
    """Return a part, a content or a whole reply with its keys as they stand in JSON; an application's own are kept."""
    if isinstance(value, list):
        return [camel(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    named = ((_SNAKE.sub(lambda m: m[1].upper(), key), inner) for key, inner in value.items() if isinstance(key, str))
    return {key: inner if key in _OPEN else camel(inner) for key, inner in named}


def model_blocks(parts: list[Part], response_id: str, *, calls: str) -> list[Block]:
    """Read the parts of a response, keys as in JSON.

    A signature is a block of reasoning of its own right before the call or text that it came with, so that what holds
    for all signed reasoning holds for it. A part that is nothing but thought, or an empty text with a signature, is
    that block itself.

    Args:
        parts: the parts, as `parts_of` gives them.
        response_id: the response that they are.
        calls: begins the ids of calls that have none.
    """
    blocks: list[Block] = []
    for index, part in enumerate(parts):
        call, text, signature = part.get("functionCall"), text_of(part), text_of(part, SIGNATURE)
        if not isinstance(call, dict) and (part.get("thought") is True or (signature and part.get("text") == "")):
            blocks.append(Reasoning(text=text, data=part, response_id=response_id))
            continue
        if signature and (text or isinstance(call, dict)):
            blocks.append(Reasoning(data={SIGNATURE: signature}, response_id=response_id))
        if isinstance(call, dict):
            arguments = call.get("args")
            blocks.append(
                ToolCall(
                    call_id=text_of(call, "id") or f"{calls}_{index}",
                    name=text_of(call, "name") or "unknown",
                    arguments={} if arguments is None else from_object(arguments),
                    response_id=response_id,
                )
            )
        elif text:
            blocks.append(AssistantCompletion(text=text, response_id=response_id))
        else:
            blocks.append(CustomBlock(type="assistant.part", author="assistant", data=part, response_id=response_id))
    return blocks


def parts_of(content: Any) -> list[Part]:
    """Give content one form, a list of parts; a string is one text part, and what says nothing is none."""
    told = content if isinstance(content, list) else [content]
    parts = [{"text": p} if isinstance(p, str) else p for p in told if isinstance(p, str | dict)]
    return [part for part in parts if part and (part.get("text") != "" or SIGNATURE in part)]


def joined_text(parts: list[Part]) -> str:
    """Return what the parts say, a line for each text."""
    return "\n".join(filter(None, map(text_of, parts)))


def media_block(part: Part) -> Attachment:
    """Read a part that is no text: a picture, a document, a file that is only named."""
    data = _media(part)
    inner = next((value for value in part.values() if isinstance(value, dict)), {})
    title = text_of(inner, "displayName")
    mime = text_of(inner, "mimeType") or "application/octet-stream"
    return Attachment(data=data, mime=mime, meta={"file": title} if title else {})


def result_block(call_id: str, name: str, parts: list[Part], *, status: str = "") -> ToolResult:
    """Read the result of a call out of the parts that carried it to the model.

    Args:
        call_id: the call.
        name: the tool.
        parts: of one message: the answers of parallel calls may stand side by side in it.
        status: how the call went, in the client's word; an answer that is an error says so itself.
    """
    texts: list[str] = []
    media: list[JsonValue] = []
    failed = status in FAILED
    for part in _own(parts, call_id):
        if isinstance(answer := part.get("functionResponse"), dict):
            told = answer.get("response")
            failed = failed or (isinstance(told, dict) and "error" in told and "output" not in told)
            texts.append(_answer(told))
            media += [_media(inner) for inner in parts_of(answer.get("parts"))]
        elif text := text_of(part):
            texts.append(text)
        else:
            media.append(_media(part))
    text = "\n".join(filter(None, texts))
    codes = EXIT_CODE.findall(text) if name == SHELL else []
    return ToolResult(
        call_id=call_id,
        name=name,
        text=text,
        data=[{"type": "text", "text": text}, *media] if media else None,
        is_error=failed,
        exit_status=int(codes[-1]) if codes else None,
    )


def _own(parts: list[Part], call_id: str) -> list[Part]:
    """Return the parts of one call: its own answer, and what follows that up to the next call's answer."""
    own: list[Part] = []
    is_own = True
    for part in parts:
        if isinstance(answer := part.get("functionResponse"), dict):
            is_own = text_of(answer, "id") in {"", call_id}
        if is_own:
            own.append(part)
    return own or parts


def _answer(told: Any) -> str:
    """Return what a function answered: its output, its error, or the whole where it has another form."""
    if isinstance(told, dict):
        for key in ("output", "error"):
            if isinstance(value := told.get(key), str):
                return value
    return "" if told is None else compact_json(told)


def _media(part: Part) -> JsonValue:
    inline = part.get("inlineData")
    mime, data = (text_of(inline, key) for key in ("mimeType", "data")) if isinstance(inline, dict) else ("", "")
    kind = "document" if mime == "application/pdf" else "image" if mime.startswith("image/") else ""
    if kind and data:
        return {"type": kind, "source": {"type": "base64", "media_type": mime, "data": data}}
    return {**part, "type": text_of(part, "type") or next(iter(part))}
