"""Encode events as rows, and decode rows into events.

`encode` validates and writes every part of an append that does not depend on its place in the log, so that the
writer only adds versions and checksums. `decode` verifies the checksum of every event that it reads: SQLite
itself does not notice a flipped byte inside a row.

`timeline.events.encoding.encode_payload` defines the stored bytes. The one payload that fills a log has a faster way
to the same bytes, and back (`timeline.events.appended`); tests compare them.
"""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from timeline.blocks import instant_text, stored_instant, utc
from timeline.errors import DuplicateEvent, InvalidBlock, PathTaken, StoreCorrupt, StoreTooNew
from timeline.events import (
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    CompactionCompleted,
    CompactionReverted,
    ConversationOpened,
    Event,
    NewEvent,
    ParentLink,
    Payload,
    UnknownPayload,
    appended_block,
    stored_event,
)
from timeline.events.appended import columns_of, write_appended
from timeline.events.chain import given
from timeline.events.encoded import EncodedEvent
from timeline.events.encoding import checksum, decode_payload, encode_payload, is_written
from timeline.frozen import canonical_json, compact_json, sha256_hex
from timeline.ports import ConversationInfo, Expected, Snapshot, WrittenEvent

from .column_numbers import LARGEST
from .failures import RESTORE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from timeline.blocks import Block
    from timeline.events.chain import Seal


Row: TypeAlias = tuple[Any, ...]
"""``(position, version, event_id, type, schema_version, at, payload, checksum, path, turn_id, tokens)`` as the database
returns it."""

NO_VALUES: Final[Mapping[str, str]] = MappingProxyType({})
_new: Final = tuple.__new__
"""Makes a `EventDraft`, or a `Batch`, in a third of the time that its constructor takes."""
_ANEW: Final = "`timeline repair` makes it anew."
_UPGRADE: Final = "Upgrade timeline-engine to read it; other events can still be read."
_WHOLE_SECONDS: Final = len("2026-01-01T00:00:00Z")
_LONGEST_TYPE: Final = 500
"""Most characters of an event's type, since indexes hold all of it."""
_MANY: Final = 400
"""A decision about so many blocks is encoded off the event loop: it has a replacement or a line for each of them."""
_APPENDED: Final[str] = BlockAppended.model_fields["type"].default
_WITH_ROWS: Final = (CompactionCompleted, CompactionReverted)


class EventDraft(NamedTuple):
    """An encoded event without its place: the columns between ``version`` and ``checksum``, in their order."""

    event_id: str
    type: str
    schema_version: int
    at: str
    path: str | None
    turn_id: str | None
    tokens: int | None
    payload: str

    def checksum(self, conversation: str, version: int) -> str:
        """Return the checksum that the event has at a version."""
        event_id, type_, schema_version, at, _, _, _, payload = self
        return checksum(conversation, version, event_id, type_, schema_version, at, payload)


class SnapshotDraft(NamedTuple):
    """An encoded snapshot: its version, the start of the window, and its text."""

    version: int
    window_start: int
    body: str


class ForkPoint(NamedTuple):
    """The parent of a new conversation, and the last version that both share."""

    parent: str
    version: int


class OwnOpening(NamedTuple):
    """The opening of a fork, as its row has it, and its place in an append, from 0.

    It need not be the first event of its log: a fork that keeps a copy of its past has the opening of its parent there.
    """

    place: int
    base: int
    title: str
    parent: str

    def opens(self, first: int) -> bool:
        """Return whether it follows the past that it names, in an append with that first version."""
        return first + self.place == self.base + 1


