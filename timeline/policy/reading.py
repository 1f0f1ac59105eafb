"""Read TOML, whose values may be nested as deep as a reader can follow and no deeper."""

from __future__ import annotations

import tomllib
from typing import Any, Final

_DEEPEST: Final = 50
"""The most levels of tables and arrays; the deepest field of our files has five."""


class InvalidToml(ValueError):
    """The text is no TOML, or nested too deeply; the message is for the error of the file that it comes from."""


def read_toml(text: str) -> dict[str, Any]:
    """Return the fields of a TOML text.

    Raises:
        InvalidToml: it is no TOML, or nested too deeply.
    """
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidToml(f"it is no TOML: {error}") from None
    except RecursionError:
        fields = None
    if fields is None or _is_too_deep(fields):
        raise InvalidToml(f"it is nested too deeply; a field has at most {_DEEPEST} levels")
    return fields


def _is_too_deep(fields: dict[str, Any]) -> bool:
    """Return whether values are nested deeper than allowed. Dotted keys nest tables of any depth without recursion."""
    level: list[Any] = [fields]
    for _ in range(_DEEPEST):
        tables = [value.values() if isinstance(value, dict) else value for value in level]
        level = [inner for values in tables for inner in values if isinstance(inner, dict | list)]
        if not level:
            return False
    return True
