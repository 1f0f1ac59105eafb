from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from timeline import Timeline, open_store
from timeline.blocks import CustomBlock, ToolCall, ToolResult, UserPrompt
from timeline.errors import BlockNotFound, InvalidBlock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.ports import EventStore


@pytest.fixture
async def store() -> AsyncIterator[EventStore]:
    """Open a store in memory."""
    async with open_store("memory://") as opened:
        yield opened


@pytest.fixture
async def timeline(store: EventStore) -> Timeline:
    """Begin a conversation of two turns."""
    opened = await Timeline.open(store, "cards")
    call = ToolCall(call_id="call_1", name="bash")
    await opened.append(UserPrompt(text="a"), call, ToolResult(call_id="call_1", text="b"), UserPrompt(text="c"))
    return opened


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("ar:turn_2.user.promt", "ar:turn_2.user.prompt"),
        ("turn_2.user.prompt", "ar:turn_2.user.prompt"),
        ("tc:turn_1.call_1.reslt", "tc:turn_1.call_1.result"),
        ("tc:turn_1.cal_1.result", "tc:turn_1.call_1.result"),
    ],
)
async def test_a_misspelt_path_is_answered_with_the_nearest(timeline: Timeline, path: str, meant: str) -> None:
    """By a read, a decision and a past version alike."""
    for asked in (timeline.read(path), timeline.pin(path), (await timeline.at(4)).read(path)):
        with pytest.raises(BlockNotFound) as unknown:
            await asked
        assert unknown.value.nearest[0] == meant
        assert str(unknown.value) == f"No block {path!r} in conversation 'cards'. Did you mean {meant}?"


async def test_a_path_like_no_other_names_the_list_of_paths(timeline: Timeline) -> None:
    """Where nothing is near, the cure is to look at what there is; a path of a megabyte is answered at once."""
    for path in ("nonsense", "", ":", "." * 100, "ar:" + "a" * 1_000_000):
        with pytest.raises(BlockNotFound) as unknown:
            await timeline.read(path)
        assert unknown.value.nearest == []
        assert "`timeline show` lists its paths" in str(unknown.value)


@pytest.mark.parametrize(
    ("type_", "meant"),
    [
        ("user.promt", "did you mean user.prompt?"),
        ("User.Prompt", "did you mean user.prompt?"),
        ("usr.prompt", "did you mean user.prompt?"),
        ("tool.result", "did you mean react.tool.result?"),
        ("assistant.completions", "did you mean assistant.completion?"),
        ("notes", "did you mean note?"),
        ("poll", "app.poll"),
        ("user.feedback", "app.user.feedback"),
    ],
)
async def test_a_type_that_there_is_not_is_refused_before_anything_is_written(
    timeline: Timeline, type_: str, meant: str
) -> None:
    """A misspelt type names the one that is meant; a type without a prefix of its own names the prefix."""
    before = timeline.version
    for block in ({"type": type_, "text": "x"}, CustomBlock(type=type_, text="x")):
        with pytest.raises(InvalidBlock, match="there is no type") as refused:
            await timeline.append(UserPrompt(text="before"), block)
        assert meant in str(refused.value)
    assert timeline.version == before


@pytest.mark.parametrize("type_", ["app.poll", "x.user.prompt", "poem.verse", "assistant.part", "framework.retry"])
async def test_a_type_with_a_prefix_of_its_own_is_appended(timeline: Timeline, type_: str) -> None:
    """An application's own word in front makes a type its own; content parts that we keep have types of ours."""
    [block] = await timeline.append({"type": type_, "text": "x"})
    assert (await timeline.read(block.path)).type == type_


async def test_a_log_that_holds_such_a_type_is_read(store: EventStore) -> None:
    """Only the append is refused: what an earlier release wrote is read, rendered and continued."""
    timeline = await Timeline.open(store, "old")
    await timeline._conversation.append_new([CustomBlock(type="user.feedback", text="good")], timeline._clock.now())
    again = await Timeline.open(store, "old")
    await again.append(UserPrompt(text="b"))
    assert [item.block.type for item in again.window.items] == ["user.feedback", "user.prompt"]
    assert "good" in str((await again.render()).to_anthropic())


@pytest.mark.parametrize(
    ("block", "field", "words"),
    [
        ({"type": "assistant.message", "tool_calls": []}, "type", "assistant.completion or assistant.reasoning"),
        ({"type": "tool.result", "name": "read_file"}, "type", "did you mean react.tool.result?"),
        ({"type": "user.promt", "text": "Hi"}, "type", "did you mean user.prompt?"),
        ({"text": "Hi"}, "type", "Field required"),
        ({"type": "user.prompt", "content": "Hi"}, "content", "a block of type user.prompt has no such field; it has"),
        ({"type": "app.poll", "choices": []}, "choices", "it has type, author, call_id"),
    ],
)
async def test_what_is_nearly_a_block_is_refused_by_what_is_wrong_first(
    timeline: Timeline, block: Any, field: str, words: str
) -> None:
    """The type decides which fields there are, so it is named before them; nothing is written."""
    before = timeline.version
    with pytest.raises(InvalidBlock) as refused:
        await timeline.append(block)
    assert refused.value.field == field
    assert words in str(refused.value)
    assert timeline.version == before
