"""Refused by the model: a context-limit error is recognised, the context made smaller, and the call made once more.

No SDK is imported: an error is known by its status, its code, the name of its type and what its message says. What the
providers say is data below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from timeline.chain import run_steps
from timeline.errors import CompactionRefused, ContextRefused
from timeline.planning.budget import account

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from datetime import datetime

    from timeline.compaction import Compactor
    from timeline.log import Log
    from timeline.planning.budget import FixedPart
    from timeline.projection.context import RenderedContext, Taken

T = TypeVar("T")

SHARE: Final = 0.7
"""A refused context is compacted to this share of what the provider takes (design, section 6)."""

_STATUSES: Final = frozenset({None, 400, 413, 422, 500})
"""What a context that is too long is refused with; a limit of requests or tokens a minute (429) is no such error."""
_CODES: Final = frozenset({"context_length_exceeded", "context_window_exceeded", "request_too_large"})
_TYPE_NAMES: Final = re.compile(r"Context(Window|Length|Limit)Exceeded|RequestTooLarge|ContentTooLarge")
_MESSAGES: Final = re.compile(
    r"prompt is too long"  # Anthropic
    r"|input length and `?max_tokens`? exceed context limit"  # Anthropic
    r"|maximum context length"  # OpenAI, and servers that speak like it
    r"|context[ _](length|window|limit|size)[ _](is |was |has been )?exceed"  # OpenAI, OpenRouter, Groq
    r"|exceeds? (the|this model's|your|its)? ?((maximum|available|model) )*context"  # OpenAI's Responses, llama.cpp
    r"|input is too long for requested model"  # Bedrock
    r"|input token count.{0,40}exceeds the maximum number of tokens"  # Gemini
    r"|reduce the length of the (messages|input|prompt)",  # OpenAI, Groq
    re.IGNORECASE,
)
"""What the providers' messages say, as reported by their users until November 2026."""
_NUMBER: Final = r"(\d[\d,_]*)"
_LIMITS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"> {_NUMBER}",
        rf"maximum context length (?:is|of) {_NUMBER}",
        rf"maximum number of tokens allowed \({_NUMBER}\)",
        rf"(?:context|maximum)[^.\d]{{0,40}}?{_NUMBER} tokens",
    )
)
_INPUTS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NUMBER} in the messages",
        rf"{_NUMBER} in your prompt",
        rf"prompt is too long: {_NUMBER} tokens",
        rf"context limit: {_NUMBER} \+",
        rf"input token count \({_NUMBER}\)",
        rf"messages resulted in {_NUMBER} tokens",
        rf"you requested {_NUMBER} tokens",
    )
)
_OUTPUTS: Final = tuple(
    re.compile(pattern, re.IGNORECASE) for pattern in (rf"{_NUMBER} in the completion", rf"\+ {_NUMBER} >")
)


@dataclass(frozen=True, slots=True)
class ContextLimit:
    """What a provider said when it refused a context, in its own tokens; None where it named no figure.

    Attributes:
        limit: of the model, for input and output together.
        input: what it counted of the request.
        output: what was reserved for the answer and counts against the limit.
    """

    limit: int | None = None
    input: int | None = None
    output: int = 0

    def target(self, sent: int) -> int:
        """Return what the context is to be compacted to, in our tokens.

        That is a share of what the provider takes, or where it does not say that, of what was refused. Where it said
        how much it counted, its limit is first put into our tokens.

        Args:
            sent: size of the refused context, in our tokens.
        """
        takes = float(sent)
        if self.limit is not None:
            provider_tokens = self.input / sent if self.input and sent else 1.0
            takes = min(takes, max(0, self.limit - self.output) / provider_tokens)
        return max(1, int(SHARE * takes))


def context_limit(error: BaseException) -> ContextLimit | None:
    """Recognise the error of a provider that a context is too long; None for any other error.

    Looked at are the error and what it was raised from, as frameworks wrap what an SDK raised.
    """
    for one in _causes(error):
        status = getattr(one, "status_code", None)
        if isinstance(status, int) and status not in _STATUSES:
            return None
        said = str(one)
        if _code_of(one) in _CODES or _TYPE_NAMES.search(type(one).__name__) or _MESSAGES.search(said):
            return ContextLimit(
                limit=_first(_LIMITS, said), input=_first(_INPUTS, said), output=_first(_OUTPUTS, said) or 0
            )
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__


def _code_of(error: BaseException) -> Any:
    """Return the code that an SDK took from the answer, or the type of the error in the answer itself."""
    body: Any = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, dict) else None
    told = (getattr(error, "code", None), *(inner.get(key) for key in ("code", "type") if isinstance(inner, dict)))
    return next((code for code in told if isinstance(code, str) and code in _CODES), None)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    found = next((match for pattern in patterns if (match := pattern.search(text))), None)
    return int(re.sub(r"\D", "", found[1])) if found else None


async def call_with_retry(
    call: Callable[[RenderedContext], Awaitable[T]],
    *,
    render: Callable[[], Awaitable[RenderedContext]],
    shrink: Callable[[RenderedContext, int], Awaitable[list[str]]],
    refused: Callable[[BaseException], ContextLimit | None],
) -> T:
    """Render and call; when the context is refused for its size, compact it, render and call once more.

    Args:
        call: sends a context to the model and returns its reply.
        render: makes the context.
        shrink: compacts down to a size, given the refused context; says what it did.
        refused: recognises the error.

    Raises:
        ContextRefused: the smaller context was refused too, or there is no smaller one.
    """
    context = await render()
    try:
        return await call(context)
    except Exception as error:
        refusal = refused(error)
        if refusal is None:
            raise
        first = error
    sent = context.account.sent
    target = refusal.target(sent)
    tried = await shrink(context, target)
    smaller = await render()
    if smaller.account.sent >= sent:
        raise ContextRefused(sent=[sent], limit=refusal.limit, target=target, tried=tried) from first
    try:
        return await call(smaller)
    except Exception as error:
        again = refused(error)
        if again is None:
            raise
        sizes = [sent, smaller.account.sent]
        raise ContextRefused(sent=sizes, limit=again.limit or refusal.limit, target=target, tried=tried) from error


async def compact_to(compactor: Compactor, log: Log, fixed: FixedPart, target: int, now: datetime) -> list[str]:
    """Compact until a request counts at most ``target`` tokens, or nothing more is gained; say what was done.

    Raises:
        CompactionSuperseded: other writers changed the range each time.
        SummarizerFailed: no summarizer gave a usable answer.
    """
    most = target + fixed.reserved
    tried: list[str] = []
    for _ in range(compactor.policy.attempts):
        if account(log.fold.window.items, fixed, compactor.policy).sent <= target:
            break
        done = await run_steps(compactor, log, fixed, now, reason="refused", most=most)
        tried += [_told(taken) for taken in done.taken]
        fixed = done.fixed  # less than before, once stages that were collapsed are told in short
        if isinstance(done.failure, CompactionRefused):
            tried.append(f"refused ({done.failure.reason})")
            break
        if done.failure is not None:
            raise done.failure
    return tried


def _told(taken: Taken) -> str:
    figures = ", ".join(f"{name} {value}" for name, value in taken.facts.items() if isinstance(value, int))
    return f"{taken.kind} ({figures})" if figures else taken.kind
