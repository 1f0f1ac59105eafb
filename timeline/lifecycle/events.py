"""Events of the lifecycle stream: what happens to a conversation's context, typed, for front ends and monitoring.

Each is derived from one event of the log alone, so that another process, or a later reader, gets the same. Names and
fields are those of prune-then-summarize (004). Tokens are counted by the policy's counter; a figure is 0 where an older
log lacks it. Durations are in seconds, by a monotonic clock, and None where none was measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field
from pydantic.alias_generators import to_camel

from timeline.blocks import Instant
from timeline.events import WRITTEN_ANEW, BlocksHidden, CompactionCompleted, ContextRendered
from timeline.events.addresses import listed_addresses
from timeline.events.other_payloads import (
    CompactionFailed,
    CompactionStarted,
    ContextOverflowed,
    FailureReason,
    OverflowReason,
)
from timeline.frozen import Frozen
from timeline.log.stopwatch import spelled, with_duration
from timeline.planning.account import CRITICAL_PERCENT, WARNING_PERCENT

if TYPE_CHECKING:
    from timeline.events import CompactReason, Event, Pruned

TYPES: Final = frozenset(
    {
        "blocks.hidden",
        "compaction.started",
        "compaction.completed",
        "compaction.failed",
        "context.rendered",
        "context.overflowed",
    }
)
"""Types of the log's events that lifecycle events are derived from."""

LifecycleReason: TypeAlias = Literal["overflow", "manual", "cold", "run_end", "imported"]
"""Why: too large for the policy or the model, asked for, the cache went cold, a run ended, another client's record."""

_REASONS: Final[dict[CompactReason, LifecycleReason]] = {
    "over_trigger": "overflow",
    "refused": "overflow",
    "forced": "manual",
    "cold": "cold",
    "run_end": "run_end",
    "imported": "imported",
}
_SAID: Final[dict[FailureReason, str]] = {
    "nothing_to_cover": "There is nothing that a summary could replace.",
    "no_progress": "A compaction would free too little.",
    "vetoed": "The application forbade it.",
    "superseded": "The conversation changed while its summary was written.",
    "summarizer": "No summarizer gave a usable answer.",
    "cancelled": "It was cancelled.",
    "failed": "It ended with an error.",
}
_TRANSIENT: Final = frozenset({"superseded", "summarizer", "cancelled", "failed"})
_HELPLESS: Final = frozenset({"nothing_to_cover", "no_progress"})


class Happened(Frozen):
    """The fields that all events of the stream have.

    Attributes:
        conversation: the conversation's id; the parent's for the past that a fork shares with it.
        version: version of the log's event that this one is derived from. One version may yield several events.
        position: position of that event in the whole store.
        at: time of that event, in UTC.
    """

    conversation: str
    version: int
    position: int
    at: Instant

    def payload(self) -> dict[str, Any]:
        """Return the event as front ends take it: its fields by camelCase names (004), of JSON types."""
        return {to_camel(name): value for name, value in self.model_dump(mode="json").items()}


class CompactionStartEvent(Happened):
    """A compaction begins.

    Attributes:
        tokens_before: tokens of the messages as shown, without system prompt, tools and reserves.
        model_limit: the policy's limit, or that of the model that refused the context, in tokens.
        reason: why it begins.
    """

    type: Literal["compaction-start"] = "compaction-start"
    tokens_before: int
    model_limit: int
    reason: LifecycleReason

    def line(self) -> str:
        """Return the event as one line of text."""
        return f"Compacting ({self.reason}): {self.tokens_before:,} tokens, limit {self.model_limit:,}"


class CompactionPruneEvent(Happened):
    """Blocks were hidden, mostly old outputs of tools.

    Attributes:
        outputs_pruned: how many tool results were hidden.
        tokens_saved: tokens saved by all hidden blocks.
        pruned_tools: the tools' names, each once.
    """

    type: Literal["compaction-prune"] = "compaction-prune"
    outputs_pruned: int
    tokens_saved: int
    pruned_tools: tuple[str, ...]

    def line(self) -> str:
        """Return the event as one line of text."""
        tools = f" of {', '.join(self.pruned_tools)}" if self.pruned_tools else ""
        return f"Pruned: {self.outputs_pruned} tool outputs{tools}, {self.tokens_saved:,} tokens saved"


class CompactionSummarizeEvent(Happened):
    """A summary is being written.

    Attributes:
        messages_count: how many messages it is to replace.
        expires_at: when it counts as given up unless it ended before: its process may have died.
    """

    type: Literal["compaction-summarize"] = "compaction-summarize"
    messages_count: int
    expires_at: Instant | None = None

    def line(self) -> str:
        """Return the event as one line of text."""
        return f"Summarizing: {self.messages_count} messages"


