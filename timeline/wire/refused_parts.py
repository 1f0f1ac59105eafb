"""Recognise that a provider refused a request for parts of it: pictures and documents, or signed reasoning.

Pictures cost few tokens and many bytes, and have limits of their own: of their number, size and pixels. A signature is
valid only for some models, accounts and platforms. A provider that refused such a part refuses each later request with
it, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from timeline.wire.refusals import causes, status_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOO_LARGE: Final = 413
_STATUSES: Final = frozenset({None, 400, 404, _TOO_LARGE, 422, 500})
_CROWD: Final = (
    r"many-image requests"  # Anthropic: above 20 pictures each may have fewer pixels
    r"|too many (images|documents|pictures)"  # Anthropic, Bedrock
    r"|maximum of \d+ (pdf pages|images)|too much media"  # Anthropic
    r"|at most \d+ (image|document|audio|video)"  # vLLM
    r"|limit of \d+ images"  # OpenAI
    r"|request contains \d+ images|image count \d+ exceeds"  # gateways
    r"|total image size"  # OpenAI
    r"|request (payload )?size exceeds"  # Gemini
    r"|request is too large to send"  # GitHub Copilot
)
_MOST: Final = (
    r"at most (\d+) (?:image|document)"  # vLLM
    r"|too many images.{0,40}(?:max allowed is|>) (\d+)|images > (\d+)"  # gateways, Anthropic
    r"|(?:maximum|limit) of (\d+) images"  # Anthropic, OpenAI
    r"|images, exceeding the maximum of (\d+)|image count \d+ exceeds (?:the )?limit (\d+)"  # gateways
)
"""Where such a message says how many pictures or documents a request may have."""
_SINGLE: Final = (
    r"image dimensions exceed"  # Anthropic
    r"|image exceeds [\d.]+ ?[km]b"  # Anthropic
    r"|could not process (the )?(image|pdf|document)"  # Anthropic
    r"|image (does not match|was specified using) the .{0,40}media type"  # Anthropic: a JPEG that says it is a PNG
    r"|pdf specified (is password protected|was not valid)|pdf cannot be empty"  # Anthropic
    r"|image does not match the specified image format"  # Bedrock
    r"|unable to process input (image|document)|provided image is not valid"  # Gemini
    r"|unsupported mime ?type|document has no pages"  # Gemini
    r"|unsupported image|invalid image|valid image|failed to (download|process|decode) (the )?image"  # OpenAI
    r"|image[ _](parse|too)[ _]"  # OpenAI's codes
)
_REASONING: Final = (
    r"invalid `?signature`? in `?thinking`? block|thinking\.signature: field required"  # Anthropic
    r"|in the latest assistant message cannot be modified|bound to a different conversation"  # Anthropic
    r"|(corrupted|invalid) thought[ _]?signature|thought[ _]?signature is (not valid|invalid)"  # Gemini
    r"|invalid_encrypted_content|encrypted content .{0,300}could not be (verified|decrypted)"  # OpenAI
    r"|reasoning'? was provided without its|without its required '?reasoning|item with id '?rs_"  # OpenAI
)
"""The providers' messages for such errors, as their users reported them until November 2026."""
_PLACES: Final = (
    ("anthropic", r"\bmessages\.(\d+)\.content\.(\d+)\."),
    ("openai_chat", r"\bmessages\[(\d+)\]\.content\[(\d+)\]"),
    ("openai_responses", r"\binput\[(\d+)\]\.(?:content|output)\[(\d+)\]"),
    ("gemini", r"\bcontents\[(\d+)\]\.parts\[(\d+)\]"),
)
_LISTS: Final = {"openai_responses": "input", "gemini": "contents"}
_PARTS: Final = {"gemini": ("parts",)}


@dataclass(frozen=True, slots=True)
class MediaRefused:
    """Why a request with pictures or documents was refused.

    Attributes:
        crowd: for all of them together: their number, or the bytes of the request.
        wire, message, part: the place that the provider named: the wire format, the message and the part in it, both
            from 0; an empty wire where it named none.
        most: how many a request may have, where the provider said so.
    """

    crowd: bool
    wire: str = ""
    message: int = 0
    part: int = 0
    most: int | None = None

    def named_in(self, body: dict[str, Any]) -> list[str]:
        """Return the texts of the named part of a request's body, at any depth."""
        messages = body.get(_LISTS.get(self.wire, "messages"))
        message = messages[self.message] if isinstance(messages, list) and self.message < len(messages) else {}
        keys = _PARTS.get(self.wire, ("content", "output"))
        parts: list[Any] = next((message[key] for key in keys if isinstance(message.get(key), list)), [])
        return list(_texts(parts[self.part])) if self.part < len(parts) else []


@dataclass(frozen=True, slots=True)
class ReasoningRefused:
    """A request with signed or encrypted reasoning was refused because of it."""


PartsRefused: TypeAlias = MediaRefused | ReasoningRefused


def refused_parts(error: BaseException) -> PartsRefused | None:
    """Return which parts of a request a provider refused; None for any other error.

    The error and its causes are searched, as for a context that is too long.
    """
    for one in causes(error):
        status, message = status_of(one), str(one)
        if status not in _STATUSES:
            return None
        if re.search(_REASONING, message, re.IGNORECASE | re.DOTALL):
            return ReasoningRefused()
        crowd = status == _TOO_LARGE or re.search(_CROWD, message, re.IGNORECASE) is not None
        if crowd or re.search(_SINGLE, message, re.IGNORECASE):
            return _of_media(message, crowd=crowd)
    return None


def _of_media(message: str, *, crowd: bool) -> MediaRefused:
    limit = re.search(_MOST, message, re.IGNORECASE)
    most = None if limit is None else int(limit[limit.lastindex or 0])
    found = ((wire, match) for wire, place in _PLACES if (match := re.search(place, message)))
    named = ((wire, int(place[1]), int(place[2])) for wire, place in found)
    return MediaRefused(crowd, *next(named, ("", 0, 0)), most=most)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
