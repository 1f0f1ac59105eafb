"""Say what is wrong with a line that is no message, and which request it was meant to be.

Without an answer its client would wait for ever. The line cannot be decoded as a whole, so that its id is looked for in
its text: among the keys of the outermost object, and nowhere deeper.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pydantic import ValidationError

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
_ID: Final = re.compile(r'-?\d{1,18}|"[^"\\]{0,200}"')
_LONGEST: Final = 200
"""Characters of an explanation that are passed on: it may quote the line."""


def damage_of(error: ValidationError) -> tuple[bool, str]:
    """Return whether a line could be decoded as JSON, and in one line what is wrong with it."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(step) for step in first["loc"][-2:])
    problem = " ".join(f"{place + ': ' if place else ''}{first['msg']}".split())
    return first["type"] != "json_invalid", problem[:_LONGEST]


def line_of(error: ValidationError) -> str | None:
    """Return the line that could not be decoded; None where it was JSON, and no message."""
    first = error.errors(include_url=False)[0]
    return first["input"] if first["type"] == "json_invalid" and isinstance(first["input"], str) else None


def request_id(error: ValidationError) -> str | int | None:
    """Return the id of the request that a line was meant to be; None where it has none that can be read."""
    line = line_of(error)
    if line is not None:
        return _id_in(line)
    for problem in error.errors(include_url=False):
        id_ = problem["input"].get("id") if isinstance(problem["input"], dict) else None
        if isinstance(id_, str | int) and not isinstance(id_, bool):
            return id_
    return None


def _id_in(line: str) -> str | int | None:
    """Read a line up to the id of its outermost object, in one pass and without nesting."""
    depth, before = 0, ("", "")
    for token in _TOKEN.finditer(line):
        text = token[0]
        if text in "{[":
            depth += 1
        elif text in "}]":
            depth -= 1
        elif depth == 1 and before == ('"id"', ":") and _ID.fullmatch(text):
            return text[1:-1] if text.startswith('"') else int(text)
        before = (before[1], text)
    return None
