"""Traces and metrics of real compactions, read back from the SDK's in-memory exporters."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel
import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.scenes import (
    FULL,
    Mute,
    Scribe,
    answer,
    call,
    exchange,
    opened,
    payloads_of,
    prompt,
    result,
    small_policy,
)
from timeline import Hooks, Skip, policies, summarizers
from timeline.errors import CompactionRefused, ContextOverflow, SummarizerFailed
from timeline.integrations.telemetry import Telemetry, conversation_attributes, usage_attributes
from timeline.ports import Summary
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from timeline import Timeline
    from timeline.blocks import Block
    from timeline.ports import SummaryRequest

SMALL: Final = {"policy": small_policy(max_tokens=4_000)}
SPLIT: Final[Sequence[Block]] = (
    prompt(50),
    answer(800),
    prompt(30),
    *(block for n in range(6) for block in (call(f"c{n}"), result(f"c{n}", 450))),
)
"""A finished turn, and one that is too long to be kept whole: both parts of a summary are asked for."""


@dataclass
class Recorder:
    """Telemetry with an SDK behind it, and what it recorded."""

    spans: InMemorySpanExporter
    metrics: InMemoryMetricReader
    tracers: TracerProvider
    meters: MeterProvider

    def telemetry(self, **options: Any) -> Telemetry:
        """Return the observer."""
        return Telemetry(tracer_provider=self.tracers, meter_provider=self.meters, **options)

    def named(self, name: str) -> list[ReadableSpan]:
        """Return the finished spans of a name, in the order in which they began."""
        found = [span for span in self.spans.get_finished_spans() if span.name == name]
        return sorted(found, key=lambda span: span.start_time or 0)

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Return what was measured under a name: attributes, and the sum."""
        data = self.metrics.get_metrics_data()
        if data is None:
            return []
        found = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics if m.name == name]
        return [
            (dict(point.attributes or {}), getattr(point, "value", None) or getattr(point, "sum", None))
            for metric in found
            for point in metric.data.data_points
        ]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Telemetry of one test; nothing global."""
    spans, metrics = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider(metric_readers=[metrics])
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    yield Recorder(spans, metrics, tracers, meters)
    tracers.shutdown()
    meters.shutdown()


class Biller(Scribe):
    """A summarizer that knows its model, and tells what an answer cost."""

    model = "model-x"
    provider = summarizers.AnthropicSummarizer.provider

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer, and wait a moment, so that two requests are under way at the same time."""
        summary = await super().summarize(request)
        await anyio.lowlevel.checkpoint()
        usage = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=30, cache_write_1h_tokens=7)
        return Summary(text=summary.text, summarizer=self.name, model="model-x-2026", usage=usage)


class Slow(Scribe):
    """A summarizer that is never done; ``asleep`` is set when it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = asyncio.Event()

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Wait for ever."""
        self.asleep.set()
        await anyio.sleep_forever()
        return await super().summarize(request)


async def talk(recorder: Recorder, *blocks: Block, **options: Any) -> Timeline:
    """Return an observed conversation."""
    given = {**SMALL, "summarizer": Biller(), "observer": recorder.telemetry(), **options}
    timeline = await opened(MemoryStore(), **given)
    await timeline.append(*blocks)
    return timeline


async def test_a_render_that_compacts_is_three_spans(recorder: Recorder) -> None:
    """The render, in it the compaction, in that the request to the summarizer; each names the conversation."""
    timeline = await talk(recorder, *FULL)
    context = await timeline.render()
    [render] = recorder.named("render_timeline")
    [compaction] = recorder.named("compact_timeline")
    [chat] = recorder.named("chat model-x")
    assert render.parent is None
    assert (compaction.parent, chat.parent) == (render.context, compaction.context)
    assert (render.kind, compaction.kind, chat.kind) == (SpanKind.INTERNAL, SpanKind.INTERNAL, SpanKind.CLIENT)
    for span in (render, compaction, chat):
        assert span.attributes is not None
        assert span.attributes["gen_ai.conversation.id"] == "c"
        assert span.status.status_code == StatusCode.UNSET
    assert render.attributes is not None
    assert render.attributes["timeline.render.tokens"] == context.account.total
    assert render.attributes["gen_ai.conversation.compacted"] is True


