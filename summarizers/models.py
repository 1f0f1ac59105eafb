"""What the summarizers over the providers' own SDKs share: chunks, timeouts, windows, usage and failures.

One question is one request of the SDK, which retries by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypedDict, Unpack

import anyio

from timeline.errors import InvalidLimits, SummarizerFailed, described
from timeline.frozen import shows
from timeline.policy.limits import ModelLimits, limits_of
from timeline.ports import Summary, ratio_of
from timeline.usage import Usage, total_usage
from timeline.wire.refusals import cause_of, refuses_parameter

from .callable import DEFAULT_TIMEOUT, DEFAULT_WINDOW
from .in_cache import IN_CACHE, question_in_cache
from .progressive import LastAnswer, accepted, summarize_progressively
from .prompts import prompt_for

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from contextlib import AbstractAsyncContextManager

    from timeline.ports import SummaryRequest, WarmContext

    from .progressive import PromptParts

DEFAULT_RETRIES: Final = 2
"""Number of the SDK's own retries: after a 429, an overload, a lost connection."""
_OF_THE_QUESTION: Final = frozenset({"context_limit", "refused", "length", "empty", "too_long", "error"})
"""Causes of a failure in the cached context that asking alone may not have."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request to a model.

    Attributes:
        model: the model's name.
        message: the instructions, and the record to summarise.
        max_tokens: cap of the answer, in the model's own tokens.
        temperature: sent only where it is given.
    """

    model: str
    message: PromptParts
    max_tokens: int
    temperature: float | None


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer to one question.

    Attributes:
        text: the answer's text.
        usage: the reported usage, whether or not the answer is usable.
        model: the model that answered.
        problem: why the answer is unusable, where the model declined or was stopped.
        calls: whether the model called a tool.
    """

    text: str
    usage: Usage
    model: str
    problem: SummarizerFailed | None = None
    calls: bool = False


class ModelClient(Protocol):
    """A client of one provider, behind one interface for all."""

    async def ask(self, question: Question) -> Reply:
        """Send a question and return the reply.

        Raises:
            Exception: any exception of the SDK.
        """
        ...

    async def go_on(self, arguments: dict[str, Any]) -> Reply:
        """Send the arguments of the SDK's method as they are, and return the reply.

        Raises:
            Exception: any exception of the SDK.
        """
        ...


class Options(TypedDict, total=False):
    """The settings of requests for summaries; the defaults suit every provider.

    Attributes:
        temperature: overrides the policy's; one of the two is sent where it is given. A model that refuses the
            policy's is asked again without it: not every model takes one.
        output_tokens: the most tokens that the model may write, and be billed for, in its own tokens. By default the
            summary's cap times the policy's ``answer_room``, which is 2, or 1 under the designs that name the figure
            that is sent. A reasoning model's thoughts count, so give it room. window_tokens: the model's window; the
            model's entry in the limits data unless given. timeout: seconds for one question, all tries together; None
            for no limit. retries: number of the SDK's retries, with its own waits. base_url, api_key: passed to the
            SDK, which reads its own environment variables otherwise.
    """

    temperature: float | None
    output_tokens: int | None
    window_tokens: int | None
    timeout: float | None
    retries: int
    base_url: str | None
    api_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`Options` with their defaults filled in."""

    temperature: float | None = None
    output_tokens: int | None = None
    window_tokens: int | None = None
    timeout: float | None = DEFAULT_TIMEOUT
    retries: int = DEFAULT_RETRIES
    base_url: str | None = None
    api_key: str | None = None

    def __post_init__(self) -> None:
        for name in ("output_tokens", "window_tokens", "timeout"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be above 0, not {value}")
        if self.retries < 0:
            raise ValueError(f"retries must be 0 or more, not {self.retries}")


class ModelSummarizer:
    """Summarises by asking a model, in chunks if the record does not fit the model's window.

    Args:
        model: the model's name.
        name: stored beside every summary.
        options: the settings of its requests, see `Options`.

    Raises:
        ValueError: an option is not valid.
    """

    def __init__(self, model: str, *, name: str, **options: Unpack[Options]) -> None:
        self._model = model
        self._name = name
        self._settings = Settings(**options)

    @property
    def name(self) -> str:
        """The name that is stored beside every summary."""
        return self._name

    @property
    def window_tokens(self) -> int | None:
        """The model's window, answer included, by the policy's counter; None where the limits cannot be read."""
        try:
            return self._window(0)
        except InvalidLimits:  # each request raises it, as the failure of this summarizer
            return None

    @property
    def _wire(self) -> str:
        """The wire format of its requests."""
        raise NotImplementedError

    def _connected(self) -> AbstractAsyncContextManager[ModelClient]:
        """Open a connection for one summary, and close it afterwards unless the client is the application's."""
        raise NotImplementedError

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Summarise a request. ``fallback_reason`` reports an answer that had to be cut.

        If the request has a context that the provider has cached for this model, the model is asked there. If that is
        not possible, or gives no usable answer, it is asked alone, and ``alone_because`` says why.

        Raises:
            SummarizerFailed: there is no usable answer; ``cause`` is the reason, and ``usage`` the usage of all
                answers. A cancellation is passed on, and closes the request.
        """
        replies = _Replies(self._model, cut=request.too_long == "cut" or request.answer_room <= 1)
        try:
            async with self._connected() as connection:
                cached = (
                    None if request.warm is None else await self._in_cache(connection, request, request.warm, replies)
                )
                if isinstance(cached, LastAnswer):
                    version = f"{prompt_for(request).version}+{IN_CACHE}"
                    return replace(self._summary(cached, replies, version), asked="in_cache")
                answer = await self._alone(connection, request, replies)
        except SummarizerFailed as error:
            problems = [f"{self._name}: {problem}" for problem in error.problems]
            raise SummarizerFailed(problems, cause=error.cause, usage=replies.usage) from error.__cause__
        except Exception as error:
            problems = [f"{self._name}: {_in_words(error)}"]
            raise SummarizerFailed(problems, cause=cause_of(error), usage=replies.usage) from error
        return replace(self._summary(answer, replies, prompt_for(request).version), alone_because=cached)

    def _summary(self, answer: LastAnswer, replies: _Replies, version: str) -> Summary:
        remarks = [remark for remark in (replies.stopped, answer.remark) if remark]
        return Summary(
            text=answer.text,
            summarizer=self._name,
            model=replies.model,
            prompt_version=version,
            usage=replies.usage,
            fallback_reason="; ".join(remarks) or None,
        )

    def _most_written(self, request: SummaryRequest) -> int:
        """Return the tokens after which the model is stopped."""
        return self._settings.output_tokens or int(request.answer_room * request.max_tokens)

    async def _alone(self, connection: ModelClient, request: SummaryRequest, replies: _Replies) -> LastAnswer:
        """Ask in requests of their own, in as many chunks as the window needs."""
        settings, output = self._settings, self._most_written(request)
        asked = replace(request, max_tokens=min(request.max_tokens, output))
        window = self._room(request, output) - (output - asked.max_tokens)

        async def call(message: PromptParts) -> str:
            temperature = request.temperature if settings.temperature is None else settings.temperature
            return replies.take(await self._asked(connection, Question(self._model, message, output, temperature)))

        return await summarize_progressively(asked, call, window_tokens=window)

    async def _in_cache(
        self, connection: ModelClient, request: SummaryRequest, warm: WarmContext, replies: _Replies
    ) -> LastAnswer | str:
        """Ask in the context that the provider has in its cache; return why not where that cannot be.

        Raises:
            SummarizerFailed: no answer came, and asking alone would get none either.
        """
        if warm.wire != self._wire:
            return "wire"
        if warm.model != self._model:
            return "model"
        output = self._most_written(request)
        question = question_in_cache(replace(request, max_tokens=min(request.max_tokens, output)))
        if warm.tokens + request.counter.count(question) + output > self._room(request, output):
            return "window"
        try:
            reply = await _in_time(connection.go_on(warm.arguments(question, output)), self._settings.timeout)
            text = replies.take(reply)
            return "tool_call" if reply.calls else accepted(text, request)
        except Exception as error:
            cause = error.cause if isinstance(error, SummarizerFailed) else cause_of(error)
            if cause not in _OF_THE_QUESTION:
                raise
            return cause

    async def _asked(self, connection: ModelClient, question: Question) -> Reply:
        """Ask a question; once more without the policy's temperature where the model takes none."""
        settings = self._settings
        try:
            return await _in_time(connection.ask(question), settings.timeout)
        except Exception as error:
            wished = question.temperature is not None and settings.temperature is None
            if not wished or not refuses_parameter(error, "temperature"):
                raise
        return await _in_time(connection.ask(replace(question, temperature=None)), settings.timeout)

    def _room(self, request: SummaryRequest, output: int) -> int:
        """Return the window in the tokens of the request's counter."""
        return int(self._window(output) * ratio_of(request.counter))

    def _window(self, output: int) -> int:
        """Return the window by the policy's counter: less than the model's own where its tokenizer differs."""
        limits = limits_of(self._model, default=_UNKNOWN, context=self._settings.window_tokens)
        return int(limits.room(output) / limits.first_ratio)


_UNKNOWN: Final = ModelLimits(context=DEFAULT_WINDOW, tokenizer="o200k_base")
"""The limits of a model that is not in the limits data."""


@dataclass(slots=True)
class _Replies:
    """The accumulated usage and model of the replies to one request.

    ``cut``: long answers are cut, so the beginning of one that was stopped is used; ``stopped`` then says so.
    """

    model: str
    cut: bool = False
    usage: Usage | None = None
    stopped: str | None = None

    def take(self, reply: Reply) -> str:
        """Add a reply, and return its text. A reply without usage makes the total unknown.

        Raises:
            SummarizerFailed: the reply is unusable.
        """
        self.model = reply.model or self.model
        if reply.usage != Usage():
            self.usage = total_usage((self.usage, reply.usage))
        problem, self.stopped = reply.problem, None
        if problem is None:
            return reply.text
        if not (self.cut and problem.cause == "length" and shows(reply.text)):
            raise problem
        self.stopped = "; ".join(problem.problems)
        return reply.text


async def _in_time(asking: Awaitable[Reply], seconds: float | None) -> Reply:
    """Await a reply with a time limit over all of the SDK's tries."""
    with anyio.move_on_after(seconds):
        return await asking
    raise SummarizerFailed([f"no answer within {seconds:g} s"], cause="timeout")


def _in_words(error: Exception) -> str:
    """Describe an SDK's exception, by its cause where only the cause has a message."""
    behind = error.__cause__
    why = f" ({described(behind)})" if behind is not None else ""
    return f"{described(error)}{why}"


def stopped(reason: object) -> SummarizerFailed:
    """Return the failure for an answer that the model's output limit cut: its end is missing."""
    return SummarizerFailed([f"the answer was stopped by its length ({reason})"], cause="length")


def declined(reason: object) -> SummarizerFailed:
    """Return the failure for an answer that the model or its provider refused."""
    return SummarizerFailed([f"the model declined to answer ({reason})"], cause="refused")
