"""Encode the contexts of a conversation one behind the other: what the last one wrote already is not written again."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from timeline.frozen import begins_with
from timeline.wire.groups import Gatherer, Placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from timeline.wire.groups import Item
    from timeline.wire.neutral import Entry, NeutralContext

_OPEN_ITEMS: Final = 16
"""How many of the newest items are written anew for each context: a result may still become part of one of them."""


class Writer(Protocol):
    """Writes the messages of one wire, item by item."""

    def add(self, item: Item) -> None:
        """Write an item."""
        ...

    def branch(self) -> Any:
        """Return a writer that goes on from here, and leaves this one as it is."""
        ...

    def share(self, until: int) -> None:
        """Make what was written read-only; ``until`` is the number of the first entry that is not written yet."""
        ...


WriterT = TypeVar("WriterT", bound=Writer)


class Continued:
    """Encodes the contexts of one conversation, each from where the last one ended. The bytes are those of ``encode``.

    All but the newest items are written once, and shared by the bodies: their messages are read-only, see
    `timeline.wire.read_only`. Everything is written anew where one of the entries of last time is another one, or where
    a late entry becomes part of an older item.

    Args:
        start: makes a writer that has written nothing.
        finish: makes the body of a context from a writer and the items that it has yet to write.
        encode: encodes a context by itself.
    """

    def __init__(
        self,
        start: Callable[[], WriterT],
        finish: Callable[[NeutralContext, WriterT, Iterable[Item]], dict[str, Any]],
        encode: Callable[[NeutralContext], dict[str, Any]],
    ) -> None:
        self._start: Callable[[], Any] = start
        self._finish = finish
        self._encode = encode
        self._lock = Lock()  # a context is a value: it may be encoded on any thread
        self._restart()

    def __call__(self, context: NeutralContext) -> dict[str, Any]:
        """Return the body of a context. It and its list of messages are new ones each time."""
        with self._lock:
            if len(context.entries) < len(self._entries) and begins_with(self._entries, context.entries):
                return self._encode(context)  # an earlier one: the next will go on from the last
            if not begins_with(context.entries, self._entries):
                self._restart()
            if self._take(context.entries) < self._settled:
                self._restart()
                self._take(context.entries)
            self._settle()
            return self._finish(context, self._writer.branch(), self._gatherer.items[self._settled :])

    def _restart(self) -> None:
        self._entries: Sequence[Entry] = ()
        self._gatherer = Gatherer()
        self._settled = 0
        self._writer = self._start()

    def _take(self, entries: Sequence[Entry]) -> int:
        """Gather the entries that are new; return the lowest position of an item that changed."""
        first, self._entries = len(self._entries), entries
        new = (Placed(number, entry) for number, entry in enumerate(entries[first:], start=first))
        return min(map(self._gatherer.take, new), default=self._settled)

    def _settle(self) -> None:
        """Write the items that the next entries will most likely leave as they are."""
        items = self._gatherer.items
        until = len(items) - _OPEN_ITEMS
        if until <= self._settled:
            return
        for item in items[self._settled : until]:
            self._writer.add(item)
        self._settled = until
        self._writer.share(items[until].first)
