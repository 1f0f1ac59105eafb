from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.lab.rows import row, run_of
from timeline import policies
from timeline.lab.prices import packaged_prices
from timeline.lab.report.data import page_data
from timeline.lab.report.page import page
from timeline.lab.work import Failure, Options, Outcome, Work

MODEL = "claude-opus-4-5"


def work(name: str = "none", file: str = "a.jsonl", limit: int = 1000) -> Work:
    """Return a unit of work; nothing of it is carried out."""
    return Work(file=file, policy=policies.none(max_tokens=limit), name=name, options=Options())


def test_a_column_that_is_mostly_zero_is_told_as_pairs() -> None:
    """Each other value behind the place of its call, which counts from 0; dense columns are whole."""
    calls = (row(1, 10), row(2, 20, lost=7, cause="gap", collapsed=True), row(3, 30, refused="ContextOverflow"))
    data = page_data([work()], [Outcome(runs=(run_of("none", *calls),))])
    [run] = data["limits"][0]["runs"]
    assert (run["units"], run["uncached"]) == ([10, 20, 30], [10, 20, 30])
    assert (run["lost"], run["collapsed"], run["hidden"]) == ([1, 7], [1, 1], [])
    assert run["cause"] == [1, 1 + data["causes"].index("gap")]
    assert run["refused"] == [2, "ContextOverflow"]
    assert data["recordings"][0]["at"] == [0, 60, 120]


