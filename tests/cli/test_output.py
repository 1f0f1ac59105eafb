from __future__ import annotations

import io
import json
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from timeline.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


@contextmanager
def writing_to(screen: Terminal | io.StringIO, **environment: str) -> Iterator[None]:
    """Make something standard output, 60 columns wide where it is a terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", screen)
        patch.delenv("NO_COLOR", raising=False)
        for name, value in {"TERM": "xterm", "COLUMNS": "60", **environment}.items():
            patch.setenv(name, value)
        yield


@given(TEXTS, st.integers(2, 80))
def test_a_brief_text_fits_its_columns_and_one_line(text: str, cells: int) -> None:
    """Whatever the text holds, wide characters and escapes too, it takes one line of the width that is given."""
    line = output.brief(text, cells)
    assert cell_len(line) <= cells
    assert not [c for c in line if ord(c) < 32 or 127 <= ord(c) < 160]


@given(st.lists(st.tuples(TEXTS, st.integers(0, 10**9)), max_size=5))
def test_a_table_on_a_terminal_has_a_line_a_row(rows: list[tuple[str, int]]) -> None:
    """No cell breaks a line of the table."""
    screen = Terminal()
    with writing_to(screen):
        output.table(("number", "text"), [(number, text) for text, number in rows])
    assert len(screen.getvalue().split("\n")) == len(rows) + 2


@given(st.lists(st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=3), max_size=4))
def test_a_list_is_written_row_by_row_and_is_json(rows: list[dict[str, object]]) -> None:
    """What `JsonList` writes reads back as the rows, a line each."""
    pipe = io.StringIO()
    with writing_to(pipe), output.JsonList() as written:
        for row in rows:
            written.add(row)
    assert json.loads(pipe.getvalue()) == rows
    assert pipe.getvalue().count("\n") == (len(rows) + 2 if rows else 1)


def test_an_error_between_rows_leaves_the_list_open() -> None:
    """Half a list cannot be mistaken for a whole one."""
    pipe = io.StringIO()
    with writing_to(pipe), suppress(RuntimeError), output.JsonList() as written:
        written.add(1)
        raise RuntimeError
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(pipe.getvalue())


def test_colours_are_for_terminals() -> None:
    """A terminal gets colours, unless NO_COLOR or a dumb terminal says otherwise; a pipe never does."""
    with writing_to(Terminal()):
        assert output.paint("a", "green") == "\x1b[32ma\x1b[0m"
    with writing_to(Terminal(), NO_COLOR="1"):
        assert output.paint("a", "green") == "a"
    with writing_to(Terminal(), TERM="dumb"):
        assert output.paint("a", "green") == "a"
    with writing_to(io.StringIO()):
        assert output.paint("a", "green") == "a"


def test_a_text_cannot_steer_the_terminal() -> None:
    """On a terminal control characters are shown as pictures; into a pipe a block's text goes as it is."""
    hostile = "a\x1b[2Jb\x07\x9b\tc\n"
    with writing_to(Terminal()):
        assert output.plain(hostile) == "a␛[2Jb␇\ufffd\tc\n"
    with writing_to(io.StringIO()):
        assert output.plain(hostile) == hostile


def test_a_table_is_cut_at_the_edge_of_a_terminal_only() -> None:
    """A person's lines fit the screen; a pipe gets every word."""
    screen, pipe = Terminal(), io.StringIO()
    for where in (screen, pipe):
        with writing_to(where, NO_COLOR="1"):
            output.table(("n", "text"), [(1, "word " * 30)])
    assert max(map(cell_len, screen.getvalue().splitlines())) <= 60
    assert pipe.getvalue().count("word") == 30


def test_the_numbers_of_a_table_stand_on_the_right() -> None:
    """Decimals, shares and signs too, and a dash where there is none; a column of words stands on the left."""
    pipe = io.StringIO()
    with writing_to(pipe):
        output.table(
            ("dollars", "share", "change", "why"), [("13.83", "7.5%", "-5", "gap 10"), ("-", "11.3%", "+1,204", "-")]
        )
    assert pipe.getvalue().splitlines() == [
        "dollars  share  change  why",
        "  13.83   7.5%      -5  gap 10",
        "      -  11.3%  +1,204  -",
    ]


def test_progress_is_silent_unless_standard_error_is_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log file gets no progress bar; a person does."""
    with output.progress("working", 2) as advance:
        advance(1)
    assert capsys.readouterr().err == ""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with output.progress("working", 2) as advance:
        advance(1)
    assert "working" in screen.getvalue()
