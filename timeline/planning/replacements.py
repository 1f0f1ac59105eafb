"""Replacements: the short text (or arguments object) that stands for a hidden block, and ends with its path.

Made once, when the hide is decided, and recorded with it; never made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import Attachment, Reasoning, ToolCall, ToolResult, image_count
from timeline.events import Replacement
from timeline.frozen import canonical_json
from timeline.planning.tools import tool_use

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.window import Item
    from timeline.ports import TokenCounter

_SMALL_VALUE: Final = 12
"""Tokens of an argument that stays as it is."""


def replacement_of(item: Item, call: Block | None, most: int, counter: TokenCounter) -> Replacement:
    """Make the replacement of a block, of at most ``most`` tokens where its path leaves that room.

    Args:
        item: the block.
        call: the call that it answers, when it is a result.
        most: cap in tokens.
        counter: counts them.
    """
    block = item.block
    if type(block) is ToolCall:
        arguments = _brief_arguments(block, item.tokens, most, counter)
        tokens = counter.count(f"{block.name}{canonical_json(arguments)}")
        return Replacement(version=item.version, arguments=arguments, tokens=tokens)
    if type(block) is Reasoning:  # a thought is of no use to the model when its round is long over
        return Replacement(version=item.version)
    if type(block) is ToolResult:
        text = _result_line(block, call, item.tokens, most, counter)
    elif type(block) is Attachment:
        what = f"{image_count(block)} pictures" if image_count(block) else block.mime
        text = f"[{block.meta.get('file') or 'attachment'}, {what}, {item.tokens} tokens, hidden: {block.path}]"
    else:
        text = _shortened(block, item.tokens, most, counter)
    return Replacement(version=item.version, text=text, tokens=counter.count(text))


def _result_line(result: ToolResult, call: Block | None, tokens: int, most: int, counter: TokenCounter) -> str:
    """Say what a result was: its tool, what was asked in brief, its size and how it ended."""
    name = result.name or (call.name if isinstance(call, ToolCall) else "") or "tool"
    pictures = image_count(result)
    size = f"{tokens} tokens" + (f" with {pictures} pictures" if pictures else "")
    frame = f"[{name}(): {size}, {_status(result)}, hidden: {result.path}]"
    asked = _asked(call) if isinstance(call, ToolCall) else ""
    brief = counter.truncate(asked, max(0, most - counter.count(frame)))
    return frame.replace("()", f"({brief})", 1)


def _status(result: ToolResult) -> str:
    if result.exit_status is not None:
        return f"exit {result.exit_status}"
    return "error" if result.is_error else "ok"


def _asked(call: ToolCall) -> str:
    """Say in brief what a call asked for, on one line: the file, command or query, else its arguments."""
    use = tool_use(call)
    if use is not None:
        return " ".join(use.subjects[0].split())
    text = call.arguments if isinstance(call.arguments, str) else canonical_json(call.arguments)
    return " ".join(text.split())


def _brief_arguments(call: ToolCall, tokens: int, most: int, counter: TokenCounter) -> dict[str, Any]:
    """Keep the small arguments, and say of the others where they are: a valid object, whatever was in it."""
    note = f"[{tokens} tokens, hidden: {call.path}]"
    if isinstance(call.arguments, str):
        return {"_hidden": note}
    brief: dict[str, Any] = {}
    noted = False
    for key, value in call.arguments.items():
        text = value if isinstance(value, str) else canonical_json(value)
        if len(text) <= 4 * _SMALL_VALUE and counter.count(text) <= _SMALL_VALUE:
            brief[key] = value
        elif not noted:
            brief[key], noted = note, True
        else:
            brief[key] = "[hidden]"
    if not noted:
        brief["_hidden"] = note
    if counter.count(f"{call.name}{canonical_json(brief)}") <= most:
        return brief
    first = next(iter(brief))
    return {first: brief[first], "_hidden": note} if brief[first] != note else {"_hidden": note}


def _shortened(block: Block, tokens: int, most: int, counter: TokenCounter) -> str:
    """Keep the beginning of a text, and say where the rest is."""
    pictures = image_count(block)
    what = f"{pictures} pictures, " if pictures else ""
    frame = f" [… shortened, {what}{tokens} tokens: {block.path}]"
    return counter.truncate(block.text, max(0, most - counter.count(frame))) + frame
