"""The lists of names behind a summary: what they hold, in which order, and what is in none of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tests.scenes import AT, Scribe, call, opened, prompt, small_policy
from timeline.blocks import AssistantCompletion, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.errors import BlockNotFound
from timeline.facts.name_list import asked_list, names_of
from timeline.facts.record_lines import record_in
from timeline.integrations.mcp.arguments import ReadArguments
from timeline.integrations.mcp.questions import Questions
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.timeline import Timeline

import pytest

POLICY: Final = small_policy(
    max_tokens=8_000,
    keep_recent_tokens=100,
    digest_tokens=300,
    steps=[{"kind": "summarize", "cut": {"kind": "cut_point", "keep_recent_tokens": 100}, "names": "listed"}],
)
LINE: Final = re.compile(r"^Lists of all paths: (\S+)\.paths, of names, ids and numbers: \1\.names$", re.MULTILINE)
NOISE: Final = "Nothing worth a name. " * 120


async def compacted(*results: str, store: MemoryStore | None = None) -> Timeline:
    """Return a conversation in which a tool printed these texts, compacted."""
    timeline = await opened(store or MemoryStore(), policy=POLICY, summarizer=Scribe())
    for number, text in enumerate(results):
        await timeline.append(
            UserPrompt(text="Look at src/app/main.py."),
            ToolCall(call_id=f"c{number}", name="grep", arguments={"pattern": "load"}),
            ToolResult(call_id=f"c{number}", name="grep", text=text),
            AssistantCompletion(text=NOISE),
        )
    for _ in range(4):
        await timeline.append(prompt(), AssistantCompletion(text=NOISE))
    await timeline.compact(now=AT)
    return timeline


def summary_of(timeline: Timeline) -> str:
    """Return the path of the summary in view."""
    summary = timeline.window.summary
    assert summary is not None
    return summary.block.path


async def test_the_record_leads_to_two_lists_that_can_be_read() -> None:
    """Every name of a result is in one of them, which no record has."""
    timeline = await compacted("src/app/store.py:12: def load_entries(rootDir): # see https://example.org/a at 4711")
    summary = timeline.window.summary
    assert summary is not None
    [path] = LINE.findall(summary.block.text)
    assert path == summary.block.path
    assert "store.py" not in summary.block.text
    paths, names = await timeline.read(f"{path}.paths"), await timeline.read(f"{path}.names")
    assert paths.path == f"{path}.paths"
    assert "src/app/store.py" in paths.text
    assert {"load_entries", "rootDir", "https://example.org/a", "4711"} <= set(names.text.split())


async def test_a_compaction_of_little_keeps_the_lines_of_all_that_came_before() -> None:
    """The record is of the whole past, so that it has as much room as the one that it replaces."""
    timeline = await opened(MemoryStore(), policy=POLICY.model_copy(update={"digest_tokens": 500}), summarizer=Scribe())
    for number in range(60):
        read = ToolCall(call_id=f"c{number}", name="Read", arguments={"file_path": f"src/part_{number}.py"})
        text = ToolResult(call_id=f"c{number}", name="Read", text=NOISE)
        await timeline.append(prompt(), read, text, AssistantCompletion(text="Read."))
    await timeline.compact(now=AT)
    before = record_in((await timeline.read(summary_of(timeline))).text)
    for _ in range(3):
        await timeline.append(prompt(), AssistantCompletion(text=NOISE))
    await timeline.compact(now=AT)
    after = record_in((await timeline.read(summary_of(timeline))).text)
    assert before.count("\n- src/part_") > 20
    assert set(re.findall("^- .*", before, re.MULTILINE)) <= set(re.findall("^- .*", after, re.MULTILINE))
    assert LINE.search(after)


async def test_each_name_is_behind_the_newest_block_that_has_it() -> None:
    """Reading that address shows it."""
    timeline = await compacted("lib/old_file.py lib/both.py", "lib/both.py")
    text = (await timeline.read(f"{summary_of(timeline)}.paths")).text
    [address] = re.findall(r"^(@\d+):.* ?lib/both\.py", text, re.MULTILINE)
    assert (await timeline.read(address)).call_id == "c1"


async def test_what_was_meant_comes_first_then_what_is_beside_it() -> None:
    """The prompts name a file; its neighbour comes before files of elsewhere that were seen more often."""
    many = " ".join(f"vendor/deep/lib{number}/index.js" for number in range(100))
    timeline = await compacted(f"{many} src/app/store.py", many)
    text = (await timeline.read(f"{summary_of(timeline)}.paths")).text
    first = text.splitlines()
    assert first[0].startswith("102 paths and files")
    assert text.index("src/app/store.py") < text.index("vendor/deep/lib99/index.js")


async def test_the_first_answer_of_the_tool_is_the_beginning_of_the_list() -> None:
    """No outline of what comes later stands in front of what is needed most; the rest is read on."""
    timeline = await compacted(" ".join(f"vendor/lib{number}/index.js" for number in range(300)))
    tool = timeline.recall_tool("anthropic", max_tokens=500)
    path = f"{summary_of(timeline)}.paths"
    told = await tool.look({"path": path})
    lines = told.text.splitlines()
    assert lines[0].startswith(f"[{path} · @")
    assert lines[1].startswith("301 paths and files, most used first")
    assert lines[2].endswith("src/app/main.py") or "src/app/main.py" in told.text
    assert f"go on with offset {told.end}" in lines[-1]
    assert "Exact record" not in told.text


async def test_the_mcp_server_and_the_tool_give_the_same_answer() -> None:
    """One reader answers all of them."""
    store = MemoryStore()
    timeline = await compacted("src/app/store.py", store=store)
    path = f"{summary_of(timeline)}.paths"
    told = await timeline.recall_tool("anthropic", max_tokens=2_000).handle({"path": path})
    answer = await Questions(store, 2_000).read(ReadArguments(conversation=timeline.id, path=path))
    assert (await timeline.read(path)).text in told
    assert (await timeline.read(path)).text in answer.content


async def test_what_is_redacted_is_in_no_list() -> None:
    """The list is made when it is read."""
    timeline = await compacted("secret/door.json", "src/app/store.py")
    path = f"{summary_of(timeline)}.paths"
    assert "secret/door.json" in (await timeline.read(path)).text
    await timeline.redact("tc:turn_1.c0.result", "a secret", now=AT)
    assert "secret/door.json" not in (await timeline.read(path)).text
    assert "src/app/store.py" in (await timeline.read(path)).text


async def test_what_was_hidden_by_hand_is_in_no_list_unless_it_is_shown_again() -> None:
    """Maybe a model must not see it."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe())
    await timeline.append(prompt(), call("c0"), ToolResult(call_id="c0", name="run", text="by/hand/one.py"))
    await timeline.append(call("c1"), ToolResult(call_id="c1", name="run", text="in/sight/two.py"))
    await timeline.append(call("c2"), ToolResult(call_id="c2", name="run", text="shown/again/three.py"))
    for call_id in ("c0", "c2"):
        await timeline.hide(f"tc:turn_1.{call_id}.result", now=AT)
    await timeline.reveal("tc:turn_1.c2.result", now=AT)
    for _ in range(4):
        await timeline.append(prompt(), AssistantCompletion(text=NOISE))
    await timeline.compact(now=AT)
    text = (await timeline.read(f"{summary_of(timeline)}.paths")).text
    assert "in/sight/two.py" in text
    assert "shown/again/three.py" in text
    assert "by/hand/one.py" not in text


