from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.forgetting.planted import PLAIN
from timeline import Timeline, open_store, policies
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.events import ParentLink
from timeline.events.encoding import encode_payload
from timeline.forgetting import redact

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.ports import EventStore

WHY = "a password"


@pytest.fixture
async def store() -> AsyncIterator[EventStore]:
    """A store in memory."""
    async with open_store("memory://") as opened:
        yield opened


async def secret_in(timeline: Timeline) -> str:
    """Let the user give a password away; return the path of that."""
    [prompt] = await timeline.append(UserPrompt(text=f"The password is {PLAIN}."))
    await timeline.append(AssistantCompletion(text="I use it."))
    return prompt.path


async def recalled(
    timeline: Timeline, path: str, arguments: str = "", name: str = "recall", form: str = "{}"
) -> ToolResult:
    """Let the model read a path back; return the result, as it is in the log, where a framework gave it a form."""
    call = ToolCall(call_id=f"r{timeline.version}", name=name, arguments=arguments or {"path": path})
    await timeline.append(call)
    answer = await timeline.recall_tool("anthropic").answer(call)
    [result] = await timeline.append(answer.model_copy(update={"text": form.format(answer.text)}))
    assert isinstance(result, ToolResult)
    return result


async def said(store: EventStore) -> list[int]:
    """Return the versions of the events that say the password."""
    events = [event async for info in store.conversations() async for event in store.read(info.id)]
    return [event.version for event in events if PLAIN in encode_payload(event.payload)]


async def compacted(timeline: Timeline) -> str:
    """Go on until a compaction covers the beginning; return the path of its summary."""
    for number in range(6):
        await timeline.append(UserPrompt(text=f"Write card {number}. " * 100))
    await timeline.compact()
    return next(item.block.path for item in timeline.window.items if item.is_summary)


@pytest.mark.parametrize("form", ["{}", "Tool output: {}"])
@pytest.mark.parametrize("written", ["`{}`", "[{}]", "{}.", " {} ", '"{}"', "@2", "`@2`", "@002", "a@home@2"])
async def test_an_answer_goes_however_the_model_wrote_the_path(store: EventStore, written: str, form: str) -> None:
    """The tool reads the path inside of quotes and brackets, an address with zeros or the conversation in front."""
    timeline = await Timeline.open(store, "a@home")
    path = await secret_in(timeline)
    answer = await recalled(timeline, written.format(path), form=form)
    assert PLAIN in answer.text
    await timeline.redact(path, WHY)
    assert await said(store) == []


async def test_an_answer_goes_whose_call_has_its_arguments_as_a_text(store: EventStore) -> None:
    """So a framework keeps them that does not read them."""
    timeline = await Timeline.open(store, "cards")
    path = await secret_in(timeline)
    assert PLAIN in (await recalled(timeline, path, json.dumps({"path": f"<{path}>"}), form="> {}")).text
    await timeline.redact(path, WHY)
    assert await said(store) == []


async def test_an_answer_goes_whatever_a_framework_calls_the_tool(store: EventStore) -> None:
    """As the tool of an MCP server, it has the server's name in front of its own."""
    timeline = await Timeline.open(store, "cards")
    path = await secret_in(timeline)
    await recalled(timeline, path, name="mcp__memory__read")
    await timeline.redact(path, WHY)
    assert await said(store) == []


async def test_an_answer_goes_whose_first_line_has_no_room_for_the_path(store: EventStore) -> None:
    """It has the address alone."""
    timeline = await Timeline.open(store, "cards")
    [prompt] = await timeline.append(UserPrompt(text=f"The password is {PLAIN}.", path=f"ar:{'part.' * 100}prompt"))
    await recalled(timeline, prompt.path, name="mcp__memory__read")
    await timeline.redact(prompt.path, WHY)
    assert await said(store) == []


async def test_an_answer_that_repeats_an_answer_goes_with_both(store: EventStore) -> None:
    """However often it was read back."""
    timeline = await Timeline.open(store, "cards")
    path = await secret_in(timeline)
    first = await recalled(timeline, path)
    second = await recalled(timeline, first.path)
    await recalled(timeline, f"`{second.path}`")
    await timeline.redact(path, WHY)
    assert await said(store) == []


