"""What a user of Claude Code says while the model is at work: the client keeps it in a queue until the next call.

No row of the conversation has those words; only the queue's own rows do: ``enqueue`` with the text, then ``remove``
when the client gave it to the model beside the results of the running turn. A text that was taken out otherwise is no
loss: behind ``dequeue`` it follows as a prompt of its own, and ``popAll`` gives it back to the user to edit.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from timeline.wire.foreign import text_of

QUEUE: Final = "queue-operation"
"""The type of the queue's rows."""
_NOTIFICATION: Final = "<task-notification>"
"""The beginning of the client's own texts in the queue: each follows as a row, and none says that it was taken out."""


class PromptQueue:
    """Follows the queue of one session, row by row."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()

    def told_by(self, row: dict[str, Any]) -> str:
        """Read a row of the queue; return the text that the model was given by it, empty for most."""
        match text_of(row, "operation"):
            case "enqueue":
                text = text_of(row, "content")
                if text.strip() and not text.lstrip().startswith(_NOTIFICATION):
                    self._waiting.append(text)
            case "remove":
                return self._next()
            case "dequeue":
                self._next()
            case "popAll":
                self._waiting.clear()
        return ""

    def _next(self) -> str:
        return self._waiting.popleft() if self._waiting else ""
