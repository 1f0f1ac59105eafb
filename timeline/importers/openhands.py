"""Read trajectories of OpenHands (JSON, one list of its events): what was done, and what came of it.

An agent's action carries the response of the model that asked for it, and each of several calls of one response carries
the same. An action without one, as of agents that write their calls as text, is a call by itself; its observation
names it as the cause. Times have no zone, and are read as UTC.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled
from timeline.frozen import compact_json
from timeline.importers.builder import Origin, RecordingBuilder, client_message, parse_time
from timeline.importers.recording import Recording, Report, short_title
from timeline.wire import openai_chat
from timeline.wire.foreign import arguments_of, object_of, objects_of, status_of, text_of
from timeline.wire.media import attachment_block
from timeline.wire.usage import openai_usage

if TYPE_CHECKING:
    from timeline.blocks import Block

FORMAT: Final = "openhands"
_STATE: Final = frozenset({"null", "agent_state_changed", "change_agent_state", "recall"})
"""Kinds of events between the program's own parts."""
_BESIDE: Final = frozenset({"thought", "hidden", "blocking", "is_input", "confirmation_state", "security_risk"})
"""Arguments of an action that are the program's own."""

Event = dict[str, Any]


def is_openhands(document: Any) -> bool:
    """Return whether a JSON document is a list of the program's events."""
    if not isinstance(document, list) or not document:
        return False
    return all(isinstance(event, dict) and text_of(event, "source") and _kind(event) for event in document) and any(
        "args" in event or "extras" in event for event in document
    )


def read_openhands(document: list[Event], name: str) -> list[Recording]:
    """Read a trajectory; the list is empty if nothing was said in it.

    Args:
        document: the decoded JSON, one that `is_openhands` recognises.
        name: the file's name without its extension. The conversation's id begins with it, and ends with the hash of the
            first event, which has its time: a trajectory that has grown adds what is new.
    """
    report = Report(format=FORMAT, lines=len(document), records=len(document))
    reader = _Reader(report)
    for number, event in enumerate(document, start=1):
        reader.read(event, number)
    events = reader.builder.finish()
    id_ = f"{name}-{sha256(compact_json(document[0]).encode()).hexdigest()[:12]}"
    return [Recording(id_, events, report, short_title(reader.builder.first_prompt))] if events else []


def _kind(event: Event) -> str:
    return text_of(event, "action") or text_of(event, "observation")


