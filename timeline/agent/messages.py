"""Read a provider's messages, and the texts that an application injects, as blocks to append.

An injected text that is kept becomes a question of the user and the assistant's answer. A changed system prompt would
make the provider's whole cache useless; a pair at the end costs only its own tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pydantic import ValidationError

from timeline.blocks import CONTINUES_KEY, CustomBlock, ToolCall, UserPrompt, invalid_block
from timeline.errors import InvalidArgument, InvalidBlock
from timeline.wire import message_decoder
from timeline.wire.call_ids import CallIds
from timeline.wire.converse_content import is_content_block
from timeline.wire.foreign import plain
from timeline.wire.openai_chat import parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.fold.turns import Turns
    from timeline.fold.window import Window
    from timeline.wire.call_ids import OpenCalls


QUESTION: Final = "What do you keep in mind from here on?"
"""The user's question of an injected pair, by default."""
GO_ON: Final = "Good. Go on."
"""The user's message behind the injected answer when the model is to speak next."""


def injected_pair(text: str, window: Window, *, question: str = QUESTION) -> list[Block]:
    """Make the blocks of an injected text: a question, the answer, and `GO_ON` if the model is to speak next.

    Without `GO_ON` the request would end with the assistant's answer, which a provider continues, or refuses. The
    blocks have types of their own: the question opens no turn and the answer ends no round, so that open calls still
    get their results.

    Raises:
        InvalidArgument: the text or the question is blank.
    """
    for field, value in (("text", text), ("question", question)):
        if not value.strip():
            raise InvalidArgument(field, "is blank")
    newest = window.items[-1].block if window.items else None
    model_is_next = newest is not None and (newest.author != "assistant" or bool(window.open_calls()))
    pair: list[Block] = [
        CustomBlock(type="injected.question", author="user", text=question),
        CustomBlock(type="injected.answer", author="assistant", text=text),
    ]
    return [*pair, CustomBlock(type="injected.go_on", author="user", text=GO_ON)] if model_is_next else pair


MessageWire: TypeAlias = Literal[
    "anthropic", "openai_chat", "openai_responses", "gemini", "bedrock_converse", "ai_sdk", "ai_sdk_ui"
]
"""Wires whose message lists can be read: those of `timeline.wire.MESSAGES`."""

_NO_MESSAGE: Final = "is not a message: it needs a role, and content"
_IN_PARTS: Final = frozenset({"gemini", "ai_sdk_ui"})
"""The wires whose messages have ``parts``; those of the others have ``content``."""
_OF_ITEMS: Final = "openai_responses"
"""The wire whose lists have items without a role: calls, results, thoughts."""
_ITEM_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_CALL_KEYS: Final = ("tool_calls", "tool_call_id", "function_call")
_CALL_PARTS: Final = frozenset({"tool_use", "tool_result", "tool-call", "tool-result"})
"""Parts in which messages of other forms hold calls and results; in a list of items these are items of their own."""
_SYSTEM_ROLES: Final = {"system", "developer"}
_TYPED: Final = frozenset({"openai_chat", "anthropic", "ai_sdk", "openai_responses"})
"""The wires whose content parts say their type."""
_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
"""The types of parts whose words are under the key ``text``."""
_SPEAKERS: Final = frozenset({"user", "assistant"})
"""The roles whose parts are read by their type; a tool's output may be any value."""


def read_messages(
    messages: Sequence[Any],
    *,
    wire: str | None,
    names: Sequence[str],
    ids: CallIds | None = None,
    since: int = 0,
    earlier: OpenCalls = tuple,
) -> list[list[Block]]:
    """Read messages, each into its blocks.

    Args:
        messages: a provider's message list; contents may hold an SDK's objects.
        wire: one of `MessageWire`; None recognises the messages by their content.
        names: for each message, the response id to use if it brings none.
        ids: names the calls that have no id.
        since: number of the first message that is new.
        earlier: returns the calls that results without an id answer where the list has no calls before them.

    Raises:
        InvalidBlock: a message is not valid; the field says which.
        InvalidArgument: there is no such wire.
    """
    values = [_message(message, number) for number, message in enumerate(messages)]
    ids, form = ids or CallIds(), wire_of(values, wire)
    decoder = message_decoder(form, ids)
    for number, message in enumerate(values):
        _check_content(message, form, number)
    read: list[list[Block]] = []
    for number, (message, name) in enumerate(zip(values, names, strict=True)):
        if number == since:
            ids.expect(earlier)
        try:
            read.append(decoder.decode(message, name))
        except ValidationError as error:
            raise InvalidBlock(f"messages[{number}]", invalid_block(error).problem) from None
        if not read[-1]:
            _check_nothing_held(message, form, number)
    return read


