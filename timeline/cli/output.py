"""Write JSON, tables, colours and progress to a terminal or into a pipe.

Colours and progress are for terminals only; a pipe receives plain text in whole lines, uncut. The content of a
conversation cannot move the cursor or colour the screen: on a terminal its control characters are replaced by visible
ones.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self

import typer
from rich.cells import cell_len, set_cell_size

from timeline.cli.exits import PipeClosed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

_SHOWN: Final = {code: 0x2400 + code for code in range(32) if code not in {9, 10}} | {127: 0x2421}
_SHOWN_ALL: Final = _SHOWN | dict.fromkeys(range(128, 160), 0xFFFD)
"""Control characters and the visible characters that replace them; tabs and line ends stay."""

_FIGURE: Final = re.compile(r"[+-]?[0-9][0-9,]*(\.[0-9]+)?%?")
"""A cell of a table that is a number."""
STATE_COLOURS: Final = {
    "visible": typer.colors.GREEN,
    "carried": typer.colors.CYAN,
    "hidden": typer.colors.YELLOW,
    "omitted": typer.colors.YELLOW,
    "covered": typer.colors.BRIGHT_BLACK,
    "redacted": typer.colors.RED,
    "deleted": typer.colors.RED,
    "point": typer.colors.MAGENTA,
}

DIFFERENT: Final = typer.colors.YELLOW
"""The colour of differences in a table that compares two policies."""


def write(text: str = "") -> None:
    """Write a line (or several) to standard output.

    Raises:
        PipeClosed: nobody reads it any more.
    """
    send(text + "\n")


def send(text: str) -> None:
    """Write a text to standard output as it is.

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
    """Write a line to standard error, as errors are written."""
    flush()
    print(f"timeline: {text}", file=sys.stderr, flush=True)  # noqa: T201 - this is the command line


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON, with non-ASCII characters as they are."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def write_json(value: Any) -> None:
    """Write one JSON object."""
    write(to_json(value, indent=2))


class JsonList:
    """Write a JSON list row by row, one a line.

    An error leaves the list open, so that a reader does not take a part for the whole.
    """

    def __init__(self) -> None:
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def add(self, row: Any) -> None:
        """Write the next row."""
        send((",\n" if self._rows else "[\n") + to_json(row))
        self._rows += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            send("\n]\n" if self._rows else "[]\n")


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
    """Colour a text on a terminal; return it unchanged elsewhere."""
    if not (colour or bold or dim) or not coloured():
        return text
    return typer.style(text, fg=colour, bold=bold or None, dim=dim or None)


def state_colour(state: str | None) -> str | None:
    """Return the colour of a state."""
    return STATE_COLOURS.get(state or "")


def width() -> int:
    """Return how many columns a line may have: the terminal's, or 10,000 in a pipe, so that nothing is cut."""
    return max(shutil.get_terminal_size().columns, 40) if on_terminal() else 10_000


def plain(text: str) -> str:
    """Replace the control characters of a text by visible ones on a terminal; return it unchanged elsewhere."""
    return text.translate(_SHOWN_ALL) if on_terminal() else text


def brief(text: str, cells: int) -> str:
    """Return the beginning of a text on one line, at most ``cells`` columns wide."""
    line = " ".join(text[: cells * 4].split()).translate(_SHOWN_ALL)
    if cell_len(line) <= cells and len(text) <= cells * 4:
        return line
    return set_cell_size(line, max(cells - 1, 0)).rstrip() + "…"


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """Pad a text with spaces to a width; with ``right`` the text is aligned to the right."""
    fill = " " * max(cells - cell_len(text), 0)
    return fill + text if right else text + fill


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, colours: Sequence[str | None] = ()) -> None:
    """Write a table. Numbers are aligned to the right; on a terminal the last column is cut at the edge.

    Args:
        headers: one a column.
        rows: the cells.
        colours: one a row, or none at all.
    """
    cells = [["" if cell is None else _cell(cell) for cell in row] for row in (headers, *rows)]
    right = [_are_figures([line[column] for line in cells[1:]]) for column in range(len(headers))]
    widths = [max(cell_len(line[column]) for line in cells) for column in range(len(headers))]
    room = width() - sum(widths[:-1]) - 2 * (len(widths) - 1)
    for number, line in enumerate(cells):
        texts = [pad(text, widths[i], right=right[i]) for i, text in enumerate(line[:-1])]
        last = pad(line[-1], widths[-1], right=True) if right[-1] else line[-1]
        text = "  ".join([*texts, brief(last, max(room, 8)) if not right[-1] else last]).rstrip()
        colour = colours[number - 1] if number and colours else None
        write(paint(text, colour, dim=not number) if colour or not number else text)


def _are_figures(cells: Sequence[str]) -> bool:
    """Return whether all cells of a column are numbers, except for empty ones and dashes."""
    filled = [cell for cell in cells if cell not in {"", "-"}]
    return bool(filled) and all(_FIGURE.fullmatch(cell) for cell in filled)


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return " ".join(str(value).split()).translate(_SHOWN_ALL)


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error if it is a terminal; call the yielded function with the amount done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - only terminals pay for it
    from rich.progress import Progress  # noqa: PLC0415 - the same

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)
