"""What a fake provider is asked, and what a test makes it do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

WireName: TypeAlias = Literal["anthropic", "openai_chat", "openai_responses", "gemini"]
Stop: TypeAlias = Literal["end", "calls", "length", "refusal", "filter"]
Kind: TypeAlias = Literal["rate_limit", "overloaded", "server", "context_limit", "authentication", "no_model", "filter"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of an answer; arguments given as text are sent as they are, half a JSON object too.

    Without an id it gets one that no other call has.
    """

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def json(self) -> str:
        """The arguments as the wires that want a text send them."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer.

    Attributes:
        text: what it says; there is no text part where it is empty.
        calls: the tools that it calls.
        stop: why it ends; ``calls`` where it calls, else ``end``. ``refusal`` is the model's own no, ``filter`` the
            provider's.
        input_tokens: reported without what the cache answered; a quarter of the request's characters if not given.
        output_tokens: reported; a quarter of the answer's characters if not given.
        cached_tokens: reported as read from the cache.
        delay: seconds before anything is sent.
        thought: what it thinks first, signed as the provider signs it; of chat completions only DeepSeek's show one.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    stop: Stop | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    delay: float = 0.0
    thought: str = ""

    @property
    def ends_with(self) -> Stop:
        """Why it ends."""
        return self.stop or ("calls" if self.calls else "end")

    @property
    def written(self) -> int:
        """Tokens of the answer."""
        if self.output_tokens is not None:
            return self.output_tokens
        return (len(self.text) + sum(len(call.json) for call in self.calls)) // 4 + 1

    def pieces(self) -> list[str]:
        """Return the text as it is streamed: some words at a time."""
        return [self.text[start : start + 16] for start in range(0, len(self.text), 16)]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A refusal, in the shape of the provider that is asked.

    Attributes:
        kind: which one.
        retry_after: seconds that the client is told to wait, exact to a millisecond.
        limit: tokens that the model takes, for ``context_limit``.
    """

    kind: Kind
    retry_after: float | None = None
    limit: int = 8_192


@dataclass(frozen=True, slots=True)
class Cut:
    """An answer whose connection is cut after a share of it, whether it is streamed or comes in one piece."""

    answer: Answer = field(default_factory=lambda: Answer("This answer never comes to its end, however long it is."))
    share: float = 0.5


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing is sent until the client goes away; or, of an answer, nothing more after a share of it."""

    answer: Answer | None = None
    share: float = 0.5


@dataclass(frozen=True, slots=True)
class Raw:
    """A response that is no provider's: a proxy's page, or half a JSON document."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"


Step: TypeAlias = str | Answer | Trouble | Cut | Hang | Raw


@dataclass(frozen=True)
class Asked:
    """A request as it came.

    Attributes:
        wire: whose format it has.
        body: parsed; with the model's name under ``model`` on every wire.
        headers: by lower-case name.
        number: from 0, of the requests that were not refused.
        stream: whether a stream is wanted.
        system: what stands where only the application speaks, joined.
        said: the rest, each part as ``(role, text)``; calls and results as their JSON.
    """

    wire: WireName
    body: dict[str, Any]
    headers: dict[str, str]
    number: int
    stream: bool
    system: str
    said: tuple[tuple[str, str], ...]

    @cached_property
    def tokens(self) -> int:
        """Its size: a quarter of its characters."""
        return len(json.dumps(self.body, ensure_ascii=False)) // 4

    @property
    def model(self) -> str:
        """The model that is asked."""
        return str(self.body["model"])

    @property
    def text(self) -> str:
        """All that is said in it outside the system's part."""
        return "\n".join(text for _, text in self.said)
