# ruff: noqa: PLC0415 - what a command needs is imported when it runs, so that `timeline --help` stays quick
"""The commands that serve a database until they are stopped: their options and help."""

from __future__ import annotations

from typing import Annotated

import typer

from timeline.cli.options import DEFAULT_DATABASE, Db
from timeline.cli.running import run


def mcp(
    *,
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            min=0,
            max=65_535,
            metavar="PORT",
            help="Serve at http://127.0.0.1:PORT/mcp instead of stdio; 0 takes any.",
        ),
    ] = None,
    answer_tokens: Annotated[
        int, typer.Option("--answer-tokens", min=1_000, metavar="N", help="Most tokens of one answer.")
    ] = 4_000,
    db: Db = DEFAULT_DATABASE,
) -> None:
    """Serve the conversations to an MCP client.

    Four tools for a model: conversations, search, digests, read. The database is only read; add its first search index
    with `timeline search`. Needs the extra mcp.
    """
    from timeline.cli import serve

    run(serve.mcp(db, http=http, answer_tokens=answer_tokens))
