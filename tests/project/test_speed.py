from __future__ import annotations

import gc
import json
import math
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.bench import parts
from tests.bench.rows import Measured, Row, against, exponent, growth, percentile, ratios
from tests.depth import at_night
from tests.project import speed
from tests.project.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROW = Row("Search", "a search", "FTS5", Measured(2.5, 2.0, 3.5, 9), 4.0)


@pytest.fixture
def no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the collector alone: what is measured is made up, and the garbage is that of the tests before."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


def test_the_page_of_speed_shows_what_was_measured() -> None:
    """`python -m tests.project.speed` writes the tables and the plots from the rows that were kept."""
    text = speed.PAGE.read_text(encoding="utf-8")
    assert speed.with_measured(text) == text
    drawn = speed.plots()
    assert set(speed.FOLDER.glob("*.svg")) == set(drawn)
    assert [file.name for file, plot in drawn.items() if file.read_text(encoding="utf-8") != plot] == []
    for plot in drawn.values():
        assert ET.fromstring(plot).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own


@at_night
@pytest.mark.parametrize("part", parts.names())
def test_every_part_of_the_benchmarks_can_be_measured(part: str) -> None:
    """Whatever the library's statements and calls are by now; how fast it is is not asked here."""
    command = [sys.executable, "-m", "tests.bench", part]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["rows"], done.stderr


@pytest.mark.parametrize(
    ("row", "ok"),
    [
        (ROW, True),
        (ROW._replace(bar=2.4), False),
        (ROW._replace(bar=2.4, least=True), True),
        (ROW._replace(bar=2.6, least=True), False),
        (ROW._replace(bar=2.6, least=True, applies=False), True),
    ],
)
def test_a_row_is_kept_on_its_side_of_the_bar(row: Row, ok: bool) -> None:  # noqa: FBT001 - an outcome
    """A bar is a ceiling, or a floor, or does not apply to the machine; as JSON the row is the same."""
    assert row.ok is ok
    assert row.as_json()["ok"] is ok
    assert Row.from_json(json.loads(json.dumps(row.as_json()))) == row


def test_a_row_that_is_measured_again_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    """Rows of other parts stay as they were measured, and those of the same work beside another limit."""
    other, beside = ROW._replace(part="Files"), ROW._replace(limit="another one")
    again = ROW._replace(measured=Measured(3.0, 2.9, 3.1, 7))
    file = tmp_path / "measured.json"
    before = [row.as_json() for row in (ROW, other, beside)]
    file.write_text(speed.joined(file, {"machine": {}, "rows": before}), encoding="utf-8")
    kept = json.loads(speed.joined(file, {"machine": {}, "rows": [again.as_json()]}))["rows"]
    assert [Row.from_json(row) for row in kept] == [again, other, beside]


@pytest.mark.usefixtures("no_garbage")
def test_pairs_are_added_until_the_bar_is_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values around the bar are measured longer than values far from it."""
    monkeypatch.setattr("tests.bench.rows.MOST_SECONDS", math.inf)

    def noisy() -> Iterator[float]:
        while True:
            yield from (1.5, 2.5)

    near, far = noisy(), noisy()
    assert len(ratios(lambda: next(near), lambda: 1.0, 2.0, most=12)) == 12
    assert len(ratios(lambda: next(far), lambda: 1.0, 9.0, most=12)) == 7
    assert against("Search", "work", "limit", (lambda: 1.0, lambda: 4.0), 2.0, least=True).measured.median == 4


def test_an_interval_holds_the_median_of_what_was_measured() -> None:
    """Of few values it is all of them; of many it leaves out what is far away."""
    assert Measured.of([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0, 3)
    low, high = Measured.of(list(range(101)))[1:3]
    assert 38 <= low <= 41
    assert 59 <= high <= 62


@pytest.mark.usefixtures("no_garbage")
def test_growth_is_the_exponent_of_a_fit() -> None:
    """Work that takes four times as long for twice the size has exponent 2."""
    row = growth("Search", "work", {size: lambda size=size: size * size / 1e6 for size in (10, 20, 40, 80)}, 2.1)  # type: ignore[misc]
    assert row.measured.median == pytest.approx(2.0)
    assert row.points[0] == (10, 1e-4)
    assert exponent([1, 10], [5.0, 5.0]) == 0


def test_one_pause_of_the_machine_does_not_decide_a_percentile() -> None:
    """The percentile of the steps is a median over runs of them."""
    steps = [0.001] * 500
    assert percentile("A step", "a step", [*steps[:-2], 0.5, 0.5], 15).measured.median == 1
    assert (
        percentile("A step", "a step", [0.02 if n % 10 == 0 else step for n, step in enumerate(steps)], 15).ok is False
    )
