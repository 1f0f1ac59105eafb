"""Encode the contexts of a conversation one after the other, without writing again what the last one has written."""

from __future__ import annotations

from collections import defaultdict
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from timeline.frozen import begins_with, common_length
from timeline.wire import encoded_alone, stepwise
from timeline.wire.body_text import BodyWriter
from timeline.wire.groups import Call, Gatherer, Placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.wire import Stepwise
    from timeline.wire.body_text import BodyText
    from timeline.wire.groups import Item
    from timeline.wire.neutral import Entry, NeutralContext
    from timeline.wire.writing import MessageWriter, WriterMark

_OPEN_ITEMS: Final = 16
"""How many of the newest items are written anew for each context, since a result may still become part of one."""
_MARKED_ITEMS: Final = 64
"""Items between two marks, from which the writing can start again."""


class Encoders:
    """The encoders of one conversation. Each continues from the last context, if its wire format allows that."""

    def __init__(self) -> None:
        self._continued: dict[tuple[str, str], _Continued] = {}
        self._writers: defaultdict[tuple[str, str], BodyWriter] = defaultdict(BodyWriter)
        self._writing = Lock()  # a request may be made on any thread

    def __reduce__(self) -> tuple[type[Encoders], tuple[()]]:
        """Give a copied context new encoders: they only save work, and their locks belong to this process."""
        return Encoders, ()

    def encode(self, wire: str, context: NeutralContext) -> dict[str, Any]:
        """Return the body of a context. What a caller changes in it reaches no later body.

        Raises:
            InvalidArgument: there is no such wire format.
        """
        parts = stepwise(wire)
        if parts is None:
            return encoded_alone(wire, context)
        key = (wire, context.model)
        if key not in self._continued:
            self._continued[key] = _Continued(wire, context.model, parts)
        return self._continued[key].encode(context)

    def write(self, wire: str, model: str, body: dict[str, Any]) -> BodyText:
        """Write the body of a request for a model, anew only from where the last body for that model differs.

        Raises:
            ValueError: a value in it has no form in JSON.
        """
        with self._writing:
            return self._writers[wire, model].write(body)

    def ahead(self, context: NeutralContext) -> Encoders:
        """Return encoders that have written a context in each form used so far; these encoders do not change."""
        twin = Encoders()
        twin._writers, twin._writing = self._writers, self._writing
        for (wire, model), known in [*self._continued.items()]:
            twin._continued[wire, model] = known.ahead(context.entries)
        return twin


class _Continued:
    """Encodes the contexts of one conversation, each from where the last one ended, in the bytes of the plain encoder.

    All but the newest items are written once, and the bodies share their messages, which are read-only, see
    `timeline.wire.read_only`. Where an older item was replaced, or a late entry became part of it, everything from the
    last mark before it is written anew.

    Args:
        wire: the wire format.
        model: id of the model that the contexts are for.
        parts: of the wire's encoder.
    """

    def __init__(self, wire: str, model: str, parts: Stepwise) -> None:
        self._wire, self._model, self._parts = wire, model, parts
        self._lock = Lock()  # a context is a value: it may be encoded on any thread
        self._entries: Sequence[Entry] = ()
        self._gatherer = Gatherer()
        self._settled = 0
        self._marks: list[tuple[int, WriterMark]] = []
        self._writer: MessageWriter = parts.start(model)

    def encode(self, context: NeutralContext) -> dict[str, Any]:
        """Return the body of a context. The body and its list of messages are new objects each time."""
        with self._lock:
            entries = context.entries
            if len(entries) < len(self._entries) and begins_with(self._entries, entries):
                return encoded_alone(self._wire, context)  # an earlier context: the next one will continue the last
            if begins_with(entries, self._entries):
                changed = _take(self._gatherer, entries, len(self._entries))
            else:
                before, self._gatherer = self._gatherer, Gatherer()
                _take(self._gatherer, entries, 0)
                changed = _first_other(before.items, self._gatherer.items)
            self._entries = entries
            if changed < self._settled:
                self._settled, self._marks, self._writer = self._cut(changed)
            self._settle()
            return self._parts.finish(context, self._writer.branch(), self._gatherer.items[self._settled :])

    def ahead(self, entries: Sequence[Entry]) -> _Continued:
        """Return an encoder that has written these entries; this encoder does not change."""
        twin = _Continued(self._wire, self._model, self._parts)
        twin._entries = entries
        _take(twin._gatherer, entries, 0)
        with self._lock:  # held for the comparison alone, so that nobody waits for the writing
            changed = _first_other(self._gatherer.items, twin._gatherer.items)
            twin._settled, twin._marks, twin._writer = self._cut(min(changed, self._settled))
        twin._settle()
        return twin

    def _cut(self, position: int) -> tuple[int, list[tuple[int, WriterMark]], MessageWriter]:
        """Return the last mark at or before an item: its item, the marks up to it, and a writer that ends there."""
        marks = [marked for marked in self._marks if marked[0] <= position]
        if not marks:
            return 0, [], self._parts.start(self._model)
        settled, mark = marks[-1]
        return settled, marks, self._writer.cut(mark)

    def _settle(self) -> None:
        """Write the items that the next entries will most likely not change."""
        items = self._gatherer.items
        until = len(items) - _OPEN_ITEMS
        while self._settled < until:
            marked = self._marks[-1][0] if self._marks else 0
            end = min(until, marked + _MARKED_ITEMS)
            for item in items[self._settled : end]:
                self._writer.add(item)
            mark, self._settled = self._writer.share(items[end].first), end
            if end == marked + _MARKED_ITEMS:
                self._marks.append((end, mark))


def _take(gatherer: Gatherer, entries: Sequence[Entry], first: int) -> int:
    """Gather the entries from position ``first`` on; return the lowest position of an item that changed."""
    new = (Placed(number, entry) for number, entry in enumerate(entries[first:], start=first))
    return min(map(gatherer.take, new), default=len(gatherer.items))


def _first_other(before: Sequence[Item], after: Sequence[Item]) -> int:
    """Return the position of the first item that is not made of the same entries."""
    return common_length(before, after, lambda one, other: _made_of(one) == _made_of(other))


def _made_of(item: Item) -> list[tuple[int, int]]:
    """Return the numbers and identities of an item's entries, and behind each call those of its result or a gap."""
    if isinstance(item, Placed):
        return [(item.number, id(item.entry))]
    parts = (
        each for part in item.parts for each in ((part.placed, part.result) if isinstance(part, Call) else (part,))
    )
    return [(-1, 0) if placed is None else (placed.number, id(placed.entry)) for placed in parts]
