"""A window in a notebook: the inspector's page in a frame, and without the inspector a small table.

The inspector imports all of the core. So this module only names the inspector's, and imports it when a notebook asks.
"""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Final

from timeline.display.controls import show_controls
from timeline.errors import MissingExtra
from timeline.events.addresses import Address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item, Window

_MOST_BLOCKS: Final = 20
_LONGEST: Final = 120
"""The most characters of a path, or of a block's text."""


_FRAMES: Final = "timeline.inspector.notebook"


def notebook_html(
    kind: str, window: Window, facts: Sequence[str], *, limit: int | None = None, total: int | None = None
) -> str:
    """Return the HTML that a notebook shows for a window: the inspector's page, or a table where it is not installed.

    Args:
        kind: the name of the value that is shown.
        window: the window.
        facts: what else the table says about the value.
        limit: of the context, in tokens.
        total: tokens of the whole request; None where there is none.
    """
    try:
        frames = import_module(_FRAMES)
    except (MissingExtra, ModuleNotFoundError):
        return window_html(kind, window, facts)
    return str(frames.framed(window, limit=limit, total=total))


def window_html(kind: str, window: Window, facts: Sequence[str]) -> str:
    """Return a table of a window's newest blocks under a line of facts. It holds no script, and all text is escaped.

    Args:
        kind: the name of the value that is shown.
        window: the window.
        facts: what else is said about the value.
    """
    shown = window.items[-_MOST_BLOCKS:]
    left = len(window.items) - len(shown)
    heading = " · ".join([window.conversation, f"version {window.version}", *facts])
    rows = [_row(item) for item in shown]
    if left:
        rows.insert(0, f'<tr><td colspan="5">… {left:,} earlier blocks</td></tr>')
    return (
        f"<div><strong>{escape(kind)}</strong> {_text(heading)}"
        "<table><thead><tr><th>address</th><th>state</th><th>tokens</th><th>path</th><th>text</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(item: Item) -> str:
    replacement = item.replacement
    text = item.block.text if replacement is None else replacement.text or ""
    address = str(Address(item.version))
    cells = (address, item.state, f"{item.shown_tokens:,}", item.block.path, text)
    return f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"


def _text(text: str) -> str:
    line = " ".join(text[: 4 * _LONGEST].split())
    short = line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
    return escape(show_controls(short))
