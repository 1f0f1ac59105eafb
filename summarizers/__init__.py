"""Summarizers: the extractive one that is the default, a wrapper for any model, a chain with fallbacks, and prompts.

The names are imported when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .callable import CallableSummarizer
    from .extractive import ExtractiveSummarizer
    from .fallback import FallbackSummarizer
    from .prompts import prompt_for

__all__ = ["CallableSummarizer", "ExtractiveSummarizer", "FallbackSummarizer", "prompt_for"]

_MODULES: Final = {
    "CallableSummarizer": ".callable",
    "ExtractiveSummarizer": ".extractive",
    "FallbackSummarizer": ".fallback",
    "prompt_for": ".prompts",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
