"""The prefix that every provider caches: system prompt and tools stay byte for byte, and a change is reported."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import AT, Scribe, opened, payloads_of, small_policy, turn
from timeline import policies
from timeline.engine.renderer import joined_system
from timeline.frozen import canonical_json
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.policy.model import Policy

TOOLS: list[Any] = [{"name": "bash", "description": "Runs a command.", "input_schema": {"type": "object"}}]
SYSTEM: list[Any] = [{"type": "text", "text": "You code."}, {"type": "text", "text": "Be brief."}]


@pytest.mark.shows("004-88", "R-004-22")
@pytest.mark.parametrize(
    "policy",
    [
        policies.keep_ratio(max_tokens=20_000),
        policies.prune_then_summarize(max_tokens=7_500),
        policies.keep_last(max_tokens=16_000, messages=4),
        small_policy(max_tokens=4_000, keep_recent_tokens=400),
    ],
    ids=lambda policy: policy.name,
)
async def test_a_compaction_leaves_system_prompt_and_tools_byte_for_byte(policy: Policy) -> None:
    """The summary is among the messages, as a pair or as text: never in what every provider caches first."""
    store = MemoryStore()
    timeline = await opened(store, policy=policy, summarizer=Scribe())
    await timeline.append(*turn(500, 30))
    before = await timeline.render(system=SYSTEM, tools=TOOLS, now=AT)
    await timeline.append(*(block for _ in range(7) for block in turn(500, 30)))
    after = await timeline.render(system=SYSTEM, tools=TOOLS, now=AT)
    assert "compacted" in [taken.kind for taken in after.decisions]
    for wire in ("anthropic", "openai_chat"):
        one, two = before.to_wire(wire), after.to_wire(wire)
        assert canonical_json(one.get("system")) == canonical_json(two.get("system"))
        assert canonical_json(one["tools"]) == canonical_json(two["tools"])
    assert before.to_openai_chat()["messages"][0] == after.to_openai_chat()["messages"][0]
    assert await payloads_of(store, "prefix.changed") == await payloads_of(store, "tools.changed") == []


@pytest.mark.shows("004-112", "R-004-24")
async def test_a_changed_prompt_is_an_event_and_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Reported once, with both hashes, also by a process that opened the log again."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    with caplog.at_level(logging.WARNING, logger="timeline"):
        await timeline.render(system="You code.", tools=TOOLS)
        await timeline.append(*turn())
        await timeline.render(system="You code.", tools=TOOLS)
        assert not caplog.messages
        await (await opened(store)).render(system="You code. It is noon.", tools=TOOLS)
        await (await opened(store)).render(system="You code. It is noon.", tools=TOOLS)
    [changed] = await payloads_of(store, "prefix.changed")
    renders = await payloads_of(store, "context.rendered")
    assert (changed.before, changed.after) == (renders[0].system, renders[-1].system)
    assert [message for message in caplog.messages if "system prompt changed" in message] == caplog.messages
    assert len(caplog.messages) == 1
    assert (await timeline.verify()).ok


@pytest.mark.shows("004-113")
async def test_changed_tools_are_told_apart_from_a_changed_prompt(caplog: pytest.LogCaptureFixture) -> None:
    """Also where there were none, and where contexts are kept as hashes only."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    await timeline.render(record="hash")
    with caplog.at_level(logging.WARNING, logger="timeline"):
        await timeline.render(tools=TOOLS, record="hash")
    [changed] = await payloads_of(store, "tools.changed")
    assert (changed.before, bool(changed.after)) == (None, True)
    assert await payloads_of(store, "prefix.changed") == []
    assert caplog.messages == ["conversation c: the tools changed; the provider's cache starts anew"]


async def test_a_snapshot_knows_the_prefix_of_the_newest_context() -> None:
    """A log that is opened behind a compaction reports a change as well."""
    store = MemoryStore()
    policy = small_policy(max_tokens=4_000, keep_recent_tokens=400)
    timeline = await opened(store, policy=policy, summarizer=Scribe())
    await timeline.append(*turn(500, 30))
    await timeline.render(system="one", now=AT)
    await timeline.append(*(block for _ in range(7) for block in turn(500, 30)))
    await timeline.compact(now=AT)
    again = await opened(store, policy=policy)
    assert again.window == timeline.window
    await again.render(system="two", now=AT)
    assert len(await payloads_of(store, "prefix.changed")) == 1


@pytest.mark.shows("004-111", "R-004-23")
async def test_a_system_prompt_of_many_parts_becomes_two_where_the_policy_says_so() -> None:
    """Seed 004, gap 8: the first stays, the rest is joined."""
    parts: list[Any] = [{"type": "text", "text": text} for text in ("You code.", "Be brief.", "It rains.")]
    timeline = await opened(MemoryStore(), policy=policies.prune_then_summarize())
    await timeline.append(*turn())
    sent = (await timeline.render(system=parts)).neutral.system
    assert sent == [parts[0], {"type": "text", "text": "Be brief.\nIt rains."}]
    await timeline.use_policy(small_policy())
    assert (await timeline.render(system=parts)).neutral.system == parts


def test_what_is_no_list_of_texts_is_left_as_it_is() -> None:
    """Nothing is lost for the sake of a count."""
    odd: list[Any] = ["a", {"type": "text", "text": "b"}, {"type": "picture"}]
    assert joined_system("a text", 2) == "a text"
    assert joined_system(["a", "b"], 2) == ["a", "b"]
    assert joined_system(odd, 2) == odd
    assert joined_system(["a", "b", "c"], 1) == ["a\nb\nc"]
