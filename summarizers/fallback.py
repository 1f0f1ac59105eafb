"""Chain summarizers: use the first usable answer, and record why the summarizers before it gave none.

A summarizer is code of the application and of an SDK. Each one runs in a task of its own, so that whatever it does to
its task (cancel it, cancel another task and await that, raise a `BaseException`) ends that one attempt and nothing
else. A cancellation from outside still ends everything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from timeline.errors import InvalidArgument, SummarizerFailed, described
from timeline.events import WrittenBy
from timeline.frozen import repair_text, shows
from timeline.log.apart import Unanswered, run_apart
from timeline.ports import Summary, name_of, window_of
from timeline.usage import Usage, total_usage
from timeline.wire.refusals import cause_of

from .invented import invented_names, without_names
from .other_answers import other_answer
from .progressive import ABSURD, cut_to_cap
from .remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.errors import Cause
    from timeline.ports import Summarizer, SummaryRequest

_TOLD: Final = [field.name for field in fields(Summary) if field.name in WrittenBy.model_fields]
"""What an answer says of its author; the rest of `WrittenBy` is measured."""


_CORRECTION: Final = (
    "Your last answer named what the record does not have: {names}. Leave that out, or write the exact name as the"
    " record has it."
)
_LISTED: Final = 12
"""The most invented names that are listed."""
_HEADINGS: Final = re.compile(
    r"^[ \t]*(?:#{1,6}(?:[ \t]++[^\n]{0,59}[^ \t\n]|[ \t]{2,}+)|\*\*[^*\n]{1,60}\*\*:?|[-=*_]{3,}|[-*\u2022])[ \t]*$",
    re.MULTILINE,
)
"""Lines that say nothing by themselves: short headings, rules between sections, marks of empty items."""
_NONE: Final = re.compile(
    r"^[ \t]*+(?:[-*\u2022][ \t]++|\d{1,2}[.)][ \t]++)?(?:\*\*[^*\n]{1,60}\*\*:?[ \t]*)?"
    r"[(\[*_]{0,3}(?:none|n/a|nothing|not applicable)(?: (?:yet|so far))?[.)\]*_]{0,4}[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""Lines that fill a section of a template with nothing: ``- (none)``, ``**Blocked:** none yet.``"""


@dataclass(frozen=True, slots=True)
class _Failure:
    """The reason why a summarizer gave no usable answer: ``problem`` for people, ``cause`` for programs."""

    problem: str
    cause: Cause


