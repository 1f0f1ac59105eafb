"""Wire formats: encode the neutral context as a provider's request, and decode a provider's messages into blocks.

Each format is one module, found by name and imported when it is first used. Each has ``encode(context)``, which returns
what a context gives to the request's body, and ``decode(body_or_messages)``, which returns blocks without turn ids;
formats whose requests are lists of messages have a ``MessageDecoder``, which reads such a list message by message.
``GIVEN`` are the keys that ``encode`` may give. ``STEPWISE``, where a module has it, are the parts of an encoder that
continues a conversation's last context. ``ENCODER`` is the encoder's number, which is recorded with each call: raise it
with any change of the bytes in which a context is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from timeline.errors import InvalidArgument
from timeline.wire.read_only import plain

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.wire.call_ids import CallIds
    from timeline.wire.groups import Item
    from timeline.wire.neutral import NeutralContext

__all__ = [
    "MESSAGES",
    "SENT",
    "WIRES",
    "Decode",
    "Encode",
    "MessageDecoder",
    "Stepwise",
    "decoder",
    "encoded_alone",
    "encoder",
    "encoder_number",
    "given_keys",
    "message_decoder",
    "stepwise",
]

Encode: TypeAlias = Callable[["NeutralContext"], dict[str, Any]]
"""Encodes a context as the body of a request."""
Decode: TypeAlias = Callable[[Any], list["Block"]]
"""Decodes the body of a request, or its messages, into blocks."""

WIRES: Final[dict[str, str]] = {
    "anthropic": "timeline.wire.anthropic",
    "openai_chat": "timeline.wire.openai_chat",
    "openai_responses": "timeline.wire.openai_responses",
    "gemini": "timeline.wire.gemini",
    "bedrock_converse": "timeline.wire.bedrock_converse",
    "ai_sdk": "timeline.wire.ai_sdk",
    "ai_sdk_ui": "timeline.wire.ai_sdk_ui",
}
"""The module of each wire format, by name."""

SENT: Final = ("anthropic", "openai_chat", "openai_responses", "gemini", "bedrock_converse")
"""The wires whose bodies are sent to a provider unchanged. The AI SDK builds its requests from its messages and from
tools that its program holds, so the bytes that a cache keeps are unknown here."""

MESSAGES: Final[dict[str, str]] = {
    "anthropic": "messages",
    "openai_chat": "messages",
    "openai_responses": "input",
    "gemini": "contents",
    "bedrock_converse": "messages",
    "ai_sdk": "messages",
    "ai_sdk_ui": "messages",
}
"""The wires whose requests are lists of messages or items, and the key of that list."""
MESSAGE_KEYS: Final = tuple(dict.fromkeys(MESSAGES.values()))
"""These keys, of all wires."""

UNNAMED: Final = frozenset({"openai_chat", "gemini"})
"""The wires of which calls may come without an id."""


class MessageDecoder(Protocol):
    """Decodes the messages of one list, in order."""

    def decode(self, message: Any, name: str = "") -> list[Block]:
        """Decode one message; any other value gives no block.

        Args:
            message: the message.
            name: the id of the response that it is, where it brings none.
        """
        ...


def encoder(wire: str) -> Encode:
    """Return the encoder of a wire format.

    Raises:
        InvalidArgument: there is no such wire format.
    """
    encode: Encode = _module(wire).encode
    return encode


def encoded_alone(wire: str, context: NeutralContext) -> dict[str, Any]:
    """Return a copy of what the encoder of a wire format returns, which the caller may change.

    Raises:
        InvalidArgument: there is no such wire format.
    """
    body: dict[str, Any] = plain(encoder(wire)(context))  # arguments and structured content are the log's
    return body


class Stepwise(NamedTuple):
    """The parts of an encoder that can go on from an earlier context of the same conversation.

    Attributes:
        start: makes a writer for a model, which has written nothing.
        finish: makes the body of a context from a writer and the items that it has yet to write.
    """

    start: Callable[[str], Any]
    finish: Callable[[NeutralContext, Any, Iterable[Item]], dict[str, Any]]


def stepwise(wire: str) -> Stepwise | None:
    """Return the parts of a wire format's encoder; None where it only encodes contexts by themselves.

    Raises:
        InvalidArgument: there is no such wire format.
    """
    parts: Stepwise | None = getattr(_module(wire), "STEPWISE", None)
    return parts


def encoder_number(wire: str) -> int:
    """Return the number of a wire format's encoder.

    Raises:
        InvalidArgument: there is no such wire format.
    """
    number: int = _module(wire).ENCODER
    return number


def given_keys(wire: str) -> frozenset[str]:
    """Return the keys of a request that a context gives, so that no parameter may.

    Raises:
        InvalidArgument: there is no such wire format.
    """
    keys: frozenset[str] = _module(wire).GIVEN
    return keys


def decoder(wire: str) -> Decode:
    """Return the decoder of a wire format.

    Raises:
        InvalidArgument: there is no such wire format.
    """
    decode: Decode = _module(wire).decode
    return decode


def message_decoder(wire: str, ids: CallIds | None = None) -> MessageDecoder:
    """Return a new decoder for one list of messages.

    Args:
        wire: the form of the messages.
        ids: names the calls of the list; of no use where every call has an id.

    Raises:
        InvalidArgument: there is no such wire, or its requests are no lists of messages.
    """
    if not isinstance(wire, str) or wire not in MESSAGES:
        raise InvalidArgument("wire", f"there is no decoder {wire!r}; there are {', '.join(MESSAGES)}")
    new = _module(wire).MessageDecoder
    made: MessageDecoder = new(ids) if wire in UNNAMED else new()
    return made


def _module(wire: str) -> Any:
    if not isinstance(wire, str) or wire not in WIRES:
        raise InvalidArgument("wire", f"there is no format {wire!r}; there are {', '.join(WIRES)}")
    return import_module(WIRES[wire])
