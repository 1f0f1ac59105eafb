"""A conversation in a notebook: the inspector's page in a frame, without a server."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final, overload

from timeline.inspector.onefile.collecting import Wish, collect
from timeline.inspector.onefile.page import written
from timeline.inspector.onefile.window import carried_window
from timeline.sync import Store as SyncStore

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from timeline.fold.window import Window
    from timeline.ports import EventStore

NEWEST: Final = 1_000
"""Rows that a frame carries unless another number is given: a notebook keeps every output in its file."""
HEIGHT: Final = 640
"""Pixels."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A conversation to look at: the last value of a notebook's cell is shown as a frame.

    Attributes:
        html: the page, whole.
        height: of the frame, in pixels.
    """

    html: str
    height: int = HEIGHT

    def _repr_html_(self) -> str:
        # Its scripts run without the notebook's origin: whatever the log holds, it reaches nothing of the notebook.
        style = f"width:100%;height:{self.height}px;border:1px solid #8884;border-radius:6px"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(self.html)}"></iframe>'


@overload
def show(store: EventStore, conversation: str, *, newest: int = ..., height: int = ...) -> Awaitable[Frame]: ...
@overload
def show(store: SyncStore, conversation: str, *, newest: int = ..., height: int = ...) -> Frame: ...
def show(
    store: EventStore | SyncStore, conversation: str, *, newest: int = NEWEST, height: int = HEIGHT
) -> Awaitable[Frame] | Frame:
    """Show a conversation in a notebook, as it is now: its newest rows with their states, and its newest context.

    Args:
        store: holds it; the answer is to be awaited, unless the store is one of `timeline.sync`.
        conversation: its id.
        newest: so many rows.
        height: of the frame, in pixels.

    Raises:
        ConversationNotFound: there is no such conversation.
        InvalidArgument: the frame would be too large for a browser; show fewer rows.
        StoreError: the store cannot be read.

    Example:
        ```python
        from timeline import sync
        from timeline.inspector.notebook import show

        with sync.open_store("memory://") as store:
            timeline = sync.Timeline.open(store, "cards")
            timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            show(store, timeline.id)
        ```
    """
    if isinstance(store, SyncStore):
        return store.run(lambda inner: _frame(inner, conversation, newest, height))
    return _frame(store, conversation, newest, height)


def framed(window: Window, *, limit: int | None, total: int | None) -> str:
    """Return the HTML of a window in a frame: what a timeline and a context are in a notebook. It waits for nothing.

    Args:
        window: the window.
        limit: of the context, in tokens; None where none is known.
        total: tokens of the whole request; None where there is none.
    """
    page = written(carried_window(window, limit=limit, total=total), framed=True)
    return Frame(page)._repr_html_()


async def _frame(store: EventStore, conversation: str, newest: int, height: int) -> Frame:
    carried = await collect(store, conversation, Wish(newest=newest))
    return Frame(written(carried, framed=True), height)
