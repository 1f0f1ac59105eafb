"""Cut a text to the beginning of its words, on one line, for a row of a list."""

from __future__ import annotations

import re
from typing import Final

from rich.cells import cell_len, set_cell_size

from timeline.display.controls import show_controls

_ADDRESS_AT_END: Final = re.compile(r"@\d*$")


def brief(text: str, cells: int) -> str:
    """Return the beginning of a text on one line, at most ``cells`` columns wide.

    An address is never cut: its beginning would be that of another block.
    """
    line = show_controls(" ".join(text[: cells * 4].split()))
    if cell_len(line) <= cells and len(text) <= cells * 4:
        return line
    cut = set_cell_size(line, max(cells - 1, 0))
    if line[len(cut) : len(cut) + 1].isdigit():
        cut = _ADDRESS_AT_END.sub("", cut)
    return cut.rstrip() + "…"
