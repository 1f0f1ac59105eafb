"""The events of the log and their payloads; `timeline.events.encoding` writes and reads them as stored JSON.

A payload of a later version (an unknown type, or a later schema version of a known one) is kept as an `UnknownPayload`
and written back unchanged: reading a log never fails on it, and exporting loses nothing.
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
    from collections.abc import Iterable
    from datetime import datetime

    from timeline.blocks import Block


class Payload(Frozen):
    """The content of an event; ``type`` is the event's type."""

    schema_version: ClassVar[int] = 1
    type: str

    def dump(self) -> dict[str, Any]:
        """Return the JSON form that the log keeps, without defaults and without the type, which has its own column."""
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"type"})


class ParentLink(Frozen):
    """The origin of a conversation: a fork's parent, or the call that began a subagent.

    A fork with a version shares the parent's events up to that version, see `EventStore`; any other link is only a
    reference.
    """

    conversation: str
    version: int | None = None
    path: str | None = None
    relation: Literal["fork", "subagent"] = "subagent"


class PolicyOrigin(Frozen):
    """What a policy was made from: its name and, if a preset made it, the preset, its release and its arguments.

    Two policies of one preset with the same arguments are the same choice, even where a later release of the preset
    has other figures.
    """

    name: str = ""
    preset: str = ""
    """Empty for a policy that no preset made, or that was changed since."""
    release: int = 0
    """Number of the preset's figures: a release with other figures has a higher one; 0 without a preset."""
    arguments: dict[str, JsonValue] = {}
    """The preset's arguments as the caller gave them."""

    def same_choice(self, other: PolicyOrigin | None) -> bool:
        """Return whether one preset made both policies, with the same arguments, in whatever release."""
        if other is None or not self.preset:
            return False
        return (self.preset, self.arguments) == (other.preset, other.arguments)

    def in_words(self) -> str:
        """Return the policy's name, with its release if a preset made it."""
        return f"{self.name}, release {self.release}" if self.release else self.name


class ConversationOpened(Payload):
    """The first event of every conversation.

    It records the policy (its hash; the text is a content-addressed value) unless nobody chose one, as for an imported
    recording, or a fork's past names it.
    """

    type: Literal["conversation.opened"] = "conversation.opened"
    title: str = ""
    parent: ParentLink | None = None
    source: str = ""
    """The recording format of an imported conversation."""
    policy: str | None = None
    origin: PolicyOrigin | None = None


class BlockAppended(Payload):
    """A block, with its tokens under the counter of that name."""

    type: Literal["block.appended"] = "block.appended"
    block: AnyBlock
    tokens: int
    counter: str

    def dump(self) -> dict[str, Any]:
        """Return the JSON form; the block's own dump keeps its type."""
        return {"block": self.block.dump(), "counter": self.counter, "tokens": self.tokens}


CompactReason: TypeAlias = Literal["over_trigger", "cold", "forced", "refused", "run_end", "imported"]
"""Why: above the trigger; the cache went cold; by request; the model refused the context; end of a run; recorded."""
FORCED: Final = frozenset({"forced", "refused"})
"""Reasons that compact however small the context is, and even after an undo."""


class Replacement(Frozen):
    """The content shown instead of a hidden block: a text, or an arguments object for a call."""

    version: int
    text: str = ""
    arguments: dict[str, JsonValue] | None = None
    tokens: int = 0
    repeats: tuple[int, ...] = ()
    """Versions of the blocks in sight that show what the text leaves out; empty where nothing in sight does."""


class Pruned(Frozen):
    """The outcome of hiding as a step of a compaction, for readers of the log (prune-then-summarize design).

    Token figures count the messages.
    """

    reason: CompactReason
    outputs: int = 0
    """Number of hidden tool results; ``tools`` are the tools' names, each once."""
    tools: tuple[str, ...] = ()
    saved_tokens: int = 0
    before_tokens: int = 0
    """Tokens when the compaction began, which may be before this step."""
    after_tokens: int = 0
    limit: int = 0
    continues: bool = False
    """Whether another step of the same compaction came before."""
    goes_on: bool = False
    """Whether hiding was not enough, so that a covering step follows."""
    duration: float | None = None
    """Seconds from the compaction's start to this event, by a monotonic clock; None where that was not measured."""


