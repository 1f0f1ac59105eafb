from __future__ import annotations

import ast
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from tests.project.sources import BESIDE, ROOT, modules, tree

if TYPE_CHECKING:
    from collections.abc import Iterator

FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.mark.parametrize("package", ["timeline", *BESIDE])
def test_the_public_names_are_sorted_and_importable(package: str) -> None:
    """`__all__` reads like a register, and each of its names is there."""
    module = import_module(package)
    assert module.__all__
    assert list(module.__all__) == sorted(module.__all__)
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    """A misspelt name fails as on any module."""
    with pytest.raises(AttributeError, match="open_stor"):
        import_module("timeline").open_stor  # noqa: B018 - the access is the test


def test_everything_public_has_a_docstring() -> None:
    """Modules, classes, functions and methods without a leading underscore say what they are for."""
    silent = [
        f"{modules()[module].relative_to(ROOT)}:{getattr(node, 'lineno', 1)} {name}"
        for module in modules()
        for name, node in _public(module)
        if not ast.get_docstring(node, clean=False)
    ]
    assert not silent, "\n".join(silent)


def _public(module: str) -> Iterator[tuple[str, ast.Module | ast.ClassDef | FUNCTION]]:
    root = tree(module)
    yield module, root
    yield from _public_inside(root)


def _public_inside(node: ast.Module | ast.ClassDef) -> Iterator[tuple[str, ast.ClassDef | FUNCTION]]:
    for child in node.body:
        if not isinstance(child, ast.ClassDef | FUNCTION) or child.name.startswith("_") or _repeats(child):
            continue
        yield child.name, child
        if isinstance(child, ast.ClassDef):
            yield from _public_inside(child)


def _repeats(node: ast.ClassDef | FUNCTION) -> bool:
    """Say whether a definition is described elsewhere: overloads, setters, and overridden methods that say so."""
    names = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return bool(names & {"overload", "override", "setter"})
