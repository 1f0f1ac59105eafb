"""What each of the fake's wires knows: how a request is checked, and how answers and refusals look in it."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.providers.script import Answer, Asked, Call, Trouble, WireName

Event: TypeAlias = dict[str, Any]
"""One of a stream; its ``type`` names it where the wire names its events."""
Said: TypeAlias = tuple[str, list[tuple[str, str]]]
"""What a request says: the system's part, and the rest by role."""


class BrokenRequest(Exception):
    """A request that the provider would refuse; the message is for the client."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One format.

    Attributes:
        name: of it.
        check: raises `BrokenRequest` for what the provider would refuse.
        said: reads a checked request.
        whole: writes an answer in one piece.
        events: writes it as a stream.
        refusal: writes a refusal: status and body.
        broken: writes the refusal of a broken request.
        last_line: ends a stream.
    """

    name: WireName
    check: Callable[[dict[str, Any]], None]
    said: Callable[[dict[str, Any]], Said]
    whole: Callable[[Answer, Asked], dict[str, Any]]
    events: Callable[[Answer, Asked], list[Event]]
    refusal: Callable[[Trouble, Asked], tuple[int, dict[str, Any]]]
    broken: Callable[[str], dict[str, Any]]
    last_line: str = ""


def strict(params: Any) -> SchemaValidator:
    """Return what checks a request by an SDK's type: lists to their last item, and no field that it does not name.

    The SDKs declare lists as iterables, whose items pydantic would check only while somebody iterates.
    """
    return SchemaValidator(_strict(TypeAdapter(params).core_schema))


def _strict(schema: Any) -> Any:
    if isinstance(schema, list | tuple):
        return type(schema)(_strict(part) for part in schema)
    if not isinstance(schema, dict):
        return schema
    closed = {key: _strict(part) for key, part in schema.items() if key not in {"serialization", "extras_schema"}}
    match schema.get("type"):  # which is a schema itself, of the field of that name, where fields are listed
        case "generator":
            closed["type"] = "list"
        case "typed-dict" | "model-fields":
            closed["extra_behavior"] = "forbid"
        case "model":
            closed["config"] = {**closed.get("config", {}), "extra_fields_behavior": "forbid"}
    return closed


def check_types(body: dict[str, Any], validator: SchemaValidator) -> None:
    """Check a request by its type.

    Raises:
        BrokenRequest: it is not of it; the message has the deepest of the problems.
    """
    try:
        validator.validate_python(body)
    except ValidationError as error:
        deepest = max(error.errors(include_url=False), key=lambda problem: len(problem["loc"]))
        raise BrokenRequest(f"{'.'.join(map(str, deepest['loc']))}: {deepest['msg']}") from error


def call_ids(asked: Asked, calls: Sequence[Call], prefix: str) -> list[str]:
    """Return the ids of an answer's calls."""
    return [call.id or f"{prefix}_{asked.number}_{index}" for index, call in enumerate(calls)]


def signature(thought: str) -> str:
    """Return the signature of a thought, as base64."""
    return b64encode(sha256(thought.encode()).digest() + b"\xfb\xff").decode()


def texts(content: Any) -> str:
    """Join the texts of a content that is a text or a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or [])
