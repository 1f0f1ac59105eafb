"""A window as a small HTML table, for notebooks: the newest blocks with address, state, tokens, path and beginning."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from timeline.display.controls import show_controls
from timeline.events.addresses import Address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item, Window

_MOST_BLOCKS: Final = 20
_LONGEST: Final = 120
"""The most characters of a path, or of a block's text."""


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
