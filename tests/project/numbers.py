"""The figures of policies that the documentation names; ``python -m tests.project.numbers`` writes the table anew."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.project.sources import ROOT
from timeline import policies

PAGE: Final = ROOT / "docs" / "design.md"
IN_PROSE: Final = {
    "concepts.md": (
        "{trigger.share} of the limit's first {trigger.first} tokens and {trigger.beyond} of the others",
        "above the target ({target} of the limit)",
        "`compact_when_cold` ({compact_when_cold} of the limit)",
        "`keep_recent` tokens ({steps.0.cut.keep_recent} of the room)",
        "older than `intact` rounds ({hiding.intact})",
        "older than `files` rounds ({hiding.files})",
        "older than `old` rounds ({hiding.old})",
        "at most `replacement_tokens` ({hiding.replacement_tokens})",
        "`grace` is {hiding.grace} seconds",
    ),
    "design.md": (
        "{trigger.share} of the limit's first {trigger.first} tokens and {trigger.beyond} of the others",
        "`target` ({target} of the limit)",
        "and `keep_recent` ({steps.0.cut.keep_recent} of ",
        "`compact_when_cold` ({compact_when_cold} of the limit)",
    ),
    "summaries.md": ("`digest_tokens` ({digest_tokens} in the default",),
}
"""What pages say about the default, with the field of each figure in its place."""
_FIELD: Final = re.compile(r"\{(?P<field>[\w.]+)\}")
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


def sentences(page: str) -> list[str]:
    """Return what a page has to say about the default, with the figures as they are."""
    return [_FIELD.sub(lambda field: said("balanced", field["field"]), sentence) for sentence in IN_PROSE[page]]


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
