"""The tables of a store as SQLModel classes: the schema that `store.migrations` make together.

Read them to learn the schema, or use them to query a store with SQLModel. The write path never builds one of these
objects, since an ORM object costs ten times its row. The registry is their own, so that an
application's SQLModel classes may use the same names.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import Index, LargeBinary, Text, UniqueConstraint, text
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from ..frequent_types import RARE_WHERE
from .statements import FILES_WHERE, SCAVENGED_WHERE


class Stored(SQLModel, registry=registry()):
    """Base of the store's tables, with a registry and metadata of their own."""


class ConversationRow(Stored, table=True):
    """One conversation. ``key`` rises in the order in which conversations were opened."""

    __tablename__: ClassVar[Any] = "conversations"
    __table_args__: ClassVar[Any] = (
        Index("conversations_forks", "parent_key", "base", sqlite_where=text("parent_key IS NOT NULL")),
        Index("conversations_unchained", "key", sqlite_where=text("head IS NULL")),
        {"sqlite_autoincrement": True, "sqlite_strict": True},
    )

    key: int | None = Field(default=None, primary_key=True)
    id: str = Field(sa_type=Text, unique=True)
    version: int
    window_start: int
    title: str = Field(sa_type=Text)
    parent: str | None = Field(default=None, sa_type=Text)
    """The parent link as canonical JSON."""
    created_at: str = Field(sa_type=Text)
    """The time of its first event; ``updated_at`` is that of its newest one."""
    updated_at: str = Field(sa_type=Text)
    parent_key: int | None = Field(default=None, foreign_key="conversations.key")
    """A fork's parent, which holds the versions up to ``base``, or shares them with its own parent."""
    base: int = Field(default=0, sa_column_kwargs={"server_default": text("0")})
    """The last version that a fork shares with its parent; its own begin behind it. 0 for other conversations."""
    first_version: int = Field(default=1, sa_column_kwargs={"server_default": text("1")})
    """All events from this version on are there; some before it were scavenged."""
    packed: int = Field(default=0, sa_column_kwargs={"server_default": text("0")})
    """Its own events up to this version are packed, where that makes them smaller."""
    head: bytes | None = Field(default=None, sa_type=LargeBinary)
    """The link of its newest event: kept elsewhere, it proves the log. None until what is older is chained."""


class EventRow(Stored, table=True):
    """One event.

    ``path``, ``turn_id`` and ``tokens`` are those of the block that the event appends, so that looking up addresses and
    planning a window open no payload. AUTOINCREMENT, because SQLite would give a plain rowid again once the newest row
    is gone.

    ``payload`` is empty where ``packed`` holds it, which `store.packing.unpacked` reads. ``salt``, ``c`` and ``link``
    are those of `timeline.events.chain`; None in what was scavenged before there was a chain, and up to there.

    A scavenged event keeps its row, ``c`` and ``link``, with an empty payload and checksum and no tokens. Its salt is
    that of `chain.remains`, ``packed`` vouches for its facts (`store.sqlite.facts.proof_of`), and its turn is the type
    that its link covers, where its own column has another one now.
    """

    __tablename__: ClassVar[Any] = "events"
    __table_args__: ClassVar[Any] = (
        UniqueConstraint("conversation", "version"),
        UniqueConstraint("conversation", "event_id"),
        Index("events_path", "conversation", "path", unique=True, sqlite_where=text("path IS NOT NULL")),
        Index("events_rare", "type", "position", sqlite_where=text(RARE_WHERE)),
        Index("events_rare_within", "conversation", "type", "version", sqlite_where=text(RARE_WHERE)),
        Index("events_scavenged", "conversation", "version", sqlite_where=text(SCAVENGED_WHERE)),
        {"sqlite_autoincrement": True, "sqlite_strict": True},
    )

    position: int | None = Field(default=None, primary_key=True)
    conversation: int = Field(foreign_key="conversations.key")
    version: int
    event_id: str = Field(sa_type=Text)
    type: str = Field(sa_type=Text)
    schema_version: int
    at: str = Field(sa_type=Text)
    path: str | None = Field(default=None, sa_type=Text)
    turn_id: str | None = Field(default=None, sa_type=Text)
    tokens: int | None = None
    payload: str = Field(sa_type=Text)
    checksum: str = Field(sa_type=Text)
    packed: bytes | None = Field(default=None, sa_type=LargeBinary)
    salt: bytes | None = Field(default=None, sa_type=LargeBinary)
    c: bytes | None = Field(default=None, sa_type=LargeBinary)
    link: bytes | None = Field(default=None, sa_type=LargeBinary)


class SnapshotRow(Stored, table=True):
    """The newest snapshot of a conversation; a table of its own, so that an append does not rewrite its body."""

    __tablename__: ClassVar[Any] = "snapshots"
    __table_args__: ClassVar[Any] = {"sqlite_strict": True}

    conversation: int = Field(
        primary_key=True, foreign_key="conversations.key", sa_column_kwargs={"autoincrement": False}
    )
    version: int
    body: str = Field(sa_type=Text)
    checksum: str = Field(sa_type=Text)


class BaseRow(Stored, table=True):
    """A snapshot that the log is folded from, since what lies before its window was scavenged."""

    __tablename__: ClassVar[Any] = "bases"
    __table_args__: ClassVar[Any] = {"sqlite_strict": True, "sqlite_with_rowid": False}

    conversation: int = Field(
        primary_key=True, foreign_key="conversations.key", sa_column_kwargs={"autoincrement": False}
    )
    version: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    body: str = Field(sa_type=Text)
    checksum: str = Field(sa_type=Text)


