# ruff: noqa: PLC0415 - what a command needs is imported when it runs, so that `timeline --help` stays quick
"""The commands of `timeline`, their options and help. Each imports the module that does its work when it runs."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Final

import typer

import timeline
from timeline.cli.commands import COMMANDS, inspect, mcp, policies_app
from timeline.cli.completing import complete_call, complete_conversation, complete_kind, complete_policy
from timeline.cli.exits import MEANINGS
from timeline.cli.export_command import export
from timeline.cli.file_commands import COMMANDS as FILE_COMMANDS
from timeline.cli.helping import Commands
from timeline.cli.lab import lab
from timeline.cli.options import (
    DEFAULT_DATABASE,
    AsJson,
    BlockName,
    ComparedBytes,
    ConversationId,
    Db,
    FromCall,
    MaxTokens,
    Model,
    OneConversation,
    PastVersion,
    Pauses,
    PolicyName,
    RequestBody,
    Since,
    Summarize,
    System,
    Until,
)
from timeline.cli.running import run as _run

_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:<3}  {meaning}" for code, meaning in MEANINGS.items())

app: Final = Commands(
    name="timeline",
    help="Compact, replay and search the conversations of agents. Begin with: timeline demo",
    epilog=_EPILOG,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        typer.echo(f"timeline {timeline.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _begin(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def demo(
    *,
    db: Annotated[
        str | None, typer.Option("--db", metavar="PATH", help="Keep the demo's conversation in this file.")
    ] = None,
) -> int:
    """Show in a minute what a timeline does.

    Needs no key and no network. Without --db it leaves no file behind.
    """
    from timeline.cli import demo as command

    return _run(command.demo(db))


@app.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Recorded conversations.")],
    *,
    mask: Annotated[
        bool, typer.Option("--mask", help="Mask common credentials, such as API keys, before they are stored.")
    ] = False,
    new_id: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="NEW_ID", help="Import the one conversation of an exported file under another id."
        ),
    ] = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> int:
    """Import recorded conversations into a database.

    Importing a file again adds only what is new in it. A file that cannot be read is reported, and the others are
    imported.
    """
    from timeline.cli import intake

    return _run(intake.import_files(files, db, mask=mask, new_id=new_id, as_json=as_json))


@app.command()
def simulate(
    named: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|ID",
            help="Recorded conversations, files of `export`, or conversations of the database.",
            autocompletion=complete_conversation,
        ),
    ],
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="A policy of `timeline policies`, or a .toml file; repeatable.",
            autocompletion=complete_policy,
        ),
    ] = None,
    max_tokens: Annotated[
        list[int] | None,
        typer.Option("--max-tokens", metavar="N", help="The context limit, instead of the policy's own; repeatable."),
    ] = None,
    model: Model = None,
    system: System = None,
    call: FromCall = None,
    pauses: Pauses = 1.0,
    keep: Annotated[
        bool, typer.Option("--keep", help="With an ID or an exported log: keep the new conversation in the database.")
    ] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> int:
    """Try policies on recorded and stored conversations.

    Appends each recording, event by event, to a new conversation and renders before each recorded model call. With
    several files, policies or limits it runs every combination and prints a table. The policy is `balanced` unless
    --policy names another one; the new conversation keeps it. A stored conversation is only read, unless --keep is
    given. With --call it is taken as it was up to that model call; the policy decides from there on.
    """
    from timeline.cli import simulating
    from timeline.cli.contexts import Wish

    limits: list[int | None] = [*max_tokens] if max_tokens else [None]
    names: list[str | None] = [*policy] if policy else [None]
    wishes = [Wish(policy=name, max_tokens=limit, model=model, system=system) for name in names for limit in limits]
    options = simulating.Options(db, keep, call, pauses)
    return _run(simulating.simulate_files(named, wishes, options, as_json=as_json))


app.command()(lab)


@app.command()
def ls(
    *,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the N that changed last, newest first.")
    ] = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """List the conversations of a database.

    version: the number of the newest event. window from: the version at which the live window begins; a summary covers
    what lies before it.
    """
    from timeline.cli import listing

    _run(listing.ls(db, limit=limit, as_json=as_json))


@app.command()
def show(
    id_: ConversationId,
    *,
    at: PastVersion = None,
    every: Annotated[bool, typer.Option("--all", help="List every event.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show a conversation as a tree of turns and rounds.

    Each line has a block's version, state, tokens and path. Each turn that a summary covers is one line below the
    summary. --all and --json list every event instead.
    """
    from timeline.cli import show as command

    _run(command.show(id_, db, at=at, every=every, as_json=as_json))


