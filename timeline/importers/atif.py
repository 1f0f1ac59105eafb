"""Read a trajectory in the Agent Trajectory Interchange Format, which evaluation frameworks write for every agent.

A step is what the system or the user said, or a response of the model with its calls and what came of them. Versions
1.0 to 1.8 have one form; a later one has keys more. What `timeline export` writes in this format is read, too: it names
the blocks of each step, and is a transcript all the same, so that the log itself is what to import where it is at hand.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, Reasoning, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled, ParentLink
from timeline.importers.builder import UNKNOWN_TIME, Origin, RecordingBuilder, client_message, parse_time
from timeline.importers.recording import Recording, Report, short_title
from timeline.usage import Usage
from timeline.wire.anthropic import parts_of
from timeline.wire.foreign import arguments_of, object_of, objects_of, status_of, text_of
from timeline.wire.usage import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from timeline.blocks import Block

FORMAT: Final = "atif"
_VERSIONS: Final = "ATIF-v1."

Step = dict[str, Any]


def is_atif(document: Any) -> bool:
    """Return whether a JSON document is a trajectory of version 1."""
    return isinstance(document, dict) and text_of(document, "schema_version").startswith(_VERSIONS)


def read_atif(document: dict[str, Any], name: str, file_hash: str) -> list[Recording]:
    """Read a trajectory and those of its subagents; the list is empty if nothing was said in them.

    Args:
        document: the decoded JSON, one that `is_atif` recognises.
        name: the file's name without its extension; the conversation's id begins with it.
        file_hash: the hash of the file; the id ends with it, as several runs may share the id of a session.
    """
    return _read_trajectory(document, f"{name}-{file_hash[:12]}", None)


def _read_trajectory(document: dict[str, Any], id_: str, parent: ParentLink | None) -> list[Recording]:
    """Read a trajectory, then those of its subagents, which stand in it and may have subagents of their own."""
    steps = objects_of(document, "steps")
    report = Report(format=FORMAT, lines=len(steps), records=len(steps))
    began = next(filter(None, (parse_time(step.get("timestamp")) for step in steps)), None)
    if began is None:
        report.note("missing_time", 1, "times are derived from the position, a second a step")
    reader = _Reader(report, began, text_of(object_of(document, "agent"), "model_name"))
    for number, step in enumerate(steps, start=1):
        reader.read(step, number)
    events = reader.builder.finish()
    title = short_title(reader.builder.first_prompt)
    found = [Recording(id_, events, report, title, parent)] if events else []
    calls = _calls_of_subagents(steps)
    for number, other in enumerate(objects_of(document, "subagent_trajectories"), start=1):
        own = text_of(other, "trajectory_id")
        path = reader.builder.path_of_call(calls.get(own, ""))
        link = ParentLink(conversation=id_, path=path, relation="subagent")
        found += _read_trajectory(other, f"{id_}.agent-{own or number}", link)
    return found


def _calls_of_subagents(steps: Iterable[Step]) -> dict[str, str]:
    """Return the call that began each subagent: what came of it names the trajectory."""
    results = (result for step in steps for result in _answering(step))
    return {
        text_of(named, "trajectory_id"): text_of(result, "source_call_id")
        for result in results
        for named in objects_of(result, "subagent_trajectory_ref")
    }


class _Reader:
    """Reads steps in order; what the user says opens a turn."""

    def __init__(self, report: Report, began: datetime | None, model: str) -> None:
        self.builder = RecordingBuilder(report, first_time=began)
        self._report = report
        self._has_times = began is not None
        self._at = began or UNKNOWN_TIME
        self._model = model
        self._is_begun = False
        """Whether anybody but the system said something."""

    def read(self, step: Step, number: int) -> None:
        """Read one step."""
        self._at = parse_time(step.get("timestamp")) or (self._at if self._has_times else self._next())
        origin = Origin(f"step-{number}", number, self._at)
        text = _text_of(step.get("message"))
        match text_of(step, "source"):
            case "agent":
                self._is_begun = True
                self._read_response(step, text, origin)
            case "user" if text:
                self._is_begun = True
                self.builder.add_said([(UserPrompt(text=text), origin)])
            case "system" if text:
                said = client_message(text) if self._is_begun else SystemMessage(text=text)
                self.builder.add(said, origin)
            case "system" if "observation" in step:
                pass
            case source:
                self._report.note("unknown_record", number, f"a step of {source or None} that says nothing to read")
        for place, result in enumerate(_answering(step)):
            self._read_result(result, Origin(f"{origin.key}.result-{place}", number, self._at))

    def _next(self) -> datetime:
        return self._at + timedelta(seconds=1)

    def _read_response(self, step: Step, text: str, origin: Origin) -> None:
        blocks: list[Block] = []
        if thought := text_of(step, "reasoning_content"):
            blocks.append(Reasoning(text=thought, response_id=origin.key))
        if text:
            blocks.append(AssistantCompletion(text=text, response_id=origin.key))
        blocks += [_call(call, origin.key, place) for place, call in enumerate(objects_of(step, "tool_calls"))]
        for place, block in enumerate(blocks):
            self.builder.add_to_response(origin.key, block, Origin(f"{origin.key}.{place}", origin.line, origin.at))
        if not blocks:
            self._report.note("unknown_record", origin.line, "a step of the agent that says nothing")
        elif isinstance(metrics := step.get("metrics"), dict):
            model = text_of(step, "model_name") or self._model
            called = ModelCalled(model=model, response_id=origin.key, usage=_usage(metrics))
            self.builder.set_model_call(origin.key, called, origin)

    def _read_result(self, result: dict[str, Any], origin: Origin) -> None:
        """Read what came of a call; an observation without a call is the environment's word to the model."""
        text, call_id = _text_of(result.get("content")), text_of(result, "source_call_id")
        more = object_of(result, "extra")
        if not call_id:
            if text:
                self.builder.add(client_message(text), origin)
            return
        block = ToolResult(
            call_id=call_id,
            text=text,
            data=_pictures(result.get("content")) or None,
            is_error=more.get("is_error") is True,
            exit_status=status_of(more, "exit_status"),
        )
        self.builder.add_result(block, origin)


