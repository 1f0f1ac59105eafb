"""Summarise a record of any length with a model of a small window, chunk by chunk (cut-point design).

Blocks become short entries, entries become chunks that fit the window together with prompt, earlier summary and answer,
and each chunk's answer is the earlier summary of the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from timeline.errors import SummarizerFailed
from timeline.frozen import sha256_hex

from .layouts import UNKNOWN_TASK, incorporates
from .original_task import original_task
from .other_answers import other_answer
from .prompts import load_prompt, prompt_for
from .text import ELLIPSIS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from timeline.ports import SummaryRequest, TokenCounter

ABSURD: Final = 8
"""An answer above this multiple of its cap is not counted: counting 10 MB takes seconds."""
LEAST_RECORD: Final = 64
"""Least tokens that a window must leave for the record; a smaller window is refused."""
_AS_BEFORE: Final = "(what the earlier summary says of it)"
"""The text in place of the original task where only the earlier summary may know it."""
_FENCE: Final = "\n{fence}\n"
"""The opening of the record in every prompt: its field on a line of its own."""
_SLACK: Final = 16
"""Most tokens by which joined texts count more than their parts."""
_REPEATED: Final = 200
"""Characters at the beginning of a question by which an answer is known that repeats it."""
_MARKS: Final = re.compile(r"</?[A-Za-z][\w:-]{0,40}+[^<>\n]{0,200}+>")
"""Matches a tag: a model that was stopped, or that closes what it never opened, may answer with tags alone."""
_SAYS: Final = re.compile(r"[^\W_]")
_FEW: Final = 600
"""Characters of the longest answer that is looked at for tags."""
_BOUNDARY: Final = re.compile(r"\n|(?<=[.!?])\s|(?<=[\u3002\uff01\uff1f])")


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last answer, and how it was changed where it was too long."""

    text: str
    remark: str | None = None


@dataclass(frozen=True, slots=True)
class PromptParts:
    """A prompt in its two parts: the instructions, and the record to summarise.

    Attributes:
        instructions: text of this library and the caller only, nothing from the conversation.
        record: everything from the conversation, inside its fence.
    """

    instructions: str
    record: str

    @property
    def text(self) -> str:
        """Both parts as one text, for a model that takes a single text."""
        return f"{self.instructions}\n{self.record}"


@dataclass(frozen=True, slots=True)
class Texts:
    """The tasks of a request, shortened to fit the window."""

    task: str = ""
    original_task: str = ""


def chunked(entries: Iterable[str], tokens: int, counter: TokenCounter, separator: str) -> Iterator[str]:
    """Join entries to chunks of at most ``tokens`` tokens; an entry that is longer by itself is cut."""
    chunk: list[str] = []
    spent = 0
    between = counter.count(separator)
    for entry in entries:
        fitting = entry if counter.count(entry) <= tokens else counter.truncate(entry, tokens - 1) + ELLIPSIS
        cost = counter.count(fitting) + between
        if chunk and spent + cost > tokens:
            yield separator.join(chunk)
            chunk, spent = [], 0
        chunk.append(fitting)
        spent += cost
    if chunk:
        yield separator.join(chunk)


def build_message(request: SummaryRequest, record: str, previous: str | None, texts: Texts) -> PromptParts:
    """Fill in the prompt of a request.

    All text from the conversation goes inside a fence, whose mark is a hash of the enclosed text: no text can hold the
    mark that would close its own fence. The prompt's own text before the fence is the instructions.
    """
    prompt = prompt_for(request)
    mark = sha256_hex("\n".join((texts.task, texts.original_task, previous or "", record)))[:16]
    filled_in = {
        "fence": f"=== {mark} ===",
        "max_tokens": request.max_tokens,
        "asked_tokens": int(request.max_tokens * prompt.asked_share),
        "round": request.compaction_number,
        "chained": _chained(request.compaction_number),
        "wishes": _wishes(request),
        "task": texts.task or prompt.nothing,
        "original_task": texts.original_task or (_AS_BEFORE if request.previous else UNKNOWN_TASK),
        "previous": previous or prompt.nothing,
        "record": record,
    }
    instructions, fence, rest = load_prompt(prompt.version).partition(_FENCE)
    return PromptParts(instructions.format_map(filled_in), f"{fence}{rest}".lstrip().format_map(filled_in))


def frame_of(request: SummaryRequest) -> str:
    """Return what a model is sent besides the record of a request: prompt, tasks and the earlier summary."""
    texts = Texts(task=request.task or "", original_task=original_task(request) or "")
    return build_message(request, "", request.previous, texts).text


