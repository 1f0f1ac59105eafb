"""The lab's figures, worked out a second time, as simply as can be: a store, whole requests, byte by byte, no reuse.

Nothing of `timeline.lab` is used but what was measured (sizes, calls). Each recorded call is rendered by a `Timeline`
on a store, encoded for Anthropic, parted into content parts, and compared with what the requests before it left in the
cache: the longest common beginning of their JSON, byte by byte.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from timeline import Timeline
from timeline.errors import BudgetError
from timeline.events import BlockAppended, CompactionCompleted, ModelCalled, derived_event_id
from timeline.importers.recording import ImportedCompaction, ImportedHide
from timeline.log.protocol import Draft
from timeline.ports import ABRIDGED_KEY, CUT_KEY, HIDDEN_KEY
from timeline.store import MemoryStore
from timeline.summarizers import ExtractiveSummarizer, frame_of, question_in_cache
from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.lab.prices import Price
    from timeline.lab.sizes import Measured, ReplayedCall
    from timeline.policy.model import Policy
    from timeline.ports import SummaryRequest, TokenCounter
    from timeline.projection.context import RenderedContext

PROMPT = "[system prompt and tools of the recorded client]"


@dataclass
class Naive:
    """What the naive calculation comes to."""

    units: float = 0.0
    read: int = 0
    written: int = 0
    written_long: int = 0
    compactions: int = 0
    fingerprints: tuple[str, ...] = ()
    reads: tuple[int, ...] = ()
    visible: tuple[int, ...] = ()


@dataclass
class _Part:
    text: str
    tokens: int
    marked: bool
    long: bool = False


@dataclass
class _Entry:
    prefix: str
    tokens: int
    until: float
    model: str


async def naive(measured: Measured, policy: Policy, counter: TokenCounter, price_of: Callable[[str], Price]) -> Naive:
    """Work a recording out under a policy. Each summary is priced by what it was asked, by itself or in the cache."""
    asked: list[SummaryRequest] = []
    answers: list[str] = []
    beside, sent = Naive(), list[_Part]()

    class Spy:
        name = "extractive"

        async def summarize(self, request: SummaryRequest) -> Any:
            answer = await ExtractiveSummarizer().summarize(request)
            answers.append(answer.text)
            question = counter.count(question_in_cache(request))
            room = request.answer_room * request.max_tokens
            if request.warm is None or request.warm.tokens + question + room > policy.max_tokens:
                asked.append(request)
                return answer
            now = replace(calls[position], end=calls[position].start, model=request.warm.model)
            _pay(beside, cache, [*sent, _Part(f"question {len(answers)}", question, False)], now, price_of(now.model))
            return replace(answer, asked="in_cache")

    store = MemoryStore()
    events = measured.recording.events
    timeline = await Timeline.open(
        store, measured.recording.id, policy=policy, counter=counter, summarizer=Spy(), now=events[0].at
    )
    result, cache, sizes = Naive(), list[_Entry](), dict[str, int]()
    calls = {call.position: call for call in measured.calls}
    for position, event in enumerate(events):
        if (call := calls.get(position)) is not None:
            with suppress(BudgetError):  # a refused call sends nothing
                context = await timeline.render(system=PROMPT, now=call.start)
                result.fingerprints += (context.fingerprint,)
                result.visible += (_visible(context),)
                sent = _parts(context)
                told = _pay(result, cache, sent, call, price_of(call.model))
                made = context.request("anthropic", model=call.model)
                timeline._conversation.note_call(ModelCalled(usage=told), made)  # as `record` does with a reply
        payload = event.payload
        if isinstance(payload, ImportedCompaction | ImportedHide):
            continue
        id_ = derived_event_id(event.at, measured.recording.id, event.key)
        if isinstance(payload, BlockAppended):
            [block] = await timeline.extend([Draft(id_, event.at, payload.block, measured.tokens[position])])
            sizes[block.path] = measured.tokens[position]
        else:
            await timeline.extend([Draft(id_, event.at, payload=payload)])
    rate = price_of(measured.calls[0].model)
    result.units += beside.units + sum(map(counter.count, answers)) * rate.model.output / rate.model.input
    for request in asked:
        own = [
            counter.count(block.countable())
            if {HIDDEN_KEY, ABRIDGED_KEY, CUT_KEY} & {*block.meta}
            else sizes.get(block.path, -1)
            for block in request.blocks
        ]
        own = [counter.count(b.countable()) if size < 0 else size for b, size in zip(request.blocks, own, strict=True)]
        prompt = counter.count(frame_of(request))
        result.units += sum(own) + prompt
    log = [event async for event in store.read(measured.recording.id)]
    result.compactions = sum(isinstance(event.payload, CompactionCompleted) for event in log)
    return result


def _visible(context: RenderedContext) -> int:
    """Count what is shown in full, summaries left out: a thought counts where the request holds it."""
    body = context.to_anthropic()
    said = {json.dumps(_bare(part), sort_keys=True) for message in body["messages"] for part in message["content"]}
    thoughts = {e.path: json.dumps(e.data, sort_keys=True) for e in context.neutral.entries if "reasoning" in e.type}
    whole = [b for b in context.blocks if b.state in {"visible", "carried"} and b.type != "conv.range.summary"]
    return sum(block.tokens for block in whole if thoughts.get(block.path) in {None, *said})


def _parts(context: RenderedContext) -> list[_Part]:
    """Part a request's body into content parts, each with its tokens: those of the block that it shows."""
    body = context.to_anthropic()
    said = [json.dumps(_bare(part), sort_keys=True) for message in body["messages"] for part in message["content"]]
    marked = [part.get("cache_control") for message in body["messages"] for part in message["content"]]
    tokens = _tokens_by_part(context, len(said))
    fixed = context.account.fixed
    marker = body["system"][-1]["cache_control"]
    parts = [_Part(json.dumps(PROMPT), fixed.system + fixed.tools, True, _is_long(marker))]
    return parts + [
        _Part(text, count, mark is not None, _is_long(mark))
        for text, count, mark in zip(said, tokens, marked, strict=True)
    ]


