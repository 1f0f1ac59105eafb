"""The tables of docs/lab/frontier.json: what a search finds, as rows that name their limit and their half.

A short table in docs/lab.md sums them up.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tests.frontier.carrying import carried, halves, held, share
from tests.frontier.points import answers, frontier
from tests.frontier.settings import (
    DESIGNS,
    DESIGNS_AND_PEERS,
    EVERYTHING,
    FIXED_PART,
    LONGER,
    PRESETS,
    SETTINGS,
    longer,
)
from tests.project.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from tests.frontier.points import Point

Row: TypeAlias = dict[str, Any]
Points: TypeAlias = "Callable[[int, Sequence[str]], list[Point]]"
"""What all policies come to at a limit over some recordings."""

DATA: Final = ROOT / "docs" / "lab" / "frontier.json"
PAGE: Final = ROOT / "docs" / "lab.md"
SUMMARY: Final = re.compile(r"(?<=<!-- frontier -->\n).*?(?=<!-- /frontier -->)", re.DOTALL)
"""What is between the marks of the page."""
BAR: Final = 0.95
"""What a setting of ours may cost of a published default, to count as better."""
SEARCHED: Final = "searched"
OTHERS: Final = "others"


def tables(points: Points, limits: Sequence[int], searched: Sequence[str], others: Sequence[str]) -> dict[str, Any]:
    """Return every table by its name, with how many recordings and settings they are made from.

    Args:
        points: what all policies come to.
        limits: of the context, in tokens.
        searched: the recordings that are searched.
        others: the recordings that only what was found is held against.
    """
    best = {limit: frontier(_of(points(limit, searched), SETTINGS)) for limit in limits}
    halves_of = {SEARCHED: searched, OTHERS: others}
    looked_at = {
        (limit, half): (points(limit, files), [*SETTINGS] if half == SEARCHED else [p.policy for p in best[limit]])
        for half, files in halves_of.items()
        for limit in limits
    }
    return {
        "recordings": {half: len(files) for half, files in halves_of.items()},
        "settings": len(SETTINGS),
        "frontier": [{"limit": limit, **_point(point)} for limit in limits for point in best[limit]],
        "presets": [
            {"limit": limit, "half": half, **row}
            for (limit, half), (found, _) in looked_at.items()
            for row in _presets(found)
        ],
        "published": [
            {"limit": limit, "half": half, **row}
            for (limit, half), (found, settings) in looked_at.items()
            for row in _answers(found, settings)
        ],
        "one_half_searched": [*_both_ways(points, limits, searched, others)],
        "any_half_searched": [_any_half(points, limit, [*searched, *others]) for limit in limits],
        "one_setting_on_both_halves": [_held(points, limit, searched, others) for limit in limits],
        "for_an_hour": [row for limit in limits for row in _for_an_hour(points, limit, searched, others)],
    }


def as_json(found: dict[str, Any]) -> str:
    """Write tables as JSON with a line for each row, so that two searches differ by lines."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {_value(value)}" for name, value in found.items()) + "\n}\n"


def with_summary(text: str, found: dict[str, Any]) -> str:
    """Return a page with the table that sums up what a search found."""
    columns = (
        "limit",
        "settings found",
        "defaults answered on the other half",
        "the halves swapped",
        "any half searched",
        "one setting on both halves",
    )
    ways = zip(found["one_half_searched"][0::2], found["one_half_searched"][1::2], strict=True)
    rows = [columns, ["---"] * len(columns)]
    for (one, other), any_half, both in zip(
        ways, found["any_half_searched"], found["one_setting_on_both_halves"], strict=True
    ):
        answered = [row["ratio"] for row in _published(found, one["limit"])]
        rows.append(
            [
                f"{one['limit']:,}",
                f"{one['found']} of {found['settings']}",
                f"{sum(ratio is not None and ratio <= BAR for ratio in answered)} of {len(answered)}",
                f"{other['by_found']} of {other['published']}",
                f"{any_half['by_found']:.0%}",
                f"{both['by_setting']} of {both['of']}",
            ]
        )
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return SUMMARY.sub(lambda _: table, text)