async def test_a_compaction_says_what_it_did(recorder: Recorder) -> None:
    """Trigger, strategy, sizes, cut, turns and summary; all under names of their own."""
    timeline = await talk(recorder, *SPLIT)
    before = timeline.window
    [done] = await timeline.compact()
    [span] = recorder.named("compact_timeline")
    [summary] = timeline.window.summaries
    assert dict(span.attributes or {}) == {
        "gen_ai.conversation.id": "c",
        "gen_ai.conversation.compacted": True,
        "timeline.compaction.trigger": "forced",
        "timeline.compaction.strategy": "summarize/cut_point",
        "timeline.compaction.outcome": "completed",
        "timeline.compaction.blocks_before": len(before.items),
        "timeline.compaction.blocks_after": len(timeline.window.items),
        "timeline.compaction.tokens_before": done.facts["before_tokens"],
        "timeline.compaction.tokens_after": done.facts["after_tokens"],
        "timeline.compaction.cut_version": summary.covers.ranges[-1][1] + 1,
        "timeline.compaction.split_turn": True,
        "timeline.compaction.covered_turns": 1,
        "timeline.compaction.summary_path": summary.block.path,
        "timeline.compaction.cache_prefix_invalidated_tokens": before.tokens,
    }


async def test_a_request_names_the_provider(recorder: Recorder) -> None:
    """In its span and in the metric, where the conventions demand it."""
    timeline = await talk(recorder, *FULL)
    await timeline.compact()
    [chat] = recorder.named("chat model-x")
    assert (chat.attributes or {})["gen_ai.provider.name"] == "anthropic"
    named = {told["gen_ai.provider.name"] for told, _ in recorder.points("gen_ai.client.token.usage")}
    assert named == {"anthropic"}


async def test_the_two_requests_of_a_split_turn_are_siblings(recorder: Recorder) -> None:
    """They run at the same time, side by side under the compaction."""
    timeline = await talk(recorder, *SPLIT)
    await timeline.compact()
    [compaction] = recorder.named("compact_timeline")
    chats = recorder.named("chat model-x")
    assert [dict(c.attributes or {})["timeline.summary.kind"] for c in chats] == ["history", "turn_prefix"]
    assert [chat.parent for chat in chats] == [compaction.context] * 2
    first, second = chats
    assert first.end_time is not None
    assert second.start_time is not None
    assert second.start_time < first.end_time


async def test_usage_is_told_by_the_names_of_the_conventions(recorder: Recorder) -> None:
    """Input includes what a cache answered and took in; the histogram has both kinds."""
    timeline = await talk(recorder, *FULL)
    await timeline.compact()
    [chat] = recorder.named("chat model-x")
    told = dict(chat.attributes or {})
    assert told["gen_ai.operation.name"] == "chat"
    assert (told["gen_ai.request.model"], told["gen_ai.response.model"]) == ("model-x", "model-x-2026")
    assert {name: value for name, value in told.items() if ".usage." in name} == {
        "gen_ai.usage.input_tokens": 137,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "gen_ai.usage.cache_write.input_tokens": 7,
    }
    points = {told["gen_ai.token.type"]: value for told, value in recorder.points("gen_ai.client.token.usage")}
    assert points == {"input": 137, "output": 20}
    assert usage_attributes(Usage(input_tokens=1)) == {
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.usage.output_tokens": 0,
    }


async def test_a_model_that_only_the_answer_names_names_the_span(recorder: Recorder) -> None:
    """Until then it is a chat with somebody."""
    timeline = await talk(recorder, *FULL, summarizer=Scribe())
    await timeline.compact()
    assert len(recorder.named("chat model-x")) == 1


async def test_without_a_model_there_is_no_chat(recorder: Recorder) -> None:
    """The extractive summarizer calls nobody, given or not."""
    for summarizer in (None, summarizers.ExtractiveSummarizer()):
        timeline = await talk(recorder, *FULL, summarizer=summarizer)
        await timeline.compact()
    assert {span.name for span in recorder.spans.get_finished_spans()} == {"compact_timeline"}


async def test_a_failure_is_an_error_and_says_only_its_type(recorder: Recorder) -> None:
    """What a provider says may quote the conversation."""
    mute = Mute(problem=RuntimeError("the secret"))
    timeline = await talk(
        recorder, *FULL, policy=small_policy(max_tokens=4_000, on_failure="unchanged"), summarizer=mute
    )
    with pytest.raises(SummarizerFailed):
        await timeline.compact()
    [compaction], [chat] = recorder.named("compact_timeline"), recorder.named("chat")
    for span, error in ((compaction, "SummarizerFailed"), (chat, "RuntimeError")):
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
        assert dict(span.attributes or {})["error.type"] == error
        assert "gen_ai.conversation.compacted" not in dict(span.attributes or {})
    assert not any("secret" in span.to_json() for span in recorder.spans.get_finished_spans())
    [(told, count)] = recorder.points("timeline.compaction.count")
    assert (told["timeline.compaction.outcome"], count) == ("failed", 1)


