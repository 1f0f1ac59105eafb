"""Decode the response that a provider's SDK returns into blocks and the facts of one model call.

Six shapes are read: Anthropic's message, OpenAI's chat completion and response, Google's content response, Bedrock's
Converse response and Ollama's reply. No SDK is imported: an object is read through its ``model_dump``, and a plain dict
works as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from timeline.blocks import AssistantCompletion, ToolCall, invalid_block
from timeline.content.native import has_server_results
from timeline.errors import UnknownResponse, brief
from timeline.events import ModelCalled
from timeline.frozen import canonical_json, sha256_hex
from timeline.wire import anthropic, bedrock_converse, openai_chat
from timeline.wire.foreign import object_of, objects_of, plain, text_of
from timeline.wire.gemini import camel, model_blocks
from timeline.wire.gemini import parts_of as gemini_parts_of
from timeline.wire.ollama import as_completion, is_ollama
from timeline.wire.responses_decoding import item_blocks
from timeline.wire.usage import anthropic_usage, converse_usage, gemini_usage, openai_usage, responses_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.usage import Usage

INTERRUPTED: Final = "interrupted"
"""The finish reason of a response that the provider never finished, and the ``meta`` key that marks its completion."""
CUT_CALLS: Final = "cut_calls"
"""The ``meta`` key under which a marked completion keeps the calls whose arguments were cut off."""

OUT_OF_ROOM: Final = frozenset(
    {"max_tokens", "length", "max_output_tokens", "model_context_window_exceeded", "model_length", "MAX_TOKENS"}
)
"""Finish reasons of a response that ended for lack of room: its last part may be incomplete."""
_FAILED: Final = frozenset({"error", "insufficient_system_resource", "network_error"})
"""Finish reasons of a response that its server broke off: OpenRouter's and Mistral's, DeepSeek's, Zhipu's."""
_STOPPED: Final = frozenset(
    {
        *("content_filter", "refusal", "sensitive"),
        *("guardrail_intervened", "content_filtered", "malformed_model_output", "malformed_tool_use"),  # Bedrock's
    }
)
"""Finish reasons of a response that a filter stopped, or that is malformed: a call may have half its arguments."""


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """A response to be recorded.

    Attributes:
        blocks: reasoning, text and calls in order, all with one ``response_id``.
        called: the facts of the call, without its start and the render that it answers, which a response does not
            carry.
    """

    blocks: tuple[Block, ...]
    called: ModelCalled

    def key(self) -> str:
        """Return a key that distinguishes this response from every other one.

        A provider's id is not enough: there are servers that return the same ids again and again.
        """
        return sha256_hex(canonical_json([self.called.dump(), *(block.dump() for block in self.blocks)]))


def read_response(reply: Any, *, unnamed: str) -> ModelResponse:
    """Decode a response; of several choices, the first.

    A call in which the response ended for lack of room is incomplete, and so is half a call that a filter or the
    server's failure left. Neither becomes a call block: see `interrupted`.

    Args:
        reply: the SDK's object, or its dict.
        unnamed: the id for a response without one.

    Raises:
        UnknownResponse: it has none of the six shapes.
        InvalidBlock: it holds a value that has no form in JSON.
    """
    try:
        value = plain(reply)
    except ValueError as error:
        raise UnknownResponse(str(error)) from None
    if not isinstance(value, dict):
        raise UnknownResponse(f"an object of type {type(reply).__name__}")
    if is_ollama(value):
        value = as_completion(value)
    if is_gemini(value):
        value = camel(value)
        value |= {"id": value.get("responseId"), "model": value.get("modelVersion")}
    if is_converse(value):  # it names no model
        value |= {"id": object_of(value, "ResponseMetadata").get("RequestId")}
    id_ = value.get("id")
    response_id = id_ if isinstance(id_, str) and id_ else unnamed
    try:
        blocks, usage, finish = _read(value, response_id)
        called = ModelCalled(
            model=value["model"] if isinstance(value.get("model"), str) else "",
            response_id=response_id,
            usage=usage,
            finish_reason=finish if isinstance(finish, str) else None,
            server_tools=has_server_results(blocks),
        )
    except ValidationError as error:
        raise invalid_block(error) from None
    response = ModelResponse(tuple(blocks), called)
    last = blocks[-1] if blocks else None
    if isinstance(last, ToolCall) and _is_cut_off(last, called.finish_reason):
        cut = cut_call(last.call_id, last.name, last.arguments)
        return interrupted(replace(response, blocks=tuple(blocks[:-1])), [cut])
    return interrupted(response) if called.finish_reason in _FAILED else response


def _is_cut_off(call: ToolCall, finish: str | None) -> bool:
    """Return whether the last call of a response is incomplete, given the reason why the response ended."""
    return finish in OUT_OF_ROOM or (finish in _FAILED | _STOPPED and isinstance(call.arguments, str))


def _read(reply: dict[str, Any], response_id: str) -> tuple[list[Block], Usage, Any]:
    """Return blocks, usage and finish reason, by the shape."""
    if reply.get("type") == "message" and isinstance(reply.get("content"), list) and "model" in reply:
        parts = anthropic.parts_of(reply["content"])
        held = reply.get("container")
        container = text_of(held, "id") if isinstance(held, dict) else ""
        model = text_of(reply, "model")
        read = (
            anthropic.assistant_block(p, response_id, f"{response_id}_{n}", container, model)
            for n, p in enumerate(parts)
        )
        return [b for b in read if b is not None], anthropic_usage(reply.get("usage")), reply.get("stop_reason")
    if isinstance(choices := reply.get("choices"), list) and reply.get("object") != "chat.completion.chunk":
        choice = choices[0] if choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        _check_message(choice, message)
        chosen = {**(message if isinstance(message, dict) else {}), "role": "assistant", "id": response_id}
        chosen["model"] = reply.get("model")
        blocks = openai_chat.MessageDecoder().decode(chosen)
        return blocks, openai_usage(reply.get("usage")), choice.get("finish_reason")
    if reply.get("object") == "response" and isinstance(items := reply.get("output"), list):
        blocks = [
            b for n, item in enumerate(items) if isinstance(item, dict) for b in item_blocks(item, response_id, n)
        ]
        return blocks, responses_usage(reply.get("usage")), _status(reply)
    if is_gemini(reply):
        return _read_gemini(reply, response_id)
    if is_converse(reply):
        said = bedrock_converse.parts_of(objects_of(object_of(object_of(reply, "output"), "message"), "content"))
        blocks = bedrock_converse.assistant_blocks(said, response_id, calls=response_id)
        return blocks, converse_usage(reply.get("usage")), reply.get("stopReason")
    shape = reply.get("object") or reply.get("type") or f"the keys {', '.join(sorted(map(str, reply))[:8])}"
    raise UnknownResponse(f"a dict with {brief(str(shape))}" if reply else "an empty dict")


def _check_message(choice: dict[str, Any], message: Any) -> None:
    """Refuse a choice whose words would be lost: one of a legacy completion, or a message in an unknown form.

    Raises:
        UnknownResponse: it is one.
    """
    if message is None and "text" in choice:
        raise UnknownResponse("a legacy text completion, which has no message")
    if not isinstance(message, dict | None):
        raise UnknownResponse(f"a chat completion whose message is of type {type(message).__name__}")
    content = None if message is None else message.get("content")
    if not isinstance(content, str | list | dict | None):
        raise UnknownResponse(f"a chat completion whose content is of type {type(content).__name__}")


def is_gemini(reply: dict[str, Any]) -> bool:
    """Return whether an object is a response of Google's Gen AI API, or a chunk of one: some have no candidate."""
    return isinstance(reply.get("candidates"), list) or any(
        isinstance(reply.get(key), dict)
        for key in ("usageMetadata", "usage_metadata", "promptFeedback", "prompt_feedback")
    )


