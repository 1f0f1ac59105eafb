"""A listing of conversations in pages, the one that was last active first, while others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import instant_text, parse_instant
from timeline.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from timeline.ports import ConversationInfo, EventStore

_SHOWN: Final = 40
"""Characters of a wrong cursor that the error repeats."""


class Listing:
    """The conversations behind the last one that was listed, in the order of a listing that began at a time.

    A conversation that is active again moves, and may or may not have been listed before: it comes behind all others,
    so that none is left out.

    Args:
        store: holds the conversations.
        cursor: where an earlier page of the listing ended; None to begin one.
        page: conversations that are read at a time.

    Raises:
        InvalidArgument: the cursor is none.
    """

    def __init__(self, store: EventStore, cursor: str | None, page: int) -> None:
        self._store, self._page = store, page
        self._began: datetime | None = None
        self._last: tuple[datetime, str] | None = None
        if cursor is not None:
            try:
                began, at, id_ = cursor.split(" ", 2)
                self._began, self._last = parse_instant(began), (parse_instant(at), id_)
            except ValueError:
                raise no_cursor(cursor) from None

    async def conversations(self) -> AsyncIterator[ConversationInfo]:
        """Iterate over the conversations of this page and of those behind it."""
        last = self._last
        if self._began is None or last is None or last[0] <= self._began:
            async for info in self._store.recent_conversations(before=last, page=self._page):
                self._began = self._began or info.updated_at
                yield info
            last = None
        active_since: list[ConversationInfo] = []
        async for info in self._store.recent_conversations(page=self._page):
            if self._began is None or info.updated_at <= self._began:
                break
            active_since.append(info)
        for info in reversed(active_since):
            if last is None or (info.updated_at, info.id) > last:
                yield info

    def cursor_behind(self, active: str, conversation: str) -> str:
        """Return where a page ended: when its last conversation was active, and its id."""
        return f"{'' if self._began is None else instant_text(self._began)} {active} {conversation}"


def no_cursor(cursor: str) -> InvalidArgument:
    """Return the error for a text that no answer gave as the place behind it."""
    shown = cursor if len(cursor) <= _SHOWN else f"{cursor[:_SHOWN]}…"
    return InvalidArgument("cursor", f"{shown!r} is none; give next_cursor of an answer of this tool as it is")
