"""Convert items of the Responses API into blocks, and back exactly as they came.

A block has the part of an item that a model needs. The rest (ids, statuses, annotations) is kept in its ``meta``, as
the item with a mark in the place of everything that the block itself has, so that nothing large is stored twice. The
usage and tool schemas of a call are read here, too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, Attachment, CustomBlock, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.content.native import FUNCTION_CALL, NAMESPACE
from timeline.errors import needs
from timeline.frozen import compact_json
from timeline.integrations.framework_requests import tools_for
from timeline.wire.foreign import plain
from timeline.wire.media import responses_media
from timeline.wire.providers import OPENAI_RESPONSES
from timeline.wire.responses_decoding import MessageDecoder
from timeline.wire.usage import responses_usage

with needs("openai-agents"):
    from agents import FunctionTool, Handoff

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agents import Agent, ModelResponse
    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.usage import Usage

    Item = dict[str, Any]


def usage_of(response: ModelResponse) -> Usage:
    """Return what a call used, as every wire counts it."""
    used = response.usage
    figures = {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "input_tokens_details": {
            "cached_tokens": used.input_tokens_details.cached_tokens,
            "cache_write_tokens": getattr(used.input_tokens_details, "cache_write_tokens", 0),
        },
    }
    return responses_usage(figures)


def schemas_of(agent: Agent[Any], wire: str) -> list[JsonValue]:
    """Return an agent's function tools and handoffs as a wire has them, as far as they are known without asking."""
    named = [(t.name, t.description, t.params_json_schema) for t in agent.tools if isinstance(t, FunctionTool)]
    named += [(h.tool_name, h.tool_description, h.input_json_schema) for h in agent.handoffs if isinstance(h, Handoff)]
    functions = ({"name": name, "description": text, "parameters": schema} for name, text, schema in named)
    return tools_for(wire, [{"type": "function", "function": function} for function in functions])


KEY: Final = "responses_item"
"""The key in a block's ``meta``: of an item's first block what is left of the item, of its others an empty object."""

_SHORTEST: Final = 40
"""Texts below this are not worth a mark."""
_WHOLE: Final = "$item"
_PARTS: Final = ("$text", "$data", "$arguments", "$spaced")
_OUTPUT: Final = "_output"
_NOT_LOCAL: Final = frozenset({"function_call_output", "custom_tool_call_output", "function_call", "custom_tool_call"})


def read_items(items: Iterable[Any], batch: str) -> list[list[Block]]:
    """Read items, each into the blocks that hold it; no item is left without one.

    Args:
        items: as the framework gives them.
        batch: unique in the conversation; the responses that the items belong to are named after it.
    """
    decoder = MessageDecoder()
    return [_kept(item, _blocks_of(item, decoder), batch) for item in (_plain(item) for item in items)]


def read_output(items: Iterable[Any], response_id: str) -> list[list[Block]]:
    """Read the items of one response, each into its blocks of that response."""
    of_response = {"response_id": response_id}
    return [[block.model_copy(update=of_response) for block in own] for own in read_items(items, "")]


def items_of(blocks: Sequence[Block]) -> list[tuple[Item, list[Block]]]:
    """Return the items that blocks of a log hold, each with its blocks, in order.

    Blocks that came in other ways than as items are written as the items that say the same; what is no part of a
    conversation's items, such as summaries, is left out.
    """
    groups: list[list[Block]] = []
    for block in blocks:
        if block.meta.get(KEY) == {} and groups:
            groups[-1].append(block)
        else:
            groups.append([block])
    written = ((_written(group), group) for group in groups)
    return [(item, group) for item, group in written if item is not None]


def call_of(item: Item) -> str | None:
    """Return the id of the call that an item makes."""
    kind = str(item.get("type", ""))
    return item.get("call_id") if kind.endswith("_call") else None


def answers(item: Item) -> str | None:
    """Return the id of the call that an item answers."""
    kind = str(item.get("type", ""))
    return item.get("call_id") if kind.endswith("_call" + _OUTPUT) else None


def _plain(item: Any) -> Any:
    value = plain(item)
    return value if isinstance(value, dict) else {"type": "unknown", "value": value}


