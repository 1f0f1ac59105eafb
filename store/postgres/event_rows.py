"""The rows of events as parameters of the append's statement: by column, and none longer than it has to be.

The driver asks of each value in an array whether it is an array itself, which takes as long as to hash the event. So a
column whose values have one length goes as one string of bytes, out of which the server cuts each row's part; and what
is the same in all rows goes as one value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from timeline.events.chain import SALT, stored

from .escaping import MOST, escaped, holds_escaped, split
from .statements import TIME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..sealing import Sealed, Unsealed

T = TypeVar("T")
_ERASED: Final = bytes(SALT)
"""In the place of the salt of an event that comes with its commitment; the server writes NULL."""


def of_one(events: Unsealed, sealed: Sealed) -> list[Any]:
    """Return the parameters of `statements.APPEND_ONE` from the ninth on, which write the only event."""
    ((id_, type_, form, _, path, turn, tokens, payload),) = events.drafts
    (checksum,), (salt,), (commitment,), _ = sealed
    key, rest = (None, None) if path is None else split(path)
    turn = None if turn is None else escaped(turn)
    return [id_, escaped(type_), form, key, rest, turn, tokens, payload, checksum, salt, stored(salt, commitment)]


def parameters(events: Unsealed, sealed: Sealed, keys_of_events: Sequence[int]) -> list[Any]:
    """Return the parameters of `statements.APPEND` from the ninth to the 29th, and the 33rd: the columns of the events.

    Args:
        events: the events.
        sealed: what they are sealed with.
        keys_of_events: the key of each one's conversation.
    """
    ids, types, forms, ats, paths, turns, tokens, payloads = zip(*events.drafts, strict=True)
    keys, key = shared(keys_of_events)
    versions = events.versions if keys else ()  # those of one conversation follow each other
    all_shared = [shared(_escaped(types)), shared(forms), shared(ats), shared(_escaped(turns))]
    (all_types, type_), (all_forms, form), (all_ats, at), (all_turns, turn) = all_shared
    own_ats, times = timed(all_ats)
    indexed, rests = _split(paths)
    commitments = list(map(stored, sealed.salts, sealed.commitments)) if None in sealed.salts else ()
    arrays = [keys, versions, all_types, all_forms, own_ats, given(indexed), given(rests), all_turns]
    values = [key, events.versions[0], type_, form, at, turn]
    salts = b"".join([salt or _ERASED for salt in sealed.salts])
    fixed = [_unhexed(ids), _unhexed(sealed.checksums), salts, b"".join(sealed.links)]
    return [*arrays, given(tokens), payloads, commitments, *values, *fixed, times]


def shared(column: Sequence[T]) -> tuple[Sequence[T], T | None]:
    """Return a column, or nothing and the value that is the same in all its rows."""
    first = column[0]
    return ((), first) if column.count(first) == len(column) else (column, None)


def timed(column: Sequence[str]) -> tuple[Sequence[str], bytes]:
    """Return a column of times, or nothing and one string of bytes, if all of them have one length."""
    times = "".join(column)
    return ((), times.encode()) if set(map(len, column)) == {TIME} and times.isascii() else (column, b"")


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
