"""Read SWE-agent trajectories: the history that the model saw, with function calls or with actions as text.

The `history` has the messages of every agent, in order; the `trajectory` has the steps with their durations, and only
it has the observation that ended the run. Without a history the steps are read instead. There are no timestamps and no
usage of single model calls: times are derived, one second a message, plus the recorded execution time before a result.
"""

from __future__ import annotations

from collections import defaultdict, deque
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled, ParentLink
from timeline.importers.builder import UNKNOWN_TIME, Origin, RecordingBuilder, client_message
from timeline.importers.recording import Recording, Report, short_title
from timeline.wire import openai_chat
from timeline.wire.anthropic import assistant_block, joined_text
from timeline.wire.foreign import decode_value, objects_of, text_of
from timeline.wire.usage import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.blocks import Block
    from timeline.importers.recording import RecordedEvent

FORMAT: Final = "swe-agent"
SHELL: Final = "bash"
"""The tool of a text action: SWE-agent runs it in a shell, where its own commands are shell functions."""
MOST_SECONDS: Final = 7 * 86_400.0
"""The longest plausible execution time; longer ones are ignored."""

_SIGNS: Final = ("agent", "message_type", "action", "is_demo")
"""Keys that an entry of a history has, and a chat message has not."""

Entry = dict[str, Any]


def is_swe_agent(value: Any) -> bool:
    """Return whether a JSON value is a trajectory of SWE-agent, or the attempts of a repeated run."""
    if not isinstance(value, dict):
        return False
    if any(isinstance(e.get("role"), str) and any(sign in e for sign in _SIGNS) for e in objects_of(value, "history")):
        return True
    steps = objects_of(value, "trajectory")
    return any("action" in s and "observation" in s for s in steps) or any(
        map(is_swe_agent, objects_of(value, "attempts"))
    )


def read_swe_agent(document: Entry, name: str, file_hash: str) -> list[Recording]:
    """Read a trajectory: the agent's conversation, those of its helpers, then those of other attempts.

    Args:
        document: the decoded JSON, one that `is_swe_agent` recognises.
        name: the file's name without its extension; the conversation's id begins with it.
        file_hash: the hash of the file; the id ends with it.
    """
    id_ = f"{name}-{file_hash[:12]}"
    found = _read_run(document, id_)
    for number, attempt in enumerate(objects_of(document, "attempts"), start=1):
        if attempt.get("history") != document.get("history"):
            found += _read_run(attempt, f"{id_}.attempt-{number}")
    return found


def _read_run(run: Entry, id_: str) -> list[Recording]:
    """Read one run: the first agent of the history comes first; entries that only other agents saw are theirs."""
    history = run.get("history")
    entries = history if isinstance(history, list) and history else list(_entries_of_steps(run))
    main = next(filter(None, (_agent_of(entry) for entry in entries if _is_own(entry))), "")
    by_agent: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    for number, entry in enumerate(entries, start=1):
        by_agent[_agent_of(entry) or main].append((number, entry))
    found: list[Recording] = []
    for agent, seen in sorted(by_agent.items(), key=lambda item: item[0] != main):
        if not any(_is_own(entry) for _, entry in seen):
            continue  # demonstrations of other agents, which the model never saw
        reader = _Reader(Report(format=FORMAT, lines=len(entries), records=len(seen)), run)
        for number, entry in seen:
            reader.read(entry, number)
        parent = None if agent == main else ParentLink(conversation=id_)
        if events := reader.finish(len(entries)):
            own_id = f"{id_}.agent-{agent}" if parent else id_
            found.append(Recording(own_id, events, reader.report, short_title(reader.builder.first_prompt), parent))
    return found


