"""The newest full content of each file: what hiding spares longest (policy evidence, finding 4)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import call, paths, prompt, result, window_of
from timeline.blocks import Attachment, Block
from timeline.fold.window import redacted
from timeline.planning.hide import NewestContents

if TYPE_CHECKING:
    from types import FrameType


def read(id_: str, file: str, **part: Any) -> list[Block]:
    """Return a round that reads a file, or a part of it."""
    return [call(id_, "Read", arguments={"file_path": file, **part}), result(id_)]


def write(id_: str, file: str, **arguments: Any) -> list[Block]:
    """Return a round that writes a file."""
    given = {"file_path": file, "content": "x", **arguments}
    return [call(id_, "Write", arguments=given), result(id_)]


def newest(*blocks: Block) -> list[str]:
    """Return the short names of the blocks that hold the newest content."""
    window = window_of(prompt(), *blocks)
    found = NewestContents().of(window.items)
    return [path.removeprefix("tc:turn_1.") for path in paths(i for i in window.items if i.version in found)]


def test_the_result_of_a_read_holds_its_content() -> None:
    """The newest read of each file, not the one before."""
    assert newest(*read("a", "x.py"), *read("b", "y.py"), *read("d", "x.py")) == ["b.result", "d.result"]


def test_a_call_that_writes_a_whole_file_holds_its_content() -> None:
    """It supersedes an earlier read; a later read supersedes it."""
    assert newest(*read("a", "x.py"), *write("b", "x.py")) == ["b.call"]
    assert newest(*write("a", "x.py"), *read("b", "x.py")) == ["b.result"]


def test_an_edit_holds_no_content() -> None:
    """What was read before it is still the newest full content."""
    edit = call("b", "Edit", arguments={"file_path": "x.py", "old_string": "a", "new_string": "b"})
    assert newest(*read("a", "x.py"), edit, result("b")) == ["a.result"]


@pytest.mark.parametrize("part", [{"offset": 10}, {"limit": 5}, {"view_range": [1, 9]}, {"start_line": 3}])
def test_each_part_of_a_file_counts_by_itself(part: dict[str, Any]) -> None:
    """A range that was read says nothing of the rest, nor the rest of it."""
    assert newest(*read("a", "x.py"), *read("b", "x.py", **part)) == ["a.result", "b.result"]
    assert newest(*read("a", "x.py", **part), *read("b", "x.py", **part)) == ["b.result"]


@pytest.mark.parametrize("failed_as", [{"is_error": True}, {"exit_status": 1}])
def test_a_failed_read_supersedes_nothing(failed_as: dict[str, Any]) -> None:
    """Its result holds an error, not the file."""
    failed = [call("b", "Read", arguments={"file_path": "x.py"}), result("b", **failed_as)]
    assert newest(*read("a", "x.py"), *failed) == ["a.result"]


@pytest.mark.parametrize("failed_as", [{"is_error": True}, {"exit_status": 1}])
def test_a_failed_write_supersedes_nothing(failed_as: dict[str, Any]) -> None:
    """What it would have written is not in the file."""
    failed = [
        call("b", "Write", arguments={"file_path": "x.py", "content": "x"}),
        result("b", **failed_as),
    ]
    assert newest(*read("a", "x.py"), *failed) == ["a.result"]


def test_a_read_without_a_result_supersedes_nothing() -> None:
    """It is open, or was interrupted."""
    assert newest(*read("a", "x.py"), call("b", "Read", arguments={"file_path": "x.py"})) == ["a.result"]


def test_searches_commands_and_torn_arguments_hold_no_content() -> None:
    """Only a file's own content is spared."""
    assert newest(call("a", "Grep", arguments={"pattern": "x", "path": "x.py"}), result("a")) == []
    assert newest(call("a", "Bash", arguments={"command": "cat x.py"}), result("a")) == []
    assert newest(call("a", "Read", arguments='{"file_path": "x.py"'), result("a")) == []


def test_the_newest_attachment_of_a_name_holds_its_content() -> None:
    """One without a name is a file of its own."""
    window = window_of(
        prompt(),
        Attachment(text="old", meta={"file": "plan.md"}),
        Attachment(text="new", meta={"file": "plan.md"}),
        Attachment(text="pasted"),
    )
    assert NewestContents().of(window.items) == {4, 5}


def test_what_was_found_before_changes_nothing() -> None:
    """Neither as the log grows, a result answers its call or fails, nor where a block was redacted."""
    blocks = [*read("a", "x.py"), *write("b", "x.py"), *read("d", "y.py"), result("e"), *read("f", "x.py", offset=3)]
    failed = [call("g", "Read", arguments={"file_path": "y.py"}), result("g", is_error=True)]
    contents = NewestContents()
    for number in range(len(blocks) + len(failed) + 1):
        items = window_of(prompt(), *[*blocks, *failed][:number]).items
        assert contents.of(items) == NewestContents().of(items)
    grown = window_of(prompt(), *blocks).items
    for end in (*range(len(grown) + 1), *range(len(grown), 0, -1)):
        assert contents.of(grown[:end]) == NewestContents().of(grown[:end])
    for place, item in enumerate(grown):
        changed = [*grown[:place], redacted(item, 99), *grown[place + 1 :]]
        assert contents.of(changed) == NewestContents().of(changed)


def test_a_call_is_looked_at_once() -> None:
    """Each plan of a hide asked all calls of the window anew which files they name."""
    items, looked = window_of(prompt(), *read("a", "x.py"), *write("b", "y.py"), *read("d", "z.py")).items, 0

    def tick(frame: FrameType, event: str, _: object) -> None:
        nonlocal looked
        looked += event == "call" and frame.f_code.co_name == "tool_use"

    contents = NewestContents()
    sys.setprofile(tick)
    try:
        for _ in range(5):
            contents.of(items)
    finally:
        sys.setprofile(None)
    assert looked == 3
