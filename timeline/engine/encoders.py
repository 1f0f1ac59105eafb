"""Encode the contexts of a conversation one behind the other: what the last one wrote already is not written again."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from timeline.frozen import begins_with
from timeline.wire import encoded_alone, stepwise
from timeline.wire.groups import Gatherer, Placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.wire import Stepwise
    from timeline.wire.neutral import Entry, NeutralContext

_OPEN_ITEMS: Final = 16
"""How many of the newest items are written anew for each context: a result may still become part of one of them."""


class Encoders:
    """The encoders of one conversation: each goes on from the last context, where its wire format can."""

    def __init__(self) -> None:
        self._continued: dict[tuple[str, str], _Continued] = {}

    def encode(self, wire: str, context: NeutralContext) -> dict[str, Any]:
        """Return the body of a context. What a caller changes in it reaches no later body.

        Raises:
            InvalidPolicy: there is no such wire format.
        """
        parts = stepwise(wire)
        if parts is None:
            return encoded_alone(wire, context)
        key = (wire, context.model)
        if key not in self._continued:
            self._continued[key] = _Continued(wire, context.model, parts)
        return self._continued[key].encode(context)

    def ahead(self, context: NeutralContext) -> Encoders:
        """Return encoders that have written a context in each form asked for so far, and leave these as they are."""
        twin = Encoders()
        for (wire, model), known in [*self._continued.items()]:
            twin._continued[wire, model] = known.ahead(context.entries)
        return twin


class _Continued:
    """Encodes the contexts of one conversation, each from where the last one ended, in the bytes of the plain encoder.

    All but the newest items are written once, and shared by the bodies: their messages are read-only, see
    `timeline.wire.read_only`. Everything is written anew where one of the entries of last time is another one, or where
    a late entry becomes part of an older item.

    Args:
        wire: the wire format.
        model: id of the model that the contexts are for.
        parts: of the wire's encoder.
    """

    def __init__(self, wire: str, model: str, parts: Stepwise) -> None:
        self._wire, self._model, self._parts = wire, model, parts
        self._lock = Lock()  # a context is a value: it may be encoded on any thread
        self._restart()

    def encode(self, context: NeutralContext) -> dict[str, Any]:
        """Return the body of a context. It and its list of messages are new ones each time."""
        with self._lock:
            if len(context.entries) < len(self._entries) and begins_with(self._entries, context.entries):
                return encoded_alone(self._wire, context)  # an earlier one: the next will go on from the last
            if not begins_with(context.entries, self._entries):
                self._restart()
            if self._take(context.entries) < self._settled:
                self._restart()
                self._take(context.entries)
            self._settle()
            return self._parts.finish(context, self._writer.branch(), self._gatherer.items[self._settled :])

    def ahead(self, entries: Sequence[Entry]) -> _Continued:
        """Return an encoder that has written these entries, and leave this one as it is."""
        twin = _Continued(self._wire, self._model, self._parts)
        twin._take(entries)
        twin._settle()
        return twin

    def _restart(self) -> None:
        self._entries: Sequence[Entry] = ()
        self._gatherer = Gatherer()
        self._settled = 0
        self._writer = self._parts.start(self._model)

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