REJECTED: Final = "rejected"
"""Reason of an omission: a reply that the framework of an agent did not accept."""
ABANDONED: Final = "abandoned"
"""Reason of an omission: a tail that the history of an agent's framework left."""
BEHIND: Final = "behind"
"""Figure of an omission: the version behind which an application went back, by name. That is a step of its own; what a
framework's list or session left bit by bit has no such figure."""
REPEATED: Final = "repeated"
"""Reason of a hide: what the block repeats is in sight."""
NUMBERED: Final = "numbered"
"""Reason of a hide: the numbers of lines that are left out follow from those that are shown."""
ABRIDGED: Final = frozenset({REPEATED, NUMBERED})
"""Reasons of hides that take nothing out of sight. The block was never sent otherwise, so no prefix is changed."""
DISOWNED: Final = frozenset({REJECTED, ABANDONED})
"""Reasons of omissions of what never happened, for the agent: people see it, no model and no summary does."""


class BlocksHidden(Payload):
    """Hide blocks from here on: they are shown as their replacement, abridged, or omitted."""

    type: Literal["blocks.hidden"] = "blocks.hidden"
    mode: Literal["replace", "omit"] = "replace"
    reason: str
    blocks: tuple[Replacement, ...]
    facts: dict[str, int] = {}
    """The figures behind the decision, by name, in seconds and tokens."""
    pruned: Pruned | None = None
    """None for blocks hidden by hand, and for the previews that come with a summary."""
    counter: str = ""
    """Name of the counter of the replacements' tokens; empty in logs of earlier versions: that of their blocks."""
    unsaid: tuple[int, ...] = ()
    """Versions of the hidden prompts whose replacement does not say all of them. Empty in logs of earlier versions,
    which did not look, and for omissions."""

    @property
    def state(self) -> Literal["abridged", "hidden", "omitted"]:
        """The state of its blocks from here on, unless their content was erased before."""
        if self.mode == "omit":
            return "omitted"
        return "abridged" if self.reason in ABRIDGED else "hidden"


class BlocksRevealed(Payload):
    """Show hidden blocks again."""

    type: Literal["blocks.revealed"] = "blocks.revealed"
    versions: tuple[int, ...]
    reason: Literal["manual", "restored"] = "manual"
    """By request; or since what the blocks referred to is out of sight, which does not keep a later hide from them."""


class BlocksPinned(Payload):
    """Pin blocks: they and their groups are never covered or hidden."""

    type: Literal["blocks.pinned"] = "blocks.pinned"
    versions: tuple[int, ...]


class BlocksUnpinned(Payload):
    """Remove the pins of blocks."""

    type: Literal["blocks.unpinned"] = "blocks.unpinned"
    versions: tuple[int, ...]


class Rewritten(Frozen):
    """An event whose stored payload was replaced: its version, and its checksum now."""

    version: int
    checksum: str


class BlockRedacted(Payload):
    """A block's content was erased; a tombstone stays.

    ``version`` is the block's. It is 0 where no block went: words were taken out of other events, or of texts that
    events name by their hash.
    """

    type: Literal["block.redacted"] = "block.redacted"
    version: int
    reason: str = ""
    erased: bool = False
    """Whether the content was overwritten where it was stored. False in logs of earlier releases, and for a fork of a
    past in which only the fold hides the block."""
    rewritten: tuple[Rewritten, ...] = ()
    """The events that the redaction wrote anew, those too that this conversation shares with its parents, so that it is
    proved also where they are without what they appended later. No other stored payload is not the appended one.
    Several redactions of one append share one list, at the first of them."""


class Covers(Frozen):
    """The versions that a compaction covers: disjoint, rising, inclusive ranges, and the superseded summaries."""

    ranges: tuple[tuple[int, int], ...]
    summaries: tuple[int, ...] = ()

    def __contains__(self, version: int) -> bool:
        """Return whether a version lies in one of the ranges or is a superseded summary."""
        for first, last in self.ranges:  # asked for each fact of a history: a generator takes three times as long
            if first <= version <= last:
                return True
        return version in self.summaries

    def includes(self, other: Covers) -> bool:
        """Return whether all versions of another one are here."""
        ranges = (any(a <= first and last <= b for a, b in self.ranges) for first, last in other.ranges)
        return all(ranges) and all(version in self for version in other.summaries)

    def without(self, versions: Iterable[int]) -> Covers:
        """Return these versions without others."""
        left = list(self.ranges)
        for version in versions:
            left = [part for first, last in left for part in _divided(first, last, version)]
        return self.model_copy(update={"ranges": tuple(left)})


