"""Ollama's own API: its replies, streams and pictures, read as Chat Completions has them.

A reply is a message with ``done``; a call in it has no id, and its arguments are an object. A stream brings texts in
pieces and calls whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.wire.foreign import plain, text_of

if TYPE_CHECKING:
    from timeline.wire.media import Part

_TEXTS: Final = ("content", "thinking")
_PICTURES: Final = {"iVBOR": "png", "/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp"}
"""How base64 of each picture format begins."""


def is_ollama(reply: Any) -> bool:
    """Return whether a value is a reply of Ollama's chat, or a piece of one."""
    return isinstance(reply, dict) and isinstance(reply.get("message"), dict) and isinstance(reply.get("done"), bool)


def as_completion(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply as a chat completion.

    Args:
        reply: one that `is_ollama`.
    """
    used = {"prompt_tokens": reply.get("prompt_eval_count"), "completion_tokens": reply.get("eval_count")}
    choice = {"message": reply["message"], "finish_reason": reply.get("done_reason")}
    return {"model": reply.get("model"), "choices": [choice], "usage": used}


class OllamaStream:
    """The pieces of a streamed reply; the last one has the figures."""

    def __init__(self) -> None:
        self.complete: bool = False
        self._last: dict[str, Any] = {}
        self._pieces: dict[str, list[str]] = {key: [] for key in _TEXTS}
        self._calls: list[Any] = []

    def take(self, event: Any) -> None:
        """Add the next piece."""
        value = plain(event)
        if not is_ollama(value):
            return
        for key in _TEXTS:
            self._pieces[key].append(text_of(value["message"], key))
        calls = value["message"].get("tool_calls")
        self._calls += calls if isinstance(calls, list) else []
        self._last, self.complete = value, value["done"]

    def reply(self) -> tuple[dict[str, Any], list[Part]]:
        """Return the reply so far; no call is ever cut."""
        texts = {key: text for key, pieces in self._pieces.items() if (text := "".join(pieces))}
        message = {**texts, **({"tool_calls": self._calls} if self._calls else {})}
        return as_completion({**self._last, "message": message}), []


def pictures(message: dict[str, Any]) -> list[Part]:
    """Return the pictures of a message, which are base64 beside its content. Paths are left out: no file is read."""
    images = message.get("images")
    texts = [each for each in images if isinstance(each, str)] if isinstance(images, list) else []
    named = ((text, next((mime for begin, mime in _PICTURES.items() if text.startswith(begin)), "")) for text in texts)
    return [
        {"type": "image_url", "image_url": {"url": f"data:image/{mime};base64,{text}"}} if mime else {"type": "image"}
        for text, mime in named
    ]
