"""How a snapshot of the past is written: packed, with a checksum over the id of its conversation and its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.errors import StoreCorrupt
from timeline.frozen import sha256_hex

from .codec import decode_snapshot
from .packing import packed_whole, unpacked_whole

if TYPE_CHECKING:
    from timeline.ports import Snapshot

    from .codec import SnapshotDraft


def waypoint_columns(conversation: str, draft: SnapshotDraft) -> tuple[int, bytes, str]:
    """Return version, body and checksum of a snapshot of the past as they are stored."""
    return draft.version, packed_whole(draft.body), _checksum(conversation, draft.body)


def read_waypoint(conversation: str, row: tuple[int, bytes, str], where: str) -> Snapshot:
    """Read the snapshot of a row: its version, its body and its checksum.

    Raises:
        StoreCorrupt: it is damaged, or of another conversation or version.
    """
    version, body, stored = row
    text = unpacked_whole(body)
    place = f"{where}: the snapshot of conversation {conversation!r} at version {version} is damaged"
    if _checksum(conversation, text) != stored:
        raise StoreCorrupt(f"{place}. `timeline repair` makes it anew.")
    snapshot = decode_snapshot(conversation, text, sha256_hex(text), where)
    if snapshot.version != version:
        raise StoreCorrupt(f"{place}: it is of version {snapshot.version}. `timeline repair` makes it anew.")
    return snapshot


def _checksum(conversation: str, body: str) -> str:
    return sha256_hex(f"{conversation}\n{body}")
