"""What an agent runtime does besides appending and rendering: recording replies and messages, and reading back."""

from __future__ import annotations

from store.memory import MemoryStore
from tests.scenes import AT, call, opened, prompt, result, words
from timeline.blocks import ToolCall
from timeline.events import BlockRedacted, event_id


async def test_a_redacted_block_is_read_as_its_tombstone() -> None:
    """Erased text is not given back, its address and its reason are; its neighbours stay as they were."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), call("c1", arguments={"token": "secret"}), result("c1", 5))
    await timeline.decide([BlockRedacted(version=3, reason="a password")], at=AT, ids=[event_id(AT)])
    erased = await timeline.read("tc:turn_1.c1.call")
    assert isinstance(erased, ToolCall)
    assert (erased.text, erased.arguments, erased.name) == ("[redacted]", {}, "run")
    assert erased.meta == {"redacted": "a password"}
    assert (await timeline.read("tc:turn_1.c1.result")).text == words(5)
