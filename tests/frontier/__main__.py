"""``python -m tests.frontier RECORDING…``: the search that docs/lab.md describes.

It writes docs/lab/frontier.json, and the tables of the docs that sum it up. Which half a recording is of is stored in
split.json: one is searched, the other replayed with what was found alone. ``--place`` gives new recordings their half,
and searches nothing; ``--changed`` measures a policy anew, and ``--answer`` another setting for a published default,
which was tried where a search may look (`tests.frontier.trial`), both on the unseen half alone. Replays are kept in a
folder, so that a search goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.frontier.answers import chosen
from tests.frontier.pages import write_pages
from tests.frontier.points import replays
from tests.frontier.settings import FIRST, NAMED, SETTINGS
from tests.frontier.split import read_split
from tests.frontier.tables import DATA, answered_anew, as_json, renewed, tables
from timeline.lab.cache_files import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.frontier.halves import Halves
    from tests.frontier.points import Replays
    from timeline.policy.model import Policy

LIMITS: Final = (200_000, 100_000, 32_000)


def main() -> None:
    """Search, and write what was found as JSON and into the docs; or place new recordings, or measure policies anew."""
    options = _options()
    if options.place:
        as_recorded = _replays(options, [options.recordings], {FIRST: NAMED[FIRST]})
        read_split().with_new(options.recordings, as_recorded.lifetime).store()
        return
    split = read_split().halves(options.recordings)
    measure = _anew if options.changed else _answered if options.answers else _searched
    data = measure(options, split)
    DATA.write_text(as_json(data), encoding="utf-8")
    write_pages(data)


def _searched(options: argparse.Namespace, split: Halves) -> dict[str, Any]:
    searched = _replays(options, split.searched.values(), {**NAMED, **SETTINGS})
    found = {limit: chosen(searched, limit) for limit in options.limits}
    settings = {name: SETTINGS[name] for answers in found.values() for name in answers.values() if name in SETTINGS}
    unseen = _replays(options, split.unseen.values(), {**NAMED, **settings})
    return tables(split, searched, unseen, found)


def _anew(options: argparse.Namespace, split: Halves) -> dict[str, Any]:
    stored = json.loads(DATA.read_text(encoding="utf-8"))
    cheapest = {row["design"] for row in stored["policies"]}
    names = dict.fromkeys((FIRST, "cut_point", *sorted(cheapest), *options.changed))
    unseen = _replays(options, split.unseen.values(), {name: NAMED[name] for name in names})
    return renewed(stored, split, unseen, options.limits)


def _answered(options: argparse.Namespace, split: Halves) -> dict[str, Any]:
    stored = json.loads(DATA.read_text(encoding="utf-8"))
    makers = {**NAMED, **SETTINGS}
    names = dict.fromkeys((FIRST, *(name for pair in options.answers for name in pair)))
    unseen = _replays(options, split.unseen.values(), {name: makers[name] for name in names})
    return answered_anew(stored, split, unseen, {limit: dict(options.answers) for limit in options.limits})


def _pair(text: str) -> tuple[str, str]:
    published, _, setting = text.partition("=")
    if published not in NAMED or setting not in {**NAMED, **SETTINGS}:
        raise argparse.ArgumentTypeError(f"{text!r}: give DEFAULT=SETTING, both by the names of docs/lab.md")
    return published, setting


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.frontier", description=__doc__)
    parser.add_argument("recordings", nargs="+")
    parser.add_argument("--place", action="store_true", help="give recordings that split.json does not have their half")
    parser.add_argument("--changed", action="append", choices=[*NAMED], help="measure this policy anew, search nothing")
    parser.add_argument(
        "--answer", dest="answers", type=_pair, action="append", help="DEFAULT=SETTING: measure another answer"
    )
    parser.add_argument("--limit", dest="limits", type=int, action="append", help="tokens; 200k, 100k and 32k")
    parser.add_argument("--kept", type=Path, default=Path(".frontier"), help="folder of the replays")
    parser.add_argument("--jobs", type=int, help="processes; one a core")
    options = parser.parse_args()
    options.limits = options.limits or list(LIMITS)
    return options


def _replays(
    options: argparse.Namespace, half: Iterable[list[str]], makers: Mapping[str, Callable[[int], Policy]]
) -> Replays:
    files = [file for alike in half for file in alike]
    whole = len(files) * len(makers) * len(options.limits)

    def show(done: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done} of {whole} replays")

    kept = Kept(options.kept)
    return replays(files, makers, options.limits, kept=kept, jobs=options.jobs, on_done=show)


if __name__ == "__main__":
    main()