class Batch(NamedTuple):
    """One append, validated and encoded."""

    conversation: str
    drafts: list[EventDraft]
    expected: int | Expected
    values: Mapping[str, str]
    snapshot: SnapshotDraft | None
    title: str
    parent: str | None
    fork: ForkPoint | None
    openings: Sequence[OwnOpening]
    """The openings of forks."""
    compactions: Sequence[tuple[int, Payload]]
    """The source events of digest rows, each with its place in the append, from 0."""
    redacted: Sequence[tuple[int, int]]
    """The versions of blocks that the append redacts, each with the place of the event that does."""
    seals: Sequence[Seal]
    """The seals that the events come with; empty where their payloads get salts when they are placed."""
    proved: tuple[int, Sequence[str]] | None
    """The version of the first event and the checksums of all of them, where these were compared, and the seals too."""
    shortens: bool
    """Whether the append moves a window or hides blocks: old events are packed behind it."""

    @property
    def ids(self) -> list[str]:
        """The event ids, in order."""
        return [draft.event_id for draft in self.drafts]

    @property
    def paths(self) -> list[str]:
        """The paths of the blocks that the events append, in order."""
        return [draft.path for draft in self.drafts if draft.path is not None]

    @property
    def size(self) -> int:
        """Number of characters that the append writes."""
        size = 0
        for draft in self.drafts:  # most appends have one event, for which a list of sizes takes three times as long
            size += len(draft.payload)
        return size + sum(map(len, self.values.values())) if self.values else size


def encode(  # noqa: PLR0917 - the parts of an append
    conversation: str,
    events: Sequence[NewEvent],
    expected: int | Expected,
    values: Mapping[str, str],
    snapshot: Snapshot | None,
    seals: Sequence[Seal] = (),
) -> Batch:
    """Validate and encode an append.

    Raises:
        InvalidBlock: there are more or fewer seals than events, or a value cannot be stored: NaN, a text that UTF-8
            cannot hold, a value under a wrong hash.
        DuplicateEvent: the append has the same id twice.
        PathTaken: the append has the same path twice.
    """
    if not conversation or not conversation.isascii():
        _check_text("conversation", conversation)
    drafts, others = _drafts(events)
    if len(drafts) > 1:
        _check_unique(conversation, drafts)
    if seals and len(seals) != len(drafts):
        raise InvalidBlock("seals", f"{len(drafts)} events have {len(seals)} seals")
    for key, text in values.items():
        _check_text("values", text)
        if sha256_hex(text) != key:
            raise InvalidBlock("values", f"{key!r} is not the sha256 of its text")
    title, parent, fork = _opening(others) if others else ("", None, None)
    openings = list(_own_openings(others)) if others else ()
    parts = (
        conversation,
        drafts,
        expected,
        dict(values) if values else NO_VALUES,
        None if snapshot is None else encode_snapshot(snapshot),
        title,
        parent,
        fork,
        openings,
        [(n, payload) for n, payload in others if type(payload) in _WITH_ROWS] if others else (),
        [(n, payload.version) for n, payload in others if type(payload) is BlockRedacted] if others else (),
        seals,
        _proved(events) if drafts and type(events[0]) is EncodedEvent else None,
        snapshot is not None or (bool(others) and any(type(payload) is BlocksHidden for _, payload in others)),
    )
    return _new(Batch, parts)


def is_long(events: Sequence[NewEvent]) -> bool:
    """Return whether encoding these events takes some milliseconds: one of them decides about very many blocks."""
    for event in events:
        # The payload of one that was written before is not made for this.
        asks = event.columns is None if type(event) is EncodedEvent else type(event.payload) is not BlockAppended
        if asks and _decided(event.payload) >= _MANY:
            return True
    return False


def _proved(events: Sequence[NewEvent]) -> tuple[int, Sequence[str]] | None:
    """Return the version of the first event and all checksums, where they were compared for versions in a row."""
    proved = [event.proved for event in events if type(event) is EncodedEvent and event.proved is not None]
    first = proved[0][0] if proved else 0
    if not proved or len(proved) < len(events) or [v for v, _ in proved] != [*range(first, first + len(proved))]:
        return None
    return first, [hashed for _, hashed in proved]


def _decided(payload: Payload) -> int:
    if isinstance(payload, BlocksHidden):
        return len(payload.blocks)
    if isinstance(payload, CompactionCompleted):
        return sum(last - first + 1 for first, last in payload.covers.ranges)
    return 0


