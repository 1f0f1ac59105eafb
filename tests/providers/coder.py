"""A script for agent loops: a model that calls tools for a number of rounds, and now and then reads something back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.providers.script import Answer, Call

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.providers.script import Asked

PRINTED = re.compile(r"part_\d+\.py(?: x\d+)? \((@\d+)\)")


class Coder:
    """Runs ``bash``, writes files, and every tenth round recalls an address that it was shown; then it says its text.

    Attributes:
        rounds: calls before the text.
        recalled: the addresses that it asked for.
    """

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.recalled: list[str] = []

    def __call__(self, asked: Asked) -> Answer:
        """Answer the next request."""
        number = asked.number + 1
        return Answer("All tests pass.") if number > self.rounds else Answer(calls=(self._call(asked, number),))

    def _call(self, asked: Asked, number: int) -> Call:
        call_id = f"toolu_{number}"
        printed = PRINTED.findall(asked.text) if number % 10 == 0 else []
        if printed:
            self.recalled.append(printed[0])
            return Call("recall", {"path": printed[0]}, call_id)
        if number % 3 == 0:
            return Call("Write", {"file_path": f"src/part_{number}.py", "content": "x = 1\n"}, call_id)
        return Call("bash", {"command": f"pytest tests/test_{number}.py"}, call_id)


def told(requests: Iterable[Asked], address: str) -> list[str]:
    """Return the answers of the recall tool, in Anthropic's requests, about the block of an address."""
    messages = (message for asked in requests for message in asked.body["messages"])
    parts = (part for m in messages if isinstance(m["content"], list) for part in m["content"])
    contents = (str(part.get("content")) for part in parts if part["type"] == "tool_result")
    return [content for content in contents if f" · {address} · " in content.partition("]")[0]]
