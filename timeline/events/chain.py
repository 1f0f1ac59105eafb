"""The chain of a conversation: a link covers what an event says, a salted hash of its payload, and the link before.

The newest link, the conversation's *head*, proves every event before it: none was changed, left out,
put in or moved. A link covers the payload by its commitment alone. So a payload may be erased, with its salt, and the
chain still holds; and since the salt is random, nobody can find out by trying whether an erased payload was this text.

Both hashes begin with the byte of their form. The positions of a store, and the keys of its tables, stay out: a
conversation that is copied to another store keeps its chain.
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

FORM: Final = b"\x01"
"""The form of commitments and links that is written: sha256, over the bytes that this module puts together."""
SIZE: Final = 33
"""Bytes of a commitment, and of a link: the form, and the hash."""
SALT: Final = 16
"""Bytes of a salt."""
START: Final = bytes(SIZE)
"""Stands for the link before the first event of a chain."""


Written: TypeAlias = tuple[str, str, int, str, str | None, str | None, int | None, str]
"""An event as it is written, without its place: id, type, schema version, time, path, turn, tokens and payload."""


class Seal(NamedTuple):
    """The commitment of an event, and the salt that proves its payload; None once the payload was erased."""

    salt: bytes | None
    c: bytes


def random_salts(events: int) -> bytes:
    """Return the salts of that many events, one behind the other: asking for each would take longer than hashing it."""
    return os.urandom(SALT * events)


def commitment(salt: bytes, checksum: str) -> bytes:
    """Return the commitment to an event's payload, by the checksum that covers it: so a payload is hashed once."""
    return FORM + sha256(b"c" + salt + checksum.encode()).digest()


def commitments(salts: Iterable[bytes], checksums: Iterable[str]) -> list[bytes]:
    """Return the `commitment` to each payload; it writes the format itself, as `links` does."""
    return [
        FORM + sha256(b"c" + salt + hashed.encode()).digest() for salt, hashed in zip(salts, checksums, strict=True)
    ]


def stored(salt: bytes | None, c: bytes) -> bytes | None:
    """Return what a store has to keep of a commitment: nothing, while salt and checksum give it."""
    return None if salt is not None else c


def given(salt: bytes | None, checksum: str, c: bytes | None) -> bytes | None:
    """Return the commitment of a stored event: the kept one, or what salt and checksum give.

    Args:
        salt: of the event. Without a checksum it is what `remains`.
        checksum: empty once the payload was removed.
        c: what was kept.
    """
    return commitment(salt, checksum) if c is None and salt is not None and checksum else c


def link(  # noqa: PLR0917 - the order of the parts is the format
    previous: bytes,
    conversation: str,
    version: int,
    id_: UUID | str,
    type_: str,
    schema_version: int,
    at: str,
    c: bytes,
) -> bytes:
    """Return the link of an event behind the link before it, or behind `START`.

    The lengths keep two events apart whose texts are the same when they are joined.
    """
    parts = f"{version}\n{schema_version}\n{at}\n{id_}\n{len(type_)}\n{type_}\n{conversation}"
    return FORM + sha256(b"l" + previous + c + parts.encode()).digest()


def links(
    heads: dict[str, bytes],
    conversations: Iterable[str],
    versions: Iterable[int],
    events: Iterable[Written],
    commitments_: Iterable[bytes],
) -> list[bytes]:
    """Return the `link` of each event, behind the newest link of its conversation.

    It is the inner loop of an append, so it writes the format itself; a test compares the two.

    Args:
        heads: the newest link of each conversation, which moves on.
        conversations: of each event, its conversation; the events of one come in the order of their versions.
        versions: of each event, its version.
        events: the events.
        commitments_: of each event, its commitment.
    """
    made: list[bytes] = []
    placed = zip(conversations, versions, events, commitments_, strict=True)
    for conversation, version, (id_, type_, schema_version, at, _, _, _, _), c in placed:
        parts = f"{version}\n{schema_version}\n{at}\n{id_}\n{len(type_)}\n{type_}\n{conversation}"
        heads[conversation] = newest = FORM + sha256(b"l" + heads[conversation] + c + parts.encode()).digest()
        made.append(newest)
    return made


def remains(link_: bytes, type_: str, path: str | None) -> bytes:
    """Return what vouches for the type and the path of an event whose payload is gone: its commitment covered them.

    It takes the place of the salt. It is no secret: it finds damage, and edits by those who do not compute it anew.
    """
    return sha256(b"r" + link_ + f"{type_}\n{'' if path is None else f'={path}'}".encode()).digest()[:SALT]