async def test_an_answer_that_could_not_be_used_is_counted(recorder: Recorder) -> None:
    """The request's span and the histogram say what it took."""
    mute = Mute(problem=SummarizerFailed(["empty"], cause="empty", usage=Usage(input_tokens=70, output_tokens=2)))
    timeline = await talk(
        recorder, *FULL, policy=small_policy(max_tokens=4_000, on_failure="unchanged"), summarizer=mute
    )
    with pytest.raises(SummarizerFailed):
        await timeline.compact()
    [chat] = recorder.named("chat")
    assert dict(chat.attributes or {})["gen_ai.usage.input_tokens"] == 70
    assert len(recorder.points("gen_ai.client.token.usage")) == 2


@dataclass
class Odd:
    """A summarizer of an application that answers with what is no answer, or raises it."""

    answers: Any
    name: str = "odd"

    async def summarize(self, request: SummaryRequest) -> Any:
        """Answer."""
        del request
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers


NO_USAGE: Final[Any] = {"input_tokens": 3}
NO_TEXT: Final[Any] = b"bytes"


@pytest.mark.parametrize(
    "answers",
    [
        "a text",
        None,
        Summary(text="fine", summarizer="odd", usage=NO_USAGE),
        Summary(text=NO_TEXT, summarizer="odd"),
        SummarizerFailed(["out of service"], usage=NO_USAGE),
    ],
)
async def test_a_wrong_answer_is_judged_alike_whether_or_not_it_is_observed(recorder: Recorder, answers: Any) -> None:
    """The log says what is wrong with it, and not what telemetry stumbled over."""
    reasons = []
    for observer in (None, recorder.telemetry(), recorder.telemetry(include_content=True)):
        timeline = await talk(recorder, *FULL, summarizer=Odd(answers), observer=observer)
        await timeline.compact()
        reasons.append(timeline.window.summaries[0].written_by.fallback_reason)
    assert len(set(reasons)) == 1
    assert (
        "not a" in str(reasons[0]) or "object of type bytes" in str(reasons[0]) or "out of service" in str(reasons[0])
    )
    assert recorder.points("gen_ai.client.token.usage") == []


async def test_the_time_of_each_request_is_measured_as_the_conventions_demand(recorder: Recorder) -> None:
    """In seconds, by provider and models; of one that failed with the type of its error, and nothing that it said."""
    timeline = await talk(recorder, *FULL)
    await timeline.compact()
    mute = await talk(recorder, *FULL, summarizer=Mute(problem=RuntimeError("the secret")))
    await mute.compact()
    named = {"gen_ai.operation.name": "chat"}
    models = {"gen_ai.request.model": "model-x", "gen_ai.response.model": "model-x-2026"}
    told = recorder.points("gen_ai.client.operation.duration")
    assert [attributes for attributes, _ in told] == [
        {**named, "gen_ai.provider.name": "anthropic", **models},
        {**named, "error.type": "RuntimeError"},
    ]
    chats = [span for span in recorder.spans.get_finished_spans() if span.kind is SpanKind.CLIENT]
    took = sum(((span.end_time or 0) - (span.start_time or 0)) / 1e9 for span in chats)
    assert 0 < sum(seconds for _, seconds in told) <= took


async def test_a_cancellation_ends_every_span(recorder: Recorder) -> None:
    """Whatever was under way is an error of that kind, and the count knows it."""
    slow = Slow()
    timeline = await talk(recorder, *FULL, summarizer=slow)
    rendering = asyncio.create_task(timeline.render())
    await slow.asleep.wait()
    rendering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rendering
    for name in ("render_timeline", "compact_timeline", "chat"):
        [span] = recorder.named(name)
        assert dict(span.attributes or {})["error.type"] == "CancelledError"
    [(told, _)] = recorder.points("timeline.compaction.count")
    assert told["timeline.compaction.outcome"] == "cancelled"
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_a_compaction_that_the_log_has_counts_as_completed_though_its_hook_was_cancelled(
    recorder: Recorder,
) -> None:
    """The metric agrees with the log: it was cancelled behind the commit."""
    called = asyncio.Event()

    async def wait(facts: dict[str, Any]) -> None:
        del facts
        called.set()
        await anyio.sleep_forever()

    timeline = await talk(recorder, *FULL, hooks=Hooks(on_after_compaction=wait))
    compacting = asyncio.create_task(timeline.compact())
    await called.wait()
    compacting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await compacting
    assert len(await payloads_of(timeline._store, "compaction.completed")) == 1
    [(told, _)] = recorder.points("timeline.compaction.count")
    assert told["timeline.compaction.outcome"] == "completed"
    [span] = recorder.named("compact_timeline")
    assert dict(span.attributes or {})["timeline.compaction.outcome"] == "completed"


