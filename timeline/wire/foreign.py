"""Read foreign JSON, and the objects that SDKs make of it, so that every value that is read can be written again.

Python's reader accepts more than JSON allows: NaN, infinities, lone surrogates, and nesting too deep for other
programs.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from typing import Any, Final

from timeline.blocks import Block, ToolCall
from timeline.frozen import MOST_NESTING, canonical_json, is_nested_deeper, repair_json

RAW: Final = "_raw"
"""The key for arguments that are no object, on a wire that takes only objects."""

_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE: Final = re.compile(r"[ \t\r\n]*")


def _finite(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=str, strict=False)


def skip_space(text: str, start: int) -> int:
    """Return the end of the white space that begins at ``start``."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


def decode_value(text: str, start: int = 0) -> tuple[Any, int]:
    """Decode the first JSON value of a text; return the value and its end.

    Control characters inside strings are accepted; numbers that JSON has no form for (NaN, 1e999) become text, and
    lone surrogates are repaired.

    Raises:
        ValueError: no JSON value begins there, it does not end, or it is nested too deeply.
    """
    try:
        value, end = _DECODER.raw_decode(text, skip_space(text, start))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    brackets = text.count("{", start, end) + text.count("[", start, end)
    # A text with few brackets cannot be nested deeply, so most rows need no walk over their value.
    if brackets > MOST_NESTING and is_nested_deeper(value, MOST_NESTING):
        raise ValueError("nested too deeply")
    if _SURROGATE.search(text, start, end):
        value = repair_json(value)
    return value, end


def text_of(fields: dict[str, Any], key: str = "text") -> str:
    """Return a text field of an object, or an empty text where there is none."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def object_of(value: Any, key: str) -> dict[str, Any]:
    """Return a field that is an object, or an empty object where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def status_of(fields: dict[str, Any], key: str) -> int | None:
    """Return the exit status in a field of an object; None where there is no whole number."""
    value = fields.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def objects_of(value: Any, key: str) -> list[dict[str, Any]]:
    """Return the objects in a field that is a list; none where there is no list."""
    found = value.get(key) if isinstance(value, dict) else None
    return [inner for inner in found if isinstance(inner, dict)] if isinstance(found, list) else []


def system_text(system: Any) -> str:
    """Return a system prompt as one text, for a wire that takes no parts; a blank line separates texts of parts."""
    parts = system if isinstance(system, list) else [system]
    texts = [part if isinstance(part, str) else text_of(part) for part in parts if isinstance(part, str | dict)]
    return "\n\n".join(text for text in texts if text.strip())


def arguments_of(arguments: Any) -> dict[str, Any] | str:
    """Read a call's arguments: an object, or the raw text where the model wrote no JSON object.

    A text that was cut off is never an object: no beginning of a JSON object is one.
    """
    if isinstance(arguments, dict):
        return _storable(arguments)
    if not isinstance(arguments, str):
        return canonical_json(arguments)
    try:
        value = json.loads(arguments, parse_constant=_refuse)
        canonical_json(value)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) and not is_nested_deeper(value, MOST_NESTING) else arguments


def with_read_arguments(block: Block) -> Block:
    """Return a call that brings its arguments as an SDK's text with what they say; any other block as it is.

    A call with a provider's form in ``data`` stays as it is: the form says what its text means.
    """
    if isinstance(block, ToolCall) and isinstance(block.arguments, str) and block.data is None:
        return block.model_copy(update={"arguments": arguments_of(block.arguments)})
    return block


def as_object(arguments: Any) -> dict[str, Any]:
    """Return a call's arguments as an object; raw text goes under a key of its own."""
    if isinstance(arguments, dict):
        return arguments
    return {RAW: arguments} if arguments else {}


def from_object(arguments: Any) -> dict[str, Any] | str:
    """Read arguments that a wire sent as an object; raw text under its own key becomes raw text again."""
    if isinstance(arguments, dict):
        raw = arguments.get(RAW)
        return raw if isinstance(raw, str) and len(arguments) == 1 else _storable(arguments)
    return arguments if isinstance(arguments, str) else canonical_json(arguments)


def _storable(arguments: dict[str, Any]) -> dict[str, Any] | str:
    """Return arguments, as a text where JSON has no form for them: a model may write ``NaN``, which Python reads."""
    try:
        canonical_json(arguments)
    except ValueError:
        return json.dumps(arguments)
    return arguments


def plain(value: Any) -> Any:
    """Return the JSON value of an SDK's object as it came over the wire, with nothing added.

    An SDK's objects are recognised by ``model_dump`` alone; fields that the provider did not send are left out, so
    that signed content stays as it was signed.

    Raises:
        ValueError: it is nested too deeply.
    """
    converted = value if is_nested_deeper(value, MOST_NESTING) else _plain(value)
    if is_nested_deeper(converted, MOST_NESTING):
        raise ValueError("something nested too deeply")
    return converted


def _plain(value: Any) -> Any:
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return b64encode(value).decode() if isinstance(value, bytes) else value  # as Google's SDK takes files in dicts


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} has no JSON form")
