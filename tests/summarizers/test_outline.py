"""What is read of an earlier summary, by whatever hand."""

from __future__ import annotations

from timeline.summarizers.outline import read_outline


def test_an_entry_of_a_list_is_one_point_however_deep_it_is() -> None:
    """Its sentences belong together; those of prose are points of their own."""
    points = read_outline("## Done\n- Built it. It runs.\n  - Tested it. It passes.\nWrote it down. Sent it.")
    assert [point.text for point in points] == [
        "Built it. It runs.",
        "Tested it. It passes.",
        "Wrote it down.",
        "Sent it.",
    ]


def test_an_entry_about_a_file_is_kept_longer_than_one_of_prose() -> None:
    """Half of a path leads nowhere, and half of a sentence is read all the same."""
    long = "word " * 60
    prose, file = read_outline(f"## Decisions\n- {long}\n## Files\n- {long}")
    assert len(prose.text) < len(file.text)