def _opening(payloads: Sequence[tuple[int, Payload]]) -> tuple[str, str | None, ForkPoint | None]:
    """Return the first opening event's title, its parent link as JSON, and its fork point."""
    opened = next((payload for _, payload in payloads if type(payload) is ConversationOpened), None)
    if opened is None or opened.parent is None:
        return "" if opened is None else opened.title, None, None
    link = opened.parent
    fork = ForkPoint(link.conversation, link.version) if link.relation == "fork" and link.version is not None else None
    return opened.title, _written_link(link), fork


def _own_openings(payloads: Sequence[tuple[int, Payload]]) -> Iterator[OwnOpening]:
    for place, payload in payloads:
        link = payload.parent if type(payload) is ConversationOpened else None
        if type(payload) is ConversationOpened and link is not None and link.relation == "fork" and link.version:
            yield OwnOpening(place, link.version, payload.title, _written_link(link))


def _written_link(link: ParentLink) -> str:
    return canonical_json(link.model_dump(mode="json"))


def _check_text(field: str, text: str) -> None:
    if not text and field == "conversation":
        raise InvalidBlock(field, "needs an id")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidBlock(field, "holds a lone surrogate, which UTF-8 cannot write") from None


def _check_type(type_: str) -> None:
    _check_text("type", type_)
    if len(type_) > _LONGEST_TYPE:
        raise InvalidBlock("type", f"an event's type has at most {_LONGEST_TYPE} characters, not {len(type_):,}")


def _check_unique(conversation: str, drafts: Sequence[EventDraft]) -> None:
    if len({draft.event_id for draft in drafts}) < len(drafts):
        raise DuplicateEvent(conversation, _repeated(d.event_id for d in drafts), "is in one append twice")
    paths = [draft.path for draft in drafts if draft.path is not None]
    if len(set(paths)) < len(paths):
        raise PathTaken(conversation, _repeated(paths))


def _repeated(items: Iterable[str]) -> str:
    seen: set[str] = set()
    return next(item for item in items if item in seen or seen.add(item))  # type: ignore[func-returns-value] # set.add


def _drafts(events: Sequence[NewEvent]) -> tuple[list[EventDraft], list[tuple[int, Payload]]]:
    """Encode events; return the payloads that may not append blocks, too, each with the place of its event.

    It is the inner loop of an append: what is asked of each event is asked here, without a call. An event that appends
    a block takes a fraction of what the others take, and most do.
    """
    form = BlockAppended.schema_version
    drafts: list[EventDraft] = []
    others: list[tuple[int, Payload]] = []
    stamps = _stamps(events) if len(events) > 1 else None
    for place, event in enumerate(events):
        if type(event) is EncodedEvent:
            drafts.append(_written(event))
            if event.columns is None:
                others.append((place, event.payload))
            continue
        payload = event.payload
        id_, time = next(stamps) if stamps else (to_jsonable_python(event.id), to_jsonable_python(event.at))
        if type(payload) is not BlockAppended:
            drafts.append(_draft(event, id_, time))
            others.append((place, payload))
            continue
        text = None if payload.tokens > LARGEST else write_appended(payload, event.at, time)
        if text is None:
            drafts.append(_draft(event, id_, time))
            continue
        block, at = payload.block, time if len(time) > _WHOLE_SECONDS else _at(time)
        columns = (id_, _APPENDED, form, at, block.path or None, block.turn_id or None, payload.tokens, text)
        drafts.append(_new(EventDraft, columns))
    return drafts, others


def _stamps(events: Sequence[NewEvent]) -> Iterator[tuple[str, str]]:
    """Write the ids and times of the events that were not written before, in one call: for one event, two take less.

    pydantic's writer takes half of the time of `str` and `isoformat`, or less.
    """
    new = [event for event in events if type(event) is not EncodedEvent]
    return zip(*to_jsonable_python(([event.id for event in new], [event.at for event in new])), strict=True)


def _written(event: EncodedEvent) -> EventDraft:
    """Return the draft of an event that was written before."""
    id_, at, type_, schema_version = event.written
    columns = event.columns
    if columns is None:
        return _draft(event, id_, at)
    if columns.tokens > LARGEST:
        raise _beyond(type_)
    return _new(EventDraft, (id_, type_, schema_version, at, *columns, event.text))


