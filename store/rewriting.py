"""The rows that a redaction writes in place, the one change of its kind: events, and snapshots without their quotes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.events.chain import given
from timeline.events.encoding import checksum, encode_payload
from timeline.frozen import sha256_hex
from timeline.log.off_loop import off_loop

from .codec import NO_VALUES, decode_snapshot, encode, encode_snapshot, tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.events import Payload
    from timeline.ports import Rewriting, Snapshot

    from .codec import Batch


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


async def encoded(parts: Sequence[Rewriting]) -> list[tuple[Rewriting, Batch]]:
    """Return parts of a redaction with the rows of what they append: an event for each block, in each of the forks."""
    events = sum(len(part.events) for part in parts)
    return await off_loop(events, lambda: [(part, _rows(part)) for part in parts])


def _rows(part: Rewriting) -> Batch:
    return encode(part.conversation, part.events, part.expected, NO_VALUES, None)


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
