"""Servers of OpenAI's chat form that refuse a request without what their model thought or signed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from openai import AsyncOpenAI

from tests.providers import Answer, Call, FakeProvider
from tests.scenes import payloads_of
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolResult, UserPrompt

if TYPE_CHECKING:
    from pathlib import Path

    from tests.providers.script import Asked, Step
    from timeline.projection.context import RenderedContext

STEPS = 9
MODELS = ["deepseek-reasoner", "gemini-3-pro"]


def working(asked: Asked) -> Step:
    """Call two tools in each step, and answer every third."""
    if asked.number % 3 == 2:
        return Answer("Done. " * 60)
    return Answer(thought=f"Thought {asked.number}. " * 9, calls=(Call("read", {"n": asked.number}), Call("ls")))


def output_of(call_id: str) -> str:
    """Return what a tool puts out: enough that the policy has to hide and to summarize."""
    return f"{call_id} line\n" * 300


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
async def test_a_loop_that_records_replies_is_never_refused(tmp_path: Path, model: str, *, stream: bool) -> None:
    """Over hides and compactions, and by a new process in the middle."""

    async def ask(context: RenderedContext, timeline: Timeline) -> None:
        request: Any = {"model": model, **context.to_openai_chat(model=model)}
        if not stream:
            await timeline.record(await client.chat.completions.create(**request))
            return
        async with timeline.recording(await client.chat.completions.create(**request, stream=True)) as events:
            async for _ in events:
                pass

    with FakeProvider(working) as provider:
        client = AsyncOpenAI(api_key="none", base_url=f"{provider.url}/v1", max_retries=0)
        for half in range(2):
            async with open_store(tmp_path / "a.db") as store:
                timeline = await Timeline.open(store, "c", policy=policies.balanced(max_tokens=9_000))
                for number in range(STEPS):
                    if number % 3 == 0:
                        await timeline.append(UserPrompt(text=f"Prompt {half}.{number}."))
                    await ask(await timeline.render(system="You code."), timeline)
                    calls = (await timeline.render(record=False)).window.open_calls()
                    ids = [str(call.block.call_id) for call in calls]
                    await timeline.append(*[ToolResult(call_id=id_, text=output_of(id_)) for id_ in ids])
                assert await payloads_of(store, "compaction.completed")
    assert provider.refused == []
    assert len(provider.asked) == 2 * STEPS


@pytest.mark.parametrize("model", MODELS)
async def test_a_loop_that_hands_out_its_list_is_never_refused(tmp_path: Path, model: str) -> None:
    """The replies come into the log twice, as they are and in the list, and are stored once."""
    with FakeProvider(working) as provider:
        client = AsyncOpenAI(api_key="none", base_url=f"{provider.url}/v1", max_retries=0)
        async with open_store(tmp_path / "a.db") as store:
            timeline = await Timeline.open(store, "c", policy=policies.balanced(max_tokens=9_000))
            hook = timeline.step_hook("openai_chat")
            history: list[Any] = []
            for number in range(STEPS):
                if number % 3 == 0:
                    history.append({"role": "user", "content": f"Prompt {number}."})
                prepared: Any = await hook.prepare_step(messages=history)
                reply = await client.chat.completions.create(model=model, messages=prepared["messages"])
                await hook.on_step_finish(reply)
                said = reply.choices[0].message
                history += [
                    said,
                    *(
                        {"role": "tool", "tool_call_id": c.id, "content": output_of(c.id)}
                        for c in said.tool_calls or ()
                    ),
                ]
            await hook.prepare_step(messages=history)
            blocks = [payload.block for payload in await payloads_of(store, "block.appended")]
    assert provider.refused == []
    assert len({block.path for block in blocks}) == len(blocks)
    thoughts = [block.text or str(block.data) for block in blocks if block.type == "assistant.reasoning"]
    assert len(thoughts) == STEPS - STEPS // 3


def hardly_thinking(asked: Asked) -> Step:
    """Call a tool in each step, and think in every other."""
    return Answer(thought=f"Thought {asked.number}." * (asked.number % 2), calls=(Call("read", {"n": asked.number}),))


@pytest.mark.parametrize("keeps", [False, True], ids=["its own list", "the list that it was given"])
async def test_a_loop_that_saves_no_reply_names_its_model_and_is_never_refused(*, keeps: bool) -> None:
    """What stands for a thought that there was not is not read as one."""
    with FakeProvider(hardly_thinking) as provider:
        client = AsyncOpenAI(api_key="none", base_url=f"{provider.url}/v1", max_retries=0)
        async with open_store("memory://") as store:
            timeline = await Timeline.open(store, "c", policy=policies.balanced(max_tokens=6_000))
            history: list[Any] = [{"role": "user", "content": "Read all."}]
            for _ in range(8):
                hook = timeline.step_hook("openai_chat", model=MODELS[0])  # of a process of its own
                prepared: Any = await hook.prepare_step(messages=history)
                reply = await client.chat.completions.create(model=MODELS[0], messages=prepared["messages"])
                said = reply.choices[0].message
                results = [
                    {"role": "tool", "tool_call_id": c.id, "content": output_of(c.id)} for c in said.tool_calls or ()
                ]
                history = [*(prepared["messages"] if keeps else history), said, *results]
            blocks = [payload.block for payload in await payloads_of(store, "block.appended")]
    assert provider.refused == []
    assert "[left out]" in str(provider.asked[-1].body)
    assert [block.text for block in blocks if block.type == "assistant.reasoning"] == [
        f"Thought {number}." for number in (1, 3, 5)
    ]