@app.command()
def render(
    id_: ConversationId,
    *,
    policy: PolicyName = None,
    max_tokens: MaxTokens = None,
    model: Model = None,
    system: System = None,
    wire: RequestBody = None,
    at: PastVersion = None,
    now: Annotated[
        str | None, typer.Option("--now", metavar="TIME", help="Render at this time, such as 2026-01-31T12:00:00Z.")
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--call",
            min=1,
            metavar="N",
            help="Show the context of this model call, as it was.",
            autocompletion=complete_call,
        ),
    ] = None,
    record: Annotated[bool, typer.Option("--record", help="Append the decisions and the context to the log.")] = False,
    summarize: Summarize = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="List every block with its state and the rule behind it.")
    ] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Render the context that the model would see now.

    The policy is the conversation's own unless --policy names another one. Without --record this is a dry run: it
    appends nothing. Without --summarize no model is called: summaries are extracted from the text. --call shows what
    was sent with a model call, including the system prompt, tools and tail.
    """
    from timeline.cli import contexts

    wish = contexts.Wish(policy, max_tokens=max_tokens, model=model, system=system, now=now, summarize=summarize)
    if number is not None:
        if at is not None or record or wish != contexts.Wish():
            raise typer.BadParameter("--call shows a context as it was. Leave out what would render another one.")
        _run(contexts.render_call(id_, number, db, wire=wire, explain=explain, as_json=as_json))
        return
    _run(contexts.render(id_, db, wish, at=at, wire=wire, record=record, explain=explain, as_json=as_json))


@app.command()
def diff(
    id_: ConversationId,
    before: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A recorded context: #3, call:84, a version, last or last~1. Or a summary: @59."
        ),
    ] = "last~1",
    after: Annotated[str, typer.Argument(metavar="B", help="The recorded context to compare it with.")] = "last",
    *,
    other: Annotated[
        str | None, typer.Option("--other", metavar="ID", help="The conversation of B, such as a fork.")
    ] = None,
    wire: ComparedBytes = "anthropic",
    every: Annotated[bool, typer.Option("--all", help="List all blocks, not only the first of each kind.")] = False,
    only_list: Annotated[bool, typer.Option("--list", help="Only list the recorded contexts.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Compare two recorded contexts, or two summaries.

    Takes the last two contexts unless A and B name others. Lists the blocks that entered, left and changed; shows how
    the summary changed, and where and why the prefix that the provider had cached changed. `timeline diff ID @59 @156`
    compares only the texts of two summaries. `timeline diff ID last last --other FORK` compares what two conversations
    were sent.
    """
    from timeline.audit.differences import Side
    from timeline.cli import diff as command

    if only_list:
        _run(command.list_contexts(id_, db, as_json=as_json))
    elif "@" in before + after and other is None:
        _run(command.diff_of_summaries(id_, before, after, db, as_json=as_json))
    else:
        sides = Side(id_, before), Side(other or id_, after)
        _run(command.diff_contexts(*sides, db, wire, every=every, as_json=as_json))


