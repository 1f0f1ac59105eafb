"""Read conversations in the form of ShareGPT, as data sets for training have them, as chat messages.

Each says who it is ``from`` and its ``value``. Data sets with tools have calls and what came of them as JSON texts.
"""

from __future__ import annotations

from typing import Any, Final

from timeline.wire.foreign import decode_value, text_of

_ROLES: Final = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "model", "bot"), "assistant"),
    "system": "system",
    **dict.fromkeys(("function_call", "tool_call"), "call"),
    **dict.fromkeys(("observation", "tool", "function_response", "tool_response"), "tool"),
}


def messages_in(document: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the chat messages that a document's ``conversations`` are; None if it has none of this form."""
    said = document.get("conversations")
    if not isinstance(said, list) or not all(
        isinstance(one, dict) and isinstance(one.get("value"), str) for one in said
    ):
        return None
    roles = [_ROLES.get(text_of(one, "from")) for one in said]
    if not said or None in roles:
        return None
    messages: list[dict[str, Any]] = []
    for number, (role, one) in enumerate(zip(roles, said, strict=True)):
        if role == "call":
            messages.append({"role": "assistant", "tool_calls": _calls(one["value"], number)})
        elif role == "tool":
            answered = messages[-1].get("tool_calls") if messages else None
            id_ = answered[0]["id"] if answered else f"call-{number}"
            messages.append({"role": "tool", "tool_call_id": id_, "content": one["value"]})
        else:
            messages.append({"role": role, "content": one["value"]})
    return messages


def _calls(text: str, number: int) -> list[dict[str, Any]]:
    """Return the call that a text is; the text is its arguments where it is no JSON object."""
    try:
        call, _ = decode_value(text.strip())
    except ValueError:
        call = None
    known = call if isinstance(call, dict) else {}
    function = {"name": text_of(known, "name") or "unknown", "arguments": known.get("arguments", text)}
    return [{"id": f"call-{number}", "type": "function", "function": function}]
