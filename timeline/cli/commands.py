# ruff: noqa: PLC0415 - what a command needs is imported when it runs, so that `timeline --help` stays quick
"""The commands that decide by hand, show policies, or serve a database: their options and help.

What they do is imported when they run: `timeline.cli.decisions`, `policies` and `serve`.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from timeline.cli.options import DEFAULT_DATABASE, AsJson, ConversationId, Db, MaxTokens, Model
from timeline.cli.running import run

BlockPath: TypeAlias = Annotated[str, typer.Argument(metavar="PATH", help="A block's path, as `show` prints it.")]


def undo(
    id_: ConversationId,
    *,
    version: Annotated[
        int | None, typer.Option("--version", metavar="V", help="The compaction to take back; the newest unless given.")
    ] = None,
    cascade: Annotated[bool, typer.Option("--cascade", help="Take back the later ones that cover it, too.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Take a compaction back.

    What it covered is shown again. Under the policy that the conversation was last rendered with, nothing is summarised
    by itself any more until `compact` is called.
    """
    from timeline.cli import decisions

    run(decisions.undo(id_, version, db, cascade=cascade, as_json=as_json))


def fork(
    id_: ConversationId,
    *,
    at: Annotated[
        int | None, typer.Option("--at", metavar="V", help="The last version that both share; the newest unless given.")
    ] = None,
    as_: Annotated[
        str | None, typer.Option("--as", metavar="NEW_ID", help="The fork's id; ID.fork-V unless given.")
    ] = None,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="The fork's title.")] = "",
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Begin a conversation that goes on from another one.

    Both share what was said up to a version; nothing that happens in one of them later shows in the other.
    """
    from timeline.cli import decisions

    run(decisions.fork(id_, db, at=at, new_id=as_, title=title, as_json=as_json))


def hide(
    id_: ConversationId,
    path: BlockPath,
    *,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="What to show instead; a line with its path otherwise.")
    ] = None,
    omit: Annotated[
        bool, typer.Option("--omit", help="Show nothing instead; its calls and results go with it.")
    ] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Hide a block from the model.

    A short line stands for it, and says where all of it can be read. `reveal` shows it again.
    """
    from timeline.cli import decisions

    run(decisions.hide(id_, path, db, text=text, omit=omit, as_json=as_json))


def reveal(id_: ConversationId, path: BlockPath, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Show a hidden block again.

    Nothing hides it by itself any more.
    """
    from timeline.cli import decisions

    run(decisions.decide(id_, path, db, "reveal", as_json=as_json))


def pin(id_: ConversationId, path: BlockPath, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Pin a block, with its calls and results.

    No compaction covers it, and nothing hides it by itself.
    """
    from timeline.cli import decisions

    run(decisions.decide(id_, path, db, "pin", as_json=as_json))


def unpin(id_: ConversationId, path: BlockPath, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Take the pin off a block."""
    from timeline.cli import decisions

    run(decisions.decide(id_, path, db, "unpin", as_json=as_json))


COMMANDS = (undo, fork, hide, reveal, pin, unpin)
"""In the order of `timeline --help`."""


policies_app = typer.Typer(help="List the policies, show one, compare two.", rich_markup_mode=None)


@policies_app.callback(invoke_without_command=True)
def policies(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the policies, show one, compare two."""
    if context.invoked_subcommand is None:
        from timeline.cli import policies as command

        command.list_policies(as_json=as_json)


@policies_app.command()
def show(
    first: Annotated[str, typer.Argument(metavar="A", help="A preset, or a file ending in .toml.")],
    second: Annotated[str | None, typer.Argument(metavar="[B]", help="Another one, to compare with.")] = None,
    *,
    max_tokens: MaxTokens = None,
    model: Model = None,
    as_toml: Annotated[bool, typer.Option("--toml", help="Print a file that `--policy` reads.")] = False,
    as_svg: Annotated[bool, typer.Option("--svg", help="Print a picture.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a policy, or two side by side.

    With two, a star stands before each field that differs.
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