async def test_a_refusal_is_an_answer_and_no_error(recorder: Recorder) -> None:
    """A veto, for example."""

    async def forbid(facts: dict[str, Any]) -> Skip:
        del facts
        return Skip("not now")

    timeline = await talk(recorder, *FULL, hooks=Hooks(on_before_compaction=forbid))
    with pytest.raises(CompactionRefused):
        await timeline.compact()
    [span] = recorder.named("compact_timeline")
    assert span.status.status_code == StatusCode.UNSET
    assert dict(span.attributes or {})["timeline.compaction.outcome"] == "vetoed"


async def test_a_render_that_overflows_is_an_error(recorder: Recorder) -> None:
    """The request cannot be sent."""
    timeline = await talk(recorder, prompt(30), answer(1_200), policy=small_policy(max_tokens=1_000))
    with pytest.raises(ContextOverflow):
        await timeline.render()
    [span] = recorder.named("render_timeline")
    assert dict(span.attributes or {})["error.type"] == "ContextOverflow"


async def test_conversations_side_by_side_have_traces_of_their_own(recorder: Recorder) -> None:
    """One observer serves many tasks; no span becomes the child of another task's."""
    observer = recorder.telemetry()
    names = [f"c{number}" for number in range(5)]

    async def work(name: str) -> None:
        timeline = await opened(MemoryStore(), name, summarizer=Biller(), observer=observer, **SMALL)
        await timeline.append(*FULL)
        await timeline.render()

    await asyncio.gather(*map(work, names))
    spans = recorder.spans.get_finished_spans()
    by_trace: dict[int, set[object]] = {}
    for span in spans:
        assert span.context is not None
        by_trace.setdefault(span.context.trace_id, set()).add(dict(span.attributes or {})["gen_ai.conversation.id"])
    assert len(by_trace) == 5
    assert sorted(str(own) for ids in by_trace.values() for own in ids) == names
    assert len(spans) == 15


async def test_pruned_tokens_are_counted_and_noted_in_the_render(recorder: Recorder) -> None:
    """What hiding freed, with why; the tools are not named in a metric."""
    policy = policies.prune_then_summarize(
        max_tokens=6_000, output_reserve=1_000, counter="chars4", protect=1_000, minimum=500
    )
    blocks = [prompt(), *exchange("a", 2_000), *exchange("b", 2_500), prompt(), answer(), prompt(), answer(800)]
    timeline = await talk(recorder, *blocks, policy=policy)
    context = await timeline.render()
    saved = context.pruned.tokens_saved
    assert recorder.points("timeline.pruned.tokens") == [({"timeline.compaction.trigger": "over_trigger"}, saved)]
    [render] = recorder.named("render_timeline")
    [noted] = render.events
    assert dict(noted.attributes or {})["timeline.pruned.tokens"] == saved
    assert "gen_ai.conversation.compacted" not in dict(render.attributes or {})


async def test_previews_alone_are_counted_as_the_hides_that_they_are(recorder: Recorder) -> None:
    """No summary comes with them: what the log says that they freed is in the metric, too."""
    timeline = await talk(recorder, prompt(9_000), policy=small_policy(max_tokens=8_000))
    context = await timeline.render()
    assert [taken.kind for taken in context.decisions] == ["previewed"]
    [hidden] = await payloads_of(timeline._store, "blocks.hidden")
    saved = hidden.pruned.saved_tokens
    assert recorder.points("timeline.pruned.tokens") == [({"timeline.compaction.trigger": "over_trigger"}, saved)]
    [compaction] = recorder.named("compact_timeline")
    [noted] = compaction.events
    assert dict(noted.attributes or {})["timeline.pruned.tokens"] == saved


async def test_no_content_is_told_unless_it_is_wanted(recorder: Recorder) -> None:
    """Prompts, messages and summaries stay in the log."""
    timeline = await talk(recorder, prompt(text="the secret " * 9), *FULL)
    await timeline.render(system="the secret", tools=[{"name": "secret"}])
    assert not any("secret" in span.to_json() for span in recorder.spans.get_finished_spans())


