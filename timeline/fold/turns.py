"""Give every new block its turn, its response and its path.

The fold keeps this small running state. A copy of it runs ahead of the log, to address the blocks of an append before
they are written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    Reasoning,
    ToolCall,
    ToolResult,
    TurnHeader,
    UserPrompt,
    numbered,
    stem,
)
from timeline.errors import InvalidBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from timeline.blocks import Block

RESPONSE_BLOCKS: Final[frozenset[type[Block]]] = frozenset({AssistantCompletion, Reasoning, ToolCall})
"""The types of a model response's blocks."""
_BY_ID: Final[frozenset[type[Block]]] = frozenset({ToolCall, ToolResult, Attachment})
"""Blocks whose path holds an id of their own, so that they need no count."""
MOST_WAITING: Final = 20_000
"""Most blocks of a response while one of its calls waits for a result, since no cut may divide them. The response of a
model has some 13,000 at most."""
_NUMBERED: Final = re.compile(r"turn_(\d{1,9})")


def turn_number(turn_id: str) -> int | None:
    """Return the number of a turn that was numbered here; None for an id of another's own."""
    numbered = _NUMBERED.fullmatch(turn_id)
    return None if numbered is None else int(numbered[1])


@dataclass(slots=True)
class Turns:
    """The running state of turns and responses.

    Attributes:
        count: highest turn number so far.
        turn_id: the current turn; empty before the first block.
        fresh: the current turn has a header and no prompt yet.
        response: running number of the newest response.
        response_id: its provider id, if it has one.
        running: the last block was part of that response.
        calls: unanswered calls by call id, oldest first: (version, response number, whether it waits for an approval).
        used: how many blocks of each stem the current turn has.
        undivided: how many blocks there are since the response began, or since none of the calls waited. A snapshot
            does not keep it; a restored fold counts the blocks of the response in its window.
    """

    count: int = 0
    turn_id: str = ""
    fresh: bool = False
    response: int = 0
    response_id: str | None = None
    running: bool = False
    calls: dict[str, list[tuple[int, int, bool]]] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    undivided: int = 0

    @property
    def waited_for(self) -> int:
        """Running number of the response whose calls may get a result: the newest one.

        Where the history went back to an earlier one with such calls, it is that one.
        """
        ones = (response for calls in self.calls.values() for _, response, pending in calls if not pending)
        return next(ones, self.response)

    def copy(self) -> Turns:
        """Return an independent copy. Every append makes one; fields by position take a third of the time."""
        calls = {id_: [*waiting] for id_, waiting in self.calls.items()}
        state = (self.count, self.turn_id, self.fresh, self.response, self.response_id, self.running)
        return Turns(*state, calls, {**self.used}, self.undivided)

    def turn_for(self, block: Block) -> str:
        """Return the turn of a block: its own id, a new turn for a prompt or header, else the current turn."""
        if block.turn_id:
            return block.turn_id
        kind = type(block)
        if kind is TurnHeader or (kind is UserPrompt and not self.fresh):
            return f"turn_{self.count + 1}"
        return self.turn_id or "turn_0"

    def advance(self, block: Block, turn_id: str, version: int) -> tuple[int, int | None]:
        """Apply the next block of the log; return its response number and the version of the call that it answers."""
        before = self.response
        placed = self._advance(block, turn_id, version)
        self.undivided = 0 if not self.calls else 1 if self.response != before else self.undivided + 1
        return placed

    def _advance(self, block: Block, turn_id: str, version: int) -> tuple[int, int | None]:
        self._enter(turn_id)
        kind = type(block)
        if kind is TurnHeader:
            self.fresh = True
        elif kind is UserPrompt:
            self.fresh = False
        if kind not in _BY_ID:
            own_stem = stem(block, turn_id)
            self.used[own_stem] = self.used.get(own_stem, 0) + 1
        if kind in RESPONSE_BLOCKS:
            self.fresh = False
            return self._respond(block, version), None
        self.running = False
        if kind is ToolResult:
            return self._answer(block)
        return 0, None

    def _enter(self, turn_id: str) -> None:
        if turn_id == self.turn_id:
            return
        self.turn_id, self.fresh, self.used = turn_id, False, {}
        number = turn_number(turn_id)
        self.count = self.count + 1 if number is None else max(self.count, number)

    def _respond(self, block: Block, version: int) -> int:
        """Add a response block to the newest response, or to a new one; return the response's number."""
        continues = block.response_id == self.response_id and (block.response_id is not None or self.running)
        if not continues or not self.response:
            self.response += 1
            self.response_id = block.response_id
            # Calls of earlier responses wait no longer, unless for an approval; a late result is sent as text.
            waiting = {id_: [call for call in calls if call[2]] for id_, calls in self.calls.items()}
            self.calls = {id_: calls for id_, calls in waiting.items() if calls}
        self.running = True
        if type(block) is ToolCall:
            self.calls.setdefault(block.call_id, []).append((version, self.response, block.pending))
        return self.response

    def _answer(self, block: Block) -> tuple[int, int | None]:
        waiting = self.calls.get(block.call_id or "")
        if not waiting:
            return 0, None
        version, response, _ = waiting.pop(0)
        if not waiting:
            del self.calls[block.call_id or ""]
        return response, version

    def refuse_endless(self, block: Block, version: int, answers: int | None) -> None:
        """Refuse a block that `advance` has just applied, if it makes a response endless: no window could be cut.

        Raises:
            InvalidBlock: it adds to a response that is too long already, or comes too late for its call.
        """
        if type(block) in RESPONSE_BLOCKS and self.undivided > MOST_WAITING:
            raise InvalidBlock(
                "response_id",
                f"the response has {MOST_WAITING:,} blocks while calls wait for their results; append those first, or"
                " what follows as another response",
            )
        if answers is not None and version - answers > 2 * MOST_WAITING:
            raise InvalidBlock(
                "call_id",
                f"its call is {version - answers:,} events back, of {2 * MOST_WAITING:,} at most; append it as a note",
            )

    def disown(self, versions: Collection[int]) -> None:
        """Forget disowned calls, which never happened for the agent: no later result answers them.

        What the model says next begins another response.
        """
        left = {id_: [call for call in calls if call[0] not in versions] for id_, calls in self.calls.items()}
        self.calls = {id_: calls for id_, calls in left.items() if calls}
        self.running = False

    def go_back(self, turn_id: str, waiting: Iterable[tuple[int, int, ToolCall]]) -> None:
        """Go on in an earlier turn. What the model says next begins another response; no number is given twice.

        Args:
            turn_id: of the newest block that is shown; empty where none is.
            waiting: the calls that have no answer there, each with its version and the number of its response.
        """
        if turn_id != self.turn_id:
            self.turn_id, self.fresh, self.used = turn_id, False, {}
        self.response_id, self.running = None, False
        self.calls = {}
        for version, response, call in waiting:
            self.calls.setdefault(call.call_id, []).append((version, response, call.pending))

    def path_for(
        self,
        block: Block,
        turn_id: str,
        *,
        call_path: str | None,
        taken: Callable[[str], bool],
        reached: dict[str, int],
    ) -> str:
        """Return the first free path for a block that `advance` has just applied.

        ``call_path`` is the path of the call that a result answers; ``taken`` returns whether a path is in use in the
        window. The store checks it again against the covered blocks. ``reached`` holds for each stem the last number
        that was free, and spares the search below it: a model may give thousands of calls in one append the same id.
        """
        own_stem = f"{call_path.removesuffix('.call')}.result" if call_path else stem(block, turn_id)
        n = max(self.used.get(own_stem, 1), reached.get(own_stem, 1))
        while taken(path := numbered(own_stem, n)):
            n += 1
        reached[own_stem] = n
        return path

    def dump(self) -> dict[str, Any]:
        """Return the JSON form for a snapshot."""
        return {
            "count": self.count,
            "turn_id": self.turn_id,
            "fresh": self.fresh,
            "response": self.response,
            "response_id": self.response_id,
            "running": self.running,
            "calls": {k: [list(call) for call in v] for k, v in self.calls.items()},
            "used": self.used,
        }

    @classmethod
    def parse(cls, value: dict[str, Any]) -> Turns:
        """Read the form that `dump` returns."""
        calls = {k: [(int(v), int(r), bool(p)) for v, r, p in waiting] for k, waiting in value["calls"].items()}
        return cls(**{**value, "calls": calls, "used": dict(value["used"])})
