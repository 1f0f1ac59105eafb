"""What the hook of an application is shown before it is stored: every text, and no word that events live by."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.compacting import POLICY
from tests.scenes import FULL, Scribe, opened, payloads_of, prompt
from timeline import Hooks
from timeline.blocks import Note
from timeline.engine.screening import screened_payload
from timeline.events.other_payloads import FrameworkEntry
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.blocks import Block

MILLER = "Miller"
REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "ok"}],
}
KEYS = ("key", "path", "paths", "type", "at", "policy", "system", "tools", "conversation", "relation", "counter")


def masking(pattern: str) -> Callable[[Block], Block]:
    """Return a hook that masks what fits a pattern in the texts of blocks."""

    def mask(block: Block) -> Block:
        return block.model_copy(update={"text": re.sub(pattern, "[masked]", block.text)})

    return mask


@pytest.mark.parametrize("pattern", [r"\d{4}-\d\d-\d\d", r"\d{3,}", r"[a-z]+_[a-z]+", r"[a-z]+"])
async def test_a_hook_that_masks_times_and_plain_words_stops_no_compaction(pattern: str) -> None:
    """When a lease ends, and why something was done, is no text of a user's."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, hooks=Hooks(on_append=masking(pattern)))
    await timeline.append(*FULL)
    await timeline.compact()
    await timeline.undo_compaction()
    assert not (await timeline.render(system="You code.")).decisions[1:]
    [started] = await payloads_of(store, "compaction.started")
    assert started.reason == "forced"
    assert (await timeline.verify()).ok


async def test_a_dry_run_shows_what_the_hook_leaves() -> None:
    """A log from before the hook, or a model, says what it masks: the render sends it masked, and so it is shown."""
    store = MemoryStore()
    before = await opened(store, policy=POLICY)
    await before.append(prompt(text=f"Never write to {MILLER}."), *FULL)
    hooks = Hooks(on_append=masking(MILLER))
    timeline = await opened(store, policy=POLICY, summarizer=Scribe(answers=[f"{MILLER} is told."] * 2), hooks=hooks)
    dry = await timeline.render(record=False)
    past = await (await timeline.at(timeline.version)).render()
    real = await timeline.render()
    assert MILLER not in real.window.items[0].block.text
    assert past.window.items[0].block.text.count("[masked]") == 2
    assert dry.fingerprint == real.fingerprint


@pytest.mark.parametrize("key", KEYS)
async def test_a_name_below_any_key_of_a_tool_or_an_entry_is_masked(key: str) -> None:
    """A schema, a request or an entry of a framework may use a key that is the name of a field of an event."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, hooks=Hooks(on_append=masking(MILLER)))
    await timeline.append(prompt(20))
    tools: list[dict[str, Any]] = [
        {"name": "t", "input_schema": {"type": "object", "properties": {key: {"const": MILLER}}}}
    ]
    tools[0]["input_schema"]["properties"][key][key] = MILLER
    await timeline.render(tools=tools)
    [rendered] = await payloads_of(store, "context.rendered")
    assert rendered.record == "hash"
    assert await store.values([rendered.tools]) == {}
    entry = FrameworkEntry(framework="f", key=MILLER, data={"input": [{key: f"use {MILLER}"}]})
    left = screened_payload(masking(MILLER), entry)
    assert (left.key, left.data) == (MILLER, {"input": [{key: "use [masked]"}]})


@pytest.mark.parametrize("parameters", [{"metadata": {"key": MILLER}}, {"stop": [MILLER]}])
async def test_a_call_whose_request_the_hook_masks_is_recorded_without_it(parameters: dict[str, Any]) -> None:
    """Its body cannot be built again, and that is no difference that nothing explains."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, hooks=Hooks(on_append=masking(MILLER)))
    await timeline.append(prompt(20))
    context = await timeline.render()
    request = context.request("anthropic", model="m", max_tokens=9, **parameters)
    assert MILLER in str(request.arguments)
    await timeline.record(REPLY, request=request)
    await timeline.record({**REPLY, "id": "msg_2"}, request=context.request("anthropic", model="m", max_tokens=9))
    masked, kept = await payloads_of(store, "model.called")
    assert MILLER not in str(masked)
    assert (masked.request, masked.answers) == (None, kept.answers)
    assert kept.request is not None
    assert (await timeline.call(1)).unproved == "request"
    report = await timeline.verify()
    assert (report.ok, report.calls, report.unverifiable) == (True, 1, {})


def test_the_hook_is_shown_texts_as_notes() -> None:
    """It is written for blocks."""
    shown: list[Block] = []

    def note(block: Block) -> Block:
        shown.append(block)
        return block

    screened_payload(note, FrameworkEntry(framework="f", key="k", data=["a"]))
    assert shown == [Note(text="f"), Note(text="a")]
