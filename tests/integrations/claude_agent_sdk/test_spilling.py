"""`spill_hook`: large results of tools as previews, and whole in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client

from tests.forgetting.words import said_by
from tests.importers.session import use
from tests.integrations.claude_agent_sdk.written import KEY, Written, feed, opened
from timeline import open_store
from timeline.blocks import ToolResult
from timeline.errors import InvalidArgument
from timeline.forgetting import redact
from timeline.integrations.claude_agent_sdk import spill_hook
from timeline.integrations.mcp.server import build_server

if TYPE_CHECKING:
    from pathlib import Path

    from timeline import Timeline
    from timeline.ports import EventStore

LONG = "".join(f"{number}: a line of its output\n" for number in range(2_000))
SPILLED = f"{KEY['session_id']}.spilled"


async def after(store: EventStore, response: Any, *, name: str = "Bash", **options: Any) -> dict[str, Any]:
    """Call the hook as the SDK does after a call of a tool."""
    given = {
        "hook_event_name": "PostToolUse",
        "session_id": KEY["session_id"],
        "tool_name": name,
        "tool_input": {"command": "make"},
        "tool_response": response,
        "tool_use_id": "toolu_1",
    }
    answer: dict[str, Any] = await spill_hook(store, **options)(given, "toolu_1", {"signal": None})
    return answer


def output(answer: dict[str, Any]) -> Any:
    """Return what the client puts in the place of the result."""
    assert answer["hookSpecificOutput"]["hookEventName"] == "PostToolUse"
    return answer["hookSpecificOutput"]["updatedToolOutput"]


async def test_a_large_result_is_a_preview_that_names_the_address_of_the_whole() -> None:
    """In the shape of the tool: the client refuses another one."""
    response = {"stdout": LONG, "stderr": "", "interrupted": False, "isImage": False}
    async with open_store("memory://") as store:
        shown = output(await after(store, response, preview_tokens=100))
        assert {**shown, "stdout": LONG} == response
        assert shown["stdout"].startswith("0: a line of its output")
        assert len(shown["stdout"]) < 1_000
        address = f"{SPILLED}@{(await opened(store, SPILLED)).window.items[-1].version}"
        assert f"all of it: {address} " in shown["stdout"]
        timeline = await opened(store, SPILLED)
        assert (await timeline.read(address)).text == LONG
        assert [item.block.type for item in timeline.window.items] == ["react.tool.call", "react.tool.result"]
        link = (await store.info(SPILLED)).parent
        assert link is not None
        assert link.conversation == KEY["session_id"]


async def test_the_model_reads_the_whole_by_the_mcp_server(tmp_path: Path) -> None:
    """From the same database, in pieces."""
    async with open_store(tmp_path / "agent.db") as store:
        shown = output(await after(store, LONG))
    address = shown.partition("all of it: ")[2].partition(" ")[0]
    async with open_store(tmp_path / "agent.db", readonly=True) as store, Client(build_server(store)) as client:
        answer = await client.call_tool("read", {"path": address})
    assert answer.structured_content is not None
    assert "0: a line of its output" in answer.structured_content["content"]


@pytest.mark.parametrize(
    "response",
    [
        "short",
        {"stdout": "short", "stderr": ""},
        [{"type": "text", "text": "short"}],
        None,
        7,
        {"file": {"base64": LONG}},
    ],
)
async def test_a_small_result_and_a_picture_stay_as_they_are(response: Any) -> None:
    """Nothing is stored for them."""
    async with open_store("memory://") as store:
        assert await after(store, response) == {}
        assert [info.id async for info in store.conversations()] == []


@pytest.mark.parametrize("name", ["mcp__timeline__read", "Edit", "Write"])
async def test_what_reads_the_log_back_and_what_the_model_is_not_shown_stay_as_they_are(name: str) -> None:
    """A preview of what was read by a preview's address would have no end; the client's editors return whole files."""
    async with open_store("memory://") as store:
        assert await after(store, {"originalFile": LONG}, name=name) == {}


async def test_each_large_text_of_a_result_has_its_preview() -> None:
    """They are one block in the log; small ones stay."""
    other = LONG.replace("its", "another")
    parts = [{"type": "text", "text": text} for text in (LONG, "short", other)]
    async with open_store("memory://") as store:
        shown = output(await after(store, parts, name="mcp__files__read"))
        whole = (await opened(store, SPILLED)).window.items[-1].block.text
    assert [part["text"] == "short" for part in shown] == [False, True, False]
    assert whole == f"{LONG}\n\n{other}"
    assert "line of another output" in shown[2]["text"]


async def test_what_counts_as_large_is_counted_in_tokens() -> None:
    """Not in characters."""
    async with open_store("memory://") as store:
        assert await after(store, "word " * 1_000, tokens=1_100) == {}
        assert [info.id async for info in store.conversations()] == []
        assert output(await after(store, "word " * 1_000, tokens=900)) != {}


async def test_wrong_sizes_are_refused() -> None:
    """When the hook is made."""
    async with open_store("memory://") as store:
        with pytest.raises(InvalidArgument, match="tokens"):
            spill_hook(store, tokens=0)
        with pytest.raises(InvalidArgument, match="preview_tokens"):
            spill_hook(store, preview_tokens=-1)


@pytest.mark.parametrize("redacted", ["the preview", "the whole"])
async def test_the_redaction_of_one_half_of_a_large_result_names_the_other(redacted: str) -> None:
    """They are in two conversations, and each says what goes."""
    async with open_store("memory://") as store:
        shown = output(await after(store, "The password is hunter-7f3a9c-kestrel.\n" + LONG))
        session = Written()
        session.user("Build it.")
        session.asks(use("toolu_1", command="make"))
        session.result("toolu_1", shown)
        session.asks(use("toolu_2", command="ls"))
        session.result("toolu_2", "notes.md")
        await feed(store, session.rows)
        main, kept = await opened(store), await opened(store, SPILLED)
        here, there = (main, kept) if redacted == "the preview" else (kept, main)
        path, other = await _result(here), await _result(there)
        for dry_run in (True, False):
            report = await redact(store, here.id, path, "a password", dry_run=dry_run)
            assert report.left["large_results"].endswith(f": `timeline redact {there.id} {other}`")
        assert (await there.redact(other, "a password")).left == {}
        assert "kestrel" not in await said_by(store)


async def _result(timeline: Timeline) -> str:
    """Return the address of the result of the call whose output is large."""
    items = timeline.window.items
    return next(f"@{i.version}" for i in items if isinstance(i.block, ToolResult) and i.block.call_id == "toolu_1")
