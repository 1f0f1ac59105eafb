"""The tables of the docs that sum a measurement up. Every figure is of the half that no search looked at."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from tests.frontier.answers import BAR
from tests.frontier.halves import EVERY
from tests.frontier.settings import FIRST, OURS
from tests.frontier.tables import UNSEEN
from tests.project.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tests.frontier.tables import Row

LAB: Final = ROOT / "docs" / "lab.md"
QUALITY: Final = ROOT / "docs" / "quality.md"
TABLE: Final = r"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)"
"""What is between the marks of a page."""


def write_pages(found: dict[str, Any]) -> None:
    """Write the tables into the pages."""
    for page in (LAB, QUALITY):
        page.write_text(with_tables(page, found), encoding="utf-8")


def with_tables(page: Path, found: dict[str, Any]) -> str:
    """Return a page's text with the tables of a measurement, and its day."""
    text = page.read_text(encoding="utf-8")
    made = {name: "".join(f"| {' | '.join(row)} |\n" for row in rows(found)) for name, rows in PAGES[page].items()}
    for name, lines in {"measured": measured(found), **made}.items():
        text = re.sub(TABLE.format(name=name), lines.replace("\\", r"\\"), text, flags=re.DOTALL)
    return text


def measured(found: dict[str, Any]) -> str:
    """Return when the tables were measured, and on how many recordings."""
    day = date.fromisoformat(found["measured"])
    counts = found["recordings"][UNSEEN]
    by_lifetime = ", ".join(f"{lifetime}: {count}" for lifetime, count in counts.items())
    return (
        f"Measured on {day.day} {day:%B %Y}, all at once and with the code of that day, "
        f"on {sum(counts.values())} recordings ({by_lifetime}).\n"
    )