def _draft(event: NewEvent, event_id: str, time: str) -> EventDraft:
    """Encode an event; ``time`` is its time in a block's form, without microseconds where there are none."""
    payload = event.payload
    try:
        text = event.text if type(event) is EncodedEvent else encode_payload(payload)
        if not text.isascii():
            text.encode()
    except ValueError as error:
        raise InvalidBlock("payload", f"an event of type {payload.type!r} cannot be stored: {error}") from None
    if type(payload) is BlockAppended:
        block: Block | None = payload.block
        tokens: int | None = payload.tokens
        schema_version = BlockAppended.schema_version
    else:
        block, tokens = _block_and_tokens(payload)
        schema_version = event.schema_version
    _check_type(payload.type)
    if schema_version > LARGEST or (tokens or 0) > LARGEST:
        raise _beyond(payload.type)
    path, turn_id = (None, None) if block is None else (block.path or None, block.turn_id or None)
    return EventDraft(event_id, payload.type, schema_version, _at(time), path, turn_id, tokens, text)


def _beyond(type_: str) -> InvalidBlock:
    return InvalidBlock("payload", f"an event of type {type_!r} holds a number beyond 64 bits")


def _at(time: str) -> str:
    """Return a time in the form of an event's, which always has microseconds."""
    return time if len(time) > _WHOLE_SECONDS else time[:-1] + ".000000Z"


def _block_and_tokens(payload: Payload) -> tuple[Block | None, int | None]:
    block = appended_block(payload)
    if isinstance(payload, CompactionCompleted):
        return block, payload.tokens
    tokens = payload.data.get("tokens") if isinstance(payload, UnknownPayload) else None
    # A later version may give "tokens" another meaning; copy it only if the column can hold it.
    return block, tokens if type(tokens) is int and 0 <= tokens <= LARGEST else None


def tokens_of(payload: Payload) -> int | None:
    """Return the tokens that an event's column holds."""
    return payload.tokens if type(payload) is BlockAppended else _block_and_tokens(payload)[1]


def encode_snapshot(snapshot: Snapshot) -> SnapshotDraft:
    """Validate and encode a snapshot. Keys keep their order: a hidden call's arguments are sent from it, byte for byte.

    Raises:
        InvalidBlock: its window starts nowhere, or it cannot be stored.
    """
    if not 1 <= snapshot.window_start <= LARGEST:
        raise InvalidBlock("snapshot", f"a window starts at version 1 or later, not {snapshot.window_start}")
    try:
        body = compact_json({name: getattr(snapshot, name) for name in Snapshot.model_fields})
    except ValueError as error:
        raise InvalidBlock("snapshot", str(error)) from None
    return SnapshotDraft(snapshot.version, snapshot.window_start, body)


def decode(conversation: str, row: Row, where: str) -> Event:
    """Read an event from its row; ``where`` names the store in the error.

    Raises:
        StoreTooNew: a later version of this library wrote it, with fields that this one does not know.
        StoreCorrupt: the row does not match its checksum, or its payload fits neither its type nor the columns that
            look-ups and plans read in its place.
    """
    position, version, event_id, type_, schema_version, at, payload, stored, *columns = row
    event = f"{where}: event {version} of conversation {conversation!r} (position {position})"
    place = f"{event} is damaged"
    if checksum(conversation, version, event_id, type_, schema_version, at, payload) != stored:
        raise StoreCorrupt(f"{place}: it does not match its checksum. {RESTORE}; other events can still be read.")
    try:
        decoded = decode_payload(type_, schema_version, payload)
        _check_columns(decoded, columns)
        moment = stored_instant(at) or utc(datetime.fromisoformat(at))
        return stored_event(UUID(event_id), moment, decoded, conversation, version, position, stored)
    except StoreTooNew as error:
        raise StoreTooNew(f"{event} is of a later version of timeline-engine: {error}. {_UPGRADE}") from None
    except (StoreCorrupt, ValueError, TypeError) as error:
        raise StoreCorrupt(f"{place}: {_first_line(error)}. {RESTORE}; other events can still be read.") from None