def _divided(first: int, last: int, version: int) -> list[tuple[int, int]]:
    """Return what is left of a range without a version of it, if that is one of it."""
    if not first <= version <= last:
        return [(first, last)]
    return [(a, b) for a, b in ((first, version - 1), (version + 1, last)) if a <= b]


class SummaryParts(Frozen):
    """The two halves of a summary: finished history, and the prefix of the turn that the cut split."""

    history: str = ""
    turn_prefix: str = ""


WRITTEN_ANEW: Final = "written anew after a redaction, from what is left"
"""``fallback_reason`` of a summary whose first text held what was redacted."""
NOBODY: Final = "none"
"""The ``summarizer`` of a compaction for which no summary was due."""


class WrittenBy(Frozen):
    """The author of a summary.

    ``fallback_reason`` is why the first choice did not write it. ``usage`` is the reported usage of all model calls for
    it, unusable answers included; None where no usage was reported. ``duration`` is how many seconds the summarizers
    took; None where that was not measured. ``repaired`` says which names the author had invented, and what became of
    them; None where there were none, or where the policy accepts them. ``asked`` says whether a model was asked in the
    cached context, for one of the parts at least; ``alone_because`` why it was not, where the policy has it so.
    """

    summarizer: str
    model: str | None = None
    prompt_version: str | None = None
    fallback_reason: str | None = None
    usage: Usage | None = None
    duration: float | None = None
    repaired: str | None = None
    asked: Literal["alone", "in_cache"] = "alone"
    alone_because: str | None = None


class CompactionCompleted(Payload):
    """A compaction: its summary block, the covered versions and the carried blocks.

    The event's version is the summary block's own version. ``digest`` is of what it newly covers; `Timeline.read` fills
    it into the block's ``meta.compaction_digest``, of which events of earlier versions hold a shortened copy.
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
    """Number and size of all blocks that the summary replaces, including those that superseded summaries covered.

    0 where it was not recorded."""
    least_progress: int = 0
    """Tokens that its policy required it to free."""
    messages: int = 0
    """Number of messages that it replaced; 0 where it was not recorded."""
    pruned_tokens: int = 0
    """Tokens that hiding freed earlier in the same compaction."""
    written_by: WrittenBy
    none_due: bool = False
    """No summary was due, and ``written_by`` is `NOBODY`: the model was never shown the newly covered blocks (failed
    responses, omitted blocks, earlier stage digests), or they are only an earlier summary, which is kept."""
    digest: Digest = Digest()
    unsaid: tuple[int, ...] = ()
    """Versions of the covered prompts, of earlier compactions too, of which the new context neither says nor lists
    everything. Empty in logs of earlier versions, which did not look."""
    lease: int | None = None
    """Version of the `CompactionStarted` whose lease it was written under."""
    duration: float | None = None
    """Seconds from its start to this event, by a monotonic clock; None where that was not measured."""

    def dump(self) -> dict[str, Any]:
        """Return the JSON form; the block's own dump keeps its type."""
        return {**super().dump(), "block": self.block.dump()}


class CompactionReverted(Payload):
    """Undo compactions, newest first: the log folds as if they had never been made.

    No automatic compaction follows, under whatever policy a writer has, until a compaction is forced or the
    conversation's policy is changed. ``policy`` is the hash of the policy that the undo was made under.
    """

    type: Literal["compaction.reverted"] = "compaction.reverted"
    versions: tuple[int, ...]
    """Versions of the `CompactionCompleted` events."""
    policy: str = ""


class PolicyChanged(Payload):
    """Put another policy in force from here on, for everybody; its text is a content-addressed value.

    With ``adopted`` it names the policy of a log that named none before: that changes nothing, so an undo's hold stays.
    """

    type: Literal["policy.changed"] = "policy.changed"
    policy: str
    origin: PolicyOrigin | None = None
    adopted: bool = False


