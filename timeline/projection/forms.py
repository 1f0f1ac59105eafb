"""Forms: how each kind of block looks to the model. One neutral entry a live item that is shown, save for summaries.

What decides is recorded in the log (replacements, summary texts); nothing here is re-derived with a later version's
taste except through a new projection number (design, invariant 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.blocks import Attachment, Note, RangeSummary, Reasoning, StageDigest, ToolCall, ToolResult, UserPrompt
from timeline.policy.steps import FORM_KEY, SummaryForm
from timeline.wire.neutral import Entry

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.window import Item
    from timeline.wire.neutral import Role

_BY_AUTHOR: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_BY_TYPE: dict[str, Role] = {
    "react.tool.result": "tool",
    "conv.range.summary": "user",
    "note": "user",
    "stage.digest": "user",
    "turn.header": "user",
}


_SENT_DATA = (Reasoning, ToolResult, UserPrompt, Attachment)
"""Blocks whose content parts are sent; of all others only the text is, and the data stays in the log."""


def role_of(block: Block) -> Role:
    """Say whose text a block is to be; other agents and tools speak as the user, labelled by their text."""
    return _BY_TYPE.get(block.type) or _BY_AUTHOR.get(block.author, "user")


def entries_of(item: Item, *, loose: bool, rewritten: bool = False, in_loop: bool = False) -> tuple[Entry, ...]:
    """Make the entries of an item: one, none for one that shows nothing, or a summary's with what is said around it.

    Args:
        item: a live item.
        loose: for a result: its call is not shown.
        rewritten: for reasoning: the prefix before it was rewritten since it was made.
        in_loop: for such reasoning: it is part of what was the assistant's newest turn then.
    """
    block = item.block
    stand_in = item.replacement
    says = bool(block.countable()) or (block.data is not None and isinstance(block, _SENT_DATA))
    if item.omitted or (stand_in is None and not says and not isinstance(block, ToolCall | ToolResult)):
        return ()
    entry = _entry(item, loose=loose, rewritten=rewritten, in_loop=in_loop)
    form = block.meta.get(FORM_KEY) if isinstance(block, RangeSummary) else None
    return (entry,) if not isinstance(form, dict) else _told(entry, SummaryForm.model_validate(form))


def _told(summary: Entry, form: SummaryForm) -> tuple[Entry, ...]:
    """Tell a summary in the form that was recorded with it; it is never part of a response that follows it."""
    own = {"response_id": summary.path}
    question = summary.model_copy(update={"role": "user", "text": form.question, **own})
    answer = summary.model_copy(update={"role": "assistant", "text": form.answer, **own})
    said = (question, summary.model_copy(update={"role": form.role, **own}), answer)
    return tuple(entry for entry in said if entry.text)


def _entry(item: Item, *, loose: bool, rewritten: bool, in_loop: bool) -> Entry:
    block, stand_in = item.block, item.replacement
    fields: dict[str, Any] = {
        "path": block.path,
        "type": block.type,
        "role": role_of(block),
        "text": block.text if stand_in is None else stand_in.text,
        "data": block.data if stand_in is None and isinstance(block, _SENT_DATA) else None,
        "mime": block.mime,
        "response_id": block.response_id,
        "group": item.response,
        "rewritten": rewritten,
        "in_loop": in_loop,
    }
    if isinstance(block, Note | StageDigest) and stand_in is None:
        fields["text"] = block.countable()
    elif isinstance(block, ToolCall):
        arguments = block.arguments if stand_in is None else stand_in.arguments or {}
        fields |= {"name": block.name, "call_id": block.call_id, "arguments": arguments}
    elif isinstance(block, ToolResult):
        fields |= {"name": block.name, "call_id": block.call_id, "is_error": block.is_error, "loose": loose}
    return Entry(**fields)
