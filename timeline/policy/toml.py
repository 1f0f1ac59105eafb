"""Writing a policy as TOML: figures and texts, then tables, then arrays of tables. What is None is left out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def toml_text(fields: Mapping[str, Any]) -> str:
    """Write fields as a TOML document that `tomllib` reads back as the same, but for those that are None."""
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
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:_}"
    return repr(value)
