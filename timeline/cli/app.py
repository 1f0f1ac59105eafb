# ruff: noqa: PLC0415 - what a command needs is imported when it runs, so that `timeline --help` stays quick
"""The commands, their options and their help. What they do is in the modules that they import when they run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

import timeline
from timeline.cli.commands import COMMANDS, mcp, policies_app
from timeline.cli.exits import MEANINGS
from timeline.cli.lab import lab
from timeline.cli.options import (
    DEFAULT_DATABASE,
    AsJson,
    ComparedBytes,
    ConversationId,
    Db,
    MaxTokens,
    Model,
    OneConversation,
    PastVersion,
    PolicyName,
    RequestBody,
    Since,
    Summarize,
    System,
    Until,
)
from timeline.cli.running import run as _run

_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:<3}  {meaning}" for code, meaning in MEANINGS.items())

app = typer.Typer(
    name="timeline",
    help="Compact, replay and question the conversations of agents. Begin with: timeline demo",
    epilog=_EPILOG,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class ExportFormat(StrEnum):
    """What `export` can write, besides a provider's messages."""

    jsonl = "jsonl"
    markdown = "markdown"


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
        str | None, typer.Option("--db", metavar="PATH", help="Keep the demo's conversation in this database.")
    ] = None,
) -> int:
    """See in a minute what a timeline does.

    Needs no key and no network, and leaves nothing behind unless --db says where.
    """
    from timeline.cli import demo as command

    return _run(command.demo(db))


@app.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Recorded conversations.")],
    *,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> int:
    """Import recorded conversations.

    Importing a file again adds only what is new in it. A bad file is reported, the others are imported.
    """
    from timeline.cli import intake

    return _run(intake.import_files(files, db, as_json=as_json))


@app.command()
def simulate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Recorded conversations.")],
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="NAME", help="A preset, or a file ending in .toml; balanced unless given."),
    ] = None,
    max_tokens: Annotated[
        list[int] | None,
        typer.Option("--max-tokens", metavar="N", help="The context limit; the preset's own unless given."),
    ] = None,
    model: Model = None,
    system: System = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> int:
    """Try policies on recorded conversations.

    Feeds each event by event into a new conversation, and renders before each recorded model call. Several files,
    policies and limits (give the options again) are tried in every combination, and reported as a table.
    """
    from timeline.cli import simulating
    from timeline.cli.contexts import Wish

    limits: list[int | None] = [*max_tokens] if max_tokens else [None]
    wishes = [
        Wish(policy=name, max_tokens=limit, model=model, system=system)
        for name in policy or ["balanced"]
        for limit in limits
    ]
    return _run(simulating.simulate_files(files, db, wishes, as_json=as_json))


app.command()(lab)


