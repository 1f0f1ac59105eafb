"""The options and arguments that several commands share.

Wire formats have the names of `timeline.wire`, with hyphens or underscores.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import typer

from timeline.cli.completing import complete_conversation, complete_policy, complete_sent_wire, complete_wire
from timeline.cli.exits import UsageProblem
from timeline.wire import SENT, WIRES

DEFAULT_DATABASE = "agent.db"

Db: TypeAlias = Annotated[
    str,
    typer.Option("--db", envvar="TIMELINE_DB", metavar="PATH_OR_URL", help="The database: a file, or a URL."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON; its keys are stable.")]
ConversationId: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="ID", help="A conversation's id, as `ls` prints it.", autocompletion=complete_conversation),
]
LookedAt: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="Only these conversations (default: all).", autocompletion=complete_conversation),
]
BlockName: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="PATH_OR_ADDRESS",
        help="A block's path, or its address such as @152. Leave it out if ID contains it, as in cards@152.",
    ),
]
PolicyName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="A policy of `timeline policies`, or a .toml file, instead of the conversation's own.",
        autocompletion=complete_policy,
    ),
]
Model: TypeAlias = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Use the context limit of this model.")
]
MaxTokens: TypeAlias = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", help="The context limit, instead of the policy's own.")
]
System: TypeAlias = Annotated[
    str | None,
    typer.Option("--system", metavar="FILE_OR_TEXT", help="The system prompt: a file, or the text itself."),
]
OneConversation: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="ID", help="Only in this conversation.", autocompletion=complete_conversation, show_default=False
    ),
]
Since: TypeAlias = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only from this time on, such as 2026-01-31T12:00:00Z.")
]
Until: TypeAlias = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only up to this time.")]
Summarize: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--summarize",
        metavar="PROVIDER:MODEL",
        help="Let a model write the summaries: openai:…, anthropic:… or google:…; set the API key that its SDK reads.",
    ),
]
FromCall: TypeAlias = Annotated[
    int | None,
    typer.Option("--call", min=1, metavar="N", help="Begin with this model call; `timeline calls` lists them."),
]
Pauses: TypeAlias = Annotated[
    float,
    typer.Option("--pauses", metavar="FACTOR", help="Multiply the time between events by this; 0: no pauses."),
]
PastVersion: TypeAlias = Annotated[
    int | None, typer.Option("--at", metavar="V", help="Take the conversation as it was at this version.")
]


BLANK_ID: Final = "--as is blank, and no id. Name one, or leave --as out."
"""What is said of the id of a variable that is not set."""

_NAMES: Final = ", ".join(WIRES)

RequestBody: TypeAlias = Annotated[
    str | None,
    typer.Option("--wire", metavar="W", help=f"Print the request body: {_NAMES}.", autocompletion=complete_wire),
]
ComparedBytes: TypeAlias = Annotated[
    str,
    typer.Option(
        "--wire",
        metavar="W",
        help=f"Compare the request bytes of this format: {', '.join(SENT)}.",
        autocompletion=complete_sent_wire,
    ),
]


def known_wire(word: str) -> str:
    """Return the name of the wire format that a word of the command line means.

    Raises:
        UsageProblem: there is no such wire format.
    """
    name = word.replace("-", "_")
    if name not in WIRES:
        raise UsageProblem(f"There is no wire format {word!r}. Use one of: {_NAMES}.")
    return name
