"""The state of timeline-ui, which no browser is needed for: the same as `Progress` after each event of a log."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest

from tests.scenes import FULL, Mute, Scribe, answer, opened, prompt, small_policy
from timeline.errors import ContextOverflow, TimelineError
from timeline.lifecycle.live import steps
from timeline.lifecycle.progress import Progress
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.lifecycle.events import LifecycleEvent

_RUN: Final = """
import { readFileSync } from "node:fs";
import { after, begin, isCompacting } from "./state.mjs";
let state = begin();
const states = [];
for (const event of JSON.parse(readFileSync("events.json", "utf8"))) {
  state = after(state, event);
  const { phase, tokensBefore, tokensAfter, percentSaved, error, overflow, usage, entries } = state;
  const compacting = isCompacting(state, Date.parse(event.at));
  const tokens = { tokensBefore, tokensAfter, percentSaved };
  states.push({ phase, compacting, ...tokens, error, overflow, usage, n: entries.length });
}
process.stdout.write(JSON.stringify(states));
"""


async def _events() -> list[LifecycleEvent]:
    """Return what a conversation says that is compacted, fails to be, and overflows in the end."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=4_000), summarizer=Scribe())
    for _ in range(2):
        await timeline.append(*FULL)
        await timeline.render()
    failing = small_policy(max_tokens=4_000, on_failure="unchanged")
    again = await opened(store, policy=failing, summarizer=Mute())
    await again.append(*FULL)
    with suppress(TimelineError):
        await again.compact()
    await again.append(prompt(30), answer(9_000))
    with pytest.raises(ContextOverflow):
        await again.render()
    await again.append(answer(5))
    told: list[LifecycleEvent] = []
    async for step in steps(store, timeline.id, after=0):
        told += step.events
        if step.version == again.version:
            return told
    raise AssertionError


async def test_each_event_moves_the_page_as_it_moves_progress(tmp_path: Path) -> None:
    """Phases, tokens, what was saved, error, overflow and usage; and what a debug section lists."""
    node = shutil.which("node")
    if node is None and not os.environ.get("CI"):
        pytest.skip("there is no Node on this machine; Debian's package is called nodejs")
    assert node is not None, "there is no Node here, and the page's modules are not checked without one"
    told = await _events()
    assert {event.type for event in told} >= {"compaction-complete", "compaction-error", "context-overflow"}
    module = files("timeline.inspector") / "web" / "timeline-ui" / "state.js"
    (tmp_path / "state.mjs").write_text(module.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "events.json").write_text(json.dumps([event.payload() for event in told]), encoding="utf-8")
    (tmp_path / "run.mjs").write_text(_RUN, encoding="utf-8")
    done = await anyio.run_process([node, "run.mjs"], cwd=tmp_path)
    states: list[dict[str, Any]] = json.loads(done.stdout)
    progress, entries = Progress(), 0
    for event, state in zip(told, states, strict=True):
        progress = progress.after(event)
        entries += event.type != "context-usage"
        assert state["phase"] == progress.phase
        assert state["compacting"] is (progress.status == "compacting")
        assert (state["tokensBefore"], state["tokensAfter"]) == (progress.tokens_before, progress.tokens_after)
        assert state["percentSaved"] == pytest.approx(progress.percent_saved)
        for name, own in (("error", progress.error), ("overflow", progress.overflow), ("usage", progress.usage)):
            assert state[name] == (None if own is None else own.payload()), name
        assert state["n"] == entries
