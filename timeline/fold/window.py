"""The window: the live items of a conversation in timeline order, as one frozen value.

A block's place is its own version; a live summary's place is the first version that it covers. Covered blocks are left
out, so that the window does not grow with the history. `timeline.fold.fold` makes windows from events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeGuard, TypeVar

from timeline.blocks import IN_TAIL, Note, RangeSummary, StageDigest, ToolCall, continues
from timeline.content.native import approved_call
from timeline.events import ABRIDGED, DISOWNED, REPEATED, Covers
from timeline.events.addresses import Address
from timeline.fold.changes import FormChange
from timeline.fold.state import NOTHING_YET

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import typing_extensions

    from timeline.blocks import Block
    from timeline.events import CompactionCompleted, PolicyOrigin, Replacement
    from timeline.fold.changes import Changes, Form
    from timeline.fold.reported import Reported
    from timeline.fold.stages import Stage
    from timeline.fold.state import FoldState, Lease, Recorded, Setback, Touch

    # Checkers know it, whether it is installed or not; the TypeVar of `typing` has a default from Python 3.13 on.
    B_co = typing_extensions.TypeVar("B_co", bound=Block, default=Block, covariant=True)
else:
    B_co = TypeVar("B_co", covariant=True)

State: TypeAlias = Literal["visible", "abridged", "hidden", "carried", "omitted", "covered", "redacted", "deleted"]
"""The one state of a block (design: Invariants). A live item is never ``covered`` or ``deleted``."""


TOMBSTONE: Final = "[redacted]"
"""The text shown for a redacted block."""
TOMBSTONE_TOKENS: Final = 5
"""The tokens that a redacted block still costs."""


FRAMEWORK_ID: Final = "framework_id"
"""The key in a block's ``meta`` of the id that a framework gave its message.

Every block from a framework's list has the key; its value is empty where the framework gave no id that lasts."""


@dataclass(frozen=True, slots=True)
class Hide:
    """The decision that hid blocks: the version of its event, its reason, its figures and its counter's name."""

    version: int
    reason: str
    facts: dict[str, int]
    counter: str = ""


