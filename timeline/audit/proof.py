"""Prove a conversation by its chain: compute every link again, and compare the last one with the stored head.

It reads no payload, since every read of a payload checks that it matches its checksum. Whoever can write to the store
can also compute a whole chain anew. A head that is kept elsewhere reveals that, and what was cut off at the end. It
proves no content that a redaction behind it put in the place of another: whoever can write can append a redaction, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.events import BlockRedacted
from timeline.events.chain import START, commitment, link, remains
from timeline.log.in_turns import in_turns

if TYPE_CHECKING:
    from timeline.ports import ChainedEvent, EventStore

_CURE: Final = "`timeline restore FILE` puts a backup in its place, `timeline export --all` writes what still reads"


@dataclass(slots=True)
class Proof:
    """The outcome of proving a conversation.

    Attributes:
        head: the link of its newest event, which proves all before it.
        proved: number of events whose links were computed again, scavenged ones included.
        unproved: number of events that nothing proves: those up to what was scavenged before the store kept a chain,
            and the newest ones that a program of a release before the chain appended while it had the file open. The
            next append links these.
        rewritten: number of events whose content a redaction replaced.
        found: version of the event with the head that was looked for; None without one.
        rewritten_behind: versions up to that event whose content a redaction behind it replaced. The head proves that
            they were there, and not what they say now.
        problems: what does not hold, each with its version.
        of_row: the last of these problems, if it is that the row differs from the log; empty otherwise.
    """

    head: bytes = START
    proved: int = 0
    unproved: int = 0
    rewritten: int = 0
    found: int | None = None
    rewritten_behind: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    of_row: str = ""


async def prove(store: EventStore, conversation: str, *, kept_head: bytes | None = None) -> Proof:
    """Compute the chain of a conversation again, the shared part of its parents first.

    Args:
        store: holds the conversation.
        conversation: its id.
        kept_head: a head that was kept elsewhere: an event must have it, and then all up to that event is proved.

    Raises:
        ConversationNotFound: there is no such conversation.
        StoreError: the store failed.
    """
    check, last = _Links(store, kept_head), (await store.info(conversation)).version
    async for event in in_turns(store.chained(conversation)):
        await check.event(event)
    proof = check.proof
    # Read the head before the version: if another writer appends in between, the head is not compared.
    stored, version = await store.chain_head(conversation), (await store.info(conversation)).version
    if check.version < last:
        proof.of_row = f"the log ends at version {check.version}, and its row says {last}; {_CURE}"
    elif check.version == version and stored != check.head:
        check.end_of_links()
        proof.of_row = f"the head of its row is not the link of version {check.linked_until}; {_CURE}"
    proof.problems += [proof.of_row] if proof.of_row else []
    if kept_head is not None and proof.found is None:
        proof.problems.append(
            f"no event has the link {kept_head.hex()}: what it proved was changed or cut off; {_CURE}"
        )
    proof.head = check.previous
    proof.rewritten_behind = check.rewritten_behind()
    return proof


class _Said(NamedTuple):
    """What a redaction says of an event: the checksum of its new content, and the version of the redaction."""

    checksum: str
    at: int


class _Links:
    """A chain under way."""

    def __init__(self, store: EventStore, kept_head: bytes | None) -> None:
        self.proof = Proof()
        self.previous = START
        self.version = 0
        self._store = store
        self._kept_head = kept_head
        self._of = ""
        self._position = 0
        self._linked = False
        """Whether an event of this log has a link already."""
        self._unlinked: ChainedEvent | None = None
        self._behind: list[int] = []
        """Versions of the events without a link behind the newest link. A release before the chain appends such events:
        it does not change the head of the row, and writes neither salt nor commitment."""
        self._newest = START
        self._rewritten: dict[int, _Said] = {}
        self._by_forks: list[dict[int, _Said]] | None = None
        self._replaced: list[tuple[int, str, float]] = []
        """The events with another content: version, owner, and the version of the redaction; infinity for a fork's."""
        self._until: dict[str, int] = {}
        """By owner, the newest of its versions that is in this log."""

    @property
    def head(self) -> bytes:
        """The head that the row must have: the newest link."""
        return self._newest if self._behind else self.previous

    @property
    def linked_until(self) -> int:
        """The version of the newest link."""
        return self._behind[0] - 1 if self._behind else self.version

    def end_of_links(self) -> None:
        """Report the events behind the newest link: no earlier release appended them."""
        for version in self._behind:
            self._problem(f"version {version} has lost its link")

    def rewritten_behind(self) -> list[int]:
        """Return the versions up to the kept head whose content a redaction replaced that the head does not prove."""
        head = self.proof.found or 0
        return [v for v, owner, by in self._replaced if v <= head and by > min(head, self._until[owner])]

    async def event(self, event: ChainedEvent) -> None:
        """Check the next event."""
        if event.conversation != self._of:
            self._of, self._position, self._linked, self._unlinked = event.conversation, 0, False, None
            self._behind = []
            self._rewritten = await _rewritten(self._store, event.conversation)
            self._by_forks = None
        if event.version != self.version + 1:
            self._problem(f"version {event.version} follows {self.version}")
        if event.position <= self._position:
            self._problem(f"version {event.version} is at position {event.position}, before the one in front of it")
        self.version, self._position = event.version, event.position
        self._until[event.conversation] = event.version
        if event.link is None or event.c is None:
            self._without_link(event)
        else:
            await self._with_link(event, event.link, event.c)

    def _without_link(self, event: ChainedEvent) -> None:
        self.proof.unproved += 1
        self.previous, self._unlinked = START, event
        if event.link is not None and event.salt is None and event.checksum:
            self._problem(f"version {event.version} was rewritten, and no redaction says so")
        elif event.link is not None or event.c is not None or event.salt is not None:
            self._problem(f"version {event.version} has lost its link")
        elif self._linked:
            self._behind.append(event.version)

    async def _with_link(self, event: ChainedEvent, stored: bytes, c: bytes) -> None:
        if self._unlinked is not None and self._unlinked.checksum:
            self._problem(f"version {self._unlinked.version} has no link, and nothing was scavenged there")
            self.end_of_links()
        self._linked, self._unlinked, self._behind = True, None, []
        self.proof.proved += 1
        expected = link(
            self.previous,
            event.conversation,
            event.version,
            event.id,
            event.type,
            event.schema_version,
            event.at,
            c,
        )
        if expected != stored:
            self._problem(f"version {event.version} is not what followed version {event.version - 1}")
        await self._content(event, stored, c)
        self.previous = self._newest = stored
        if stored == self._kept_head:
            self.proof.found = event.version

    async def _content(self, event: ChainedEvent, stored: bytes, c: bytes) -> None:
        """Check that an event's checksum, which its payload must match, is the one in the commitment."""
        if not event.checksum:
            if event.salt != remains(stored, event.type, event.path):
                self._problem(f"version {event.version} was scavenged, and its path or type was changed since")
        elif event.salt is not None:
            if commitment(event.salt, event.checksum) != c:
                self._problem(f"version {event.version} has another content than the chain")
        elif (redacted_at := await self._redacted_at(event)) is not None:
            self.proof.rewritten += 1
            self._replaced.append((event.version, event.conversation, redacted_at))
        else:
            self._problem(f"version {event.version} was rewritten, and no redaction says so")

    async def _redacted_at(self, event: ChainedEvent) -> float | None:
        """Return the version of the redaction that says so: infinity where a fork has it, None where none does."""
        said = self._rewritten.get(event.version)
        if said is not None and said.checksum == event.checksum:
            return said.at
        if self._by_forks is None:
            self._by_forks = await _rewritten_by_forks(self._store, event.conversation)
        own = (by_fork.get(event.version) for by_fork in self._by_forks)
        return inf if any(one is not None and one.checksum == event.checksum for one in own) else None

    def _problem(self, text: str) -> None:
        self.proof.problems.append(f"{self._of}: {text}; {_CURE}")


async def _rewritten_by_forks(store: EventStore, conversation: str) -> list[dict[int, _Said]]:
    """Return of each fork, and of each fork of one, the versions that it shares and says to be rewritten."""
    found: list[dict[int, _Said]] = []
    forks = list((await store.forks(conversation)).items())
    for fork, base in forks:
        said = await _rewritten(store, fork, after=(await store.info(fork)).base)
        found.append({version: one for version, one in said.items() if version <= base})
        forks += [(each, min(base, shared)) for each, shared in (await store.forks(fork)).items()]
    return found


async def _rewritten(store: EventStore, conversation: str, *, after: int = 0) -> dict[int, _Said]:
    """Return the versions whose content redactions replaced, each with what the newest says of it."""
    versions: dict[int, _Said] = {}
    async for event in store.read(conversation, after=after, types=["block.redacted"]):
        if isinstance(event.payload, BlockRedacted):
            versions |= {one.version: _Said(one.checksum, event.version) for one in event.payload.rewritten}
    return versions
