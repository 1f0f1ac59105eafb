"""`--summarize PROVIDER:MODEL`: the one option that calls a model, and what it needs for that."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline import summarizers
from timeline.cli.exits import UsageProblem

if TYPE_CHECKING:
    from timeline.ports import Summarizer


class _Provider(NamedTuple):
    """A summarizer by its public name, and the variables that its SDK reads a key from."""

    summarizer: str
    keys: tuple[str, ...]


_PROVIDERS: Final = {
    "anthropic": _Provider("AnthropicSummarizer", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")),
    "google": _Provider("GoogleSummarizer", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "openai": _Provider("OpenAISummarizer", ("OPENAI_API_KEY",)),
}


def make_summarizer(named: str | None) -> Summarizer | None:
    """Return the summarizer that the option names; None where it is not given, and no model is called.

    Raises:
        UsageProblem: there is no such provider, no model is named, or no key is set.
        MissingExtra: the provider's SDK is not installed.
    """
    if named is None:
        return None
    name, _, model = named.partition(":")
    provider = _PROVIDERS.get(name)
    if provider is None or not model:
        known = ", ".join(f"{one}:MODEL" for one in _PROVIDERS)
        raise UsageProblem(f"--summarize {named!r} names no model of a provider. Use one of: {known}.")
    summarizer: Summarizer = getattr(summarizers, provider.summarizer)(model)
    if not any(os.environ.get(key) for key in provider.keys):
        raise UsageProblem(f"--summarize {named} needs a key. Set {' or '.join(provider.keys)}.")
    return summarizer
