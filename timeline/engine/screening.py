"""Show an application's hook every text that is stored, before it is stored: a secret must not get in by a side door.

The hook is made for blocks. Every other text is shown to it as a `Note`: titles, errors, labels of stages, entries of
frameworks, summaries and replacements.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from timeline.blocks import Note
from timeline.errors import InvalidBlock
from timeline.events import BlockAppended, UnknownPayload
from timeline.events.encoding import decode_payload, encode_payload
from timeline.frozen import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.blocks import Block
    from timeline.events import Payload

P = TypeVar("P", bound="Payload")

_NAMES: Final = frozenset({"type", "path", "paths", "turn_id", "call_id", "policy", "system", "tools", "ephemeral"})
_HASHES: Final = frozenset({"fingerprint", "sha256", "checksum", "counter", "conversation", "relation", "at", "key"})
_KEPT: Final = _NAMES | _HASHES
"""Fields that hold no text of a user's, but names and hashes that other events refer to."""


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
    """Return what a hook leaves of a text that is no block's."""
    return screened_block(hook, Note(text=text)).text if text else text


def screened_payload(hook: Callable[[Block], Block], payload: P) -> P:
    """Return what a hook leaves of an event; an appended block was shown to it before it was counted."""
    if isinstance(payload, BlockAppended | UnknownPayload):
        return payload
    text = encode_payload(payload)
    left = compact_json(screened_json(hook, json.loads(text)))
    return payload if left == text else cast("P", decode_payload(payload.type, payload.schema_version, left))


def screened_json(hook: Callable[[Block], Block], value: Any) -> Any:
    """Return what a hook leaves of the texts of a JSON value."""
    if isinstance(value, str):
        return screened_text(hook, value)
    if isinstance(value, list):
        return [screened_json(hook, item) for item in value]
    if isinstance(value, dict):
        return {key: item if key in _KEPT else screened_json(hook, item) for key, item in value.items()}
    return value
