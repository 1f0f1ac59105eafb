"""Put Google's content chunks together: whole parts, texts in pieces, and on Vertex the arguments of calls in pieces.

A piece of arguments names its place in them by a path, ``$.cities[0].name``; a text may come in several pieces.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from timeline.frozen import compact_json
from timeline.wire.foreign import plain, text_of
from timeline.wire.gemini import camel, parts_of
from timeline.wire.responses import cut_call

if TYPE_CHECKING:
    from timeline.wire.media import Part

_CALL: Final = "functionCall"
_PIECES: Final = "partialArgs"
_GOES_ON: Final = "willContinue"
_STEP: Final = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_MOST_STEPS: Final = 64
"""Steps of a path; what is deeper is left out."""


class GeminiStream:
    """The chunks of a streamed reply; the figures in each are totals so far."""

    def __init__(self) -> None:
        self.complete: bool = False
        self._head: dict[str, Any] = {}
        self._finish: Any = None
        self._parts: list[Part] = []
        self._growing: _Growing | None = None

    def take(self, event: Any) -> None:
        """Add the next chunk."""
        value = plain(event)
        chunk = camel(value) if isinstance(value, dict) else {}
        keys = ("responseId", "modelVersion", "usageMetadata", "promptFeedback")
        self._head |= {key: chunk[key] for key in keys if chunk.get(key)}
        candidates = chunk.get("candidates")
        candidate = candidates[0] if isinstance(candidates, list) and candidates else None
        if isinstance(candidate, dict):
            content = candidate.get("content")
            for part in parts_of(content.get("parts")) if isinstance(content, dict) else ():
                self._take_part(part)
            self._finish = candidate.get("finishReason") or self._finish
        feedback = self._head.get("promptFeedback")
        refused = isinstance(feedback, dict) and feedback.get("blockReason")
        self.complete = bool(self._finish or refused)

    def _take_part(self, part: Part) -> None:
        """Join a text to the one before it. A signed part stays separate: it is sent back as it came."""
        if isinstance(call := part.get(_CALL), dict):
            self._take_call(part, call)
            return
        before = self._parts[-1] if self._parts else {}
        keys = {"text", "thought"}
        if part.keys() <= keys >= before.keys() and before and part.get("thought") == before.get("thought"):
            self._parts[-1] = {**before, "text": f"{before.get('text')}{part.get('text')}"}
        else:
            self._parts.append(part)

    def _take_call(self, part: Part, call: Part) -> None:
        """Add a call, or a piece of the one that grows: only the first piece has its name."""
        growing = self._growing
        if growing is None or text_of(call, "name"):
            if not call.get(_PIECES) and call.get(_GOES_ON) is not True:
                self._parts.append(part)
                return
            self._parts.append({})
            growing = self._growing = _Growing(len(self._parts) - 1)
        growing.take(part, call)
        self._parts[growing.place] = growing.part()
        if call.get(_GOES_ON) is not True:
            self._growing = None

    def reply(self) -> tuple[dict[str, Any], list[Part]]:
        """Return the reply so far, and the call in whose arguments the stream was cut off."""
        parts, cut = self._parts, []
        if self._growing is not None and not self.complete:
            half = parts[self._growing.place][_CALL]
            parts = [part for place, part in enumerate(parts) if place != self._growing.place]
            cut = [cut_call(half.get("id"), half.get("name"), compact_json(half["args"]))]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": self._finish}
        return {**self._head, "candidates": [candidate]}, cut


class _Growing:
    """A call whose arguments arrive in pieces.

    Attributes:
        place: of its part among those of the reply.
    """

    def __init__(self, place: int) -> None:
        self.place = place
        self._around: Part = {}
        self._named: Part = {}
        self._arguments: dict[str, Any] = {}
        self._open: list[str | int] | None = None
        """The path of the text that the next piece continues."""

    def take(self, part: Part, call: Part) -> None:
        """Add a piece."""
        self._around |= {key: value for key, value in part.items() if key != _CALL}
        self._named |= {key: value for key in ("id", "name") if (value := call.get(key))}
        if isinstance(whole := call.get("args"), dict):
            self._arguments |= whole
        pieces = call.get(_PIECES)
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                self._put(piece)

    def part(self) -> Part:
        """Return the part with what came so far."""
        return {**self._around, _CALL: {**self._named, "args": self._arguments}}

    def _put(self, piece: Part) -> None:
        steps = _steps(text_of(piece, "jsonPath"))
        if not steps:
            return
        value, goes_on = _value(piece), self._open == steps
        self._open = steps if piece.get(_GOES_ON) is True else None
        holder: Any = self._arguments
        for step, following in pairwise(steps):
            holder = _held(holder, step, [] if isinstance(following, int) else {})
        before = _held(holder, steps[-1], value)
        if goes_on and isinstance(before, str) and isinstance(value, str):
            _set(holder, steps[-1], before + value)
        elif before is not value:
            _set(holder, steps[-1], value)


def _steps(path: str) -> list[str | int]:
    """Return the names and numbers of a path; none where it is not understood."""
    found = [*_STEP.finditer(path, 1)]
    if not path.startswith("$") or "".join(match[0] for match in found) != path[1:] or len(found) > _MOST_STEPS:
        return []
    return [int(match[2]) if match[2] else next(filter(None, match.group(1, 3, 4)), "") for match in found]


def _value(piece: Part) -> Any:
    """Return what a piece says: a text, a number, true or false, or null."""
    if isinstance(text := piece.get("stringValue"), str):
        return text
    if isinstance(number := piece.get("numberValue"), int | float) and not isinstance(number, bool):
        return int(number) if float(number).is_integer() else number
    return piece.get("boolValue")


def _held(holder: Any, step: str | int, default: Any) -> Any:
    """Return what an object or a list has at a step; the default is put there where it has nothing."""
    if isinstance(holder, dict):
        return holder.setdefault(str(step), default)
    if not isinstance(holder, list) or not isinstance(step, int):
        return default
    if step >= len(holder):
        holder.append(default)
        return default
    return holder[step]


def _set(holder: Any, step: str | int, value: Any) -> None:
    if isinstance(holder, dict):
        holder[str(step)] = value
    elif isinstance(holder, list) and isinstance(step, int) and step < len(holder):
        holder[step] = value