async def test_a_fork_and_an_earlier_version_read_the_same_list() -> None:
    """Both hold the compaction."""
    timeline = await compacted("src/app/store.py")
    path = f"{summary_of(timeline)}.paths"
    text = (await timeline.read(path)).text
    fork = await timeline.fork(now=AT)
    assert (await fork.read(path)).text == text
    version = timeline.version
    await timeline.append(prompt())
    assert (await (await timeline.at(version)).read(path)).text == text


async def test_a_list_of_a_compaction_that_was_undone_is_still_read() -> None:
    """A printed address stays good, as the summary's own does."""
    timeline = await compacted("src/app/store.py")
    path = f"{summary_of(timeline)}.paths"
    text = (await timeline.read(path)).text
    await timeline.undo_compaction(now=AT)
    assert (await timeline.read(path)).text == text


async def test_only_a_summary_has_lists() -> None:
    """Of any other block there is none, and the error names what was asked."""
    timeline = await compacted("src/app/store.py")
    with pytest.raises(BlockNotFound, match=r"tc:turn_1\.c0\.result\.paths"):
        await timeline.read("tc:turn_1.c0.result.paths")
    assert asked_list("su:turn_1.conv.range.summary.names") == ("su:turn_1.conv.range.summary", "names")
    assert asked_list("su:turn_1.conv.range.summary") is None


async def test_a_policy_that_lists_no_names_prints_no_line() -> None:
    """Published designs and their own summaries stay what they were."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=8_000), summarizer=Scribe())
    for number in range(4):
        await timeline.append(prompt(), AssistantCompletion(text=f"src/part{number}.py {NOISE}"))
    await timeline.compact(now=AT)
    summary = timeline.window.summary
    assert summary is not None
    assert "Lists of all paths" not in summary.block.text


def test_a_thought_has_no_names_for_a_list() -> None:
    """Only its provider can read what is signed, and no tool or person said it."""
    assert not names_of(Reasoning(text="src/app/main.py")).paths
    assert names_of(UserPrompt(text="src/app/main.py")).meant
    assert not names_of(ToolResult(call_id="c", text="src/app/main.py")).meant
