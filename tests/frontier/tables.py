"""The tables of docs/lab/frontier.json: what was measured, as rows that name their half, lifetime and limit.

Tables in docs/lab.md and docs/quality.md are made from the half that no search looked at. All rows are of one
measurement, so that no two of them were made by different code.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from tests.frontier.answers import answer
from tests.frontier.halves import by_lifetime, spread
from tests.frontier.settings import DESIGNS, FIRST, NAMED, SETTINGS
from tests.project.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import date

    from tests.frontier.halves import Halves, Spread
    from tests.frontier.points import Point, Replays
    from timeline.usage import CacheKind

Row: TypeAlias = dict[str, Any]

DATA: Final = ROOT / "docs" / "lab" / "frontier.json"
SEARCHED: Final = "searched"
UNSEEN: Final = "unseen"


class Replayed(NamedTuple):
    """What the tables are made from.

    Attributes:
        unseen: replays of the half that no search looks at.
        caches: replays of that half again, by how the provider is taken to keep prompts.
        searched: replays of the other half; None where nothing was searched.
    """

    unseen: Replays
    caches: Mapping[CacheKind, Replays]
    searched: Replays | None = None


def tables(split: Halves, replayed: Replayed, found: Mapping[int, Mapping[str, str]], day: date) -> dict[str, Any]:
    """Return every table by its name, with how many recordings and settings they are made from.

    Args:
        split: the recordings.
        replayed: their replays.
        found: by limit, the setting that was chosen for each published default.
        day: of the measurement.
    """
    sides = {SEARCHED: (split.searched, replayed.searched), UNSEEN: (split.unseen, replayed.unseen)}
    counts = {side: {kept: len(files) for kept, files in half.items()} for side, (half, _) in sides.items()}
    return {
        "measured": day.isoformat(),
        "recordings": counts,
        "settings": len(SETTINGS),
        "policies": [
            {"half": side, "lifetime": kept, **row}
            for side, (half, replays) in sides.items()
            if replays is not None
            for kept, files in by_lifetime(half)
            for limit in found
            for row in _policies(replays, limit, files)
        ],
        "answers": [
            {"limit": limit, "lifetime": kept, **row}
            for limit, answers in found.items()
            for kept, files in by_lifetime(split.unseen)
            for row in _answers(replayed.unseen, limit, answers, files)
        ],
        "caches": [row for kind, replays in replayed.caches.items() for row in _under(kind, replays)],
    }


def answers_in(found: Mapping[str, Any]) -> dict[int, dict[str, str]]:
    """Return by limit the setting of each published default that tables name."""
    answers: dict[int, dict[str, str]] = {}
    for row in found["answers"]:
        answers.setdefault(row["limit"], {})[row["published"]] = row["setting"]
    return answers


def as_json(found: dict[str, Any]) -> str:
    """Write tables as JSON with a line for each row, so that two searches differ by lines."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {_value(value)}" for name, value in found.items()) + "\n}\n"


def _value(value: Any) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in value) + "\n]"


def _policies(replays: Replays, limit: int, files: Sequence[str]) -> Iterator[Row]:
    """Return a row for each policy that has a name: what it costs and what it leaves, each with its decile."""
    replayed = [name for name in replays.names(limit) if name in NAMED]
    designs = [point for name in DESIGNS if name in replayed and (point := replays.point(limit, name, files)).sound]
    cheapest = min(designs, key=lambda point: point.units).policy if designs else FIRST
    for name in replayed:
        yield {
            "limit": limit,
            "policy": name,
            "sound": replays.point(limit, name, files).sound,
            "cost": _share(replays, limit, name, FIRST, files),
            "design": cheapest,
            "of_design": _share(replays, limit, name, cheapest, files),
            "of_cut_point": _share(replays, limit, name, "cut_point", files),
            "one_read_middle": _spread(replays, limit, name, files, lambda point: point.one_read.middle),
            "one_read_far": _spread(replays, limit, name, files, lambda point: point.one_read.far),
            **_plain(replays.point(limit, name, files)),
        }


def _plain(point: Point) -> Row:
    return {
        "with_reads": round(point.adjusted, 3),
        "visible": 100 * round(point.visible / 100),
        "seen_middle": round(point.seen.middle, 3),
        "seen_far": round(point.seen.far, 3),
        "found_middle": round(point.found.middle, 3),
        "found_far": round(point.found.far, 3),
        "summaries_hold": [round(share, 3) for share in point.summaries],
        "names_out": point.names,
        "need": round(point.need, 3),
    }


def _share(replays: Replays, limit: int, name: str, other: str, files: Sequence[str]) -> list[float]:
    def ratio(drawn: Sequence[str]) -> float:
        return replays.point(limit, name, drawn).units / replays.point(limit, other, drawn).units

    return _rounded(spread(ratio, files, best=min))


def _spread(
    replays: Replays, limit: int, name: str, files: Sequence[str], figure: Callable[[Point], float]
) -> list[float]:
    return _rounded(spread(lambda drawn: figure(replays.point(limit, name, drawn)), files, best=max))


def _rounded(found: Spread) -> list[float]:
    return [round(found.measured, 3), round(found.decile, 3)]


def _answers(replays: Replays, limit: int, answers: Mapping[str, str], files: Sequence[str]) -> Iterator[Row]:
    """Return a row for each published default that rewrites something: the setting that was chosen for it."""
    for published, setting in answers.items():
        found = answer(replays, limit, published, setting, files)
        if found is not None:
            row = {**found._asdict(), "ratio": round(found.ratio, 3)}
            yield {name: value for name, value in row.items() if name != "surely"}


def _under(kind: CacheKind, replays: Replays) -> Iterator[Row]:
    """Return a row for each policy but the first: what it costs and shows where every prompt is kept like this."""
    files = replays.files
    for limit in replays.limits:
        for name in replays.names(limit)[1:]:
            point = replays.point(limit, name, files)
            yield {
                "cache": kind,
                "limit": limit,
                "policy": name,
                "recordings": len(files),
                "cost": _share(replays, limit, name, FIRST, files),
                "visible": 100 * round(point.visible / 100),
            }
