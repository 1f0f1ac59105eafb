"""The reactive path with each provider's own SDK: a context refused for its size, and a reply cut for length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.providers import Answer, Call, FakeProvider, Trouble
from tests.providers.sending import SENDS
from tests.scenes import FULL, exchange, opened, payloads_of, prompt, small_policy
from timeline.errors import ContextRefused
from timeline.store.memory import MemoryStore
from timeline.wire.refusals import cause_of, context_limit

if TYPE_CHECKING:
    from tests.providers import Asked, Step
    from timeline import Timeline


async def filled() -> Timeline:
    """Return a conversation of some 4,000 tokens under a limit of 8,000."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=8_000))
    await timeline.append(prompt(50))
    for number in range(40):
        await timeline.append(*exchange(f"c{number}", 100))
    return timeline


@pytest.mark.parametrize("wire", SENDS)
async def test_a_context_that_is_refused_is_compacted_and_sent_once_more(wire: str) -> None:
    """By type and code of each SDK's own error; the smaller request is one that the provider takes."""
    timeline = await filled()
    with FakeProvider(
        lambda asked: Trouble("context_limit", limit=4_000) if asked.number == 0 else "Done."
    ) as provider:
        reply = await timeline.retry_with_compaction(lambda context: SENDS[wire](provider, context))
        blocks = await timeline.record(reply)
    assert [block.text for block in blocks] == ["Done."]
    assert provider.refused == []
    first, second = provider.asked
    assert second.tokens < first.tokens
    assert timeline.window.compactions == 1
    assert (await timeline.verify()).ok


@pytest.mark.parametrize("wire", SENDS)
async def test_a_second_refusal_ends_typed_with_the_sdks_error_as_its_cause(wire: str) -> None:
    """Once a step and no more."""
    timeline = await filled()
    with FakeProvider(Trouble("context_limit", limit=1_000)) as provider, pytest.raises(ContextRefused) as refused:
        await timeline.retry_with_compaction(lambda context: SENDS[wire](provider, context))
    assert len(provider.asked) == len(refused.value.sent) == 2
    assert refused.value.__cause__ is not None
    assert context_limit(refused.value.__cause__) is not None


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server", "authentication"])
@pytest.mark.parametrize("wire", SENDS)
async def test_any_other_refusal_is_passed_on_and_nothing_is_compacted(wire: str, kind: Any) -> None:
    """A smaller context would not help."""
    timeline = await filled()
    with FakeProvider(Trouble(kind)) as provider, pytest.raises(Exception, match=r"\b[45]\d\d\b") as raised:
        await timeline.retry_with_compaction(lambda context: SENDS[wire](provider, context))
    assert cause_of(raised.value) == kind
    assert len(provider.asked) == 1
    assert timeline.window.compactions == 0


HALF: Final = Answer("I write it.", (Call("write", '{"path": "src/ma', "c99"),), stop="length")


@pytest.mark.parametrize("wire", SENDS)
async def test_a_reply_cut_for_length_ends_the_loop_typed_where_there_is_room(wire: str) -> None:
    """The answer alone is too long: seed 003's exit, with the half call set aside."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=8_000))
    await timeline.append(prompt())
    with FakeProvider(HALF) as provider:
        stop = await timeline.after_length_stop(await SENDS[wire](provider, await timeline.render()))
    assert stop.exit == "max_tokens"
    assert [call["name"] for call in stop.discarded] == ["write"]
    assert stop.calls == ()


@pytest.mark.parametrize("wire", SENDS)
async def test_a_reply_cut_for_length_makes_room_where_the_context_is_full_and_the_loop_goes_on(wire: str) -> None:
    """The next request holds no half call, and is taken."""
    store = MemoryStore()

    def script(asked: Asked) -> Step:
        return HALF if asked.number == 0 else "Done."

    timeline = await opened(store, policy=small_policy(max_tokens=4_000, keep_recent_tokens=400))
    with FakeProvider(script) as provider:
        await timeline.append(*FULL[:-2], prompt())
        reply = await SENDS[wire](provider, await timeline.render(record=False))
        await timeline.append(*FULL[-2:], prompt())
        stop = await timeline.after_length_stop(reply)
        again = await SENDS[wire](provider, await timeline.render())
        await timeline.record(again)
    assert stop.exit is None
    assert len(await payloads_of(store, "compaction.completed")) == 1
    assert "src/ma" not in provider.asked[1].text
    assert provider.refused == []
    assert (await timeline.verify()).ok
