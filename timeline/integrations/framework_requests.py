"""Requests of calls that a framework encodes by itself: the log keeps what we would have sent, marked as not sent.

An adapter hands messages to the framework, which writes the body; what it wrote is in nobody's reach. So the record
says that the framework wrote it, and `timeline call` shows our body of the same context beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.wire import given_keys
from timeline.wire.request import is_credential

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from timeline.projection.context import RenderedContext
    from timeline.wire.request import Request

_WIRES: Final = {
    "ChatAnthropic": "anthropic",
    "AnthropicModel": "anthropic",
    "ChatGoogleGenerativeAI": "gemini",
    "GoogleModel": "gemini",
    "ChatBedrockConverse": "bedrock_converse",
    "BedrockConverseModel": "bedrock_converse",
    "OpenAIResponsesModel": "openai_responses",
}
"""The wire of each class of models, by its name: no framework has to be imported to know it."""
_OF_THE_CLIENT: Final = frozenset({"model", "timeout", "extra_headers", "extra_query", "extra_body"})
"""Settings that are no parameters of the body."""


def wire_of(model: Any) -> str:
    """Return the wire that a framework's model speaks; that of OpenAI's chat completions where its class is unknown.

    A model around another one, or around several, speaks as the first of them.
    """
    model = _innermost(model)
    for cls in type(model).__mro__:
        if cls.__name__ in _WIRES:
            return _WIRES[cls.__name__]
    return "openai_responses" if getattr(model, "use_responses_api", None) is True else "openai_chat"


def _innermost(model: Any) -> Any:
    while True:
        several = getattr(model, "models", None)
        inner = several[0] if isinstance(several, list | tuple) and several else getattr(model, "wrapped", None)
        if inner is None:
            return model
        model = inner


def tools_for(wire: str, tools: Iterable[dict[str, Any]]) -> list[JsonValue]:
    """Write tools in the form of a wire.

    Args:
        wire: its name.
        tools: in the form of chat completions; a provider's own tool has another form, and keeps it.
    """
    written: list[Any] = []
    declared: list[Any] = []
    for tool in tools:
        function = tool.get("function")
        if not isinstance(function, dict):
            written.append(tool)
        elif wire == "gemini":
            declared.append(_renamed(function, "parameters_json_schema"))
        elif wire == "anthropic":
            written.append(_renamed(function, "input_schema"))
        elif wire == "bedrock_converse":
            named = _renamed(function, "inputSchema")
            written.append({"toolSpec": {**named, "inputSchema": {"json": named["inputSchema"]}}})
        elif wire == "openai_responses":
            written.append({"type": "function", **function})
        else:
            written.append(tool)
    return [*written, {"function_declarations": declared}] if declared else written


def _renamed(function: dict[str, Any], schema: str) -> dict[str, Any]:
    named = {key: function[key] for key in ("name", "description") if function.get(key)}
    return {**named, schema: function.get("parameters") or {"type": "object", "properties": {}}}


def framework_request(context: RenderedContext, wire: str, model: str, settings: Mapping[str, Any] | None) -> Request:
    """Make the request of a context that a framework encodes by itself.

    Args:
        context: what it was given.
        wire: as `wire_of` gives it.
        model: id of the model.
        settings: what the framework calls the model's settings; those that are a number, a text or a flag are kept,
            but for the client's credentials.
    """
    fields = {
        name: value
        for name, value in (settings or {}).items()
        if isinstance(value, str | int | float)
        and name not in _OF_THE_CLIENT
        and name not in given_keys(wire)
        and not is_credential(name)
    }
    parameters: dict[str, Any] = fields if wire != "gemini" else {"config": fields} if fields else {}
    return context.request(wire, model=model.strip() or "unknown", **parameters).by_framework()
