"""Progressive summaries: a record of any length through a model with a small window (seed 002).

Blocks become short lines, lines become chunks that fit the window together with prompt, earlier summary and answer, and
each chunk's answer is the earlier summary of the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from timeline.blocks import ToolCall, ToolResult
from timeline.errors import SummarizerFailed
from timeline.frozen import canonical_json, sha256_hex

from .prompts import PROMPT_VERSIONS, load_prompt
from .text import ELLIPSIS, head_and_tail

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from timeline.blocks import Block
    from timeline.ports import SummaryRequest, TokenCounter

MESSAGE_CHARACTERS: Final = 2_000
RESULT_CHARACTERS: Final = 500
"""What a model is shown of a message and of a tool's result (seeds 001 and 004)."""
SEPARATOR: Final = "\n---\n"
NONE: Final = "(none)"
LEAST_RECORD: Final = 64
"""A window that leaves fewer tokens than this for the record is too small to summarise with."""
_SLACK: Final = 16
"""Tokens by which joined texts may count more than their parts."""
_BOUNDARY: Final = re.compile(r"\n|(?<=[.!?])\s|(?<=[\u3002\uff01\uff1f])")


@dataclass(frozen=True, slots=True)
class Answer:
    """The last answer, and what was done to it where it was over-long."""

    text: str
    remark: str | None = None


def render_block(number: int, block: Block) -> str:
    """Write a block as a line of a record: its number, who speaks, and its text, shortened in the middle."""
    if isinstance(block, ToolCall):
        arguments = block.arguments if isinstance(block.arguments, str) else canonical_json(block.arguments)
        body = f"{block.name} {head_and_tail(arguments, RESULT_CHARACTERS)} {block.text}"
        return f"[{number}] CALL: {body.strip()}"
    text = block.text.strip() or f"({block.mime})"
    if isinstance(block, ToolResult):
        state = "ERROR" if block.is_error or block.exit_status else "RESULT"
        status = f" (exit {block.exit_status})" if block.exit_status is not None else ""
        return f"[{number}] {state} {block.name}{status}: {head_and_tail(text, RESULT_CHARACTERS)}"
    return f"[{number}] {block.author.upper()}: {head_and_tail(text, MESSAGE_CHARACTERS)}"


def chunked(lines: Iterable[str], tokens: int, counter: TokenCounter) -> Iterator[str]:
    """Join lines to chunks of at most so many tokens; a line that is longer by itself is cut."""
    chunk: list[str] = []
    spent = 0
    separator = counter.count(SEPARATOR)
    for line in lines:
        fitting = line if counter.count(line) <= tokens else counter.truncate(line, tokens - 1) + ELLIPSIS
        cost = counter.count(fitting) + separator
        if chunk and spent + cost > tokens:
            yield SEPARATOR.join(chunk)
            chunk, spent = [], 0
        chunk.append(fitting)
        spent += cost
    if chunk:
        yield SEPARATOR.join(chunk)


def build_prompt(request: SummaryRequest, record: str, previous: str | None, task: str | None) -> str:
    """Fill in the prompt of a request's kind.

    Everything that comes from the conversation stands inside a fence, whose mark is a hash of what it encloses: no text
    can hold the mark that would close its own fence.
    """
    mark = sha256_hex("\n".join((task or "", previous or "", record)))[:16]
    return load_prompt(PROMPT_VERSIONS[request.kind]).format(
        fence=f"=== {mark} ===",
        max_tokens=request.max_tokens,
        wishes=f"\nThe caller also wishes: {request.instructions}\n" if request.instructions else "",
        task=task or NONE,
        previous=previous or NONE,
        record=record,
    )


async def summarize_progressively(
    request: SummaryRequest, call: Callable[[str], Awaitable[str]], *, window_tokens: int
) -> Answer:
    """Ask a model for a summary, chunk by chunk.

    Args:
        request: what to summarise.
        call: sends a prompt and returns the answer.
        window_tokens: the model's window by the request's counter; prompt and longest answer never exceed it.

    Raises:
        SummarizerFailed: the window is too small, or an answer is empty or more than twice as long as it may be.
    """
    counter = request.counter
    # Task and earlier summary may each take an eighth of the window; what a summarizer wrote itself is shorter.
    task = shortened(request.task or "", window_tokens // 8, counter)
    previous = shortened(request.previous or "", max(window_tokens // 8, request.max_tokens), counter)
    lines = (render_block(number, block) for number, block in enumerate(request.blocks, start=1))
    frame = counter.count(build_prompt(request, "", None, task)) + max(counter.count(previous), request.max_tokens)
    room = window_tokens - frame - request.max_tokens - _SLACK
    if room < LEAST_RECORD:
        raise SummarizerFailed(
            [f"a window of {window_tokens} tokens leaves {max(room, 0)} for the record; {LEAST_RECORD} are needed"]
        )
    answer = Answer(previous)
    for chunk in chunked(lines, room, counter):
        answer = accepted(await call(build_prompt(request, chunk, answer.text, task)), request.max_tokens, counter)
    return answer


def accepted(answer: object, max_tokens: int, counter: TokenCounter) -> Answer:
    """Check an answer against the cap: up to twice as long it is cut at a line or sentence, and says so.

    Raises:
        SummarizerFailed: the answer is no text, empty, or longer than that.
    """
    if not isinstance(answer, str):
        raise SummarizerFailed([f"the answer is of type {type(answer).__name__}, not a text"])
    text = answer.strip()
    tokens = counter.count(text)
    if not text:
        raise SummarizerFailed(["the answer is empty"])
    if tokens <= max_tokens:
        return Answer(text)
    cut = shortened(text, max_tokens, counter)
    if tokens > 2 * max_tokens or not cut:
        raise SummarizerFailed([f"the answer has {tokens} tokens where {max_tokens} are allowed"])
    return Answer(cut, f"an answer of {tokens} tokens was cut to {counter.count(cut)}")


def shortened(text: str, tokens: int, counter: TokenCounter) -> str:
    """Cut a text at the last line or sentence that fits; at a character where the first one does not."""
    if counter.count(text) <= tokens:
        return text
    cut = counter.truncate(text, tokens)
    boundaries = [match.start() for match in _BOUNDARY.finditer(cut) if match.start() > len(cut) // 2]
    return cut[: boundaries[-1]].rstrip() if boundaries else cut