def is_converse(reply: dict[str, Any]) -> bool:
    """Return whether an object is a response of Bedrock's Converse API."""
    return "stopReason" in reply and isinstance(object_of(reply, "output").get("message"), dict)


def _read_gemini(reply: dict[str, Any], response_id: str) -> tuple[list[Block], Usage, Any]:
    candidates, feedback = reply.get("candidates"), reply.get("promptFeedback")
    first = candidates[0] if isinstance(candidates, list) and candidates else reply  # of one: Google's ADK
    candidate = first if isinstance(first, dict) else {}
    content = candidate.get("content")
    parts = gemini_parts_of(content.get("parts")) if isinstance(content, dict) else []
    blocked = feedback.get("blockReason") if isinstance(feedback, dict) else None
    blocks = model_blocks(parts, response_id, calls=response_id)
    return blocks, gemini_usage(reply.get("usageMetadata")), candidate.get("finishReason") or blocked


def cut_call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """Return the received part of a call that was cut off, to be kept."""
    return {"call_id": call_id, "name": name, "arguments": arguments}


def _status(reply: dict[str, Any]) -> Any:
    details = reply.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return reason or reply.get("status")


def calls_cut_off(block: Block) -> list[dict[str, Any]]:
    """Return the cut-off calls that an interrupted response keeps in a block's mark; none for any other block."""
    kept = block.meta.get(CUT_CALLS)
    return [call for call in kept if isinstance(call, dict)] if isinstance(kept, list) else []


def interrupted(response: ModelResponse, cut_calls: Sequence[dict[str, Any]] = ()) -> ModelResponse:
    """Mark a response that broke off: its last completion gets ``meta["interrupted"]``.

    A call whose arguments were cut off is dropped as a call. Half an object is not valid on any wire, running it would
    do half of what was meant, and as text it would teach the model to write its calls as text. So it is never sent; the
    marked completion keeps it in ``meta["cut_calls"]``. Where no text came, the marked completion is empty, and no wire
    sends it; where nothing came at all, there is none.
    """
    mark: dict[str, Any] = {INTERRUPTED: True, **({CUT_CALLS: list(cut_calls)} if cut_calls else {})}
    blocks = list(response.blocks)
    place = max((n for n, block in enumerate(blocks) if isinstance(block, AssistantCompletion)), default=None)
    if place is not None:
        blocks[place] = blocks[place].model_copy(update={"meta": {**blocks[place].meta, **mark}})
    elif blocks or cut_calls:
        blocks.append(AssistantCompletion(response_id=response.called.response_id, meta=mark))
    finish = response.called.finish_reason or INTERRUPTED
    return replace(response, blocks=tuple(blocks), called=response.called.model_copy(update={"finish_reason": finish}))
