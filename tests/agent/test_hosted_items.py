"""A loop with tools of OpenAI's server, approvals and a program, without a stored response, past compactions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openai import AsyncOpenAI

from tests.providers import FakeProvider
from tests.providers.script import Raw
from tests.scenes import opened, payloads_of
from timeline import policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from tests.providers.script import Asked, Step

ROUNDS = 6


def working(asked: Asked) -> Step:
    """Search, ask for an approval, and run a program that calls a tool; go on with what came of both."""
    number, step = divmod(asked.number, 2)

    def thought(which: int) -> dict[str, Any]:
        return {"type": "reasoning", "id": f"rs_{number}{which}", "summary": [], "encrypted_content": "QUJD" * 40}

    caller = {"type": "program", "caller_id": f"p{number}"}
    search = {"type": "search", "query": "q", "queries": ["q"]}
    call = {"server_label": "wiki", "name": "ask", "arguments": '{"q": 1}'}
    part = {"type": "output_text", "text": "Done. " * 60, "annotations": [], "logprobs": []}
    said = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}
    program = {"call_id": f"p{number}"}
    output = [
        [
            thought(0),
            {"type": "web_search_call", "id": f"ws_{number}", "status": "completed", "action": search},
            thought(1),
            {"type": "mcp_approval_request", "id": f"mcpr_{number}", **call},
            {"type": "program", "id": f"prog_{number}", **program, "code": "go()\n" * 20, "fingerprint": "fp"},
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"c{number}",
                "name": "ls",
                "arguments": "{}",
                "caller": caller,
            },
        ],
        [
            {"type": "program_output", "id": f"po_{number}", **program, "result": "1", "status": "completed"},
            {
                "type": "mcp_call",
                "id": f"mcp_{number}",
                "approval_request_id": f"mcpr_{number}",
                "output": "found " * 300,
                "status": "completed",
                **call,
            },
            said,
        ],
    ]
    used = {"input_tokens": asked.tokens, "output_tokens": 9, "total_tokens": asked.tokens + 9}
    reply = {"id": f"resp_{asked.number}", "object": "response", "model": "gpt-5.6", "status": "completed"}
    return Raw(json.dumps({**reply, "output": output[step], "usage": used}).encode())


async def test_a_loop_with_tools_of_openais_server_is_never_refused() -> None:
    """Whatever is hidden or summed up, an answer has its request, a call its program, and nothing runs twice."""
    store = MemoryStore()
    timeline = await opened(store, policy=policies.balanced(max_tokens=5_000))
    with FakeProvider(working) as provider:
        client = AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=0)
        for number in range(ROUNDS):
            await timeline.append(UserPrompt(text=f"Prompt {number}. " + "Look well. " * 40))
            calls: list[ToolCall] | None = None
            while calls is None or calls:
                body = (await timeline.render()).to_openai_responses(model="gpt-5.6")
                blocks = await timeline.record(await client.responses.create(model="gpt-5.6", store=False, **body))
                calls = [block for block in blocks if isinstance(block, ToolCall)]
                await timeline.append(*[ToolResult(call_id=call.call_id, text="a\n" * 200) for call in calls])
    assert await payloads_of(store, "compaction.completed")
    assert provider.refused == []
    assert (await timeline.verify()).ok
    kinds = {item["type"] for item in provider.asked[2].body["input"]}
    assert kinds >= {"web_search_call", "program", "program_output", "mcp_approval_request", "mcp_call"}
    for asked in provider.asked:
        ran = {item.get("approval_request_id") for item in asked.body["input"] if item["type"] == "mcp_call"}
        approved = [item for item in asked.body["input"] if item["type"] == "mcp_approval_response"]
        assert {item["approval_request_id"] for item in approved if item["approve"]} - ran <= {
            f"mcpr_{asked.number // 2}"
        }
