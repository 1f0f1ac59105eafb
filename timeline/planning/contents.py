"""Which blocks hold the newest full content of a file: what an agent goes back to most (policy evidence, finding 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import Attachment, ToolCall, ToolResult
from timeline.planning.tools import tool_use

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item

WHOLE_KEYS: Final = ("content", "contents", "file_text", "text", "new_source")
"""Where a call that writes a whole file has its text."""
_PART_KEYS: Final = ("offset", "limit", "view_range", "start_line", "end_line", "line_start", "line_end", "pages")
"""Arguments that name a part of a file; each part that was read counts as a file of its own."""


def newest_contents(items: Sequence[Item]) -> set[int]:
    """Return the versions of the blocks that hold the newest content of a file, or of a part of it.

    That is the result of a call that read it, the call that wrote all of it, or the attachment that brought it. Edits
    hold no content, and neither do calls that failed: what they would have written is not in the file.
    """
    results = {item.answers: item for item in items if item.answers is not None}
    newest = dict(found for item in items for found in _contents(item, results.get(item.version)))
    return set(newest.values())


def _contents(item: Item, result: Item | None) -> list[tuple[str, int]]:
    block = item.block
    if type(block) is Attachment:
        return [(str(block.meta.get("file") or block.path), item.version)]
    if type(block) is not ToolCall or not isinstance(block.arguments, dict):
        return []
    arguments = block.arguments
    use = tool_use(block)
    answer = None if result is None else result.block
    if use is None or (isinstance(answer, ToolResult) and answer.is_error):
        return []
    if use.kind == "write" and any(isinstance(arguments.get(key), str) for key in WHOLE_KEYS):
        return [(file, item.version) for file in use.subjects]
    if use.kind == "read" and result is not None:
        part = "".join(f"\n{key}={arguments[key]}" for key in _PART_KEYS if arguments.get(key) is not None)
        return [(file + part, result.version) for file in use.subjects]
    return []
