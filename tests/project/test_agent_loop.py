from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anthropic import AsyncAnthropic

from tests.project.pages import code_blocks
from tests.project.sources import ROOT
from tests.providers import FakeProvider
from tests.providers.coder import Coder, told
from timeline import Timeline, open_store

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROUNDS = 60


async def run_tool(name: str, arguments: dict[str, Any]) -> str:
    """Answer a call with a page of output."""
    return f"{name} {arguments.get('command')}\n" + "E   assert 1 == 2\n" * 400


async def test_the_agent_loop_of_the_page_runs_past_several_compactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It drives the real SDK through a long turn, refusals and recalls included, and every context of it verifies."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
    source = next(block.text for block in code_blocks(page) if "async def answer" in block.text)
    assert len(source.split("async def answer")[1].splitlines()) <= 25
    namespace: dict[str, Any] = {}
    exec(compile(source, "embedding.md", "exec"), namespace)  # noqa: S102 - the page's own code is what is tested
    coder = Coder(ROUNDS)
    with FakeProvider(coder, limit=32_000) as provider:
        async with AsyncAnthropic(api_key="none", base_url=provider.url, max_retries=0) as client:
            tools = [{"name": "bash", "description": "Runs a command.", "input_schema": {"type": "object"}}]
            answer = await namespace["answer"](client, "Make the tests pass.", tools, run_tool)
    assert answer == "All tests pass."
    assert len(provider.asked) == ROUNDS + 1
    assert len(provider.refused) >= 2
    assert all("> 32000" in refusal for refusal in provider.refused), provider.refused
    assert coder.recalled
    assert all("src/part_" in answer for path in coder.recalled for answer in told(provider.asked, path))
    assert all(told(provider.asked, path) for path in coder.recalled)
    async with open_store("agent.db", readonly=True) as store:
        timeline = await Timeline.open(store, "conversation-1", create=False)
        report = await timeline.verify()
    assert report.ok, report.problems
    assert report.compactions >= 2
    assert report.renders == ROUNDS + 1 + len(provider.refused)
