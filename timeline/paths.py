"""Paths: the address of every block, unique in its conversation, for ever.

``.`` and ``:`` separate the parts of a path, so they are percent-encoded inside ids, as are ``%``, ``~`` (it numbers
repeated call ids), white space and control characters. What is not here: the choice among several blocks that would
have the same path; the fold's counters make that (`numbered`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from timeline.blocks import AssistantCompletion, Attachment, RangeSummary, ToolCall, ToolResult, UserPrompt

if TYPE_CHECKING:
    from timeline.blocks import Block

_FAMILIES: Final[dict[type[Block], str]] = {UserPrompt: "ar", AssistantCompletion: "ar", RangeSummary: "su"}
_RESERVED: Final = re.compile(r"[.:%~\s\x00-\x1f\x7f]")


def quote_id(id_: str) -> str:
    """Make an id fit to stand inside a path."""
    if _RESERVED.search(id_) is None:
        return id_
    return _RESERVED.sub(lambda m: "".join(f"%{byte:02X}" for byte in m.group().encode()), id_)


def unquote_id(part: str) -> str:
    """Give back the id that `quote_id` was given."""
    return unquote(part)


def stem(block: Block, turn_id: str | None = None) -> str:
    """Return the path of a block as if it were the first of its kind in its turn, or in the turn that is given.

    Calls and results carry their call id; everything else is told apart by a number (see `numbered`).
    """
    turn = quote_id(block.turn_id if turn_id is None else turn_id)
    kind = type(block)  # not isinstance: on pydantic classes it costs more than the rest of this
    if kind is ToolCall or kind is ToolResult:
        return f"tc:{turn}.{quote_id(str(block.call_id))}.{'call' if kind is ToolCall else 'result'}"
    if kind is Attachment:
        return f"fi:{turn}.{quote_id(str(block.meta.get('file') or 'attachment'))}"
    return f"{_FAMILIES.get(kind, 'bl')}:{turn}.{block.type}"


def numbered(stem_: str, n: int) -> str:
    """Return the n-th path of a stem: ``….2`` in general, ``…call~2.call`` for a repeated call id."""
    if n == 1:
        return stem_
    if stem_.startswith("tc:"):
        head, _, kind = stem_.rpartition(".")
        return f"{head}~{n}.{kind}"
    return f"{stem_}.{n}"