def _is_long(marker: dict[str, Any] | None) -> bool:
    return marker is not None and marker.get("ttl") == "1h"


def _bare(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "cache_control"}


def _tokens_by_part(context: RenderedContext, count: int) -> list[int]:
    """Encode the context once for each of its beginnings: the parts that one entry more brings cost what it costs."""
    sizes = {block.path: block.shown_tokens for block in context.blocks}
    by_text: dict[str, list[int]] = {}
    for entry in context.neutral.entries:
        own = sizes.pop(entry.path, 0)
        by_text.setdefault(_said_by(entry), []).append(own)
    body = context.to_anthropic()
    tokens: list[int] = []
    for message in body["messages"]:
        for part in message["content"]:
            waiting = by_text.get(_said_in(part), [])
            tokens.append(waiting.pop(0) if waiting else 15 if part["type"] == "tool_result" else 0)
    assert len(tokens) == count
    return tokens


def _said_by(entry: Any) -> str:
    if entry.role == "tool" and not entry.loose:
        return f"result {entry.call_id} {entry.text}"
    if entry.arguments is not None and entry.role == "assistant":
        return f"call {entry.call_id}"
    if entry.type == "assistant.reasoning":
        return "thought " + json.dumps(entry.data, sort_keys=True)
    if entry.role == "system":
        return f"text [system message] {entry.text}"
    return f"text {entry.text}"


def _said_in(part: dict[str, Any]) -> str:
    match part["type"]:
        case "tool_result":
            content = part.get("content", "")
            text = content if isinstance(content, str) else "".join(p.get("text", "") for p in content)
            return f"result {part['tool_use_id']} {text}"
        case "tool_use":
            return f"call {part['id']}"
        case "thinking" | "redacted_thinking":
            return "thought " + json.dumps(_bare(part), sort_keys=True)
        case "text":
            return f"text {part['text']}"
        case _:
            return "media"


def _pay(result: Naive, cache: list[_Entry], parts: list[_Part], call: ReplayedCall, price: Price) -> Usage:
    """Read the longest prefix that the cache holds byte for byte, write up to the last marker, and pay."""
    start, end, model = call.start.timestamp(), call.end.timestamp(), call.model
    texts = [part.text for part in parts]
    total = sum(part.tokens for part in parts)
    whole = "\n".join(texts) + "\n"
    marks = [number for number, part in enumerate(parts) if part.marked]
    prefixes = {}
    length = tokens = 0
    for number, part in enumerate(parts):
        length += len(part.text) + 1
        tokens += part.tokens
        prefixes[number] = (length, tokens)
    read = 0
    for entry in cache:
        if entry.model != model or start > entry.until or not whole.startswith(entry.prefix):
            continue
        number = next(n for n in prefixes if prefixes[n][0] == len(entry.prefix))
        if any(0 <= mark - number <= (price.rule.lookback or len(parts)) for mark in marks):
            read = max(read, entry.tokens)
    last = long = 0
    for mark in marks:
        length, tokens = prefixes[mark]
        if tokens < price.minimum:
            continue
        last = tokens
        seconds = price.rule.short
        if parts[mark].long:
            long, seconds = tokens, price.rule.long or price.rule.short
        before = [entry.until for entry in cache if entry.prefix == whole[:length] and entry.model == model]
        cache[:] = [entry for entry in cache if entry.prefix != whole[:length] or entry.model != model]
        cache.append(_Entry(whole[:length], tokens, max(end + seconds, *before, 0.0), model))
    written = max(0, last - read)
    result.read += read
    result.reads += (read,)
    result.written += written
    written_long = max(0, long - read)
    result.written_long += written_long
    result.units += price.units(read=read, written=written, uncached=total - read - written, written_long=written_long)
    return Usage(input_tokens=total - read - written, cache_read_tokens=read, cache_write_5m_tokens=written)
