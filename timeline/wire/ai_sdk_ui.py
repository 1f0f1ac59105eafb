"""The AI SDK's interface messages (``UIMessage[]``): encode a context for a chat to show, and decode such messages.

An assistant's message holds everything until the next message of the user: a ``step-start`` for each response, and
each tool call, with its state and its output, as one part. Nothing is marked for the cache: the SDK turns these into
model messages (``convertToModelMessages``) before it calls a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, CustomBlock, SystemMessage, ToolCall, UserPrompt
from timeline.wire.ai_sdk import decode_instructions, instructions, is_bare_signature, said_texts, tool_name
from timeline.wire.ai_sdk_earlier import later_message
from timeline.wire.ai_sdk_parts import (
    DENIED,
    attachment_of,
    output_of,
    reasoning_of,
    result_of,
    signature_of,
    signed_options,
    user_parts,
)
from timeline.wire.foreign import arguments_of, as_object, from_object, text_of
from timeline.wire.groups import OPENING_LINE, Call, Ids, Response, gather
from timeline.wire.neutral import INTERRUPTED
from timeline.wire.openai_chat import parts_of
from timeline.wire.providers import ANTHROPIC, OPENAI_CHAT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.blocks import Block
    from timeline.wire.ai_sdk_parts import File
    from timeline.wire.groups import Item
    from timeline.wire.media import Part
    from timeline.wire.neutral import NeutralContext

ENCODER: Final = 4
GIVEN: Final = frozenset({"instructions", "system", "messages"})
UNFINISHED: Final = frozenset({"streaming", "input-streaming"})
"""The states of parts that were unfinished when the message was saved."""
_WAITING: Final = frozenset({"approval-requested", "approval-responded"})


def encode(context: NeutralContext) -> dict[str, Any]:
    """Return ``messages``, and ``instructions`` where given, which are not part of any message."""
    writer = _Writer(context.model)
    items = [*gather(context.entries), *gather(context.ephemeral, first_number=len(context.entries))]
    for item in items:
        writer.add(item)
    system = instructions(context.system)
    return {**({"instructions": system} if system else {}), "messages": writer.messages}


class _Writer:
    """Writes messages; only the assistant's newest message grows.

    Args:
        model: the model that the conversation is with.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self.messages: list[Part] = []
        self._ids = Ids(ANTHROPIC.id_pattern, OPENAI_CHAT.id_length)
        self._taken: dict[str, int] = {}

    def add(self, item: Item) -> None:
        """Write a response with its results, or an entry addressed to the model."""
        if not isinstance(item, Response):
            self._write("user", item.entry.path, user_parts(item.entry, _file_part), joined=item.entry.continues)
            return
        parts = list(self._said(item))
        if any(part["type"] != "reasoning" for part in parts):
            first = item.parts[0]
            entry = first.placed.entry if isinstance(first, Call) else first.entry
            self._write("assistant", entry.path, [{"type": "step-start"}, *parts], joined=True)

    def _said(self, response: Response) -> Iterator[Part]:
        """Iterate over a response's parts. Thoughts are shown; those that may go back to a model are signed, too."""
        pending: Part = {}
        for part in response.parts:
            entry = part.placed.entry if isinstance(part, Call) else part.entry
            if entry.type == "assistant.reasoning" and not isinstance(part, Call):
                _, options = signed_options(entry, self._model) or ("", {})
                if is_bare_signature(entry):
                    pending = options
                elif entry.text.strip() or options:
                    yield {"type": "reasoning", "text": entry.text, **_metadata("providerMetadata", options)}
                continue
            for text in said_texts(entry, is_call=isinstance(part, Call)):
                signed = {} if isinstance(part, Call) else pending
                yield {"type": "text", "text": text, **_metadata("providerMetadata", signed)}
            if isinstance(part, Call):
                yield {**self._tool(part), **_metadata("callProviderMetadata", pending)}
            pending = {}

    def _tool(self, call: Call) -> Part:
        entry = call.placed.entry
        part = {
            "type": f"tool-{tool_name(entry)}",
            "toolCallId": self._ids.give(str(entry.call_id)),
            "input": as_object(entry.arguments),
        }
        if call.result is None:
            return {**part, "state": "output-error", "errorText": INTERRUPTED}
        output = output_of(call.result.entry)
        if output["type"] == "error-text":
            return {**part, "state": "output-error", "errorText": output["value"]}
        return {
            **part,
            "state": "output-available",
            "output": output["value"] if output["type"] in {"text", "json"} else output,
        }

    def _write(self, role: str, path: str, parts: list[Part], *, joined: bool) -> None:
        if not parts:
            return
        if joined and self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["parts"] += parts
            return
        id_ = path or "ephemeral"
        self._taken[id_] = number = self._taken.get(id_, 0) + 1
        self.messages.append({"id": id_ if number == 1 else f"{id_}~{number}", "role": role, "parts": parts})


