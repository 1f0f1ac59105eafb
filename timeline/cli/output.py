"""Write JSON, tables, colours and progress to a terminal or into a pipe.

Everything for people goes through `send` or `note`, which take the effect from control characters: the
content of a conversation cannot move the cursor or colour the screen. JSON keeps them, escaped. Colours and progress
are for terminals only; a pipe receives plain text in whole lines, uncut.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, Self

import typer
from rich.cells import cell_len

from timeline.cli.exits import PipeClosed
from timeline.display.brief import brief
from timeline.display.controls import escape_controls, show_controls
from timeline.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

_FIGURE: Final = re.compile(r"[+-]?[0-9][0-9,]*(\.[0-9]+)?%?")
"""A cell of a table that is a number."""
_GAP: Final = 2
"""Columns between the columns of a table."""
_LEAST: Final = 20
"""A column of words is folded to no fewer columns than these on a terminal."""
STATE_COLOURS: Final = {
    "visible": typer.colors.GREEN,
    "carried": typer.colors.CYAN,
    "abridged": typer.colors.BRIGHT_GREEN,
    "hidden": typer.colors.YELLOW,
    "omitted": typer.colors.YELLOW,
    "covered": typer.colors.BRIGHT_BLACK,
    "redacted": typer.colors.RED,
    "deleted": typer.colors.RED,
    "point": typer.colors.MAGENTA,
}

DIFFERENT: Final = typer.colors.YELLOW
"""The colour of differences in a table that compares two policies."""

# `paint` marks a style with a lone surrogate, which no stored text has, and `send` writes the terminal's code for it:
# so every other escape in the output came from a conversation, and loses its effect.
_PLAIN, _BOLD, _DIM = "\ud800", "\ud801", "\ud802"
_COLOURS: Final = {name: chr(0xD803 + number) for number, name in enumerate(sorted({*STATE_COLOURS.values()}))}
_CODES: Final = {
    ord(_PLAIN): "\x1b[0m",
    ord(_BOLD): typer.style("", bold=True, reset=False),
    ord(_DIM): typer.style("", dim=True, reset=False),
    **{ord(mark): typer.style("", fg=name, reset=False) for name, mark in _COLOURS.items()},
}
_NO_CODES: Final = dict.fromkeys(range(0xD800, 0xD820), "")


def write(text: str = "") -> None:
    """Write a line (or several) to standard output.

    Raises:
        PipeClosed: nobody reads it any more.
    """
    send(text + "\n")


def say(text: str, *, hang: int | None = None) -> None:
    """Write a sentence, folded between words on a terminal.

    Args:
        text: the sentence, which may be painted.
        hang: columns in front of the further lines; as many as the sentence begins with, unless given.
    """
    indent = " " * (len(text) - len(text.lstrip()) if hang is None else hang)
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line.strip() else line + (word or " ")
        if line.strip() and cell_len(longer.translate(_NO_CODES).rstrip()) > width():
            write(line.rstrip())
            longer = indent + word
        line = longer
    write(line)


def send(text: str) -> None:
    """Write a text to standard output, its control characters visible and its styles as the terminal's codes.

    Raises:
        PipeClosed: nobody reads it any more.
    """
    send_escaped(show_controls(text).translate(_CODES if coloured() else _NO_CODES))


def send_escaped(text: str) -> None:
    """Write a text for machines, such as JSON, whose control characters are escaped already.

    Raises:
        PipeClosed: nobody reads it any more.
    """
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise PipeClosed from None


def flush() -> None:
    """Flush standard output.

    Raises:
        PipeClosed: nobody reads it any more.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise PipeClosed from None


def note(text: str) -> None:
    """Write a line to standard error, as errors are written: without the password of a URL that was no file."""
    from timeline.store.addresses import without_passwords_in  # noqa: PLC0415 - `timeline --help` stays quick

    flush()
    print(show_controls(f"timeline: {without_passwords_in(text)}"), file=sys.stderr, flush=True)  # noqa: T201 - this is the command line


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON, with non-ASCII characters as they are and control characters escaped."""
    return escape_controls(json.dumps(value, ensure_ascii=False, indent=indent))


def write_json(value: Any) -> None:
    """Write one JSON object."""
    send_escaped(to_json(value, indent=2) + "\n")


def send_exactly(text: str) -> None:
    """Write a text whose bytes are to be hashed: as it is into a pipe or a file, without a newline behind it.

    A terminal gets it as a line of its own, its control characters visible.
    """
    if on_terminal():
        write(text)
    else:
        send_escaped(text)


class JsonList:
    """Write a JSON list row by row, one a line.

    An error leaves the list open, so that a reader does not take a part for the whole.
    """

    def __init__(self) -> None:
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def add(self, row: Any) -> None:
        """Write the next row, a frozen one as its fields."""
        value = row.model_dump(mode="json") if isinstance(row, Frozen) else row
        send_escaped((",\n" if self._rows else "[\n") + to_json(value))
        self._rows += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            send_escaped("\n]\n" if self._rows else "[]\n")


async def write_rows(rows: AsyncIterator[Any]) -> None:
    """Write a JSON list as its rows come."""
    with JsonList() as written:
        async for row in rows:
            written.add(row)


def on_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def coloured() -> bool:
    """Return whether to colour the output (https://no-color.org)."""
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str | None = None, *, bold: bool = False, dim: bool = False) -> str:
    """Mark a text with a style; `send` writes the style on a terminal, and the text alone elsewhere."""
    marks = f"{_COLOURS[colour] if colour else ''}{_BOLD if bold else ''}{_DIM if dim else ''}"
    return f"{marks}{text}{_PLAIN}" if marks and text else text


