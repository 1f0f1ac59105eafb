from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.frontier.halves import halves
from tests.frontier.hand import LIMIT, figures, replays_of
from tests.frontier.pages import PAGES, measured, with_tables
from tests.frontier.settings import NAMED, of_answers
from tests.frontier.tables import DATA, Replayed, answers_in, as_json, tables

if TYPE_CHECKING:
    from tests.frontier.points import Replays
    from timeline.usage import CacheKind

FILES: Final = [f"{name}-{kept}" for name in "abcd" for kept in ("1h", "5m")]
SETTING: Final = "keep 0.1 4/8/4 cold 0.3"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What a search of eight recordings finds: all that has a name costs 100, and one setting of ours 80."""
    replays = replays_of({name: figures(100) for name in NAMED} | {SETTING: figures(80)}, FILES)
    split = halves(FILES, replays.lifetime)
    unseen = [file for alike in split.unseen.values() for file in alike]
    caches: dict[CacheKind, Replays] = {
        "5m": replays_of({"none": figures(100), "balanced": figures(50)}, unseen),
        "none": replays_of({"none": figures(100), "balanced": figures(40)}, unseen),
    }
    return tables(split, Replayed(replays, caches, replays), {LIMIT: {"pi": SETTING}}, date(2026, 1, 31))


def test_each_policy_has_a_row_for_each_half_and_lifetime(found: dict[str, Any]) -> None:
    """All recordings together, and those of either lifetime."""
    rows = [(row["half"], row["lifetime"]) for row in found["policies"] if row["policy"] == "balanced"]
    assert rows == [(half, kept) for half in ("searched", "unseen") for kept in ("all", "1h", "5m")]


def test_an_answer_is_of_the_unseen_half_alone(found: dict[str, Any]) -> None:
    """Four of the eight recordings, and two of each lifetime."""
    assert [(row["lifetime"], row["recordings"], row["ratio"]) for row in found["answers"]] == [
        ("all", 4, 0.8),
        ("1h", 2, 0.8),
        ("5m", 2, 0.8),
    ]


def test_the_answers_of_tables_are_measured_again_as_they_are(found: dict[str, Any]) -> None:
    """By limit, the setting for each published default: none is chosen anew."""
    assert answers_in(found) == {LIMIT: {"pi": SETTING}}
    assert [name for name, _ in of_answers(answers_in(found))] == [SETTING]


def test_each_kind_of_cache_has_rows_of_its_own(found: dict[str, Any]) -> None:
    """Of the unseen half alone, with what nine in ten draws do not exceed."""
    rows = [(row["cache"], row["policy"], row["recordings"], row["cost"]) for row in found["caches"]]
    assert rows == [("5m", "balanced", 4, [0.5, 0.5]), ("none", "balanced", 4, [0.4, 0.4])]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_sum_up_the_committed_data(page: Any) -> None:
    """Their tables are made from docs/lab/frontier.json."""
    text = page.read_text(encoding="utf-8")
    assert all(f"<!-- {name} -->\n|" in text for name in PAGES[page])
    assert with_tables(page, json.loads(DATA.read_text(encoding="utf-8"))) == text


def test_a_page_says_when_it_was_measured_and_on_how_many_recordings(found: dict[str, Any]) -> None:
    """Those of the half that no search looked at."""
    assert measured(found) == (
        "Measured on 31 January 2026, all at once and with the code of that day, on 4 recordings (1h: 2, 5m: 2).\n"
    )
