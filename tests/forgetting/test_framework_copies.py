from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.forgetting.planted import PLAIN
from tests.forgetting.test_recalls import WHY, compacted, recalled, said, secret_in
from tests.importers.session import use
from tests.integrations.claude_agent_sdk.test_resuming import compacted as compacting
from tests.integrations.claude_agent_sdk.test_resuming import loaded
from tests.integrations.claude_agent_sdk.written import KEY, Written, feed, opened
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.events import event_id, new_event
from timeline.events.encoding import encode_payload
from timeline.events.other_payloads import FrameworkEntry, FrameworkRecord

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.ports import EventStore

SHORT = "hunter7f3a"
"""Shorter than what is searched for as a quote."""


@pytest.fixture
async def store() -> AsyncIterator[EventStore]:
    """A store in memory."""
    async with open_store("memory://") as opened:
        yield opened


async def keep(timeline: Timeline, store: EventStore, *parts: Any) -> None:
    """Let a framework keep a message of its own with these parts."""
    at = (await store.info(timeline.id)).updated_at
    entry = FrameworkEntry(framework="pydantic-ai", key="1", data={"message": {"parts": [*parts]}})
    await store.append(timeline.id, [new_event(event_id(at), at, entry)])
    await timeline.catch_up()


async def kept(store: EventStore, conversation: str = "cards") -> list[Any]:
    """Return what frameworks keep of a conversation."""
    return [
        event.payload.data
        async for event in store.read(conversation, types=["framework.entry", "framework.record"])
        if isinstance(event.payload, FrameworkEntry | FrameworkRecord)
    ]


async def ran(timeline: Timeline, command: str, output: str, call_id: str = "c1") -> None:
    """Let the model run a command."""
    call = ToolCall(call_id=call_id, name="bash", arguments={"command": command})
    await timeline.append(call, ToolResult(call_id=call_id, text=output))


@pytest.mark.parametrize("arguments", [{"command": SHORT}, json.dumps({"command": SHORT})])
async def test_a_call_goes_from_an_entry_however_short_its_arguments_are(store: EventStore, arguments: Any) -> None:
    """They are too short to be searched for as a quote; the entry names the call."""
    timeline = await Timeline.open(store, "cards")
    await ran(timeline, SHORT, "done")
    part = {"part_kind": "tool-call", "tool_name": "bash", "args": arguments, "tool_call_id": "c1"}
    await keep(timeline, store, part)
    await timeline.redact("tc:turn_0.c1.call", WHY)
    [entry] = await kept(store)
    emptied = "{}" if isinstance(arguments, str) else {}
    assert entry["message"]["parts"] == [{**part, "args": emptied}]


@pytest.mark.parametrize(
    "content",
    [{"user": "ada", "password": SHORT}, ["ada", SHORT], [{"type": "text", "text": f"ada {SHORT}"}], {"pin": 73914}],
)
async def test_a_result_goes_from_an_entry_that_keeps_it_in_parts(store: EventStore, content: Any) -> None:
    """The block has it as one text, which is nowhere in the entry."""
    timeline = await Timeline.open(store, "cards")
    text = f"ada {SHORT}\nand more" if isinstance(content, list) else json.dumps(content, separators=(",", ":"))
    await ran(timeline, "pass show", text if content != ["ada", SHORT] else json.dumps(content))
    part = {"part_kind": "tool-return", "content": content, "tool_call_id": "c1", "metadata": {"raw": SHORT}}
    await keep(timeline, store, part)
    await timeline.redact("tc:turn_0.c1.result", WHY)
    [entry] = await kept(store)
    assert entry["message"]["parts"] == [{**part, "content": "[redacted]", "metadata": None}]


async def test_another_call_of_the_same_id_stays_in_an_entry(store: EventStore) -> None:
    """Some servers count their calls anew in each response."""
    timeline = await Timeline.open(store, "cards")
    await ran(timeline, SHORT, SHORT)
    other = {"tool_call_id": "c1", "args": {"command": "make"}}
    result = {"tool_call_id": "c1", "content": ["made"]}
    await keep(timeline, store, other, result)
    await timeline.redact(["tc:turn_0.c1.call", "tc:turn_0.c1.result"], WHY)
    [entry] = await kept(store)
    assert entry["message"]["parts"] == [other, result]


@pytest.mark.parametrize("asked", ["summary", "block"])
async def test_an_answer_of_the_recall_tool_goes_from_an_entry_as_from_its_block(store: EventStore, asked: str) -> None:
    """An entry may come before the block or behind it; the answer repeats a piece of a prompt, or a summary of it."""
    timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=4_000))
    [prompt] = await timeline.append(UserPrompt(text=f"The password is {PLAIN}. {'Use it. ' * 60}"))
    summary = await compacted(timeline)
    piece = {"path": summary if asked == "summary" else prompt.path, "limit": 120}
    answer = await timeline.recall_tool("anthropic").handle(piece)
    part = {"part_kind": "tool-return", "content": answer, "tool_call_id": "r1"}
    await keep(timeline, store, part)
    again = await recalled(timeline, summary)
    await keep(timeline, store, {**part, "content": again.text, "tool_call_id": again.call_id})
    await timeline.redact(prompt.path, WHY)
    assert await said(store) == []
    assert (await timeline.verify()).ok


