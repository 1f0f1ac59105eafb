"""Events: the records of the log and their payloads; `timeline.events.encoding` writes and reads them as stored JSON.

A payload that this version does not know (a later type, or a later schema version of a known one) is kept as an
`UnknownPayload` and written back unchanged: reading a log never fails for it, and exporting loses nothing.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias
from uuid import UUID

from pydantic import JsonValue

from timeline.blocks import AnyBlock, Instant, RangeSummary, newer_block
from timeline.digest import Digest
from timeline.frozen import Frozen, canonical_json, sha256_hex, unchecked
from timeline.usage import Usage

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.blocks import Block


class Payload(Frozen):
    """What an event says; ``type`` is the event's type."""

    schema_version: ClassVar[int] = 1
    type: str

    def dump(self) -> dict[str, Any]:
        """Return the JSON form that the log keeps, without the type (it has a column of its own) and defaults."""
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"type"})


class ParentLink(Frozen):
    """Where a conversation comes from: a fork, or a subagent's call.

    A fork with a version shares the parent's events up to it, see `EventStore`; any other link is a mere reference.
    """

    conversation: str
    version: int | None = None
    path: str | None = None
    relation: Literal["fork", "subagent"] = "subagent"


class ConversationOpened(Payload):
    """First event of every conversation."""

    type: Literal["conversation.opened"] = "conversation.opened"
    title: str = ""
    parent: ParentLink | None = None
    source: str = ""
    """Where an imported conversation was recorded: the format's name."""


class BlockAppended(Payload):
    """One block, with its tokens under the counter of that name; the count is never taken again."""

    type: Literal["block.appended"] = "block.appended"
    block: AnyBlock
    tokens: int
    counter: str

    def dump(self) -> dict[str, Any]:
        """Return the JSON form; the block's own dump keeps its type."""
        return {"block": self.block.dump(), "counter": self.counter, "tokens": self.tokens}


CompactReason: TypeAlias = Literal["over_trigger", "cold", "forced", "refused", "run_end", "imported"]
"""Why: above the trigger; the cache went cold; told to; the model refused the context; the end of a run; recorded."""
FORCED: Final = frozenset({"forced", "refused"})
"""Reasons for which something is covered however small the context is, and although it was taken back before."""


class Replacement(Frozen):
    """What is shown instead of a hidden block: a text, or an arguments object for a call."""

    version: int
    text: str = ""
    arguments: dict[str, JsonValue] | None = None
    tokens: int = 0


class Pruned(Frozen):
    """What hiding was as a step of a compaction, for whoever follows it (seed 004). Tokens are of the messages."""

    reason: CompactReason
    outputs: int = 0
    """How many tools' results were hidden; ``tools`` are the names, each once."""
    tools: tuple[str, ...] = ()
    saved_tokens: int = 0
    before_tokens: int = 0
    """When the compaction began, of which this may not be the first step."""
    after_tokens: int = 0
    limit: int = 0
    continues: bool = False
    """Another step of the same compaction came before."""
    goes_on: bool = False
    """It was not enough: a step that covers something follows."""


class BlocksHidden(Payload):
    """Blocks are hidden from now on: shown as their replacement, or omitted."""

    type: Literal["blocks.hidden"] = "blocks.hidden"
    mode: Literal["replace", "omit"] = "replace"
    reason: str
    blocks: tuple[Replacement, ...]
    facts: dict[str, int] = {}
    """The figures behind the decision, by name: seconds and tokens."""
    pruned: Pruned | None = None
    """None where somebody hid them by hand, and where they are previews that a summary brought."""


class BlocksRevealed(Payload):
    """Hidden blocks are shown again."""

    type: Literal["blocks.revealed"] = "blocks.revealed"
    versions: tuple[int, ...]


class BlocksPinned(Payload):
    """Blocks, with their groups, are never covered or hidden."""

    type: Literal["blocks.pinned"] = "blocks.pinned"
    versions: tuple[int, ...]


