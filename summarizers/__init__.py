"""Summarizers: the extractive one (the default), models through their SDK or any function, and chains of them.

The names are imported on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if __name__ == "summarizers":  # a checkout's folder imported by its own name: both names must be one module (ADR 0027)
    sys.modules[__name__] = import_module("timeline.summarizers")

if TYPE_CHECKING:
    from .anthropic import AnthropicSummarizer
    from .callable import CallableSummarizer
    from .extractive import ExtractiveSummarizer, extract
    from .fallback import FallbackSummarizer
    from .google import GoogleSummarizer
    from .in_cache import question_in_cache
    from .openai import ChatCompletions, OpenAISummarizer, Responses
    from .progressive import frame_of
    from .prompts import prompt_for

__all__ = [
    "AnthropicSummarizer",
    "CallableSummarizer",
    "ChatCompletions",
    "ExtractiveSummarizer",
    "FallbackSummarizer",
    "GoogleSummarizer",
    "OpenAISummarizer",
    "Responses",
    "extract",
    "frame_of",
    "prompt_for",
    "question_in_cache",
]

_MODULES: Final = {
    "AnthropicSummarizer": ".anthropic",
    "CallableSummarizer": ".callable",
    "ChatCompletions": ".openai",
    "ExtractiveSummarizer": ".extractive",
    "FallbackSummarizer": ".fallback",
    "GoogleSummarizer": ".google",
    "OpenAISummarizer": ".openai",
    "Responses": ".openai",
    "extract": ".extractive",
    "frame_of": ".progressive",
    "prompt_for": ".prompts",
    "question_in_cache": ".in_cache",
}


if not TYPE_CHECKING:  # to a type checker every name would be there, and of any type

    def __getattr__(name: str) -> Any:
        """Import a public name on first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
