"""Simulate a policy on a recording, as the application would run it: append each event, render before each model call.

The events go into a new conversation at their recorded times, and every render is recorded. The recorded client's
compactions are left out: the policy makes its own. Each call reports what the provider would have counted for the
context that it was sent here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from timeline.errors import BudgetError, InvalidArgument
from timeline.events import ABRIDGED, BlockAppended, BlocksHidden, CompactionCompleted, ModelCalled, derived_event_id
from timeline.fold.groups import atomic_groups
from timeline.fold.states import block_states
from timeline.fold.turns import RESPONSE_BLOCKS
from timeline.importers.recording import ImportedCompaction, ImportedHide
from timeline.lab.sizes import measure
from timeline.lab.true_sizes import TrueSizes, overall_ratio, rescaled
from timeline.log.stored import free_id
from timeline.planning.account import least_progress
from timeline.portable.recordings import drafts_of
from timeline.timeline import Timeline
from timeline.usage import CACHE_SECONDS, TERMS, asked_seconds, reported_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from pydantic import JsonValue

    from timeline.events import ContextRendered, Event
    from timeline.importers.recording import RecordedEvent, Recording
    from timeline.policy.model import Policy
    from timeline.portable.stored import StoredConversation
    from timeline.ports import EventStore, Summarizer
    from timeline.projection.context import RenderedContext


class PromptAndTools(NamedTuple):
    """The system prompt and the tool schemas of a call."""

    system: JsonValue
    tools: tuple[JsonValue, ...]


@dataclass(slots=True)
class Simulation:
    """The result of a simulation. All counts but ``renders``, ``compactions`` and ``hides`` are 0 in a sound run.

    Attributes:
        id: the new conversation.
        renders: recorded contexts.
        compactions: completed compactions.
        hides: hidden blocks.
        orphans: results without their call, or calls without any result, on the wire.
        uncovered: blocks in no state.
        no_progress: compactions that freed less than the policy's least.
        over_limit: contexts above the limit that were not refused.
        warm_hides: hides by the cache clock although the cache was warm by the log's own times.
        dead_paths: paths in a replacement or a summary that the recall tool cannot read.
        typed_errors: renders that were refused with a typed error.
        steps: each compaction with its figures.
        errors: each typed error: its type, the message, and the largest group of the window in tokens.
        largest: the largest context, in tokens.
    """

    id: str
    renders: int = 0
    compactions: int = 0
    hides: int = 0
    orphans: int = 0
    uncovered: int = 0
    no_progress: int = 0
    over_limit: int = 0
    warm_hides: int = 0
    dead_paths: int = 0
    typed_errors: int = 0
    largest: int = 0
    steps: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape of `timeline simulate --json`."""
        names = ("id", "renders", "compactions", "hides", "orphans", "uncovered", "no_progress", "over_limit")
        more = ("warm_hides", "dead_paths", "typed_errors", "largest", "steps", "errors")
        return {name: getattr(self, name) for name in (*names, *more)}