@app.command()
def ls(*, db: Db = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """List the conversations."""
    from timeline.cli import listing

    _run(listing.ls(db, as_json=as_json))


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

    Each block with its state. A turn that a summary covers takes one line under it; --all lists every event instead,
    and so does --json.
    """
    from timeline.cli import show as command

    _run(command.show(id_, db, at=at, every=every, as_json=as_json))


@app.command()
def render(
    id_: ConversationId,
    *,
    policy: PolicyName = "balanced",
    max_tokens: MaxTokens = None,
    model: Model = None,
    system: System = None,
    wire: RequestBody = None,
    at: PastVersion = None,
    now: Annotated[str | None, typer.Option("--now", metavar="TIME", help="The time to render at, with zone.")] = None,
    record: Annotated[bool, typer.Option("--record", help="Record what is decided; otherwise a dry run.")] = False,
    summarize: Summarize = None,
    explain: Annotated[bool, typer.Option("--explain", help="List every block, and why it is so.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Render what the model would see now.

    A dry run unless --record is given. No model is called unless --summarize names one: summaries are extracted from
    the text.
    """
    from timeline.cli import contexts

    wish = contexts.Wish(policy, max_tokens=max_tokens, model=model, system=system, now=now, summarize=summarize)
    _run(contexts.render(id_, db, wish, at=at, wire=wire, record=record, explain=explain, as_json=as_json))


@app.command()
def diff(
    id_: ConversationId,
    before: Annotated[
        str, typer.Argument(metavar="[A]", help="A recorded context: #3, a version, last or last~1.")
    ] = "last~1",
    after: Annotated[str, typer.Argument(metavar="[B]", help="Another one.")] = "last",
    *,
    wire: ComparedBytes = "anthropic",
    every: Annotated[bool, typer.Option("--all", help="List all blocks, however many.")] = False,
    only_list: Annotated[bool, typer.Option("--list", help="List the recorded contexts instead.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Compare two recorded contexts.

    What entered, left and changed, and where and why the prefix broke that the provider had cached. The last two
    unless others are named.
    """
    from timeline.cli import diff as command

    if only_list:
        _run(command.list_contexts(id_, db, as_json=as_json))
    else:
        _run(command.diff_contexts(id_, before, after, db, wire, every=every, as_json=as_json))


@app.command()
def compact(
    id_: ConversationId,
    *,
    policy: PolicyName = "balanced",
    max_tokens: MaxTokens = None,
    model: Model = None,
    instructions: Annotated[
        str, typer.Option("--instructions", metavar="TEXT", help="What the summary should attend to.")
    ] = "",
    summarize: Summarize = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Compact a conversation now, whatever its size.

    No model is called unless --summarize names one: the summary is extracted from the text.
    """
    from timeline.cli import contexts

    wish = contexts.Wish(policy=policy, max_tokens=max_tokens, model=model, summarize=summarize)
    _run(contexts.compact(id_, db, wish, instructions, as_json=as_json))


for _command in COMMANDS:
    app.command()(_command)


@app.command()
def read(
    id_: ConversationId,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A block's path, as printed anywhere.")],
    *,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Print the block at a path, in full.

    Whatever its state: covered and hidden blocks too.
    """
    from timeline.cli import listing

    _run(listing.read(id_, path, db, as_json=as_json))


@app.command()
def digests(
    *,
    conversation: OneConversation = None,
    since: Since = None,
    until: Until = None,
    tool: Annotated[str | None, typer.Option("--tool", metavar="NAME", help="Only where this tool was used.")] = None,
    path: Annotated[
        str | None,
        typer.Option(
            "--path", metavar="GLOB", help="Only where such a file was read or written, for example '**/src/*.py'."
        ),
    ] = None,
    command: Annotated[
        str | None, typer.Option("--command", metavar="TEXT", help="Only where a command contains this.")
    ] = None,
    error: Annotated[bool, typer.Option("--error", help="Only where something failed.")] = False,
    error_text: Annotated[
        str | None, typer.Option("--error-text", metavar="TEXT", help="Only where an error's text contains this.")
    ] = None,
    round_: Annotated[
        str | None, typer.Option("--round", metavar="N", help="Only a conversation's n-th compaction, or 2-4.")
    ] = None,
    reverted: Annotated[bool, typer.Option("--reverted", help="Those that were taken back, instead.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """List what each compaction covered.

    Files read and written, commands, searches and errors, over all conversations. Filters add up; with some, only the
    entries that they ask for are shown.
    """
    from timeline.cli import questions

    span = questions.Span(conversation, since, until)
    wanted = questions.Wanted(span, tool, path, command, error, error_text, round_, reverted)
    _run(questions.digests(wanted, db, as_json=as_json))


@app.command()
def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help='Words; "words in order"; begin* of a word.')],
    *,
    conversation: OneConversation = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only such blocks, as `show` names them; again.")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="At most so many; 20, or all with --json.")
    ] = None,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Search the text of all blocks and summaries.

    Finds blocks that hold all words, covered ones too, the best first. src/app/main.py or test_login is found whole and
    by its parts. The first search indexes the database; later ones only what is new.
    """
    from timeline.cli import questions

    _run(questions.search(text, questions.Span(conversation, since, until), types or [], limit, db, as_json=as_json))


@app.command()
def verify(
    id_: Annotated[str | None, typer.Argument(metavar="[ID]", help="A conversation; all of them unless given.")] = None,
    *,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> int:
    """Check every invariant, rebuild every context.

    Rebuilds each recorded context byte for byte. The exit code is 1 when anything does not hold.
    """
    from timeline.cli import checking

    return _run(checking.verify(id_, db, as_json=as_json))


@app.command()
def export(
    id_: Annotated[str | None, typer.Argument(metavar="[ID]", help="A conversation, as `ls` names it.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All conversations, as one file of logs.")] = False,
    format_: Annotated[ExportFormat, typer.Option("--format", help="The log itself, or a transcript.")] = (
        ExportFormat.jsonl
    ),
    wire: Annotated[
        str,
        typer.Option("--wire", metavar="W", help="Instead: messages as anthropic, openai-chat, … takes them."),
    ] = "",
    window: Annotated[
        bool, typer.Option("--window", help="Messages, transcript: only what the model would see now.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Transcript: so many characters of each block.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here; standard output unless given.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    db: Db = DEFAULT_DATABASE,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False,
) -> int:
    """Write conversations out.

    jsonl is the log itself, which `import` reads back event for event; markdown a transcript with states; --wire all
    messages, uncompacted, as a provider takes them. What is redacted is in none of them.
    """
    from timeline.cli import export as command

    if (id_ is None) is not every:
        raise typer.BadParameter("name one conversation, or give --all.")
    shape = command.Shape("jsonl" if as_json else format_.value, wire.replace("-", "_"), window, limit)
    return _run(command.export(id_, db, shape, command.Target(output, force)))


app.add_typer(policies_app, name="policies")
app.command()(mcp)
