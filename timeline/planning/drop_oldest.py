"""Plan a `drop_oldest` step: cover the oldest messages by a truncation notice instead of a summary.

This is the last priority of [priority_chain], and the answer of [keep_ratio] to a summarizer that fails. The dropped
messages are covered like any others: they can be read back by path, and the decision can be undone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import UserPrompt
from timeline.events import SummaryParts
from timeline.planning.message_cuts import cut_end
from timeline.planning.messages import messages
from timeline.planning.plans import LEAST_SUMMARY
from timeline.planning.replacements import cut_to
from timeline.planning.summary_requests import joined
from timeline.policy.steps import KeepLast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item
    from timeline.planning.plans import Plan, Refusal
    from timeline.planning.ranges import Ranges
    from timeline.policy.steps import DropOldest
    from timeline.ports import TokenCounter

NOTICE_BEGINNING: Final = "[Context truncated. Earlier conversation contained "
"""How a notice begins. In a list of messages, a notice without a heading is recognised by it."""
NOTICE_BY: Final = "notice"
"""Name of a notice's author, as recorded in `WrittenBy`."""
_TOPIC: Final = 60
"""Characters of a prompt that a notice quotes as a topic."""
_MOST_TOPICS: Final = 8


def plan_drop(ranges: Ranges, step: DropOldest) -> Plan | Refusal | None:
    """Plan to keep only the newest messages, as P5 of [priority_chain]; None where there are no others."""
    end = cut_end(KeepLast(messages=step.keep_last), ranges.items, ranges.groups)
    if end is None:
        return None
    cut = ranges.stretch(0, end)
    notice = truncation_notice([ranges.items[p] for p in cut.covered], cut.caps.history, ranges.counter)
    return ranges.judged(ranges.plan(cut, ranges.preview_carried(cut), written=notice, written_by=NOTICE_BY))


def truncation_notice(covered: Sequence[Item], most_tokens: int, counter: TokenCounter) -> SummaryParts:
    """Return the notice of [keep_ratio]: how many messages are gone, and the topics of their newest prompts."""
    number = len(messages(covered))
    topics = [cut_to(" ".join(item.block.text.split()), _TOPIC) for item in covered if type(item.block) is UserPrompt]
    about = "; ".join(topic for topic in topics[-_MOST_TOPICS:] if topic) or "the work of an earlier prompt"
    head, tail = f"{NOTICE_BEGINNING}{number} messages about: ", "]"
    room = most_tokens - counter.count(head + tail)
    return SummaryParts(history=head + counter.truncate(about, max(0, room)) + tail)


def notice_for_summary(
    covered: Sequence[Item], kept: SummaryParts, most_tokens: int, counter: TokenCounter
) -> SummaryParts:
    """Return a notice for a summary that could not be written, behind the text of the earlier summary if it fits."""
    earlier = joined(kept.history, kept.turn_prefix)
    left = most_tokens - counter.count(earlier)
    if not earlier or left < LEAST_SUMMARY:
        return truncation_notice(covered, most_tokens, counter)
    return SummaryParts(history=joined(earlier, truncation_notice(covered, left, counter).history))