def _blocks_of(item: Item, decoder: MessageDecoder) -> list[Block]:
    kind = str(item.get("type") or "")
    call_id = item.get("call_id")
    if isinstance(call_id, str) and call_id and kind not in _NOT_LOCAL:
        rest = {key: value for key, value in item.items() if key not in {"type", "call_id", "id", "status"}}
        if kind.endswith("_call"):  # of a shell, a computer, a patch: run here, and of use only with its output
            decoder.decode({"type": "function_call", "call_id": call_id, "name": kind, "arguments": "{}"})
            return [ToolCall(call_id=call_id, name=kind, arguments=rest)]
        if kind.endswith("_call" + _OUTPUT):
            output = rest.get("output", rest)
            text = output if isinstance(output, str) else compact_json(output)
            return [ToolResult(call_id=call_id, name=kind.removesuffix(_OUTPUT), text=text)]
    return decoder.decode(item) or [CustomBlock(type="session.item", author="system", data=item)]


def _kept(item: Item, blocks: Sequence[Block], batch: str) -> list[Block]:
    """Keep the rest of an item in the ``meta`` of its blocks, so that the item can be restored."""
    marked = _fold(item, blocks)
    if not marked or _unfold(marked, blocks) != item:
        marked = {_WHOLE: item}
    kept = []
    for number, block in enumerate(blocks):
        response = {"response_id": f"{batch}.{block.response_id}"} if block.response_id else {}
        meta = {**block.meta, KEY: {} if number else marked}
        kept.append(block.model_copy(update={"meta": meta, **response}))
    return kept


def _fold(value: Any, blocks: Sequence[Block]) -> Any:
    """Replace the content of blocks by marks: ``{"$text": 0}`` is the text of the first block."""
    for number, block in enumerate(blocks):
        if value == block.data and isinstance(value, dict | list) and value:
            return {"$data": number}
        if not isinstance(value, str) or len(value) < _SHORTEST:
            continue
        if value == block.text:
            return {"$text": number}
        if isinstance(block, ToolCall) and isinstance(block.arguments, dict):
            if value == compact_json(block.arguments):
                return {"$arguments": number}
            if value == json.dumps(block.arguments):
                return {"$spaced": number}
    if isinstance(value, dict):
        return {key: _fold(inner, blocks) for key, inner in value.items()}
    return [_fold(inner, blocks) for inner in value] if isinstance(value, list) else value


def _unfold(value: Any, blocks: Sequence[Block]) -> Any:
    """Replace the marks by the blocks' content again."""
    if isinstance(value, list):
        return [_unfold(inner, blocks) for inner in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, inner),) = value.items()
        if key == _WHOLE:
            return inner
        if key in _PARTS and isinstance(inner, int) and 0 <= inner < len(blocks):
            return _part(key, blocks[inner])
    return {key: _unfold(inner, blocks) for key, inner in value.items()}


def _part(mark: str, block: Block) -> Any:
    if mark == "$text":
        return block.text
    if mark == "$data":
        return block.data
    arguments = block.arguments if isinstance(block, ToolCall) else {}
    return compact_json(arguments) if mark == "$arguments" else json.dumps(arguments)


def _written(group: Sequence[Block]) -> Item | None:
    """Return the item of a group of blocks; None where it is none."""
    marked = group[0].meta.get(KEY)
    if isinstance(marked, dict) and marked:
        item = _unfold(marked, group)
        return item if isinstance(item, dict) else None
    return _of_block(group[0])


def _of_block(block: Block) -> Item | None:
    """Write the item that says what a block says, which came in another way."""
    match block:
        case UserPrompt() if block.text:
            return {"role": "user", "content": block.text}
        case AssistantCompletion() if block.text:
            return {"role": "assistant", "content": block.text}
        case ToolCall():
            arguments = block.arguments if isinstance(block.arguments, str) else compact_json(block.arguments)
            form = block.data if isinstance(block.data, dict) and block.data.get("type") == FUNCTION_CALL else {}
            namespace = {NAMESPACE: form[NAMESPACE]} if NAMESPACE in form else {}
            return {
                "type": FUNCTION_CALL,
                "call_id": block.call_id,
                "name": block.name,
                "arguments": arguments,
                **namespace,
            }
        case ToolResult():
            return {"type": "function_call_output", "call_id": block.call_id, "output": block.text}
        case Reasoning() if isinstance(block.data, dict) and block.data.get("type") == "reasoning":
            return block.data
        case Attachment() if isinstance(block.data, dict) and "type" in block.data:
            part = responses_media(block.data, OPENAI_RESPONSES)
            return {"role": "user", "content": [part]} if part else None
    return None
