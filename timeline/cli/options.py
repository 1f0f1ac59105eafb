"""The options and arguments that several commands share, spelled once.

Wire formats have the names of `timeline.wire`; hyphens are as good as underscores.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import typer

from timeline.cli.exits import UsageProblem
from timeline.wire import WIRES

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


_NAMES: Final = ", ".join(WIRES)

RequestBody: TypeAlias = Annotated[
    str | None, typer.Option("--wire", metavar="W", help=f"Print the request body: {_NAMES}.")
]
ComparedBytes: TypeAlias = Annotated[
    str, typer.Option("--wire", metavar="W", help=f"Whose bytes to compare: {_NAMES}.")
]


def known_wire(word: str) -> str:
    """Return the name of a wire format out of a word of the command line.

    Raises:
        UsageProblem: there is no such wire format.
    """
    name = word.replace("-", "_")
    if name not in WIRES:
        raise UsageProblem(f"There is no wire format {word!r}. Use one of: {_NAMES}.")
    return name
