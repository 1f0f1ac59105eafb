"""The statements that each database has for its log; `store.codec` decodes the rows that they return.

`store.log_reader` has the rules of reading, once for all databases. This module has what differs between databases: how
a row is found. An event's row begins with its position and its version. Where several conversations may be meant, the
id of the event's own conversation comes before them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from .codec import Row


class LogPart(NamedTuple):
    """The versions of a conversation that one log holds, its own or an ancestor's: ``base < version <= last``."""

    key: int
    conversation: str
    base: int
    last: int


Pages: TypeAlias = "Callable[[LogPart, int, int, int], Awaitable[list[Row]]]"
"""Reads at most ``most`` rows of ``after < version <= last``, by version: called with the part and these three."""
PagesOfAll: TypeAlias = "Callable[[int, int], Awaitable[list[Row]]]"
"""Reads at most ``most`` events behind a position, by position, each behind its conversation."""


class ConversationRows(Protocol):
    """The statements that read what is known of conversations; see `codec.decode_info`."""

    async def info(self, conversation: str) -> Row | None:
        """Return a conversation's row, its key first."""
        ...

    async def info_and_snapshot(self, conversation: str) -> Row | None:
        """Return the same with the body and the checksum of its snapshot, both None without one."""
        ...

    async def conversations(self, after: int, most: int) -> list[Row]:
        """Return the rows of conversations behind a key, by key."""
        ...

    async def recent_conversations(self, before: tuple[str, str], most: int) -> list[Row]:
        """Return the rows of conversations behind a time and an id, the one that changed last first."""
        ...


class LogRows(Protocol):
    """The statements that read a log. A text that no database can hold finds no rows."""

    @property
    def whole(self) -> ConversationRows:
        """The rows of conversations with their compactions, which are read from their events."""
        ...

    @property
    def bare(self) -> ConversationRows:
        """The rows of conversations by themselves: no event is read, and none has a compaction."""
        ...

    @property
    def where(self) -> str:
        """Names the store in errors."""
        ...

    @property
    def restore(self) -> str:
        """Says how what is lost comes back, as a sentence without its full stop."""
        ...

    async def key(self, conversation: str) -> int | None:
        """Return the key of a conversation's row."""
        ...

    async def erased(self, conversation: str) -> tuple[str, str] | None:
        """Return the time and the reason of an erasure."""
        ...

    async def count_unlisted(self) -> int:
        """Return how many conversations have events and no row: a look-up for each that has events."""
        ...

    async def conversation_count(self) -> int:
        """Return how many conversations there are."""
        ...

    async def lineage(self, conversation: str) -> list[LogPart]:
        """Return the logs that hold a conversation's versions, its own first, as far as each leads to its parent."""
        ...

    def pages(self, types: Collection[str] | None) -> Pages:
        """Return what reads events of some types (None: all), without those that were scavenged."""
        ...

    async def page_as_written(self, part: LogPart, after: int, last: int, most: int) -> list[Row]:
        """Read events of all types, each with its salt, commitment and link behind it."""
        ...

    async def chained(self, part: LogPart, after: int, last: int, most: int) -> list[Row]:
        """Read all events, scavenged ones too, as the columns of `ChainedEvent` behind the conversation."""
        ...

    async def settled(self) -> None:
        """Wait, not for long, until a read of all conversations sees what this store has appended."""
        ...

    async def head(self) -> int:
        """Return the position of the last event that a read of all conversations sees; 0 if there is none."""
        ...

    def pages_of_all(self, types: Collection[str] | None) -> PagesOfAll:
        """Return what reads events of some types (None: all) of all conversations."""
        ...

    async def at_versions(self, conversation: str, versions: Sequence[int]) -> list[Row]:
        """Return the events of these versions, in any order, each behind the id of its conversation."""
        ...

    async def at_path(self, conversation: str, path: str) -> list[Row]:
        """Return the event that appended the block at a path, behind the id of its conversation."""
        ...

    async def walked_to(self, part: LogPart, path: str) -> int | None:
        """Return the version of an event with that path, found without the index of paths."""
        ...

    async def paths_beginning(self, conversation: str, stems: Collection[str]) -> list[str]:
        """Return the paths in use that begin with one of the stems; there may be others among them."""
        ...

    async def known_ids(self, conversation: str, ids: Sequence[str]) -> list[str]:
        """Return those of some event ids that the conversation holds."""
        ...

    async def values(self, hashes: Sequence[str]) -> list[Row]:
        """Return the texts of these hashes, each behind its hash."""
        ...

    async def count_scavenged(self, part: LogPart, first: int, last: int) -> int:
        """Return how many of the versions from ``first`` to ``last`` were scavenged."""
        ...

    async def scavenged_types(self, part: LogPart) -> list[Row]:
        """Return the types of what was scavenged up to the part's last version, each with a number of events."""
        ...

    async def waypoint(self, conversation: str, after: int, until: int) -> Row | None:
        """Return the newest snapshot of the past in ``after < version <= until``, behind its conversation."""
        ...

    async def waypoint_versions(self, key: int) -> list[int]:
        """Return the versions of a conversation's own snapshots of the past, rising."""
        ...

    async def base(self, conversation: str, until: int) -> Row | None:
        """Return body and checksum of the newest base up to a version."""
        ...

    async def chain_head(self, conversation: str) -> Row | None:
        """Return the link of a conversation's newest event, as its row has it."""
        ...
