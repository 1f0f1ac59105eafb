"""Traces and metrics of a timeline through OpenTelemetry's API; needs no SDK, and sets nothing global.

    from timeline.integrations.telemetry import Telemetry

    timeline = await Timeline.open(store, "conversation-1", observer=Telemetry())

Without an SDK in the process no span is recorded. Names that begin with ``gen_ai.`` follow OpenTelemetry's conventions
for generative AI, which are still in development; all other names begin with ``timeline.``. Content is recorded only on
request: messages as JSON, in the form of these conventions. Spans of model calls, agents and tools are left to the
host.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from timeline import __version__, summarizers
from timeline.blocks import RangeSummary, Reasoning, ToolCall, ToolResult
from timeline.errors import CompactionInProgress, CompactionRefused, SummarizerFailed, message_of, needs
from timeline.frozen import compact_json
from timeline.lifecycle.observer import Observer
from timeline.planning.messages import message_role
from timeline.ports import Summary, name_of, window_of
from timeline.usage import Usage

with needs("opentelemetry-api", "otel"):
    from opentelemetry import metrics, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from timeline.blocks import Block
    from timeline.events import CompactionCompleted, CompactReason, Pruned
    from timeline.fold.window import Window
    from timeline.policy.steps import CoveringStep
    from timeline.ports import Summarizer, SummaryRequest
    from timeline.projection.context import RenderedContext
    from timeline.queries import Found, Queries, StoredDigest
    from timeline.wire.neutral import Entry


_SUMMARY = "conv.range.summary"


def context_content(context: RenderedContext) -> dict[str, str]:
    """Return the messages, the system prompt and the tools of a context, by attribute."""
    neutral = context.neutral
    attributes = {
        "gen_ai.input.messages": _messages((e.role, _entry_part(e)) for e in (*neutral.entries, *neutral.ephemeral))
    }
    if neutral.system is not None:
        parts = neutral.system if isinstance(neutral.system, list) else [_text(str(neutral.system))]
        attributes["gen_ai.system_instructions"] = compact_json(parts)
    if neutral.tools:
        attributes["gen_ai.tool.definitions"] = compact_json(list(neutral.tools))
    return attributes


def request_content(request: SummaryRequest) -> dict[str, str]:
    """Return what a summarizer is to summarise, by attribute: the summary to integrate first."""
    earlier = [("user", {"type": "compaction", "content": request.previous})] if request.previous else []
    own = [(str(message_role(block)), _block_part(block)) for block in request.blocks]
    return {"gen_ai.input.messages": _messages([*earlier, *own])}


def summary_content(summary: Summary) -> dict[str, str]:
    """Return a summarizer's answer, by attribute."""
    message = {"role": "assistant", "parts": [_text(summary.text)], "finish_reason": "stop"}
    return {"gen_ai.output.messages": compact_json([message])}


def _messages(parts: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """Join neighbouring parts of one role into messages."""
    joined: list[dict[str, Any]] = []
    for role, part in parts:
        if not joined or joined[-1]["role"] != role:
            joined.append({"role": role, "parts": []})
        joined[-1]["parts"].append(part)
    return compact_json(joined)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _entry_part(entry: Entry) -> dict[str, Any]:
    if entry.type == _SUMMARY:
        return {"type": "compaction", "content": entry.text}
    if entry.type == "react.tool.call":
        return {"type": "tool_call", "id": entry.call_id, "name": entry.name, "arguments": entry.arguments}
    if entry.type == "react.tool.result" and not entry.loose:
        return {"type": "tool_call_response", "id": entry.call_id, "response": entry.text}
    return {"type": "reasoning", "content": entry.text} if entry.type == "assistant.reasoning" else _text(entry.text)


def _block_part(block: Block) -> dict[str, Any]:
    match block:
        case RangeSummary():
            return {"type": "compaction", "content": block.text}
        case ToolCall():
            return {"type": "tool_call", "id": block.call_id, "name": block.name, "arguments": block.arguments}
        case ToolResult():
            return {"type": "tool_call_response", "id": block.call_id, "response": block.text}
        case Reasoning():
            return {"type": "reasoning", "content": block.text}
        case _:
            return _text(block.text)


T = TypeVar("T")

CONVERSATION: Final = "gen_ai.conversation.id"
COMPACTED: Final = "gen_ai.conversation.compacted"
_OF_SUMMARIZERS: Final = {"gen_ai.request.model": "model", "gen_ai.provider.name": "provider"}
"""Attributes of a request, each with the attribute of a summarizer that has it."""
_COMPACTION: Final = "timeline.compaction."
_RENDER: Final = "timeline.render."
_TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))
"""The boundaries that the conventions advise for token counts."""
_SECONDS_BUCKETS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)

