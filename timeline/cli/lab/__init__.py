# ruff: noqa: PLC0415 - what a command needs is imported when it runs, so that `timeline --help` stays quick
"""The command `timeline lab`: its options and help. `timeline.cli.lab.tables` does the work."""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from os.path import realpath
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from timeline.cli.completing import complete_policy
from timeline.cli.options import DEFAULT_DATABASE, AsJson, Db, FromCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class CacheOption(StrEnum):
    """The caches that a comparison may be made under, besides the recorded one."""

    five_minutes = "5m"
    hour = "1h"
    automatic = "automatic"
    none = "none"


_POLICIES: Final = ("none", "balanced")
_LIMIT: Final = 200_000
_BYTES_A_CHARACTER: Final = 3
"""Bytes of a recording for each character that is counted: recorded ones have 1.6 to 4."""

_Files: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE|ID", help="Recorded conversations, files of `export`, or conversations of the database (--db)."
    ),
]
_Policies: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="A preset, another agent's default, or a .toml file; repeatable.",
        autocompletion=complete_policy,
    ),
]
_Limits: TypeAlias = Annotated[
    list[int] | None,
    typer.Option("--max-tokens", metavar="N", help="The context limit (default: 200,000); repeatable."),
]
_Validate: TypeAlias = Annotated[
    bool, typer.Option("--validate", help="Replay nothing: compare the predicted cache use with the recorded one.")
]
_Prices: TypeAlias = Annotated[
    Path | None, typer.Option("--prices", metavar="FILE", help="Look for prices and cache rules in this file first.")
]
_PriceAs: TypeAlias = Annotated[
    str, typer.Option("--price-as", metavar="MODEL", help="Price every call as if it were one to this model.")
]
_Cache: TypeAlias = Annotated[
    CacheOption | None,
    typer.Option(
        "--cache",
        help="Assume this prompt cache, instead of the recorded one: for five minutes, for an hour, as providers do by "
        "themselves (automatic), or none, as with a local model.",
    ),
]
_Reserve: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--reserve",
        min=0,
        metavar="N",
        help="Let every policy leave N tokens of the limit free for the answer (default: the policy's own reserve).",
    ),
]
_Fixed: TypeAlias = Annotated[
    int | None,
    typer.Option("--fixed-tokens", min=0, metavar="N", help="Tokens of system prompt and tools (default: measured)."),
]
_MainOnly: TypeAlias = Annotated[bool, typer.Option("--main-only", help="Leave out subagents and branches.")]
_Recorded: TypeAlias = Annotated[
    bool, typer.Option("--recorded-summaries", help="Use the summaries in the recording, until it has no more.")
]
_Jobs: TypeAlias = Annotated[
    int | None, typer.Option("--jobs", min=1, metavar="N", help="The number of processes (default: one per core).")
]
_Cluster: TypeAlias = Annotated[
    str | None, typer.Option("--dask", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler.")
]
_Resume: TypeAlias = Annotated[
    Path | None, typer.Option("--resume", metavar="FOLDER", help="Keep results here, and reuse those already here.")
]
_Calls: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--calls",
        help="Also list the calls that differ most from the first policy's; with --validate, the wrong predictions.",
    ),
]
_Facts: TypeAlias = Annotated[
    bool,
    typer.Option("--facts", help="Also measure which facts of each recorded answer are in sight, or one read away."),
]
_Html: TypeAlias = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Also write a page with plots, for a browser.")
]


def lab(
    files: _Files,
    *,
    policy: _Policies = None,
    max_tokens: _Limits = None,
    validate: _Validate = False,
    prices: _Prices = None,
    price_as: _PriceAs = "",
    cache: _Cache = None,
    reserve: _Reserve = None,
    fixed: _Fixed = None,
    main_only: _MainOnly = False,
    recorded_summaries: _Recorded = False,
    jobs: _Jobs = None,
    cluster: _Cluster = None,
    resume: _Resume = None,
    calls: _Calls = False,
    facts: _Facts = False,
    html: _Html = None,
    call: FromCall = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> int:
    """Compare what policies would have cost.

    Replays recordings under several policies and prices each call by the provider's prompt-cache rules. Costs are
    shares of the first policy's. Also counts the tokens that stay in view and the files that a call needed while they
    were hidden. No model is called. Policies besides the presets: pi, cline, opencode, gemini-cli, goose, crush,
    deepagents, langchain, strands, clear-tool-uses, anthropic-compact, claude-code, seed-002-first.
    With --call a stored or exported conversation is taken as it was up to that model call; from there on, the policies
    decide and costs count.
    """
    files = list({realpath(path): path for path in files}.values())  # one that is named twice counts once
    if validate:
        from timeline.cli.lab import validation

        _refuse_policies(
            {
                "--policy": policy,
                "--max-tokens": max_tokens,
                "--price-as": price_as,
                "--cache": cache,
                "--reserve": reserve is not None,
                "--fixed-tokens": fixed is not None,
                "--main-only": main_only,
                "--recorded-summaries": recorded_summaries,
                "--dask": cluster,
                "--resume": resume,
                "--facts": facts,
                "--html": html,
                "--call": call is not None,
            }
        )
        return validation.validate(files, prices, calls=calls, as_json=as_json)
    with _engine_started_meanwhile(_characters(files)):
        from timeline.cli.lab import tables as command
        from timeline.cli.lab.stored import exported

    wanted = command.Wanted(
        policy or _POLICIES,
        max_tokens or [_LIMIT],
        prices,
        price_as,
        fixed,
        not main_only,
        recorded_summaries,
        call,
        facts=facts,
        cache=None if cache is None else cache.value,
        reserve=reserve,
    )
    with exported(files, db) as paths:
        return command.compare(
            paths, wanted, jobs=jobs, cluster=cluster, resume=resume, calls=calls, html=html, as_json=as_json
        )


@contextmanager
def _engine_started_meanwhile(characters: int | None) -> Iterator[None]:
    """Start the tokenizer in a thread while modules are imported, which takes as long; then the thread has ended.

    The processes that replay are forks of this one, so that it may have no other thread by then.
    """
    from timeline.tokens import start_engine

    starting = Thread(target=start_engine, kwargs={"characters": characters})
    starting.start()
    try:
        yield
    finally:
        starting.join()


def _characters(files: Sequence[Path]) -> int | None:
    """Return about how many characters of the files will be counted; None where one is a stored conversation."""
    try:
        return sum(path.stat().st_size for path in files) // _BYTES_A_CHARACTER
    except OSError:  # it is an id, or the command will say what is wrong with it
        return None


def _refuse_policies(given: Mapping[str, object]) -> None:
    """Refuse the options of a replay together with --validate, which replays nothing.

    Raises:
        UsageProblem: naming those that were given.
    """
    if named := [name for name, value in given.items() if value]:
        from timeline.cli.exits import UsageProblem

        raise UsageProblem(f"--validate replays no policy. Leave out {', '.join(named)}.")