async def test_content_has_the_form_of_the_conventions(recorder: Recorder) -> None:
    """A summary is a part of the type compaction; calls and results name each other."""
    observer = recorder.telemetry(include_content=True)
    timeline = await talk(recorder, *FULL, prompt(text="go on"), *exchange("a"), observer=observer)
    await timeline.render(system="You code.", tools=[{"name": "run"}])
    [render], [chat] = recorder.named("render_timeline"), recorder.named("chat model-x")
    told, asked = dict(render.attributes or {}), dict(chat.attributes or {})
    messages = json.loads(str(told["gen_ai.input.messages"]))
    parts = [part for message in messages for part in message["parts"]]
    assert next(part["type"] for part in parts) == "compaction"
    assert {part["type"] for part in parts} == {"compaction", "text", "tool_call", "tool_call_response"}
    assert [part["id"] for part in parts if "id" in part] == ["a", "a"]
    assert json.loads(str(told["gen_ai.system_instructions"])) == [{"type": "text", "content": "You code."}]
    assert json.loads(str(told["gen_ai.tool.definitions"])) == [{"name": "run"}]
    assert json.loads(str(asked["gen_ai.input.messages"]))[0]["role"] == "user"
    [said] = json.loads(str(asked["gen_ai.output.messages"]))
    assert said["parts"] == [{"type": "text", "content": "history 1"}]


async def test_of_a_dry_run_only_the_requests_are_traced(recorder: Recorder) -> None:
    """Nothing was compacted, but a model was asked."""
    timeline = await talk(recorder, *FULL)
    await timeline.render(record=False)
    await (await timeline.at(timeline.version)).render()
    assert {span.name for span in recorder.spans.get_finished_spans()} == {"chat model-x"}
    assert recorder.points("timeline.compaction.count") == []


async def test_the_hosts_own_span_is_the_parent_and_can_say_what_ours_say(recorder: Recorder) -> None:
    """Its model call is its own; it takes the attributes from the context."""
    timeline = await talk(recorder, prompt())
    assert conversation_attributes(await timeline.render()) == {"gen_ai.conversation.id": "c"}
    recorder.spans.clear()
    await timeline.append(*FULL)
    with recorder.tracers.get_tracer("host").start_as_current_span("invoke_agent") as host:
        context = await timeline.render()
        host.set_attributes(conversation_attributes(context))
    [render], [own] = recorder.named("render_timeline"), recorder.named("invoke_agent")
    assert render.parent == own.context
    assert dict(own.attributes or {}) == {"gen_ai.conversation.id": "c", "gen_ai.conversation.compacted": True}


async def test_a_question_about_digests_is_a_search_in_memory(recorder: Recorder) -> None:
    """It ends with the iteration, is not the parent of what is done meanwhile, and says the query only if wanted."""
    timeline = await talk(recorder, *FULL)
    await timeline.compact()
    recorder.spans.clear()
    telemetry = recorder.telemetry()
    async for _ in telemetry.digests(timeline._store, conversation="c"):
        assert trace.get_current_span() is trace.INVALID_SPAN
    assert [found async for found in telemetry.search(timeline._store, "abc", conversation="c")]
    first, second = recorder.named("search_memory")
    assert dict(first.attributes or {}) == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.conversation.id": "c",
        "timeline.search.results": 1,
    }
    assert "gen_ai.memory.query.text" not in dict(second.attributes or {})
    open_ = recorder.telemetry(include_content=True)
    assert [found async for found in open_.search(timeline._store, "abc")]
    assert dict(recorder.named("search_memory")[-1].attributes or {})["gen_ai.memory.query.text"] == "abc"


async def test_without_an_sdk_nothing_is_recorded_and_everything_works() -> None:
    """The global providers are asked, and are not changed."""
    before = trace.get_tracer_provider()
    timeline = await opened(MemoryStore(), observer=Telemetry(), summarizer=Biller(), policy=SMALL["policy"])
    await timeline.append(*FULL)
    assert (await timeline.render()).decisions
    assert trace.get_tracer_provider() is before


def test_the_core_does_not_import_it() -> None:
    """A timeline without telemetry pays nothing; a missing package is named with its cure."""
    code = (
        "import sys; import timeline.timeline, timeline.sync, timeline.integrations;"
        "assert not any(name.partition('.')[0] == 'opentelemetry' for name in sys.modules), 'imported';"
        "sys.modules['opentelemetry'] = None\n"
        "try:\n import timeline.integrations.telemetry\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'timeline-engine[otel]'" in done.stdout
