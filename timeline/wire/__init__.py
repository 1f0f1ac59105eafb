"""Wire formats: the neutral context into a provider's request, and a provider's messages into blocks.

One module a format, found by name and imported when it is first asked for. Each has ``encode(context)``, which returns
the request body, and ``decode(body_or_messages)``, which returns blocks without turn ids.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from timeline.errors import InvalidPolicy

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.wire.neutral import NeutralContext

__all__ = ["WIRES", "Decode", "Encode", "decoder", "encoder"]

Encode: TypeAlias = Callable[["NeutralContext"], dict[str, Any]]
"""A context into the body of a request."""
Decode: TypeAlias = Callable[[Any], list["Block"]]
"""The body of a request, or its messages, into blocks."""

WIRES: Final[dict[str, str]] = {
    "anthropic": "timeline.wire.anthropic",
    "openai_chat": "timeline.wire.openai_chat",
    "openai_responses": "timeline.wire.openai_responses",
}
"""The wire formats: name, and the module that holds it."""


def encoder(wire: str) -> Encode:
    """Return the encoder of a wire format.

    Raises:
        InvalidPolicy: there is no such wire format.
    """
    encode: Encode = _module(wire).encode
    return encode


def decoder(wire: str) -> Decode:
    """Return the decoder of a wire format.

    Raises:
        InvalidPolicy: there is no such wire format.
    """
    decode: Decode = _module(wire).decode
    return decode


def _module(wire: str) -> Any:
    if wire not in WIRES:
        raise InvalidPolicy("wire", f"there is no format {wire!r}; there are {', '.join(WIRES)}")
    return import_module(WIRES[wire])
