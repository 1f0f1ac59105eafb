"""Turn an error into an exit code and one line for standard error."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import typer

from timeline.display.controls import show_controls
from timeline.errors import (
    BlockNotFound,
    BlockProtected,
    BudgetError,
    CallNotFound,
    CompactionError,
    ContextNotFound,
    ConversationErased,
    ConversationNotFound,
    ForksRemain,
    HistoryUnavailable,
    InvalidFilter,
    StoreError,
    TimelineError,
    UnderLegalHold,
)


class Exit(IntEnum):
    """The exit codes of the command."""

    OK = 0
    NOT_SO = 1
    USAGE = 2
    NOT_FOUND = 3
    DATABASE = 4
    REFUSED = 5
    FAULT = 70
    INTERRUPTED = 130
    PIPE = 141


MEANINGS: Final = {
    Exit.OK: "done",
    Exit.NOT_SO: "verify, doctor or repair found something wrong; redact or erase left bytes in the store's files",
    Exit.USAGE: "wrong usage, or a file that cannot be read or written",
    Exit.NOT_FOUND: "no such conversation, path, version, call or recorded context",
    Exit.DATABASE: "the database is missing, locked, read-only, full or damaged",
    Exit.REFUSED: "refused: nothing to compact or undo, a protected block, or no room",
    Exit.FAULT: "a bug in timeline: please report it",
    Exit.INTERRUPTED: "interrupted",
    Exit.PIPE: "the reader of the output went away",
}
"""The table in `timeline --help`."""

_NO_INTEGER: Final = "Input should be a valid integer, unable to parse string as an integer"
_TYPED: Final = {
    "query": "WORDS",
    "path_glob": "--path",
    "error": "--error-text",
    "types": "--type",
    "compaction_number": "--compaction",
}
"""How a filter is called on the command line, where it is not its own name."""
USAGE_ERRORS: Final = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""The base of the errors that typer raises for a wrong command line; typer does not export it."""


class PipeClosed(Exception):
    """The reader of standard output closed the pipe. Nothing is printed about it, since nothing would read it."""


class UsageProblem(Exception):
    """An option or a file cannot be used; the message contains the cure."""


def exit_code(error: BaseException) -> Exit:
    """Return the exit code of an error."""
    for kinds, code in _CODES:
        if isinstance(error, kinds):
            return code
    return Exit.FAULT


_CODES: Final[tuple[tuple[tuple[type[BaseException], ...], Exit], ...]] = (
    (
        (ConversationNotFound, ConversationErased, BlockNotFound, CallNotFound, ContextNotFound, HistoryUnavailable),
        Exit.NOT_FOUND,
    ),
    ((ForksRemain, UnderLegalHold), Exit.REFUSED),
    ((StoreError,), Exit.DATABASE),
    ((CompactionError, BudgetError, BlockProtected), Exit.REFUSED),
    ((TimelineError, UsageProblem, USAGE_ERRORS, OSError), Exit.USAGE),
    ((KeyboardInterrupt, typer.Abort), Exit.INTERRUPTED),
)


def one_line(error: BaseException) -> str:
    """Format an error as one line, with the cure."""
    match exit_code(error):
        case Exit.INTERRUPTED:
            return "interrupted. What was stored before is intact."
        case Exit.FAULT:
            problem = _flat(f"{type(error).__name__}: {error}")
            return f"unexpected {problem} - please report this; TIMELINE_DEBUG=1 shows where it happened."
    if isinstance(error, USAGE_ERRORS):
        return _usage_line(error)
    if isinstance(error, InvalidFilter):
        return _flat(f"{_TYPED.get(error.field, f'--{error.field}')}: {error.problem}.")
    if isinstance(error, OSError):
        return _flat(f"{error.filename or 'the output'}: {error.strerror or error}. Check the path and the disk.")
    return _flat(str(error))


def _usage_line(error: BaseException) -> str:
    command = getattr(getattr(error, "ctx", None), "command_path", "timeline")
    problem = _flat(error.format_message())  # type: ignore[attr-defined]  # every one of them has it
    problem = problem.replace(": Value error, ", ": ").replace(_NO_INTEGER, "it is not a whole number")
    if not problem.endswith((".", "?", "!")):  # "No such command 'shw'. Did you mean 'show'?" is complete
        problem += "."
    if problem.startswith("Missing") and getattr(getattr(error, "param", None), "metavar", None) == "ID":
        return f"{problem} List the conversations: timeline ls. Try: {command} --help"
    return f"{problem} Try: {command} --help"


def _flat(text: str) -> str:
    """Put a message on one line, its control characters visible, without the password of a URL that was no file."""
    from timeline.store.addresses import without_passwords_in  # noqa: PLC0415 - a command that works has no need of it

    return show_controls(without_passwords_in(" ".join(text.split())))