def state_colour(state: str | None) -> str | None:
    """Return the colour of a state."""
    return STATE_COLOURS.get(state or "")


def width() -> int:
    """Return how many columns a line may have: the terminal's, or 10,000 in a pipe, so that nothing is cut."""
    return max(shutil.get_terminal_size().columns, 40) if on_terminal() else 10_000


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """Pad a text with spaces to a width; with ``right`` the text is aligned to the right."""
    fill = " " * max(cells - cell_len(text), 0)
    return fill + text if right else text + fill


def table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, colours: Sequence[str | None] = (), keys: int = 1
) -> None:
    """Write a table: as wide as the terminal, or into a pipe as whole cells between tabs.

    On a terminal, words are folded inside their column. Columns that do not fit beside each other follow in further
    tables, each with the key columns in front.

    Args:
        headers: one a column.
        rows: the cells.
        colours: one a row, or none at all.
        keys: how many of the first columns say what a row is about.
    """
    cells = [[_cell(cell) for cell in row] for row in rows]
    if not on_terminal():
        for row in (headers, *cells):
            write("\t".join(row).rstrip())
        return
    for number, part in enumerate(_parts(headers, cells, keys)):
        if number:
            write()
        for line in _drawn([headers[i] for i in part], [[row[i] for i in part] for row in cells], colours):
            write(line)


def _parts(headers: Sequence[str], cells: Sequence[Sequence[str]], keys: int) -> Iterator[list[int]]:
    """Yield the columns of each table that fits the terminal, the key columns in all of them."""
    least = [_least(header, [row[i] for row in cells]) + _GAP for i, header in enumerate(headers)]
    part, used = [*range(keys)], sum(least[:keys])
    for i in range(keys, len(headers)):
        if used + least[i] - _GAP > width() and len(part) > keys:
            yield part
            part, used = [*range(keys)], sum(least[:keys])
        part.append(i)
        used += least[i]
    yield part


def _least(header: str, cells: Sequence[str]) -> int:
    """Return the fewest columns that a column of a table needs."""
    widest = max(map(cell_len, cells), default=0)
    return max(widest if _are_figures(cells) else min(widest, _LEAST), *map(cell_len, header.split() or [""]))


def _drawn(headers: Sequence[str], cells: Sequence[Sequence[str]], colours: Sequence[str | None]) -> Iterator[str]:
    """Yield the lines of a table on a terminal."""
    from rich.console import Console  # noqa: PLC0415 - only terminals pay for it
    from rich.table import Table  # noqa: PLC0415 - the same
    from rich.text import Text  # noqa: PLC0415 - the same

    grid = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    for i, header in enumerate(headers):
        column = [row[i] for row in cells]
        figures = _are_figures(column)
        folded = "\n".join(wrap(header, _least(header, column))) if figures else header
        grid.add_column(Text(folded), justify="right" if figures else "left", no_wrap=figures, overflow="fold")
    for number, row in enumerate(cells):
        grid.add_row(*(Text(brief(cell, 2 * width())) for cell in row), style=colours[number] if colours else None)
    console = Console(width=width(), color_system=None)
    for line in console.render_lines(grid, pad=False):
        styled = [(segment.text, segment.style) for segment in line]
        while styled and not styled[-1][0].strip():
            styled.pop()
        styled[-1:] = [(text.rstrip(), style) for text, style in styled[-1:]]
        yield "".join(
            paint(text, style.color.name if style and style.color else None, dim=bool(style and style.dim))
            for text, style in styled
        )


def _are_figures(cells: Sequence[str]) -> bool:
    """Return whether all cells of a column are numbers, except for empty ones and dashes."""
    filled = [cell for cell in cells if cell not in {"", "-"}]
    return bool(filled) and all(_FIGURE.fullmatch(cell) for cell in filled)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return show_controls(" ".join(str(value).split()))


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error if it is a terminal; call the yielded function with the amount done.

    The bar, and the thread that draws it, begin with the first call: what is to be forked is forked before.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - only terminals pay for it
    from rich.markup import escape  # noqa: PLC0415 - the same
    from rich.progress import Progress  # noqa: PLC0415 - the same

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(escape(show_controls(label)), total=total)

    def advance(done: int) -> None:
        bar.start()
        bar.update(task, completed=done)

    try:
        yield advance
    finally:
        bar.stop()


@contextmanager
def working(label: str) -> Iterator[None]:
    """Show on standard error, if it is a terminal, that work goes on of which nobody knows how long it takes."""
    with progress(label) as advance:
        advance(0)
        yield
