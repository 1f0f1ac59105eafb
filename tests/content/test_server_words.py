"""What a provider's server did, as calls and results that a summarizer can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import COUNTER, planned, window_of
from tests.wire.entries import GOOGLE_CODE, GOOGLE_FILE, GOOGLE_FOUND, SERVER_CALL, SERVER_RESULT
from timeline import Timeline, open_store, policies
from timeline.blocks import AssistantCompletion, CustomBlock, ToolCall, ToolResult, UserPrompt
from timeline.content.native import NATIVE
from timeline.content.server_words import as_tool_block, words_said
from timeline.planning.account import FixedPart
from timeline.planning.summary_requests import Wanted, summary_requests
from timeline.summarizers import ExtractiveSummarizer

if TYPE_CHECKING:
    from pathlib import Path


def part(data: Any, **more: Any) -> CustomBlock:
    """Make a part of a response."""
    return CustomBlock(type="assistant.part", author="assistant", data=data, response_id="r", **more)


def result_of(data: Any) -> ToolResult:
    """Return the result that a part is."""
    told = as_tool_block(part(data))
    assert isinstance(told, ToolResult)
    return told


@pytest.mark.parametrize(
    ("data", "name", "arguments"),
    [
        (SERVER_CALL, "web_search", {"query": "q"}),
        (GOOGLE_CODE, "code_execution", {"code": "print(1)"}),
        ({"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "args": {"a": 1}}}, "google_search_web", {"a": 1}),
    ],
)
def test_a_call_has_the_tools_name_and_arguments(data: Any, name: str, arguments: Any) -> None:
    """In the response that it is of."""
    told = as_tool_block(part(data, path="p"))
    assert isinstance(told, ToolCall)
    assert (told.name, told.arguments, told.path, told.response_id) == (name, arguments, "p", "r")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (SERVER_RESULT["content"], "https://x\nX"),
        ({"type": "code_execution_result", "stdout": "built", "stderr": "", "return_code": 2, "content": []}, "built"),
        (
            {
                "type": "web_fetch_result",
                "url": "https://x",
                "content": {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "words"},
                },
            },
            "https://x\nwords",
        ),
        (
            [{"type": "text", "text": "of a server"}, {"type": "image", "source": {"type": "base64", "data": "aGk="}}],
            "of a server",
        ),
    ],
)
def test_a_result_has_its_words_without_what_is_encoded(content: Any, text: str) -> None:
    """Pages, output of code, answers of MCP servers."""
    assert result_of({"type": "web_search_tool_result", "tool_use_id": "a", "content": content}).text == text


def test_an_item_of_openais_has_what_it_asked_and_found() -> None:
    """Both are in one item, without what is an address to the API alone."""
    item = {"type": "mcp_call", "id": "mcp_1", "name": "ask", "server_label": "w", "arguments": "{}", "output": "found"}
    told = as_tool_block(part(item).model_copy(update={"type": NATIVE}))
    assert isinstance(told, ToolResult)
    assert (told.name, told.text, told.is_error) == ("ask", "{}\nfound", False)


def test_a_failure_is_one() -> None:
    """By its code, its status or its outcome."""
    refused = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    told = result_of({"type": "web_search_tool_result", "tool_use_id": "a", "content": refused})
    assert (told.is_error, told.text) == (True, "max_uses_exceeded")
    ran = {"type": "bash_code_execution_result", "stdout": "", "stderr": "no", "return_code": 2}
    assert result_of({"type": "bash_code_execution_tool_result", "content": ran}).exit_status == 2
    assert result_of({"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}}).is_error
    assert not result_of(GOOGLE_FOUND).is_error


def test_an_outcome_that_is_no_text_is_a_failure() -> None:
    """A recording may have any value there, and is compacted all the same."""
    assert result_of({"codeExecutionResult": {"outcome": ["OUTCOME_OK"], "output": "no"}}).is_error


@pytest.mark.parametrize(
    "block", [part(GOOGLE_FILE), part({"type": "web_search_call", "id": "ws_1"}), UserPrompt(text="x")]
)
def test_any_other_block_is_as_it_is(block: Any) -> None:
    """A picture has no words, and OpenAI's items were never sent from such a part."""
    assert as_tool_block(block) is block


async def test_a_summary_has_what_the_providers_server_was_asked_and_found() -> None:
    """After a compaction nothing else in the context says so."""
    asked: dict[str, Any] = {**SERVER_CALL, "name": "web_fetch", "input": {"url": "https://example.org/api-limits"}}
    found = {
        "type": "bash_code_execution_tool_result",
        "tool_use_id": "b",
        "content": {"type": "x", "stdout": "", "stderr": "E: cannot open /srv/data/limits.toml", "return_code": 4},
    }
    ran = {**SERVER_CALL, "id": "b", "name": "bash_code_execution", "input": {"command": "cat /srv/data/limits.toml"}}
    blocks = [UserPrompt(text="Look it up. " * 300), *map(part, (asked, ran, found)), AssistantCompletion(text="So.")]
    window = window_of(
        *blocks, UserPrompt(text="And?"), AssistantCompletion(text="Yes. " * 300), UserPrompt(text="Go on.")
    )
    plan = planned(window, policies.keep_last(messages=2), FixedPart(system=10))
    request = summary_requests(window, plan, COUNTER, Wanted()).history
    assert request is not None
    summary = await ExtractiveSummarizer().summarize(request)
    assert "/srv/data/limits.toml" in summary.text


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_what_a_providers_server_found_is_found_again(tmp_path: Path, kind: str) -> None:
    """By a search for its words, and among the facts that it names."""
    found = {
        **SERVER_RESULT,
        "content": [{"type": "web_search_result", "url": "https://example.org/limits", "title": "Quota", "x": "QUJD"}],
    }
    asked = {"type": "mcp_call", "id": "mcp_1", "name": "ask", "arguments": "{}", "output": "see ENT-241"}
    async with open_store("memory://" if kind == "memory" else tmp_path / "a.db") as store:
        timeline = await Timeline.open(store, "c")
        own = part(asked).model_copy(update={"type": NATIVE})
        await timeline.append(UserPrompt(text="Look it up."), part(SERVER_CALL), part(found), own)
        hits = [hit.path async for hit in store.search("quota")]
        named = {(fact.kind, fact.subject) async for fact in store.facts()}
    assert hits == ["bl:turn_1.assistant.part.2"]
    assert {("url", "https://example.org/limits"), ("identifier", "ENT-241")} <= named


def test_the_words_of_a_picture_and_of_a_list_of_tools_are_none() -> None:
    """One is base64, the other the client's own schemas."""
    for item in ({"type": "image_generation_call", "result": "QUJD"}, {"type": "mcp_list_tools", "tools": ["x"]}):
        assert [*words_said(item)] == []
