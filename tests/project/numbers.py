"""The table of docs/design.md with the figures of policies: ``python -m tests.project.numbers`` writes them anew."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.project.sources import ROOT
from timeline import policies

PAGE: Final = ROOT / "docs" / "design.md"
_HEAD: Final = "| number | field | `balanced` | `cut_point` |"
_ROW: Final = re.compile(r"^\| (?P<number>[^|\n]+) \| `(?P<field>[\w.]+)` \| [^|\n]+ \| [^|\n]+ \|$", re.MULTILINE)


def said(preset: str, field: str) -> str:
    """Return the value of a policy's field as the page writes it; a field is a path, such as `hiding.grace`."""
    value: Any = getattr(policies, preset)().model_dump()
    for name in field.split("."):
        value = value[int(name)] if name.isdigit() else value[name]
    match value:
        case None:
            return "-"
        case str():
            return f"`{value}`"
        case _:
            return f"{value:,}"


def with_numbers(text: str) -> str:
    """Return the page with the figures as they are."""
    before, head, rows = text.partition(_HEAD)
    table, behind, rest = rows.partition("\n\n")
    written = _ROW.sub(lambda row: _written(row["number"], row["field"]), table)
    return before + head + written + behind + rest


def _written(number: str, field: str) -> str:
    return f"| {number} | `{field}` | {said('balanced', field)} | {said('cut_point', field)} |"


if __name__ == "__main__":
    PAGE.write_text(with_numbers(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
