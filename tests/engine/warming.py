"""What tests of summaries in the cached context share: a conversation that the next render compacts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.scenes import AT, opened, prompt, small_policy, turn, words
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline import Timeline
    from timeline.events import WrittenBy
    from timeline.policy.model import Policy
    from timeline.ports import EventStore
    from timeline.wire.request import Request

SYSTEM: Final = "You code."
TOOLS: Final[list[Any]] = [{"name": "run", "description": "Run.", "input_schema": {"type": "object"}}]
MODEL: Final = "small-1"
CACHED: Final = {"input_tokens": 100, "output_tokens": 9, "cache_read_input_tokens": 3_000}


def in_cache(source: str = "shown", **changes: Any) -> Policy:
    """Return a policy that asks in the cache."""
    policy = small_policy(**{"max_tokens": 4_000, "keep_recent_tokens": 800, **changes})
    [step] = policy.steps
    return policy.model_copy(update={"steps": (step.model_copy(update={"asked": "in_cache", "source": source}),)})


def reply(*, usage: dict[str, int] | None = None, **fields: Any) -> dict[str, Any]:
    """Return a model's reply of 400 tokens, most of whose input was in the cache."""
    said = [{"type": "text", "text": words(400)}]
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": "end_turn"}
    return {**whole, "content": said, "usage": CACHED if usage is None else usage, **fields}


async def begun(policy: Policy | None = None, *, store: EventStore | None = None, **options: Any) -> Timeline:
    """Return a conversation of two turns, below the trigger, and a third prompt."""
    timeline = await opened(store or MemoryStore(), policy=policy or in_cache(), **options)
    await timeline.append(*turn(1_500), *turn(1_400), prompt(20))
    return timeline


async def asked(timeline: Timeline, **parameters: Any) -> Request:
    """Render the next context, and make Anthropic's request of it."""
    context = await timeline.render(system=SYSTEM, tools=TOOLS)
    return context.request("anthropic", model=MODEL, **{"max_tokens": 99, **parameters})


async def called(timeline: Timeline, *, usage: dict[str, int] | None = None, **parameters: Any) -> Request:
    """Ask a model, and record its reply and a further prompt: the next render is above the trigger."""
    request = await asked(timeline, **parameters)
    await timeline.record(reply(usage=usage), request=request, now=AT)
    await timeline.append(prompt(400))
    return request


async def author(timeline: Timeline, **options: Any) -> WrittenBy:
    """Render, which compacts, and return the author of the summary."""
    await timeline.render(**{"system": SYSTEM, "tools": TOOLS, **options})
    compaction = timeline.window.compaction
    assert compaction is not None
    return compaction.written_by
