"""Every block's address (design, words: path)."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from tests.scenes import answer, call, compact_fold, fold_of, grow, opened, paths, prompt, result, window_of, words
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    Block,
    CustomBlock,
    Note,
    RangeSummary,
    Reasoning,
    StageDigest,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnHeader,
    UserPrompt,
    numbered,
    quote_id,
    stem,
)
from timeline.errors import BlockNotFound, InvalidBlock, PathTaken
from timeline.fold.turns import Turns
from timeline.store.memory import MemoryStore


@pytest.mark.shows("002-26")
@pytest.mark.parametrize(
    ("block", "path"),
    [
        (UserPrompt(turn_id="t1"), "ar:t1.user.prompt"),
        (AssistantCompletion(turn_id="t1"), "ar:t1.assistant.completion"),
        (ToolCall(turn_id="t1", call_id="c1", name="run"), "tc:t1.c1.call"),
        (ToolResult(turn_id="t1", call_id="c1"), "tc:t1.c1.result"),
        (Attachment(turn_id="t1", meta={"file": "plan.pdf"}), "fi:t1.plan%2Epdf"),
        (Attachment(turn_id="t1"), "fi:t1.attachment"),
        (RangeSummary(turn_id="t1"), "su:t1.conv.range.summary"),
        (TurnHeader(turn_id="t1"), "bl:t1.turn.header"),
        (Reasoning(turn_id="t1"), "bl:t1.assistant.reasoning"),
        (SystemMessage(turn_id="t1"), "bl:t1.system.message"),
        (Note(turn_id="t1"), "bl:t1.note"),
        (StageDigest(turn_id="t1"), "bl:t1.stage.digest"),
        (CustomBlock(type="app.weather-report", turn_id="t1"), "bl:t1.app.weather-report"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_type_has_its_form(block: Block, path: str) -> None:
    """Every block type has its own form of path, and every other type the general one."""
    assert stem(block) == path


@pytest.mark.parametrize(
    ("id_", "quoted"),
    [
        ("call.1", "call%2E1"),
        ("a:b", "a%3Ab"),
        ("100%", "100%25"),
        ("a~2", "a%7E2"),
        ("two words", "two%20words"),
        ("tab\there", "tab%09here"),
        ("nul\x00", "nul%00"),
        ("a\u2003b", "a%E2%80%83b"),
        ("src/main-1_é", "src/main-1_é"),
    ],
)
def test_what_separates_the_parts_of_a_path_is_percent_encoded_inside_ids(id_: str, quoted: str) -> None:
    """Dots, colons, per cent signs, tildes, white space and control characters are encoded, and come back."""
    assert quote_id(id_) == quoted
    assert unquote(quoted) == id_


def test_ids_are_encoded_inside_whole_paths() -> None:
    """The separators of a path are always its own."""
    assert stem(ToolCall(turn_id="run:7", call_id="toolu.01~x", name="run")) == "tc:run%3A7.toolu%2E01%7Ex.call"


def test_the_second_block_of_a_stem_is_numbered_with_a_dot() -> None:
    """Of several completions in a turn the second is ``….2``."""
    assert numbered("ar:t.assistant.completion", 1) == "ar:t.assistant.completion"
    assert numbered("ar:t.assistant.completion", 2) == "ar:t.assistant.completion.2"
    assert numbered("su:t.conv.range.summary", 3) == "su:t.conv.range.summary.3"


def test_a_repeated_call_id_is_numbered_with_a_tilde() -> None:
    """The number stands at the call id, since the kind must come last."""
    assert numbered("tc:t.c1.call", 2) == "tc:t.c1~2.call"
    assert numbered("tc:t.c1.result", 3) == "tc:t.c1~3.result"


def test_blocks_of_a_turn_are_numbered_as_they_come() -> None:
    """Numbers count per stem and turn; another turn begins again."""
    window = window_of(prompt(), answer(), prompt(turn_id="turn_1"), answer(), answer(), prompt(), answer())
    assert paths(window.items) == [
        "ar:turn_1.user.prompt",
        "ar:turn_1.assistant.completion",
        "ar:turn_1.user.prompt.2",
        "ar:turn_1.assistant.completion.2",
        "ar:turn_1.assistant.completion.3",
        "ar:turn_2.user.prompt",
        "ar:turn_2.assistant.completion",
    ]


def test_a_result_has_the_path_of_its_call() -> None:
    """The second call of an id and its result share their number, whatever the order of the answers."""
    window = window_of(prompt(), call("c1"), result("c1"), call("c1"), result("c1"))
    assert paths(window.items)[1:] == [
        "tc:turn_1.c1.call",
        "tc:turn_1.c1.result",
        "tc:turn_1.c1~2.call",
        "tc:turn_1.c1~2.result",
    ]


def test_a_result_in_a_later_turn_keeps_the_turn_of_its_call_in_its_path() -> None:
    """A pending call's answer is found beside the call."""
    window = window_of(prompt(), call("c1", pending=True), prompt(), result("c1"))
    assert window.items[-1].block.turn_id == "turn_2"
    assert window.items[-1].block.path == "tc:turn_1.c1.result"


