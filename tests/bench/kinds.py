"""The four kinds of appends of 100 events, and a process that times them, in this checkout or in an earlier one.

``python tests/bench/kinds.py FOLDER`` reads the name of a kind a line, and answers with the seconds of CPU time that
`APPENDS` appends took. It uses nothing that the first releases lack, so that the same file measures both.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, Final

from timeline import open_store
from timeline.blocks import AssistantCompletion, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.events import BlockAppended, NewEvent, event_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from timeline.blocks import Block

EVENTS: Final = 100
APPENDS: Final = 10
TEXT: Final = "".join(f'{n:3} |     def line_{n}(self) -> str:  # "quoted"\n' for n in range(22))
START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Maker:
    """Makes events whose blocks have paths, ids and times as a recording of an agent has them."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def at(self) -> tuple[int, datetime]:
        """Return the next number and its time."""
        number = next(self._numbers)
        return number, START + timedelta(milliseconds=137 * number)

    def result(self, call: str | None = None) -> NewEvent:
        """Make the event of a result of about 1 KB; of no call in the log if none is given."""
        number, at = self.at()
        id_ = call or f"toolu_{number:020}"
        path = f"tc:turn_1.{id_}.result"
        return appended(
            ToolResult(call_id=id_, name="Read", text=TEXT, path=path, turn_id="turn_1", at=at, response_id="r_1"), 300
        )

    def call(self) -> tuple[str, NewEvent]:
        """Make the event of a call, and return its id too: in turn of a file read, a command, an edit and a search."""
        number, at = self.at()
        id_ = f"toolu_{number:020}"
        name, arguments = USES[number % len(USES)](number)
        block = ToolCall(
            call_id=id_,
            name=name,
            arguments=arguments,
            path=f"tc:turn_1.{id_}.call",
            turn_id="turn_1",
            at=at,
            response_id="r_1",
        )
        return id_, appended(block, 60)

    def said(self) -> tuple[NewEvent, NewEvent]:
        """Make the events of a thought and of a text."""
        number, at = self.at()
        place: dict[str, Any] = {"turn_id": "turn_1", "at": at, "response_id": "r_1"}
        thought = Reasoning(text=TEXT[:400], path=f"ar:turn_1.{number}.t", **place)
        text = AssistantCompletion(text=TEXT[:200], path=f"ar:turn_1.{number}", **place)
        return appended(thought, 100), appended(text, 50)

    def asked(self) -> NewEvent:
        """Make the event of a prompt."""
        number, at = self.at()
        return appended(UserPrompt(text=TEXT[:150], path=f"ar:turn_1.{number}.u", turn_id="turn_1", at=at), 40)


def _read(number: int) -> tuple[str, dict[str, Any]]:
    return "Read", {"file_path": f"/home/user/project/src/module_{number}.py", "offset": 1, "limit": 22}


def _bash(number: int) -> tuple[str, dict[str, Any]]:
    command = f"cd /home/user/project && pytest tests/test_{number}.py -x -q 2>&1 | tail -60"
    return "Bash", {"command": command, "description": "Run the tests"}


def _edit(number: int) -> tuple[str, dict[str, Any]]:
    arguments = {"file_path": f"/home/user/project/src/module_{number}.py", "old_string": TEXT[:90]}
    return "Edit", arguments | {"new_string": TEXT[90:200], "replace_all": False}


def _grep(number: int) -> tuple[str, dict[str, Any]]:
    return "Grep", {"pattern": f"def line_{number}", "path": "/home/user/project", "output_mode": "content"}


USES: Final[tuple[Callable[[int], tuple[str, dict[str, Any]]], ...]] = (_read, _bash, _edit, _grep)


def appended(block: Block, tokens: int) -> NewEvent:
    """Make the event that appends a block."""
    at = block.at or START
    return NewEvent(id=event_id(at), at=at, payload=BlockAppended(block=block, tokens=tokens, counter="o200k_base"))


Appends = tuple[list[NewEvent], list[NewEvent]]
"""What is appended before, without being timed, and what is timed."""


def results(maker: Maker) -> Appends:
    """Make results of calls that the log does not have."""
    return [], [maker.result() for _ in range(EVENTS)]


def calls_and_results(maker: Maker) -> Appends:
    """Make calls, each followed by its result."""
    events: list[NewEvent] = []
    while len(events) < EVENTS:
        call, event = maker.call()
        events += (event, maker.result(call))
    return [], events


def mixed(maker: Maker) -> Appends:
    """Make turns of a prompt, and four times a thought, a text, two calls and two results, as agents write them."""
    events: list[NewEvent] = []
    while len(events) < EVENTS:
        events.append(maker.asked())
        for _ in range(4):
            first, second = maker.call(), maker.call()
            events += (*maker.said(), first[1], second[1], maker.result(first[0]), maker.result(second[0]))
    return [], events[:EVENTS]


def results_of_earlier_calls(maker: Maker) -> Appends:
    """Make results, and calls that an append before brought."""
    calls = [maker.call() for _ in range(EVENTS)]
    return [event for _, event in calls], [maker.result(call) for call, _ in calls]


KINDS: Final[dict[str, Callable[[Maker], Appends]]] = {
    "results": results,
    "calls and results": calls_and_results,
    "a mix": mixed,
    "results of earlier calls": results_of_earlier_calls,
}


async def answer(folder: Path, names: Iterator[str]) -> None:
    """Time the kinds that are asked for, each in a database of its own."""
    maker = Maker()
    stores = {kind: await open_store(folder / f"{number}.db") for number, kind in enumerate(KINDS)}
    for name in names:
        kind = name.strip()
        appends = [KINDS[kind](maker) for _ in range(APPENDS)]
        gc.collect()
        taken = 0.0
        for before, timed in appends:
            if before:
                await stores[kind].append("bench", before)
            begin = process_time()
            await stores[kind].append("bench", timed)
            taken += process_time() - begin
        sys.stdout.write(f"{taken}\n")
        sys.stdout.flush()
    for store in stores.values():
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(answer(Path(sys.argv[1]), iter(sys.stdin.readline, "")))
