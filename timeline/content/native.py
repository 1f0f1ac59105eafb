"""Content in the form of the provider that made it: only that provider reads it, so it goes back as it came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from timeline.blocks import Block

SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
"""Types of Anthropic's parts that are calls of tools which its server runs."""


def server_part(block: Block) -> dict[str, Any] | None:
    """Return the part of a response that says what a tool of Anthropic's own server did, or found; None of any other.

    Only the provider runs such tools and reads their results, so the part goes back to it as it came.
    """
    data = block.data
    if block.type != "assistant.part" or not isinstance(data, dict):
        return None
    kind = data.get("type")
    known = isinstance(kind, str) and (kind in SERVER_CALLS or kind.endswith("_tool_result"))
    return data if known else None
