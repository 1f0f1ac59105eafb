"""Seal and link the events of an append: what their rows hold that depends on their place in the log."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from timeline.events.chain import SALT, commitment, link
from timeline.events.encoding import checksum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .codec import Batch


class Sealed(NamedTuple):
    """The columns of a batch's rows that depend on its place, each with a value for every event.

    Attributes:
        checksums: of the events.
        salts: of the events; None for one whose payload was erased before it was imported.
        commitments: to the payloads; `chain.stored` says what is kept of them.
        links: of the events, the last one the new head.
    """

    checksums: list[str]
    salts: list[bytes | None]
    commitments: list[bytes]
    links: list[bytes]


def seal(batch: Batch, after: int, head: bytes) -> Sealed:
    """Seal the events of a batch behind a version and its link.

    It is the inner loop of an append: what does not differ between two events is looked up once.
    """
    conversation, version = batch.conversation, after
    proved = batch.proved[1] if batch.proved is not None and batch.proved[0] == after + 1 else ()
    checksums: list[str] = []
    salts: list[bytes | None] = []
    commitments: list[bytes] = []
    links: list[bytes] = []
    seals = batch.seals or _own_seals(batch.salts)
    placed = zip(batch.drafts, seals, proved or repeat(""), strict=False)
    for (id_, type_, schema_version, at, _, _, _, payload), (salt, kept), compared in placed:
        version += 1
        hashed = compared or checksum(conversation, version, id_, type_, schema_version, at, payload)
        c = kept if salt is None or (compared and kept) else commitment(salt, hashed)
        head = link(head, conversation, version, id_, type_, schema_version, at, c)
        checksums.append(hashed)
        salts.append(salt)
        commitments.append(c)
        links.append(head)
    return Sealed(checksums, salts, commitments, links)


def _own_seals(salts: bytes) -> Sequence[tuple[bytes, bytes]]:
    """Return the salts of a batch, each with a commitment that is still to be computed."""
    return [(salts[start : start + SALT], b"") for start in range(0, len(salts), SALT)]