@app.command()
def why(
    id_: ConversationId,
    block: BlockName = None,
    *,
    call: Annotated[
        int | None,
        typer.Option(
            "--call", min=1, metavar="N", help="Look in the context of this model call.", autocompletion=complete_call
        ),
    ] = None,
    at: PastVersion = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show why a block is shown as it is, or is not there.

    Prints the block's state (now, at a version, or in the context of a call), the first decision that led to it, what
    is shown in its place, and the commands that show the block again.
    """
    from timeline.cli import why as command
    from timeline.cli.block_names import block_named

    _run(command.why_block(*block_named(id_, block), db, at=at, call=call, as_json=as_json))


@app.command()
def calls(id_: ConversationId, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """List the model calls of a conversation, one per line.

    Failed calls and retries are numbered, too. decisions: how many decisions changed the context since the previous
    call.
    """
    from timeline.cli import calls as command

    _run(command.list_calls(id_, db, as_json=as_json))


@app.command()
def usage(id_: ConversationId, *, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Show the tokens that a conversation and its subagents used.

    One line per conversation, then the sum. in: what was sent, including what the provider's cache answered (cached)
    and took in (written). summaries: what the models that wrote the summaries used. dollars: the price of both, at the
    list prices that `timeline lab` has.
    """
    from timeline.cli import calls as command

    _run(command.show_usage(id_, db, as_json=as_json))


@app.command()
def call(
    id_: ConversationId,
    number: Annotated[
        int,
        typer.Argument(
            metavar="N", min=1, help="The call's number, as `calls` prints it.", autocompletion=complete_call
        ),
    ],
    *,
    body: Annotated[
        bool, typer.Option("--body", help="Print only the request body, as compact JSON without a trailing newline.")
    ] = False,
    wire: RequestBody = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show a model call: what was sent, what came back, and which decisions came before.

    The request body is built again from the log: `timeline call ID 84 --body | sha256sum` prints the recorded hash.
    """
    from timeline.cli import calls as command

    _run(command.show_call(id_, number, db, wire=wire, body=body, as_json=as_json))


@app.command()
def compact(
    id_: ConversationId,
    *,
    policy: PolicyName = None,
    max_tokens: MaxTokens = None,
    model: Model = None,
    instructions: Annotated[
        str, typer.Option("--instructions", metavar="TEXT", help="What the summary should focus on.")
    ] = "",
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="BLOCK", help="First block that stays: a path, or an address as @152."),
    ] = None,
    summarize: Summarize = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Compact a conversation now, whatever its size.

    The policy decides how much stays; with --until one summary covers what is before that block, and nothing else is
    hidden.

    The policy is the conversation's own. --policy uses another one for this command alone, and the log says so; a
    conversation without a policy, such as an import, adopts it. Without --summarize no model is called: the summary is
    extracted from the text.
    """
    from timeline.cli import contexts

    wish = contexts.Wish(policy=policy, max_tokens=max_tokens, model=model, summarize=summarize)
    _run(contexts.compact(id_, db, wish, instructions, until=until, as_json=as_json))


for _command in (*COMMANDS, *FILE_COMMANDS):
    app.command()(_command)


@app.command()
def read(
    id_: ConversationId,
    block: BlockName = None,
    *,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Print a block in full, by its path or its address.

    An address is @ and the version that `show` prints. Covered and hidden blocks are printed, too. `search` prints
    addresses with their conversation; `timeline read cards@152` takes one as it is.
    """
    from timeline.cli import listing
    from timeline.cli.block_names import block_named

    conversation, name = block_named(id_, block)
    _run(listing.read(conversation, name, db, as_json=as_json))


@app.command()
def digests(
    id_: OneConversation = None,
    *,
    since: Since = None,
    until: Until = None,
    tool: Annotated[str | None, typer.Option("--tool", metavar="NAME", help="Only where this tool was used.")] = None,
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="GLOB",
            help="Only where a matching file was read, written or deleted, such as '**/src/*.py'.",
        ),
    ] = None,
    command: Annotated[
        str | None, typer.Option("--command", metavar="TEXT", help="Only where a command contains this.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only where something failed.")] = False,
    error_text: Annotated[
        str | None, typer.Option("--error-text", metavar="TEXT", help="Only where an error's text contains this.")
    ] = None,
    compaction_number: Annotated[
        str | None,
        typer.Option("--compaction", metavar="N", help="Only the N-th compaction of a conversation, or a range: 2-4."),
    ] = None,
    reverted: Annotated[bool, typer.Option("--reverted", help="Only compactions that were undone.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """List what each compaction covered.

    Shows the files read and written, commands, searches and errors, over all conversations. A compaction is listed
    when it meets every filter; filters by tool, path, command or error also reduce its list to the matching entries.
    """
    from timeline.cli import questions

    span = questions.Span(id_, since, until)
    wanted = questions.Wanted(span, tool, path, command, failed, error_text, compaction_number, reverted)
    _run(questions.digests(wanted, db, as_json=as_json))


@app.command()
def facts(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="Only in these conversations.",
            autocompletion=complete_conversation,
            show_default=False,
        ),
    ] = None,
    *,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="file_read, file_written, file_deleted, command, search, error, url, identifier, request; repeatable.",
            autocompletion=complete_kind,
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            metavar="TEXT",
            help="Only where the file, command, query, URL, identifier or request contains this.",
        ),
    ] = None,
    glob: Annotated[
        str | None,
        typer.Option("--glob", metavar="GLOB", help="Only where the whole subject matches, such as '**/src/*.py'."),
    ] = None,
    tool: Annotated[
        str | None, typer.Option("--tool", metavar="NAME", help="Only by the tool of exactly this name.")
    ] = None,
    exit_status: Annotated[
        int | None, typer.Option("--exit-status", metavar="N", help="Only where the exit status is N.")
    ] = None,
    failed: Annotated[
        bool | None, typer.Option("--failed/--worked", help="Only what failed, or only what did not.")
    ] = None,
    since: Since = None,
    until: Until = None,
    covered: Annotated[
        bool | None,
        typer.Option("--covered/--live", help="Only what a compaction covers, or only what is still in the window."),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("--query", metavar="WORDS", help="Only where all words occur in the subject, tool or detail."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, metavar="N", help="Only the newest N facts (default: 50; all with --json)."),
    ] = None,
    record: Annotated[
        bool,
        typer.Option("--record", help="Print one merged record of each conversation instead; takes no conditions."),
    ] = False,
    reach: Annotated[bool, typer.Option("--reach", help="Only print how far the index reaches.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """List what was done, named and asked for: files, commands, searches, errors, URLs, identifiers, requests.

    Looks at the whole log, covered blocks included. A fact is listed when it meets every condition: `--kind command
    --subject "go test" --failed` lists the runs of go test that failed, and nothing else. `timeline read` prints the
    block at a fact's address.
    """
    from timeline.cli import facts as command

    wanted = command.Wanted(
        ids or (), kind or (), subject, glob, tool, exit_status, failed, since, until, covered, query
    )
    narrowed = bool(wanted.conditions) or limit is not None
    if reach:
        if narrowed or record or wanted.conversations:
            raise typer.BadParameter("--reach is about the whole database. Leave out everything but --db and --json.")
        _run(command.reach(db, as_json=as_json))
    elif record:
        if narrowed:
            raise typer.BadParameter("--record covers the whole conversation. Leave out the conditions.")
        _run(command.records(wanted.conversations, db, as_json=as_json))
    else:
        _run(command.facts(wanted, limit, db, as_json=as_json))


@app.command()
def search(
    text: Annotated[
        str, typer.Argument(metavar="WORDS", help='Words, "an exact phrase", or the start of a word: log*')
    ],
    id_: OneConversation = None,
    *,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only blocks of this type, such as user.prompt; repeatable."),
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="At most N blocks (default: 20; all with --json).")
    ] = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Search the text of all blocks and summaries.

    Lists the blocks that contain all the words, best match first, covered blocks included. Each comes with one of its
    lines, in which « » mark the words. A name such as src/app/main.py or test_login is found whole and by its parts.
    The first search indexes the database; later ones index only new blocks.
    """
    from timeline.cli import questions

    span = questions.Span(id_, since, until)
    _run(questions.search(text, span, types or [], limit, db, as_json=as_json))


@app.command()
def verify(
    id_: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="A conversation's id (default: all).", autocompletion=complete_conversation),
    ] = None,
    *,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="HEX", help="A head that you kept elsewhere: one event must have this link."),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also check everything that is derived from the log, such as the indexes.")
    ] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> int:
    """Check every invariant and every recorded context.

    Computes the chain of each log again, and rebuilds each recorded context byte for byte. Keep the head that it
    prints for an ID, or with --json for all, in another place: a log that was changed before it, however skilfully,
    never has that head. Only what a redaction or a scavenge behind it took out has; the report says what that is. The
    exit code is 1 if a check fails.
    """
    from timeline.cli import checking

    if deep:
        if id_ is not None or head is not None:
            raise typer.BadParameter("--deep is for the whole database: give neither an id nor --head with it.")
        return _run(checking.verify_deep(db, as_json=as_json))
    if head is not None and id_ is None:
        raise typer.BadParameter("--head belongs to one conversation: give its id.")
    return _run(checking.verify(id_, db, head, as_json=as_json))


@app.command()
def repair(
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this, only print what would be rebuilt.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> int:
    """Rebuild what is derived from the log and damaged: indexes, digests, facts, search, snapshots.

    Changes no event: a damaged event can only come from a backup, and the exit code is 1 if one is left. Writes into
    the damaged file. So first close the programs that use it, and copy the file, and its -wal if there is one.
    """
    from timeline.cli import checking

    return _run(checking.repair(db, yes=yes, as_json=as_json))


app.command()(export)
app.add_typer(policies_app, name="policies")
app.command()(mcp)
app.command()(inspect)