class _Reader:
    """Reads the entries of one agent."""

    def __init__(self, report: Report, run: Entry) -> None:
        self.report = report
        self.builder = RecordingBuilder(report)
        self._model = _model_of(run)
        self._decoder = openai_chat.MessageDecoder()
        self._at = UNKNOWN_TIME
        self._steps: dict[str, deque[Entry]] = defaultdict(deque)
        for step in objects_of(run, "trajectory"):
            self._steps[text_of(step, "action").strip()].append(step)
        self._step: Entry = {}
        self._open: str | None = None
        """The call that has no result yet."""
        self._is_text = False
        """Whether that call is a text action, whose result is the next user message."""
        report.note("missing_time", 1, "times are derived from the position, and from the execution times")
        if figures := _figures_of_run(run):
            report.note("missing_usage", 1, figures)

    def read(self, entry: Any, number: int) -> None:
        """Read one entry of the history; ``number`` counts from 1."""
        self._at += timedelta(seconds=1)
        if not isinstance(entry, dict) or not isinstance(role := entry.get("role"), str):
            self.report.note("invalid", number, "an entry without a role")
        elif not _is_own(entry):
            text = "\n".join(filter(None, (joined_text(entry.get("content")), _action_beside(entry))))
            shown = client_message(text, demonstration=True)
            self.builder.add(shown, Origin(f"message-{number}.0", number, self._at))
        elif role == "assistant":
            self._read_response(entry, number)
        elif role == "tool" or (role == "user" and self._open and self._is_text):
            self._read_observation(entry, number)
        else:
            self._read_message(entry, number)

    def finish(self, number: int) -> tuple[RecordedEvent, ...]:
        """Return the events, followed by the observation that ended the run, which only the steps have."""
        if self._open and isinstance(last := self._step.get("observation"), str):
            self._read_observation({"content": last}, number + 1)
        return self.builder.finish()

    def _read_message(self, entry: Entry, number: int) -> None:
        blocks = self._decode(entry, number)
        # A later user message marked as an observation is the client's reply to an answer without an action.
        says = bool(self.builder.first_prompt) and entry.get("message_type") == "observation"
        sent = (client_message(b.text) if says and isinstance(b, UserPrompt) else b for b in blocks)
        self.builder.add_said(
            (block, Origin(f"message-{number}.{index}", number, self._at)) for index, block in enumerate(sent)
        )

    def _read_response(self, entry: Entry, number: int) -> None:
        action = text_of(entry, "action").strip()
        steps = self._steps.get(action)
        self._step = steps.popleft() if steps else {}
        self._is_text = not entry.get("tool_calls") and bool(action)
        blocks = self._decode(_as_call(entry, f"action-{number}") if self._is_text else entry, number)
        response = blocks[0].response_id if blocks else None
        if response is None:
            return
        thoughts = [block for part in _thinking(entry) if (block := assistant_block(part, response, ""))]
        if thoughts:
            blocks = [*thoughts, *(block for block in blocks if not isinstance(block, Reasoning))]
        for index, block in enumerate(blocks):
            self.builder.add_to_response(response, block, Origin(f"message-{number}.{index}", number, self._at))
        if self._model:
            called = ModelCalled(model=self._model, response_id=response)
            self.builder.set_model_call(response, called, Origin(f"message-{number}", number, self._at))
        self._open = next((block.call_id for block in reversed(blocks) if isinstance(block, ToolCall)), None)

    def _read_observation(self, entry: Entry, number: int) -> None:
        self._at += _seconds(self._step.get("execution_time"))
        answered = entry.get("tool_call_ids")
        id_ = next(iter(answered), None) if isinstance(answered, list) else entry.get("tool_call_id")
        message = {"role": "tool", "tool_call_id": id_ or self._open, "content": entry.get("content")}
        for block in self._decoder.decode(message):
            if isinstance(block, ToolResult):
                self.builder.add_result(block, Origin(f"message-{number}.0", number, self._at))
        self._open = None

    def _decode(self, message: Entry, number: int) -> list[Block]:
        blocks = self._decoder.decode(message)
        if not blocks:
            self.report.note("unknown_record", number, f"a {message['role']} message that says nothing")
        return blocks


def _agent_of(entry: Any) -> str:
    return text_of(entry, "agent") if isinstance(entry, dict) else ""


def _is_own(entry: Any) -> bool:
    """Return whether an entry belongs to the run itself, not to a demonstration."""
    return not (isinstance(entry, dict) and entry.get("is_demo") is True)


def _as_call(entry: Entry, call_id: str) -> Entry:
    """Return a message with a text action as one with a call; its text is the thought before the action."""
    thought = entry.get("thought")
    text = thought if isinstance(thought, str) else entry.get("content")
    function = {"name": SHELL, "arguments": {"command": text_of(entry, "action").strip()}}
    return {**entry, "content": text, "tool_calls": [{"id": call_id, "function": function}]}


def _action_beside(entry: Entry) -> str:
    """Return the action of an entry with recorded calls; empty for an entry whose text contains its action."""
    return text_of(entry, "action") if entry.get("tool_calls") else ""


def _thinking(entry: Entry) -> list[Entry]:
    return [part for part in objects_of(entry, "thinking_blocks") if str(part.get("type")).endswith("thinking")]


def _entries_of_steps(run: Entry) -> Iterator[Entry]:
    """Yield a history made from the steps: the query of the first one, then each response with its observation."""
    steps = objects_of(run, "trajectory")
    if steps:
        yield from objects_of(steps[0], "query") or objects_of(steps[0], "messages")
    for step in steps:
        text = step.get("response") or step.get("thought")
        yield {"role": "assistant", "content": text, "thought": step.get("thought"), "action": step.get("action")}
        if text_of(step, "action").strip():
            yield {"role": "user", "content": step.get("observation"), "message_type": "observation"}


def _model_of(run: Entry) -> str:
    """Return the configured model of the run; newer versions keep the configuration as text."""
    config = run.get("replay_config")
    if isinstance(config, str):
        try:
            config, _ = decode_value(config)
        except ValueError:
            return ""
    for key in ("agent", "model"):
        config = config.get(key) if isinstance(config, dict) else None
    return text_of(config, "name") if isinstance(config, dict) else ""


def _figures_of_run(run: Entry) -> str:
    info = run.get("info")
    stats = info.get("model_stats") if isinstance(info, dict) else None
    sent, received, calls = (count_of(stats, key) for key in ("tokens_sent", "tokens_received", "api_calls"))
    return f"only of the run: {sent} tokens sent and {received} received in {calls} calls" if sent or received else ""


def _seconds(recorded: Any) -> timedelta:
    """Return a recorded duration, or zero if the value cannot be one."""
    is_number = isinstance(recorded, int | float) and not isinstance(recorded, bool)
    return timedelta(seconds=recorded) if is_number and 0 <= recorded <= MOST_SECONDS else timedelta()
