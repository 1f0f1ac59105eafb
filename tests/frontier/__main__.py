"""``python -m tests.frontier RECORDING…``: the search and the measurement that docs/lab.md describes.

It writes docs/lab/frontier.json, and the tables of the docs that sum it up. Which half a recording is of is stored in
split.json: one is searched, the other replayed with what was found alone. ``--place`` gives new recordings their half,
and searches nothing. ``--again`` measures all tables anew with what was found before, and chooses nothing. ``--answer``
does so with another setting for a published default, which was tried where a search may look
(`tests.frontier.trial`). Replays are kept in a folder, so that a run goes on where it was interrupted; those of other
code are never used.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from tests.frontier.answers import chosen
from tests.frontier.pages import write_pages
from tests.frontier.points import WITH_FACTS, replays
from tests.frontier.replayed import kept_of
from tests.frontier.settings import (
    CACHES_LIMIT,
    FIRST,
    NAMED,
    SETTINGS,
    UNDER_CACHES,
    at_limits,
    of_answers,
)
from tests.frontier.split import read_split
from tests.frontier.tables import DATA, Replayed, answers_in, as_json, tables
from timeline.lab.work import Options
from timeline.usage import CacheKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.frontier.halves import Halves
    from tests.frontier.points import Replays
    from timeline.policy.model import Policy

LIMITS: Final = (200_000, 100_000, 32_000)


def main() -> None:
    """Search or measure again, and write what was found as JSON and into the docs; or place new recordings."""
    options = _options()
    if options.place:
        as_recorded = _replays(options, [options.recordings], at_limits({FIRST: NAMED[FIRST]}, LIMITS))
        read_split().with_new(options.recordings, as_recorded.lifetime).store()
        return
    split = read_split().halves(options.recordings)
    data = (_again if options.again or options.answers else _searched)(options, split)
    DATA.write_text(as_json(data), encoding="utf-8")
    write_pages(data)


def _searched(options: argparse.Namespace, split: Halves) -> dict[str, Any]:
    searched = _replays(options, split.searched.values(), at_limits({**NAMED, **SETTINGS}, options.limits))
    return _measured(options, split, {limit: chosen(searched, limit) for limit in options.limits}, searched)


def _again(options: argparse.Namespace, split: Halves) -> dict[str, Any]:
    found = answers_in(json.loads(DATA.read_text(encoding="utf-8")))
    for limit in options.limits if options.answers else ():
        found[limit] |= dict(options.answers)
    return _measured(options, split, found)


def _measured(
    options: argparse.Namespace,
    split: Halves,
    found: Mapping[int, Mapping[str, str]],
    searched: Replays | None = None,
) -> dict[str, Any]:
    """Replay the unseen half with what was found, and under each kind of cache; return all tables."""
    unseen = _replays(options, split.unseen.values(), [*at_limits(NAMED, found), *of_answers(found)])
    tried = at_limits(UNDER_CACHES, [CACHES_LIMIT])
    kinds: tuple[CacheKind, ...] = get_args(CacheKind)
    caches = {kind: _replays(options, split.unseen.values(), tried, Options(cache=kind)) for kind in kinds}
    return tables(split, Replayed(unseen, caches, searched), found, datetime.now(UTC).date())


def _pair(text: str) -> tuple[str, str]:
    published, _, setting = text.partition("=")
    if published not in NAMED or setting not in {**NAMED, **SETTINGS}:
        raise argparse.ArgumentTypeError(f"{text!r}: give DEFAULT=SETTING, both by the names of docs/lab.md")
    return published, setting


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.frontier", description=__doc__)
    parser.add_argument("recordings", nargs="+")
    parser.add_argument("--place", action="store_true", help="give recordings that split.json does not have their half")
    parser.add_argument("--again", action="store_true", help="measure all tables anew, search nothing")
    parser.add_argument(
        "--answer", dest="answers", type=_pair, action="append", help="DEFAULT=SETTING: the same with another answer"
    )
    parser.add_argument("--limit", dest="limits", type=int, action="append", help="tokens; 200k, 100k and 32k")
    parser.add_argument("--kept", type=Path, default=Path(".frontier"), help="folder of the replays")
    parser.add_argument("--jobs", type=int, help="processes; one a core")
    options = parser.parse_args()
    options.limits = options.limits or list(LIMITS)
    return options


def _replays(
    options: argparse.Namespace,
    half: Iterable[list[str]],
    tried: Sequence[tuple[str, Policy]],
    how: Options = WITH_FACTS,
) -> Replays:
    files = [file for alike in half for file in alike]
    whole = len(files) * len(tried)

    def show(done: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done} of {whole} replays")

    return replays(files, tried, kept=kept_of(options.kept), options=how, jobs=options.jobs, on_done=show)


if __name__ == "__main__":
    main()