def test_the_cheapest_is_told_for_each_limit() -> None:
    """By its place among the limit's rows; null where none keeps to it."""
    units = {("dear", 1000): 9, ("cheap", 1000): 3, ("dear", 2000): 2, ("cheap", 2000): 4}
    works = [work(name, limit=limit) for name, limit in units]
    outcomes = [Outcome(runs=(run_of(name, row(1, cost), limit=limit),)) for (name, limit), cost in units.items()]
    assert [limit["cheapest"] for limit in page_data(works, outcomes)["limits"]] == [1, 0]
    over = Outcome(runs=(run_of("none", row(1, 9, over_limit=True)),))
    assert page_data([work()], [over])["limits"][0]["cheapest"] is None


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("tokens", [100_000, 900_000], ids=["below the tier", "above the tier"])
@pytest.mark.parametrize("model", [MODEL, "claude-sonnet-4-5", "gpt-5.1", "gemini-2.5-pro", "nobody's"])
def test_the_parts_of_a_cost_add_up_and_are_the_prices_own(model: str, tokens: int, *, long: bool) -> None:
    """Whatever the provider takes for writing, for how long, above which line; in dollars if there is a price."""
    price = packaged_prices().price_of(model)
    sums = {"read": tokens // 2, "written": tokens // 4, "uncached": tokens // 4}
    sums["written_long"] = sums["written"] if long else 0
    units = price.units(**sums)
    call = row(1, units, tokens=tokens, model=model, summary_units=12.5, **sums)
    rate = price.money(1) if price.known else 1.0
    [told] = page_data([work()], [Outcome(runs=(run_of("none", call, priced=price.known),))])["limits"][0]["rows"]
    parts = dict(zip(("read", "written", "uncached", "summaries"), told["parts"], strict=True))
    assert sum(told["parts"]) == pytest.approx(rate * (units + 12.5))
    dearer = rate * price.units(uncached=tokens) / tokens
    below = [price.units(read=sums["read"] // 1000), price.units(uncached=sums["uncached"] // 1000)]
    assert [parts["read"], parts["uncached"]] == pytest.approx([dearer * 1000 * part for part in below])
    assert parts["summaries"] == pytest.approx(rate * 12.5)


def test_the_page_knows_what_costs_are_compared_in() -> None:
    """Dollars and what a base token of each model costs; or base tokens, and the models that have no price."""
    calls = (row(1, 10, money=0.5, model=MODEL), row(2, 20, model="nobody's"))
    told = page_data([work()], [Outcome(runs=(run_of("none", *calls[:1]),))])
    assert (told["cost_in"], told["unpriced"]) == ("money", [])
    assert told["recordings"][0]["rates"] == [packaged_prices().price_of(MODEL).money(1)]
    assert told["limits"][0]["rows"][0]["cost"] == told["limits"][0]["runs"][0]["cost"] == 0.5
    told = page_data([work()], [Outcome(runs=(run_of("none", *calls, priced=False),))])
    assert (told["cost_in"], told["unpriced"], told["recordings"][0]["rates"]) == ("units", ["nobody's"], [1.0, 1.0])
    assert told["limits"][0]["rows"][0]["cost"] == told["limits"][0]["runs"][0]["cost"] == 30.0


def test_of_a_path_the_page_holds_what_tells_it_from_the_others() -> None:
    """A page that is passed on says nothing about the folders of a machine; two files of one name keep a folder."""

    def names(*files: str) -> list[str]:
        runs = [Outcome(runs=(run_of("none", row(1, 1), file=file, conversation=file),)) for file in files]
        data = page_data([work(file=file) for file in files], runs)
        return [recording["name"] for recording in data["recordings"]]

    assert names("/secret/folder/a.jsonl", "/secret/other/b.jsonl") == ["a.jsonl", "b.jsonl"]
    assert names("/secret/one/a.jsonl", "/secret/two/a.jsonl") == ["one/a.jsonl", "two/a.jsonl"]
    failed = Outcome(failure=Failure(type="ImportFailed", message="/secret/bad.jsonl: the format is not known."))
    assert page_data([work(file="/secret/bad.jsonl")], [failed])["failures"] == ["bad.jsonl: the format is not known."]


def test_of_a_policys_path_the_page_holds_its_name() -> None:
    """As of a recording's; what is no file keeps its name."""
    tried = ("none", "/secret/one/mine.toml", "/secret/two/mine.toml")
    outcomes = [Outcome(runs=(run_of(name, row(1, 1)),)) for name in tried]
    data = page_data([work(name) for name in tried], outcomes)
    assert data["policies"] == ["none", "one/mine.toml", "two/mine.toml"]
    assert [line["policy"] for line in data["limits"][0]["rows"]] == data["policies"]
    assert "secret" not in page([work(tried[1])], outcomes[1:2])


def test_nothing_that_a_recording_says_can_be_taken_for_html() -> None:
    """No tag, no entity, no end of a program: between the figures' tags is JSON without any of their letters."""
    evil = "</script><script>alert(1)</script><!-- &lt; \u2028 \ud800 ${x} $name"
    outcome = Outcome(runs=(run_of(evil, row(1, 1, model=evil), file=evil, conversation=evil),))
    failed = Outcome(failure=Failure(type="ImportFailed", message=evil))
    html = page([work(evil, evil), work(evil, "b")], [outcome, failed])
    html.encode()
    figures = re.search(r'<script type="application/json" id="figures">([^<>&]*)</script>', html)
    assert figures is not None
    told: dict[str, Any] = json.loads(figures[1])
    assert told["policies"] == told["failures"] == [evil]
    assert evil not in html


def test_no_control_character_of_a_recording_is_on_the_page() -> None:
    """A name cannot reorder the text around it, nor act where the page is printed by a terminal."""
    evil = "a\x1b[31m\x9b\u202e\u2066\x07"
    outcome = Outcome(runs=(run_of(evil, row(1, 1, model=evil), file=evil, conversation=evil),))
    html = page([work(evil, evil)], [outcome])
    figures = re.search(r'<script type="application/json" id="figures">([^<>&]*)</script>', html)
    assert figures is not None
    assert json.loads(figures[1])["policies"] == ["a␛[31m\ufffd\ufffd\ufffd␇"]
    assert not re.search(r"\\u(00[019][0-9a-f]|20[26][0-9a-f])", figures[1])


def test_a_page_is_the_same_for_the_same_figures() -> None:
    """It says nothing about when or where it was made."""
    works, outcomes = [work()], [Outcome(runs=(run_of("none", row(1, 1)),))]
    assert page(works, outcomes) == page(works, outcomes)


def test_a_page_names_nothing_outside_of_itself() -> None:
    """No address is loaded: the only ones are in the library's comment and licence, and in names of SVG."""
    html = page([work()], [Outcome(runs=(run_of("none", row(1, 1)),))])
    assert set(re.findall(r"https?://[\w./-]+", html)) == {
        "https://github.com/leeoniya/uPlot",
        "http://www.w3.org/2000/svg",
    }
    assert re.findall(r'(?:src|href)="([^"]*)"', html.partition("<script")[0]) == ["data:,"]
