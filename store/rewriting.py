"""What the one change in place writes: an event under its old place, and snapshots that no longer quote what goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.events.chain import given
from timeline.events.encoding import checksum, encode_payload
from timeline.frozen import sha256_hex

from .codec import decode_snapshot, encode_snapshot, tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.events import Payload
    from timeline.ports import Snapshot


class Overwritten(NamedTuple):
    """The columns of an event whose payload is another one now; its salt is none, its link stays."""

    payload: str
    tokens: int | None
    checksum: str
    c: bytes | None


class EventIdentity(NamedTuple):
    """What a checksum covers of an event beside its payload."""

    conversation: str
    version: int
    id: str
    type: str
    schema_version: int
    at: str


def overwritten(place: EventIdentity, payload: Payload, salt: bytes | None, was: str, c: bytes | None) -> Overwritten:
    """Return an event with another payload; its commitment is kept, which its salt and its checksum gave before."""
    text = encode_payload(payload)
    return Overwritten(text, tokens_of(payload), checksum(*place, text), given(salt, was, c))


def rewritten(
    conversation: str, change: Callable[[Snapshot], Snapshot], where: str, body: str, stored: str
) -> tuple[str, str] | None:
    """Return the new body of a snapshot and its checksum; None where it stays as it is.

    Raises:
        StoreCorrupt: it is damaged.
    """
    old = decode_snapshot(conversation, body, stored, where)
    if (new := change(old)) == old:  # not by the texts: an earlier release wrote the same snapshot with sorted keys
        return None
    text = encode_snapshot(new).body
    return text, sha256_hex(text)
