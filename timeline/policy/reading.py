"""Read TOML, whose values may be nested as deep as a reader can follow and no deeper; and tables of our own in it."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from timeline.frozen import is_nested_deeper
from timeline.policy.text import problem_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.frozen import FrozenT

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


def read_table(kind: type[FrozenT], text: str, refusal: Callable[[str, str], Exception]) -> FrozenT:
    """Return the table that a TOML text holds.

    Args:
        kind: of the table.
        text: the TOML.
        refusal: makes the error to raise of a field and its problem; the field is empty where the text is at fault.
    """
    try:
        return kind.model_validate(read_toml(text))
    except InvalidToml as error:
        raise refusal("", str(error)) from None
    except ValidationError as error:
        raise refusal(*problem_of(error, kind)) from None


def unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return the problem of a file that cannot be read as text."""
    return f"it cannot be read: {error.strerror if isinstance(error, OSError) else 'it is not UTF-8 text'}"