class WaypointRow(Stored, table=True):
    """A snapshot of a moment of the past, to fold from there. It can be made of the log anew, unlike a base.

    The body is packed, and the checksum is over the id of the conversation and the unpacked body.
    """

    __tablename__: ClassVar[Any] = "waypoints"
    __table_args__: ClassVar[Any] = {"sqlite_strict": True}

    conversation: int = Field(
        primary_key=True, foreign_key="conversations.key", sa_column_kwargs={"autoincrement": False}
    )
    version: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    body: bytes = Field(sa_type=LargeBinary)
    checksum: str = Field(sa_type=Text)


class SettingRow(Stored, table=True):
    """A setting of the store: its ``retention``, the ``turn`` to scavenge, and the size while a ``shrink`` is due."""

    __tablename__: ClassVar[Any] = "settings"
    __table_args__: ClassVar[Any] = {"sqlite_strict": True}

    name: str = Field(primary_key=True, sa_type=Text)
    value: str = Field(sa_type=Text)


class ValueRow(Stored, table=True):
    """One content-addressed text: ``hash`` is the sha256 of its UTF-8 bytes, in hexadecimal."""

    __tablename__: ClassVar[Any] = "stored_values"
    __table_args__: ClassVar[Any] = {"sqlite_strict": True}

    hash: str = Field(primary_key=True, sa_type=Text)
    text: str = Field(sa_type=Text)


class CompactionRow(Stored, table=True):
    """One compaction, for queries; its content is in its event. ``at``, ``round`` and the numbers are the event's."""

    __tablename__: ClassVar[Any] = "compactions"
    __table_args__: ClassVar[Any] = (
        Index("compactions_within", "conversation", "position"),
        Index("compactions_at", "at", "position"),
        {"sqlite_strict": True},
    )

    position: int = Field(primary_key=True, foreign_key="events.position", sa_column_kwargs={"autoincrement": False})
    conversation: int = Field(foreign_key="conversations.key")
    version: int
    at: str = Field(sa_type=Text)
    round: int
    source: str = Field(sa_type=Text)
    summary: str = Field(sa_type=Text)
    """Path of the summary block."""
    first_version: int | None = None
    """The lowest version that it covers; ``last_version`` is the highest one."""
    last_version: int | None = None
    before_tokens: int
    after_tokens: int
    errors: int
    """Number of failures among its entries."""
    reverted_by: int | None = None
    """Version of the event that undid it."""


class DigestEntryRow(Stored, table=True):
    """One entry of a compaction's digest that a filter can ask for; see `store.digests.DigestEntry` for the columns.

    Earlier releases wrote a row for every entry, for hidden blocks too.
    """

    __tablename__: ClassVar[Any] = "digest_entries"
    __table_args__: ClassVar[Any] = (
        Index("digest_tools", "tool", "position", sqlite_where=text("tool IS NOT NULL")),
        Index("digest_files", "subject", "position", sqlite_where=text(FILES_WHERE)),
        {"sqlite_strict": True, "sqlite_with_rowid": False},
    )

    position: int = Field(
        primary_key=True, foreign_key="compactions.position", sa_column_kwargs={"autoincrement": False}
    )
    list: str = Field(primary_key=True, sa_type=Text)
    number: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    subject: str = Field(sa_type=Text)
    tool: str | None = Field(default=None, sa_type=Text)
    path: str | None = Field(default=None, sa_type=Text)
    times: int | None = None
    tokens: int | None = None
    exit_status: int | None = None
    errors: int
    message: str = Field(sa_type=Text)


class SearchProgressRow(Stored, table=True):
    """The progress of the full-text index: one row once there is an index, with the number of the index's form."""

    __tablename__: ClassVar[Any] = "search_progress"
    __table_args__: ClassVar[Any] = {"sqlite_strict": True}

    form: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    position: int
    """Position of the last event that is in the index."""


class FactTableRow(Stored, table=True):
    """One fact; see `store.facts.FactRow` for the columns.

    Time and path of its event are the event's own. The key's order is that of the log, so that new rows come behind
    all others. Nothing is declared as a foreign key, which would cost two look-ups for each row.
    """

    __tablename__: ClassVar[Any] = "facts"
    __table_args__: ClassVar[Any] = (
        Index("facts_within", "conversation", "position"),
        {"sqlite_strict": True, "sqlite_with_rowid": False},
    )

    position: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    number: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    conversation: int
    kind: int
    failed: int
    status: int | None = None
    version: int
    call: int | None = None
    subject: str = Field(sa_type=Text)
    tool: str = Field(sa_type=Text)
    detail: str = Field(sa_type=Text)
    path: str | None = Field(default=None, sa_type=Text)
    source: int


class FactProgressRow(Stored, table=True):
    """How far the log is read for facts: one row once a query asked, with the number of the rules."""

    __tablename__: ClassVar[Any] = "facts_progress"
    __table_args__: ClassVar[Any] = {"sqlite_strict": True}

    form: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    position: int


class ErasedRow(Stored, table=True):
    """A conversation that was erased: all that is left of it."""

    __tablename__: ClassVar[Any] = "erased"
    __table_args__: ClassVar[Any] = {"sqlite_strict": True}

    id: str = Field(primary_key=True, sa_type=Text)
    at: str = Field(sa_type=Text)
    reason: str = Field(sa_type=Text)


class IdentityRow(Stored, table=True):
    """One row: the store's name, which only the store and its copies have."""

    __tablename__: ClassVar[Any] = "identity"
    __table_args__: ClassVar[Any] = {"sqlite_strict": True}

    store: str = Field(primary_key=True, sa_type=Text)


class MigrationRow(Stored, table=True):
    """One migration that was applied; the highest number is the schema's version."""

    __tablename__: ClassVar[Any] = "migrations"
    __table_args__: ClassVar[Any] = {"sqlite_strict": True}

    number: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    name: str = Field(sa_type=Text)
