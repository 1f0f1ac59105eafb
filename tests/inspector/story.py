"""Conversations to look at: one whose agent forgets a constraint, a long one, a hostile one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from timeline import Timeline, policies
from timeline.blocks import AssistantCompletion, Reasoning, ToolCall, ToolResult, UserPrompt

if TYPE_CHECKING:
    from timeline.ports import EventStore

FORGETFUL: Final = "flashcards"
"""The conversation whose agent forgets what a file said."""
CONSTRAINT: Final = "Never rename a public function"
LIMIT: Final = 6_600
TOOLS: Final[list[Any]] = [
    {"name": "bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
]
_START: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_TURNS: Final = (
    "Build a flashcard app with spaced repetition. Keep the scheduler free of any database.",
    "Cards must survive a restart. Store them in SQLite and keep the tests green.",
    "Add an import of CSV files; a broken line must not stop it.",
    "Show how many cards are due today in the title of the window.",
    "The import is slow for 10,000 lines. Measure it first, then make it fast.",
    "Write a page about the format of the CSV file.",
    "Let a user undo the last answer.",
    "Sort decks by name, and keep the order when one is renamed.",
    "Tidy up the scheduler: read CONTRIBUTING.md first, then make the names in src/scheduler.py consistent.",
    "Release it as 1.1.",
)
_STEPS: Final = (6, 8, 8, 8, 8, 8, 8, 8, 30, 8)
"""Model calls of each turn; the ninth is the long one in which a summary is cut."""


async def tell_forgetful(store: EventStore) -> Timeline:
    """Append the conversation: ten turns and a hundred calls, each with the request that was sent."""
    timeline = await Timeline.open(store, FORGETFUL, policy=policies.cut_point(max_tokens=LIMIT))
    clock, numbers = _Clock(), count(1)
    for turn, (prompt, steps) in enumerate(zip(_TURNS, _STEPS, strict=True), start=1):
        clock.pass_by(400)
        await timeline.append(UserPrompt(text=prompt), now=clock.now)
        for step in range(1, steps + 1):
            await _call(timeline, clock, next(numbers), turn, step, last=step == steps)
    return timeline


class _Clock:
    """The time, and what was sent last: as much of the next request comes from the cache."""

    def __init__(self) -> None:
        self.now = _START
        self.sent = 0

    def pass_by(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)


async def _call(timeline: Timeline, clock: _Clock, number: int, turn: int, step: int, *, last: bool) -> None:
    """Render, send, record and answer one call."""
    clock.pass_by(20)
    context = await timeline.render(system="You are a careful programmer.", tools=TOOLS, now=clock.now)
    request = context.request("anthropic", model="claude-opus-4-5", max_tokens=4_096)
    command = "cat CONTRIBUTING.md" if (turn, step) == (9, 2) else f"pytest tests/test_{turn}_{step}.py"
    said: list[dict[str, Any]] = [{"type": "text", "text": _remark(turn, step, last=last)}]
    if not last:
        said.append({"type": "tool_use", "id": f"toolu_{number}", "name": "bash", "input": {"command": command}})
    sent = context.account.total
    cached = 0 if context.decisions else clock.sent
    clock.sent = sent
    usage = {"input_tokens": sent - cached, "cache_read_input_tokens": cached, "output_tokens": 30}
    reply: dict[str, Any] = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-5",
        "usage": usage,
    }
    reply |= {"stop_reason": "end_turn" if last else "tool_use", "content": said}
    clock.pass_by(3)
    await timeline.record(reply, request=request, now=clock.now)
    if not last:
        text = _rules() if command.startswith("cat") else _output(turn, step)
        failed = "FAILED" in text
        await timeline.append(ToolResult(call_id=f"toolu_{number}", text=text, is_error=failed), now=clock.now)


def _remark(turn: int, step: int, *, last: bool) -> str:
    if last:
        return f"Done with **turn {turn}**. All tests pass:\n\n- the code is in `src/`\n- the tests are in `tests/`"
    return f"Step {step}: run the tests of part {step}."


def _rules() -> str:
    return (
        f"# Contributing\n\n{CONSTRAINT} of src/scheduler.py: plugins import them by name.\n"
        "Run the linter before a commit. Keep lines below 100 characters.\n" + "Further notes follow here. " * 40
    )


def _output(turn: int, step: int) -> str:
    if step % 5 == 3:
        return f"FAILED tests/test_{turn}_{step}.py::test_due\n" + "E   assert card.due == today\n" * 12
    return f"tests/test_{turn}_{step}.py " + "." * 30 + " [100%]\n" + f"{step * 7} passed in 0.{turn}{step} s\n" * 30


LONG: Final = "long"


async def tell_long(store: EventStore, name: str, blocks: int) -> None:
    """Append a conversation of so many blocks, without any model call."""
    timeline = await Timeline.open(store, name, policy=policies.cut_point(max_tokens=10_000_000))
    kinds = (_prompt, _thought, _tool_call, _tool_result, _answer)
    for first in range(0, blocks, 1_000):
        numbers = range(first, min(first + 1_000, blocks))
        await timeline.append(*[kinds[number % len(kinds)](number) for number in numbers], now=_START)


def _prompt(number: int) -> UserPrompt:
    return UserPrompt(text=f"Prompt {number}: " + "please look at it again, and say what you found. " * (number % 7))


def _thought(number: int) -> Reasoning:
    return Reasoning(text=f"Thought {number}. " + "It could be the cache. " * (number % 11))


def _tool_call(number: int) -> ToolCall:
    return ToolCall(call_id=f"call_{number}", name="bash", arguments={"command": f"make part-{number}"})


def _tool_result(number: int) -> ToolResult:
    return ToolResult(call_id=f"call_{number - 1}", text=f"line {number}\n" * (number % 5 + 1))


def _answer(number: int) -> AssistantCompletion:
    return AssistantCompletion(text=f"Answer {number}. " + "It is done now, and the tests pass. " * (number % 9))


HOSTILE: Final = "<img src=x onerror=stolen()>"
"""An id that is HTML, as is every text of its conversation."""
SCRIPT: Final = "<script>stolen()</script><img src=http://evil.example/x onerror=stolen()>"


async def tell_hostile(store: EventStore) -> None:
    """Append a conversation whose every text is HTML with a script in it."""
    timeline = await Timeline.open(store, HOSTILE, policy=policies.cut_point(max_tokens=4_000), title=SCRIPT)
    for number in range(30):
        call = ToolCall(call_id=f"{SCRIPT}{number}", name="<b>tool</b>", arguments={"command": SCRIPT, SCRIPT: 1})
        await timeline.append(UserPrompt(text=f"{SCRIPT} [link](javascript:stolen()) {number}"), now=_START)
        await timeline.append(call, ToolResult(call_id=call.call_id, text=SCRIPT * 4), now=_START)
        await timeline.append(
            AssistantCompletion(text=f"# {SCRIPT}\n\n```{SCRIPT}\n{SCRIPT}\n```\n| {SCRIPT} |\n"), now=_START
        )
        await timeline.render(system=SCRIPT, now=_START)
