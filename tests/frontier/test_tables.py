from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.frontier.halves import halves
from tests.frontier.hand import LIMIT, figures, replays_of
from tests.frontier.pages import PAGES, with_tables
from tests.frontier.settings import NAMED
from tests.frontier.tables import DATA, answered_anew, as_json, renewed, tables

FILES: Final = [f"{name}-{kept}" for name in "abcd" for kept in ("1h", "5m")]
SETTING: Final = "keep 0.1 4/8/4 cold 0.3"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What a search of eight recordings finds: all that has a name costs 100, and one setting of ours 80."""
    replays = replays_of({name: figures(100) for name in NAMED} | {SETTING: figures(80)}, FILES)
    split = halves(FILES, replays.lifetime)
    return tables(split, replays, replays, {LIMIT: {"pi": SETTING}})


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


def test_a_policy_that_changed_is_measured_anew_where_nobody_looked_alone(found: dict[str, Any]) -> None:
    """Other rows stay; what the searched half gave before holds no more."""
    replays = replays_of(
        {name: figures(100) for name in ("none", "cut_point", "keep_last")} | {"pi": figures(50)}, FILES
    )
    again = renewed(found, halves(FILES, replays.lifetime), replays, [LIMIT])
    rows = [(row["half"], row["lifetime"], row["cost"][0]) for row in again["policies"] if row["policy"] == "pi"]
    assert rows == [("unseen", "all", 0.5), ("unseen", "1h", 0.5), ("unseen", "5m", 0.5)]
    others = [[row for row in each["policies"] if row["policy"] == "cline"] for each in (found, again)]
    assert others[0] == others[1]
    assert again["answers"] == found["answers"]


def test_another_setting_for_a_default_takes_the_place_of_the_one_before(found: dict[str, Any]) -> None:
    """On all unseen recordings and by lifetime; all else stays."""
    replays = replays_of({"none": figures(100), "pi": figures(100), "gentle": figures(70)}, FILES)
    again = answered_anew(found, halves(FILES, replays.lifetime), replays, {LIMIT: {"pi": "gentle"}})
    rows = [(row["lifetime"], row["published"], row["setting"], row["ratio"]) for row in again["answers"]]
    assert rows == [("all", "pi", "gentle", 0.7), ("1h", "pi", "gentle", 0.7), ("5m", "pi", "gentle", 0.7)]
    assert again["policies"] == found["policies"]


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
