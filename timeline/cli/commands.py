# ruff: noqa: PLC0415 - what a command needs is imported when it runs, so that `timeline --help` stays quick
"""The commands that decide about conversations, and `policies` and `mcp`: their options and help.

Their work is in `timeline.cli.decisions`, `retention`, `policies` and `serve`, which are imported when a command runs.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from timeline.cli.completing import complete_conversation, complete_policy
from timeline.cli.helping import Commands
from timeline.cli.options import (
    DEFAULT_DATABASE,
    AsJson,
    BlockName,
    ConversationId,
    Db,
    LookedAt,
    MaxTokens,
    Model,
    PolicyName,
)
from timeline.cli.running import run


def undo(
    id_: ConversationId,
    *,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="V", help="Undo the compaction of this version (default: the newest)."),
    ] = None,
    cascade: Annotated[bool, typer.Option("--cascade", help="Undo the later compactions that cover it, too.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Undo a compaction.

    The blocks that it covered are shown again. Until you run `timeline compact`, no render compacts the conversation.
    """
    from timeline.cli import decisions

    run(decisions.undo(id_, version, db, cascade=cascade, as_json=as_json))


def go_back(
    id_: ConversationId, block: BlockName = None, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False
) -> None:
    """Go back behind a block: it and all that follows leave the history.

    Without a block, that is the newest prompt. No model sees any more what left. A compaction that covers any of it is
    undone. `timeline reveal` of one of the blocks takes all of them back.
    """
    from timeline.cli import decisions
    from timeline.cli.block_names import block_named
    from timeline.events.addresses import parse_address

    named: tuple[str, str | None] = (id_, None)
    if block is not None or parse_address(id_) is not None:
        named = block_named(id_, block)
    run(decisions.go_back(*named, db, as_json=as_json))


def fork(
    id_: ConversationId,
    *,
    at: Annotated[
        int | None, typer.Option("--at", metavar="V", help="The last version that both share (default: the newest).")
    ] = None,
    call: Annotated[
        int | None,
        typer.Option("--call", min=1, metavar="N", help="Fork right before this model call instead."),
    ] = None,
    policy: PolicyName = None,
    max_tokens: MaxTokens = None,
    model: Model = None,
    as_: Annotated[
        str | None, typer.Option("--as", metavar="NEW_ID", help="The fork's id (default: ID.fork-V).")
    ] = None,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="The fork's title.")] = "",
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Continue a conversation in a new one, from any version or model call.

    Both share the events up to that version; later events of one are not in the other. The fork keeps the
    conversation's policy unless --policy, --max-tokens or --model give it one of its own.
    """
    from timeline.cli import decisions
    from timeline.cli.wishes import PolicyWish

    wish = PolicyWish(policy, max_tokens, model)
    run(decisions.fork(id_, db, wish, at=at, call=call, new_id=as_, title=title, as_json=as_json))


def hide(
    id_: ConversationId,
    block: BlockName = None,
    *,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Show this text instead of the usual line.")
    ] = None,
    omit: Annotated[
        bool, typer.Option("--omit", help="Show nothing instead, and leave out its calls and results, too.")
    ] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Hide a block from the model.

    The model sees a short line instead, with the address of the full content. `timeline reveal` shows the block
    again.
    """
    from timeline.cli import decisions
    from timeline.cli.block_names import block_named

    run(decisions.hide(*block_named(id_, block), db, text=text, omit=omit, as_json=as_json))


