"""Messages into blocks that are about to be appended: a provider's own, and text that the application injects.

Injected text that is kept is a question of the user's and the assistant's answer. A changed system prompt would throw
the provider's whole cache away; a pair at the end costs its own tokens only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from timeline.blocks import CustomBlock, UserPrompt
from timeline.errors import InvalidArgument, InvalidBlock
from timeline.importers.chat import dialect_of
from timeline.wire import message_decoder
from timeline.wire.foreign import plain
from timeline.wire.openai_chat import parts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.fold.turns import Turns
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


MessageWire: TypeAlias = Literal["anthropic", "openai_chat", "gemini", "ai_sdk", "ai_sdk_ui"]
"""Wires whose message lists are read: those of `timeline.wire.MESSAGES`."""

_SYSTEM_ROLES: Final = {"system", "developer"}


def read_messages(messages: Sequence[Any], *, wire: str | None, names: Sequence[str]) -> list[list[Block]]:
    """Read messages, each into its blocks.

    Args:
        messages: a provider's message list; contents may hold an SDK's objects.
        wire: one of `MessageWire`; told by the messages where it is None.
        names: for each message the id of the response that it is, where it brings none.

    Raises:
        InvalidBlock: one of them is no message; the field says which.
        InvalidArgument: there is no such wire.
    """
    told = [_message(message, number) for number, message in enumerate(messages)]
    decoder = message_decoder(wire_of(told, wire))
    return [decoder.decode({"id": name, **message}) for message, name in zip(told, names, strict=True)]


def wire_of(messages: Sequence[Any], wire: str | None = None) -> str:
    """Return the wire format of messages: the one that is named, else the one that they show."""
    return wire or dialect_of([plain(message) for message in messages])


def read_system(messages: Sequence[Any]) -> tuple[JsonValue, list[dict[str, Any]]]:
    """Part a list into its system prompt and the rest: some have the prompt as their leading messages.

    Returns:
        The prompt (one message's content as it is, several messages' as parts; None without any), and the other
        messages as plain values.

    Raises:
        InvalidBlock: one of them is no message; the field says where.
    """
    told = [_message(message, number) for number, message in enumerate(messages)]
    leading = next((n for n, message in enumerate(told) if message["role"] not in _SYSTEM_ROLES), len(told))
    contents = [message.get("content", message.get("parts")) for message in told[:leading]]
    if len(contents) <= 1:
        return (contents[0] if contents else None), told[leading:]
    return [part for content in contents for part in parts_of(content)], told[leading:]


def _message(message: Any, number: int) -> dict[str, Any]:
    try:
        told = plain(message)
    except ValueError as error:
        raise InvalidBlock(f"messages[{number}]", str(error)) from None
    if not isinstance(told, dict) or not isinstance(told.get("role"), str):
        raise InvalidBlock(f"messages[{number}]", "is no message: it needs a role, and content")
    return {key: value for key, value in told.items() if key != "id" or value}


def placed_in_turns(messages: Sequence[Sequence[Block]], turns: Turns) -> list[Block]:
    """Give the blocks of messages the turns that they open, and return all of them.

    A message in which a user asks something opens one turn, however many parts it has; everything else belongs to the
    turn that is open.

    Args:
        messages: the blocks of each message.
        turns: where the conversation stands; it is left as it is.
    """
    ahead = turns.copy()
    placed: list[Block] = []
    for blocks in messages:
        prompt = next((block for block in blocks if isinstance(block, UserPrompt)), None)
        opened = None if prompt is None else ahead.turn_for(prompt)
        for block in blocks:
            is_of_turn = opened is not None and block.author == "user"
            placed.append(block.model_copy(update={"turn_id": opened}) if is_of_turn else block)
            ahead.advance(placed[-1], placed[-1].turn_id or ahead.turn_for(block), len(placed))
    return placed
