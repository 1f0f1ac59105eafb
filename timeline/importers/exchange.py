"""Read the reply that a document has beside its request, as proxies and logs of calls write them.

Request and reply are the keys of one object, or stand in it as ``request`` and ``response``. The reply becomes the
request's last message, in the form of the messages, so that the readers of messages read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.wire.foreign import object_of, text_of

if TYPE_CHECKING:
    from timeline.importers.recording import Report

    Message = dict[str, Any]

_SAYS: Final = ("content", "parts", "tool_calls", "function_call")
"""The keys of a message that tell whether the request has the reply already."""


def joined_exchange(document: Any) -> Any:
    """Return a request and its reply as one object; any other document as it is."""
    if not isinstance(document, dict):
        return document
    request, reply = document.get("request"), document.get("response")
    asked = request if isinstance(request, dict) else document
    return {**reply, **asked} if isinstance(reply, dict) else asked


def replied_message(document: Any, messages: list[Any], report: Report) -> list[Message]:
    """Return the reply beside a request's messages as a message with its usage; none where there is none.

    A reply that the messages end with is none. Of several choices the first counts, as the others led nowhere.
    """
    if not isinstance(document, dict):
        return []
    choices = _objects(document.get("choices")) or _objects(document.get("candidates"))
    if len(choices) > 1:
        report.note("branch", len(messages) + 1, f"{len(choices) - 1} further choices of the reply")
    first = choices[0] if choices else {}
    if isinstance(message := first.get("message"), dict):
        reply = {**message, "role": "assistant", "finish_reason": first.get("finish_reason")}
    elif isinstance(message := first.get("content"), dict):
        reply = {**message, "role": "model", "finish_reason": first.get("finishReason")}
    elif (message := object_of(document.get("output"), "message")) and "stopReason" in document:
        reply = {**message, "role": "assistant", "stop_reason": document["stopReason"]}
    elif document.get("role") == "assistant" and isinstance(document.get("content"), list | str):
        reply = {"role": "assistant", "content": document["content"], "stop_reason": document.get("stop_reason")}
    else:
        return []
    if {key: reply.get(key) for key in _SAYS} == {key: messages[-1].get(key) for key in _SAYS}:
        return []
    usage = document.get("usage", document.get("usageMetadata"))
    model = document.get("model") or document.get("modelVersion")
    named = {"id": text_of(document, "id")} if text_of(document, "id") else {}
    return [{**reply, **named, "model": model, "usage": usage}]


def replied_items(document: Any, items: list[Any], report: Report) -> list[Message]:
    """Return the items of the reply beside a request's items; an output that cannot be read is reported."""
    output = document.get("output") if isinstance(document, dict) else None
    match output:
        case None | "" | []:
            return []
        case str():
            return [{"type": "message", "role": "assistant", "content": output}]
        case dict() if isinstance(output.get("type"), str) or isinstance(output.get("role"), str):
            return [output]
        case list() if found := _objects(output):
            if len(found) < len(output):
                report.note(
                    "invalid", len(items) + 1, f"{len(output) - len(found)} items of the output are not objects"
                )
            return found
    report.note("invalid", len(items) + 1, "an output that is not a list of items")
    return []


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
