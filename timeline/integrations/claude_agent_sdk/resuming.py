"""A session as the client writes one that it compacted itself, made of what a timeline's policy shows.

The client reads a session from its newest `compact_boundary` on. So a boundary is followed by the context as
`Timeline.render` makes it, a line for each part of a message, as the client writes its own: the summary is marked as
one, the rest are prompts, answers, calls and results, each with its replacement where it has one. The lines are new
ones, linked in a row under new ids: under their old ids the client would follow the links back past the boundary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.events import ABANDONED, ABRIDGED, BlocksHidden, CompactionCompleted
from timeline.fold.reported import REWRITES
from timeline.integrations.claude_agent_sdk.rows import row_id, uuid_of
from timeline.integrations.claude_agent_sdk.sessions import HANDED, THROUGH, is_handed
from timeline.integrations.claude_agent_sdk.standing_for import lines_through

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.events import Payload
    from timeline.fold.window import Item, Window
    from timeline.integrations.claude_agent_sdk.rows import Row
    from timeline.integrations.claude_agent_sdk.sessions import SessionLog
    from timeline.ports import EventStore
    from timeline.projection.context import RenderedContext

_COMMON: Final = ("sessionId", "cwd", "version", "gitBranch", "userType", "entrypoint", "slug")
_CALLS: Final = "tool_use"
_THEIRS: Final = ABRIDGED | {"imported", ABANDONED}
"""Reasons of hides that leave the client's own lines true: it left the block out itself, or all of it is in sight."""


async def resumed(store: EventStore, session: SessionLog, rows: Sequence[Row]) -> list[Row] | None:
    """Return the lines that a session is resumed from; None where its own lines say what its policy shows.

    A compaction that is due is made now, and the context is recorded: `timeline show` and `diff` know it.

    Raises:
        Gone: the conversation is not this transcript's any more.
    """
    timeline = await session.opened()
    context = await timeline.render()
    handed = max((row[HANDED]["version"] for row in rows if is_handed(row, timeline.id)), default=0)
    if await _has_changed(store, timeline.id, handed) if handed else not _is_whole(context.window):
        plain = context.neutral.model_copy(update={"cache_points": (), "ephemeral": ()})
        bare = context.model_copy(update={"neutral": plain})
        return _Writer(bare, rows, lines_through(bare, await session.lines(), session.newest_line)).lines()
    return None


async def _has_changed(store: EventStore, conversation: str, version: int) -> bool:
    """Return whether a decision behind a version changed what is shown, other than the client's own lines do."""
    decided = [event.payload async for event in store.read(conversation, after=version, types=REWRITES)]
    return any(not _is_theirs(payload) for payload in decided)


def _is_theirs(payload: Payload) -> bool:
    match payload:
        case CompactionCompleted(source=source):
            return source == "imported"
        case BlocksHidden(reason=reason):
            return reason in _THEIRS
    return False


def _is_whole(window: Window) -> bool:
    """Return whether a window that was never handed out is what the client has: its own summary, and all behind it."""
    ours = any(summary.source == "engine" for summary in window.summaries)
    return not ours and all(map(_is_as_it_came, window.items))


def _is_as_it_came(item: Item) -> bool:
    """Return whether no decision but the client's own changed how a block is shown, or showed it again."""
    return item.changed_at <= item.version if item.hide is None else item.hide.reason in _THEIRS


class _Writer:
    """Writes the lines of one context."""

    def __init__(self, context: RenderedContext, rows: Sequence[Row], through: Sequence[str]) -> None:
        message_rows = [row for row in rows if isinstance(row.get("message"), dict) and uuid_of(row)]
        last = message_rows[-1] if message_rows else {}
        self._context = context
        self._through = iter(["", *through])  # behind the boundary, where nothing is said yet, all is left
        self._version = context.recorded or context.version
        self._messages: list[dict[str, Any]] = context.to_anthropic()["messages"]
        self._summaries = {entry.text for entry in context.neutral.entries if entry.type == "conv.range.summary"}
        self._at = next((row["timestamp"] for row in reversed(rows) if isinstance(row.get("timestamp"), str)), "")
        self._logical_parent = uuid_of(last) or None
        self._common: Row = {key: last[key] for key in _COMMON if key in last}
        self._parent: str | None = None
        self._written: list[Row] = []

    def lines(self) -> list[Row]:
        """Return the boundary and all that follows it."""
        self._write(
            type="system",
            subtype="compact_boundary",
            content="Conversation compacted",
            isMeta=False,
            level="info",
            logicalParentUuid=self._logical_parent,
            compactMetadata={"trigger": "manual", "preTokens": self._before()},
        )
        for number, message in enumerate(self._messages):
            for part in _parts(message["content"]):
                if message["role"] == "assistant":
                    self._write(type="assistant", message=self._answer(part, number))
                else:
                    self._write(type="user", **self._summary_marks(part), message=_said(part))
        return self._written

    def _before(self) -> int:
        compaction = self._context.window.compaction
        return self._context.window.tokens if compaction is None else compaction.before_tokens

    def _write(self, **keys: Any) -> None:
        made = row_id(self._context.conversation, f"{HANDED} {self._version}.{len(self._written)}")
        links = {"parentUuid": self._parent, "isSidechain": False}
        mark = {"conversation": self._context.conversation, "version": self._version, THROUGH: next(self._through)}
        row = {**links, **self._common, **keys, "uuid": str(made), "timestamp": self._at, HANDED: mark}
        self._written.append(row)
        self._parent = row["uuid"]

    def _answer(self, part: dict[str, Any], number: int) -> dict[str, Any]:
        """Return an assistant's message of one part.

        The client takes the newest usage for the size of its context, and compacts by it: it is ours, not the one that
        the provider counted when the whole session was sent.
        """
        return {
            "id": f"msg_{self._version}_{number}",
            "type": "message",
            "role": "assistant",
            "model": self._context.neutral.model or "<synthetic>",
            "content": [part],
            "stop_reason": "tool_use" if part.get("type") == _CALLS else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": self._context.window.tokens, "output_tokens": 0},
        }

    def _summary_marks(self, part: dict[str, Any]) -> Row:
        is_summary = part.get("type") == "text" and part["text"] in self._summaries
        return {"isVisibleInTranscriptOnly": True, "isCompactSummary": True} if is_summary else {}


def _parts(content: str | list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    else:
        yield from content


def _said(part: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": part["text"] if part.get("type") == "text" else [part]}