@pytest.mark.parametrize("by", ["path", "address"])
async def test_an_answer_that_repeats_a_summary_goes_with_what_the_summary_is_of(store: EventStore, by: str) -> None:
    """The summary is written anew, and its answer is of before."""
    timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=4_000))
    path = await secret_in(timeline)
    summary = await compacted(timeline)
    names = {"path": summary, "address": f"@{timeline.version}"}
    assert PLAIN in (await recalled(timeline, names[by])).text
    await timeline.redact(path, WHY)
    assert await said(store) == []
    assert (await timeline.verify()).ok


async def test_an_answer_that_repeats_a_summary_of_before_stays(store: EventStore) -> None:
    """That summary says nothing of what goes."""
    timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=4_000))
    answer = await recalled(timeline, await compacted(timeline))
    await timeline.redact(await secret_in(timeline), WHY)
    assert (await timeline.read(answer.path)).text == answer.text


async def test_in_a_fork_an_answer_goes_that_names_its_parent(store: EventStore) -> None:
    """An address of the shared past may begin with either id."""
    timeline = await Timeline.open(store, "cards")
    path = await secret_in(timeline)
    fork = await timeline.fork(conversation="fork")
    assert PLAIN in (await recalled(fork, "cards@2")).text
    await timeline.redact(path, WHY)
    assert await said(store) == []


async def test_an_answer_about_another_conversation_stays(store: EventStore) -> None:
    """A subagent's block has an address with the same version."""
    timeline = await Timeline.open(store, "cards")
    path = await secret_in(timeline)
    helper = await Timeline.open(store, "helper", parent=ParentLink(conversation="cards"))
    await helper.append(UserPrompt(text="Count the cards."))
    answer = await recalled(timeline, "helper@2")
    assert "Count the cards." in answer.text
    await timeline.redact(path, WHY)
    assert (await timeline.read(answer.path)).text == answer.text


async def test_a_result_of_another_tool_stays_whose_call_has_such_a_path(store: EventStore) -> None:
    """Only the recall tool reads it as the block's."""
    timeline = await Timeline.open(store, "cards")
    path = await secret_in(timeline)
    await timeline.append(ToolCall(call_id="1", name="read_file", arguments={"path": path}))
    [result] = await timeline.append(ToolResult(call_id="1", text="no such file"))
    await timeline.append(ToolCall(call_id="2", name="recall", arguments={"path": 2}))
    [other] = await timeline.append(ToolResult(call_id="2", text="[malformed arguments] Give an object with a path."))
    await timeline.redact(path, WHY)
    assert (await timeline.read(result.path)).text == result.text
    assert (await timeline.read(other.path)).text == other.text


async def test_a_second_redaction_takes_an_answer_that_came_behind_the_first_one(store: EventStore) -> None:
    """A process that read the block before may append what it read; what is erased already gets no other event."""
    timeline = await Timeline.open(store, "cards")
    path = await secret_in(timeline)
    early = await recalled(timeline, path)
    await timeline.redact(path, WHY)
    await timeline.append(ToolCall(call_id="late", name="recall", arguments={"path": path}))
    await timeline.append(ToolResult(call_id="late", text=early.text))
    before = timeline.version
    await timeline.redact(path, WHY)
    assert await said(store) == []
    assert timeline.version == before + 1


async def test_an_answer_to_a_caller_of_the_subagent_is_named_until_it_is_redacted(store: EventStore) -> None:
    """It is in the caller's own log, which the redaction of the subagent's does not touch."""
    timeline = await Timeline.open(store, "cards")
    await Timeline.open(store, "helper", parent=ParentLink(conversation="cards"))
    inner = await Timeline.open(store, "inner", parent=ParentLink(conversation="helper"))
    path = await secret_in(inner)
    await recalled(timeline, "inner@2")
    await recalled(timeline, "inner@3")
    for report in (await redact(store, "inner", path, WHY, dry_run=True), await inner.redact(path, WHY)):
        assert report.left["answers"].endswith("`timeline redact cards @3`")
    await timeline.redact("@3", WHY)
    assert await said(store) == []
    assert "answers" not in (await inner.redact(path, WHY)).left
