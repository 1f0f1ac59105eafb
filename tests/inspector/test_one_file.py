"""What the file of a conversation carries, and what it does not."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.inspector.exporting import SECRET, converse, reply
from tests.scenes import small_policy
from timeline import Timeline, open_store
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.errors import ConversationNotFound, InvalidArgument
from timeline.inspector.asked import AskedRows, AskedState
from timeline.inspector.blocks import list_rows
from timeline.inspector.onefile import collecting
from timeline.inspector.onefile import page as page_module
from timeline.inspector.onefile.collecting import Wish
from timeline.inspector.onefile.modules import reached
from timeline.inspector.onefile.page import one_file
from timeline.inspector.reader import Reader
from timeline.inspector.states import show_state

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from timeline.inspector.onefile.collecting import Carried

_RUN = """
import { readFileSync } from "node:fs";
import { rowAt, stateAt } from "./histories.mjs";
const { rows, changes, superseded, state, until } = JSON.parse(readFileSync("given.json", "utf8"));
const found = {};
for (let at = 1; at <= until; at++) {
  const shown = rows.filter((row) => row.version <= at).map((row) => rowAt(row, changes[row.version], superseded, at));
  const states = Object.entries(stateAt(shown, state, at).states).map(([name, one]) => [name, one.blocks]);
  const told = shown.map((row) => [row.version, row.state, row.covered_by]);
  found[at] = { rows: told, states: Object.fromEntries(states) };
}
process.stdout.write(JSON.stringify(found));
"""


async def test_the_file_has_its_conversation_among_many_whose_ids_contain_its_own() -> None:
    """A search for its id gives a page of those that changed last, and it is not among these."""
    async with open_store("memory://") as store:
        await Timeline.open(store, "a", policy=small_policy())
        for number in range(201):
            await Timeline.open(store, f"cards {number}", policy=small_policy())
        _, carried = await one_file(store, "a", Wish())
    assert [row["id"] for row in carried.answers["conversations"]["conversations"]] == ["a"]


@pytest.mark.parametrize(
    ("module", "work"), [(collecting, "_clean"), (page_module, "written")], ids=["cleaned", "written"]
)
async def test_while_the_file_of_a_long_log_is_made_others_are_answered(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, work: str
) -> None:
    """With 50,000 blocks it takes half a minute, in which the inspector would answer nobody."""
    real, begun, answered = getattr(module, work), threading.Event(), threading.Event()

    def waiting(carried: Carried) -> Any:
        begun.set()
        assert answered.wait(10), "the event loop waits for it"
        return real(carried)

    async def answer() -> None:
        await anyio.to_thread.run_sync(begun.wait)
        answered.set()

    monkeypatch.setattr(module, work, waiting)
    async with open_store("memory://") as store, anyio.create_task_group() as tasks:
        timeline = await Timeline.open(store, "long", policy=small_policy())
        await timeline.append(*(UserPrompt(text=f"Prompt {number}") for number in range(500)))
        tasks.start_soon(answer)
        _, carried = await one_file(store, timeline.id, Wish(redact=True))
    assert len(carried.rows) > 500


async def test_the_rows_are_those_of_the_api_at_every_version(tmp_path: Path) -> None:
    """The file's own fold of states says what the server says, also after an undo, a hide and a reveal."""
    node = shutil.which("node")
    if node is None and not os.environ.get("CI"):
        pytest.skip("there is no Node on this machine; Debian's package is called nodejs")
    assert node is not None, "there is no Node here, and the page's modules are not checked without one"
    async with open_store("memory://") as store:
        timeline = await converse(store)
        _, carried = await one_file(store, timeline.id, Wish())
        reader = Reader(store)
        wanted: dict[int, Any] = {}
        for at in range(1, timeline.version + 1):
            listed = await list_rows(reader, AskedRows(id=timeline.id, at=at, limit=500))
            state = await show_state(reader, AskedState(id=timeline.id, at=at))
            states = {name: one.blocks for name, one in state.states.items() if one.blocks and name != "covered"}
            wanted[at] = {"rows": [[r.version, r.state, r.covered_by] for r in listed.rows], "states": states}
    given = {
        "rows": carried.rows,
        "changes": carried.histories.changes,
        "superseded": carried.histories.superseded,
        "state": carried.answers["state"],
        "until": carried.version,
    }
    module = files("timeline.inspector") / "web" / "static" / "histories.js"
    (tmp_path / "histories.mjs").write_text(module.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "given.json").write_text(json.dumps(given), encoding="utf-8")
    (tmp_path / "run.mjs").write_text(_RUN, encoding="utf-8")
    done = await anyio.run_process([node, "run.mjs"], cwd=tmp_path)
    found = {int(at): one for at, one in json.loads(done.stdout).items()}
    for at, expected in wanted.items():
        assert found[at]["rows"] == expected["rows"], at
        shown = {name: n for name, n in found[at]["states"].items() if name in {"visible", "carried", "hidden"}}
        assert shown == {n: c for n, c in expected["states"].items() if n in {"visible", "carried", "hidden"}}, at


