"""The sources as data: which module imports which, read from the syntax trees so that nothing has to be imported."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("timeline", "store", "summarizers")
BESIDE = ("timeline.store", "timeline.summarizers")
"""The packages that lie beside `timeline`. Here their modules are named by their files, however they are imported."""


@dataclass(frozen=True)
class Import:
    """One imported name.

    Attributes:
        importer: the importing module.
        target: the imported module, or one of the project's modules that the name is.
        name: what is imported of it; empty where that is the module itself.
        where: file and line, for messages.
        relative: whether it is written with leading dots.
        runs: whether it is carried out; one for type checkers only is not.
    """

    importer: str
    target: str
    name: str
    where: str
    relative: bool
    runs: bool


@cache
def modules() -> dict[str, Path]:
    """Return the file of each module of the three packages."""
    files = (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


@cache
def tree(module: str) -> ast.Module:
    """Return a module's syntax tree."""
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


@cache
def imports() -> tuple[Import, ...]:
    """Return every import of the three packages, those inside functions too."""
    return tuple(found for module in modules() for found in _imports_of(module))


@cache
def re_exported() -> dict[str, str]:
    """Return the module behind each name that `timeline` imports when it is first asked for."""
    tables = [node for node in tree("timeline").body if isinstance(node, ast.AnnAssign) and node.value is not None]
    [table] = [node.value for node in tables if ast.unparse(node.target) == "_LAZY" and node.value is not None]
    lazy: dict[str, tuple[str, str | None]] = ast.literal_eval(ast.unparse(table))
    return {name: module for name, (module, _) in lazy.items()}


def _imports_of(module: str) -> Iterator[Import]:
    file = modules()[module]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    root = tree(module)
    for_types = {id(inner) for node in ast.walk(root) if _is_for_types(node) for inner in ast.walk(node)}
    for node in ast.walk(root):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        level = node.level if isinstance(node, ast.ImportFrom) else 0
        where = f"{file.relative_to(ROOT)}:{node.lineno}"
        for target, name in _targets(node, package):
            yield Import(module, target, name, where, relative=level > 0, runs=id(node) not in for_types)


def _targets(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        yield from ((_by_file(alias.name), "") for alias in node.names)
        return
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    base = _by_file(".".join([*above, *([node.module] if node.module else [])]))
    for alias in node.names:
        inner = f"{base}.{alias.name}"
        yield (inner, "") if inner in modules() else (base, alias.name)


def _by_file(name: str) -> str:
    """Return ``store.x`` for ``timeline.store.x``."""
    return name.removeprefix("timeline.") if ".".join(name.split(".")[:2]) in BESIDE else name


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