class CompactionCompleteEvent(Happened):
    """A compaction is over: it hid something, or covered something with a summary, or both.

    Attributes:
        tokens_before, tokens_after: tokens of the messages as shown.
        percent_saved: share of the tokens before that was saved, 0 to 100.
        messages_compacted: how many messages the summary replaced.
        was_pruned: whether blocks were hidden.
        was_summarized: whether a summary was written.
        summary: the summary's text; None without one.
        summary_path: the summary's path; None without one.
        reason: why the compaction began.
        compaction_number: the compaction's number: 1 for a conversation's first summary, 2 for the next; 0 without one.
        fallback_reason: why the summary is not the first summarizer's answer as it came, such as a model's failure
            where the extractive summarizer, or a notice, took its place; or a cut, or a redaction. None if it is.
        can_retry: whether asking that summarizer again may give one: it failed by chance, and nothing was redacted.
        duration: seconds that it took, from its start on.
        summary_duration: seconds of these that the summarizers took.
        unsaid: versions of the covered or hidden prompts of which something asked is neither said nor listed.
    """

    type: Literal["compaction-complete"] = "compaction-complete"
    tokens_before: int
    tokens_after: int
    percent_saved: float
    messages_compacted: int = 0
    was_pruned: bool
    was_summarized: bool
    summary: str | None = None
    summary_path: str | None = None
    reason: LifecycleReason
    compaction_number: int = 0
    fallback_reason: str | None = None
    can_retry: bool = False
    duration: float | None = None
    summary_duration: float | None = None
    unsaid: tuple[int, ...] = ()

    def line(self) -> str:
        """Return the event as one line of text."""
        how = " and ".join(
            word for word, done in (("pruned", self.was_pruned), ("summarized", self.was_summarized)) if done
        )
        sizes = f"{self.tokens_before:,} → {self.tokens_after:,} tokens ({self.percent_saved:.0f} % saved)"
        messages = f", {self.messages_compacted} messages" if self.was_summarized else ""
        unsaid = f"; unsaid of what was asked: {listed_addresses(self.unsaid)}" if self.unsaid else ""
        line = with_duration(f"Compacted ({how}): {sizes}{messages}", self.duration) + unsaid
        return line if self.fallback_reason is None else f"{line}; of its summary: {self.fallback_reason}"


class CompactionErrorEvent(Happened):
    """A compaction was refused, or failed; the messages are as they were.

    Attributes:
        error: what happened, as a text for people.
        reason: what happened, as a constant.
        can_retry: whether another try may succeed: the compaction failed by chance, and was not refused.
        suggest_new_session: whether the context is above the limit, and nothing makes it smaller.
        duration: seconds from its start to the failure; None for a refusal, which takes none.
    """

    type: Literal["compaction-error"] = "compaction-error"
    error: str
    reason: FailureReason
    can_retry: bool
    suggest_new_session: bool
    duration: float | None = None

    def line(self) -> str:
        """Return the event as one line of text."""
        cure = "start a new session" if self.suggest_new_session else "try again" if self.can_retry else ""
        took = f" after {spelled(self.duration)}" if spelled(self.duration) else ""
        return f"Not compacted{took} ({self.reason}): {self.error}" + (f" [{cure}]" if cure else "")


class ContextOverflowEvent(Happened):
    """A context was refused: it is above the limit, and nothing makes it smaller. The application has to act.

    Attributes:
        current_tokens: tokens of system prompt, tools, messages and reserves; without the messages if the reason is
            ``fixed_part``.
        limit: the policy's limit in tokens.
        percent_used: percent of the limit. It is above 100, but for ``fixed_part``: that is refused from the trigger
            on, since it leaves no room for a summary and the newest messages.
        reason: ``messages``, or ``fixed_part``: system prompt, tools and reserves alone leave no room.
    """

    type: Literal["context-overflow"] = "context-overflow"
    current_tokens: int
    limit: int
    percent_used: float
    reason: OverflowReason = "messages"

    def line(self) -> str:
        """Return the event as one line of text."""
        what = ", without any messages" if self.reason == "fixed_part" else ""
        return f"Overflow: {self.current_tokens:,} of {self.limit:,} tokens ({self.percent_used:.0f} %){what}"


class ContextUsageEvent(Happened):
    """A context was rendered: how full it is. In `timeline.lifecycle.live` also after each append, as an estimate.

    Attributes:
        current_tokens: tokens of system prompt, tools, messages and reserves.
        limit: the policy's limit in tokens.
        percent_used: percent of the limit, 0 to 100.
        is_warning: whether that is above 80 %.
        is_critical: whether that is above 95 %.
        over_trigger: whether it is above the policy's trigger still: no more could be freed, but it may be sent.
        estimated: whether what was appended since the newest render is added by its own tokens.
    """

    type: Literal["context-usage"] = "context-usage"
    current_tokens: int
    limit: int
    percent_used: float
    is_warning: bool
    is_critical: bool
    over_trigger: bool
    estimated: bool = False

    def line(self) -> str:
        """Return the event as one line of text."""
        mark = " critical" if self.is_critical else " warning" if self.is_warning else ""
        about = "about " if self.estimated else ""
        return f"Usage: {about}{self.current_tokens:,} of {self.limit:,} tokens ({self.percent_used:.0f} %){mark}"


LifecycleEvent: TypeAlias = Annotated[
    CompactionStartEvent
    | CompactionPruneEvent
    | CompactionSummarizeEvent
    | CompactionCompleteEvent
    | CompactionErrorEvent
    | ContextOverflowEvent
    | ContextUsageEvent,
    Field(discriminator="type"),
]
"""One of the events, by its ``type``."""


