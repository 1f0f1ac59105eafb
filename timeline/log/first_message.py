"""Find the user's first message in a log: the original task, which every summarizer is given.

A message may have several parts, each a block of its own. A client that puts words of its own in front of a prompt,
such as the rules of a project, sends them as the first part; the task is in a later one.
"""

from __future__ import annotations

from dataclasses import dataclass

from timeline.blocks import Block, UserPrompt, continues


@dataclass(slots=True)
class FirstMessage:
    """Finds the user's first message that says something, in blocks that are taken in the log's order.

    Attributes:
        versions: the versions of the message's prompts, without its other parts, such as pictures.
        is_over: whether a block behind the message was taken, so that it is complete.
    """

    versions: tuple[int, ...] = ()
    is_over: bool = False
    _texts: tuple[str, ...] = ()
    _last: Block | None = None

    @property
    def text(self) -> str | None:
        """What it says, its parts with an empty line between them; None as long as nothing was said."""
        return "\n\n".join(self._texts) if self.versions else None

    def take(self, version: int, block: Block) -> None:
        """Take the next block of the log."""
        self.is_over = self.is_over or (self._last is not None and not continues(block, self._last))
        if self.is_over or type(block) is not UserPrompt or not block.text.strip():
            return
        self.versions, self._texts = (*self.versions, version), (*self._texts, block.text)
        self._last = block