def _answering(step: Step) -> list[dict[str, Any]]:
    """Return what came of a step's calls; results that name no call answer the last ones, in order.

    Agents that type into a terminal have one result, the screen behind the last call.
    """
    results = objects_of(object_of(step, "observation"), "results")
    calls = [id_ for call in objects_of(step, "tool_calls") if (id_ := text_of(call, "tool_call_id"))]
    if any(text_of(result, "source_call_id") for result in results):
        return results
    unnamed = [""] * (len(results) - len(calls)) + calls[max(0, len(calls) - len(results)) :]
    return [{**result, "source_call_id": id_} for result, id_ in zip(results, unnamed, strict=True)]


def _call(call: dict[str, Any], response: str, place: int) -> ToolCall:
    return ToolCall(
        call_id=text_of(call, "tool_call_id") or f"call-{response}-{place}",
        name=text_of(call, "function_name") or "unknown",
        arguments=arguments_of(call.get("arguments") or {}),
        response_id=response,
    )


def _usage(metrics: dict[str, Any]) -> Usage:
    """Return the usage of a response: the format counts what was cached as sent."""
    sent, cached = count_of(metrics, "prompt_tokens"), count_of(metrics, "cached_tokens")
    return Usage(
        input_tokens=max(0, sent - cached),
        output_tokens=count_of(metrics, "completion_tokens"),
        cache_read_tokens=cached,
    )


def _text_of(content: Any) -> str:
    """Return the text of a message or a result, which newer versions have in parts."""
    return content if isinstance(content, str) else "\n".join(filter(None, map(text_of, parts_of(content))))


def _pictures(content: Any) -> list[Any]:
    """Return the parts of a result, if pictures are among them; they name files beside the trajectory."""
    parts = [] if isinstance(content, str) else parts_of(content)
    return parts if any(not text_of(part) for part in parts) else []
