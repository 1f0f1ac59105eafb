"""Commands that messages and docstrings name exist, with the options that they name."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, Final

import pytest
import typer

from tests.project.sources import PACKAGES
from tests.project.sources import ROOT as REPOSITORY
from timeline.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAMED: Final = re.compile(r"`timeline ((?:[^`\n]|\n(?!\n))+)`|: timeline (?!order)([a-z][^\n.;]*)")
_ABOUT: Final = re.compile(r"(?i)\b(restore|use|take|open) (a|the|another|an earlier) backup\b")
_PLACE: Final = "{}"
"""What is written for a value in a text."""
ROOT: Final = typer.main.get_command(app)


def _texts(file: Path) -> Iterator[tuple[int, str]]:
    """Yield each text of a file with its line; a value in it as a pair of braces."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (str(p.value) if isinstance(p, ast.Constant) else _PLACE for p in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def _sources() -> list[Path]:
    return sorted(file for package in PACKAGES for file in (REPOSITORY / package).rglob("*.py"))


def _wrong(said: str) -> str:
    """Return what is wrong with a command line; empty if nothing is."""
    command: Any = ROOT
    words = said.split()
    while words and (known := getattr(command, "commands", None)) is not None:
        name = words.pop(0).removesuffix(_PLACE)
        if name not in known:
            # Options of `timeline` itself, and the name of a group alone.
            return "" if name.startswith("-") else f"there is no command {name!r}"
        command = known[name]
    options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    options |= {"-", "--help"}
    unknown = [w for w in words if w.startswith("-") and w.split("=")[0].removesuffix(_PLACE) not in options]
    return f"it has no option {unknown[0]}" if unknown else ""


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("verify --deep", ""),
        ("restore FILE --yes", ""),
        ("mend", "there is no command 'mend'"),
        ("verify --hard", "it has no option --hard"),
        ("policies show balanced", ""),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(said: str, wrong: str) -> None:
    """So is an option."""
    assert _wrong(said) == wrong


def test_every_command_that_a_text_names_exists() -> None:
    """In messages, in help and in docstrings, with the options that are named with it."""
    found = [
        (file.name, line, said, wrong)
        for file in _sources()
        for line, text in _texts(file)
        for match in _NAMED.finditer(text)
        if (said := " ".join((match[1] or match[2]).split())) and (wrong := _wrong(said))
    ]
    assert found == []


def test_whoever_is_sent_to_a_backup_is_given_the_command() -> None:
    """Copying one over a database by hand may destroy both."""
    found = [
        (file.name, line, text)
        for file in _sources()
        for line, text in _texts(file)
        # a store on a server is restored by the server's own means
        if _ABOUT.search(text) and "timeline restore" not in text and file.parent.name != "postgres"
    ]
    assert found == []