class Item(NamedTuple, Generic[B_co]):
    """A live block and the decisions about it. To a type checker, `Item` is one of any block.

    It is a tuple, since one is made for every block that is appended or loaded: a frozen dataclass takes six times as
    long to make, and four times as long to change.

    Attributes:
        version: of the event that appended it.
        place: its key in timeline order: the version, or the first covered version of a summary.
        block: the block as it was appended.
        tokens: its count when shown in full.
        response: running number of the model response that it is part of or answers; 0 for none.
        answers: version of the call that a result answers; None for an orphan or late result, which is sent as text.
        carried: inside the covered range of the live summary, and kept verbatim after it.
        pinned: pinned by an event (notes and stage digests are pinned by their type).
        replacement: shown instead of the block while it is hidden or abridged; None where it is omitted.
        omitted: hidden without a replacement: nothing of it is shown.
        redacted: its content was erased.
        hide: the decision that hid it, while it is hidden, abridged or omitted.
        superseded: of a stage digest: a newer stage digest replaces it.
        counter: name of the counter of ``tokens``; empty where the log names none.
        undone_at: of reasoning: version of the undo that removed a summary in front of it.
        changed_at: version of the decision that last changed how it is shown; a summary's own version.
        changes: the earlier decisions about how it is shown, without the last one.
        revealed: a decision showed it again: no automatic decision hides it anew.
    """

    version: int
    place: int
    block: B_co
    tokens: int
    response: int = 0
    answers: int | None = None
    carried: bool = False
    pinned: bool = False
    replacement: Replacement | None = None
    omitted: bool = False
    redacted: bool = False
    changed_at: int = 0
    revealed: bool = False
    hide: Hide | None = None
    undone_at: int = 0
    superseded: bool = False
    counter: str = ""
    changes: Changes = ()

    @property
    def state(self) -> State:
        """The block's one state."""
        if self.redacted:
            return "redacted"
        if self.omitted:
            return "omitted"
        if self.replacement is not None:
            return "abridged" if self.hide is not None and self.hide.reason in ABRIDGED else "hidden"
        return "carried" if self.carried else "visible"

    @property
    def form(self) -> Form:
        """How it is shown since `changed_at`."""
        if self.omitted:
            return "omitted"
        if self.redacted:
            return "erased"
        return "whole" if self.replacement is None else "replaced"

    @property
    def changes_so_far(self) -> Changes:
        """The decisions about it so far, the last one included: the `changes` of the item that the next one makes."""
        is_decided = self.changed_at > self.version
        return (*self.changes, FormChange(self.changed_at, self.form)) if is_decided else ()

    @property
    def refers_to(self) -> tuple[int, ...]:
        """Versions of the blocks that show what is left out of it."""
        return () if self.replacement is None else self.replacement.repeats

    @property
    def is_repeat(self) -> bool:
        """Whether it is shown without passages that other blocks show."""
        return self.replacement is not None and self.hide is not None and self.hide.reason == REPEATED

    @property
    def is_in_sight(self) -> bool:
        """Whether all of it is in sight: sent in full or abridged, but not as a repeat that refers to no block now."""
        state = self.state
        return state in {"visible", "carried"} or (state == "abridged" and (not self.is_repeat or bool(self.refers_to)))

    def continues(self, before: Item | None) -> bool:
        """Return whether it is a further part of the user's message to which the item sent before it belongs."""
        return continues(self.block, None if before is None else before.block)

    @property
    def shown_tokens(self) -> int:
        """Its tokens as shown at its place: of the block, of its replacement, or 0."""
        if self.omitted or self.in_tail:
            return 0
        return self.tokens if self.replacement is None else self.replacement.tokens

    @property
    def in_tail(self) -> bool:
        """Whether it is a stage digest that is shown in the uncached tail, as long as it is the newest one."""
        return type(self.block) is StageDigest and IN_TAIL in self.block.meta

    @property
    def disowned(self) -> bool:
        """Whether it never happened for the agent: its framework rejected it, or left the branch that holds it."""
        return self.omitted and self.hide is not None and self.hide.reason in DISOWNED

    @property
    def unsent(self) -> bool:
        """Whether nothing of it is shown at its place, and it is part of no message."""
        return self.omitted or self.in_tail

    @property
    def is_summary(self) -> bool:
        """Whether it is a range summary."""
        return isinstance(self.block, RangeSummary)

    @property
    def keeps(self) -> bool:
        """Whether no compaction may cover it: it is pinned, a note, or the newest stage digest.

        Never true for a summary: the next one integrates it in any case.
        """
        if self.is_summary:
            return False
        kind = type(self.block)
        return self.pinned or kind is Note or (kind is StageDigest and not self.superseded)

    @property
    def order(self) -> tuple[int, int]:
        """Sort key of timeline order: a summary comes before the block at its place."""
        return (self.place, 0 if self.is_summary else 1)


def tombstone(block: Block, reason: str = "") -> Block:
    """Return a block with its content erased.

    It keeps its address, type, author and time, and, if it is a call that was approved, which one.
    """
    erased: dict[str, Any] = {"text": TOMBSTONE, "data": approved_call(block), "meta": {"redacted": reason}}
    for kept in (IN_TAIL, FRAMEWORK_ID):
        if kept in block.meta:
            erased["meta"][kept] = block.meta[kept]
    if isinstance(block, ToolCall):
        erased["arguments"] = {}
    return block.model_copy(update=erased)


def _reason(block: Block) -> str:
    """Return the reason in a block that is a tombstone already; empty for any other block."""
    reason = block.meta.get("redacted") if block.text == TOMBSTONE else None
    return reason if isinstance(reason, str) else ""


