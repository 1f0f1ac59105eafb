"""Short addresses from outside: what they name, in every place that takes a path, and what they answer otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from timeline import Timeline, open_store, policies
from timeline.blocks import Note, RangeSummary, ToolCall, ToolResult, UserPrompt
from timeline.errors import BlockNotFound, BlockProtected, HistoryUnavailable, InvalidBlock
from timeline.events import BlockRedacted, ParentLink
from timeline.events.other_payloads import RetentionSet
from timeline.retention import scavenge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.ports import EventStore


@pytest.fixture(params=["memory://", "file"])
async def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EventStore]:
    """Open a store, in memory and as a file."""
    url = str(tmp_path_factory.mktemp("store") / "agent.db") if request.param == "file" else "memory://"
    async with open_store(url) as opened:
        yield opened


@pytest.fixture
async def timeline(store: EventStore) -> Timeline:
    """Begin a conversation of one turn: prompt, call and result are the versions 2 to 4."""
    opened = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=4_000))
    call = ToolCall(call_id="call_1", name="bash", arguments={"command": "make"})
    await opened.append(UserPrompt(text="Build it."), call, ToolResult(call_id="call_1", text="built"))
    return opened


async def compacted(timeline: Timeline) -> int:
    """Write cards until a compaction covers the first blocks; return its version."""
    for number in range(5):
        await timeline.append(UserPrompt(text=f"Write card {number}. " * 200))
    [taken] = await timeline.compact()
    assert taken.kind == "compacted"
    compaction = timeline.window.summary
    assert compaction is not None
    return compaction.version


async def test_every_block_is_read_by_its_version_and_by_its_path(timeline: Timeline) -> None:
    """With the conversation's own id in front it is the same block."""
    for version, path in [(2, "ar:turn_1.user.prompt"), (3, "tc:turn_1.call_1.call"), (4, "tc:turn_1.call_1.result")]:
        assert await timeline.read(f"@{version}") == await timeline.read(path)
        assert await timeline.read(f"cards@{version}") == await timeline.read(path)


async def test_the_version_of_a_compaction_is_its_summary(timeline: Timeline) -> None:
    """What the summary covers keeps its address."""
    version = await compacted(timeline)
    summary = await timeline.read(f"@{version}")
    assert isinstance(summary, RangeSummary)
    assert summary == await timeline.read(summary.path)
    assert summary.meta["compaction_digest"] is not None
    assert (await timeline.read("@2")).text == "Build it."  # covered


async def test_decisions_take_addresses(timeline: Timeline) -> None:
    """Hide, reveal, pin and unpin resolve what `read` resolves."""
    seen: list[tuple[str, bool]] = []
    for decide, name in (
        (timeline.hide, "@2"),
        (timeline.reveal, "cards@2"),
        (timeline.pin, "@2"),
        (timeline.unpin, "@2"),
    ):
        await decide(name)
        seen.append((timeline.window.items[0].state, timeline.window.items[0].pinned))
    assert seen == [("hidden", False), ("visible", False), ("visible", True), ("visible", False)]


async def test_a_decision_about_a_covered_address_says_that_a_summary_covers_it(timeline: Timeline) -> None:
    """The block is there, only not in the window."""
    await compacted(timeline)
    with pytest.raises(BlockProtected, match="summary covers it"):
        await timeline.hide("@3")


@pytest.mark.parametrize(
    ("address", "nearest", "problem"),
    [
        ("@1", ["@2", "@3", "@4"], "version 1 is not a block: it is conversation.opened"),
        ("@5", ["@4", "@3", "@2"], "it has the versions 1 to 4"),
        ("@999999", ["@4", "@3", "@2"], "it has the versions 1 to 4"),
        ("@0", ["@2", "@3", "@4"], "it has the versions 1 to 4"),
        ("3", ["@3", "@2", "@4"], ""),
        ("@abc", [], "an address is @ and a version, such as @152"),
        ("other@3", [], "it is another conversation's: open 'other', and read @3 there"),
    ],
)
async def test_an_address_without_a_block_says_what_it_is_and_what_is_near(
    timeline: Timeline, address: str, nearest: list[str], problem: str
) -> None:
    """Every method that takes a path gives the same answer."""
    for use in (timeline.read, timeline.hide, timeline.reveal, timeline.pin, timeline.unpin):
        with pytest.raises(BlockNotFound) as unknown:
            await use(address)
        assert (unknown.value.nearest, unknown.value.problem) == (nearest, problem)


async def test_a_view_of_the_past_reads_what_was_there_and_says_what_came_later(timeline: Timeline) -> None:
    """By path and by address."""
    past = await timeline.at(3)
    assert (await past.read("@3")).path == "tc:turn_1.call_1.call"
    for name in ("@4", "cards@4", "tc:turn_1.call_1.result"):
        with pytest.raises(BlockNotFound, match="came at version 4, and this is the conversation as it was at"):
            await past.read(name)


