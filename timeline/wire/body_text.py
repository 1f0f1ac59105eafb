"""Write the texts of request bodies one after the other, without writing or hashing again what the last one had.

A body is written as a head, its list of messages, and an end. The messages are written in pieces of a fixed number. A
piece is reused if its messages are the same objects, which the bodies of one conversation share
(`timeline.wire.read_only`), or if they have the same text: cache markers come and go.
"""

from __future__ import annotations

from hashlib import sha256
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.frozen import Grown, compact_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from hashlib import _Hash

_LISTS: Final = ("messages", "input")
"""The keys of the lists that grow with a conversation."""
_TOGETHER: Final = 64
"""Messages of a piece; the newest ones behind the last whole piece are written for each body."""


class BodyText(NamedTuple):
    """A body as compact JSON, in the pieces that it was written in, and its hash."""

    pieces: Sequence[str]
    sha256: str
    head: str = ""
    end: str = ""

    @property
    def text(self) -> str:
        """The body as one text, put together each time."""
        return "".join((self.head, *self.pieces, self.end))


def body_alone(body: dict[str, Any]) -> BodyText:
    """Write a body by itself."""
    text = compact_json(body)
    return BodyText((text,), sha256(text.encode()).hexdigest())


class BodyWriter:
    """Writes the bodies of one conversation, one at a time. A text that was returned does not change later."""

    def __init__(self) -> None:
        self._head = ""
        self._messages: list[Any] = []
        """The messages of all pieces. They are kept alive, so that no other object can have the id of one of them."""
        self._pieces: list[str] = []
        self._states: list[_Hash] = []
        """The state of the hash before each piece, and behind the last one."""

    def write(self, body: dict[str, Any]) -> BodyText:
        """Write a body.

        Raises:
            ValueError: a value in it has no form in JSON.
        """
        key = next((name for name in _LISTS if isinstance(body.get(name), list)), None)
        if key is None:
            return body_alone(body)
        messages, members = body[key], list(body.items())
        place = list(body).index(key)
        head = compact_json({**dict(members[:place]), key: []})[: -len("]}")]
        behind = compact_json(dict(members[place + 1 :]))[len("{") :]
        self._go_on(head, messages)
        pieces, state = Grown(self._pieces), self._states[-1].copy()
        newest = _joined(messages, len(pieces) * _TOGETHER, len(messages))
        end = f"{newest}]{',' if len(members) > place + 1 else ''}{behind}"
        state.update(end.encode())
        return BodyText(pieces, state.hexdigest(), head, end)

    def _go_on(self, head: str, messages: list[Any]) -> None:
        """Bring the pieces up to a list of messages, and the states of the hash up to a head."""
        whole = len(messages) // _TOGETHER
        same = self._same(messages, whole)
        pieces = self._pieces if same == len(self._pieces) else self._pieces[:same]
        new = [_joined(messages, n * _TOGETHER, (n + 1) * _TOGETHER) for n in range(same, whole)]
        if head == self._head and self._states:
            states = self._states[: same + 1]
        else:
            states = [sha256(head.encode())]
            _hash(pieces[:same], states)
        _hash(new, states)
        pieces.extend(new)  # a text that was returned before reads the list only up to its own end
        self._pieces, self._states, self._head = pieces, states, head
        self._messages = messages[: whole * _TOGETHER]

    def _same(self, messages: list[Any], whole: int) -> int:
        """Return how many of the pieces are those of a list of messages."""
        for number in range(min(whole, len(self._pieces))):
            first, last = number * _TOGETHER, (number + 1) * _TOGETHER
            known = all(map(is_, messages[first:last], self._messages[first:last]))
            if not known and _joined(messages, first, last) != self._pieces[number]:
                return number
        return min(whole, len(self._pieces))


def _joined(messages: list[Any], first: int, last: int) -> str:
    """Write some of the messages as they are in the list of all."""
    text = compact_json(messages[first:last])[1:-1]
    return f",{text}" if first and text else text


def _hash(pieces: Sequence[str], states: list[_Hash]) -> None:
    """Append the state behind each piece to the last one."""
    for piece in pieces:
        state = states[-1].copy()
        state.update(piece.encode())
        states.append(state)
