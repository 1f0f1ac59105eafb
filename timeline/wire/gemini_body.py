"""The body of a request to Google's REST API, and the arguments from which Google's SDK makes it.

The SDK takes ``model``, ``contents`` and ``config``, and writes a body with other names in another order: the model is
in the address, the system prompt is a content, tools are beside ``generationConfig``. A record has to prove what the
provider received, so the body here is written key by key as google-genai 3.4 writes it.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")
_LOWER: Final = re.compile(r"_([a-z])")
_BESIDE: Final = (
    "safety_settings",
    "tools",
    "tool_config",
    "labels",
    "cached_content",
    "service_tier",
    "continuation_token",
    "store",
)
"""Keys of ``config`` that are beside ``generationConfig`` in the body, in the order of the body."""
_LOCAL: Final = frozenset({"automatic_function_calling", "should_return_http_response", "http_options"})
"""Keys of ``config`` that the SDK keeps for itself."""
_PART: Final = (
    "code_execution_result",
    "executable_code",
    "file_data",
    "function_call",
    "function_response",
    "inline_data",
    "text",
    "thought",
    "thought_signature",
    "tool_call",
    "tool_response",
)
_OF_SERVER: Final[dict[str, tuple[str, ...]]] = {
    "executable_code": ("code", "language", "id"),
    "code_execution_result": ("outcome", "output", "id"),
    "tool_call": ("id", "tool_type", "args"),
    "tool_response": ("id", "tool_type", "response"),
}
"""Parts of what the server's own tools did, and the order of their keys."""
_CALL: Final = ("id", "args", "name")
_RESPONSE: Final = ("parts", "id", "name", "response")
_FILE: Final = ("display_name", "file_uri", "mime_type")
_BLOB: Final = ("data", "display_name", "mime_type")
_RESPONSE_BLOB: Final = ("mime_type", "data", "display_name")
_SAFETY: Final = ("category", "method", "threshold")
_TOOL_CONFIG: Final = ("retrieval_config", "function_calling_config", "include_server_side_tool_invocations")
_CALLING: Final = ("allowed_function_names", "mode")
_TOOL: Final = (
    "computer_use",
    "file_search",
    "google_search",
    "google_maps",
    "code_execution",
    "function_declarations",
    "google_search_retrieval",
    "url_context",
    "mcp_servers",
)
_DECLARATION: Final = (
    "description",
    "name",
    "parameters",
    "parameters_json_schema",
    "response",
    "response_json_schema",
    "behavior",
)
_SCHEMA: Final = (
    "additional_properties",
    "defs",
    "ref",
    "any_of",
    "default",
    "description",
    "enum",
    "example",
    "format",
    "items",
    "max_items",
    "max_length",
    "max_properties",
    "maximum",
    "min_items",
    "min_length",
    "min_properties",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "property_ordering",
    "required",
    "title",
    "type",
)
_ENUMS: Final = ("category", "threshold", "mode", "thinking_level", "behavior")
"""Keys of names that the SDK writes in capitals."""
_LATITUDE_FIRST: Final = ("latitude", "longitude")
_RETRIEVAL: Final = ("lat_lng", "language_code")
_REWRITTEN: Final = frozenset({"$ref", "$defs", "ref", "const"})
_THINKING: Final = ("include_thoughts", "thinking_budget", "thinking_level")


