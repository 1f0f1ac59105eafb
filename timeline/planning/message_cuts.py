"""Choose the cut of a summary by counting messages, turns or shares of them, and plan the compaction before it.

These are the cuts of the designs [priority_chain], [keep_last], [keep_ratio] and [prune_then_summarize]. Each cut moves
back from its design's boundary until it divides no atomic group, as the designs do for a tool pair. With parallel calls
it moves back to the message that made them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from timeline.blocks import UserPrompt
from timeline.fold.groups import boundaries
from timeline.planning.messages import messages
from timeline.planning.summary_requests import is_message_summary
from timeline.policy.steps import KeepLast, KeepRatio, KeepTurns, Oldest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.groups import Group
    from timeline.fold.window import Item, Window
    from timeline.planning.messages import Message
    from timeline.planning.plans import Plan, Refusal
    from timeline.planning.ranges import Ranges
    from timeline.policy.steps import MessageCut


def plan_message_cut(ranges: Ranges, cut: MessageCut) -> Plan | Refusal | None:
    """Plan one summary of all items before a cut, within its scope; None where there are none."""
    start = cut_start(cut, ranges.window, ranges.groups)
    end = cut_end(cut, ranges.items, ranges.groups, start)
    return None if end is None else plan_before(ranges, cut, start, end)


def plan_before(ranges: Ranges, cut: MessageCut, start: int, end: int) -> Plan | Refusal | None:
    """Plan one summary of the items of a range; None where a cut leaves it nothing to summarise."""
    first = _first_message(ranges) if isinstance(cut, KeepLast) else None
    taken = ranges.stretch(start, end, first=first if first is not None and first < end else None)
    if first is not None and not taken.covered:
        return None
    if isinstance(cut, KeepLast) and _is_summary_alone(ranges, taken.covered):
        return None
    previews = ranges.preview_carried(taken, whole=taken.ahead)
    if ranges.total(taken.after - ranges.saved(previews)) > ranges.before.limit:
        previews = ranges.preview_carried(taken)
    return ranges.judged(ranges.plan(taken, previews))


def _is_summary_alone(ranges: Ranges, covered: Sequence[int]) -> bool:
    """Return whether all that would be covered is a summary that another program wrote, as in [keep_last].

    Its text would be kept word for word under the next number: a compaction in which nothing was summarised.
    """
    return bool(covered) and all(is_message_summary(ranges.items[position]) for position in covered)


def _first_message(ranges: Ranges) -> int | None:
    """Return the position of the message that takes the place of a missing system prompt, as in [keep_last].

    The design keeps the first message of its list, whatever it is, and counts it. With a system prompt that is the
    system prompt. Without one it is the first message of the conversation, unless that is a summary or is covered.
    """
    window, items = ranges.window, ranges.items
    prefix = window.rendered.prefix if window.rendered is not None else None
    if ranges.before.fixed.system or (prefix is not None and prefix[0] is not None):
        return None
    first = next((p for p, item in enumerate(items) if not item.is_summary and not item.unsent), None)
    if first is None or is_message_summary(items[first]):
        return None
    return first if items[first].carried or not any(item.is_summary for item in items[:first]) else None


def cut_start(cut: MessageCut, window: Window, groups: Sequence[Group]) -> int:
    """Return the position of the first item that a cut may cover: the window's first, or the current stage's.

    Between two stages it is the first item that belongs to neither.
    """
    items, newest = window.items, window.stages[-1] if window.stages else None
    if newest is None or not isinstance(cut, Oldest) or cut.scope == "conversation":
        return 0
    since = newest.approved or newest.entered
    undivided = boundaries(items, groups)
    # A cut cannot begin at an item that an earlier summary carries: the item lies inside that summary's range.
    starts = (p for p, item in enumerate(items) if item.place > since and undivided[p] and not item.carried)
    return next(starts, len(items))


def cut_end(cut: MessageCut, items: Sequence[Item], groups: Sequence[Group], start: int = 0) -> int | None:
    """Return the position behind the last item that a cut covers from ``start`` on; None where it covers none."""
    parts = [part for part in messages(items) if part.indices[0] >= start]
    boundary = seed_boundary(cut, parts, items)
    if boundary is None:
        return None
    end = parts[boundary].indices[0] if boundary < len(parts) else len(items)
    undivided = boundaries(items, groups)
    while end > start and not (end < len(items) and undivided[end]):
        end -= 1
    return end if end > start else None


def seed_boundary(cut: MessageCut, parts: Sequence[Message], items: Sequence[Item]) -> int | None:
    """Return the number of the first message that a cut keeps by its design's rule; None for no cut.

    The system prompt, which the designs keep as their first message, is not part of the log.
    """
    match cut:
        case KeepLast():  # [keep_last]
            return len(parts) - cut.messages if len(parts) > cut.messages else None
        case KeepRatio():  # [keep_ratio]
            return len(parts) - math.floor(cut.share * len(parts)) if parts else None
        case KeepTurns():  # [prune_then_summarize]
            prompts = [n for n, part in enumerate(parts) if any(_is_prompt(items[p]) for p in part.indices)]
            return prompts[-cut.turns] if len(prompts) >= cut.turns else None
        case Oldest():  # [priority_chain], P3; the newest message is never covered
            return min(cut.messages, len(parts) - 1) if len(parts) > 1 else None


def _is_prompt(item: Item) -> bool:
    return type(item.block) is UserPrompt
