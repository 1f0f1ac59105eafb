"""Content of an answer in Chat Completions that is a list of chunks: Mistral's models write their thoughts there.

A thought is a chunk of its own, ``{"type": "thinking", "thinking": [{"type": "text", …}]}``, and its place among the
texts counts. A stream brings such lists in pieces, and strings between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.wire.foreign import plain, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.wire.media import Part

_THOUGHT: Final = "thinking"


def is_thought(part: Part) -> bool:
    """Return whether a content part is a thought."""
    return part.get("type") == _THOUGHT and isinstance(part.get(_THOUGHT), list | str)


def text_of_thought(part: Part) -> str:
    """Return the readable text of a thought."""
    thought = part.get(_THOUGHT)
    return "".join(_texts(thought)) if isinstance(thought, list) else text_of(part, _THOUGHT)


def _texts(chunks: list[Any]) -> Iterator[str]:
    return (text_of(chunk) for chunk in chunks if isinstance(chunk, dict))


class Chunks:
    """Puts together the content that a stream brings in pieces, each a string or a list of chunks."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._texts: list[list[str]] = []

    def take(self, content: Any) -> None:
        """Add the content of the next delta; a value that is neither a text nor a list is ignored."""
        for value in content if isinstance(content, list) else [content]:
            if isinstance(value, str):
                self._take({"type": "text", "text": value})
            elif isinstance(piece := plain(value), dict):
                self._take(piece)

    def _take(self, piece: Part) -> None:
        if not is_thought(piece) and (piece.get("type") != "text" or not isinstance(piece.get("text"), str)):
            self._open(piece, [])
            return
        text = text_of_thought(piece) if is_thought(piece) else piece["text"]
        if not self._parts or self._parts[-1].get("type") != piece["type"]:
            if text or is_thought(piece):
                self._open(piece, [text])
            return
        self._texts[-1].append(text)
        self._parts[-1] |= {key: value for key, value in piece.items() if value is not None}

    def _open(self, piece: Part, texts: list[str]) -> None:
        self._parts.append(dict(piece))
        self._texts.append(texts)

    def content(self) -> str | list[Part]:
        """Return the content so far as an unstreamed answer has it: a string, unless a chunk is more than text."""
        parts = [self._whole(part, "".join(texts)) for part, texts in zip(self._parts, self._texts, strict=True)]
        if all(part.get("type") == "text" for part in parts):
            return "".join(part["text"] for part in parts)
        return parts

    def _whole(self, part: Part, text: str) -> Part:
        if is_thought(part):
            inner: list[Part] = [{"type": "text", "text": text}] if text else []
            return {**part, _THOUGHT: inner if isinstance(part[_THOUGHT], list) else text}
        return {**part, "text": text} if part.get("type") == "text" else part
