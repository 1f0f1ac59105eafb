"""Write what a conversation hands over to a new one: a summary of all in view, pinned blocks and newest turns included.

A compaction leaves the newest turns, and what is pinned. Where these alone are too large, no compaction makes the
context fit, and the work can only go on in a new conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import HANDED_OVER_KEY, AssistantCompletion, UserPrompt
from timeline.engine.summarizing import SummaryRequestLog, request_summary
from timeline.events import SummaryParts
from timeline.planning.costs import as_counted
from timeline.planning.summary_requests import Requests, joined, messages_of, shown_block, without_failures
from timeline.ports import SummaryRequest

if TYPE_CHECKING:
    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.engine.conversation import Conversation

QUESTION: Final = "What was said and done in the conversation before this one? Go on from there."
"""The prompt with which the new conversation begins; its answer is the summary."""
_SHARE: Final = 8
"""The summary may take one part in this many of the limit, as the longest summary of a small window."""
_LEAST: Final = 200


async def handed_over(conversation: Conversation, instructions: str, original_task: str | None) -> list[Block]:
    """Return the blocks that a new conversation begins with; none where there is nothing to hand over.

    Raises:
        SummarizerFailed: no summarizer gave a usable answer.
    """
    text = await _summary(conversation, instructions, original_task)
    if not text:
        return []
    meta: dict[str, JsonValue] = {HANDED_OVER_KEY: f"{conversation.id}@{conversation.version}"}
    return [UserPrompt(text=QUESTION, meta=meta), AssistantCompletion(text=text, meta=meta)]


async def _summary(conversation: Conversation, instructions: str, original_task: str | None) -> str:
    window, policy = conversation.window, conversation.policy
    before = joined(*(t for c in window.summaries for t in (c.parts.history, c.parts.turn_prefix)))
    seen = [as_counted(item, policy) for item in window.items if not (item.is_summary or item.superseded)]
    items = without_failures(seen)
    blocks = tuple(block for item in items if (block := shown_block(item)) is not None)
    if not blocks:
        return before
    asked = messages_of(items)
    request = SummaryRequest(
        kind="history",
        blocks=blocks,
        previous=before or None,
        task=asked[-1] if asked else None,
        max_tokens=max(_LEAST, policy.max_tokens // _SHARE),
        counter=conversation.counter,
        instructions=instructions,
        compaction_number=window.compactions + 1,
        original_task=original_task,
        too_long="cut",
    )
    parts, _ = await request_summary(
        conversation.compactor.summarizer,
        Requests(request, None, SummaryParts()),
        SummaryRequestLog(),
        conversation.clock,
    )
    return parts.history
