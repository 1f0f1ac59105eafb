"""Turn an error into the answer to a request: a status, and a problem as JSON with the error's own facts."""

from __future__ import annotations

from enum import Enum
from re import sub
from typing import TYPE_CHECKING, Any, Final

from timeline.display.controls import show_controls
from timeline.errors import (
    AppendUncertain,
    BlockNotFound,
    BlockProtected,
    BudgetError,
    CallNotFound,
    CallUnavailable,
    CompactionError,
    ContextNotFound,
    ContextUnavailable,
    ConversationErased,
    ConversationNotFound,
    HistoryUnavailable,
    StoreBusy,
    StoreError,
    StoreLocked,
    StoreMoved,
    StoreUnavailable,
    TimelineError,
    VersionConflict,
)
from timeline.inspector.shapes import Problem

if TYPE_CHECKING:
    from pydantic import ValidationError

_STATUSES: Final[tuple[tuple[tuple[type[TimelineError], ...], int], ...]] = (
    ((ConversationErased,), 410),
    ((ConversationNotFound, BlockNotFound, CallNotFound, ContextNotFound, HistoryUnavailable), 404),
    ((CallUnavailable, ContextUnavailable), 409),
    ((StoreLocked,), 423),
    ((StoreUnavailable, StoreBusy, StoreMoved), 503),
    ((VersionConflict, AppendUncertain, StoreError, CompactionError, BudgetError, BlockProtected), 409),
    ((TimelineError,), 400),
)
_MOST: Final = 2_000
"""Characters of a fact that is a text."""


class Refused(Exception):
    """A request that is refused before it is looked up: what is wrong with it, and the cure."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        self.status = status
        self.kind = kind
        self.detail = detail
        super().__init__(detail)

    def problem(self) -> Problem:
        """Return the answer."""
        return Problem(type=self.kind, title=self.kind.replace("-", " "), status=self.status, detail=self.detail)


def problem_of(error: TimelineError) -> Problem:
    """Return the answer to a request that ended in an error of the library."""
    status = next(status for kinds, status in _STATUSES if isinstance(error, kinds))
    kind = sub(r"(?<=[a-z])(?=[A-Z])", "-", type(error).__name__).lower()
    facts = {name: _plain(value) for name, value in vars(error).items() if not name.startswith("_")}
    return Problem(type=kind, title=kind.replace("-", " "), status=status, detail=str(error), facts=facts)


def invalid(error: ValidationError) -> Problem:
    """Return the answer to a request whose parameters do not fit, with what is wrong with each."""
    wrong = {
        ".".join(map(str, one["loc"])) or "request": show_controls(one["msg"])
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    }
    detail = "; ".join(f"{name}: {problem}" for name, problem in wrong.items())
    return Problem(type="invalid-request", title="invalid request", status=400, detail=f"{detail}.", facts=wrong)


def _plain(value: Any) -> Any:
    """Return an attribute of an error in a form that JSON has."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return show_controls(value[:_MOST])
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value[:100]]
    return show_controls(str(value)[:_MOST])