class _Reader:
    """Reads events in order; what the user says opens a turn."""

    def __init__(self, report: Report) -> None:
        self.builder = RecordingBuilder(report)
        self._report = report
        self._decoder = openai_chat.MessageDecoder()
        self._calls: dict[str, str] = {}
        """By event that is an action, the call that it is."""
        self._read: set[tuple[str, str]] = set()
        """Responses, and calls in them, that were read."""

    def read(self, event: Event, number: int) -> None:
        """Read one event."""
        origin = Origin(f"event-{event.get('id', number)}", number, parse_time(event.get("timestamp")))
        args, kind = object_of(event, "args"), _kind(event)
        if kind in _STATE:
            self._report.counts["skipped"] += 1
        elif "observation" in event:
            self._read_observation(event, origin)
        elif kind == "condensation":
            self._report.note("rolled_back", number, "the client went on from a summary; what it left out is kept here")
        elif kind == "system":
            self.builder.add(SystemMessage(text=text_of(args, "content")), origin)
        elif text_of(event, "source") != "agent":
            self._read_said(event, origin)
        elif response := object_of(object_of(event, "tool_call_metadata"), "model_response"):
            self._read_response(event, response, origin)
        else:
            self._read_action(event, origin)

    def _read_said(self, event: Event, origin: Origin) -> None:
        """Read what the user said, or what was done in the user's name."""
        args = object_of(event, "args")
        text = text_of(args, "content") or text_of(args, "command")
        is_prompt = _kind(event) == "message" and text_of(event, "source") == "user"
        said: list[Block] = [UserPrompt(text=text) if is_prompt else client_message(text)] if text else []
        urls = args.get("image_urls")
        shown = (
            [{"type": "image_url", "image_url": {"url": str(url)}} for url in urls] if isinstance(urls, list) else []
        )
        said += map(attachment_block, shown)
        if not said:
            self._report.note("unknown_record", origin.line, f"{_kind(event)} that says nothing")
        places = (Origin(f"{origin.key}.{place}", origin.line, origin.at) for place in range(len(said)))
        self.builder.add_said(zip(said, places, strict=True))

    def _read_response(self, event: Event, response: Event, origin: Origin) -> None:
        """Read an action with the response that asked for it; of several actions the first brings all of it."""
        asked = object_of(event, "tool_call_metadata")
        id_, call_id = text_of(response, "id") or origin.key, text_of(asked, "tool_call_id")
        self._calls[str(event.get("id"))] = call_id
        blocks: list[Block] = []
        is_first = (id_, "") not in self._read
        if is_first:
            message = next((object_of(choice, "message") for choice in objects_of(response, "choices")), {})
            blocks += self._decoder.decode({**message, "role": "assistant", "id": id_})
        made = {(id_, block.call_id) for block in blocks if isinstance(block, ToolCall)}
        self._read |= {(id_, ""), *made}
        if call_id and (id_, call_id) not in self._read:
            self._read.add((id_, call_id))
            name, arguments = text_of(asked, "function_name") or _kind(event), _arguments(event)
            blocks.append(ToolCall(call_id=call_id, name=name, arguments=arguments, response_id=id_))
        for place, block in enumerate(blocks):
            self.builder.add_to_response(id_, block, Origin(f"{origin.key}.{place}", origin.line, origin.at))
        if is_first:
            model, usage = text_of(response, "model"), openai_usage(response.get("usage"))
            self.builder.set_model_call(id_, ModelCalled(model=model, response_id=id_, usage=usage), origin)

    def _read_action(self, event: Event, origin: Origin) -> None:
        """Read an action without a response: the agent's words, and the call that it is."""
        is_message, args = _kind(event) == "message", object_of(event, "args")
        if text := text_of(args, "content" if is_message else "thought"):
            said = AssistantCompletion(text=text, response_id=origin.key)
            self.builder.add_to_response(origin.key, said, Origin(f"{origin.key}.0", origin.line, origin.at))
        if not is_message:
            self._calls[str(event.get("id"))] = f"call-{origin.key}"
            call = ToolCall(
                call_id=f"call-{origin.key}", name=_kind(event), arguments=_arguments(event), response_id=origin.key
            )
            self.builder.add_to_response(origin.key, call, Origin(f"{origin.key}.1", origin.line, origin.at))

    def _read_observation(self, event: Event, origin: Origin) -> None:
        """Read what came of an action; the program's words to the agent, where it answers none."""
        extras, text = object_of(event, "extras"), text_of(event, "content")
        metadata = object_of(extras, "metadata")
        text = f"{text_of(metadata, 'prefix')}{text}{text_of(metadata, 'suffix')}"
        call_id = text_of(object_of(event, "tool_call_metadata"), "tool_call_id")
        call_id = call_id or self._calls.get(str(event.get("cause")), "")
        if not call_id:
            self.builder.add(client_message(text or text_of(event, "message")), origin)
            return
        status = status_of(metadata if "exit_code" in metadata else extras, "exit_code")
        ended = status if status is not None and status >= 0 else None  # -1: it runs on
        failed = _kind(event) == "error" or event.get("success") is False
        result = ToolResult(call_id=call_id, text=text, is_error=failed, exit_status=ended)
        self.builder.add_result(result, origin)


def _arguments(event: Event) -> dict[str, Any] | str:
    return arguments_of({key: value for key, value in object_of(event, "args").items() if key not in _BESIDE})