async def test_addresses_up_to_the_base_of_a_fork_are_its_parents(timeline: Timeline) -> None:
    """Behind its base the numbers are the fork's own, and the parent's are another conversation's."""
    fork = await timeline.fork(at=3, conversation="branch")
    again = await fork.fork(conversation="twig")
    await timeline.append(Note(text="the parent goes on"))
    assert await fork.read("@3") == await fork.read("cards@3") == await timeline.read("@3")
    assert await again.read("cards@3") == await again.read("branch@3") == await again.read("@3")
    for name in ("cards@4", "cards@5"):
        with pytest.raises(BlockNotFound, match="another conversation's: open 'cards'"):
            await fork.read(name)
    with pytest.raises(BlockNotFound, match=r"not a block: it is conversation\.opened"):
        await fork.read("@4")


async def test_an_agent_reads_what_its_subagents_did_and_decides_about_its_own_blocks_only(
    store: EventStore, timeline: Timeline
) -> None:
    """The way back, from a subagent to its caller, is closed."""
    helper = await Timeline.open(store, "helper", parent=ParentLink(conversation="cards"))
    await helper.append(UserPrompt(text="Look it up."))
    inner = await Timeline.open(store, "inner", parent=ParentLink(conversation="helper"))
    await inner.append(UserPrompt(text="Deeper."))
    assert (await timeline.read("helper@2")).text == "Look it up."
    assert (await timeline.read("inner@2")).text == "Deeper."
    assert (await timeline.recall_tool("anthropic").handle({"path": "helper@2"})).startswith(
        "[ar:turn_1.user.prompt · helper@2 · "
    )
    with pytest.raises(BlockNotFound, match="another conversation's"):
        await timeline.hide("helper@2")
    with pytest.raises(BlockNotFound, match="another conversation's"):
        await helper.read("cards@2")


async def test_conversations_that_name_each_other_as_the_caller_are_nobodys_subagents(
    store: EventStore, timeline: Timeline
) -> None:
    """An application that mixed them up gets an answer."""
    for id_, caller in (("one", "other"), ("other", "one")):
        helper = await Timeline.open(store, id_, parent=ParentLink(conversation=caller))
        await helper.append(UserPrompt(text="Look it up."))
    with pytest.raises(BlockNotFound, match="another conversation's"):
        await timeline.read("one@2")


async def test_a_redacted_address_gives_the_tombstone(timeline: Timeline) -> None:
    """As its path does."""
    await timeline.decide([BlockRedacted(version=2, reason="asked for")], at=None, ids=())
    block = await timeline.read("@2")
    assert (block.text, block.meta) == ("[redacted]", {"redacted": "asked for"})


async def test_the_summary_of_an_undone_compaction_keeps_its_address(timeline: Timeline) -> None:
    """An undo deletes nothing."""
    version = await compacted(timeline)
    await timeline.undo_compaction()
    assert isinstance(await timeline.read(f"@{version}"), RangeSummary)
    assert (await timeline.read("@2")).text == "Build it."


async def test_a_scavenged_address_is_unavailable_history(store: EventStore, timeline: Timeline) -> None:
    """The error names the version, however the block was named."""
    await timeline.decide([RetentionSet(retention="window")], at=None, ids=())
    version = await compacted(timeline)
    await scavenge(store)
    for name in ("@3", "cards@3", "tc:turn_1.call_1.call"):
        with pytest.raises(HistoryUnavailable) as gone:
            await timeline.read(name)
        assert (gone.value.version, gone.value.scavenged) == (3, True)
    assert isinstance(await timeline.read(f"@{version}"), RangeSummary)


async def test_a_conversation_whose_id_ends_like_an_address_has_addresses_too(store: EventStore) -> None:
    """The last @ parts the id from the version."""
    timeline = await Timeline.open(store, "team@7")
    await timeline.append(UserPrompt(text="Build it."))
    assert (await timeline.read("team@7@2")).text == "Build it."


async def test_a_path_that_ends_like_an_address_stays_a_path(timeline: Timeline) -> None:
    """Paths are looked up first, since logs keep theirs for ever."""
    [block] = await timeline.append(Note(text="a note", path="bl:mail.me@2"))
    assert await timeline.read("bl:mail.me@2") == block


async def test_no_block_gets_a_path_that_begins_like_an_address(timeline: Timeline) -> None:
    """Nothing is written."""
    with pytest.raises(InvalidBlock, match="begins with @, as an address does"):
        await timeline.append(Note(text="a note", path="@2"))


@pytest.mark.parametrize("name", ["@4", "`@4`", "(@4)", "cards@4", " @4."])
async def test_the_recall_tool_takes_an_address_as_it_is_printed(timeline: Timeline, name: str) -> None:
    """With whatever a model puts around it; the answer names path and address."""
    answer = await timeline.recall_tool("anthropic").handle({"path": name})
    head, text = answer.split("\n")
    assert head.startswith("[tc:turn_1.call_1.result · @4 · react.tool.result")
    assert text == "built"


async def test_the_recall_tool_explains_an_address_without_a_block(timeline: Timeline) -> None:
    """A model learns from the answer which addresses are near."""
    tool = timeline.recall_tool("anthropic")
    assert (await tool.look({"path": "@1"})).outcome == "unknown"
    assert await tool.handle({"path": "@1"}) == (
        "[unknown address] This conversation has no '@1': version 1 is not a block: it is conversation.opened. "
        "Nearest addresses: @2, @3, @4."
    )
    assert "@152" in str(tool.schema)
