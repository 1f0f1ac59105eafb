"""Read the usage in a provider's reply, leniently: a field that is no count is 0."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable


def count_of(fields: Any, key: str) -> int:
    """Return a count from an object, or 0 where there is none."""
    value = fields.get(key) if isinstance(fields, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def anthropic_usage(usage: Any) -> Usage:
    """Read the Messages API's usage, with that of the server's own compactions, which its totals leave out.

    What an adviser of another model read and wrote is left out here, too: it has another price.
    """
    iterations = usage.get("iterations") if isinstance(usage, dict) else None
    beside = [each for each in iterations if isinstance(each, dict)] if isinstance(iterations, list) else []
    return reduce(Usage.plus, (_counted(each) for each in beside if each.get("type") == "compaction"), _counted(usage))


def _counted(usage: Any) -> Usage:
    """Read one figure; what was written to the cache for an unsaid time counts as for five minutes.

    Some gateways have a breakdown by lifetimes that is zero, or less than the sum.
    """
    by_lifetime = usage.get("cache_creation") if isinstance(usage, dict) else None
    short, long = (count_of(by_lifetime, f"ephemeral_{time}_input_tokens") for time in ("5m", "1h"))
    return Usage(
        input_tokens=count_of(usage, "input_tokens"),
        output_tokens=count_of(usage, "output_tokens"),
        cache_read_tokens=count_of(usage, "cache_read_input_tokens"),
        cache_write_5m_tokens=max(short, count_of(usage, "cache_creation_input_tokens") - long),
        cache_write_1h_tokens=long,
    )


def openai_usage(usage: Any) -> Usage:
    """Read Chat Completions' usage, where ``prompt_tokens`` includes cache reads and writes.

    Servers of this form name the cache's figures in their own ways. Some count thoughts in ``total_tokens`` alone
    (xAI, Google's endpoint).
    """
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    sent, output = count_of(usage, "prompt_tokens"), count_of(usage, "completion_tokens")
    read, written = (_first_count((details, usage), names) for names in (_CHAT_READS, _CHAT_WRITES))
    rest = count_of(usage, "total_tokens") - sent - output
    return Usage(
        input_tokens=max(0, sent - read - written),
        output_tokens=output + (max(0, rest) if rest != read + written else 0),  # a gateway may add the cache's instead
        cache_read_tokens=read,
        cache_write_5m_tokens=written,
    )


_CHAT_READS: Final = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
"""OpenAI's name in the details and Moonshot's beside them, DeepSeek's, and LiteLLM's."""
_CHAT_WRITES: Final = ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")
"""OpenRouter's name, and LiteLLM's and DashScope's."""


def _first_count(places: Iterable[Any], names: Iterable[str]) -> int:
    """Return the first count under one of several names in one of several objects."""
    return next((count for place in places for name in names if (count := count_of(place, name))), 0)


def responses_usage(usage: Any) -> Usage:
    """Read the Responses API's usage, where ``input_tokens`` includes cache reads and writes."""
    details = usage.get("input_tokens_details") if isinstance(usage, dict) else None
    read, written = count_of(details, "cached_tokens"), count_of(details, "cache_write_tokens")
    return Usage(
        input_tokens=max(0, count_of(usage, "input_tokens") - read - written),
        output_tokens=count_of(usage, "output_tokens"),
        cache_read_tokens=read,
        cache_write_5m_tokens=written,
    )


def ai_sdk_usage(usage: Any) -> Usage:
    """Read the AI SDK's usage, where ``inputTokens`` includes cache reads and writes."""
    details = usage.get("inputTokenDetails") if isinstance(usage, dict) else None
    read = count_of(details, "cacheReadTokens") or count_of(usage, "cachedInputTokens")
    written = count_of(details, "cacheWriteTokens")
    return Usage(
        input_tokens=max(0, count_of(usage, "inputTokens") - read - written),
        output_tokens=count_of(usage, "outputTokens"),
        cache_read_tokens=read,
        cache_write_5m_tokens=written,
    )


def converse_usage(usage: Any) -> Usage:
    """Read Bedrock's usage, where ``inputTokens`` has neither what was read from the cache nor what was written."""
    details = usage.get("cacheDetails") if isinstance(usage, dict) else None
    written = [each for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    long = sum(count_of(each, "inputTokens") for each in written if each.get("ttl") == "1h")
    return Usage(
        input_tokens=count_of(usage, "inputTokens"),
        output_tokens=count_of(usage, "outputTokens"),
        cache_read_tokens=count_of(usage, "cacheReadInputTokens"),
        cache_write_5m_tokens=max(0, count_of(usage, "cacheWriteInputTokens") - long),
        cache_write_1h_tokens=long,
    )


def gemini_usage(usage: Any) -> Usage:
    """Read Google's usage, where the prompt's count includes cache reads; thoughts are billed as output."""
    cached = count_of(usage, "cachedContentTokenCount")
    return Usage(
        input_tokens=max(0, count_of(usage, "promptTokenCount") - cached) + count_of(usage, "toolUsePromptTokenCount"),
        output_tokens=count_of(usage, "candidatesTokenCount") + count_of(usage, "thoughtsTokenCount"),
        cache_read_tokens=cached,
    )
