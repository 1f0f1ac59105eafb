from __future__ import annotations

import ast
import re
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


def test_every_public_attribute_says_its_type() -> None:
    """Type checkers infer the others, each by rules of its own: see `pyright --verifytypes`."""
    silent = [
        f"{modules()[module].relative_to(ROOT)}:{line} {name}"
        for module in modules()
        for node in tree(module).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        for name, line in _untyped(node)
    ]
    assert not silent, "\n".join(silent)


def _untyped(cls: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """Yield what a class makes, in its body or its constructor, and has no type; that of an argument will do."""
    typed = {ast.unparse(node.target) for node in ast.walk(cls) if isinstance(node, ast.AnnAssign)}
    typed |= {f"self.{node.name}" for node in cls.body if isinstance(node, FUNCTION)}  # a property
    for node in cls.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            yield from ((target, node.lineno) for target in map(ast.unparse, node.targets) if target[0] != "_")
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            given = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
            made = (inner for inner in ast.walk(node) if isinstance(inner, ast.Assign))
            for assign in (inner for inner in made if ast.unparse(inner.value) not in given):
                parts = {ast.unparse(part) for target in assign.targets for part in ast.walk(target)}
                yield from ((part, assign.lineno) for part in parts - typed if re.match(r"self\.[a-z]\w*$", part))


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
