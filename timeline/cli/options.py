"""The options and arguments that several commands share, spelled once."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

DEFAULT_DATABASE = "timeline.db"

Db: TypeAlias = Annotated[
    str,
    typer.Option("--db", envvar="TIMELINE_DB", metavar="PATH_OR_URL", help="The database: a file, or a URL."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, in a stable shape.")]
ConversationId: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="A conversation, as `ls` names it.")]
PolicyName: TypeAlias = Annotated[
    str, typer.Option("--policy", metavar="NAME", help="A preset, as `policies` lists them, or a file ending in .toml.")
]
Model: TypeAlias = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Take the context limit of this model.")
]
MaxTokens: TypeAlias = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", help="The context limit; the preset's own unless given.")
]
System: TypeAlias = Annotated[
    str | None,
    typer.Option("--system", metavar="FILE_OR_TEXT", help="The system prompt: a file that holds it, or the text."),
]
OneConversation: TypeAlias = Annotated[
    str | None, typer.Option("--conversation", metavar="ID", help="Only of this conversation.")
]
Since: TypeAlias = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Not before this time, for example 2026-01-31T12:00:00Z.")
]
Until: TypeAlias = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Not after this time.")]
Summarize: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--summarize",
        metavar="PROVIDER:MODEL",
        help="Let a model write summaries: openai:…, anthropic:… or google:…, with the key that its SDK reads.",
    ),
]
PastVersion: TypeAlias = Annotated[
    int | None, typer.Option("--at", metavar="V", help="As it was at this version, and at its time.")
]
