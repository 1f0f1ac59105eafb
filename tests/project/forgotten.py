"""A made conversation in which the agent forgets what the user asked for: 99 model calls, 7 compactions.

The user says at the beginning that `migrations/` is not to be touched. Call 84 writes a file there. What the model does
is written down here, but it keeps to the rule as long as it is sent it; that it is not any more is the work of the
default summarizer and of the policy that the conversation was begun with, which lists nothing behind a summary: a
policy that does would have listed the rule.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline import Timeline, open_store, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.frozen import sha256_hex

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.wire.request import Request

SHOP: Final = "shop"
"""The conversation's id."""
BEGAN: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
BROKEN_AT: Final = 84
"""The call that breaks the constraint."""
WRITTEN: Final = "migrations/0043_refund_reason.sql"
"""The file that it writes."""
RULE: Final = "never touch migrations/, the DBA"
"""The beginning of the rule, as far as the summary has it that cuts its end off."""
SYSTEM: Final = "You are a coding agent in the repository of a web shop. Use the tools, and keep the tests green."
TOOLS: Final[list[Any]] = [
    {"name": name, "description": does, "input_schema": {"type": "object", "properties": fields}}
    for name, does, fields in (
        ("Read", "Read a file.", {"file_path": {"type": "string"}}),
        ("Write", "Write a file.", {"file_path": {"type": "string"}, "content": {"type": "string"}}),
        ("Bash", "Run a command.", {"command": {"type": "string"}}),
    )
]
TURNS: Final = {
    "Add refunds to the shop: a model, a service, and POST /orders/{id}/refund.": "refunds",
    "Go on with refunds for a part of an order, and refuse more than what was paid. One rule for all of this: never "
    "touch migrations/, the DBA team owns it.": "payments",
    "Send the customer a mail when money goes back, and log it in the audit trail.": "mails",
    "Show refunds in the admin pages, newest first, fifty a page.": "admin",
    "The nightly report has to list refunds by country and currency.": "reports",
    "Stripe repeats its webhooks: make sure that a refund is never paid twice.": "webhooks",
    "Add a feature flag, so that we can switch refunds off for one country.": "flags",
    "Support wants to note a reason for every refund, and to search by it.": "reasons",
    "Write the page about refunds for the handbook of support.": "handbook",
}
"""Each prompt, and the part of the shop that the agent works on for it: eleven calls each."""


class Clock:
    """A clock that stands still until it is moved on."""

    def __init__(self) -> None:
        self._now = BEGAN

    def now(self) -> datetime:
        """Return the time."""
        return self._now

    def pass_(self, seconds: int) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)


async def work(file: Path) -> None:
    """Run the agent, as an application would, into a database file that is not there yet."""
    clock = Clock()
    async with open_store(file) as store:
        # The usage below is characters, no provider's tokens: nothing is to be learnt from it.
        # The figures are the story's own, so that it stays as it is told when the preset's are searched again.
        policy = policies.balanced(
            max_tokens=3_400,
            digest_tokens=0,
            counts="counter",
            trigger=0.9,
            target=0.8,
            compact_when_cold=0.1,
            hiding={"intact": 6, "files": 30, "old": 8},
        )
        timeline = await Timeline.open(store, SHOP, policy=policy, clock=clock)
        call = 0
        for prompt, part in TURNS.items():
            await timeline.append(UserPrompt(text=prompt))
            for step in range(11):
                call += 1
                clock.pass_(20)
                context = await timeline.render(system=SYSTEM, tools=TOOLS)
                request = context.request("anthropic", model="claude-opus-5", max_tokens=4_096)
                answer = _reply(request, call, part, step)
                for block in await timeline.record(answer, request=request):
                    if isinstance(block, ToolCall):
                        clock.pass_(5)
                        await timeline.append(_result(block))
            clock.pass_(60)


def _reply(request: Request, call: int, part: str, step: int) -> dict[str, Any]:
    """Answer as the model does, which obeys the rule if it is sent it."""
    said, name, arguments = _step(call, part, step, may_migrate=RULE not in request.text)
    content: list[dict[str, Any]] = [{"type": "text", "text": said}]
    if name:
        content.append(
            {"type": "tool_use", "id": f"toolu_{sha256_hex(part)[:2]}{step}", "name": name, "input": arguments}
        )
    return {
        "id": f"msg_{sha256_hex(request.text)[:8]}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "stop_reason": "tool_use" if name else "end_turn",
        "content": content,
        "usage": {"input_tokens": len(request.text) // 4, "output_tokens": 80},
    }


def _step(call: int, part: str, step: int, *, may_migrate: bool) -> tuple[str, str, dict[str, Any]]:
    """Return what the model says, and the tool that it calls with its arguments; the last step calls none."""
    if step == 10:
        return f"Done: {part} work, and their tests pass.", "", {}
    if call == BROKEN_AT:
        code = "ALTER TABLE refunds ADD COLUMN reason TEXT NOT NULL DEFAULT '';\n"
        file = WRITTEN if may_migrate else "docs/for-the-dba-team.md"
        return "The table needs a column for the reason.", "Write", {"file_path": file, "content": code}
    file = f"shop/{part}_{step // 3}.py"
    match step % 3:
        case 0:
            return f"I look at {file}.", "Read", {"file_path": file}
        case 1:
            return f"I change {file}.", "Write", {"file_path": file, "content": _code(part, call)}
        case _:
            return f"I test {part}.", "Bash", {"command": f"pytest tests/test_{part}.py -k step_{step}"}


def _code(part: str, number: int) -> str:
    return "\n".join(
        f"def {part}_{number}_{n}(order: Order) -> Order:\n    return order.with_{part}({n})\n" for n in range(9)
    )


def _result(call: ToolCall) -> ToolResult:
    """Run a tool, as far as the model can see."""
    assert isinstance(call.arguments, dict)
    given = call.arguments
    match call.name:
        case "Read":
            part = str(given["file_path"]).removeprefix("shop/").partition("_")[0]
            return ToolResult(call_id=call.call_id, name=call.name, text=_code(part, 0))
        case "Write":
            return ToolResult(call_id=call.call_id, name=call.name, text=f"wrote {given['file_path']}")
        case _:
            failed = "-k step_5" in str(given["command"])
            text = f"FAILED {given['command']}: the amount is off by a cent" if failed else "7 passed in 0.4s"
            return ToolResult(call_id=call.call_id, name=call.name, text=text, is_error=failed, exit_status=int(failed))