def gemini_arguments(model: str, parameters: Mapping[str, Any], encoded: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``generate_content``; ``parameters`` has nothing but ``config``."""
    config = {**encoded.get("config", {}), **parameters.get("config", {})}
    return {"model": model, "contents": encoded["contents"], **({"config": config} if config else {})}


def gemini_body(parameters: Mapping[str, Any], encoded: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a request, as the SDK sends it."""
    merged = {**encoded.get("config", {}), **parameters.get("config", {})}
    config = {_snake(key): value for key, value in merged.items() if value is not None}
    if not config.get("response_schema"):
        config.pop("response_schema", None)  # the SDK leaves an empty one out
    body: dict[str, Any] = {"contents": [_content(content) for content in encoded["contents"]]}
    if system := config.pop("system_instruction", ""):
        body["systemInstruction"] = {"parts": [{"text": system}], "role": "user"}
    beside = {key: config.pop(key) for key in _BESIDE if key in config}
    body |= {camel_key(key): _beside(key, value) for key, value in beside.items()}
    if merged:
        rest = {key: value for key, value in config.items() if key not in _LOCAL}
        body["generationConfig"] = {camel_key(key): _generation(key, value) for key, value in rest.items()}
    return body


def is_rewritten(schema: Any) -> bool:
    """Return whether the SDK rewrites a schema of answers beyond its keys: references, constants, null as a type."""
    if isinstance(schema, list):
        return any(is_rewritten(inner) for inner in schema)
    if not isinstance(schema, dict):
        return False
    if _REWRITTEN & schema.keys() or str(schema.get("type")).lower() == "null":
        return True
    named = [
        inner for key in ("properties", "defs") if isinstance(schema.get(key), dict) for inner in schema[key].values()
    ]
    return is_rewritten([*named, *(schema.get(key) for key in ("items", "any_of", "anyOf"))])


def _snake(key: str) -> str:
    return _HUMP.sub(lambda hump: f"_{hump[1].lower()}", key)


def camel_key(key: str) -> str:
    """Return a key of Google's SDK as the JSON of its API has it."""
    return _LOWER.sub(lambda lower: lower[1].upper(), key)


def _ordered(value: Any, keys: Iterable[str]) -> Any:
    """Return an object in the SDK's form: keys in its order, the others last; no key without a value."""
    if not isinstance(value, dict):
        return value
    named = {_snake(key): inner for key, inner in value.items() if inner is not None}
    named |= {key: named[key].upper() for key in _ENUMS if isinstance(named.get(key), str)}
    order = [key for key in keys if key in named]
    return {key: named[key] for key in dict.fromkeys((*order, *named))}


def _content(content: dict[str, Any]) -> dict[str, Any]:
    return {"parts": [_part(part) for part in content["parts"]], "role": content["role"]}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    ordered = _ordered(part, _PART)
    written = {
        "function_call": lambda call: _ordered(call, _CALL),
        "function_response": _response,
        "file_data": lambda file: _ordered(file, _FILE),
        "inline_data": lambda blob: _blob(blob, _BLOB),
        "thought_signature": _bytes,
    }
    written |= {key: partial(_ordered, keys=keys) for key, keys in _OF_SERVER.items()}
    return {camel_key(key): written[key](value) if key in written else value for key, value in ordered.items()}


def _response(response: dict[str, Any]) -> dict[str, Any]:
    ordered: dict[str, Any] = _ordered(response, _RESPONSE)
    if "parts" in ordered:
        ordered["parts"] = [{"inline_data": _blob(part["inline_data"], _RESPONSE_BLOB)} for part in ordered["parts"]]
    return ordered


def _blob(blob: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    ordered: dict[str, Any] = _ordered(blob, keys)
    return {**ordered, "data": _bytes(ordered["data"])}


def _bytes(text: str) -> str:
    """Write base64 in the alphabet that is safe in an address, as the SDK does."""
    return text.replace("+", "-").replace("/", "_")


def _beside(key: str, value: Any) -> Any:
    if key == "tools" and isinstance(value, list):
        return [_tool(tool) for tool in value]
    if key == "safety_settings" and isinstance(value, list):
        return [_ordered(setting, _SAFETY) for setting in value]
    if key == "tool_config" and isinstance(value, dict):
        named = _ordered(value, _TOOL_CONFIG)
        if "retrieval_config" in named:
            named["retrieval_config"] = _retrieval(named["retrieval_config"])
        if "function_calling_config" in named:
            named["function_calling_config"] = _ordered(named["function_calling_config"], _CALLING)
        return {
            camel_key(name): inner if name == "retrieval_config" else _camelled(inner) for name, inner in named.items()
        }
    if key == "cached_content" and isinstance(value, str) and "/" not in value:
        return f"cachedContents/{value}"
    return value


def _camelled(value: Any) -> Any:
    return {camel_key(_snake(key)): inner for key, inner in value.items()} if isinstance(value, dict) else value


def _tool(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    named = _ordered(tool, _TOOL)
    declared = named.get("function_declarations")
    if isinstance(declared, list):
        named["function_declarations"] = [_declaration(declaration) for declaration in declared]
    return {camel_key(key): value for key, value in named.items()}


def _declaration(declaration: Any) -> Any:
    ordered = _ordered(declaration, _DECLARATION)
    if isinstance(ordered, dict):
        for key in ("parameters", "response"):
            if key in ordered:
                ordered[key] = _schema(ordered[key])
    return ordered


def _schema(schema: Any) -> Any:
    """Write a schema as the SDK's type for it does; the names of an object's properties are the application's."""
    ordered = _ordered(schema, _SCHEMA)
    if not isinstance(ordered, dict):
        return ordered
    for key in ("properties", "defs"):
        if isinstance(ordered.get(key), dict):
            ordered[key] = {name: _schema(inner) for name, inner in ordered[key].items()}
    if isinstance(ordered.get("any_of"), list):
        ordered["any_of"] = [_schema(inner) for inner in ordered["any_of"]]
    if "items" in ordered:
        ordered["items"] = _schema(ordered["items"])
    if isinstance(ordered.get("type"), str):
        ordered["type"] = ordered["type"].upper()
    return ordered


def _retrieval(value: Any) -> Any:
    ordered = _ordered(value, _RETRIEVAL)
    if isinstance(ordered, dict) and "lat_lng" in ordered:
        ordered["lat_lng"] = _ordered(ordered["lat_lng"], _LATITUDE_FIRST)
    return ordered


def _speech(value: Any) -> Any:
    """Write how an answer is spoken: by a voice's name, or by an object, which the SDK passes on in its own names."""
    if isinstance(value, str):
        return {"voice_config": {"prebuilt_voice_config": {"voice_name": value}}}
    return _snaked(value)


def _snaked(value: Any) -> Any:
    if isinstance(value, list):
        return [_snaked(inner) for inner in value]
    if isinstance(value, dict):
        return {_snake(key): _snaked(inner) for key, inner in value.items() if inner is not None}
    return value


def _with_order(schema: Any) -> Any:
    """Name the order of an object's properties, as the SDK does in a schema of answers."""
    if not isinstance(schema, dict):
        return schema
    named = dict(schema)
    if isinstance(any_of := named.get("any_of"), list):
        return {**named, "any_of": [_with_order(inner) for inner in any_of]}
    if named.get("type") == "OBJECT" and isinstance(properties := named.get("properties"), dict):
        named["properties"] = {name: _with_order(inner) for name, inner in properties.items()}
        if len(properties) > 1:
            named.setdefault("property_ordering", list(properties))
    if named.get("type") == "ARRAY" and "items" in named:
        named["items"] = _with_order(named["items"])
    return named


def _generation(key: str, value: Any) -> Any:
    match key:
        case "thinking_config":
            return _ordered(value, _THINKING)
        case "speech_config":
            return _speech(value)
        case "response_schema":
            return _schema(_with_order(_schema(value)))
        case "media_resolution" if isinstance(value, str):
            return value.upper()
        case "image_config":
            return _camelled(value)
        case _:
            return value