def _costs(found: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Yield what ours cost at each limit, by lifetime."""
    lifetimes = _lifetimes(found)
    yield ("policy", "limit", *lifetimes, "of the cheapest design", "of `cut_point`", "tokens in sight")
    yield ["---"] * (len(lifetimes) + 5)
    for whole in _unseen(found, EVERY):
        if whole["policy"] in OURS:
            alike = [_one(found, whole, lifetime) for lifetime in lifetimes]
            yield (
                f"`{whole['policy']}`",
                f"{whole['limit']:,}",
                *(_worst(row["cost"]) for row in alike),
                *(" · ".join(_worst(row[name]) for row in alike) for name in ("of_design", "of_cut_point")),
                f"{whole['visible'] / 1_000:.0f}k",
            )


def _known(found: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Yield what each policy lets the model still know."""
    yield (
        "policy",
        "limit",
        "cost",
        "with reads",
        "in sight",
        "one read away",
        "two away",
        "one read away, in nine of ten",
    )
    yield ["---"] * 8
    for row in _unseen(found, EVERY):
        if row["sound"] or row["policy"] == FIRST:
            middle, far = row["one_read_middle"], row["one_read_far"]
            yield (
                f"`{row['policy']}`",
                f"{row['limit']:,}",
                f"{row['cost'][0]:.3f}",
                f"{row['with_reads']:.3f}",
                f"{row['seen_middle']:.3f} / {row['seen_far']:.3f}",
                f"{middle[0]:.3f} / {far[0]:.3f}",
                f"{row['found_middle']:.3f} / {row['found_far']:.3f}",
                f"{middle[1]:.3f} / {far[1]:.3f}",
            )


def _by_lifetime(found: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Yield what ours let the model still know where the provider keeps messages so long."""
    yield ("policy", "limit", "lifetime", "cost", "with reads", "one read away, middle", "far")
    yield ["---"] * 7
    for whole in _unseen(found, EVERY):
        if whole["policy"] in OURS:
            for lifetime in _lifetimes(found):
                row = _one(found, whole, lifetime)
                yield (
                    f"`{row['policy']}`",
                    f"{row['limit']:,}",
                    lifetime,
                    f"{row['cost'][0]:.3f}",
                    f"{row['with_reads']:.3f}",
                    *(f"{row[name][0]:.3f} ({row[name][1]:.3f})" for name in ("one_read_middle", "one_read_far")),
                )


def _answers_counted(found: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Yield how many published defaults are answered at each limit, on all recordings and by lifetime."""
    yield ("limit", "lifetime", "defaults", "answered at 0.95 or less", "at 1.00 or less", "by cost alone")
    yield ["---"] * 6
    for limit in dict.fromkeys(row["limit"] for row in found["answers"]):
        for lifetime in (EVERY, *_lifetimes(found)):
            rows = [row for row in found["answers"] if (row["limit"], row["lifetime"]) == (limit, lifetime)]
            kept = [row["ratio"] for row in rows if row["keeps"]]
            cheap = sum(row["ratio"] <= BAR for row in rows)
            counts = (len(rows), sum(ratio <= BAR for ratio in kept), sum(ratio <= 1 for ratio in kept), cheap)
            yield (f"{limit:,}", lifetime, *map(str, counts))


def _unanswered(found: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Yield the published defaults that no setting of ours answers, with what its setting comes to by lifetime."""
    lifetimes = _lifetimes(found)
    yield ("published default", "limit", "what is missing", *lifetimes)
    yield ["---"] * (3 + len(lifetimes))
    for row in found["answers"]:
        if row["lifetime"] == EVERY and not (row["keeps"] and row["ratio"] <= BAR):
            missing = [f"costs {row['ratio']:.2f}"] if row["ratio"] > BAR else []
            missing += [] if row["keeps"] else ["keeps less"]
            alike = (_answer(found, row, lifetime) for lifetime in lifetimes)
            yield f"`{row['published']}`", f"{row['limit']:,}", ", ".join(missing), *alike


def _answer(found: dict[str, Any], like: Row, lifetime: str) -> str:
    """Return what a default's setting comes to where messages are kept so long; a dash where it rewrites nothing."""
    same = ("limit", "published")
    for row in found["answers"]:
        if row["lifetime"] == lifetime and all(row[name] == like[name] for name in same):
            return f"{row['ratio']:.2f}{'' if row['keeps'] else ', less'} ({row['recordings']})"
    return "-"


def _summaries(found: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Yield what the summaries of each policy hold by themselves."""
    yield ("policy", "limit", "facts held", "for each 100 tokens")
    yield ["---"] * 4
    for row in _unseen(found, EVERY):
        share, held, said = row["summaries_hold"]
        if row["sound"] and held:
            yield f"`{row['policy']}`", f"{row['limit']:,}", f"{share:.0%}", f"{held:.2f} / {said:.2f}"


def _answered(found: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Yield the setting that answers each published default, at each limit, with what it comes to by lifetime."""
    lifetimes = _lifetimes(found)
    yield ("published default", "limit", "setting", "cost", "keeps as much", *lifetimes)
    yield ["---"] * (5 + len(lifetimes))
    for row in found["answers"]:
        if row["lifetime"] == EVERY:
            kept = "yes" if row["keeps"] else "no"
            alike = (_answer(found, row, lifetime) for lifetime in lifetimes)
            setting = f"`{row['setting']}`"
            yield f"`{row['published']}`", f"{row['limit']:,}", setting, f"{row['ratio']:.2f}", kept, *alike


def _caches(found: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Yield what policies cost and show under each kind of cache."""
    kinds = [*dict.fromkeys(row["cache"] for row in found["caches"])]
    yield ("policy", *(f"`{kind}`" for kind in kinds))
    yield ["---"] * (1 + len(kinds))
    for policy in dict.fromkeys(row["policy"] for row in found["caches"]):
        rows = {row["cache"]: row for row in found["caches"] if row["policy"] == policy}
        cells = (f"{_worst(rows[kind]['cost'])} · {rows[kind]['visible'] / 1_000:.0f}k" for kind in kinds)
        yield (f"`{policy}`", *cells)


def _lifetimes(found: dict[str, Any]) -> list[str]:
    return [*dict.fromkeys(row["lifetime"] for row in found["policies"] if row["lifetime"] != EVERY)]


def _unseen(found: dict[str, Any], lifetime: str) -> Iterable[Row]:
    return (row for row in found["policies"] if (row["half"], row["lifetime"]) == (UNSEEN, lifetime))


def _one(found: dict[str, Any], like: Row, lifetime: str) -> Row:
    [row] = [
        row for row in _unseen(found, lifetime) if (row["limit"], row["policy"]) == (like["limit"], like["policy"])
    ]
    return row


def _worst(spread: Sequence[float]) -> str:
    measured, decile = spread
    return f"{measured:.2f} ({decile:.2f})"


PAGES: Final = {
    LAB: {"caches": _caches, "costs": _costs, "answers": _answered},
    QUALITY: {
        "known": _known,
        "lifetimes": _by_lifetime,
        "answered": _answers_counted,
        "open": _unanswered,
        "summaries": _summaries,
    },
}
"""The tables of each page, by the name of their marks."""
