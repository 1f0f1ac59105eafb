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
from timeline.display.brief import brief
from timeline.display.controls import show_controls

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


@pytest.mark.parametrize("screen", [Terminal(), io.StringIO()])
def test_no_character_of_a_text_becomes_a_style(screen: io.StringIO) -> None:
    """Characters that Unicode keeps for a program's own use are text, too, and stay as they are."""
    text = "".join(map(chr, range(0xFDD0, 0xFDF0)))
    with writing_to(screen):
        output.write(text)
    assert screen.getvalue() == f"{text}\n"


@given(TEXTS, st.integers(2, 80))
def test_a_brief_text_fits_its_columns_and_one_line(text: str, cells: int) -> None:
    """Whatever the text holds, wide characters and escapes too, it takes one line of the width that is given."""
    line = brief(text, cells)
    assert cell_len(line) <= cells
    assert not [c for c in line if ord(c) < 32 or 127 <= ord(c) < 160]


@given(TEXTS, st.integers(10, 10**7), TEXTS, st.integers(2, 80))
def test_an_address_in_a_brief_text_is_whole_or_left_out(before: str, version: int, behind: str, cells: int) -> None:
    """The beginning of an address would be the address of another block."""
    line = brief(f"{before.replace('@', '')} @{version} {behind.replace('@', '')}", cells)
    assert "@" not in line or f"@{version}" in line


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

    def painted(where: io.StringIO, **environment: str) -> str:
        with writing_to(where, **environment):
            output.write(output.paint("a", "green"))
        return where.getvalue()

    assert painted(Terminal()) == "\x1b[32ma\x1b[0m\n"
    assert painted(Terminal(), NO_COLOR="1") == painted(Terminal(), TERM="dumb") == painted(io.StringIO()) == "a\n"


def test_a_text_cannot_steer_the_terminal() -> None:
    """Control characters are shown as pictures, into a pipe too, which may lead to a terminal."""
    hostile = "a\x1b[2Jb\x07\x9b\u202e\tc"
    for where in (Terminal(), io.StringIO()):
        with writing_to(where):
            output.write(hostile)
            output.write(output.paint(hostile))
        assert where.getvalue() == "a␛[2Jb␇\ufffd\ufffd\tc\n" * 2


@given(st.text(), st.sampled_from([None, 2]))
def test_json_keeps_every_character_and_writes_no_control_character(text: str, indent: int | None) -> None:
    """A control character is escaped, so that the reader of the JSON gets it and a terminal does not."""
    written = output.to_json({"text": text}, indent=indent)
    assert json.loads(written) == {"text": text}
    assert show_controls(written) == written


ROWS = [("13.83", "7.5%", "-5", "gap 10"), ("-", "11.3%", "+1,204", "-")]
HEADERS = ("dollars", "share", "change", "why")


def test_a_table_in_a_pipe_is_whole_cells_between_tabs() -> None:
    """`cut` and `awk` find the columns, and nothing is cut, however long it is."""
    pipe = io.StringIO()
    with writing_to(pipe):
        output.table(HEADERS, [*ROWS, ("1", "2", "3", "word\t" * 300)])
    assert pipe.getvalue().splitlines() == [
        "dollars\tshare\tchange\twhy",
        "13.83\t7.5%\t-5\tgap 10",
        "-\t11.3%\t+1,204\t-",
        "1\t2\t3\t" + " ".join(["word"] * 300),
    ]


def test_the_numbers_of_a_table_are_aligned_on_a_terminal() -> None:
    """To the right: decimals, shares and signs too, and a dash where there is none; words to the left."""
    screen = Terminal()
    with writing_to(screen, NO_COLOR="1"):
        output.table(HEADERS, ROWS)
    assert screen.getvalue().splitlines() == [
        "dollars  share  change  why",
        "  13.83   7.5%      -5  gap 10",
        "      -  11.3%  +1,204  -",
    ]


@given(st.lists(st.lists(TEXTS | st.integers(0, 10**9), min_size=9, max_size=9), min_size=1, max_size=4))
def test_a_table_is_never_wider_than_the_terminal(rows: list[list[object]]) -> None:
    """Words are folded; columns that do not fit follow in a further table, with the first column in front."""
    screen = Terminal()
    with writing_to(screen, NO_COLOR="1"):
        output.table([f"heading {n}" for n in range(9)], rows)
    assert max(map(cell_len, screen.getvalue().splitlines())) <= 60


def test_a_cell_of_a_terminals_table_is_folded_without_loss() -> None:
    """An id that is longer than its column can still be read off."""
    screen = Terminal()
    with writing_to(screen, NO_COLOR="1"):
        output.table(("id", "title"), [("0123456789" * 5, "a title of some length")])
    lines = screen.getvalue().splitlines()[1:]
    assert "".join(line.split(" ")[0] for line in lines) == "0123456789" * 5


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


def test_work_of_unknown_length_shows_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure rewrites a file of gigabytes in one step, and a silent command is taken for one that hangs."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with output.working("erasing"):
        pass
    assert "erasing" in screen.getvalue()