_CURRENT: Final[ContextVar[str]] = ContextVar("_CURRENT", default="")
"""The conversation that is being compacted by this code."""


class Telemetry(Observer):
    """Traces and measures timelines; give it to `Timeline.open` as ``observer``. One serves any number of timelines.

    Spans: ``render_timeline`` around a recorded render; ``compact_timeline`` around each compaction, inside a render or
    by itself; inside that, ``chat {model}`` around each request to the application's summarizer.

    Metrics: ``gen_ai.client.token.usage`` and ``gen_ai.client.operation.duration`` of these requests,
    ``timeline.compaction.count``, ``timeline.compaction.duration`` and ``timeline.pruned.tokens``. No metric names a
    conversation.

    Args:
        tracer_provider: makes the spans; by default the global one.
        meter_provider: makes the instruments; by default the global one.
        include_content: record in spans the content of prompts, messages and summaries, and the messages of errors.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        include_content: bool = False,
    ) -> None:
        self._tracer = trace.get_tracer("timeline", __version__, tracer_provider)
        self._content = include_content
        meter = metrics.get_meter("timeline", __version__, meter_provider)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Tokens of requests to summarizers.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )
        self._latency = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="How long requests to summarizers took.",
            explicit_bucket_boundaries_advisory=_SECONDS_BUCKETS,
        )
        self._compactions = meter.create_counter(
            "timeline.compaction.count", unit="{compaction}", description="Compactions, by how they ended."
        )
        self._duration = meter.create_histogram(
            "timeline.compaction.duration",
            unit="s",
            description="How long compactions took, summaries and hooks included.",
            explicit_bucket_boundaries_advisory=_SECONDS_BUCKETS,
        )
        self._pruned = meter.create_counter(
            "timeline.pruned.tokens", unit="{token}", description="Tokens that hiding freed, mostly of tools' outputs."
        )

    @contextmanager
    def rendering(self, conversation: str) -> Iterator[Callable[[RenderedContext], None]]:
        """Open a span around a recorded render."""
        with self._span("render_timeline", {CONVERSATION: conversation}) as span:

            def rendered(context: RenderedContext) -> None:
                span.set_attributes(conversation_attributes(context))
                span.set_attributes(_render_figures(context))
                if self._content and span.is_recording():
                    span.set_attributes(context_content(context))

            yield rendered

    @contextmanager
    def compacting(
        self, conversation: str, reason: CompactReason, step: CoveringStep
    ) -> Iterator[Callable[[CompactionCompleted, Window, Window], None]]:
        """Open a span around one compaction."""
        trigger = {f"{_COMPACTION}trigger": reason, f"{_COMPACTION}strategy": _strategy(step)}
        began, outcome, token = perf_counter(), "previews", _CURRENT.set(conversation)
        try:
            with self._span("compact_timeline", {CONVERSATION: conversation, **trigger}) as span:

                def completed(done: CompactionCompleted, before: Window, after: Window) -> None:
                    nonlocal outcome
                    outcome = "completed"
                    span.set_attribute(COMPACTED, True)
                    span.set_attributes(_compaction_figures(done, before, after))

                yield completed
        except (CompactionRefused, CompactionInProgress) as refused:
            outcome = _word(refused)
            raise
        except BaseException as error:
            if outcome != "completed":  # else the log has it: what failed or was cancelled came behind it, as a hook
                outcome = "failed" if isinstance(error, Exception) else "cancelled"
            raise
        finally:
            _CURRENT.reset(token)
            attributes = {**trigger, f"{_COMPACTION}outcome": outcome}
            self._compactions.add(1, attributes)
            self._duration.record(perf_counter() - began, attributes)

    def pruned(self, conversation: str, pruned: Pruned) -> None:
        """Count what was hidden, and note it in the span that it happened in."""
        del conversation
        trigger = {f"{_COMPACTION}trigger": pruned.reason}
        self._pruned.add(max(0, pruned.saved_tokens), trigger)
        figures = {"timeline.pruned.outputs": pruned.outputs, "timeline.pruned.tokens": pruned.saved_tokens}
        trace.get_current_span().add_event("timeline.pruned", {**trigger, **figures})

    def asking(self, summarizer: Summarizer) -> Summarizer:
        """Return a summarizer with a span around each request, if it may call a model."""
        if isinstance(summarizer, summarizers.ExtractiveSummarizer):
            return summarizer
        return _Asked(summarizer, self._chat)

    async def digests(self, store: Queries, **filters: Any) -> AsyncIterator[StoredDigest]:
        """Ask a store for digests, as `Queries.digests`, in a span ``search_memory``."""
        async for digest in self._searching(store.digests(**filters), filters.get("conversation"), None):
            yield digest

    async def search(self, store: Queries, text: str, **filters: Any) -> AsyncIterator[Found]:
        """Search a store, as `Queries.search`, in a span ``search_memory``."""
        async for found in self._searching(store.search(text, **filters), filters.get("conversation"), text):
            yield found

    async def _searching(self, found: AsyncIterator[T], conversation: str | None, text: str | None) -> AsyncIterator[T]:
        # Not the current span: who iterates does other things in between, which are no part of the search.
        span = self._tracer.start_span("search_memory", kind=SpanKind.INTERNAL)
        span.set_attribute("gen_ai.operation.name", "search_memory")
        if conversation is not None:
            span.set_attribute(CONVERSATION, conversation)
        if text is not None and self._content:
            span.set_attribute("gen_ai.memory.query.text", text)
        count = 0
        try:
            async for one in found:
                count += 1
                yield one
        except Exception as error:
            self._note(span, error)
            raise
        finally:
            span.set_attribute("timeline.search.results", count)
            span.end()

    @contextmanager
    def _span(self, name: str, attributes: Mapping[str, str], kind: SpanKind = SpanKind.INTERNAL) -> Iterator[Span]:
        """Open a span; record only the type of an error, unless content is wanted."""
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except (CompactionRefused, CompactionInProgress) as refused:  # an answer, not an error
                span.set_attribute(f"{_COMPACTION}outcome", _word(refused))
                raise
            except BaseException as error:
                self._note(span, error)
                raise

    def _note(self, span: Span, error: BaseException) -> None:
        span.set_attribute("error.type", type(error).__qualname__)
        span.set_status(Status(StatusCode.ERROR, message_of(error) if self._content else None))

    async def _chat(self, summarizer: Summarizer, request: SummaryRequest) -> Summary:
        """Ask a summarizer inside a span of its own: two requests at the same time are two spans side by side."""
        named = {name: getattr(summarizer, own, None) for name, own in _OF_SUMMARIZERS.items()}
        known = {name: value for name, value in named.items() if isinstance(value, str)}
        attributes = {"gen_ai.operation.name": "chat", "timeline.summary.kind": request.kind, **known}
        if conversation := _CURRENT.get():
            attributes[CONVERSATION] = conversation
        with self._span(_named("chat", known.get("gen_ai.request.model")), attributes, SpanKind.CLIENT) as span:
            if self._content and span.is_recording():
                span.set_attributes(request_content(request))
            began = perf_counter()
            ended: Mapping[str, str] = known
            try:
                summary = await summarizer.summarize(request)
                ended = self._answered(span, summary, known)
            except BaseException as error:
                ended = {**known, "error.type": type(error).__qualname__}
                if isinstance(error, SummarizerFailed):
                    self._took(span, error.usage, known)
                raise
            finally:
                self._latency.record(perf_counter() - began, {"gen_ai.operation.name": "chat", **ended})
        return summary

    def _answered(self, span: Span, summary: object, known: Mapping[str, str]) -> Mapping[str, str]:
        """Record an answer, and return the attributes that its request is measured by.

        Whoever asked judges it: what is no answer, or no usage, is left out here, and not an error.
        """
        if not isinstance(summary, Summary):
            return known
        attributes = dict(known)
        if isinstance(summary.model, str):
            attributes = {"gen_ai.request.model": summary.model, **known, "gen_ai.response.model": summary.model}
            span.update_name(_named("chat", attributes["gen_ai.request.model"]))
        span.set_attributes(attributes)
        if self._content and span.is_recording() and isinstance(summary.text, str):
            span.set_attributes(summary_content(summary))
        self._took(span, summary.usage, attributes)
        return attributes

    def _took(self, span: Span, usage: object, attributes: Mapping[str, str]) -> None:
        """Record the usage of a request if it was reported, whether or not its answer could be used."""
        if not isinstance(usage, Usage):
            return
        figures = usage_attributes(usage)
        span.set_attributes(figures)
        own = {"gen_ai.operation.name": "chat", **attributes}
        for kind in ("input", "output"):
            self._tokens.record(figures[f"gen_ai.usage.{kind}_tokens"], {**own, "gen_ai.token.type": kind})


class _Asked:
    """A summarizer whose requests are traced."""

    def __init__(self, inner: Summarizer, ask: Callable[[Summarizer, SummaryRequest], Awaitable[Summary]]) -> None:
        self._inner = inner
        self._ask = ask

    @property
    def name(self) -> str:
        """The summarizer's own name."""
        return name_of(self._inner)

    @property
    def window_tokens(self) -> int | None:
        """The summarizer's own window, if it names one."""
        return window_of(self._inner)

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Ask the summarizer inside a span."""
        return await self._ask(self._inner, request)


def conversation_attributes(context: RenderedContext) -> dict[str, str | bool]:
    """Return the attributes of the conversation for a host's own span of a model call.

    They are ``gen_ai.conversation.id`` and, if the context has a summary, ``gen_ai.conversation.compacted``, which is
    never False.
    """
    attributes: dict[str, str | bool] = {CONVERSATION: context.conversation}
    return attributes | {COMPACTED: True} if context.window.summary is not None else attributes


def usage_attributes(usage: Usage) -> dict[str, int]:
    """Return a usage under the names of the conventions, which count cached and written tokens as input, too."""
    figures = {
        "gen_ai.usage.input_tokens": usage.sent_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    cached = {
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
    }
    return figures | {name: tokens for name, tokens in cached.items() if tokens}


def _render_figures(context: RenderedContext) -> dict[str, int | float | bool]:
    account = context.account
    return {
        f"{_RENDER}version": context.version,
        f"{_RENDER}blocks": len(context.window.items),
        f"{_RENDER}tokens": account.needed,
        f"{_RENDER}limit": account.limit,
        f"{_RENDER}percent_used": account.percent_used,
        f"{_RENDER}over_trigger": context.overflow,
        f"{_RENDER}decisions": len(context.decisions),
    }


def _compaction_figures(done: CompactionCompleted, before: Window, after: Window) -> dict[str, Any]:
    """Return the attributes of a compaction that was made."""
    first = done.covers.ranges[0][0] if done.covers.ranges else 0
    figures = {
        "blocks_before": len(before.items),
        "blocks_after": len(after.items),
        "tokens_before": done.before_tokens,
        "tokens_after": done.after_tokens,
        "cut_version": done.covers.ranges[-1][1] + 1 if done.covers.ranges else 0,
        "split_turn": done.split_turn_id is not None,
        "covered_turns": len(_listed(done.block.meta.get("covered_turn_ids"))),
        "summary_path": done.block.path,
        "cache_prefix_invalidated_tokens": sum(item.shown_tokens for item in before.items if item.place >= first),
        "outcome": "completed",
    }
    return {f"{_COMPACTION}{name}": value for name, value in figures.items()}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _strategy(step: CoveringStep) -> str:
    """Name a step, and its cut where it has one: ``summarize/cut_point``."""
    cut = getattr(step, "cut", None)
    return step.kind if cut is None else f"{step.kind}/{cut.kind}"


def _word(refused: CompactionRefused | CompactionInProgress) -> str:
    return refused.reason if isinstance(refused, CompactionRefused) else "in_progress"


def _named(operation: str, model: str | None) -> str:
    return operation if model is None else f"{operation} {model}"
