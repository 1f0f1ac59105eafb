"""What a user of Claude Code says while the model is at work: the client keeps it in a queue until the next call.

No row of the conversation has those words. The queue's own rows have them: ``enqueue`` with the text, then ``remove``
when the client gave it to the model beside the results of the running turn. A text that was taken out otherwise is no
loss: behind ``dequeue`` it follows as a prompt of its own, and ``popAll`` gives it back to the user to edit. Newer
clients write what they gave to the model as an ``attachment``, too, which alone has pictures; either row may come
first, and either may be missing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from timeline.wire.foreign import text_of

QUEUE: Final = "queue-operation"
"""The type of the queue's rows."""
_NOTIFICATION: Final = "<task-notification>"
"""The beginning of the client's own texts in the queue: each follows as a row, or as an attachment."""
_GIVEN: Final = "absorbed_mid_turn"
"""Why a text was taken out that the model was given; rows of older clients have no reason."""
_UNREADABLE: Final = ""
"""Holds the place of a prompt whose content is no text, such as one with a picture: its attachment has it."""


class PromptQueue:
    """Follows the queue of one session, row by row."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._from_queue = Counter[str]()
        """Texts that the queue's rows brought, and no attachment yet."""
        self._attached = Counter[str]()
        """Texts that attachments brought, and no row of the queue yet."""

    def given_by(self, row: dict[str, Any]) -> str:
        """Read a row of the queue; return the text that the model was given by it, empty for most."""
        text = text_of(row, "content")
        if text.lstrip().startswith(_NOTIFICATION):
            return ""
        match text_of(row, "operation"):
            case "enqueue":
                self._waiting.append(text if text.strip() else _UNREADABLE)
            case "remove":
                reason = text_of(row, "reason")
                taken = self._take(text, _UNREADABLE if reason else None)
                return self._once(taken) if reason in {"", _GIVEN} else ""
            case "dequeue":
                self._take(text, None)
            case "popAll":
                self._waiting.clear()
        return ""

    def is_given_by(self, text: str) -> bool:
        """Return whether an attachment alone says, so far, that the model was given a text."""
        return _is_first(text.strip(), self._attached, self._from_queue)

    def _once(self, text: str) -> str:
        return text if text and _is_first(text.strip(), self._from_queue, self._attached) else ""

    def _take(self, text: str, likely: str | None) -> str:
        """Take a text out: the one that is named, else the likely one, else the one that waits longest."""
        named = text or likely
        if named in self._waiting:
            self._waiting.remove(named)
            return named
        return text or (self._waiting.pop(0) if self._waiting else "")


def _is_first(text: str, brought: Counter[str], by_the_other: Counter[str]) -> bool:
    """Note that one kind of row brought a text; return False if the other kind brought it before."""
    if by_the_other[text]:
        by_the_other[text] -= 1
        return False
    brought[text] += 1
    return True
