from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from tests.frontier.halves import Halves
from tests.frontier.hand import LIMIT, figures, replays_of
from tests.frontier.split import STORED, NotThere, Split, read_split
from tests.frontier.tables import DATA, SEARCHED, UNSEEN
from tests.frontier.trial import lines
from tests.recorded import needs_recordings, recorded

if TYPE_CHECKING:
    from pathlib import Path

EMPTY: Final = Split(made="by hand", recordings=())


def written(folder: Path, *names: str) -> list[str]:
    """Write files that differ; a file's name ends with its lifetime."""
    for name in names:
        (folder / name).write_text(name, encoding="utf-8")
    return [str(folder / name) for name in names]


def lifetime(file: str) -> str:
    """Return the lifetime that a file's name ends with."""
    return file.rpartition("-")[2]


def test_every_recording_has_one_half() -> None:
    """By its bytes, and by its name."""
    placed = read_split().recordings
    assert len({one.sha256 for one in placed}) == len({one.name for one in placed}) == len(placed)


def test_the_halves_are_those_that_the_docs_count() -> None:
    """docs/lab/frontier.json says of how many recordings each half is."""
    counted = json.loads(DATA.read_text(encoding="utf-8"))["recordings"]
    placed = Counter((one.half, one.lifetime) for one in read_split().recordings)
    assert placed == {(side, kept): number for side, half in counted.items() for kept, number in half.items()}


@needs_recordings
def test_the_recordings_that_tests_are_run_with_are_found() -> None:
    """Twelve of them were measured, six on either side; the others are Gemini CLI's and SWE-agent's."""
    files = [str(file) for folder in ("claude-code", "claude-code-damaged", "pi") for file in recorded(f"{folder}/*")]
    found = read_split().halves([file for file in files if file.endswith(".jsonl")])
    assert {side: len(half["5m"]) for side, half in found._asdict().items()} == {SEARCHED: 6, UNSEEN: 6}


def test_a_recording_is_found_by_its_bytes_in_whatever_order_and_under_whatever_name(tmp_path: Path) -> None:
    """The halves stay as they were placed."""
    files = written(tmp_path, "a-1h", "b-1h", "c-5m", "d-5m", "e-1h")
    split = EMPTY.with_new(files, lifetime)
    (tmp_path / "z-5m").write_bytes((tmp_path / "a-1h").read_bytes())
    a, b, c, d, e = files
    assert split.halves([e, d, c, b, str(tmp_path / "z-5m")]) == Halves(
        searched={"1h": [str(tmp_path / "z-5m"), e], "5m": [c]}, unseen={"1h": [b], "5m": [d]}
    )
    assert split.halves([a]) == Halves(searched={"1h": [a]}, unseen={})


def test_new_recordings_move_no_old_one(tmp_path: Path) -> None:
    """What was searched stays searched."""
    first = written(tmp_path, "a-1h", "b-1h")
    more = written(tmp_path, "0-1h", "1-1h")
    split = EMPTY.with_new(first, lifetime).with_new([*more, *first], lifetime)
    assert [(one.name, one.half) for one in split.recordings] == [
        ("a-1h", SEARCHED),
        ("b-1h", UNSEEN),
        ("0-1h", SEARCHED),
        ("1-1h", UNSEEN),
    ]


def test_a_search_refuses_what_nobody_may_look_at(tmp_path: Path) -> None:
    """Under any name; and what has no half."""
    seen, unseen, new = written(tmp_path, "a-1h", "b-1h", "c-1h")
    split = EMPTY.with_new([seen, unseen], lifetime)
    assert split.searchable([seen]) == {"1h": [seen]}
    with pytest.raises(NotThere, match=f"{unseen}: of the half that no search may look at"):
        split.searchable([seen, unseen])
    with pytest.raises(NotThere, match=f"{new}: of neither half"):
        split.searchable([new])


def test_it_reads_back_as_it_was_stored(tmp_path: Path) -> None:
    """With a line for each recording, in the stored one too."""
    split = EMPTY.with_new(written(tmp_path, "a-1h", "b-5m"), lifetime)
    split.store(tmp_path / "split.json")
    assert read_split(tmp_path / "split.json") == split
    read_split().store(tmp_path / "split.json")
    assert (tmp_path / "split.json").read_bytes() == STORED.read_bytes()
    assert STORED.read_text(encoding="utf-8").count("\n  {") == len(read_split().recordings)


def test_a_trial_says_what_a_policy_costs_and_leaves() -> None:
    """A line for each policy but the one that costs are shares of."""
    found = replays_of({"none": figures(100), "ours": figures(80)}, ["a-1h", "b-5m"])
    [line] = lines(found, LIMIT, found.files)
    assert line == "ours  0.800  0.800  1.000/0.600  1.000  0.800 (0.800)  0  10,000  yes"
