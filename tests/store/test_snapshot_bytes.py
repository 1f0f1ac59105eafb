"""A conversation that is opened from a snapshot sends the bytes that it sent before: a provider's cache compares them.

The keys of a call's arguments are in the model's order. Releases before this file wrote snapshots with sorted keys.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

import pytest

from tests.scenes import AT, opened, prompt, result, words
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolCall
from timeline.frozen import canonical_json
from timeline.ports import Snapshot
from timeline.wire import WIRES

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue

    from timeline.ports import EventStore
    from timeline.projection.context import RenderedContext

WRITTEN: Final[dict[str, JsonValue]] = {"path": "a.py", "edits": [{"old": "b", "new": "a"}], "content": words(800)}
"""Arguments whose keys are sorted nowhere."""


async def hidden(store: EventStore) -> Timeline:
    """Store a conversation with previewed and hidden calls, and a snapshot behind them; return its fork."""
    timeline = await opened(store, policy=policies.balanced(max_tokens=4_000, counter="chars4"))
    calls = [ToolCall(call_id=f"c{n}", name="write", arguments=WRITTEN, response_id="r") for n in range(5)]
    raw = ToolCall(call_id="raw", name="write", arguments="{" + words(800), response_id="r")
    await timeline.append(prompt(), *calls, raw, *(result(f"c{n}", 800) for n in range(5)), result("raw"), now=AT)
    assert "previewed" in [taken.kind for taken in (await timeline.render(system="s", now=AT)).decisions]
    await timeline.hide(timeline.window.items[5].block.path, now=AT)
    return await timeline.fork(now=AT)


def bodies(context: RenderedContext) -> list[str]:
    """Return what each provider would be sent, as text."""
    return [json.dumps(context.request(wire, model="m").body) for wire in WIRES]


def sorted_keys(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as an earlier release wrote it."""
    return Snapshot.model_validate_json(canonical_json(snapshot.model_dump(mode="json")))


earlier_and_now = pytest.mark.parametrize("earlier", [False, True], ids=["this release", "an earlier release"])


@earlier_and_now
@pytest.mark.parametrize("url", ["memory://", "{}/agent.db"])
async def test_a_conversation_opened_from_a_snapshot_sends_the_same_bytes(
    url: str, tmp_path: Path, *, earlier: bool
) -> None:
    """Arguments of previewed calls have the model's order, however the snapshot was written; the call is proved."""
    await check_opened_again(url.format(tmp_path), earlier=earlier)


@earlier_and_now
async def test_a_conversation_on_a_server_sends_the_same_bytes(postgres_url: str, *, earlier: bool) -> None:
    """As one in a file."""
    await check_opened_again(postgres_url, earlier=earlier)


async def check_opened_again(url: str, *, earlier: bool) -> None:
    """Hide calls, open the conversation from its snapshot, and compare; what is in memory stays open."""
    async with AsyncExitStack() as stores:
        store = await stores.enter_async_context(open_store(url))
        fork = await hidden(store)
        stored = await store.load_window(fork.id)
        assert stored.snapshot is not None
        assert '"arguments":{"path"' in json.dumps(stored.snapshot.state, separators=(",", ":"))
        if earlier:
            await store.replace_snapshot(fork.id, sorted_keys(stored.snapshot))
        before = bodies(await fork.render(system="s", now=AT, record=False))
        if url != "memory://":
            await stores.aclose()
            store = await stores.enter_async_context(open_store(url))
        await check_goes_on(store, fork.id, before)


async def check_goes_on(store: EventStore, conversation: str, before: list[str]) -> None:
    """Open a conversation as another process does, compare what it sends, and record a call."""
    timeline = await Timeline.open(store, conversation, now=AT)
    context = await timeline.render(system="s", now=AT)
    assert bodies(context) == before
    said = [{"type": "text", "text": "Done."}]
    reply = {"role": "assistant", "type": "message", "model": "m", "content": said}
    await timeline.record(reply, request=context.request("anthropic", model="m"), now=AT)
    report = await timeline.verify()
    assert report.ok, report.problems
    assert (await timeline.call(1)).unproved is None
