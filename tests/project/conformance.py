"""The pages of docs/conformance, made from the designs' statements and the tests that are marked to show them.

The statements are data beside the pages, a file a design. A test says what it shows by `@pytest.mark.shows("002-14")`.
``python -m tests.project.conformance`` writes the pages.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.project.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

FOLDER: Final = ROOT / "docs" / "conformance"
_INTRODUCTION: Final = """\
# Conformance

Five published designs of context compaction run here as policies. A page for each lists what the design asks of the
behaviour, statement by statement, with the tests that show it. Where the designs contradict themselves or one another a
ruling decides; rulings have ids of their own, `R-…`. What a design says about its own language, framework and files is
not listed. Ids follow the order of the design's text.

These pages are generated: `python -m tests.project.conformance` writes them from the statements in the `.toml` files
and from the tests marked `@pytest.mark.shows("002-14")`.
"""


class Design(NamedTuple):
    """The statements of one published design.

    Attributes:
        number: the first part of its ids.
        title: the heading of its page.
        preset: the policy that follows it, and the name of its page.
        statements: what it asks for, by id.
        rulings: what decides where it contradicts itself or another, by id.
        left_out: why a statement is not followed, by id.
    """

    number: str
    title: str
    preset: str
    statements: Mapping[str, str]
    rulings: Mapping[str, str]
    left_out: Mapping[str, str]

    @property
    def asked(self) -> dict[str, str]:
        """Statements and rulings, by id."""
        return {**self.statements, **self.rulings}


@cache
def designs() -> tuple[Design, ...]:
    """Return the designs in the order of their numbers."""
    read = (tomllib.loads(file.read_text(encoding="utf-8")) for file in FOLDER.glob("*.toml"))
    return tuple(sorted(Design(**{"left_out": {}, **data}) for data in read))


@cache
def shown() -> Mapping[str, Sequence[str]]:
    """Return the tests that show each statement, by id; a test is named by its file and its function."""
    tests: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for test, statements in _marked(file):
            for statement in statements:
                tests[statement].append(f"{file.relative_to(ROOT).as_posix()}::{test}")
    return tests


def _marked(file: Path) -> Iterator[tuple[str, list[str]]]:
    text = file.read_text(encoding="utf-8")
    if ".shows(" not in text:
        return
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in node.decorator_list:
                match mark:
                    case ast.Call(func=ast.Attribute(attr="shows"), args=statements):
                        yield node.name, [ast.literal_eval(statement) for statement in statements]
                    case _:
                        pass


def pages() -> dict[Path, str]:
    """Return every page by its file."""
    return {FOLDER / "README.md": _index(), **{FOLDER / f"{one.preset}.md": _page(one) for one in designs()}}


def _index() -> str:
    rows = [
        _cells(
            f"[{one.title}]({one.preset}.md)",
            one.number,
            f"`policies.{one.preset}`",
            str(len(one.statements)),
            str(len(one.rulings)),
            str(len(one.left_out)),
        )
        for one in designs()
    ]
    head = _table("design", "ids", "policy", "statements", "rulings", "of these not followed")
    return "\n".join([_INTRODUCTION, *head, *rows, ""])


def _page(design: Design) -> str:
    lines = [f"# {design.title}", "", f"The design {design.number} of the [published designs](README.md), "]
    lines[-1] += f"`policies.{design.preset}`."
    for heading, asked in (("Statements", design.statements), ("Rulings", design.rulings)):
        rows = [_cells(name, text, _shown_by(name, design)) for name, text in asked.items()]
        lines += ["", f"## {heading}", "", *_table("#", "statement", "tests"), *rows]
    return "\n".join([*lines, ""])


def _shown_by(statement: str, design: Design) -> str:
    if statement in design.left_out:
        return f"not followed: {design.left_out[statement]}"
    return " ".join(f"`{test}`" for test in shown().get(statement, ()))


def _table(*columns: str) -> list[str]:
    return [_cells(*columns), _cells(*["---"] * len(columns))]


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the pages."""
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
