"""Show an application's hook every text before it is stored, so that no secret gets into the store by another way.

The hook is made for blocks. Every other text is shown to it as a `Note`: titles, errors, labels of stages, entries of
frameworks, summaries and replacements.
"""

from __future__ import annotations

import json
from datetime import datetime
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel

from timeline.blocks import Note
from timeline.errors import InvalidBlock
from timeline.events import BlockAppended, ModelCalled, UnknownPayload
from timeline.events.encoding import decode_payload, encode_payload
from timeline.frozen import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.blocks import Block
    from timeline.events import Payload

P = TypeVar("P", bound="Payload")

_NAMES: Final = frozenset({"type", "path", "paths", "turn_id", "split_turn_id", "call_id", "conversation", "key"})
_HASHES: Final = frozenset({"policy", "in_force", "system", "tools", "ephemeral", "before", "after", "fingerprint"})
_KEPT: Final = _NAMES | _HASHES | {"sha256", "checksum", "counter"}
"""Fields of events that hold no user's text, but names and hashes that other events refer to.

Only fields are left out: in a JSON value, such as the arguments of a call, the same key may hold anything.
"""


def screened_block(hook: Callable[[Block], Block], block: Block) -> Block:
    """Return what a hook leaves of a block.

    Raises:
        InvalidBlock: the hook returned something else than a block of the same type.
    """
    left = hook(block)
    if type(left) is not type(block):
        problem = f"the hook on_append returned {type(left).__name__} for {type(block).__name__}"
        raise InvalidBlock("on_append", f"{problem}; return the block, changed with model_copy")
    return left


def screened_text(hook: Callable[[Block], Block], text: str) -> str:
    """Return what a hook leaves of a text that belongs to no block."""
    return screened_block(hook, Note(text=text)).text if text else text


def screened_payload(hook: Callable[[Block], Block], payload: P) -> P:
    """Return what a hook leaves of an event. It saw an appended block already, before the block was counted.

    Where it would change the request of a call, the event loses the request: the body could not be built again.
    """
    if isinstance(payload, BlockAppended | UnknownPayload):
        return payload
    text = encode_payload(payload)
    data = json.loads(text)
    fields = _screened_fields(hook, payload, data)
    if isinstance(payload, ModelCalled) and fields.get("request") != data.get("request"):
        del fields["request"]
    left = compact_json(fields)
    return payload if left == text else cast("P", decode_payload(payload.type, payload.schema_version, left))


def _screened_fields(hook: Callable[[Block], Block], model: BaseModel, data: dict[str, Any]) -> dict[str, Any]:
    """Return what a hook leaves of the JSON form of a model. The hook is not shown the names and hashes in it."""
    fields = type(model).model_fields
    return {
        name: item
        if name in _KEPT or _is_choice(fields[name].annotation)
        else _screened(hook, getattr(model, name), item)
        for name, item in data.items()
    }


def _screened(hook: Callable[[Block], Block], value: Any, data: Any) -> Any:
    """Return what a hook leaves of the JSON form of a field's value; a time is not shown to it."""
    if isinstance(value, BaseModel):
        return _screened_fields(hook, value, data)
    if isinstance(value, tuple):
        return [_screened(hook, each, item) for each, item in zip(value, data, strict=True)]
    return data if isinstance(value, datetime) else screened_json(hook, data)


def _is_choice(annotation: Any) -> bool:
    """Return whether a field can hold only a few words of the library, or nothing."""
    if get_origin(annotation) in {Union, UnionType}:
        return all(part is NoneType or _is_choice(part) for part in get_args(annotation))
    return get_origin(annotation) is Literal


def screened_json(hook: Callable[[Block], Block], value: Any) -> Any:
    """Return what a hook leaves of the texts of a JSON value."""
    if isinstance(value, str):
        return screened_text(hook, value)
    if isinstance(value, list):
        return [screened_json(hook, item) for item in value]
    if isinstance(value, dict):
        return {key: screened_json(hook, item) for key, item in value.items()}
    return value
