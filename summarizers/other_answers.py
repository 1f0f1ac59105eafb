"""Judge whether an answer is something else in the place of a summary: a refusal, an error, or a call of a tool.

Each would replace all that was covered. The rules for each are in the module that bears its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .call_texts import is_call_text
from .error_texts import is_error_text
from .refused import is_refusal

if TYPE_CHECKING:
    from timeline.errors import Cause
    from timeline.ports import SummaryRequest


class NoSummary(NamedTuple):
    """Why an answer is no summary: in words, and as the cause that is recorded."""

    problem: str
    cause: Cause


_REFUSED: Final = NoSummary("the model declined to answer, in words of its own", "refused")
_ERROR: Final = NoSummary("the answer is an error that came as text", "error")
_CALL: Final = NoSummary("the answer is a call of a tool that came as text", "error")


def other_answer(text: str, request: SummaryRequest) -> NoSummary | None:
    """Return why an answer that says something is no summary; None if it may be one."""
    if is_refusal(text, request):
        return _REFUSED
    if is_error_text(text, request):
        return _ERROR
    return _CALL if is_call_text(text) else None
