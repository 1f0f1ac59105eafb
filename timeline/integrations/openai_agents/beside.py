"""What the SDK's list says beyond the log: sent with one call, and kept nowhere.

A handoff's filter, or another filter of the run, may add a message; a call that was approved, and its output, may wait
for a guardrail before the SDK adds them to the session. What such a filter wrote anew of the history is left out: the
log shows what it was made from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import Attachment
from timeline.errors import needs
from timeline.integrations.openai_agents.items import answers, call_of

with needs("openai-agents"):
    from agents.handoffs import get_conversation_history_wrappers

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from timeline.blocks import Block

_SAID_TO_THE_MODEL: Final = frozenset({"user", "system", "developer"})


@dataclass(frozen=True, slots=True)
class Beside:
    """What goes out beside a context.

    Attributes:
        texts: messages to the model, for the uncached tail of the context.
        items: the other items at the end of the list, which go out behind the context as they are.
        as_is: the prompts at the end of the list, by what they say: they go out as they are.
    """

    texts: tuple[str, ...]
    items: tuple[Any, ...]
    as_is: dict[str, Any]

    def behind(self, shown: list[Any]) -> list[Any]:
        """Return a context's items, and these behind them; none whose call is shown already."""
        last = len(shown)
        while last and (item := self.as_is.get(_said(shown[last - 1]))) is not None:
            last -= 1
            shown = [*shown[:last], item, *shown[last + 1 :]]
        there = {call_id for item in shown if (call_id := call_of(item) or answers(item)) is not None}
        return [*shown, *(item for item in self.items if (call_of(item) or answers(item)) not in there)]


def beside(listed: Sequence[tuple[Any, list[Block]]], unknown: Collection[int]) -> Beside:
    """Return what a list says beyond the log.

    Args:
        listed: the items of the list, each with its blocks.
        unknown: the numbers of those that the log does not have.
    """
    markers = get_conversation_history_wrappers()
    last_known = max((number for number in range(len(listed)) if number not in unknown), default=-1)
    texts: list[str] = []
    items: list[Any] = []
    as_is: dict[str, Any] = {}
    for number in sorted(unknown):
        item, blocks = listed[number]
        if any(all(mark in block.text for mark in markers) for block in blocks):
            continue  # the SDK's own summary of what the log holds already
        if _is_text(item, blocks):
            texts.append("\n".join(block.text for block in blocks))
            if number > last_known:
                as_is[texts[-1]] = item
        elif number > last_known:
            items.append(item)
    return Beside(tuple(texts), tuple(items), as_is)


def _said(item: Any) -> str:
    """Return the text of a message with one part, as the wire writes a context's tail."""
    content = item.get("content") if isinstance(item, dict) and item.get("role") == "user" else None
    part = content[0] if isinstance(content, list) and len(content) == 1 else None
    return str(part.get("text", "")) if isinstance(part, dict) else ""


def _is_text(item: Any, blocks: Sequence[Block]) -> bool:
    is_said = isinstance(item, dict) and item.get("role") in _SAID_TO_THE_MODEL
    return is_said and not any(isinstance(block, Attachment) or block.data is not None for block in blocks)