def waiting_calls(window: Window) -> list[ToolCall]:
    """Return the calls of a window that a result without an id may answer: first those of the newest response."""
    return sorted((item.block for item in window.open_calls()), key=lambda call: call.pending)


def wire_of(messages: Sequence[Any], wire: str | None = None) -> str:
    """Return the named wire format, or else the one that the messages' content shows."""
    if wire:
        return wire
    from timeline.importers.chat import dialect_of  # noqa: PLC0415 - it brings all importers, and few lists need it
    from timeline.importers.responses import is_item  # noqa: PLC0415

    values = [plain(message) for message in messages]
    return "openai_responses" if any(map(is_item, values)) else dialect_of(values)


def read_system(messages: Sequence[Any]) -> tuple[JsonValue, list[dict[str, Any]]]:
    """Split a list into its system prompt and the rest: in some forms the prompt is the leading messages.

    Returns:
        The prompt (one message's content as it is, several messages' as parts; None without any), and the other
        messages as plain values.

    Raises:
        InvalidBlock: a message is not valid; the field says where.
    """
    values = [_message(message, number) for number, message in enumerate(messages)]
    leading = next((n for n, message in enumerate(values) if message.get("role") not in _SYSTEM_ROLES), len(values))
    contents = [message.get("content", message.get("parts")) for message in values[:leading]]
    if len(contents) <= 1:
        return (contents[0] if contents else None), values[leading:]
    return [part for content in contents for part in parts_of(content)], values[leading:]


def _message(message: Any, number: int) -> dict[str, Any]:
    try:
        converted = _with_constants(message)
    except ValueError as error:
        raise InvalidBlock(f"messages[{number}]", str(error)) from None
    if not isinstance(converted, dict):
        problem = f"is of the type {type(message).__name__}: give what your framework's client sends in its place"
        raise InvalidBlock(f"messages[{number}]", problem)
    if not (isinstance(converted.get("role"), str) or isinstance(converted.get("type"), str)):
        raise InvalidBlock(f"messages[{number}]", _NO_MESSAGE)
    return {key: value for key, value in converted.items() if key != "id" or value}


def _with_constants(message: Any) -> Any:
    """Return a message as plain values, with the role and the types of parts that its classes fix.

    Google's `UserContent` and Mistral's messages and chunks fix them. Nobody sets such a value, so a dump of the set
    fields lacks it.
    """
    converted = plain(message)
    if not isinstance(converted, dict):
        return converted
    parts, dumped = getattr(message, "content", None), converted.get("content")
    if isinstance(parts, list) and isinstance(dumped, list):
        converted["content"] = [_with_constant("type", part, value) for part, value in zip(parts, dumped, strict=True)]
    return _with_constant("role", message, converted)


def _with_constant(key: str, holder: Any, dumped: Any) -> Any:
    constant = getattr(holder, key, None)
    if not isinstance(dumped, dict) or dumped.get(key) is not None or not isinstance(constant, str):
        return dumped
    return {**dumped, key: constant}


