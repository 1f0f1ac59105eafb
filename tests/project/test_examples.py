"""The examples in docstrings: each is a program of its own, and the calls that applications make first have one."""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.project.pages import code_blocks, run_page
from tests.project.sources import BESIDE, modules, tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEFINITION = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
FIRST_CALLS = {
    "timeline.message_lists.compact_messages",
    "timeline.projection.context.RenderedContext.explain",
    "timeline.projection.context.RenderedContext.to_anthropic",
    "timeline.projection.context.RenderedContext.to_openai_chat",
    "timeline.store.opening.open_store",
    "timeline.timeline.Timeline.append",
    "timeline.timeline.Timeline.at",
    "timeline.timeline.Timeline.compact",
    "timeline.timeline.Timeline.fork",
    "timeline.timeline.Timeline.hide",
    "timeline.timeline.Timeline.open",
    "timeline.timeline.Timeline.pin",
    "timeline.timeline.Timeline.recall_tool",
    "timeline.timeline.Timeline.record",
    "timeline.timeline.Timeline.render",
    "timeline.timeline.Timeline.retry_with_compaction",
    "timeline.timeline.Timeline.step_hook",
    "timeline.timeline.Timeline.undo_compaction",
    "timeline.timeline.Timeline.verify",
    "timeline.view.TimelineView.read",
}
"""What a newcomer calls in the first hour."""
LINES = range(3, 9)
"""Lines of code in an example; a longer one belongs on a page."""


class Example(NamedTuple):
    """A docstring that shows code.

    Attributes:
        module: the module to import.
        name: of what is described, inside the module; empty for the module itself.
        docstring: as it is written, without its indentation.
    """

    module: str
    name: str
    docstring: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}".rstrip(".")


@cache
def examples() -> list[Example]:
    """Return every docstring with a fenced block of Python; a file without any is not parsed: tests wait for this."""
    texts = {module: file.read_text(encoding="utf-8") for module, file in modules().items()}
    return [example for module, text in texts.items() if _shows(text) for example in _examples_in(module)]


def _shows(text: str) -> bool:
    return "```" in text or ">>>" in text


def _examples_in(module: str) -> Iterator[Example]:
    imported = f"timeline.{module}" if f"timeline.{module.partition('.')[0]}" in BESIDE else module
    for name, node in _described("", tree(module)):
        docstring = ast.get_docstring(node) or ""
        if _shows(docstring):
            yield Example(imported, name, docstring)


def _described(name: str, node: ast.Module | DEFINITION) -> Iterator[tuple[str, ast.Module | DEFINITION]]:
    yield name, node
    for child in node.body:
        if isinstance(child, DEFINITION):
            yield from _described(f"{name}.{child.name}".lstrip("."), child)


@pytest.mark.parametrize("example", examples(), ids=str)
def test_an_example_runs_by_itself(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pasted into a program as it is written, an example runs: it brings its imports and needs no key."""
    monkeypatch.chdir(tmp_path)
    run_page(example.docstring, f"docstring of {example}", tmp_path)
    assert list(tmp_path.iterdir()) == [], "an example leaves nothing behind"


@pytest.mark.parametrize("example", examples(), ids=str)
def test_an_example_is_one_short_block_of_python(example: Example) -> None:
    """All examples have one form, and fit beside the call that they show."""
    [block] = code_blocks(example.docstring)
    assert (block.language, block.no_run) == ("python", None)
    assert len([line for line in block.text.splitlines() if line.strip()]) in LINES


@pytest.mark.parametrize("example", examples(), ids=str)
def test_an_example_describes_something_public(example: Example) -> None:
    """Examples are for applications: what they show can be imported, and is nobody's private part."""
    assert not [part for part in str(example).split(".") if part.startswith("_")]
    module = import_module(example.module)
    assert module if not example.name else callable(attrgetter(example.name)(module))


def test_the_calls_that_applications_make_first_have_an_example() -> None:
    """There are at least twenty, and the first hour's calls are among them."""
    assert len(examples()) >= len(FIRST_CALLS) >= 20
    assert sorted(FIRST_CALLS - {*map(str, examples())}) == []