def _metadata(key: str, options: Part) -> Part:
    return {key: options} if options else {}


def _file_part(file: File) -> Part:
    named = {"filename": file.name} if file.name else {}
    return {"type": "file", "mediaType": file.mime, "url": file.url, **named}


def decode(body: Any) -> list[Block]:
    """Decode interface messages into blocks; turn ids are left open.

    The placeholder result of a call without one is left out: the call stays open.
    """
    decoder = MessageDecoder()
    messages = body.get("messages") if isinstance(body, dict) else body
    blocks = decode_instructions(body)
    for message in messages if isinstance(messages, list) else []:
        blocks += decoder.decode(message)
    return blocks


class MessageDecoder:
    """Decodes messages one by one; it keeps their number."""

    def __init__(self) -> None:
        self._number = 0

    def decode(self, message: Any, name: str = "") -> list[Block]:
        """Decode one message; any other value gives no block.

        Each step of the assistant's is one response: its texts and calls, then the results. Parts that were
        unfinished when the message was saved are left out.
        """
        self._number += 1
        if not isinstance(message, dict):
            return []
        known = (part for part in parts_of(later_message(message)["parts"]) if isinstance(part.get("type"), str))
        parts = [part for part in known if text_of(part, "state") not in UNFINISHED]
        if message.get("role") == "system":
            return [SystemMessage(text=text) for text in map(text_of, parts) if text]
        if message.get("role") != "assistant":
            read = (_user_block(part) for part in parts)
            return [block for block in read if block is not None]
        name = text_of(message, "id") or name or f"response_{self._number}"
        blocks: list[Block] = []
        for step, own in enumerate(_steps(parts)):
            blocks += _step_blocks(own, f"{name}.{step}" if step else name)
        return blocks


def _steps(parts: list[Part]) -> list[list[Part]]:
    steps: list[list[Part]] = [[]]
    for part in parts:
        if part["type"] != "step-start":
            steps[-1].append(part)
        elif steps[-1]:
            steps.append([])
    return steps


def _step_blocks(parts: list[Part], response: str) -> list[Block]:
    blocks: list[Block] = []
    results: list[Block] = []
    for index, part in enumerate(parts):
        kind = part["type"]
        if kind == "text":
            if text := text_of(part):
                blocks += signature_of(part.get("providerMetadata"), response)
                blocks.append(AssistantCompletion(text=text, response_id=response))
        elif kind == "reasoning":
            blocks.append(reasoning_of(text_of(part), part.get("providerMetadata"), response))
        elif kind == "dynamic-tool" or kind.startswith("tool-"):
            call, *rest = _tool_blocks(part, response, f"{response}_{index}")
            blocks += [*signature_of(part.get("callProviderMetadata"), response), call]
            results += rest
        else:
            blocks.append(CustomBlock(type="assistant.part", author="assistant", data=part, response_id=response))
    return [*blocks, *results]


def _tool_blocks(part: Part, response: str, unnamed: str) -> list[Block]:
    """Decode a tool's part: the call, and its result once it has one. A call that waits for an approval is pending."""
    call_id, state = text_of(part, "toolCallId") or unnamed, text_of(part, "state")
    name = text_of(part, "toolName") or part["type"].removeprefix("tool-") or "unknown"
    raw = part.get("input", part.get("rawInput", {}))
    call = ToolCall(
        call_id=call_id,
        name=name,
        arguments=arguments_of(raw) if isinstance(raw, str) else from_object(raw if raw is not None else {}),
        response_id=response,
        pending=state in _WAITING,
    )
    if state == "output-available" and part.get("preliminary") is not True:
        return [call, result_of(call_id, name, part.get("output"))]
    if state == "output-error" and (text := text_of(part, "errorText")) != INTERRUPTED:
        return [call, result_of(call_id, name, {"type": "error-text", "value": text})]
    if state == "output-denied":
        approval = part.get("approval")
        reason = text_of(approval, "reason") if isinstance(approval, dict) else ""
        return [call, result_of(call_id, name, {"type": "execution-denied", "reason": reason or DENIED})]
    return [call]


def _user_block(part: Part) -> Block | None:
    if part["type"] == "text":
        text = text_of(part)
        return UserPrompt(text=text) if text and text != OPENING_LINE else None
    if part["type"] == "file":
        return attachment_of(part)
    return CustomBlock(type="user.part", author="user", data=part)