class CallRequest(Frozen):
    """The request of a model call, as far as the log cannot give it: the body is built again from the log.

    ``parameters`` are the keys of the body that the caller added, in their order; ``sha256`` is that of the body as
    compact JSON.
    """

    wire: str
    encoder: int
    """Number of the wire's encoder: another one may write the same context in other bytes."""
    model: str = ""
    parameters: dict[str, JsonValue] = {}
    sha256: str
    body: Literal["ours", "framework"] = "ours"
    """Whether that body was sent, or one that a framework made of the same context by itself."""


class ModelCalled(Payload):
    """A model call: its usage, how it ended, and the version of the render that it answers.

    A failed call counts as one: its ``finish_reason`` is ``error``.
    """

    type: Literal["model.called"] = "model.called"
    model: str = ""
    response_id: str | None = None
    usage: Usage = Usage()
    finish_reason: str | None = None
    started_at: Instant | None = None
    answers: int | None = None
    duration: float | None = None
    """Seconds from the request to the last of the reply, by a monotonic clock; None where that was not measured."""
    request: CallRequest | None = None
    """None where the application did not say what it sent."""
    error: str = ""
    """First words of the error of a failed call."""
    server_tools: bool = False
    """Tools of the provider's server ran, or it compacted: the usage counts the context as often as it was read."""


class ContextRendered(Payload):
    """A context as it was sent: enough to build it again byte for byte (design: Invariants).

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
    """The tokens compared with ``limit``: those sent, and the reserves; 0 where it was not recorded."""
    limit: int = 0
    ratio: float = 1.0
    """What the counter's tokens were multiplied by in these figures: the provider's tokens for one of them."""
    counted: int = 0
    """The text that was sent in the counter's own tokens; 0 where it was not recorded."""
    media: int = 0
    """Estimated tokens of the pictures and documents that were sent, which no vocabulary counts."""
    provider: int = 0
    """Tokens in the figures that only the provider counts, see `timeline.planning.account.FixedPart`."""


class UnknownPayload(Payload):
    """A payload of a later version of this library, kept unchanged."""

    type: str
    data: dict[str, JsonValue]
    stored_schema_version: int = 1

    def dump(self) -> dict[str, Any]:
        """Return the payload as it was read."""
        return dict(self.data)


class NewEvent(Frozen):
    """An event to be appended. Its id makes a retry of the same append harmless."""

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
_EVENT: Final = {*_NEW_EVENT, "conversation", "version", "position", "checksum"}


def block_appended(block: Block, tokens: int, counter: str) -> BlockAppended:
    """Make the payload of a block that was validated when it was built."""
    fields = {"type": "block.appended", "block": block, "tokens": tokens, "counter": counter}
    return unchecked(BlockAppended, fields, _BLOCK_APPENDED)


def new_event(id_: UUID, at: datetime, payload: Payload) -> NewEvent:
    """Make an event of parts that were validated before; ``at`` is in UTC."""
    return unchecked(NewEvent, {"id": id_, "at": at, "payload": payload}, _NEW_EVENT)


def stored_event(  # noqa: PLR0917 - the parts of an event
    id_: UUID, at: datetime, payload: Payload, conversation: str, version: int, position: int, checksum: str
) -> Event:
    """Make a record of the log of parts that were validated before; ``at`` is in UTC."""
    fields = {
        "id": id_,
        "at": at,
        "payload": payload,
        "conversation": conversation,
        "version": version,
        "position": position,
        "checksum": checksum,
    }
    return unchecked(Event, fields, _EVENT)


def event_id(at: datetime) -> UUID:
    """Make a UUIDv7: milliseconds of ``at``, then randomness."""
    return _uuid7(_milliseconds(at), secrets.randbits(74))


def event_ids(at: datetime, count: int) -> list[UUID]:
    """Make several UUIDv7 of one moment, in rising order; randomness is read once for all of them."""
    milliseconds, first = _milliseconds(at), secrets.randbits(73)
    return [_uuid7(milliseconds, bits) for bits in range(first, first + count)]


def derived_event_id(at: datetime, *parts: str) -> UUID:
    """Make the UUIDv7 that belongs to a recorded item, so that importing the item again gives the same id."""
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
