"""What the AI SDK itself says that its messages are: its own schemas, exported by `schemas/export.mjs`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft7Validator, Draft202012Validator

VERSIONS: Final = (6, 7)
_READ: Final = [
    json.loads((Path(__file__).parent / "schemas" / f"ai-sdk-{version}.json").read_text()) for version in VERSIONS
]
_MODEL: Final = [Draft202012Validator(schemas["modelMessage"]) for schemas in _READ]
_UI: Final = [Draft7Validator(schemas["uiMessages"]) for schemas in _READ]


def is_model_message(message: Any) -> bool:
    """Say whether every version of the SDK takes a value as a ``ModelMessage``."""
    return all(validator.is_valid(message) for validator in _MODEL)


def check_model_messages(messages: list[dict[str, Any]]) -> None:
    """Assert that every version of the SDK takes messages as ``ModelMessage[]``."""
    for message in messages:
        for validator in _MODEL:
            validator.validate(message)


def check_ui_messages(messages: list[dict[str, Any]]) -> None:
    """Assert that every version of the SDK takes messages as ``UIMessage[]``; an empty list is none to it."""
    for validator in _UI if messages else ():
        validator.validate(messages)
    assert all(message["parts"] or message["role"] == "assistant" for message in messages)
    assert len({message["id"] for message in messages}) == len(messages)
