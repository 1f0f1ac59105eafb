"""The store of docs/stores.md, by the parts of the contract that its page names."""

from __future__ import annotations

import sys
from copy import deepcopy
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any, cast

from tests.project.sources import ROOT
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.store.testing.appends import AppendContract
from timeline.store.testing.reads import ReadContract
from timeline.store.testing.repeats import RepeatContract
from timeline.store.testing.sharing import SharingContract

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore


def loaded() -> Any:
    """Load the program that the page shows."""
    spec = spec_from_file_location("dict_store", ROOT / "docs" / "stores" / "dict_store.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["dict_store"] = module  # where a dataclass looks for the names of its annotations
    spec.loader.exec_module(module)
    return module


EXAMPLE = loaded()


class TestDictStore(AppendContract, RepeatContract, ReadContract, SharingContract):
    """A log of one's own keeps the parts of the contract that are about a log."""

    databases: dict[Path, Any]

    async def make_store(self, folder: Path) -> EventStore:
        """Make a store on a database that is named by its folder."""
        self.databases = {folder: EXAMPLE.Database()}
        return cast("EventStore", EXAMPLE.DictStore(self.databases[folder]))

    async def open_again(self, folder: Path) -> EventStore | None:
        """Open the same database once more."""
        return cast("EventStore", EXAMPLE.DictStore(self.databases[folder]))

    async def restore(self, folder: Path, copy: Path) -> EventStore | None:
        """Copy the whole database."""
        self.databases[copy] = deepcopy(self.databases[folder])
        return cast("EventStore", EXAMPLE.DictStore(self.databases[copy]))


async def summary_on(store: EventStore) -> str:
    """Return the summary of a short conversation, kept in a store."""
    timeline = await Timeline.open(store, "cards", policy=policies.balanced(max_tokens=1_000, counter="chars4"))
    for number in range(4):
        await timeline.append(
            UserPrompt(text="Never touch a.py. " * 20),
            ToolCall(call_id=f"c{number}", name="bash", arguments={"command": f"make part{number}"}),
            ToolResult(call_id=f"c{number}", text="done " * 200, exit_status=2),
        )
    await timeline.compact()
    summary = timeline.window.summary
    assert summary is not None
    return summary.block.text


async def test_a_timeline_compacts_on_the_smallest_log_as_on_any_store() -> None:
    """An application learned that a method was missing when its first context was full."""
    smallest = cast("EventStore", EXAMPLE.DictStore(EXAMPLE.Database()))
    async with open_store("memory://") as store:
        assert await summary_on(smallest) == await summary_on(store)
