# ruff: noqa: PLC0415 - what a command needs is imported when it runs, so that `timeline --help` stays quick
"""The commands `undo`, `fork`, `hide`, `reveal`, `pin`, `unpin`, `policies` and `mcp`: their options and help.

Their work is in `timeline.cli.decisions`, `policies` and `serve`, which are imported when a command runs.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from timeline.cli.completing import complete_policy
from timeline.cli.helping import Commands
from timeline.cli.options import DEFAULT_DATABASE, AsJson, ConversationId, Db, MaxTokens, Model
from timeline.cli.running import run

BlockPath: TypeAlias = Annotated[str, typer.Argument(metavar="PATH", help="A block's path, as `show` prints it.")]


def undo(
    id_: ConversationId,
    *,
    version: Annotated[
        int | None, typer.Option("--version", metavar="V", help="Undo the compaction of this version, not the newest.")
    ] = None,
    cascade: Annotated[bool, typer.Option("--cascade", help="Undo the later compactions that cover it, too.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Undo a compaction.

    The blocks that it covered are shown again. Under the policy that the conversation was last rendered with, renders
    do not compact any more until you run `timeline compact`.
    """
    from timeline.cli import decisions

    run(decisions.undo(id_, version, db, cascade=cascade, as_json=as_json))


def fork(
    id_: ConversationId,
    *,
    at: Annotated[
        int | None, typer.Option("--at", metavar="V", help="The last version that both share (default: the newest).")
    ] = None,
    as_: Annotated[
        str | None, typer.Option("--as", metavar="NEW_ID", help="The fork's id (default: ID.fork-V).")
    ] = None,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="The fork's title.")] = "",
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Continue a conversation in a new one, from any version.

    Both share the events up to that version; later events of one are not in the other.
    """
    from timeline.cli import decisions

    run(decisions.fork(id_, db, at=at, new_id=as_, title=title, as_json=as_json))


def hide(
    id_: ConversationId,
    path: BlockPath,
    *,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Show this text instead of the usual line.")
    ] = None,
    omit: Annotated[
        bool, typer.Option("--omit", help="Show nothing instead; its calls and results are left out, too.")
    ] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Hide a block from the model.

    The model sees a short line instead, which names the path of the full content. `timeline reveal` shows the block
    again.
    """
    from timeline.cli import decisions

    run(decisions.hide(id_, path, db, text=text, omit=omit, as_json=as_json))


def reveal(id_: ConversationId, path: BlockPath, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Show a hidden block again.

    Renders do not hide it again; only `timeline hide` does.
    """
    from timeline.cli import decisions

    run(decisions.decide(id_, path, db, "reveal", as_json=as_json))


def pin(id_: ConversationId, path: BlockPath, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Keep a block in view, with its calls and results.

    No compaction covers it, and renders do not hide it.
    """
    from timeline.cli import decisions

    run(decisions.decide(id_, path, db, "pin", as_json=as_json))


def unpin(id_: ConversationId, path: BlockPath, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Take the pin off a block.

    Compactions and renders then treat it like any other.
    """
    from timeline.cli import decisions

    run(decisions.decide(id_, path, db, "unpin", as_json=as_json))


COMMANDS = (undo, fork, hide, reveal, pin, unpin)
"""The order of these commands in `timeline --help`."""


policies_app = Commands(help="List the policies, show one, compare two.")


@policies_app.callback(invoke_without_command=True)
def policies(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the policies, show one, compare two."""
    if context.invoked_subcommand is None:
        from timeline.cli import policies as command

        command.list_policies(as_json=as_json)


@policies_app.command()
def show(
    first: Annotated[
        str, typer.Argument(metavar="A", help="A preset, or a .toml file.", autocompletion=complete_policy)
    ],
    second: Annotated[
        str | None,
        typer.Argument(metavar="B", help="A second policy, to compare with A.", autocompletion=complete_policy),
    ] = None,
    *,
    max_tokens: MaxTokens = None,
    model: Model = None,
    as_toml: Annotated[bool, typer.Option("--toml", help="Print TOML, for a file that `--policy` reads.")] = False,
    as_svg: Annotated[bool, typer.Option("--svg", help="Print a picture, as SVG.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a policy, or two side by side.

    With two policies, a star marks each field that differs.
    """
    from timeline.cli import policies as command
    from timeline.cli.contexts import Wish

    names = [first] if second is None else [first, second]
    forms = [form for form, wanted in (("json", as_json), ("toml", as_toml), ("svg", as_svg)) if wanted]
    if len(forms) > 1:
        raise typer.BadParameter(f"--{forms[0]} and --{forms[1]} do not go together")
    wishes = [Wish(policy=name, max_tokens=max_tokens, model=model) for name in names]
    command.show(wishes, form=forms[0] if forms else None)


def mcp(
    *,
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            min=0,
            max=65_535,
            metavar="PORT",
            help="Serve at http://127.0.0.1:PORT/mcp instead of stdio; 0 picks a free port.",
        ),
    ] = None,
    answer_tokens: Annotated[
        int, typer.Option("--answer-tokens", min=1_000, metavar="N", help="The most tokens of one answer.")
    ] = 4_000,
    db: Db = DEFAULT_DATABASE,
) -> None:
    """Serve the conversations to an MCP client.

    Offers a model four tools: conversations, search, digests and read. The database is only read, so make its search
    index first, with `timeline search`. Needs the extra mcp.
    """
    from timeline.cli import serve

    run(serve.mcp(db, http=http, answer_tokens=answer_tokens))
