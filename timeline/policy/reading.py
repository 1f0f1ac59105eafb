"""Read TOML, whose values may be nested as deep as a reader can follow and no deeper."""

from __future__ import annotations

import tomllib
from typing import Any, Final

from timeline.frozen import is_nested_deeper

_DEEPEST: Final = 50
"""The most levels of tables and arrays; the deepest field of our files has five."""


class InvalidToml(ValueError):
    """The text is no TOML, or nested too deeply; the message is for the error of the file that it comes from."""


def read_toml(text: str) -> dict[str, Any]:
    """Return the fields of a TOML text.

    Raises:
        InvalidToml: it is not TOML, nested too deeply, or holds a number of thousands of digits.
    """
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidToml(f"it is not TOML: {error}") from None
    except RecursionError:
        fields = None
    except ValueError:  # of `int`: Python reads no number of more than some thousand digits
        raise InvalidToml("it holds a number of more digits than can be read") from None
    if fields is None or is_nested_deeper(fields, _DEEPEST):  # dotted keys nest tables without recursion
        raise InvalidToml(f"it is nested too deeply; a field has at most {_DEEPEST} levels")
    return fields
