"""Recognise a call of a tool that came as text in the place of a summary: ``<tool_call>{"name": "bash", …``.

An agent's model that reads a record of calls may go on with the next one. A server that does not know the model's form
of a call passes it on as text. In the place of a summary it would replace all that was covered. A text is taken for one
if it opens with the mark of a call in a form that models are trained on, or is the JSON object of a call alone.
"""

from __future__ import annotations

import re
from typing import Final

from .lone_objects import lone_object

_OPENING: Final = re.compile(
    r"\s*(?:"
    r"<[\w:-]{0,20}?(?:tool_calls?|function_calls?|toolcall|functioncall)>"  # Qwen, MiniMax, Anthropic's old form
    r"|<(?:[\w-]{1,20}:)?invoke name=|<function=\w"  # the same; Qwen's coders
    r"|<[|\uff5c]{1,2}[\w\uff5c|\u2581 ]{0,20}tool[_\u2581]call"  # DeepSeek, Kimi, Gemma
    r"|<\|python_tag\|>|<\|channel\|>commentary to=functions|\[TOOL_CALLS\]"  # Llama, gpt-oss, Mistral
    r")",
    re.IGNORECASE,
)
_NAMES: Final = frozenset({"name", "tool", "tool_name", "function"})
_ARGUMENTS: Final = frozenset({"arguments", "parameters", "args", "input", "tool_input"})
_KEYS: Final = _NAMES | _ARGUMENTS | {"id", "type", "call_id"}


def is_call_text(text: str) -> bool:
    """Return whether an answer is a call of a tool, in a form that its server did not read."""
    return _OPENING.match(text) is not None or _is_call_object(text)


def _is_call_object(text: str) -> bool:
    keys = lone_object(text).keys()
    return bool(keys & _NAMES) and bool(keys & _ARGUMENTS) and keys <= _KEYS
