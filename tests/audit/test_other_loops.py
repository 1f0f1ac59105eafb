"""Loops of another shape than `record`'s: without an event loop, and with messages that the loop keeps by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI

import timeline.sync
from tests.audit.test_call_bodies import assert_same, received
from tests.providers import Answer, Call, FakeProvider, Trouble
from tests.providers.coder import Coder
from tests.scenes import small_policy
from timeline import Timeline, open_store, policies
from timeline.blocks import UserPrompt

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.providers.script import Asked, Step
    from timeline.audit.calls import Call as RecordedCall
    from timeline.projection.context import RenderedContext

REFUSED = 6


def refusing(asked: Asked) -> Step:
    """Answer at length; refuse one context for its size."""
    return Trouble("context_limit", limit=asked.tokens * 4 // 5) if asked.number == REFUSED else Answer("Done. " * 150)


def assert_proved(calls: Sequence[RecordedCall], provider: FakeProvider) -> None:
    """Assert that each call is proved, and what the provider received."""
    assert provider.refused == []
    assert [call.unproved for call in calls] == [None] * len(provider.asked)
    for call, asked in zip(calls, provider.asked, strict=True):
        assert_same(received(asked), call.request or {})


def test_calls_of_a_loop_without_an_event_loop_are_what_the_provider_received(tmp_path: Path) -> None:
    """Recorded inside the function that is tried again, behind it, or as a stream."""
    with FakeProvider(refusing) as provider, timeline.sync.open_store(tmp_path / "a.db") as store:
        client = Anthropic(api_key="none", base_url=provider.url, max_retries=0)
        twin = timeline.sync.Timeline.open(store, "c", policy=policies.balanced(max_tokens=4_000))

        def ask(context: RenderedContext) -> Any:
            return client.messages.create(**context.request("anthropic", model="m", max_tokens=9).arguments)

        def ask_and_record(context: RenderedContext) -> Any:
            return twin.record(ask(context))

        for number in range(12):
            twin.append(UserPrompt(text=f"Prompt {number}."))
            match number % 3:
                case 0:
                    twin.retry_with_compaction(ask_and_record, system="You code.")
                case 1:
                    twin.record(twin.retry_with_compaction(ask, system="You code."))
                case _:
                    context = twin.render(system="You code.")
                    request = context.request("anthropic", model="m", max_tokens=9, stream=True)
                    with twin.recording(client.messages.create(**request.arguments), request=request) as recording:
                        assert list(recording)
        calls = list(twin.calls())
        assert twin.verify().ok
    assert [call.number - 1 for call in calls if call.error] == [REFUSED]
    assert_proved(calls, provider)


async def test_calls_of_a_loop_that_keeps_its_messages_are_what_the_provider_received(tmp_path: Path) -> None:
    """The request is made of the step's context."""
    with FakeProvider(Coder(24)) as provider:
        async with (
            open_store(tmp_path / "a.db") as store,
            AsyncAnthropic(api_key="none", base_url=provider.url) as client,
        ):
            timeline_ = await Timeline.open(store, "c", policy=small_policy(max_tokens=6_000))
            hook = timeline_.step_hook("anthropic", system="You code.")
            messages: list[Any] = [{"role": "user", "content": "Make the tests pass."}]
            while True:
                messages = (await hook.prepare_step(messages=messages))["messages"]
                assert hook.context is not None
                request = hook.context.request("anthropic", model="claude-opus-5", max_tokens=99)
                reply = await client.messages.create(**request.arguments)
                await hook.on_step_finish(reply, request=request)
                used = [part for part in reply.content if part.type == "tool_use"]
                if not used:
                    break
                told = [
                    {"type": "tool_result", "tool_use_id": part.id, "content": f"{part.id}\n" * 800} for part in used
                ]
                messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": told}]
            calls = [call async for call in timeline_.calls()]
            assert timeline_.compaction_state().count >= 2
            assert (await timeline_.verify()).ok
    assert len(calls) == 25
    assert_proved(calls, provider)


async def test_a_step_that_ends_with_messages_is_a_call_where_its_request_is_given(tmp_path: Path) -> None:
    """Its reply is what the messages say; without a request nothing is known of a call."""
    with FakeProvider([Answer(calls=(Call("ls", id="call_1"),)), "Done."]) as provider:
        client = AsyncOpenAI(api_key="none", base_url=provider.openai_url)
        async with open_store(tmp_path / "a.db") as store, client:
            timeline_ = await Timeline.open(store, "c")
            hook = timeline_.step_hook("openai_chat", system="You code.")
            messages: list[Any] = [{"role": "user", "content": "List the files."}]
            new: list[Any] = []
            for _ in range(2):
                await hook.prepare_step(messages=[*messages, *new])
                assert hook.context is not None
                request = hook.context.request("openai_chat", model="gpt-6")
                reply = await client.chat.completions.create(**request.arguments)
                said = reply.choices[0].message
                new.append(said.model_dump(exclude_none=True))
                new += [{"role": "tool", "tool_call_id": call.id, "content": "a.py"} for call in said.tool_calls or ()]
                await hook.on_step_finish({"messages": new}, request=request)
            calls = [call async for call in timeline_.calls()]
    assert_proved(calls, provider)
    assert [block.text for block in calls[-1].reply] == ["Done."]
