"""The rows of events as parameters of the append's statement: by column, and none longer than it has to be.

The driver asks of each value in an array whether it is an array itself, which takes as long as to hash the event. So a
column whose values have one length goes as one string of bytes, out of which the server cuts each row's part; and what
is the same in all rows goes as one value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from timeline.events.chain import SALT, stored

from .escaping import MOST, escaped, holds_escaped, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..codec import Batch, Draft
    from ..sealing import Sealed

T = TypeVar("T")
_ERASED: Final = bytes(SALT)
"""In the place of the salt of an event that comes with its commitment; the server writes NULL."""


class EventRows:
    """The rows of the events that one statement writes."""

    def __init__(self) -> None:
        self._drafts: list[Draft] = []
        self._keys: list[int] = []
        self._versions: list[int] = []

    def add(self, batch: Batch, key: int, first: int) -> None:
        """Add the rows of a batch, whose events have the versions of a log from ``first`` on."""
        events = len(batch.drafts)
        self._drafts += batch.drafts
        self._keys += [key] * events
        self._versions += range(first, first + events)

    def of_one(self, sealed: Sealed) -> list[Any]:
        """Return the parameters of `statements.APPEND_ONE` from the ninth on, which write the only event."""
        ((id_, type_, form, _, path, turn, tokens, payload),) = self._drafts
        key, rest = (None, None) if path is None else split(path)
        turn = None if turn is None else escaped(turn)
        (checksum,), (salt,), (commitment,), _ = sealed
        own = [checksum, salt, stored(salt, commitment)]
        return [id_, escaped(type_), form, key, rest, turn, tokens, payload, *own]

    def parameters(self, sealed: Sealed) -> list[Any]:
        """Return the parameters of `statements.APPEND` from the ninth on: the columns of the events."""
        ids, types, forms, ats, paths, turns, tokens, payloads = zip(*self._drafts, strict=True)
        keys, key = _shared(self._keys)
        versions = self._versions if keys else ()  # those of one conversation follow each other
        shared = [_shared(_escaped(types)), _shared(forms), _shared(ats), _shared(_escaped(turns))]
        (all_types, type_), (all_forms, form), (all_ats, at), (all_turns, turn) = shared
        indexed, rests = _split(paths)
        commitments = list(map(stored, sealed.salts, sealed.commitments)) if None in sealed.salts else ()
        arrays = [keys, versions, all_types, all_forms, all_ats, given(indexed), given(rests), all_turns]
        values = [key, self._versions[0], type_, form, at, turn]
        salts = b"".join([salt or _ERASED for salt in sealed.salts])
        fixed = [_unhexed(ids), _unhexed(sealed.checksums), salts, b"".join(sealed.links)]
        return [*arrays, given(tokens), payloads, commitments, *values, *fixed]


def _shared(column: Sequence[T]) -> tuple[Sequence[T], T | None]:
    """Return a column, or nothing and the value that is the same in all its rows."""
    first = column[0]
    return ((), first) if column.count(first) == len(column) else (column, None)


def given(column: Sequence[Any]) -> Sequence[Any]:
    """Return a column, or nothing of one that is NULL in all rows."""
    return () if column.count(None) == len(column) else column


def _escaped(column: Sequence[str | None]) -> Sequence[str | None]:
    """Escape a column of which most values are the same."""
    texts = {text: text if text is None else escaped(text) for text in set(column)}
    return [texts[text] for text in column]


def _split(paths: Sequence[str | None]) -> tuple[Sequence[str | None], Sequence[str | None]]:
    """Return the keys of paths, and what is to be stored beside them; most paths are their own keys."""
    own = [path for path in paths if path is not None]
    if max(map(len, own), default=0) <= MOST and not holds_escaped("".join(own)):
        return paths, ()
    parts = [(None, None) if path is None else split(path) for path in paths]
    return [key for key, _ in parts], [rest for _, rest in parts]


def _unhexed(column: Sequence[str]) -> bytes:
    """Return ids, or hashes, as they are in their hexadecimal digits, one behind the other."""
    return bytes.fromhex("".join(column).replace("-", ""))
