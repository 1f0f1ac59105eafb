"""The body of a request to Amazon Bedrock's Converse API, and the arguments that its SDK takes.

The body is JSON, with bytes as base64 text, and has no model: that is in the address. AWS' SDK for Python takes bytes,
and would encode a base64 text a second time, so they are decoded where the API has bytes, and nowhere in an
application's own objects.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final

from timeline.content.native import standard_base64
from timeline.content.parts import BEDROCK_FILES
from timeline.wire.foreign import object_of, objects_of

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOL_CONFIG: Final = "toolConfig"
"""The argument that has the tools, which a context gives, and the choice among them, which a caller may give."""


def converse_body(parameters: Mapping[str, Any], encoded: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a request: the parameters as they were given, then what the context gives."""
    config = {**object_of(encoded, TOOL_CONFIG), **object_of(parameters, TOOL_CONFIG)}
    return {**parameters, **encoded, **({TOOL_CONFIG: config} if config else {})}


def converse_arguments(model: str, parameters: Mapping[str, Any], encoded: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``converse`` and ``converse_stream``, with bytes as base64 text: see `with_bytes`."""
    return {"modelId": model, **converse_body(parameters, encoded)}


def with_bytes(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that the SDK takes, with bytes in place of base64 texts. The arguments given are changed."""
    for message in objects_of(arguments, "messages"):
        for block in objects_of(message, "content"):
            _decode(block)
            for inner in objects_of(object_of(block, "toolResult"), "content"):
                _decode(inner)
    return arguments


def _decode(block: dict[str, Any]) -> None:
    thought = object_of(block, "reasoningContent")
    places = [(object_of(object_of(block, kind), "source"), "bytes") for kind in BEDROCK_FILES]
    for holder, key in [*places, (thought, "redactedContent")]:
        if isinstance(text := holder.get(key), str):
            holder[key] = b64decode(standard_base64(text))
