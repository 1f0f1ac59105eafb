"""Cut a text to the beginning of its words, on one line, for a row of a list."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from timeline.display.controls import show_controls


def brief(text: str, cells: int) -> str:
    """Return the beginning of a text on one line, at most ``cells`` columns wide."""
    line = show_controls(" ".join(text[: cells * 4].split()))
    if cell_len(line) <= cells and len(text) <= cells * 4:
        return line
    return set_cell_size(line, max(cells - 1, 0)).rstrip() + "…"
