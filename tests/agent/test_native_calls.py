"""Loops with OpenAI's own forms of calls, and with what Google's server runs, over hides, compactions and a restart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openai import AsyncOpenAI

from tests.providers import FakeProvider
from tests.providers.asking import google_client
from tests.providers.script import Raw
from tests.scenes import payloads_of
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.wire.openai_responses import decode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.providers.script import Asked, Step
    from timeline.projection.context import RenderedContext

ROUNDS = 10


def working(asked: Asked) -> Step:
    """Comment, call a shell and a patch, then a tool of the application; answer."""
    number, step = divmod(asked.number, 2)
    said = {"type": "message", "id": f"msg_{asked.number}", "role": "assistant", "status": "completed"}

    def text(words: str, phase: str) -> dict[str, Any]:
        part = {"type": "output_text", "text": words, "annotations": [], "logprobs": []}
        return {**said, "phase": phase, "content": [part]}

    shell = {"commands": [f"cat src/module_{number}.py"], "max_output_length": 4_000}
    patch = {"type": "update_file", "path": f"src/module_{number}.py", "diff": "@@\n-1\n+2"}
    own = {"status": "completed"}
    output = [
        [
            text("I look.", "commentary"),
            {"type": "shell_call", "id": f"sh_{number}", "call_id": f"call_s{number}", "action": shell, **own},
            {
                "type": "apply_patch_call",
                "id": f"apc_{number}",
                "call_id": f"call_p{number}",
                "operation": patch,
                **own,
            },
            {
                "type": "custom_tool_call",
                "id": f"ctc_{number}",
                "call_id": f"call_c{number}",
                "name": "sql",
                "input": "select 1",
            },
        ],
        [text("Done. " * 80, "final_answer")],
    ]
    used = {"input_tokens": asked.tokens, "output_tokens": 9, "total_tokens": asked.tokens + 9}
    reply = {"id": f"resp_{asked.number}", "object": "response", "model": "gpt-5.6", "status": "completed"}
    return Raw(json.dumps({**reply, "output": output[step], "usage": used}).encode())


def outputs(calls: list[ToolCall]) -> list[ToolResult]:
    """Return the results of calls, a shell's as the item that its documentation shows."""
    results = []
    for call in calls:
        if call.name != "shell":
            results.append(ToolResult(call_id=call.call_id, text="done " * 20))
            continue
        chunk = {"stdout": "line\n" * 300, "stderr": "warned", "outcome": {"type": "exit", "exit_code": 0}}
        item = {"type": "shell_call_output", "call_id": call.call_id, "output": [chunk]}
        told = {"type": "function_call", "call_id": call.call_id, "name": "shell", "arguments": "{}"}
        results += [block for block in decode([told, item]) if isinstance(block, ToolResult)]
    return results


async def played(
    file: Path,
    max_tokens: int,
    ask: Callable[[RenderedContext], Awaitable[Any]],
    results: Callable[[list[ToolCall]], list[ToolResult]],
) -> list[Any]:
    """Run a loop over a restart, verify its log, and return its compactions."""
    for half in range(2):
        async with open_store(file) as store:
            timeline = await Timeline.open(store, "c", policy=policies.balanced(max_tokens=max_tokens))
            for number in range(ROUNDS):
                await timeline.append(UserPrompt(text=f"Prompt {half}.{number}. " + "Look well. " * 40))
                calls: list[ToolCall] | None = None
                while calls is None or calls:
                    blocks = await timeline.record(await ask(await timeline.render()))
                    calls = [block for block in blocks if isinstance(block, ToolCall)]
                    await timeline.append(*results(calls))
            report = await timeline.verify()
            assert (report.ok, report.unverifiable) == (True, {})
            compactions = await payloads_of(store, "compaction.completed")
    return compactions


async def test_a_loop_of_shell_and_patch_calls_is_never_refused(tmp_path: Path) -> None:
    """Each output is of the form of its call, also where one of the two is hidden, or the call is behind a summary."""
    with FakeProvider(working) as provider:
        client = AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=0)

        async def ask(context: RenderedContext) -> Any:
            return await client.responses.create(model="gpt-5.6", **context.to_openai_responses(model="gpt-5.6"))

        compactions = await played(tmp_path / "a.db", 9_000, ask, outputs)
    assert compactions
    assert provider.refused == []
    last = provider.asked[-1].body["input"]
    assert {"shell_call", "shell_call_output", "apply_patch_call", "custom_tool_call"} <= {i["type"] for i in last}
    answers = [item for item in last if item.get("role") == "assistant"]
    assert all(item["phase"] in {"commentary", "final_answer"} for item in answers[-2:])


def computing(asked: Asked) -> Step:
    """Let the server run code and search, call a tool of the application; draw a picture and answer."""
    number, step = divmod(asked.number, 2)
    id_ = f"t{number}"
    parts: list[list[dict[str, Any]]] = [
        [
            {"executableCode": {"language": "PYTHON", "code": f"print({number})\n" * 30}, "thoughtSignature": "c2ln"},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": f"{number}\n" * 200}},
            {"toolCall": {"id": id_, "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["q"]}}},
            {"toolResponse": {"id": id_, "toolType": "GOOGLE_SEARCH_WEB", "response": {"hits": ["x" * 900]}}},
            {"functionCall": {"id": f"call_{number}", "name": "ls", "args": {}}},
        ],
        [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}, {"text": "Done. " * 80}],
    ]
    reply = {
        "candidates": [{"content": {"role": "model", "parts": parts[step]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": asked.tokens, "candidatesTokenCount": 9},
        "modelVersion": "gemini-2.5-pro",
        "responseId": f"r{asked.number}",
    }
    return Raw(json.dumps(reply).encode())


def pairs(contents: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return for each content how much code and how many calls of Google's it has, and how many of their results."""
    calls, results = ("executableCode", "toolCall"), ("codeExecutionResult", "toolResponse")
    return [
        (
            sum(key in part for part in c["parts"] for key in calls),
            sum(key in part for part in c["parts"] for key in results),
        )
        for c in contents
    ]


async def test_a_loop_with_what_googles_server_runs_keeps_code_and_results_together(tmp_path: Path) -> None:
    """In every request, whatever was hidden or summed up."""
    with FakeProvider(computing) as provider:
        client = google_client(provider.url).aio

        async def ask(context: RenderedContext) -> Any:
            request = context.to_gemini(model="gemini-2.5-pro")
            return await client.models.generate_content(model="gemini-2.5-pro", **request)

        def done(calls: list[ToolCall]) -> list[ToolResult]:
            return [ToolResult(call_id=call.call_id, text="a\n" * 300) for call in calls]

        compactions = await played(tmp_path / "a.db", 12_000, ask, done)
    assert compactions
    assert provider.refused == []
    told = [pair for asked in provider.asked for pair in pairs(asked.body["contents"])]
    assert all(calls == results for calls, results in told)
    assert (2, 2) in pairs(provider.asked[-1].body["contents"])
