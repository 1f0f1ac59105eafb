"""The column of docs/guarantees.md with the depth of each guarantee, read off the tests that its row names.

``python -m tests.project.depths`` writes it anew.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Final

from tests.project.pages import TEST_NAME
from tests.project.sources import ROOT

PAGE: Final = ROOT / "docs" / "guarantees.md"
HEAD: Final = "| guarantee | depth | tests |\n| --- | --- | --- |\n"
WHOLE: Final = "whole"
MARKS: Final = {
    "given": "searched",
    "search": "searched",
    "sampled": "sampled",
    "full_depth": "CI",
    "at_night": "night",
}
"""What a test is held at by what stands above it; a test with nothing of these is played whole in every run."""
_HEAD: Final = re.compile(r"^\| guarantee \|.*\n\| --- \|.*\n", re.MULTILINE)
_ROW: Final = re.compile(r"^\| (?P<guarantee>.+?) \| (?:[\w, ]+ \| )?(?P<tests>`tests/.*) \|$", re.MULTILINE)


def depth_of(test_name: str) -> str:
    """Return at which depth a test is held, by its decorators or by the settings of a state machine's test case."""
    file, *names = test_name.split("::")
    above = _above(file).get(names[-1], frozenset())
    return next((depth for mark, depth in MARKS.items() if mark in above), WHOLE)


@cache
def _above(file: str) -> dict[str, frozenset[str]]:
    """Return the names in the decorators of each function of a file, and in the settings of each test case."""
    found: dict[str, frozenset[str]] = {}
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found[node.name] = _names(*node.decorator_list)
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=case), attr="settings")], value=value):
                found[case] = _names(value)
    return found


def _names(*nodes: ast.expr) -> frozenset[str]:
    return frozenset(part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name))


def with_depths(text: str) -> str:
    """Return the page with the depth of each row: those of its tests, the one that every run holds first."""
    order = [WHOLE, *dict.fromkeys(MARKS.values())]

    def row(match: re.Match[str]) -> str:
        depths = {depth_of(name) for name in TEST_NAME.findall(match["tests"])}
        return f"| {match['guarantee']} | {', '.join(sorted(depths, key=order.index))} | {match['tests']} |"

    return _ROW.sub(row, _HEAD.sub(HEAD, text))


if __name__ == "__main__":
    PAGE.write_text(with_depths(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
