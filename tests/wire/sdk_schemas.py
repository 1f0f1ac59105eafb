"""What the AI SDK itself says that its messages are: its own schemas, exported by `schemas/export.mjs`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft7Validator, Draft202012Validator

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSIONS: Final = (6, 7)
_READ: Final = [
    json.loads((Path(__file__).parent / "schemas" / f"ai-sdk-{version}.json").read_text()) for version in VERSIONS
]
_MODEL: Final = [Draft202012Validator(schemas["modelMessage"]) for schemas in _READ]
_TELLING: Final = frozenset({"type", "role", "state"})
"""The keys whose texts the schemas look at."""
_TAKEN: Final[set[str]] = set()
"""The shapes of messages that were validated: hundreds of a conversation have the same one."""
_UI: Final = [Draft7Validator(schemas["uiMessages"]) for schemas in _READ]


def is_model_message(message: Any) -> bool:
    """Say whether every version of the SDK takes a value as a ``ModelMessage``."""
    return all(validator.is_valid(message) for validator in _MODEL)


def check_model_messages(messages: list[dict[str, Any]]) -> None:
    """Assert that every version of the SDK takes messages as ``ModelMessage[]``."""
    for message in messages:
        content = message["content"]
        for part in content if isinstance(content, list) and content else [content]:
            single = {**message, "content": part if part is content else [part]}
            _check(_MODEL, single, single)


def check_ui_messages(messages: list[dict[str, Any]]) -> None:
    """Assert that every version of the SDK takes messages as ``UIMessage[]``; an empty list is none to it."""
    for message in messages:
        for parts in [[part] for part in message["parts"]] or [[]]:
            single = {**message, "parts": parts}
            _check(_UI, [single], single)
    assert all(message["parts"] or message["role"] == "assistant" for message in messages)
    assert len({message["id"] for message in messages}) == len(messages)


def _check(validators: Sequence[Any], value: Any, message: dict[str, Any]) -> None:
    """Validate a message of one part, unless one of its shape was: the schemas say nothing of what a text says."""
    shape = json.dumps([validators is _UI, _shape(message)])
    if shape not in _TAKEN:
        for validator in validators:
            validator.validate(value)
        _TAKEN.add(shape)


def _shape(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {} if key == "input" else {name: _shape(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_shape(inner) for inner in value]
    return "" if isinstance(value, str) and key not in _TELLING else value
