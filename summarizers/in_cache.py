"""The question for a summary behind the conversation itself, which the provider has in its cache.

It is the prompt of the request's shape, with the place of the record instead of the record: the model has read that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import AssistantCompletion, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.frozen import compact_json

from .original_task import original_task
from .progressive import Texts, build_message, shortened
from .prompts import load_prompt

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.ports import SummaryRequest

IN_CACHE: Final = "in_cache.v1"
_ABOVE: Final = "(the summary near the beginning of the conversation above)"
_QUOTED: Final = 160
"""Characters that are quoted of a block, to find it by."""
_TASK: Final = 400
"""Tokens of a task: the conversation has it, too."""


def question_in_cache(request: SummaryRequest) -> str:
    """Return the question for a request's summary, to be asked behind the conversation that holds its blocks."""
    first, last = request.blocks[0], request.blocks[-1]
    place = f"From {_named(first)}\nup to and including {_named(last)}"
    texts = Texts(
        task=shortened(request.task or "", _TASK, request.counter),
        original_task=shortened(original_task(request) or "", _TASK, request.counter),
    )
    message = build_message(request, place, _ABOVE if request.previous else None, texts)
    return f"{load_prompt(IN_CACHE)}{message.text}"


def _named(block: Block) -> str:
    """Return what a block is, and how it begins."""
    if isinstance(block, ToolCall):
        arguments = block.arguments if isinstance(block.arguments, str) else compact_json(block.arguments)
        return f"the call of the tool {block.name}: {_quoted(arguments)}"
    kinds = {UserPrompt: "the user's message", AssistantCompletion: "your answer", Reasoning: "your thought"}
    kind = f"the result of the tool {block.name}" if isinstance(block, ToolResult) else kinds.get(type(block), "")
    return f"{kind or 'what'} that begins with: {_quoted(block.text)}"


def _quoted(text: str) -> str:
    return " ".join(text[: 2 * _QUOTED].split())[:_QUOTED]
