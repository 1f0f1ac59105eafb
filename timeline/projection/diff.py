"""Compare two contexts: the blocks that entered, left and changed, and the cause of a cache break.

The contexts are of one conversation, or of two: one was forked from the other, or both from a third.

The prefix is compared in the order of a provider's cache: tools, system prompt, then messages. The ephemeral tail and
the cache markers are left out: neither is part of the cached prefix.

A part of the next request is read from the cache of the one before, as in the cache savings of [prune_then_summarize].
A provider keeps the prefix before each marker: tools and system prompt, and all entries up to each cache point. It
reads the longest of these prefixes with which the next request begins, and processes the rest. Providers that match
prefixes without markers read at least as much; where the beginning changed, they read as little as the others.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from timeline.errors import InvalidArgument
from timeline.events.addresses import Address
from timeline.fold.states import states_of
from timeline.frozen import canonical_json, common_length, compact_json
from timeline.planning.costs import costs
from timeline.projection.cache_break import END, SAME, Cause, Piece, cause_of
from timeline.projection.summary_diff import SummaryDiff, SummaryRef, changed_lines
from timeline.wire import MESSAGE_KEYS, SENT, encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from timeline.fold.window import Item, Window
    from timeline.projection.context import RenderedContext
    from timeline.projection.explain import ContextBlock
    from timeline.wire.neutral import NeutralContext


@dataclass(frozen=True, slots=True)
class Reuse:
    """The tokens of a request that are read from the cache, and those that are processed: together all of it."""

    cached: int
    processed: int


def reuse(before: RenderedContext, after: RenderedContext) -> Reuse:
    """Return how much of a context the cache of the one before it answers, while that cache is warm.

    A cached prefix is found only if a marker of the new request is at most as far behind it as a provider looks back.
    """
    old, new = before.neutral, after.neutral
    if (old.tools, old.system) != (new.tools, new.system):
        return Reuse(0, after.account.sent)
    same = common_length(old.entries, new.entries, lambda one, other: one.hash == other.hash)
    lookback = after.policy.cache_points.lookback_blocks
    read = [
        point.index + 1
        for point in before.cache_points
        if point.index < same and any(0 <= p.index - point.index <= lookback for p in after.cache_points)
    ]
    fixed = after.account.fixed
    cached = fixed.tools + fixed.system + _tokens_up_to(after, max(read, default=0))
    return Reuse(cached, after.account.sent - cached)


def _tokens_up_to(context: RenderedContext, entries: int) -> int:
    """Count the messages' tokens up to a number of entries, as they are sent."""
    items = context.window.items
    as_sent = context.policy.model_copy(update={"abridged_counted_as": "shown"})
    spent = dict(zip((item.block.path for item in items), costs(items, as_sent), strict=True))
    return sum(spent[path] for path in dict.fromkeys(entry.path for entry in context.neutral.entries[:entries]))


_EXCERPT: Final = 48
"""Characters of an excerpt on either side of the first differing byte."""
_SYSTEM_KEYS: Final = ("system", "instructions", "system_instruction")
"""The keys of the system prompt in the wires' requests."""
_OF_BOTH: Final = frozenset({"appended", "tools", "system", "last_word"})
"""Causes that the requests show by themselves, even of two conversations."""
_LEAD: Final = 16
"""Characters of an excerpt in front of the first differing byte."""


