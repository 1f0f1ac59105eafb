"""Find the call that a result answers where the fold does not say it: `CallVersions`.

An id alone does not name a call. Where a model makes no ids, its server does, and may count anew in every response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timeline.blocks import Block, ToolCall


class CallVersions:
    """Versions of calls by their path and id."""

    def __init__(self) -> None:
        self._by_path: dict[str, int] = {}
        self._by_id: dict[str, int] = {}

    def add(self, version: int, call: ToolCall) -> None:
        """Take a call, in the order of the log."""
        self._by_path[call.path] = self._by_id[call.call_id] = version

    def answered(self, block: Block) -> int | None:
        """Return the version of the call that a result answers: by its path, or the newest earlier one with its id."""
        beside = self._by_path.get(f"{block.path.removesuffix('.result')}.call")
        return self._by_id.get(block.call_id or "") if beside is None else beside