def decode_written(conversation: str, row: Row, where: str) -> WrittenEvent:
    """Check an event's row as `decode` does, without a value of each part; its salt, ``c`` and link come last in it.

    Raises:
        StoreCorrupt: as `decode`.
    """
    *own, salt, c, link = row
    _, version, id_, type_, schema_version, at, text, stored, path, turn_id, tokens = own
    c = given(salt, stored, c)
    if (
        type_ == _APPENDED
        and schema_version == BlockAppended.schema_version
        and checksum(conversation, version, id_, type_, schema_version, at, text) == stored
        and columns_of(text) == (path, turn_id, tokens)
        and is_written(id_, at)
        and stored_instant(at) is not None
    ):
        return WrittenEvent(version, id_, type_, schema_version, at, stored, salt, c, link, text, None)
    event = decode(conversation, tuple(own), where)
    place = (str(event.id), event.type, event.schema_version, instant_text(event.at), event.checksum)
    return WrittenEvent(version, *place, salt, c, link, text, event.payload)


def _check_columns(payload: Payload, columns: Sequence[object]) -> None:
    """Check path, turn and tokens of a row: no hash covers them, since the payload has them all."""
    path, turn_id, tokens = columns
    if type(payload) is BlockAppended:
        block: Block | None = payload.block
        counted: int | None = payload.tokens
    else:
        block, counted = _block_and_tokens(payload)
    if path != (block.path or None if block is not None else None):
        raise StoreCorrupt(f"its row has the path {path!r}, and its payload another one")
    if turn_id != (block.turn_id or None if block is not None else None):
        raise StoreCorrupt(f"its row has the turn {turn_id!r}, and its payload another one")
    if tokens != counted:
        raise StoreCorrupt(f"its row has {tokens} tokens, and its payload another number")


def decode_info(row: Row, where: str) -> ConversationInfo:
    """Read the row of a conversation.

    Its columns are key, id, version, window_start, title, parent, created_at, updated_at, base, first_version, the
    number of compactions and the time of the newest one.

    Raises:
        StoreCorrupt: a column holds an invalid value.
    """
    _, id_, version, window_start, title, parent, created_at, updated_at, base, first_version, *compacted = row
    compactions, last_compaction_at = compacted
    try:
        return ConversationInfo(
            id=id_,
            version=version,
            window_start=window_start,
            created_at=datetime.fromisoformat(created_at),
            updated_at=datetime.fromisoformat(updated_at),
            title=title,
            parent=None if parent is None else ParentLink.model_validate_json(parent),
            base=base,
            first_version=first_version,
            compactions=compactions,
            last_compaction_at=None if last_compaction_at is None else datetime.fromisoformat(last_compaction_at),
        )
    except (ValueError, TypeError) as error:
        place = f"{where}: the row of conversation {id_!r} is damaged"
        raise StoreCorrupt(f"{place}: {_first_line(error)}. {_ANEW}") from None


def has_hash(text: object, stored: str) -> bool:
    """Return whether a text has a hash. A damaged row may hold bytes in its place, which have none."""
    return isinstance(text, str) and sha256_hex(text) == stored


def decode_snapshot(conversation: str, body: str, stored: str, where: str) -> Snapshot:
    """Read a snapshot.

    Raises:
        StoreCorrupt: it does not match its checksum, or is no snapshot.
    """
    place = f"{where}: the snapshot of conversation {conversation!r} is damaged"
    if not has_hash(body, stored):
        raise StoreCorrupt(f"{place}: it does not match its checksum. {_ANEW}")
    try:
        return Snapshot.model_validate_json(body)
    except ValidationError as error:
        raise StoreCorrupt(f"{place}: {_first_line(error)}. {_ANEW}") from None


def decode_value(key: str, text: str, where: str) -> str:
    """Check a content-addressed value against its hash and return it.

    Raises:
        StoreCorrupt: the text has another hash.
    """
    if not has_hash(text, key):
        raise StoreCorrupt(f"{where}: the stored value {key} is damaged. {RESTORE}.")
    return text


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return error.errors(include_url=False)[0]["msg"]
    return str(error)