def test_a_result_without_a_call_has_a_path_of_its_own_turn() -> None:
    """An orphan is addressed like any other result."""
    assert window_of(prompt(), result("lost")).items[-1].block.path == "tc:turn_1.lost.result"


def test_two_files_of_one_name_are_numbered() -> None:
    """A second attachment of the same name gets the next number."""
    window = window_of(prompt(), Attachment(meta={"file": "a.txt"}), Attachment(meta={"file": "a.txt"}))
    assert paths(window.items)[1:] == ["fi:turn_1.a%2Etxt", "fi:turn_1.a%2Etxt.2"]


def test_a_path_that_is_given_is_kept() -> None:
    """An application may name its blocks itself."""
    assert window_of(prompt(path="ar:mine.user.prompt")).items[0].block.path == "ar:mine.user.prompt"


def test_a_derived_path_steps_aside_for_one_that_was_given() -> None:
    """Where a number is in use the next free one is taken."""
    window = window_of(prompt(), answer(path="ar:turn_1.assistant.completion.2"), answer(), answer())
    assert paths(window.items)[1:] == [
        "ar:turn_1.assistant.completion.2",
        "ar:turn_1.assistant.completion.3",
        "ar:turn_1.assistant.completion.4",
    ]


def test_one_append_cannot_give_a_path_twice() -> None:
    """Two blocks of one append with the same path are refused before anything is written."""
    with pytest.raises(InvalidBlock) as caught:
        fold_of(prompt(path="x:1"), prompt(path="x:1"))
    assert caught.value.field == "path"


def test_the_window_does_not_give_a_live_path_again() -> None:
    """A turn id that comes back goes on numbering behind its live blocks."""
    fold = fold_of(prompt(turn_id="a"), prompt(turn_id="b"))
    grow(fold, prompt(turn_id="a"))
    assert fold.window.items[-1].block.path == "ar:a.user.prompt.2"


async def test_a_path_in_covered_history_is_not_given_again() -> None:
    """A turn id that comes back after its blocks were covered gets new paths, and the old ones stay readable."""
    timeline = await opened(MemoryStore(), policy=None)
    await timeline.append(prompt(turn_id="a", text="first"), call("c1"), result("c1"))
    for n in range(6):
        await timeline.append(prompt(turn_id=f"t{n}", text=words(400)), answer(400))
    await timeline.compact()
    assert "ar:a.user.prompt" not in paths(timeline.window.items)
    stored = await timeline.append(prompt(turn_id="a", text="again"), call("c1"), result("c1"))
    assert [b.path for b in stored] == ["ar:a.user.prompt.2", "tc:a.c1~2.call", "tc:a.c1~2.result"]
    assert (await timeline.read("ar:a.user.prompt")).text == "first"


async def test_a_result_steps_aside_for_a_covered_path_beside_its_call() -> None:
    """Even when another block was given the path that the result would have had, in a turn long past."""
    timeline = await opened(MemoryStore(), policy=None)
    waiting = call("p", response_id="m1", pending=True)
    await timeline.append(prompt(), waiting, answer(path="tc:turn_1.p.result", response_id="m2"))
    for _ in range(6):
        await timeline.append(prompt(text=words(400)), answer(400))
    await timeline.compact()
    assert "tc:turn_1.p.result" not in paths(timeline.window.items)
    [block] = await timeline.append(result("p"))
    assert block.path == "tc:turn_1.p~2.result"


async def test_a_given_path_that_is_in_use_is_refused_and_nothing_is_written() -> None:
    """A path belongs to one block for ever."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(path="x:1"))
    version = timeline.version
    with pytest.raises(PathTaken) as caught:
        await timeline.append(answer(), prompt(path="x:1"))
    assert caught.value.path == "x:1"
    assert timeline.version == version


async def test_reading_a_path_that_no_block_has_says_so() -> None:
    """An unknown path is a typed error that names it."""
    timeline = await opened(MemoryStore())
    with pytest.raises(BlockNotFound) as caught:
        await timeline.read("ar:turn_9.user.prompt")
    assert caught.value.path == "ar:turn_9.user.prompt"


def test_a_summary_takes_no_path_of_a_block() -> None:
    """A summary's path is its own, beside those of the blocks of its turn."""
    fold = fold_of(prompt(turn_id="c"), answer())
    compact_fold(fold, 2)
    assert paths(fold.window.items) == ["su:c.conv.range.summary", "ar:c.assistant.completion"]


def test_calls_of_one_id_that_come_together_are_each_numbered_at_once() -> None:
    """A model may give thousands the same id: none is tried under the numbers of those before it."""
    turns, given, tried = Turns(), set[str](), 0

    def taken(path: str) -> bool:
        nonlocal tried
        tried += 1
        return path in given

    reached: dict[str, int] = {}
    for _ in range(100):
        given.add(turns.path_for(call("c1"), "turn_1", call_path=None, taken=taken, reached=reached))
    assert len(given) == 100
    assert "tc:turn_1.c1~100.call" in given
    assert tried < 2 * 100