def _published(found: dict[str, Any], limit: int) -> list[Row]:
    return [row for row in found["published"] if (row["limit"], row["half"]) == (limit, OTHERS)]


def _value(value: Any) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in value) + "\n]"


def _of(points: Iterable[Point], names: Collection[str]) -> list[Point]:
    return [point for point in points if point.policy in names]


def _presets(found: Sequence[Point]) -> list[Row]:
    """Each preset beside the cheapest of the published designs that refuses nothing."""
    cheapest = min((point for point in _of(found, DESIGNS) if point.sound), key=lambda point: point.cost)
    return [
        {"preset": _point(ours), "design": _point(cheapest), "ratio": round(ours.cost / cheapest.cost, 3)}
        for ours in _of(found, PRESETS)
    ]


def _answers(found: Sequence[Point], settings: Collection[str]) -> list[Row]:
    return [
        {
            "published": _point(answer.published),
            "ours": None if answer.ours is None else _point(answer.ours),
            "ratio": None if answer.ratio is None else round(answer.ratio, 3),
        }
        for answer in answers(_of(found, DESIGNS_AND_PEERS), _of(found, settings))
    ]


def _both_ways(points: Points, limits: Iterable[int], searched: Sequence[str], others: Sequence[str]) -> Iterator[Row]:
    for limit in limits:
        for half, one, other in ((SEARCHED, searched, others), (OTHERS, others, searched)):
            got = carried(points(limit, one), points(limit, other), SETTINGS, LONGER, BAR)
            yield {"limit": limit, "half": half, **got._asdict()}


def _any_half(points: Points, limit: int, files: Sequence[str]) -> Row:
    sides = ((points(limit, one), points(limit, other)) for one, other in halves(sorted(files)))
    ways = [carried(one, other, SETTINGS, LONGER, BAR) for one, other in sides]
    by_found, by_own = (
        share((getattr(way, answered), way.published) for way in ways) for answered in ("by_found", "by_own")
    )
    return {
        "limit": limit,
        "ways": len(ways),
        "by_found": round(by_found.share, 2),
        "all_by_found": by_found.whole,
        "by_own": round(by_own.share, 2),
        "all_by_own": by_own.whole,
    }


def _held(points: Points, limit: int, searched: Sequence[str], others: Sequence[str]) -> Row:
    sides = points(limit, searched), points(limit, others)
    longer_too = [*SETTINGS, *(form for forms in LONGER.values() for form in forms)]
    by_setting, by_any = (held(*sides, ours, DESIGNS_AND_PEERS) for ours in (SETTINGS, longer_too))
    counts = (sum(ratio <= BAR for ratio in ratios) for ratios in (by_setting, by_any))
    return {"limit": limit, **dict(zip(("by_setting", "by_setting_or_own"), counts, strict=True)), "of": len(by_any)}


def _for_an_hour(points: Points, limit: int, searched: Sequence[str], others: Sequence[str]) -> Iterator[Row]:
    """Each published default that asks for an hour, its cost as a share of its own on either half."""
    sides = {
        half: {point.policy: point for point in points(limit, files)}
        for half, files in ((SEARCHED, searched), (OTHERS, others))
    }
    for name in DESIGNS_AND_PEERS:
        if all(side[name].sound for side in sides.values()):
            yield {
                "limit": limit,
                "published": name,
                **{
                    kept: {
                        half: round(side[longer(name, kept)].cost / side[name].cost, 3) for half, side in sides.items()
                    }
                    for kept in (FIXED_PART, EVERYTHING)
                },
            }


def _point(point: Point) -> Row:
    return {
        "policy": point.policy,
        "cost": round(point.cost, 3),
        "visible": 1_000 * round(point.visible / 1_000),
        "need": round(point.need, 2),
    }
