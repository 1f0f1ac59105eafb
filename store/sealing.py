"""Seal and link the events of appends: make the columns of their rows that depend on their place in the log.

It is the inner loop of an append. Events that are appended together are hashed column by column, in two thirds of the
time.
"""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

from timeline.events.chain import SALT, commitment, commitments, link, links, random_salts
from timeline.events.encoding import checksum, checksums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .codec import Batch, EventDraft


class Sealed(NamedTuple):
    """The columns of the rows of events that depend on their place, each with a value for every event.

    Attributes:
        checksums: of the events.
        salts: of the events; None for one whose payload was erased before it was imported.
        commitments: to the payloads; `chain.stored` says what is kept of them.
        links: of the events, the last one of a conversation its new head.
    """

    checksums: list[str]
    salts: Sequence[bytes | None]
    commitments: list[bytes]
    links: list[bytes]


class Unsealed:
    """The events of batches that are sealed together, by column; each column has a value for every event.

    Attributes:
        drafts: the events.
        conversations: the conversation of each.
        versions: the version of each.
    """

    def __init__(self) -> None:
        self.drafts: list[EventDraft] = []
        self.conversations: list[str] = []
        self.versions: list[int] = []
        self._batches: list[Batch] = []
        self._by_column = True

    def add(self, batch: Batch, after: int) -> None:
        """Add a batch behind a version of its conversation, and behind the conversation's batches added before."""
        events = len(batch.drafts)
        self.drafts += batch.drafts
        self.conversations += [batch.conversation] * events
        self.versions += range(after + 1, after + 1 + events)
        self._batches.append(batch)
        if batch.seals or batch.proved:
            self._by_column = False

    def seal(self, heads: dict[str, bytes]) -> Sealed:
        """Seal the events.

        Args:
            heads: the newest link of each conversation, which moves on.
        """
        if self._by_column and len(self.drafts) != 1:
            salts = _own_salts(len(self.drafts))
            hashes = checksums(self.conversations, self.versions, self.drafts)
            committed = commitments(salts, hashes)
            linked = links(heads, self.conversations, self.versions, self.drafts, committed)
            return Sealed(hashes, salts, committed, linked)
        parts: list[Sealed] = []
        place = 0
        for batch in self._batches:
            parts.append(_one_by_one(batch, self.versions[place] - 1, heads[batch.conversation]))
            heads[batch.conversation] = parts[-1].links[-1]
            place += len(batch.drafts)
        return parts[0] if len(parts) == 1 else Sealed(*[[*chain(*columns)] for columns in zip(*parts, strict=True)])


def seal(batch: Batch, after: int, head: bytes) -> Sealed:
    """Seal the events of a batch behind a version and its link."""
    if len(batch.drafts) == 1:
        return _one_by_one(batch, after, head)
    unsealed = Unsealed()
    unsealed.add(batch, after)
    return unsealed.seal({batch.conversation: head})


def _one_by_one(batch: Batch, after: int, head: bytes) -> Sealed:
    """Seal the events of a batch one by one: it may bring seals of its own, or checksums that were compared already."""
    conversation, version = batch.conversation, after
    proved = batch.proved[1] if batch.proved is not None and batch.proved[0] == after + 1 else ()
    hashes: list[str] = []
    salts: list[bytes | None] = []
    committed: list[bytes] = []
    made: list[bytes] = []
    seals: Sequence[tuple[bytes | None, bytes]] = batch.seals or [(salt, b"") for salt in _own_salts(len(batch.drafts))]
    placed = zip(batch.drafts, seals, proved or repeat(""), strict=False)
    for (id_, type_, schema_version, at, _, _, _, payload), (salt, kept), compared in placed:
        version += 1
        hashed = compared or checksum(conversation, version, id_, type_, schema_version, at, payload)
        c = kept if salt is None or (compared and kept) else commitment(salt, hashed)
        head = link(head, conversation, version, id_, type_, schema_version, at, c)
        hashes.append(hashed)
        salts.append(salt)
        committed.append(c)
        made.append(head)
    return Sealed(hashes, salts, committed, made)


def _own_salts(events: int) -> list[bytes]:
    salts = random_salts(events)
    return [salts[start : start + SALT] for start in range(0, len(salts), SALT)]