def redacted(item: Item, at: int) -> Item:
    """Return an item with its content erased by the event of version ``at``."""
    return item._replace(
        block=tombstone(item.block, _reason(item.block)),
        tokens=TOMBSTONE_TOKENS,
        replacement=None,
        hide=None,
        redacted=True,
        changed_at=at,
        changes=item.changes_so_far,
    )


def unabridged(item: Item) -> Item:
    """Return an item as if nothing had been left out of it; a hidden one stays as it is."""
    return item._replace(replacement=None, hide=None) if item.state == "abridged" else item


def replaced(item: Item, replacement: Replacement) -> Item:
    """Return an item as a planned hide would show it, and no longer abridged."""
    return item._replace(replacement=replacement, hide=None)


def restored(item: Item, at: int) -> Item:
    """Return an item that the event of version ``at`` shows in full again, as if nothing had been decided about it."""
    changes = item.changes_so_far
    return item._replace(replacement=None, omitted=False, revealed=False, hide=None, changed_at=at, changes=changes)


def revealed(item: Item, at: int) -> Item:
    """Return an item that the event of version ``at`` shows in full again, and no automatic decision hides anew."""
    return restored(item, at)._replace(revealed=True)


def unsent_calls(items: Iterable[Item]) -> set[int | None]:
    """Return the versions of the calls that are not sent, since their result is omitted."""
    return {item.answers for item in items if item.omitted}