class BlocksUnpinned(Payload):
    """The pins of blocks are taken off."""

    type: Literal["blocks.unpinned"] = "blocks.unpinned"
    versions: tuple[int, ...]


class BlockRedacted(Payload):
    """A block's content was erased; a tombstone stays."""

    type: Literal["block.redacted"] = "block.redacted"
    version: int
    reason: str = ""


class Covers(Frozen):
    """What a compaction covers: disjoint, rising, inclusive version ranges, and the summaries that it supersedes."""

    ranges: tuple[tuple[int, int], ...]
    summaries: tuple[int, ...] = ()

    def __contains__(self, version: int) -> bool:
        """Say whether a version lies in one of the ranges or is a superseded summary."""
        return version in self.summaries or any(first <= version <= last for first, last in self.ranges)


class SummaryParts(Frozen):
    """The two halves of a summary: finished history, and the prefix of the turn that the cut split."""

    history: str = ""
    turn_prefix: str = ""


NOBODY: Final = "none"
"""The ``summarizer`` of a compaction for which no summary was due."""


class WrittenBy(Frozen):
    """Who wrote a summary.

    ``fallback_reason`` says why it was not the first choice; ``usage`` is what all model calls for it were reported to
    have taken, those included whose answers could not be used; None where nobody reported any.
    """

    summarizer: str
    model: str | None = None
    prompt_version: str | None = None
    fallback_reason: str | None = None
    usage: Usage | None = None


class CompactionCompleted(Payload):
    """A compaction: its summary block, what it covers, and what it carries. The block stands in the log here.

    ``digest`` is the full one; the block's ``meta.compaction_digest`` is its shortened copy.
    """

    type: Literal["compaction.completed"] = "compaction.completed"
    block: RangeSummary
    tokens: int
    counter: str
    covers: Covers
    carried: tuple[int, ...] = ()
    parts: SummaryParts = SummaryParts()
    split_turn_id: str | None = None
    round: int = 1
    reason: CompactReason = "over_trigger"
    source: Literal["engine", "imported"] = "engine"
    keep_recent_tokens: int = 0
    target_missed: bool = False
    before_tokens: int = 0
    after_tokens: int = 0
    compacted_tokens: int = 0
    covered_blocks: int = 0
    covered_tokens: int = 0
    """Of all that the summary stands for, what superseded ones covered included: how many blocks, and their own size.

    0 where it was not recorded."""
    least_progress: int = 0
    """What it had to free by its policy, in tokens."""
    messages: int = 0
    """How many messages it took the place of; 0 where it was not recorded."""
    pruned_tokens: int = 0
    """What hiding freed before it, in the same compaction."""
    written_by: WrittenBy
    none_due: bool = False
    """No summary was due, and ``written_by`` is `NOBODY`: of what it newly covers the model was shown nothing (failed
    responses, omitted blocks, earlier stage digests), or only an earlier summary, which is kept."""
    digest: Digest = Digest()
    lease: int | None = None
    """Version of the `CompactionStarted` that it was written under."""

    def dump(self) -> dict[str, Any]:
        """Return the JSON form; the block's own dump keeps its type."""
        return {**super().dump(), "block": self.block.dump()}


class CompactionReverted(Payload):
    """Compactions are taken back, newest first: the log folds as if they had never been made.

    What they covered is on hold under the policy (its hash): no automatic compaction until one is forced, or another
    policy is in force.
    """

    type: Literal["compaction.reverted"] = "compaction.reverted"
    versions: tuple[int, ...]
    """Versions of the `CompactionCompleted` events."""
    policy: str = ""


class PolicyChanged(Payload):
    """From now on another policy is in force; its text is a content-addressed value."""

    type: Literal["policy.changed"] = "policy.changed"
    policy: str


class ModelCalled(Payload):
    """A model call: usage, how it ended, and the version of the render that it answers."""

    type: Literal["model.called"] = "model.called"
    model: str = ""
    response_id: str | None = None
    usage: Usage = Usage()
    finish_reason: str | None = None
    started_at: Instant | None = None
    answers: int | None = None


