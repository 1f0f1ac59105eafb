"""Recordings as an importer would read them: things that happened a second apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.scenes import after, answer, call, prompt, result
from timeline.blocks import Block
from timeline.events import BlockAppended, ModelCalled
from timeline.importers import ImportedCompaction, ImportedHide, RecordedEvent, Recording, Report
from timeline.usage import Usage

if TYPE_CHECKING:
    from timeline.events import Payload


def recorded(block: Block | Payload | ImportedCompaction | ImportedHide, second: int) -> RecordedEvent:
    """Return the event of a recording that happened at a second; its key is that second."""
    payload = BlockAppended(block=block, tokens=0, counter="") if isinstance(block, Block) else block
    return RecordedEvent(payload, after(second), f"line {second}")


def recording(*things: Any, **fields: Any) -> Recording:
    """Return a recording of things that happened a second apart."""
    events = tuple(recorded(thing, second) for second, thing in enumerate(things))
    return Recording(**{"id": "r", "events": events, "report": Report(format="claude_code"), **fields})


TALK = (
    prompt(text="build it", turn_id="turn_1"),
    call("a", "bash", turn_id="turn_1", response_id="m1", arguments={"command": "make"}),
    ModelCalled(model="m", response_id="m1", usage=Usage(input_tokens=5)),
    result("a", turn_id="turn_1", text="Exit code 2"),
    answer(text="done", turn_id="turn_1", response_id="m2"),
)