class FallbackSummarizer:
    """Asks summarizers in order until one gives a usable answer.

    An answer is usable if it is a `Summary` whose text can be stored, is not blank, and counts at most
    ``request.max_tokens``, and whose author and usage can be stored beside it. If the request asks to cut long answers,
    one of any length is usable. If it asks to repair invented names, an author who invented some is asked once more,
    and the sentences with the names that are left are removed.

    Args:
        first: the summarizer to ask first.
        others: the summarizers to ask when it fails, in order.
        seconds: time for each of them. By default the remaining summarizers share the rest of the caller's own deadline
            equally: with two summarizers and 110 seconds, the first one has 55.
        edit: a function that changes an answer's text before it is judged, for example to remove a heading.

    Raises:
        InvalidArgument: one of them is not a summarizer.
    """

    def __init__(
        self,
        first: Summarizer,
        *others: Summarizer,
        seconds: float | None = None,
        edit: Callable[[SummaryRequest, str], str] | None = None,
    ) -> None:
        for summarizer in (first, *others):
            if isinstance(summarizer, type) or not callable(getattr(summarizer, "summarize", None)):
                given = summarizer.__name__ if isinstance(summarizer, type) else type(summarizer).__name__
                raise InvalidArgument(
                    "summarizers", f"must have a method summarize, as CallableSummarizer(…) has, not {given}"
                )
        self._summarizers = (first, *others)
        self._seconds = seconds
        self._edit = edit
        self._invented = Remembered(lambda request, text: invented_names(text, request))

    @property
    def name(self) -> str:
        """The names of the chain, in order."""
        return ", then ".join(map(name_of, self._summarizers))

    @property
    def window_tokens(self) -> int | None:
        """The window of the first summarizer, which usually answers; None if it names none."""
        return window_of(self._summarizers[0])

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the first usable answer; ``fallback_reason`` is why the summarizers before it gave none.

        ``usage`` is the usage of all answers, unusable ones included.

        Raises:
            SummarizerFailed: no summarizer gave a usable answer; ``problems`` has the failure of each. A cancellation
                from outside is passed on.
        """
        problems: list[str] = []
        causes: list[Cause] = []
        spent: list[Usage | None] = []
        for asked, summarizer in enumerate(self._summarizers):
            seconds = self._seconds or _share(len(self._summarizers) - asked)
            until = anyio.current_time() + seconds
            outcome = await _attempt(summarizer, request, seconds)
            if isinstance(outcome, Summary | SummarizerFailed):
                spent.append(outcome.usage if isinstance(outcome.usage, Usage) else None)
            if isinstance(outcome, SummarizerFailed):
                problems += outcome.problems
                causes.append(outcome.cause)
                continue
            answer = self._judged(outcome, request)
            if isinstance(answer, Summary) and request.invented == "repair":
                answer = await self._truthful(summarizer, request, answer, until, spent)
            if isinstance(answer, Summary):
                reasons = [*problems, answer.fallback_reason] if answer.fallback_reason else problems
                return replace(answer, fallback_reason="; ".join(reasons) or None, usage=total_usage(spent))
            problems.append(f"{name_of(summarizer)}: {answer.problem}")
            causes.append(answer.cause)
        raise SummarizerFailed(problems, cause=causes[0], usage=total_usage(spent))

    async def _truthful(
        self, summarizer: Summarizer, request: SummaryRequest, answer: Summary, until: float, spent: list[Usage | None]
    ) -> Summary | _Failure:
        """Return an answer without names that its author invented; ``repaired`` says what was done.

        Args:
            summarizer: the author; asked once more, in what is left of its time.
            request: what it was asked.
            answer: a usable answer.
            until: when its time ends.
            spent: gets the usage of the second answer.
        """
        names = self._invented(request, answer.text)
        if not names:
            return answer
        finding = f"{len(names)} of its names are not in what it covers: {_listed(names)}; asked again"
        wishes = " ".join(filter(None, (request.instructions, _CORRECTION.format(names=_listed(names)))))
        again = await _attempt(summarizer, replace(request, instructions=wishes), until - anyio.current_time())
        if isinstance(again, Summary | SummarizerFailed):
            spent.append(again.usage if isinstance(again.usage, Usage) else None)
        if not isinstance(again, SummarizerFailed) and isinstance(second := self._judged(again, request), Summary):
            answer = second
            names = self._invented(request, answer.text)
            if not names:
                return replace(answer, repaired=finding)
            finding = f"{finding}; the second answer had {_listed(names)}"
        else:
            finding = f"{finding}; there was no second answer"
        text = without_names(answer.text, names)
        remark = f"{finding}: their sentences were removed"
        return _empty(text, request) or replace(answer, text=text, repaired=remark)

    def _judged(self, answer: object, request: SummaryRequest) -> Summary | _Failure:
        """Return an answer, edited, or the reason why it cannot be used.

        No type checker sees an application's summarizer, so its types are checked here.
        """
        if not isinstance(answer, Summary):
            return _Failure(f"the answer is an object of type {type(answer).__name__}, not a Summary", "error")
        if not isinstance(answer.text, str):
            return _Failure(f"the answer's text is an object of type {type(answer.text).__name__}", "error")
        if isinstance(answer.fallback_reason, str):
            answer = replace(answer, fallback_reason=repair_text(answer.fallback_reason))
        # Before the edit: a text of 10 MB, or one that is no UTF-8, is not worth editing.
        if (failure := _absurd(answer.text, request) or _nameless(answer)) is not None:
            return failure
        if self._edit is not None:
            answer = replace(answer, text=self._edit(request, answer.text))
        if request.too_long == "cut":
            answer = _cut(answer, request)
        return _empty(answer.text, request) or _too_long(answer.text, request) or answer


def _share(left: int) -> float:
    """Return the seconds for the next of ``left`` summarizers; infinite where the caller has no deadline."""
    return max(0.0, anyio.current_effective_deadline() - anyio.current_time()) / left


async def _attempt(summarizer: Summarizer, request: SummaryRequest, seconds: float) -> object:
    """Run one summarizer in a task of its own; return its answer, or its failure as a value.

    Raises:
        BaseException: one of `SIGNALS`, as the summarizer raised it and in no group.
    """
    outcome = await run_apart(partial(summarizer.summarize, request), seconds)
    if not isinstance(outcome, Unanswered):
        return outcome
    error = outcome.error
    if outcome.is_late:
        return _failed(summarizer, f"no answer within {round(seconds, 2):g} s", "timeout")
    if isinstance(error, SummarizerFailed):
        return error
    if isinstance(error, anyio.get_cancelled_exc_class()):
        return _failed(summarizer, "it was cancelled from inside", "cancelled")
    return _failed(summarizer, described(error), cause_of(error), error)


def _failed(summarizer: Summarizer, problem: str, cause: Cause, error: BaseException | None = None) -> SummarizerFailed:
    failure = SummarizerFailed([f"{name_of(summarizer)}: {problem}"], cause=cause)
    failure.__cause__ = error
    return failure


def _absurd(text: str, request: SummaryRequest) -> _Failure | None:
    """Refuse a text that cannot be stored, or is many times too long: counting it would take seconds."""
    most = ABSURD * request.max_tokens
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return _Failure(f"the answer cannot be stored as UTF-8: {error.reason} at character {error.start}", "error")
    if request.too_long == "refuse" and len(request.counter.truncate(text, most)) < len(text):
        return _Failure(f"the answer has more than {most} tokens where {request.max_tokens} are allowed", "too_long")
    return None


def _empty(text: str, request: SummaryRequest) -> _Failure | None:
    """Refuse a text that shows nothing, a template that was not filled, a refusal, an error or a call."""
    body = _HEADINGS.sub("", _NONE.sub("", text))
    if not shows(body):
        return _Failure("the answer is empty", "empty")
    other = other_answer(body, request)
    return None if other is None else _Failure(*other)


def _listed(names: Sequence[str]) -> str:
    """Return names on one line, the first ones of many."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(f"`{name}`" for name in names[:_LISTED]) + more


def _cut(answer: Summary, request: SummaryRequest) -> Summary:
    """Return an answer within its cap; ``fallback_reason`` says that it was cut."""
    cut = cut_to_cap(answer.text, request)
    if cut.remark is None:
        return answer
    remarks = [remark for remark in (answer.fallback_reason, cut.remark) if remark]
    return replace(answer, text=cut.text, fallback_reason="; ".join(remarks))


def _too_long(text: str, request: SummaryRequest) -> _Failure | None:
    """Refuse a text above its cap."""
    tokens = request.counter.count(text)
    if tokens <= request.max_tokens:
        return None
    return _Failure(f"the answer has {tokens} tokens where {request.max_tokens} are allowed", "too_long")


def _nameless(answer: Summary) -> _Failure | None:
    """Refuse an answer whose author or usage cannot be stored beside it."""
    try:
        WrittenBy.model_validate({name: getattr(answer, name) for name in _TOLD}).model_dump_json()
    except ValueError as error:
        return _Failure(f"what the answer says of its author cannot be stored: {described(error)}", "error")
    if not isinstance(answer.usage, Usage | None):
        return _Failure(f"the answer's usage is an object of type {type(answer.usage).__name__}, not a Usage", "error")
    return None
