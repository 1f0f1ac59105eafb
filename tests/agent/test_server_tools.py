"""A loop whose turns pause while tools of the provider's own server run, over hides, compactions and a restart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from anthropic import AsyncAnthropic

from tests.providers import FakeProvider
from tests.providers.script import Raw
from tests.scenes import payloads_of
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolResult, UserPrompt

if TYPE_CHECKING:
    from pathlib import Path

    from tests.providers.script import Asked, Step

ROUNDS = 8


def searching(asked: Asked) -> Step:
    """Search and pause; go on with what was found, and call a tool of the client beside one of the server; answer."""
    number, step = divmod(asked.number, 3)
    found = [
        {
            "type": "web_search_result",
            "url": "https://x",
            "title": "X",
            "encrypted_content": "QUJD" * 900,
            "page_age": None,
        }
    ]
    used: dict[str, Any] = {"type": "server_tool_use", "name": "web_search", "input": {"query": f"q {number}"}}
    first, second = f"srvtoolu_{number}a", f"srvtoolu_{number}b"
    content: list[list[dict[str, Any]]] = [
        [{"type": "text", "text": "I look."}, {**used, "id": first}],
        [
            {"type": "web_search_tool_result", "tool_use_id": first, "content": found},
            {**used, "id": second},
            {"type": "tool_use", "id": f"toolu_{number}", "name": "ls", "input": {}},
        ],
        [
            {"type": "web_search_tool_result", "tool_use_id": second, "content": found},
            {"type": "text", "text": "Done. " * 80},
        ],
    ]
    reply = {"id": f"msg_{asked.number}", "type": "message", "role": "assistant", "model": "claude-opus-5"}
    stop = ("pause_turn", "tool_use", "end_turn")[step]
    usage = {"input_tokens": asked.tokens, "output_tokens": 9}
    return Raw(json.dumps({**reply, "content": content[step], "stop_reason": stop, "usage": usage}).encode())


async def test_a_loop_with_tools_of_the_server_is_never_refused(tmp_path: Path) -> None:
    """The API refuses what one found without its call, and a call that nobody will answer any more."""
    with FakeProvider(searching) as provider:
        client = AsyncAnthropic(api_key="none", base_url=provider.url, max_retries=0)
        for half in range(2):
            async with open_store(tmp_path / "a.db") as store:
                timeline = await Timeline.open(store, "c", policy=policies.balanced(max_tokens=9_000))
                for number in range(ROUNDS):
                    await timeline.append(UserPrompt(text=f"Prompt {half}.{number}. " + "Look well. " * 40))
                    stop = None
                    while stop != "end_turn":
                        context = await timeline.render()
                        request: Any = {"model": "claude-opus-5", "max_tokens": 900, **context.to_anthropic()}
                        reply = await client.messages.create(**request)
                        await timeline.record(reply)
                        stop = reply.stop_reason
                        calls = [part.id for part in reply.content if part.type == "tool_use"]
                        await timeline.append(*[ToolResult(call_id=id_, text=f"{id_}\n" * 200) for id_ in calls])
                report = await timeline.verify()
                assert (report.ok, report.unverifiable) == (True, {})
                compactions = await payloads_of(store, "compaction.completed")
    assert compactions
    assert provider.refused == []
    assert len(provider.asked) == 2 * ROUNDS * 3
