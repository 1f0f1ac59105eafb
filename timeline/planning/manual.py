"""Plan the application's decisions about a single block and its group: hide, reveal, pin and unpin.

A pin applies to the whole atomic group, so that no cut divides it. Omitting a block omits its group, since no call may
stay without its result. A replacement changes only the named block: pairs stay pairs.
"""

from __future__ import annotations

from bisect import bisect
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from timeline.blocks import Note, StageDigest, ToolCall
from timeline.errors import BlockProtected, InvalidArgument
from timeline.events import BEHIND, BlocksHidden, BlocksPinned, BlocksRevealed, BlocksUnpinned, Replacement
from timeline.fold.counts import replaced_call_tokens
from timeline.fold.groups import atomic_groups
from timeline.frozen import repair_text
from timeline.planning.hidden_requests import left_unsaid
from timeline.planning.replacements import HIDDEN_KEY, replacement_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from timeline.fold.window import Hide, Item, State, Window
    from timeline.ports import TokenCounter

HideMode: TypeAlias = Literal["replace", "omit"]

REVEALED_FROM: Final[frozenset[State]] = frozenset({"hidden", "abridged", "omitted"})
"""The states from which a block can be shown again in full."""


def hide(
    window: Window, item: Item, *, mode: HideMode, text: str | None, most: int, counter: TokenCounter
) -> BlocksHidden:
    """Plan to hide a live block: show a replacement for it, or omit it with its group.

    Args:
        window: the window that holds it.
        item: the block.
        mode: show a replacement, or nothing.
        text: the caller's replacement; one is made unless given. For a call it becomes its only argument.
        most: cap of a made replacement, in tokens.
        counter: counts the replacement.

    Raises:
        BlockProtected: the block may not be hidden now.
        InvalidArgument: a text is given for a block that is to be omitted.
    """
    if mode == "omit":
        if text is not None:
            raise InvalidArgument("text", "an omitted block shows no text; leave out one of the two")
        members = group_of(window, item)
        for member in members:
            check_may_hide(window, member)
        return BlocksHidden(mode="omit", reason="manual", blocks=tuple(Replacement(version=i.version) for i in members))
    check_may_hide(window, item)
    blocks = (_replacement(window, item, text, most, counter),)
    return BlocksHidden(reason="manual", blocks=blocks, counter=counter.name, unsaid=left_unsaid(window.items, blocks))


def reveal(window: Window, item: Item) -> BlocksRevealed:
    """Plan to show a hidden or abridged block in full, and the omitted blocks of its group.

    An abandoned block comes back with all that was abandoned together with it, or after it with nothing appended in
    between: of two turns that `go_back` took one after the other, the one that it took last comes back alone. What a
    list or a session left bit by bit, with nothing appended in between, was abandoned together.

    Raises:
        BlockProtected: the block is shown in full, or was redacted.
    """
    if item.state not in REVEALED_FROM:
        raise BlockProtected(item.block.path, f"it is {item.state}, not hidden")
    why = item.hide if item.disowned else None
    together = group_of(window, item) if why is None else _disowned_with(window, why)
    omitted = [i.version for i in together if i.omitted]
    return BlocksRevealed(versions=tuple(sorted({item.version, *omitted})))


def pin(window: Window, item: Item) -> BlocksPinned:
    """Plan to pin a live block with its group: no compaction covers it, and no automatic decision hides it.

    Raises:
        BlockProtected: the block is a summary, which the next summary integrates.
    """
    if item.is_summary:
        raise BlockProtected(item.block.path, "a summary is integrated into the next one; pin a block, or add a note")
    return BlocksPinned(versions=tuple(i.version for i in group_of(window, item)))


def unpin(window: Window, item: Item) -> BlocksUnpinned:
    """Plan to unpin a live block and its group.

    Raises:
        BlockProtected: no decision pinned it.
    """
    members = [i for i in group_of(window, item) if i.pinned]
    if not members:
        raise BlockProtected(item.block.path, "no decision pinned it")
    return BlocksUnpinned(versions=tuple(i.version for i in members))


def group_of(window: Window, item: Item) -> list[Item]:
    """Return the live items of a block's atomic group, in timeline order."""
    position = next(p for p, other in enumerate(window.items) if other.version == item.version)
    group = next(g for g in atomic_groups(window.items) if position in g.indices)
    return [window.items[p] for p in group.indices]


def _disowned_with(window: Window, hide: Hide) -> list[Item]:
    """Return the live items that a decision disowned, and those of decisions with its reason right around it.

    What is before it is left out from the newest step on in which an application went back.
    """
    appended = sorted(item.version for item in window.items)
    apart = bisect(appended, hide.version)
    same = [(i, i.hide) for i in window.items if i.disowned and i.hide is not None and i.hide.reason == hide.reason]
    around = [(i, its) for i, its in same if bisect(appended, its.version) == apart]
    steps = {its.version for _, its in around if BEHIND in its.facts and its.version <= hide.version}
    first = hide.version if hide.version in steps else max(steps, default=0) + 1
    return [i for i, its in around if its.version >= first]


def check_may_hide(window: Window, item: Item) -> None:
    """Check that a decision may hide a live block.

    Raises:
        BlockProtected: it may not, now or ever; the error says why.
    """
    path = item.block.path
    if item.is_summary:
        raise BlockProtected(path, "it is a summary of covered blocks; undo its compaction instead")
    if item.redacted:
        raise BlockProtected(path, "its content was erased already")
    if isinstance(item.block, Note | StageDigest):
        raise BlockProtected(path, "notes and stage digests are kept in view")
    if item.pinned:
        raise BlockProtected(path, "it is pinned; unpin it first")
    if any(item.version == call.version for call in window.open_calls()):
        raise BlockProtected(path, "the call is still open; hide it when its result is there")


def _replacement(window: Window, item: Item, text: str | None, most: int, counter: TokenCounter) -> Replacement:
    if text is None:
        call = next((i.block for i in window.items if i.version == item.answers), None)
        return replacement_of(item, call, most, counter, address=window.address_of(item))
    text = repair_text(text)
    if isinstance(item.block, ToolCall):
        arguments: dict[str, JsonValue] = {HIDDEN_KEY: text}
        tokens = replaced_call_tokens(item.block, arguments, counter)
        return Replacement(version=item.version, arguments=arguments, tokens=tokens)
    return Replacement(version=item.version, text=text, tokens=counter.count(text))