class ContextRendered(Payload):
    """A context as it was sent: enough to build it again byte for byte (design, invariant 5).

    ``version`` is the log's version that it was projected from. ``policy``, ``system``, ``tools`` and ``ephemeral`` are
    hashes of content-addressed values; with ``record = "hash"`` the values themselves were not stored.
    """

    type: Literal["context.rendered"] = "context.rendered"
    version: int
    projection: int
    fingerprint: str
    policy: str
    system: str | None = None
    tools: str | None = None
    ephemeral: str | None = None
    record: Literal["full", "hash"] = "full"
    tokens: int = 0
    overflow: bool = False
    total: int = 0
    """What is held against ``limit``: the tokens sent, and the reserves; 0 where it was not recorded."""
    limit: int = 0


class UnknownPayload(Payload):
    """A payload of a later version of this library, kept as it is."""

    type: str
    data: dict[str, JsonValue]
    stored_schema_version: int = 1

    def dump(self) -> dict[str, Any]:
        """Return what was read."""
        return dict(self.data)


class NewEvent(Frozen):
    """An event on its way to the log. The id makes a retry of the same append harmless."""

    id: UUID
    at: Instant
    payload: Payload

    @property
    def type(self) -> str:
        """The event's type."""
        return self.payload.type

    @property
    def schema_version(self) -> int:
        """The schema version that the payload is written in."""
        return (
            self.payload.stored_schema_version
            if isinstance(self.payload, UnknownPayload)
            else self.payload.schema_version
        )


class Event(NewEvent):
    """A record of the log.

    Attributes:
        conversation: the log that it belongs to.
        version: 1, 2, 3 … without gaps in a conversation.
        position: rising over the whole store, with possible gaps.
        checksum: sha256 over conversation, version, id, type, schema version, time and payload text.
    """

    conversation: str
    version: int
    position: int
    checksum: str


_BLOCK_APPENDED: Final = {"block", "tokens", "counter"}
_NEW_EVENT: Final = {"id", "at", "payload"}


def block_appended(block: Block, tokens: int, counter: str) -> BlockAppended:
    """Make the payload of a block that was checked when it was made."""
    fields = {"type": "block.appended", "block": block, "tokens": tokens, "counter": counter}
    return unchecked(BlockAppended, fields, _BLOCK_APPENDED)


def new_event(id_: UUID, at: datetime, payload: Payload) -> NewEvent:
    """Make an event of parts that were checked before; ``at`` is in UTC."""
    return unchecked(NewEvent, {"id": id_, "at": at, "payload": payload}, _NEW_EVENT)


def event_id(at: datetime) -> UUID:
    """Make a UUIDv7: milliseconds of ``at``, then randomness."""
    return _uuid7(_milliseconds(at), secrets.randbits(74))


def event_ids(at: datetime, count: int) -> list[UUID]:
    """Make several UUIDv7 of one moment, which rise in their order; randomness is asked for once."""
    milliseconds, first = _milliseconds(at), secrets.randbits(73)
    return [_uuid7(milliseconds, bits) for bits in range(first, first + count)]


def derived_event_id(at: datetime, *parts: str) -> UUID:
    """Make the UUIDv7 that belongs to a recorded thing: importing it again gives the same id."""
    return _uuid7(_milliseconds(at), int(sha256_hex(canonical_json(parts)), 16) & ((1 << 74) - 1))


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000) & ((1 << 48) - 1)


def _uuid7(milliseconds: int, bits: int) -> UUID:
    return UUID(int=(milliseconds << 80) | (7 << 76) | ((bits >> 62) << 64) | (0b10 << 62) | (bits & ((1 << 62) - 1)))


def appended_block(payload: Payload) -> Block | None:
    """Return the block that an event adds to the timeline, or None."""
    if isinstance(payload, BlockAppended | CompactionCompleted):
        return payload.block
    if isinstance(payload, UnknownPayload):
        block = payload.data.get("block")
        return newer_block(block) if isinstance(block, dict) else None
    return None