def reveal(id_: ConversationId, block: BlockName = None, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Show a hidden or abridged block in full.

    Renders do not hide or abridge it again; only `timeline hide` does.
    """
    from timeline.cli import decisions
    from timeline.cli.block_names import block_named

    run(decisions.decide(*block_named(id_, block), db, "reveal", as_json=as_json))


def pin(id_: ConversationId, block: BlockName = None, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Keep a block in view, with its calls and results.

    No compaction covers it, and renders do not hide it.
    """
    from timeline.cli import decisions
    from timeline.cli.block_names import block_named

    run(decisions.decide(*block_named(id_, block), db, "pin", as_json=as_json))


def unpin(id_: ConversationId, block: BlockName = None, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Take the pin off a block.

    Compactions and renders then treat it like any other.
    """
    from timeline.cli import decisions
    from timeline.cli.block_names import block_named

    run(decisions.decide(*block_named(id_, block), db, "unpin", as_json=as_json))


def retention(
    first: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="A conversation's id (default: the database's own setting).",
            autocompletion=complete_conversation,
        ),
    ] = None,
    second: Annotated[
        str | None,
        typer.Argument(metavar="keep|window|store", help="What to keep; `store` is the database's own setting."),
    ] = None,
    *,
    hold: Annotated[
        bool | None, typer.Option("--hold/--no-hold", help="Put a legal hold on the conversation, or take it off.")
    ] = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show or set how much of the conversations is kept.

    keep, the default: keep everything. window: `timeline scavenge` may remove what lies before the window; this command
    itself removes nothing. `timeline retention window` changes the database's own setting, which holds for
    conversations without one; `timeline retention ID window` changes one conversation's. A legal hold keeps everything.
    """
    from timeline.cli import retention as command

    run(command.retention(first, second, db, hold=hold, as_json=as_json))


def scavenge(
    ids: LookedAt = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; it cannot be undone.")] = False,
    events: Annotated[
        int | None, typer.Option("--events", min=1, metavar="N", help="Remove at most N events; run it again to go on.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="S", help="Begin no further step after S seconds.")
    ] = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Remove for good what lies before the window, where the retention is `window`.

    Without --yes this is a dry run: it prints what would go, what stays and why. What the model sees stays as it is;
    summaries, digests, versions, ids and paths stay too. Earlier versions and covered blocks can no longer be read.
    """
    from timeline.cli import retention as command

    run(command.scavenge(ids or [], db, command.Bounds(events, seconds), yes=yes, as_json=as_json))


def redact(
    id_: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="A conversation's id, as `ls` prints it.", autocompletion=complete_conversation
        ),
    ] = None,
    places: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH_OR_ADDRESS", help="Blocks by path or address, or places of `find-subject`."),
    ] = None,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept with the tombstone.")] = "",
    text: Annotated[
        str, typer.Option("--text", metavar="TEXT", help="The words to take out of places that are no blocks.")
    ] = "",
    found: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Redact the places in this file, which `find-subject --json` printed; -: standard input.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; it cannot be undone.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> int:
    """Erase the content of blocks for good, with all that was made of it.

    Without --yes this is a dry run: it prints what would be erased and rewritten, and what no command can reach. Forks
    that share a block lose its content too. Summaries and digests are made again from what is left, and the file is
    rewritten.
    """
    from timeline.cli import forgetting

    wish = forgetting.Wish(id_, tuple(places or ()), found, reason, text)
    return run(forgetting.redact(wish, db, yes=yes, as_json=as_json))


def erase(
    id_: ConversationId,
    *,
    forks: Annotated[
        str, typer.Option("--forks", metavar="refuse|erase|copy", help="What becomes of forks that share its past.")
    ] = "refuse",
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept beside the id.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do it; it cannot be undone.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> int:
    """Erase a conversation for good; its id can never be used again.

    Without --yes this is a dry run. If the conversation has forks, --forks says what becomes of them: they are erased
    too, or each keeps a copy of what it shares.
    """
    from timeline.cli import forgetting

    return run(forgetting.erase(id_, db, forks=forks, reason=reason, yes=yes, as_json=as_json))


def find_subject(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for, in upper or lower case.")],
    ids: LookedAt = None,
    *,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """List every place that contains a text, before you redact it.

    Reads the whole log: blocks with their arguments, summaries, titles, system prompts and a framework's data. With
    --json it prints what `timeline redact --from` takes.
    """
    from timeline.cli import forgetting

    run(forgetting.find(text, ids or [], db, as_json=as_json))


def watch(
    id_: ConversationId,
    *,
    after: Annotated[
        int | None,
        typer.Option("--after", min=0, metavar="V", help="Begin after this version; 0 is the beginning."),
    ] = None,
    db: Db = DEFAULT_DATABASE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line; its keys are stable.")] = False,
) -> None:
    """Follow what happens to a conversation's context: compactions, errors, overflows, usage.

    Prints each event as it happens, including those of other processes, until you stop it. To go on without a gap, give
    --after the version of the last line.
    """
    from timeline.cli import watching

    run(watching.watch(id_, db, after, as_json=as_json))


COMMANDS = (undo, go_back, fork, hide, reveal, pin, unpin, watch, retention, scavenge, find_subject, redact, erase)
"""The order of these commands in `timeline --help`."""


policies_app: Final = Commands(help="List the policies, show one, or compare two.")


@policies_app.callback(invoke_without_command=True)
def policies(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the policies, show one, or compare two."""
    if context.invoked_subcommand is None:
        from timeline.cli import policies as command

        command.list_policies(as_json=as_json)


@policies_app.command()
def show(
    first: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A policy of `timeline policies`, or a .toml file.", autocompletion=complete_policy
        ),
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
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="TIMELINE_MCP_TOKEN",
            metavar="TEXT",
            help="Over HTTP, answer only requests with the header Authorization: Bearer TEXT.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="ID|PREFIX*",
            help="Serve only this conversation, or those whose id begins with PREFIX; repeatable.",
        ),
    ] = None,
    answer_tokens: Annotated[
        int, typer.Option("--answer-tokens", min=1_000, metavar="N", help="The most tokens that one answer may have.")
    ] = 4_000,
    db: Db = DEFAULT_DATABASE,
) -> None:
    """Serve the conversations to an MCP client.

    Offers a model six tools: conversations, search, digests, facts, record and read. Only reads the database, so make
    the search index first, with `timeline search`. Needs the extra mcp.
    """
    from timeline.cli import serve

    run(serve.mcp(db, only or (), http=http, token=token, answer_tokens=answer_tokens))


def inspect(
    named: Annotated[
        str | None,
        typer.Argument(
            metavar="ID|RECORDING",
            help="Begin with this conversation; or look at this recording, or at this database file.",
            autocompletion=complete_conversation,
        ),
    ] = None,
    *,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, metavar="PORT", help="The port; 0 picks a free one.")
    ] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only print the address; open no browser.")] = False,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", help="The address to serve at; any other one needs --token and TLS."),
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="TIMELINE_INSPECT_TOKEN",
            metavar="TEXT",
            help="The token that lets a browser in (default: random).",
        ),
    ] = None,
    certificate: Annotated[
        str | None, typer.Option("--certificate", metavar="FILE", help="Serve over TLS with this certificate.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="FILE", help="The key of the certificate.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy in front terminates TLS and passes the Host header on.")
    ] = False,
    allow_decisions: Annotated[
        bool,
        typer.Option(
            "--allow-decisions", help="Let the page hide, pin, compact, undo and fork; it writes to the database."
        ),
    ] = False,
    db: Db = DEFAULT_DATABASE,
) -> None:
    """Look at conversations in a browser.

    Shows what the model saw at each call, why a block is hidden or covered, and what each compaction kept. Answers only
    this machine, and only browsers that have the printed token. Only reads the database, unless --allow-decisions is
    given. Needs the extra inspector.
    """
    from timeline.cli import inspecting

    options = inspecting.Options(
        host=host, port=port, token=token, certificate=certificate, key=key, behind_proxy=behind_proxy
    )
    run(inspecting.inspect(named, db, options, browser=not no_open, decisions=allow_decisions))