async def simulate(
    store: EventStore,
    recording: Recording,
    policy: Policy,
    *,
    system: JsonValue = None,
    tools: Sequence[JsonValue] = (),
    pauses: float = 1.0,
    summarizer: Summarizer | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Simulation:
    """Run a recording under a policy, into a conversation of its own.

    Args:
        store: the store of the new conversation.
        recording: a recording from an importer.
        policy: the policy to try.
        system: the system prompt of every call; recordings have none.
        tools: the tool schemas of every call.
        pauses: factor for the recorded time between events; 0 leaves no pauses, so that no provider's cache goes cold.
        summarizer: asked for summaries; the extractive one unless given.
        on_progress: called with the number of events fed.

    Raises:
        InvalidArgument: with these pauses a time would be after the year 9999.
        StoreError: the store cannot be read or written.
    """
    id_ = await free_id(store, f"{recording.id}.{policy.name}-{policy.max_tokens}")
    measured = measure(recording)
    numbers = [number for number, event in enumerate(recording.events) if _is_said(event)]
    events = [recording.events[number] for number in numbers]
    events = paced(events, pauses, since=events[0].at) if events else events
    at = events[0].at if events else None
    timeline = await Timeline.open(
        store, id_, policy=policy, summarizer=summarizer, title=recording.title, source=recording.report.format, now=at
    )
    fixed = PromptAndTools(system, tuple(tools))
    steps = [_Step(event, fixed, measured.tokens[number]) for number, event in zip(numbers, events, strict=True)]
    return await _run(store, timeline, steps, TrueSizes(overall_ratio(measured)), on_progress)


async def simulate_from(
    store: EventStore,
    stored: StoredConversation,
    policy: Policy,
    *,
    call: int,
    pauses: float = 1.0,
    system: JsonValue = None,
    tools: Sequence[JsonValue] | None = None,
    summarizer: Summarizer | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Simulation:
    """Run a stored conversation again from one of its model calls on, under another policy, in a fork of its own.

    The fork begins with everything that the call answered, earlier compactions included. From there on the given policy
    decides, and what was said follows as recorded. System prompt and tools are by default those of each recorded
    context.

    Args:
        store: holds the conversation, and gets the fork; give a copy in memory (`copied`) to write nothing.
        stored: the conversation, as `stored_conversation` reads it.
        policy: the policy to try.
        call: number of the first model call that is made again.
        pauses: as for `simulate`, from that call on.
        system: the system prompt of every call.
        tools: the tool schemas of every call.
        summarizer: asked for summaries; the extractive one unless given.
        on_progress: called with the number of events fed.

    Raises:
        CallNotFound: the conversation has no such call.
        InvalidArgument: see `simulate`.
        StoreError: the store cannot be read or written.
    """
    recording, version = stored.recording, stored.before_call(call)
    measured, begin = measure(recording), stored.position(version)
    id_ = await free_id(store, f"{recording.id}.{policy.name}-{policy.max_tokens}.call-{call}")
    rest = paced(recording.events[begin:], pauses, since=stored.events[version - 1].at)
    given = await _fixed_parts(store, stored.contexts(version), system, tools)
    sized = zip(rest, given, measured.tokens[begin:], strict=True)
    steps = [_Step(event, fixed, tokens) for event, fixed, tokens in sized if _is_said(event)]
    sizes = TrueSizes(overall_ratio(measured))
    replayed = zip(stored.versions[:begin], recording.events, measured.tokens, strict=False)
    sizes.of_block = {own: tokens for own, event, tokens in replayed if isinstance(event.payload, BlockAppended)}
    at = steps[0].event.at if steps else None
    original = await Timeline.open(store, recording.id, summarizer=summarizer, create=False)
    timeline = await original.fork(at=version, conversation=id_, title=recording.title, now=at)
    await timeline.use_policy(policy, now=at)
    return await _run(store, timeline, steps, sizes, on_progress)


class _Step(NamedTuple):
    """An event to append, the fixed part of the call that it begins, and the measured tokens of its block."""

    event: RecordedEvent
    fixed: PromptAndTools
    tokens: int


async def _run(
    store: EventStore,
    timeline: Timeline,
    steps: Sequence[_Step],
    sizes: TrueSizes,
    on_progress: Callable[[int], None],
) -> Simulation:
    """Append events, rendering before each response, and count what came of it."""
    result = Simulation(timeline.id)
    drafts = await drafts_of(
        timeline, [(s.event, derived_event_id(s.event.at, timeline.id, s.event.key)) for s in steps]
    )
    responses = _Responses(step.event for step in steps)
    sent: dict[int, int] = {}
    for number, (step, draft) in enumerate(zip(steps, drafts, strict=True)):
        payload = step.event.payload
        if (begun := responses.begun_by(step.event)) is not None:
            context = await _render(timeline, result, step)
            responses.contexts[begun] = None if context is None else context.recorded
            if context is not None and context.recorded is not None:
                sent[context.recorded] = sizes.of(context)
        if isinstance(payload, ModelCalled):
            answers = responses.answered_by(payload)
            usage = payload.usage if answers is None else rescaled(payload.usage, sent[answers])
            called = payload.model_copy(update={"answers": answers, "usage": usage})
            draft = draft._replace(payload=called)  # noqa: PLW2901
        await timeline.extend([draft])
        if isinstance(payload, BlockAppended):
            sizes.of_block[timeline.version] = step.tokens
        on_progress(number + 1)
    await _sum_up(store, timeline, result)
    return result


def paced(events: Sequence[RecordedEvent], pauses: float, *, since: datetime) -> list[RecordedEvent]:
    """Return events with ``pauses`` times the recorded time between them, from the time ``since`` on.

    Raises:
        InvalidArgument: a time would be after the year 9999.
    """
    if pauses == 1:
        return list(events)
    try:
        return [_moved(event, lambda at: since + (at - since) * pauses) for event in events]
    except OverflowError:
        raise InvalidArgument("pauses", f"{pauses:g} times the recorded time ends after the year 9999") from None


def _moved(event: RecordedEvent, when: Callable[[datetime], datetime]) -> RecordedEvent:
    payload = event.payload
    if isinstance(payload, BlockAppended) and payload.block.at is not None:
        block = payload.block.model_copy(update={"at": when(payload.block.at)})
        payload = payload.model_copy(update={"block": block})
    elif isinstance(payload, ModelCalled) and payload.started_at is not None:
        payload = payload.model_copy(update={"started_at": when(payload.started_at)})
    return replace(event, payload=payload, at=when(event.at))


def _is_said(event: RecordedEvent) -> bool:
    """Return whether an event happened whichever policy decides; what the recorded client decided did not."""
    return not isinstance(event.payload, ImportedCompaction | ImportedHide)


async def _fixed_parts(
    store: EventStore,
    contexts: Sequence[ContextRendered | None],
    system: JsonValue,
    tools: Sequence[JsonValue] | None,
) -> list[PromptAndTools]:
    """Return the system prompt and tools of contexts as they were recorded, or the given ones instead.

    A part of which only the hash was recorded is missing.
    """
    hashes = {h for context in contexts if context is not None for h in (context.system, context.tools) if h}
    values = {hash_: json.loads(text) for hash_, text in (await store.values(hashes)).items()}
    parts = []
    for context in contexts:
        recorded = (None, None) if context is None else (context.system, context.tools)
        system_of_call, schemas = (None if hash_ is None else values.get(hash_) for hash_ in recorded)
        parts.append(
            PromptAndTools(
                system_of_call if system is None else system, tuple((schemas or ()) if tools is None else tools)
            )
        )
    return parts


class _Responses:
    """The responses of a run: which event begins each one, and the context of the run that its model call answers.

    `record` appends the blocks of a response before its call; some frameworks append them behind it.
    """

    def __init__(self, events: Iterable[RecordedEvent]) -> None:
        self.contexts: dict[str, int | None] = {}
        """By response that began, oldest first: the version of its recorded context; None where there is none."""
        self._with_blocks = {response for event in events if (response := _response(event)) is not None}

    def begun_by(self, event: RecordedEvent) -> str | None:
        """Return the response that an event is the first of: a block, or a call whose blocks follow it."""
        response = _response(event)
        if isinstance(event.payload, ModelCalled) and event.payload.response_id in self._with_blocks:
            response = event.payload.response_id
        return None if response in self.contexts else response

    def answered_by(self, called: ModelCalled) -> int | None:
        """Return the version of the context that a call answers; None for one that no blocks came of."""
        if called.response_id in self._with_blocks:
            return self.contexts.get(called.response_id)
        if called.response_id is not None or called.finish_reason == "error" or not self.contexts:
            return None
        return self.contexts[next(reversed(self.contexts))]


def _response(event: RecordedEvent) -> str | None:
    """Return the id of the response that an event appends a block of, or else the event's key."""
    if not isinstance(event.payload, BlockAppended) or type(event.payload.block) not in RESPONSE_BLOCKS:
        return None
    return event.payload.block.response_id or event.key


async def _render(timeline: Timeline, result: Simulation, step: _Step) -> RenderedContext | None:
    """Render and count; return the context, or None where the render was refused."""
    try:
        context = await timeline.render(system=step.fixed.system, tools=step.fixed.tools, now=step.event.at)
    except BudgetError as error:
        result.typed_errors += 1
        result.errors.append(
            {
                "type": type(error).__name__,
                "message": str(error),
                "version": timeline.version,
                "largest_group": _largest_group(timeline),
            }
        )
        return None
    result.renders += 1
    result.orphans += unpaired(context)
    result.over_limit += context.account.sent > timeline.policy.max_tokens
    result.largest = max(result.largest, context.account.sent)
    return context


def unpaired(context: RenderedContext) -> int:
    """Count, on the wire, results that do not follow their call and calls without a result."""
    bad, calls = 0, set[str]()
    for message in context.to_anthropic()["messages"]:
        parts = message["content"] if isinstance(message["content"], list) else []
        bad += len({p["tool_use_id"] for p in parts if p["type"] == "tool_result"} ^ calls)
        calls = {p["id"] for p in parts if p["type"] == "tool_use"}
    return bad + len(calls)


def _largest_group(timeline: Timeline) -> int:
    items = timeline.window.items
    return max((sum(items[i].tokens for i in g.indices) for g in atomic_groups(items)), default=0)


async def _sum_up(store: EventStore, timeline: Timeline, result: Simulation) -> None:
    """Fill in the counts that are taken from the log at the end of a run; what a fork shares is its parent's."""
    events = [event async for event in store.read(timeline.id)]
    _, states = block_states(events, timeline.id)
    result.uncovered = sum(state.state is None for state in states)
    base = (await store.info(timeline.id)).base
    own = [event for event in events if event.version > base]
    result.warm_hides = _warm_hides(own, timeline.policy)
    addresses = {state.version: state.block.path for state in states}
    printed: dict[str, None] = {}
    for event in own:
        payload = event.payload
        if isinstance(payload, CompactionCompleted):
            result.compactions += 1
            freed = payload.before_tokens - payload.after_tokens
            result.no_progress += freed < least_progress(timeline.policy, payload.before_tokens)
            result.steps.append(_step(event.version, payload))
            printed |= dict.fromkeys((payload.block.path, *payload.digest.paths))
        elif isinstance(payload, BlocksHidden):
            result.hides += len(payload.blocks) if payload.reason not in ABRIDGED else 0
            printed |= dict.fromkeys(addresses[replacement.version] for replacement in payload.blocks)
    result.dead_paths = await _dead_paths(timeline, printed)


def _step(version: int, payload: CompactionCompleted) -> dict[str, Any]:
    return {
        "version": version,
        "summary_path": payload.block.path,
        "reason": payload.reason,
        "compaction_number": payload.round,
        "before_tokens": payload.before_tokens,
        "after_tokens": payload.after_tokens,
        "compacted_tokens": payload.compacted_tokens,
        "covers": payload.covers.model_dump(mode="json"),
        "carried": len(payload.carried),
        "split_turn_id": payload.split_turn_id,
        "target_missed": payload.target_missed,
        "summarizer": payload.written_by.summarizer,
    }


def _warm_hides(events: Sequence[Event], policy: Policy) -> int:
    """Count blocks that the cache clock hid too early, from the times of the log alone."""
    given, asked = policy.hiding and policy.hiding.ttl, asked_seconds(policy.cache_points.kept_long)
    known = None if policy.cache is None else TERMS[policy.cache].seconds
    lifetime = CACHE_SECONDS
    called: datetime | None = None
    hidden = 0
    for event in events:
        payload = event.payload
        if isinstance(payload, ModelCalled):
            called = payload.started_at or event.at
            lifetime = reported_seconds(payload.usage) or lifetime
        elif isinstance(payload, BlocksHidden) and payload.reason == "cold" and called is not None:
            is_warm = (event.at - called).total_seconds() < (
                given or (max(lifetime, asked) if known is None else known)
            )
            hidden += len(payload.blocks) if is_warm else 0
    return hidden


async def _dead_paths(timeline: Timeline, paths: Iterable[str]) -> int:
    """Read paths with the recall tool, as a model would; count those that it cannot read."""
    tool = timeline.recall_tool("anthropic")
    answers = [await tool.handle({"path": path, "limit": 200}) for path in paths]
    return sum(not answer.startswith(f"[{path} ·") for path, answer in zip(paths, answers, strict=True))
