"""What a page carries of a window alone: the live blocks of one version, without the log that led there.

A notebook asks a value for its HTML and waits for nothing, so that no store can be asked: a timeline has its window at
hand, and so has a context.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from timeline.answers.about import text_of
from timeline.blocks import ToolCall, ToolResult, instant_text
from timeline.events.addresses import Address
from timeline.inspector.blocks import MOST_TEXT, fields_of
from timeline.inspector.compactions import compaction_card, compaction_row
from timeline.inspector.kinds import by_role
from timeline.inspector.onefile.collecting import Carried
from timeline.inspector.shapes import Compactions, Conversation, ConversationRow, Counted, LogRow, State
from timeline.lab.prices import read_prices

if TYPE_CHECKING:
    from timeline.events import CompactionCompleted
    from timeline.fold.window import Item, Window
    from timeline.inspector.shapes import CompactionRow

MOST_ROWS: Final = 300
MOST_CHARACTERS: Final = 300_000
"""Of all texts together; a notebook keeps every output in its file."""
_MOST_CHARACTERS_EACH: Final = 16_384
_ELSEWHERE: Final = "`timeline.inspector.notebook.show(store, id)` has them"


def carried_window(window: Window, *, limit: int | None, total: int | None) -> Carried:
    """Return what a page carries of a window.

    Args:
        window: the window.
        limit: of the context, where one is known.
        total: tokens of the whole request; those of the window unless given.
    """
    shown = window.items[-MOST_ROWS:]
    carried = Carried(window.conversation, window.version, moment=True)
    carried.rows = [_row(item).model_dump(mode="json") for item in shown]
    carried.texts = _texts(window.conversation, shown)
    left = len(window.items) - len(shown)
    carried.left_out = [
        *([f"The {left:,} earlier blocks of the window: only the newest {len(shown):,} are here."] if left else []),
        *(["The ends of long texts."] if any(text["left_out"].get("text") for text in carried.texts if text) else []),
        f"What is no longer in the window, earlier versions, model calls and their requests: {_ELSEWHERE}.",
    ]
    carried.answers = {path: answer.model_dump(mode="json") for path, answer in _answers(window, limit).items()}
    carried.answers["state"]["fixed"] = 0 if total is None else max(0, total - window.tokens)
    row = carried.answers[""]["conversation"]
    row |= {"tokens": total or window.tokens, "fill": None if not limit else (total or window.tokens) / limit}
    carried.answers["chart"] = {"points": [], "marks": [], "next_after": None}
    carried.answers["conversations"] = {"conversations": [row], "total": 1, "next_cursor": None}
    return carried


def _row(item: Item) -> LogRow:
    block, text = item.block, _shown_text(item)
    return LogRow(
        version=item.version,
        at=_time(item),
        checksum="",
        type=block.type,
        path=block.path,
        address=str(Address(item.version)),
        state=item.state,
        role=block.author,
        turn_id=block.turn_id,
        response_id=block.response_id,
        call_id=block.call_id,
        tool=block.name if isinstance(block, ToolCall | ToolResult) else None,
        failed=isinstance(block, ToolResult) and block.failed,
        tokens=item.tokens,
        shown_tokens=item.shown_tokens,
        text=text[:MOST_TEXT],
        left_out=max(0, len(text) - MOST_TEXT),
    )


def _shown_text(item: Item) -> str:
    return "" if item.redacted else text_of(item.block)


def _time(item: Item) -> str:
    return "" if item.block.at is None else instant_text(item.block.at)


def _texts(conversation: str, items: Any) -> list[dict[str, Any] | None]:
    """Return the blocks with their texts, the newest first for as long as there is room."""
    room = MOST_CHARACTERS
    found: list[dict[str, Any] | None] = []
    for item in reversed(items):
        text = _shown_text(item)
        kept = text[: min(_MOST_CHARACTERS_EACH, max(0, room))]
        room -= len(kept)
        fields, left_out = ({}, {}) if item.redacted else fields_of(item.block)
        cut = {"text": len(text) - len(kept)} if len(kept) < len(text) else {}
        found.append(
            {
                "conversation": conversation,
                "version": item.version,
                "at": _time(item),
                "checksum": "",
                "address": str(Address(item.version)),
                "path": item.block.path,
                "type": item.block.type,
                "text": kept,
                "block": fields,
                "left_out": left_out | cut,
            }
        )
    return found[::-1]


def _answers(window: Window, limit: int | None) -> dict[str, Any]:
    rows, state = _compactions(window), window.state
    times = [_time(item) for item in window.items if item.block.at is not None] or [""]
    return {
        "": Conversation(
            conversation=ConversationRow(
                id=window.conversation,
                title="",
                parent=None,
                base=0,
                version=window.version,
                first_version=1,
                window_start=window.window_start,
                created_at=times[0],
                updated_at=times[-1],
                policy=None,
                turns=None,
                calls=state.calls,
                tokens=None,
                limit=limit,
                fill=None,
                compactions=state.compactions,
                last_compaction_at=rows[-1].at if rows else None,
                cost=None,
            ),
            policy=None,
            model=state.model,
            remarks=(),
            newest_call=None,
            newest_call_cost=None,
            newest_compaction=rows[-1] if rows else None,
        ),
        "compactions": Compactions(conversation=window.conversation, compactions=tuple(rows), failures=()),
        "state": _state(window, times[-1], limit),
    } | {
        f"compactions/{item.version}": compaction_card(window.conversation, item.version, made, rows)
        for item, made in _summaries(window)
    }


def _compactions(window: Window) -> list[CompactionRow]:
    """Return the compactions whose summaries are live, oldest first."""
    prices = read_prices()
    return [compaction_row(item.version, _time(item), made, {}, prices) for item, made in _summaries(window)]


def _summaries(window: Window) -> list[tuple[Item, CompactionCompleted]]:
    at = {item.block.path: item for item in window.items if item.is_summary}
    found = [(at[made.block.path], made) for made in window.summaries if made.block.path in at]
    return sorted(found, key=lambda one: one[0].version)


def _state(window: Window, at: str, limit: int | None) -> State:
    blocks, tokens = Counter[str](), Counter[str]()
    for item in window.items:
        blocks[item.state] += 1
        tokens[item.state] += item.tokens
    for made in window.summaries:
        blocks["covered"] += made.covered_blocks
        tokens["covered"] += made.covered_tokens
    return State(
        conversation=window.conversation,
        at_version=window.version,
        version=window.version,
        at=at,
        tokens=window.tokens,
        by_role=by_role(window.items),
        ratio=1.0,  # the window is counted in one unit already, that of its context
        states={name: Counted(blocks=count, tokens=tokens[name]) for name, count in blocks.items()},
        window_start=window.window_start,
        turn_id=window.turn_id,
        calls=window.state.calls,
        compactions=window.state.compactions,
        limit=limit,
        trigger=None,
        target=None,
        context=None,
        summary_address=None,
        open_calls=(),
        held=bool(window.state.hold),
    )
