"""The documents as programs: their code blocks, read from Markdown, and the way to run them.

    ```python                      runs; all blocks of a page share one namespace and one event loop, and may await
    ```console                     the lines that begin with `$ timeline` run, in bash; they have to succeed, and what
                                   is below one is what it prints, wherever lines are folded; … is for what is left out
    <!-- no-run: why -->           right above a block: it is not run
    <!-- python … -->              a block that the reader does not see, for what the page's code needs around it

Everything of a page runs in order, in a folder of its own that holds a recording, `session.jsonl`. A command that needs
a shell has a process of its own; the others run in this one, since most of their time went to starting.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.project.sources import ROOT
from timeline.cli import main

FENCE: Final = re.compile(
    r"^(?P<hidden><!-- python\n(?P<unseen>.*?)^-->$)|^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
NO_RUN: Final = re.compile(r"<!-- no-run: *(?P<reason>.*?) *-->\s*\Z")
TEST_NAME: Final = re.compile(r"tests/[\w/]+\.py::\w+(?:::\w+)*")
"""How a page names a test."""
QUOTED: Final = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")
LEFT_OUT: Final = "…"
FOR_A_SHELL: Final = re.compile(r"[^\w\s./:=,@%+-]")
"""What stands outside of quotes where a command is more than words: a pipe, a file that is written to, a pattern."""


class CodeBlock(NamedTuple):
    """A fenced block of a page.

    Attributes:
        line: the first line of its text, counted from 1.
        language: what stands behind the opening fence.
        text: the code, without the indentation of the fence.
        no_run: why it is not run; None if it is.
    """

    line: int
    language: str
    text: str
    no_run: str | None


def pages() -> list[Path]:
    """Return the README and all documents."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def code_blocks(text: str) -> list[CodeBlock]:
    """Read the fenced blocks of a page, and its hidden ones."""
    blocks = []
    for match in FENCE.finditer(text):
        body = "unseen" if match["hidden"] else "text"
        excuse = NO_RUN.search(text, 0, match.start())
        indent = len(match["indent"] or "")
        code = "".join(line[indent:] if line.strip() else line for line in match[body].splitlines(keepends=True))
        line = text.count("\n", 0, match.start(body)) + 1
        language = "python" if match["hidden"] else match["language"]
        blocks.append(CodeBlock(line, language, code, excuse["reason"] if excuse else None))
    return blocks


class Command(NamedTuple):
    """A command of a console block, and what the page says that it prints: nothing, if nothing is below it."""

    text: str
    printed: str


def commands(block: CodeBlock) -> list[Command]:
    """Return the `timeline` commands of a console block; a backslash at a line's end goes on with the next line."""
    joined = block.text.replace("\\\n", " ")
    parts = [part.partition("\n") for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]]
    return [Command(first.strip(), printed) for first, _, printed in parts if first.startswith("timeline")]


def is_printed(shown: str, printed: str) -> bool:
    """Say whether a page shows what a command printed, in order, but for what it leaves out with an ellipsis."""
    pieces = [" ".join(piece.split()) for piece in shown.split(LEFT_OUT)]
    text, place = " ".join(printed.split()), 0
    for piece in pieces:
        found = text.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return text.startswith(pieces[0]) and text.endswith(pieces[-1])


def table_rows(text: str) -> list[str]:
    """Return the rows of all tables of a page, without headings and rules."""
    tables = re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE)
    return [row for table in tables for row in table.splitlines()[2:]]


def is_defined(test_name: str) -> bool:
    """Say whether a test is defined: a function, a class, or a name that a state machine's test case is bound to."""
    file, *names = test_name.split("::")
    return set(names) <= _names_in(file)


@cache
def _names_in(file: str) -> frozenset[str]:
    """Return the names that a file of the project defines; none for a file that is not there."""
    if not (ROOT / file).is_file():
        return frozenset()
    defined: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign):
            defined |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(defined)


def run_page(text: str, name: str, folder: Path) -> None:
    """Run a page's blocks in order, in a folder; a failure names the page's line."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    with asyncio.Runner() as runner:
        for block in code_blocks(text):
            if block.no_run is not None:
                continue
            if block.language == "python":
                _run_python(block, name, namespace, runner)
            elif block.language == "console":
                for command, printed in commands(block):
                    code, said = (_in_a_shell if needs_a_shell(command) else _in_this_process)(command, folder)
                    where = f"{name}, console block at line {block.line}"
                    assert code == 0, f"{where}: $ {command}\nexit status {code}\n{said}"
                    assert not printed.strip() or is_printed(printed, said), f"{where}: $ {command}\nprints\n{said}"


def needs_a_shell(command: str) -> bool:
    """Say whether a command is more than words, some of them in quotes."""
    return FOR_A_SHELL.search(QUOTED.sub("", command)) is not None


def _run_python(block: CodeBlock, name: str, namespace: dict[str, Any], runner: asyncio.Runner) -> None:
    padded = "\n" * (block.line - 1) + block.text
    code = compile(padded, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    outcome = eval(code, namespace)  # noqa: S307 - the project's own documents
    if inspect.iscoroutine(outcome):
        runner.run(outcome)


def _in_a_shell(command: str, folder: Path) -> tuple[int, str]:
    """Run a command as a reader would, with the tests' own environment first on the path and nobody's settings."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TIMELINE_")}
    own |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}", "HOME": str(folder)}
    shell = ["bash", "-c", f"set -o pipefail; {command}"]
    done = subprocess.run(
        shell, cwd=folder, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def _in_this_process(command: str, folder: Path) -> tuple[int, str]:
    """Run a command with what was imported and loaded for the one before; the lab starts no processes either."""
    words = shlex.split(command)[1:]
    if words[:1] == ["lab"] and "--validate" not in words:
        words += ["--jobs", "1"]
    said = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(said):
        for name in [name for name in os.environ if name.startswith("TIMELINE_")]:
            patch.delenv(name)
        patch.setenv("HOME", str(folder))
        patch.chdir(folder)
        return main(words), said.getvalue()