def _check_content(message: dict[str, Any], wire: str, number: int) -> None:
    """Refuse content that a decoder would skip: under the key of another form, or neither text nor parts."""
    if "role" not in message and wire != _OF_ITEMS:
        raise InvalidBlock(f"messages[{number}]", _NO_MESSAGE)
    key, other = ("parts", "content") if wire in _IN_PARTS else ("content", "parts")
    content = message.get(key)
    if content is None and message.get(other):
        raise InvalidBlock(f"messages[{number}].{other}", f"a message of the form {wire} has its content in {key!r}")
    listed = content if isinstance(content, list) else [] if content is None else [content]
    if not all(isinstance(part, str | dict) for part in listed):
        raise InvalidBlock(f"messages[{number}].{key}", "must be a text or a list of content parts")
    if wire == _OF_ITEMS and "role" in message:
        _check_form(message, listed, number)
    if wire in _TYPED and message.get("role") in _SPEAKERS:
        _check_types(listed, wire, f"messages[{number}].{key}")
    if wire == "bedrock_converse" and not all(isinstance(part, str) or is_content_block(part) for part in listed):
        raise InvalidBlock(
            f"messages[{number}].{key}", "has a part that is not a content block of Bedrock's Converse API"
        )
    if not isinstance(message.get("tool_calls") or [], list):
        raise InvalidBlock(f"messages[{number}].tool_calls", "must be a list of calls; put a single one into brackets")
    is_answer = message.get("role") == "assistant"  # OpenRouter puts what a model drew beside its answer, as parts
    pictures = str | dict if is_answer else str
    if isinstance(images := message.get("images"), list) and not all(isinstance(each, pictures) for each in images):
        problem = "are base64 texts where they are beside the content, as Ollama has them; others are parts of it"
        raise InvalidBlock(f"messages[{number}].images", problem)


def _check_form(message: dict[str, Any], parts: Sequence[Any], number: int) -> None:
    """Refuse a message of another form among items: its calls would be lost, its results become the user's words."""
    holds_call = any(message.get(key) for key in _CALL_KEYS)
    kinds = {str(part.get("type")) for part in parts if isinstance(part, dict)}
    if message["role"] not in _ITEM_ROLES or holds_call or kinds & _CALL_PARTS:
        problem = "is not a message of OpenAI's Responses API, as the items beside it are: give lists of one form"
        raise InvalidBlock(f"messages[{number}]", problem)


def _check_types(parts: Sequence[Any], wire: str, field: str) -> None:
    """Refuse a part without a type, which would be sent as an unknown file, and one whose text has another key."""
    for part in parts:
        if isinstance(part, dict) and part and "type" not in part:
            keys = ", ".join(sorted(part)[:4])
            problem = f"has a part without a type (its keys: {keys}), and a part of the form {wire} has one"
            raise InvalidBlock(field, f"{problem}: convert the messages to a form that is read")
        if isinstance(part, dict) and part.get("type") in _TEXT_PARTS and not _says(part):
            keys = ", ".join(sorted(map(str, part))[:4])
            raise InvalidBlock(field, f"has a part of the type {part['type']!r} without its 'text' (its keys: {keys})")


def _says(part: Mapping[str, Any]) -> bool:
    """Return whether a text part has its text under the right key, or nothing that a reader would miss."""
    return isinstance(part["text"], str | None) if "text" in part else set(part) <= {"type", "cache_control"}


def _check_nothing_held(message: dict[str, Any], wire: str, number: int) -> None:
    """Refuse a message without content that holds a list under another key, as LlamaIndex does under ``blocks``."""
    key = "parts" if wire in _IN_PARTS else "content"
    held = [name for name, value in message.items() if name != key and value and isinstance(value, list)]
    if "role" in message and message.get(key) is None and held:
        raise InvalidBlock(f"messages[{number}].{held[0]}", f"a message of the form {wire} has its content in {key!r}")


def placed_in_turns(messages: Sequence[Sequence[Block]], turns: Turns) -> list[Block]:
    """Assign the turns that messages open to their blocks; return all blocks.

    A message with a user's prompt opens one turn, however many parts it has; every other message belongs to the open
    turn. The user's parts behind the first are marked as such, so that they count, and are sent, as one message.

    Args:
        messages: the blocks of each message.
        turns: the turns of the conversation so far; not changed.
    """
    ahead = turns.copy()
    placed: list[Block] = []
    for blocks in messages:
        prompt = next((block for block in blocks if isinstance(block, UserPrompt)), None)
        opened = None if prompt is None else ahead.turn_for(prompt)
        begun = False
        for block in blocks:
            placed.append(_part_of(block, opened, begun=begun) if block.author == "user" else block)
            begun = block.author == "user"
            ahead.advance(placed[-1], placed[-1].turn_id or ahead.turn_for(block), len(placed))
    return placed


def _part_of(block: Block, opened: str | None, *, begun: bool) -> Block:
    """Return a part of a user's message, in the turn that the message opened, marked where it is not the first."""
    changes: dict[str, Any] = {} if opened is None else {"turn_id": opened}
    if begun:
        changes["meta"] = {**block.meta, CONTINUES_KEY: True}
    return block.model_copy(update=changes) if changes else block
