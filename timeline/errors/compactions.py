"""Errors of compactions, of taking them back, and of summarizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from timeline.errors.base import TimelineError, brief

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from timeline.usage import Usage


class CompactionError(TimelineError):
    """A compaction did not happen; the conversation is as it was."""


class CompactionRefused(CompactionError):
    """Compacting now would gain nothing. ``reason`` is one of the values of ``RefusalReason``."""

    def __init__(self, reason: str, facts: Mapping[str, Any]) -> None:
        self.reason = reason
        self.facts = dict(facts)
        detail = ", ".join(f"{k} {v}" for k, v in self.facts.items())
        cure = _REFUSAL_CURES.get(reason, "")
        super().__init__(f"Compaction refused ({reason}): {detail}. The context is unchanged.{cure and ' '}{cure}")


_REFUSAL_CURES: Final = {
    "nothing_to_cover": "Only what must stay is left; try again when newer turns stand behind it, or unpin some.",
    "no_progress": "Try again when the conversation has grown, or lower keep_recent or min_progress of the policy.",
    "vetoed": "The application's on_before_compaction hook forbade it.",
}


class CompactionSuperseded(CompactionError):
    """What was to be summarised changed while the summary was written, and for good; nothing was covered."""


class CompactionInProgress(CompactionError):
    """Somebody else is writing a summary of this conversation, at the latest until ``expires_at``."""

    def __init__(self, conversation: str, version: int, expires_at: datetime) -> None:
        self.conversation = conversation
        self.version = version
        self.expires_at = expires_at
        super().__init__(
            f"Conversation {conversation!r} is being optimized, please wait a moment: a compaction began at version "
            f"{version} and may take until {expires_at.isoformat()}. compact(wait=True) waits for it."
        )


class CompactionCovered(CompactionError):
    """The compaction cannot be taken back alone: the summary of a later one covers its own. ``by`` is its version."""

    def __init__(self, version: int, by: int) -> None:
        self.version = version
        self.by = by
        super().__init__(
            f"The compaction of version {version} is covered by the later one of version {by}. "
            "Take that one back first, or both with cascade=True."
        )


class UndoUnavailable(CompactionError):
    """A compaction cannot be taken back; ``reason`` says why."""

    def __init__(self, conversation: str, reason: str) -> None:
        self.conversation = conversation
        self.reason = reason
        super().__init__(f"No compaction of conversation {conversation!r} was taken back: {reason}.")


Cause: TypeAlias = Literal[
    "rate_limit",
    "overloaded",
    "server",
    "authentication",
    "context_limit",
    "connection",
    "timeout",
    "refused",
    "length",
    "empty",
    "too_long",
    "cancelled",
    "error",
]
"""Why a model gave no usable summary: its provider refused or failed, the way there did, the model declined
(``refused``), was stopped by its output limit (``length``), said nothing or said too much, or the summarizer's own code
cancelled it (``cancelled``); ``error`` is all else."""


class SummarizerFailed(CompactionError):
    """Every summarizer of the chain failed.

    ``problems`` says how each one did, ``cause`` why the first of them did, ``usage`` what their answers were reported
    to have taken all the same, None where nobody reported any.
    """

    def __init__(self, problems: Sequence[str], *, cause: Cause = "error", usage: Usage | None = None) -> None:
        self.problems = [brief(problem) for problem in problems]
        self.cause: Cause = cause
        self.usage = usage
        super().__init__(
            f"No summary: {'; '.join(self.problems)}. "
            "Nothing was covered; mend the summarizer, or put the extractive one behind it."
        )
