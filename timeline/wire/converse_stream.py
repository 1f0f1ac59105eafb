"""The events of Bedrock's ConverseStream: blocks are opened where they are calls, grow and are closed, by index."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, Final

from timeline.wire.foreign import arguments_of, object_of, objects_of, plain, text_of
from timeline.wire.responses import cut_call

if TYPE_CHECKING:
    from timeline.wire.media import Part

_USE: Final = "toolUse"
EVENTS: Final = frozenset({"messageStart", "contentBlockStart", "contentBlockDelta", "messageStop"})
"""Keys of the events that a stream may begin with."""


def is_converse_event(event: Any) -> bool:
    """Return whether an object is an event of such a stream."""
    return isinstance(event, dict) and len(event) == 1 and not EVENTS.isdisjoint(event)


class ConverseStream:
    """The accumulated events of one response.

    Attributes:
        complete: whether the end of the message came. Its usage comes behind that.
    """

    def __init__(self) -> None:
        self.complete: bool = False
        self._stop: str | None = None
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, Part] = {}
        self._inputs: dict[int, list[str]] = {}
        self._whole: set[int] = set()

    def take(self, event: Any) -> None:
        """Add the next event."""
        value = plain(event)
        if "contentBlockStart" in value:
            start = object_of(value, "contentBlockStart")
            self._blocks[_index(start)] = dict(object_of(start, "start"))
        elif "contentBlockDelta" in value:
            delta = object_of(value, "contentBlockDelta")
            self._grow(_index(delta), object_of(delta, "delta"))
        elif "contentBlockStop" in value:
            self._whole.add(_index(object_of(value, "contentBlockStop")))
        elif "messageStop" in value:
            self.complete = True
            self._stop = text_of(object_of(value, "messageStop"), "stopReason") or None
        elif "metadata" in value:
            self._usage = object_of(object_of(value, "metadata"), "usage")

    def _grow(self, index: int, delta: Part) -> None:
        block = self._blocks.setdefault(index, {})
        if _USE in delta:
            self._inputs.setdefault(index, []).append(text_of(object_of(delta, _USE), "input"))
        elif "text" in delta:
            block["text"] = text_of(block) + text_of(delta)
        elif "reasoningContent" in delta:
            block["reasoningContent"] = _grown(
                object_of(block, "reasoningContent"), object_of(delta, "reasoningContent")
            )
        elif isinstance(results := delta.get("toolResult"), list):
            known = objects_of(object_of(block, "toolResult"), "content")
            block["toolResult"] = {**object_of(block, "toolResult"), "content": [*known, *results]}
        elif "image" in delta:
            block["image"] = {**object_of(block, "image"), **object_of(delta, "image")}

    def reply(self) -> tuple[dict[str, Any], list[Part]]:
        """Return the reply so far, and the calls whose arguments the stream was cut in."""
        content: list[Part] = []
        cut: list[Part] = []
        for index, block in sorted(self._blocks.items()):
            use = object_of(block, _USE)
            raw = "".join(self._inputs.get(index, ()))
            arguments = arguments_of(raw) if raw else {}
            if use and not (self.complete or index in self._whole or (raw and isinstance(arguments, dict))):
                cut.append(cut_call(use.get("toolUseId"), use.get("name"), raw))
            elif use:
                content.append({_USE: {**use, "input": arguments}})
            elif block:
                content.append(block)
        message = {"role": "assistant", "content": content}
        return {"output": {"message": message}, "stopReason": self._stop, "usage": self._usage}, cut


def _index(event: Part) -> int:
    index = event.get("contentBlockIndex")
    return index if isinstance(index, int) else 0


def _grown(thought: Part, delta: Part) -> Part:
    """Return a thought with a piece of it: its text, its signature, or all of an encrypted one."""
    if redacted := text_of(delta, "redactedContent"):
        whole = b64decode(text_of(thought, "redactedContent")) + b64decode(redacted)
        return {"redactedContent": b64encode(whole).decode()}
    said = object_of(thought, "reasoningText")
    grown = {key: text_of(said, key) + text_of(delta, key) for key in ("text", "signature")}
    return {
        "reasoningText": {"text": grown["text"], **({"signature": grown["signature"]} if grown["signature"] else {})}
    }