@dataclass(frozen=True, slots=True)
class ContextRef:
    """One side of a comparison: its log, the version that it was projected from, its fingerprint, and its tokens."""

    conversation: str
    version: int
    fingerprint: str
    tokens: int


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A block that only one of the contexts has, as that context shows it: ``shown_tokens`` is what it sends of it.

    ``covered_by`` is the version of the summary that covers it in the other context, if there is one.
    """

    version: int
    path: str
    type: str
    turn_id: str
    state: str
    shown_tokens: int
    covered_by: int | None = None


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A block whose state or bytes differ between the contexts; ``reason`` is that of its state in the later one."""

    version: int
    path: str
    type: str
    turn_id: str
    before: str
    after: str
    before_tokens: int
    after_tokens: int
    bytes_changed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first difference of two requests: the piece on either side, the byte inside it, and excerpts of both.

    ``before_path`` and ``after_path`` are the paths of the blocks there; None for system prompt, tools and the end.
    """

    before_place: str
    after_place: str
    before_path: str | None
    after_path: str | None
    byte: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """The common prefix of both contexts in one form.

    Attributes:
        wire: the name of a wire format, or ``neutral`` for the context itself.
        before_bytes, after_bytes: of the whole: tools, system prompt and messages written piece by piece, a line each.
        common_bytes: bytes that are the same from the start.
        common_tokens: tokens of what is complete before the first difference: blocks, tools and system prompt.
        intact: whether the context before is a prefix of the one after, so that a provider's cache loses nothing.
        first_difference: None where the two are the same.
        cause: the probable cause of the difference.
    """

    wire: str
    before_bytes: int
    after_bytes: int
    common_bytes: int
    common_tokens: int
    intact: bool
    first_difference: FirstDifference | None
    cause: Cause


@dataclass(frozen=True, slots=True)
class ContextDiff:
    """The differences between two contexts.

    Attributes:
        conversation: id of the log of the context after, and mostly of both.
        before, after: the two contexts.
        differs: the names among ``system``, ``tools``, ``ephemeral`` and ``cache_points`` whose values differ.
        entered, left: blocks that only the context after, or only the one before, has; in order.
        changed: blocks whose state or bytes differ.
        prefixes: of the neutral context, and of each requested wire format.
        reuse: the tokens of the context after that the cache of the one before answers.
        summary: how the newest summary changed; None where both have the same one, or one of them has none.
    """

    conversation: str
    before: ContextRef
    after: ContextRef
    differs: tuple[str, ...]
    entered: tuple[BlockRow, ...] = field(repr=False)
    left: tuple[BlockRow, ...] = field(repr=False)
    changed: tuple[ChangedRow, ...] = field(repr=False)
    prefixes: tuple[Prefix, ...]
    reuse: Reuse
    summary: SummaryDiff | None = None

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape of `timeline diff --json`: the attributes by name."""
        return asdict(self)


def diff(
    before: RenderedContext,
    after: RenderedContext,
    *,
    wires: Sequence[str] = ("anthropic",),
    shared: int | None = None,
) -> ContextDiff:
    """Compare two contexts of a conversation, or of two.

    Args:
        before: the earlier one.
        after: the later one.
        wires: wire formats whose prefixes are compared besides the neutral one.
        shared: of contexts of two conversations, the last version that both logs have in common. Behind it a version,
            and a path, means another block in each.

    Raises:
        InvalidArgument: there is no such wire format, or its bytes are not sent to any provider.
    """
    parted = None if shared is None else Cause("forked", f"the conversations part after version {shared}", shared)
    entered, left, changed = _blocks(before, after, sys.maxsize if shared is None else shared)
    neutral = _prefix("neutral", before, after, _neutral_pieces, parted)
    names = ("system", "tools", "ephemeral", "cache_points")
    return ContextDiff(
        conversation=after.conversation,
        before=ContextRef(before.conversation, before.version, before.fingerprint, before.account.sent),
        after=ContextRef(after.conversation, after.version, after.fingerprint, after.account.sent),
        differs=tuple(n for n in names if getattr(before.neutral, n) != getattr(after.neutral, n)),
        entered=entered,
        left=left,
        changed=changed,
        prefixes=(neutral, *(_prefix(wire, before, after, _wire_pieces(wire), parted) for wire in wires)),
        reuse=reuse(before, after),
        summary=_summary(before.window, after.window),
    )


def _summary(before: Window, after: Window) -> SummaryDiff | None:
    """Compare the newest summaries of two windows."""
    old, new = before.summary, after.summary
    if old is None or new is None or old.block.text == new.block.text:
        return None
    sides = [SummaryRef(str(Address(i.version)), i.block.path, _number(w, i)) for w, i in ((before, old), (after, new))]
    return SummaryDiff(sides[0], sides[1], changed_lines(old.block.text, new.block.text))


def _number(window: Window, summary: Item) -> int:
    return next(made.round for made in window.summaries if made.block.path == summary.block.path)


