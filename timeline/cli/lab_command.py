# ruff: noqa: PLC0415 - what a command needs is imported when it runs, so that `timeline --help` stays quick
"""The command `lab`: its options and help. `timeline.cli.lab` does the work."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Final

import typer

from timeline.cli.options import AsJson  # noqa: TC001 - typer reads the annotations

_POLICIES: Final = ("none", "balanced")
_LIMIT: Final = 200_000


def lab(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Recorded conversations.")],
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", metavar="NAME", help="A preset, a peer's default, or a .toml file; again. The first is 1."
        ),
    ] = None,
    max_tokens: Annotated[
        list[int] | None,
        typer.Option("--max-tokens", metavar="N", help="The context limit; again. 200,000 unless given."),
    ] = None,
    validate: Annotated[
        bool, typer.Option("--validate", help="Compare what the price model predicts with what was recorded, instead.")
    ] = False,
    prices: Annotated[
        Path | None,
        typer.Option("--prices", metavar="FILE", help="Prices and cache rules that go before the packaged."),
    ] = None,
    price_as: Annotated[
        str, typer.Option("--price-as", metavar="MODEL", help="Price every call as this model's.")
    ] = "",
    fixed: Annotated[
        int | None,
        typer.Option("--fixed-tokens", min=0, metavar="N", help="System prompt and tools; as measured unless given."),
    ] = None,
    main_only: Annotated[bool, typer.Option("--main-only", help="Leave subagents and branches out.")] = False,
    recorded_summaries: Annotated[
        bool, typer.Option("--recorded-summaries", help="Take the recorded client's summaries while there are any.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, metavar="N", help="Processes; one a core unless given.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--dask", metavar="ADDRESS", help="Run on a Dask cluster: the scheduler's address.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", metavar="FOLDER", help="Keep results here; what is there is not run again."),
    ] = None,
    calls: Annotated[
        bool,
        typer.Option(
            "--calls",
            help="Show where a policy differs most from the first, with --json every call; of --validate, what is off.",
        ),
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with plots, for a browser.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """See what other policies would have cost.

    Replays recordings under several policies and prices each call by the provider's prompt-cache rules, with what
    stays in sight and what the agent would have missed. No model is called. Policies besides the presets: pi, cline,
    opencode, gemini-cli, goose, crush, deepagents, langchain, strands, clear-tool-uses, anthropic-compact,
    claude-code, seed-002-first.
    """
    from timeline.cli import lab as command

    if validate:
        from timeline.cli.exits import UsageProblem
        from timeline.cli.lab_validation import validate as compare_with_usage

        others = {
            "--policy": policy,
            "--max-tokens": max_tokens,
            "--price-as": price_as,
            "--fixed-tokens": fixed is not None,
            "--main-only": main_only,
            "--recorded-summaries": recorded_summaries,
            "--dask": cluster,
            "--resume": resume,
            "--html": html,
        }
        if named := [name for name, given in others.items() if given]:
            raise UsageProblem(f"--validate replays no policy. Leave out {', '.join(named)}.")
        return compare_with_usage(files, prices, calls=calls, as_json=as_json)
    wanted = command.Wanted(
        policy or _POLICIES, max_tokens or [_LIMIT], prices, price_as, fixed, not main_only, recorded_summaries
    )
    return command.compare(
        files, wanted, jobs=jobs, cluster=cluster, resume=resume, calls=calls, html=html, as_json=as_json
    )