def _wishes(request: SummaryRequest) -> str:
    wishes = f"\nThe caller also wishes: {request.instructions}\n" if request.instructions else ""
    return f"{wishes}\nWrite in {request.language}.\n" if request.language else wishes


def _chained(number: int) -> str:
    return f"\nEnd with this line:\n{incorporates(number)}\n" if number > 1 else ""


async def summarize_progressively(
    request: SummaryRequest, call: Callable[[PromptParts], Awaitable[str]], *, window_tokens: int
) -> LastAnswer:
    """Ask a model for a summary, chunk by chunk.

    Args:
        request: the record to summarise, and how.
        call: sends a prompt and returns the answer.
        window_tokens: the model's window by the request's counter; prompt and longest answer never exceed it.

    Raises:
        SummarizerFailed: the window is too small, or an answer is empty or more than twice as long as allowed.
    """
    counter = request.counter
    # Tasks and earlier summary may each take an eighth of the window; a summarizer's own summary is shorter.
    texts = Texts(
        task=shortened(request.task or "", window_tokens // 8, counter),
        original_task=shortened(original_task(request) or "", window_tokens // 8, counter),
    )
    previous = shortened(request.previous or "", max(window_tokens // 8, request.max_tokens), counter)
    script = prompt_for(request).script
    frame = counter.count(build_message(request, "", None, texts).text) + max(
        counter.count(previous), request.max_tokens
    )
    room = window_tokens - frame - request.max_tokens - _SLACK
    if room < LEAST_RECORD:
        raise SummarizerFailed(
            [f"a window of {window_tokens} tokens leaves {max(room, 0)} for the record; {LEAST_RECORD} are needed"],
            cause="context_limit",
        )
    answer = LastAnswer(previous)
    for chunk in chunked(script.entries(request.blocks), room, counter, script.separator):
        message = build_message(request, chunk, answer.text, texts)
        said = await call(message)
        if isinstance(said, str) and said.lstrip().startswith(message.text.strip()[:_REPEATED]):
            raise SummarizerFailed(["the answer repeats the question"], cause="error")
        answer = accepted(said, request)
    return answer


def accepted(answer: object, request: SummaryRequest) -> LastAnswer:
    """Check an answer against the cap: an answer up to twice as long is cut at a line or sentence, and marked as cut.

    Raises:
        SummarizerFailed: the answer is no text, empty, a refusal, an error, a call, or longer than twice the cap where
            the request does not have it cut.
    """
    max_tokens, counter = request.max_tokens, request.counter
    if not isinstance(answer, str):
        raise SummarizerFailed([f"the answer is of type {type(answer).__name__}, not a text"])
    text = answer.strip()
    if not _SAYS.search(text if len(text) > _FEW else _MARKS.sub("", text)):
        raise SummarizerFailed(["the answer is empty"], cause="empty")
    if (other := other_answer(text, request)) is not None:
        raise SummarizerFailed([other.problem], cause=other.cause)
    if request.too_long == "cut":
        return cut_to_cap(text, request)
    tokens = counter.count(text)
    if tokens <= max_tokens:
        return LastAnswer(text)
    cut = shortened(text, max_tokens, counter)
    if tokens > 2 * max_tokens or not cut:
        problem = f"the answer has {tokens} tokens where {max_tokens} are allowed"
        raise SummarizerFailed([problem], cause="too_long")
    return LastAnswer(cut, f"an answer of {tokens} tokens was cut to {counter.count(cut)}")


def cut_to_cap(text: str, request: SummaryRequest) -> LastAnswer:
    """Cut an answer to its cap, however long it is, at a line or sentence; a shorter one is left as it is."""
    counter, most = request.counter, request.max_tokens
    head = counter.truncate(text, ABSURD * most)  # counting 10 MB takes seconds
    tokens = counter.count(head)
    if len(head) == len(text) and tokens <= most:
        return LastAnswer(text)
    cut = shortened(head, most, counter)
    more = "more than " if len(head) < len(text) else ""
    return LastAnswer(cut, f"an answer of {more}{tokens} tokens was cut to {counter.count(cut)}")


def shortened(text: str, tokens: int, counter: TokenCounter) -> str:
    """Cut a text at the last line or sentence that fits; at a character where no line or sentence does."""
    if counter.count(text) <= tokens:
        return text
    cut = counter.truncate(text, tokens)
    boundaries = [match.start() for match in _BOUNDARY.finditer(cut) if match.start() > len(cut) // 2]
    return cut[: boundaries[-1]].rstrip() if boundaries else cut