@pytest.mark.parametrize(("contexts", "calls"), [("all", 12), ("last", 1), ("none", 0)])
async def test_the_contexts_are_those_that_were_asked_for(contexts: Any, calls: int) -> None:
    """What they share is in the file once."""
    async with open_store("memory://") as store:
        timeline = await converse(store)
        text, carried = await one_file(store, timeline.id, Wish(contexts=contexts))
    assert len(carried.contexts) == calls
    assert text.count('id="context-') == calls
    assert any("What was sent at" in line for line in carried.left_out) is (calls < 12)


async def test_a_file_that_no_browser_opens_well_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to leave out."""
    monkeypatch.setattr(page_module, "MOST_BYTES", 20_000)
    async with open_store("memory://") as store:
        timeline = await converse(store)
        with pytest.raises(InvalidArgument, match=r"--contexts none.*--mode chat"):
            await one_file(store, timeline.id, Wish())
        with pytest.raises(ConversationNotFound):
            await one_file(store, "nobody", Wish())


async def test_only_the_newest_rows_may_be_wanted() -> None:
    """And that is said."""
    async with open_store("memory://") as store:
        timeline = await converse(store)
        _, carried = await one_file(store, timeline.id, Wish(newest=10))
    assert [row["version"] for row in carried.rows] == list(range(timeline.version - 9, timeline.version + 1))
    assert carried.left_out[0] == f"The rows 1 to {timeline.version - 10:,}: only the newest 10 are here."


def test_the_file_has_the_modules_of_the_page_and_no_live_ones() -> None:
    """It is the same page: what the app imports is in it."""
    modules = reached()
    assert {"views/app.js", "views/log.js", "parts/source.js", "static/source.js", "vendor/preact-htm.js"} <= set(
        modules
    )
    assert not [module for module in modules if module.startswith("timeline-ui/")]


async def test_a_credential_is_taken_out_wherever_its_text_was_cut() -> None:
    """In the beginning of a row, of a piece of a request, and of a digest, also of texts that are not in the file."""
    async with open_store("memory://") as store:
        timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=8_000))
        call = ToolCall(call_id="call_1", name="bash", arguments={"command": "x" * 185 + f" token={SECRET}"})
        result = ToolResult(call_id="call_1", text="y" * 185 + f" token={SECRET}")
        await timeline.append(UserPrompt(text="z" * 180 + f" token={SECRET} done"), call, result)
        context = await timeline.render(system="s" * 3_950 + f" token={SECRET} and more")
        await timeline.record(reply(1), request=context.request("anthropic", model="claude-opus-5"))
        for wish in (Wish(redact=True), Wish(redact=True, mode="chat")):
            _, carried = await one_file(store, "c", wish)
            everything = str((carried.rows, carried.texts, carried.answers, carried.contexts, carried.pool))
            assert "ghp_" not in everything
        _, carried = await one_file(store, "c", Wish())
        cut = re.search(rf"s token=({SECRET[:8]}\w*)", str((carried.contexts, carried.pool)))
        assert cut is not None
        assert len(cut[1]) < len(SECRET), "no pattern finds what is left of it"


async def test_a_call_whose_request_was_not_recorded_is_no_obstacle() -> None:
    """Its context cannot be shown, and all else can."""
    async with open_store("memory://") as store:
        timeline = await Timeline.open(store, "c")
        await timeline.append(UserPrompt(text="Hello."))
        await timeline.record(reply(1))
        _, carried = await one_file(store, "c", Wish(contexts="all"))
    assert carried.contexts == {}
    assert len(carried.answers["calls"]["calls"]) == 1


@pytest.mark.parametrize(("contexts", "gone"), [("last", "1 call"), ("all", "2 calls")])
async def test_a_call_that_was_sent_what_is_redacted_now_is_no_obstacle(contexts: Any, gone: str) -> None:
    """Its context cannot be built again, which the file says; all else is in it."""
    async with open_store("memory://") as store:
        timeline = await Timeline.open(store, "c", policy=small_policy())
        [secret] = await timeline.append(UserPrompt(text=SECRET))
        for number in range(2):
            context = await timeline.render()
            await timeline.record(reply(number), request=context.request("anthropic", model="m", max_tokens=100))
        await timeline.redact(secret.path, "a secret")
        text, carried = await one_file(store, "c", Wish(contexts=contexts))
    assert (carried.contexts, SECRET in text) == ({}, False)
    assert f"What was sent at {gone} cannot be built again; `timeline call` says why." in carried.left_out
