"""A conversation with everything that the inspector shows, and the requests that its provider got."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.scenes import after, prompt, result, small_policy
from timeline import Timeline

if TYPE_CHECKING:
    from timeline.ports import EventStore

SCRIPT: Final = "<script>alert(1)</script><img src=x onerror=alert(2)>"
NAME: Final = f"cards/{SCRIPT}"
"""The id of the conversation: a slash and markup in it."""


class Sent(NamedTuple):
    """The conversation's id, and the bodies that its provider got, oldest first."""

    id: str
    bodies: list[dict[str, Any]]


def reply(number: int) -> dict[str, Any]:
    """Return a message of Anthropic's with a call, so that a result follows."""
    said = [{"type": "text", "text": f"Answer {number}. {SCRIPT}"}]
    called = [{"type": "tool_use", "id": f"c{number}", "name": "run", "input": {"command": f"make {number} {SCRIPT}"}}]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "stop_reason": "tool_use",
        "content": said + called,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 100 * number, "output_tokens": 2},
    }


async def converse(store: EventStore, name: str = NAME, turns: int = 16) -> Sent:
    """Hold the conversation under a small limit: it compacts, is undone once, and a block is hidden by hand."""
    policy = small_policy(max_tokens=1_500, min_progress=0.01, min_progress_tokens=1)
    timeline = await Timeline.open(
        store,
        name,
        policy=policy,
        title=f"Cards {SCRIPT}",
        now=after(0),
    )
    bodies: list[dict[str, Any]] = []
    for number in range(1, turns + 1):
        at = after(10 * number)
        await timeline.append(prompt(40, text=f"Question {number} about decks. {SCRIPT} {'abc ' * 40}"), now=at)
        context = await timeline.render(system=f"You help. {SCRIPT}", tools=[{"name": "run"}], now=at)
        request = context.request("anthropic", model="claude-opus-5", max_tokens=9)
        bodies.append(request.body)
        await timeline.record(reply(number), request=request, now=at)
        await timeline.append(result(f"c{number}", 80, name="run", is_error=number % 5 == 0), now=at)
        if number == turns // 2:
            await timeline.hide((await timeline.read(f"@{timeline.version}")).path, now=at)
        if number in {turns - 4, turns - 3, turns - 1}:
            await timeline.compact(now=at)
        if number == turns - 4:
            await timeline.undo_compaction(now=at)
    return Sent(name, bodies)
