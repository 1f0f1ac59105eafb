"""Names that calls and prompts repeat, in the summary without a model."""

from __future__ import annotations

from typing import Any

from timeline.blocks import ToolCall
from timeline.ports import SummaryRequest
from timeline.summarizers.extractive import extract
from timeline.summarizers.naming import Names
from timeline.summarizers.ranking import Point, Section, ranked
from timeline.tokens import get_counter


def _edit(number: int, old: str, new: str) -> ToolCall:
    arguments: dict[str, Any] = {"file_path": "src/upload.py", "old_string": old, "new_string": new}
    return ToolCall(call_id=f"c{number}", name="Edit", arguments=arguments)


def test_a_changed_file_is_told_with_the_names_in_its_changes_once() -> None:
    """Those that most calls name come first; the next summary tells the file once, with the newer names."""
    edits = (_edit(1, "max_bytes = 1", "max_bytes = 2"), _edit(2, "max_bytes", "chunk_size"))
    counter = get_counter("o200k_base")
    first = extract(SummaryRequest("history", edits, None, None, 800, counter))
    assert "## Files changed\n- src/upload.py: `max_bytes`, `chunk_size`" in first
    later = (_edit(3, "read_all", "readChunk"),)
    second = extract(SummaryRequest("history", later, first, None, 800, counter))
    assert second.count("src/upload.py: `") == 1
    assert "`readChunk`" in second


def test_a_line_with_names_that_calls_repeat_outranks_one_without() -> None:
    """Of two lines that are alike, the one that the work is about comes first."""
    names = Names()
    for _ in range(3):
        names.take({"pattern": "upload_limit"})
    lines = [
        Point(Section.DONE, f"The value of {name} is checked once.", 1) for name in ("upload_limit", "cache_limit")
    ]
    assert [point for point, _ in ranked(lines, (), names.weight)] == lines
    assert [point for point, _ in ranked(lines[::-1], (), names.weight)] == lines


def test_each_call_counts_a_name_once() -> None:
    """A file that is written whole would outweigh every step otherwise."""
    names = Names()
    names.take({"content": "make_it " * 500})
    names.take("Where is make_it?")
    assert names.times["make_it"] == 2


def test_half_of_a_name_that_a_preview_cut_is_none() -> None:
    """What is shown of a long argument may end inside a name."""
    names = Names()
    names.take({"content": "claimAgent(newOpen[… left out; all arguments: @4]"})
    assert set(names.times) == {"claimAgent"}
