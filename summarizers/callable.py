"""Summarise with any async function from prompt to text: the application's own model, client and account."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Final

import anyio

from timeline.errors import InvalidArgument, SummarizerFailed, described
from timeline.ports import Summary
from timeline.wire.refusals import cause_of

from .progressive import summarize_progressively
from .prompts import prompt_for

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from timeline.ports import SummaryRequest

    from .progressive import PromptParts

DEFAULT_WINDOW: Final = 32_000
DEFAULT_TIMEOUT: Final = 60.0


class CallableSummarizer:
    """Summarises by calling a function with a prompt, once for each chunk that fits the model's window.

    Args:
        call: sends a prompt to a model and returns its answer.
        window_tokens: the model's window, by the counter of the request; prompt and answer never exceed it.
        name: stored beside every summary.
        model: stored beside every summary, where known.
        timeout: seconds that one call may take; None for no limit.

    Raises:
        InvalidArgument: ``call`` is not a function.
        ValueError: ``window_tokens`` or ``timeout`` is not above 0.
    """

    def __init__(
        self,
        call: Callable[[str], Awaitable[str]],
        *,
        window_tokens: int = DEFAULT_WINDOW,
        name: str = "callable",
        model: str | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> None:
        if not callable(call):
            raise InvalidArgument("call", f"must be an async function of a prompt, not of type {type(call).__name__}")
        if window_tokens <= 0:
            raise ValueError(f"window_tokens must be above 0, not {window_tokens}")
        if timeout is not None and timeout <= 0:
            raise ValueError(f"timeout must be above 0 seconds or None, not {timeout}")
        self._call = call
        self._window_tokens = window_tokens
        self._name = name
        self._model = model
        self._timeout = timeout

    @property
    def name(self) -> str:
        """The name that is stored beside every summary."""
        return self._name

    @property
    def window_tokens(self) -> int:
        """The model's window."""
        return self._window_tokens

    @property
    def model(self) -> str | None:
        """The name of the model, where known."""
        return self._model

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Summarise a request. ``fallback_reason`` reports an answer that had to be cut.

        Raises:
            SummarizerFailed: the call raised or took too long, an answer is empty or more than twice as long as
                allowed, or the window is too small. A cancellation is passed on.
        """
        try:
            answer = await summarize_progressively(request, self._ask, window_tokens=self._window_tokens)
        except SummarizerFailed as error:
            problems = [f"{self._name}: {problem}" for problem in error.problems]
            raise SummarizerFailed(problems, cause=error.cause, usage=error.usage) from error.__cause__
        return Summary(
            text=answer.text,
            summarizer=self._name,
            model=self._model,
            prompt_version=prompt_for(request).version,
            fallback_reason=answer.remark,
        )

    async def _ask(self, message: PromptParts) -> str:
        with anyio.move_on_after(self._timeout):
            try:
                answer = self._call(message.text)
                if isawaitable(answer):
                    return await answer
            except Exception as error:
                raise SummarizerFailed([described(error)], cause=cause_of(error)) from error
            raise SummarizerFailed(["the function is not async; define it with `async def`"], cause="error")
        raise SummarizerFailed([f"no answer within {self._timeout:g} s"], cause="timeout")