class PrefixBreaks:
    """Finds why a context is no prefix of the next one. In a run of contexts, each is written only once."""

    def __init__(self) -> None:
        self._written: tuple[str, RenderedContext, list[Piece]] | None = None

    def between(self, before: RenderedContext, after: RenderedContext, wire: str) -> Cause | None:
        """Return why a context is no prefix of a later one on a wire; None where it is one.

        Where no provider gets the wire's bytes, the neutral forms are compared. Whether it is a prefix is tested first,
        since the cause of a difference takes several times as long to find.

        Raises:
            InvalidArgument: there is no such wire format.
        """
        pieces_of = _wire_pieces(wire) if wire in SENT else _neutral_pieces
        match self._written:
            case (written, context, pieces) if written == wire and context is before:
                old = pieces
            case _:
                old = pieces_of(before.neutral)
        new = pieces_of(after.neutral)
        self._written = wire, after, new
        same = common_length([piece.text for piece in old], [piece.text for piece in new])
        if same == len(old):
            return None
        was, now = (_at(pieces, same, c, pieces_of) for pieces, c in ((old, before), (new, after)))
        return cause_of(before, after, was, now)


def _blocks(
    before: RenderedContext, after: RenderedContext, shared: int
) -> tuple[tuple[BlockRow, ...], tuple[BlockRow, ...], tuple[ChangedRow, ...]]:
    """Compare the blocks by their paths, up to the last version that both logs share."""
    old, new = ({block.path: block for block in context.blocks} for context in (before, after))
    both = {path for path in old.keys() & new.keys() if new[path].version <= shared}
    entered = tuple(_row(block) for path, block in new.items() if path not in both)
    covering = _covering(after)
    left = tuple(
        _row(block, covering(block.version) if block.version <= shared else None)
        for path, block in old.items()
        if path not in both
    )
    old_bytes, new_bytes = _bytes(before), _bytes(after)
    changed = tuple(
        ChangedRow(
            version=block.version,
            path=path,
            type=block.type,
            turn_id=block.turn_id,
            before=old[path].state,
            after=block.state,
            before_tokens=old[path].shown_tokens,
            after_tokens=block.shown_tokens,
            bytes_changed=old_bytes.get(path) != new_bytes.get(path),
            reason=block.reason,
        )
        for path, block in new.items()
        if path in both and (old[path].state != block.state or old_bytes.get(path) != new_bytes.get(path))
    )
    return entered, left, changed


def _bytes(context: RenderedContext) -> dict[str, str]:
    """Return the bytes of each block's entries, by path; a summary may have several entries."""
    by_path: dict[str, str] = {}
    for entry in context.neutral.entries:
        by_path[entry.path] = by_path.get(entry.path, "") + entry.canonical
    return by_path


def _row(block: ContextBlock, covered_by: int | None = None) -> BlockRow:
    return BlockRow(block.version, block.path, block.type, block.turn_id, block.state, block.shown_tokens, covered_by)


def _covering(context: RenderedContext) -> Callable[[int], int | None]:
    """Return a function from a block's version to that of the summary which covers it in a context."""
    state = states_of(context.window)
    return lambda version: state(version)[1]


def _neutral_pieces(context: NeutralContext) -> list[Piece]:
    pieces = [Piece(f"tool {n}", canonical_json(tool)) for n, tool in enumerate(context.tools, start=1)]
    if context.system is not None:
        pieces.append(Piece("system prompt", canonical_json(context.system)))
    return pieces + [Piece("block", entry.canonical, entry.path) for entry in context.entries]


def _wire_pieces(wire: str) -> Callable[[NeutralContext], list[Piece]]:
    encode = encoder(wire)
    if wire not in SENT:
        raise InvalidArgument("wire", f"no provider gets the bytes of {wire!r}; compare one of {', '.join(SENT)}")

    def pieces(context: NeutralContext) -> list[Piece]:
        body = encode(context.model_copy(update={"cache_points": (), "ephemeral": ()}))
        return list(_body_pieces(body))

    return pieces


def _body_pieces(body: dict[str, Any]) -> Iterator[Piece]:
    """Yield the content parts of a request's body. Appending a part to a message changes no piece before it."""
    # Google's request has system prompt and tools inside its config, Bedrock's has the tools inside one of their own.
    fields = {**body.get("config", {}), **body.get("toolConfig", {}), **body}
    for number, tool in enumerate(fields.get("tools", ()), start=1):
        yield Piece(f"tool {number}", compact_json(tool))
    if system := next((fields[key] for key in _SYSTEM_KEYS if fields.get(key)), None):
        yield Piece("system prompt", compact_json(system))
    for number, message in enumerate(next((fields[key] for key in MESSAGE_KEYS if fields.get(key)), ()), start=1):
        place = "system prompt" if message.get("role") == "system" else f"message {number}"
        content = message.get(
            "content", message.get("parts", [])
        )  # items of OpenAI's Responses may be calls and results, all fields
        for part_number, part in enumerate(content if isinstance(content, list) else [content], start=1):
            yield Piece(f"{place}, part {part_number}", compact_json([message.get("role"), part]))
        if more := {key: value for key, value in message.items() if key not in {"role", "content", "parts"}}:
            yield Piece(place, compact_json(more))