@dataclass(frozen=True, slots=True)
class Window:
    """What the model could see now.

    Attributes:
        conversation: id of the log.
        version: of the last event folded; 0 before the first.
        items: live items in timeline order.
        summaries: the compactions whose summaries are live, oldest place first.
        turn_id: the current turn; empty before the first block.
        response: running number of the newest model response, or of the one to which the history went back, while its
            calls wait.
        state: the small fields; each one is also a property here.
        readable: a log holds the blocks, so that what is not shown can be read back; false for a list of messages.
    """

    conversation: str
    version: int = 0
    items: Sequence[Item] = ()
    summaries: tuple[CompactionCompleted, ...] = ()
    turn_id: str = ""
    response: int = 0
    state: FoldState = NOTHING_YET
    readable: bool = True

    def __repr__(self) -> str:
        held = f"{len(self.items)} items, {self.tokens:,} tokens, {len(self.summaries)} summaries"
        return f"<Window of {self.conversation!r}: version {self.version}, {held}>"

    def address_of(self, item: Item) -> str:
        """Return the address to print for an item; empty where nothing can be read back."""
        return str(Address(item.version)) if self.readable else ""

    @property
    def tokens(self) -> int:
        """Tokens of all items as shown."""
        return sum(item.shown_tokens for item in self.items)

    @property
    def window_start(self) -> int:
        """The lowest version of a visible block that is not carried; the next version when there is none."""
        own = [i.version for i in self.items if not i.carried and not i.is_summary]
        return min(own, default=self.version + 1)

    @property
    def summary(self) -> Item | None:
        """The newest live summary."""
        return max((i for i in self.items if i.is_summary), key=lambda i: i.version, default=None)

    @property
    def compaction(self) -> CompactionCompleted | None:
        """The compaction of the newest live summary."""
        return max(self.summaries, key=lambda compaction: compaction.round, default=None)

    @property
    def compactions(self) -> int:
        """How many compactions completed so far."""
        return self.state.compactions

    @property
    def setback(self) -> Setback | None:
        """The last refusal or failure since the last compaction."""
        return self.state.setback

    @property
    def policy(self) -> str | None:
        """Hash of the policy in force, when an event set one."""
        return self.state.policy

    @property
    def origin(self) -> PolicyOrigin | None:
        """What the policy in force was made from, where it was recorded."""
        return self.state.origin

    @property
    def overrides(self) -> tuple[str, ...]:
        """Hashes of the policies that writers worked under instead of the one in force, since that was set."""
        return self.state.overrides

    @property
    def rendered(self) -> Recorded | None:
        """The newest recorded context."""
        return self.state.rendered

    @property
    def touch(self) -> Touch | None:
        """The last use of the provider's cache; None before the first."""
        return self.state.touch

    @property
    def calls(self) -> int:
        """How many model calls were recorded so far, failed ones and retries included: the newest one's number."""
        return self.state.calls

    @property
    def reported(self) -> Reported:
        """How the provider counts, by the usage that the calls so far reported."""
        return self.state.reported

    @property
    def model(self) -> str:
        """Id of the model that was called last; empty where none is recorded."""
        return self.state.model

    @property
    def lease(self) -> Lease | None:
        """The compaction that a process is running, or abandoned without recording it."""
        return self.state.lease

    @property
    def hold(self) -> str | None:
        """Hash of the policy under which a compaction was taken back."""
        return self.state.hold

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The entered stages of the work, oldest first; the last one may be in progress."""
        return self.state.stages

    @property
    def is_held(self) -> bool:
        """Whether a compaction was taken back: no automatic one follows, whatever policy a writer works under."""
        return bool(self.state.hold)

    def covers_between(self, start: int, end: int) -> Covers:
        """Return the versions that a compaction of the items from ``start`` up to ``end`` covers.

        The compaction supersedes the live summaries among these items. ``summaries`` names them, and the summaries that
        they superseded earlier whose own version lies behind the range.

        The ranges leave out the versions inside them that this compaction does not cover:

        - of the summaries that are placed outside, and of the summaries that these superseded;
        - of the items that a superseded summary carries and that this compaction does not take.
        """
        taken = self.items[start:end]
        if not taken:
            return Covers(ranges=())
        last = self.items[end].place - 1 if end < len(self.items) else self.version
        live = {item.version: item.block.path for item in taken if item.is_summary}
        paths = set(live.values())
        # Extend the range before parting it: a superseded summary may cover versions behind the last taken item.
        last = max(
            [last, *(c.covers.ranges[-1][1] for c in self.summaries if c.block.path in paths and c.covers.ranges)]
        )
        earlier = {v for c in self.summaries if c.block.path in paths for v in c.covers.summaries if v > last}
        written = {item.block.path: item.version for item in self.items if item.is_summary}
        apart = {v for c in self.summaries if c.block.path not in paths for v in c.covers.summaries}
        apart.update(version for path, version in written.items() if path not in paths)
        apart.update(item.version for item in self.items[end:] if item.version <= last)
        return Covers(ranges=_parted(taken[0].place, last, apart), summaries=tuple(sorted({*live, *earlier})))

    def unanswered(self) -> tuple[Item[ToolCall], ...]:
        """Return the calls that no live result answers, oldest first; an omitted call waits for none."""
        answered = {i.answers for i in self.items if i.answers is not None}
        calls = (i for i in self.items if _is_call(i) and not i.disowned)
        return tuple(i for i in calls if i.version not in answered)

    def open_calls(self) -> tuple[Item[ToolCall], ...]:
        """Return the calls that may still get a result: of the newest response, or marked pending."""
        return tuple(i for i in self.unanswered() if i.response == self.response or i.block.pending)

    @property
    def speaking(self) -> bool:
        """Whether the newest response may still continue: the model spoke last, or one of its calls has no result.

        A wire sends a response and its results together. A block that is appended before they are complete is sent
        behind them, and each further block of the response would move it.
        """
        newest = next((item for item in reversed(self.items) if not item.disowned), None)
        if newest is not None and newest.answers is None and (newest.response or newest.block.author == "assistant"):
            return True
        return any(call.response == self.response for call in self.unanswered())


def _is_call(item: Item) -> TypeGuard[Item[ToolCall]]:
    return isinstance(item.block, ToolCall)


def _parted(first: int, last: int, apart: Collection[int]) -> tuple[tuple[int, int], ...]:
    """Return the ranges that are left of a range without the versions in ``apart``."""
    ranges: list[tuple[int, int]] = []
    for version in sorted(v for v in apart if first <= v <= last):
        if first < version:
            ranges.append((first, version - 1))
        first = version + 1
    return (*ranges, (first, last)) if first <= last else tuple(ranges)
