"""Injected text that is kept: a question of the user's and the assistant's answer, so that no system prompt changes.

A changed system prompt would throw the provider's whole cache away; a pair at the end costs its own tokens only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import CustomBlock
from timeline.errors import InvalidArgument

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.window import Window

QUESTION: Final = "What do you keep in mind from here on?"
"""What the user asks, unless the caller has another question."""
GO_ON: Final = "Good. Go on."
"""What the user says behind the answer when it is the model's turn to speak."""


def injected_pair(text: str, window: Window, *, question: str = QUESTION) -> list[Block]:
    """Make the blocks of an injected text: the question, the answer, and where the model is to speak next, a last word.

    Without it the request would end with the assistant's answer, which a provider goes on writing, or refuses. They are
    blocks of their own type: neither does the question open a turn, nor does the answer end a round, so that calls
    which wait for their results still get them.

    Raises:
        InvalidArgument: the text or the question is blank.
    """
    for field, told in (("text", text), ("question", question)):
        if not told.strip():
            raise InvalidArgument(field, "is blank")
    newest = window.items[-1].block if window.items else None
    model_is_next = newest is not None and (newest.author != "assistant" or bool(window.open_calls()))
    pair: list[Block] = [
        CustomBlock(type="injected.question", author="user", text=question),
        CustomBlock(type="injected.answer", author="assistant", text=text),
    ]
    return [*pair, CustomBlock(type="injected.go_on", author="user", text=GO_ON)] if model_is_next else pair