def _prefix(
    wire: str,
    before: RenderedContext,
    after: RenderedContext,
    pieces_of: Callable[[NeutralContext], list[Piece]],
    parted: Cause | None,
) -> Prefix:
    old, new = pieces_of(before.neutral), pieces_of(after.neutral)
    same = common_length([piece.text for piece in old], [piece.text for piece in new])
    if same == len(old) == len(new):
        return Prefix(wire, _size(old), _size(new), _size(old), before.account.sent, True, None, SAME)
    was, now = (_at(pieces, same, c, pieces_of) for pieces, c in ((old, before), (new, after)))
    byte = common_length(was.text.encode(), now.text.encode())
    ended = same in {len(old), len(new)}  # one side has no newline behind the last common piece
    return Prefix(
        wire=wire,
        before_bytes=_size(old),
        after_bytes=_size(new),
        common_bytes=_size(old[:same]) + (1 if same and not ended else 0) + byte,
        common_tokens=_tokens(before, old[:same], was),
        intact=same == len(old),
        first_difference=FirstDifference(
            before_place=was.place,
            after_place=now.place,
            before_path=was.path,
            after_path=now.path,
            byte=byte,
            before=_excerpt(was.text, byte),
            after=_excerpt(now.text, byte),
        ),
        cause=_cause(before, after, (was, now), parted),
    )


def _cause(before: RenderedContext, after: RenderedContext, pieces: tuple[Piece, Piece], parted: Cause | None) -> Cause:
    """Return why the pieces differ. Behind a fork, no decision of one log explains the messages of the other."""
    found = cause_of(before, after, *pieces)
    return found if parted is None or found.kind in _OF_BOTH else parted


def _size(pieces: Sequence[Piece]) -> int:
    """Return the bytes of pieces as lines, without the last newline."""
    return sum(len(piece.text.encode()) + 1 for piece in pieces) - (1 if pieces else 0)


def _at(
    pieces: Sequence[Piece],
    index: int,
    context: RenderedContext,
    pieces_of: Callable[[NeutralContext], list[Piece]],
) -> Piece:
    """Return the piece at an index with the path of its block; an empty piece behind the last one.

    A wire puts results beside their calls, so a piece belongs to the entry that completes it: the first one with which
    the piece has its final text. Later entries change no earlier piece, so a binary search finds it.
    """
    if index >= len(pieces):
        return Piece(END, "")
    piece = pieces[index]
    if piece.path is not None or piece.place.startswith(("tool", "system")):
        return piece
    neutral = context.neutral

    def complete(count: int) -> bool:
        partial = pieces_of(neutral.model_copy(update={"entries": neutral.entries[:count]}))
        return len(partial) > index and partial[index].closed == piece.closed

    count = bisect_left(range(len(neutral.entries) + 1), True, key=complete)
    return piece._replace(path=neutral.entries[count - 1].path if count else None)


def _tokens(context: RenderedContext, same: Sequence[Piece], was: Piece) -> int:
    """Return the tokens before a difference: of complete tools and system prompt, then of the entries before it."""
    places = {piece.place for piece in same}
    fixed = context.account.fixed
    tokens = fixed.tools if sum(p.startswith("tool") for p in places) == len(context.neutral.tools) else 0
    tokens += fixed.system if any(p.startswith("system") for p in places) else 0
    if was.path is None and was.place != END:
        return tokens
    sizes = {block.path: block.shown_tokens for block in context.blocks}
    paths = [entry.path for entry in context.neutral.entries]
    whole = len(paths) if was.path is None else paths.index(was.path)
    return tokens + sum(sizes[path] for path in dict.fromkeys(paths[:whole]))  # a summary may have several entries


def _excerpt(text: str, byte: int) -> str:
    """Return the text around a byte, with an ellipsis where text is left out."""
    at = len(text.encode()[:byte].decode(errors="ignore"))
    first, last = max(0, at - _LEAD), at + _EXCERPT
    return ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")