def lifecycle_of(event: Event) -> list[LifecycleEvent]:
    """Derive the lifecycle events of one event of the log, in order; most events have none."""
    own: dict[str, Any] = {
        "conversation": event.conversation,
        "version": event.version,
        "position": event.position,
        "at": event.at,
    }
    match event.payload:
        case BlocksHidden(pruned=pruned) if pruned is not None:
            return _pruned(pruned, event.payload.unsaid, own)
        case CompactionStarted() as started:
            return _started(started, own)
        case CompactionCompleted() as completed:
            return [_completed(completed, own)]
        case CompactionFailed() as failed:
            return [_failed(failed, own)]
        case ContextOverflowed() as refused:
            return [_overflow(refused, own)]
        case ContextRendered() as rendered:
            return [_usage(rendered, own)]
        case _:
            return []


def _pruned(pruned: Pruned, unsaid: tuple[int, ...], own: dict[str, Any]) -> list[LifecycleEvent]:
    reason = _REASONS[pruned.reason]
    events: list[LifecycleEvent] = []
    if not pruned.continues:
        events.append(_start(pruned.before_tokens, pruned.limit, reason, own))
    events.append(
        CompactionPruneEvent(
            **own, outputs_pruned=pruned.outputs, tokens_saved=pruned.saved_tokens, pruned_tools=pruned.tools
        )
    )
    if not pruned.goes_on:
        events.append(
            CompactionCompleteEvent(
                **own,
                tokens_before=pruned.before_tokens,
                tokens_after=pruned.after_tokens,
                percent_saved=_saved(pruned.before_tokens, pruned.after_tokens),
                was_pruned=True,
                was_summarized=False,
                reason=reason,
                duration=pruned.duration,
                unsaid=unsaid,
            )
        )
    return events


def _start(tokens: int, limit: int, reason: LifecycleReason, own: dict[str, Any]) -> CompactionStartEvent:
    return CompactionStartEvent(**own, tokens_before=tokens, model_limit=limit, reason=reason)


def _started(started: CompactionStarted, own: dict[str, Any]) -> list[LifecycleEvent]:
    summarize = CompactionSummarizeEvent(**own, messages_count=started.messages, expires_at=started.expires_at)
    if started.continues:
        return [summarize]
    return [_start(started.before_tokens, started.limit, _REASONS[started.reason], own), summarize]


def _completed(completed: CompactionCompleted, own: dict[str, Any]) -> CompactionCompleteEvent:
    before = completed.before_tokens + completed.pruned_tokens
    return CompactionCompleteEvent(
        **own,
        tokens_before=before,
        tokens_after=completed.after_tokens,
        percent_saved=_saved(before, completed.after_tokens),
        messages_compacted=completed.messages,
        was_pruned=completed.pruned_tokens > 0,
        was_summarized=True,
        summary=completed.block.text,
        summary_path=completed.block.path,
        reason=_REASONS[completed.reason],
        compaction_number=completed.round,
        fallback_reason=completed.written_by.fallback_reason,
        can_retry=completed.written_by.fallback_reason not in {None, WRITTEN_ANEW},
        duration=completed.duration,
        summary_duration=completed.written_by.duration,
        unsaid=completed.unsaid,
    )


def _failed(failed: CompactionFailed, own: dict[str, Any]) -> CompactionErrorEvent:
    reason = _SAID[failed.reason]
    tells = failed.detail and failed.reason not in _HELPLESS  # the planner's figures are not for people
    return CompactionErrorEvent(
        **own,
        error=f"{reason} {failed.detail}" if tells else reason,
        reason=failed.reason,
        can_retry=failed.reason in _TRANSIENT,
        suggest_new_session=failed.reason in _HELPLESS and failed.over_limit,
        duration=failed.duration,
    )


def _overflow(refused: ContextOverflowed, own: dict[str, Any]) -> ContextOverflowEvent:
    return ContextOverflowEvent(
        **own,
        current_tokens=refused.tokens,
        limit=refused.limit,
        percent_used=_percent(refused.tokens, refused.limit),
        reason=refused.reason,
    )


def _usage(rendered: ContextRendered, own: dict[str, Any]) -> ContextUsageEvent:
    tokens = rendered.total or rendered.tokens
    return ContextUsageEvent(
        **own, **usage_figures(tokens, rendered.limit), limit=rendered.limit, over_trigger=rendered.overflow
    )


def usage_figures(tokens: int, limit: int) -> dict[str, Any]:
    """Return what a `ContextUsageEvent` derives from the tokens in use and the limit."""
    percent = min(100.0, _percent(tokens, limit))
    return {
        "current_tokens": tokens,
        "percent_used": percent,
        "is_warning": percent > WARNING_PERCENT,
        "is_critical": percent > CRITICAL_PERCENT,
    }


def _percent(tokens: int, limit: int) -> float:
    return 100 * tokens / limit if limit else 0.0


def _saved(before: int, after: int) -> float:
    return max(0.0, 100 * (1 - after / before)) if before else 0.0
