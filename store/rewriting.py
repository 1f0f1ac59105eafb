"""The rows that a redaction writes in place, the one change of its kind: events, and snapshots without their quotes."""

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
    """The columns of an event with a new payload; it has no salt any more, and its link stays."""

    payload: str
    tokens: int | None
    checksum: str
    c: bytes | None


class EventIdentity(NamedTuple):
    """The fields of an event, besides its payload, that its checksum covers."""

    conversation: str
    version: int
    id: str
    type: str
    schema_version: int
    at: str


def overwritten(place: EventIdentity, payload: Payload, salt: bytes | None, was: str, c: bytes | None) -> Overwritten:
    """Return an event with another payload. It keeps the commitment that its old salt and checksum gave."""
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
    if (new := change(old)) == old:  # compare values, not texts: an earlier release wrote snapshots with sorted keys
        return None
    text = encode_snapshot(new).body
    return text, sha256_hex(text)
