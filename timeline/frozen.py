"""The base of every value in the library: frozen, and closed to fields that it does not know."""

from __future__ import annotations

import hashlib
import json
import math
from json.encoder import encode_basestring
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class Frozen(BaseModel):
    """A frozen pydantic model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


FrozenT = TypeVar("FrozenT", bound=Frozen)


def unchecked(cls: type[FrozenT], fields: dict[str, Any], given: set[str]) -> FrozenT:
    """Make a value out of parts that were checked before, at a third of the constructor's cost.

    For what every append makes a block. ``fields`` holds every field, ``given`` names those that are no defaults.
    """
    value = cls.__new__(cls)
    object.__setattr__(value, "__dict__", fields)
    object.__setattr__(value, "__pydantic_fields_set__", given)
    object.__setattr__(value, "__pydantic_extra__", None)
    object.__setattr__(value, "__pydantic_private__", None)
    return value


# Kept, since json.dumps would make an encoder at every call: these run several times a block.
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


_LONG: Final = 100
"""Characters from which on pydantic's writer of texts is faster than Python's; at 1,000 ten times as fast."""


def json_string(text: str) -> str:
    """Write a text as `canonical_json` and `compact_json` do, by one of two writers that escape alike."""
    if len(text) < _LONG:
        return encode_basestring(text)
    try:
        return to_json(text).decode()
    except ValueError:  # a lone surrogate: whoever wants UTF-8 of it will say so
        return encode_basestring(text)


_FLAT: Final[Mapping[type, Callable[[Any], str]]] = {
    str: json_string,
    int: int.__repr__,
    bool: {True: "true", False: "false"}.__getitem__,
    NoneType: {None: "null"}.__getitem__,
}
"""Writers of what the arguments of a call mostly hold."""


def canonical_json(value: Any) -> str:
    """Write JSON in the one form that is hashed: sorted keys, no spaces, no NaN, no escapes beyond the necessary.

    Raises:
        ValueError: the value holds NaN or an infinity, or refers to itself.
        TypeError: the value holds something that JSON has no form for.
    """
    flat = _flat_json(sorted(value.items())) if type(value) is dict else None
    return _CANONICAL.encode(value) if flat is None else flat


def compact_json(value: Any) -> str:
    """Write JSON without spaces, keys in the order that they have: what came from a provider goes back as it came.

    Raises:
        ValueError: the value holds NaN or an infinity, or refers to itself.
        TypeError: the value holds something that JSON has no form for.
    """
    flat = _flat_json(value.items()) if type(value) is dict else None
    return _COMPACT.encode(value) if flat is None else flat


def _flat_json(items: Iterable[tuple[Any, Any]]) -> str | None:
    """Write an object of texts, whole numbers and constants; None: it holds something else.

    The arguments of a call are written twice on their way into the log, and are a long text in a small object.
    """
    parts = []
    for key, value in items:
        write = _FLAT.get(type(value))
        if write is None or type(key) is not str:
            return None
        parts.append(f"{json_string(key)}:{write(value)}")
    return "{" + ",".join(parts) + "}"


def sha256_hex(text: str) -> str:
    """Hash a text's UTF-8 bytes; lone surrogates never reach this point (see ``repair_text``)."""
    return hashlib.sha256(text.encode()).hexdigest()


def repair_text(text: str) -> str:
    """Replace lone surrogates as tiktoken itself does, so that counter, hash and database agree about the text."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def repair_json(value: Any) -> Any:
    """Repair every string in a JSON value, keys included.

    Raises:
        ValueError: a number is NaN or infinite, which JSON has no form for.
    """
    if isinstance(value, str):
        return repair_text(value)
    if isinstance(value, dict):
        return {repair_text(k): repair_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [repair_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no form in JSON")
    return value


def without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the fields that hold nothing (None, empty text, empty list or mapping); 0 and False stay."""
    return {k: v for k, v in fields.items() if v is not None and v not in ("", [], {}, ())}
