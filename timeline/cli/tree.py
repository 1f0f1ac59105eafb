"""Drawing a tree beside columns: the columns stand on the left, the branches behind them.

On a terminal with lines, into a pipe by indentation alone.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from timeline.cli import output
from timeline.cli.output import brief, paint

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINES: Final = ("├ ", "└ ", "│ ", "  ")
_INDENTS: Final = ("  ", "  ", "  ", "  ")
_LEAST: Final = 12
"""Columns that a text needs at the least behind a head."""


@dataclass(slots=True)
class Node:
    """A line of a tree, and the lines below it.

    Attributes:
        columns: what stands on the left, always as wide, coloured already.
        head: what stands on the branch, never cut.
        about: what stands behind it, as far as the line reaches.
        mark: a sign behind the head, where something is special about it.
        style: of the head.
        children: below it.
    """

    columns: str
    head: str
    about: str = ""
    mark: str = ""
    style: Literal["plain", "bold", "dim"] = "plain"
    children: list[Node] = field(default_factory=list)


def drawn(node: Node, columns: int) -> Iterator[str]:
    """Draw a tree line by line; ``columns`` is how wide the left side is."""
    lined = output.on_terminal() and (sys.stdout.encoding or "").lower().startswith("utf")
    yield from _drawn(node, columns, _LINES if lined else _INDENTS, "", "")


def _drawn(node: Node, columns: int, signs: tuple[str, str, str, str], own: str, below: str) -> Iterator[str]:
    child, last, under_child, under_last = signs
    yield (node.columns + own + _text(node, output.width() - columns - len(own))).rstrip()
    for number, branch in enumerate(node.children, start=1):
        newest = number == len(node.children)
        stem, under = (last, under_last) if newest else (child, under_child)
        yield from _drawn(branch, columns, signs, below + stem, below + under)


def _text(node: Node, room: int) -> str:
    head = output.plain(node.head)
    text = paint(head, bold=node.style == "bold", dim=node.style == "dim") if head else ""
    if node.mark:
        text += paint(f"  {node.mark}", output.state_colour("point"))
    left = room - len(node.head) - 2 - (len(node.mark) + 2 if node.mark else 0)
    if not node.about or left < _LEAST:
        return text
    return text + "  " + paint(brief(node.about, left), dim=node.style != "bold")
