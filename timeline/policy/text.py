"""Policies as text: error messages that suggest the nearest valid name, and a policy written as TOML.

TOML wants figures and texts first, then tables, then arrays of tables. Fields that are None are left out.
"""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, get_args

from timeline.display.controls import escape_controls
from timeline.errors import InvalidPolicy
from timeline.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


_QUOTED: Final = re.compile(r"'([^']*)'")
_FEW: Final = 12
"""Most names that a message lists; of more it names only the nearest."""


def invalid_policy(
    error: ValidationError, model: type[Frozen], *, keywords: Collection[str] = (), file: str = ""
) -> InvalidPolicy:
    """Turn pydantic's first complaint into an `InvalidPolicy`.

    Args:
        error: pydantic's error.
        model: the model that it validated.
        keywords: valid names besides the model's fields.
        file: the policy's file, if it comes from one.
    """
    return InvalidPolicy(*problem_of(error, model, keywords=keywords), file=file)


def problem_of(error: ValidationError, model: type[Frozen], *, keywords: Collection[str] = ()) -> tuple[str, str]:
    """Return the field and the problem of pydantic's first complaint."""
    first = error.errors(include_url=False)[0]
    *path, name = first["loc"] or ("policy",)
    written, models = _at(model, path)
    field = ".".join(map(str, [*written, name]))
    if first["type"] == "extra_forbidden":
        names = {name for kind in models for name in kind.model_fields}
        return field, "there is no such field" + nearest(str(name), {*names, *keywords} if not path else names)
    return field, _problem(first)


def _problem(first: ErrorDetails) -> str:
    context = first.get("ctx", {})
    if first["type"] == "union_tag_invalid":
        tag = str(context["tag"])
        return f"there is no kind {tag!r}" + nearest(tag, _QUOTED.findall(str(context["expected_tags"])))
    if first["type"] == "union_tag_not_found":
        return "its kind is missing"
    if first["type"] == "literal_error" and isinstance(first["input"], str):
        return f"{first['input']!r} does not hold" + nearest(first["input"], _QUOTED.findall(str(context["expected"])))
    return first["msg"]


def nearest(name: str, names: Iterable[str]) -> str:
    """Name the likeliest of some names, and list them all where they are few."""
    known = sorted(names)
    close = get_close_matches(name, known, n=1)
    guess = f"; the nearest is {close[0]!r}" if close else ""
    if len(known) > _FEW:
        return guess
    return guess + f"{', of' if guess else '; there are'} {', '.join(known)}"


def _at(model: type[Frozen], path: Iterable[int | str]) -> tuple[list[int | str], set[type[Frozen]]]:
    """Return a path of pydantic's as a file has it, without the kinds that pydantic puts in, and the models there."""
    written: list[int | str] = []
    found = {model}
    for part in path:
        if isinstance(part, int):
            written.append(part)
            continue
        inner = {kind for holder in found if part in holder.model_fields for kind in _models_in(_field(holder, part))}
        of_kind = {kind for kind in found if part == _default_kind(kind)}
        if inner or not of_kind:
            written.append(part)
        found = inner or of_kind or found
    return written, found


def _field(holder: type[Frozen], name: str) -> Any:
    return holder.model_fields[name].annotation


def _default_kind(kind: type[Frozen]) -> Any:
    return kind.model_fields["kind"].default if "kind" in kind.model_fields else None


def _models_in(annotation: Any) -> Iterator[type[Frozen]]:
    if isinstance(annotation, type) and issubclass(annotation, Frozen):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def toml_text(fields: Mapping[str, Any]) -> str:
    """Write fields as TOML that `tomllib` reads back as the same fields, without those that are None."""
    return "\n".join(_lines(fields, ())) + "\n"


def _lines(fields: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    held = {name: value for name, value in fields.items() if value is not None}
    for name, value in held.items():
        if not isinstance(value, dict) and not _is_tables(value):
            yield f"{name} = {_value(value)}"
    for name, value in held.items():
        inner = (*path, name)
        if isinstance(value, dict):
            yield from ("", f"[{'.'.join(inner)}]", *_lines(value, inner))
        elif _is_tables(value):
            for table in value:
                yield from ("", f"[[{'.'.join(inner)}]]", *_lines(table, inner))


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return escape_controls(json.dumps(value, ensure_ascii=False))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:_}"
    return repr(value)