async def test_a_summary_that_a_client_was_handed_is_written_anew_in_its_lines(store: EventStore) -> None:
    """The client keeps the lines that it was resumed from."""
    session = Written()
    session.user("The password is hunter-7f3a9c-kestrel, and there is much more to say about what to do with it.")
    session.ends("I use it.")
    session.works(12)
    await feed(store, session.rows)
    sessions = compacting(store)
    handed = await loaded(sessions)
    following = Written(f"{KEY['session_id']}-next", answers=100)
    following.user("And now?", parentUuid=handed[-1]["uuid"])
    following.ends("All is well.")
    await sessions.append(KEY, following.rows)
    assert len(await said(store)) > 2
    timeline = await opened(store)
    await timeline.redact("ar:turn_1.user.prompt", WHY)
    assert await said(store) == []
    [summary] = [row for row in await kept(store, timeline.id) if row.get("isCompactSummary")]
    [event] = [event async for event in store.read(timeline.id, types=["compaction.completed"])]
    assert json.loads(encode_payload(event.payload))["block"]["text"] == summary["message"]["content"]


async def test_the_beginning_of_a_prompt_goes_from_what_a_client_keeps_as_a_title(store: EventStore) -> None:
    """It is cut, or on one line."""
    timeline = await Timeline.open(store, "cards")
    text = "The password is\n  hunter-7f3a9c-kestrel.\n" + "Use it. " * 60
    [prompt] = await timeline.append(UserPrompt(text=text))
    first = " ".join(text.split())
    await keep(timeline, store, {"lastPrompt": f"{text[:200]}…", "first": f"{first[:200]}…", "whole": first})
    other = {"lastPrompt": "The password is lost…", "said": "Use it."}
    await keep(timeline, store, other)
    await timeline.redact(prompt.path, WHY)
    gone, stays = [entry["message"]["parts"] for entry in await kept(store)]
    assert gone == [{"lastPrompt": "[redacted]", "first": "[redacted]", "whole": "[redacted]"}]
    assert stays == [other]


async def test_a_redacted_edit_goes_from_the_copy_beside_its_result(store: EventStore) -> None:
    """Claude Code keeps there what the edit was asked for, line by line."""
    session = Written()
    session.user("Mend it.")
    session.asks(use("c1", "Edit", file_path="/a.py", old_string="x", new_string=SHORT))
    copy = {"type": "update", "newString": SHORT, "structuredPatch": [{"lines": ["-x", f"+{SHORT}"]}]}
    session.result("c1", "The file was updated.", toolUseResult=copy)
    session.ends("Done.")
    await feed(store, session.rows)
    timeline = await opened(store)
    await timeline.redact("tc:turn_1.c1.call", WHY)
    events = [encode_payload(event.payload) async for event in store.read(timeline.id)]
    assert [text for text in events if SHORT in text] == []
    assert (await timeline.read("tc:turn_1.c1.result")).text == "The file was updated."


async def test_what_an_earlier_redaction_left_of_a_block_goes_with_the_block(store: EventStore) -> None:
    """The entry quotes it no longer, since a word of another block was taken out of it."""
    timeline = await Timeline.open(store, "cards")
    [prompt] = await timeline.append(UserPrompt(text="kestrel-one"))
    arguments = {"user": "kestrel-one", "password": SHORT}
    call = ToolCall(call_id="c1", name="login", arguments=arguments)
    await timeline.append(call, ToolResult(call_id="c1", text=f"kestrel-one may use {SHORT} now"))
    asked = {"part_kind": "tool-call", "args": arguments, "tool_call_id": "c1"}
    result = {"part_kind": "tool-return", "content": f"kestrel-one may use {SHORT} now", "tool_call_id": "c1"}
    other = {"part_kind": "text", "content": "kestrel-one may not use it"}
    await keep(timeline, store, asked, result, other)
    await timeline.redact(prompt.path, WHY)
    await timeline.redact(["tc:turn_1.c1.call", "tc:turn_1.c1.result"], WHY)
    [entry] = await kept(store)
    left = [
        {**asked, "args": {}},
        {**result, "content": "[redacted]"},
        {**other, "content": "[redacted] may not use it"},
    ]
    assert entry["message"]["parts"] == left


async def test_an_entry_that_is_a_plain_text_stays_one(store: EventStore) -> None:
    """Only what is JSON of a line is read as such."""
    timeline = await Timeline.open(store, "cards")
    await secret_in(timeline)
    at = (await store.info(timeline.id)).updated_at
    texts = ["The password is hunter-7f3a9c-kestrel.", "not {json", "[1]"]
    entries = [FrameworkEntry(framework="own", key=str(n), data=text) for n, text in enumerate(texts)]
    await store.append(timeline.id, [new_event(event_id(at), at, entry) for entry in entries])
    await timeline.redact("ar:turn_1.user.prompt", WHY)
    assert await kept(store) == ["[redacted]", *texts[1:]]
