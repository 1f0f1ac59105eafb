from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.frontier.points import Point
from tests.frontier.settings import DESIGNS_AND_PEERS, LONGER, PRESETS, SETTINGS
from tests.frontier.tables import DATA, PAGE, SUMMARY, as_json, tables, with_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT: Final = 32_000
BEST: Final = next(iter(SETTINGS))
FORMS: Final = [name for forms in LONGER.values() for name in forms]


def points(limit: int, files: Sequence[str]) -> list[Point]:
    """Return one setting that betters everything, one preset as good as a default, and defaults that are all the same.

    The more recordings, the more of it is in sight. `opencode` refuses.
    """
    shown = 10_000.0 * len(files)
    default = Point("", limit, 0.6, shown, 0.2, sound=True)
    return [
        *(default._replace(policy=name, sound=name != "opencode") for name in DESIGNS_AND_PEERS),
        *(default._replace(policy=name) for name in PRESETS),
        *(default._replace(policy=name, cost=0.45) for name in FORMS),
        *(default._replace(policy=name, cost=0.54 if name == BEST else 0.9) for name in SETTINGS),
    ]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What a search of four recordings finds."""
    return tables(points, [LIMIT], ["a", "c"], ["b", "d"])


def test_a_default_is_answered_by_the_cheapest_setting_on_either_half(found: dict[str, Any]) -> None:
    """A default that refuses compares with nothing, and is in no row."""
    assert [row["policy"] for row in found["frontier"]] == [BEST]
    assert {row["published"]["policy"] for row in found["published"]} == {*DESIGNS_AND_PEERS} - {"opencode"}
    assert {(row["half"], row["ours"]["policy"], row["ratio"]) for row in found["published"]} == {
        ("searched", BEST, 0.9),
        ("others", BEST, 0.9),
    }


def test_a_preset_is_held_against_the_cheapest_design(found: dict[str, Any]) -> None:
    """One row a preset and half, with the ratio of their costs."""
    assert [(row["half"], row["preset"]["policy"], row["ratio"]) for row in found["presets"]] == [
        (half, name, 1.0) for half in ("searched", "others") for name in PRESETS
    ]


def test_a_search_is_repeated_on_each_half_of_the_recordings(found: dict[str, Any]) -> None:
    """Of four recordings there are six ways to take two."""
    sound = len(DESIGNS_AND_PEERS) - 1
    assert [(row["by_found"], row["by_own"], row["published"]) for row in found["one_half_searched"]] == [
        (sound, sound, sound)
    ] * 2
    assert found["any_half_searched"] == [
        {"limit": LIMIT, "ways": 6, "by_found": 1.0, "all_by_found": 6, "by_own": 1.0, "all_by_own": 6}
    ]
    assert found["one_setting_on_both_halves"] == [
        {"limit": LIMIT, "by_setting": sound, "by_setting_or_own": sound, "of": sound}
    ]


def test_an_hour_is_a_share_of_the_default_without_it(found: dict[str, Any]) -> None:
    """For the fixed part and for everything, on both halves."""
    assert [row["published"] for row in found["for_an_hour"]] == [
        name for name in DESIGNS_AND_PEERS if name != "opencode"
    ]
    assert found["for_an_hour"][0]["fixed_part"] == found["for_an_hour"][0]["everything"]
    assert found["for_an_hour"][0]["everything"] == {"searched": 0.75, "others": 0.75}


def test_tables_read_back_from_their_json(found: dict[str, Any]) -> None:
    """A line for each row."""
    text = as_json(found)
    assert json.loads(text) == found
    assert text.count("\n  {") == sum(len(value) for value in found.values() if isinstance(value, list))


def test_the_committed_data_has_the_tables_that_a_search_writes(found: dict[str, Any]) -> None:
    """Every table, with rows of the same columns."""
    committed = json.loads(DATA.read_text(encoding="utf-8"))
    assert as_json(committed) == DATA.read_text(encoding="utf-8")
    assert list(committed) == list(found)
    assert {name: [*value[0]] for name, value in committed.items() if isinstance(value, list)} == {
        name: [*value[0]] for name, value in found.items() if isinstance(value, list)
    }


def test_the_page_sums_up_the_committed_data() -> None:
    """The table in docs/lab.md is made from docs/lab/frontier.json."""
    page = PAGE.read_text(encoding="utf-8")
    assert SUMMARY.search(page)
    assert with_summary(page, json.loads(DATA.read_text(encoding="utf-8"))) == page
