# ruff: noqa: PLC0415 - what a command needs is imported when it runs, so that `timeline --help` stays quick
"""The command `timeline export`: its options and help. The work is in `timeline.cli.export` and `one_file`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from timeline.cli.completing import complete_conversation, complete_wire
from timeline.cli.options import DEFAULT_DATABASE, Db
from timeline.cli.running import run


class ExportFormat(StrEnum):
    """The formats of `export`, besides a provider's messages."""

    jsonl = "jsonl"
    markdown = "markdown"
    atif = "atif"
    bundle = "bundle"


class ExportMode(StrEnum):
    """What an HTML file carries."""

    full = "full"
    chat = "chat"


class ExportContexts(StrEnum):
    """The model calls whose contexts an HTML file carries."""

    all = "all"
    last = "last"
    none = "none"


Id: TypeAlias = Annotated[
    str | None,
    typer.Argument(metavar="ID", help="A conversation's id, as `ls` prints it.", autocompletion=complete_conversation),
]
Every: TypeAlias = Annotated[bool, typer.Option("--all", help="Write the logs of all conversations, as one file.")]
Format: TypeAlias = Annotated[
    ExportFormat, typer.Option("--format", help="The log, a transcript, a trajectory, or a bug bundle (zip).")
]
Wire: TypeAlias = Annotated[
    str,
    typer.Option(
        "--wire",
        metavar="W",
        help="Write messages instead, in this format: anthropic, openai-chat, …",
        autocompletion=complete_wire,
    ),
]
Window: TypeAlias = Annotated[
    bool, typer.Option("--window", help="Write only what the model would see now (with markdown or --wire).")
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option("--characters", min=1, metavar="N", help="Cut each block to N characters (with markdown).")
]
Output: TypeAlias = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file, not to standard output.")
]
Html: TypeAlias = Annotated[
    bool, typer.Option("--html", help="Write one HTML file with the inspector's page, which opens from disk.")
]
Mode: TypeAlias = Annotated[
    ExportMode, typer.Option("--mode", help="Write everything, or only prompts and answers (with --html).")
]
Contexts: TypeAlias = Annotated[
    ExportContexts, typer.Option("--contexts", help="The calls whose contexts the page can show (with --html).")
]
Redact: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--redact", help="List credentials and home folders; with --yes, write the file without them (with --html)."
    ),
]
Keep: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="FINDING", help="Do not take out this finding of the list; repeatable."),
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Write the file, without the listed findings.")]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")]


def export(
    id_: Id = None,
    *,
    every: Every = False,
    format_: Format = ExportFormat.jsonl,
    wire: Wire = "",
    window: Window = False,
    limit: Limit = None,
    output: Output = None,
    html: Html = False,
    mode: Mode = ExportMode.full,
    contexts: Contexts = ExportContexts.last,
    redact: Redact = False,
    keep: Keep = None,
    yes: Yes = False,
    force: Force = False,
    db: Db = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> int:
    """Write conversations to a file or to standard output.

    jsonl is the log itself, which `import` reads back event for event. markdown is a transcript with the state of each
    block. atif is a trajectory for tools that evaluate or train agents. bundle is a zip for a bug report: the log, the
    policy, versions, what verify says, the newest errors. --wire writes all messages, uncompacted, in a provider's
    format. --html writes one page with the log inside, named by id and version unless -o names it. None of them
    contains redacted content. Without --yes, --html --redact and --format bundle are dry runs: they list the
    credentials and home folders that would be taken out.
    """
    from timeline.cli import export as command

    target = command.Target(output, force)
    bundles = format_ is ExportFormat.bundle and not html
    if (redact and not html) or ((yes or keep) and not (redact or bundles)):
        raise typer.BadParameter("--redact goes with --html; --yes and --keep go with --redact or --format bundle.")
    if html or bundles:
        from timeline.cli.one_file import export_bundle, export_html
        from timeline.inspector.onefile.collecting import Wish

        if wire or window or limit is not None or as_json or (html and format_ is not ExportFormat.jsonl):
            allowed = "--mode, --contexts, --redact, --keep, --yes, -o" if html else "--keep, --yes, -o"
            raise typer.BadParameter(
                f"{'--html' if html else '--format bundle'} goes with {allowed} and --force alone."
            )
        kept = tuple(keep or ())
        if bundles:
            return run(export_bundle(id_, db, kept, target, yes=yes))
        return run(export_html(id_, db, Wish(mode.value, contexts.value, redact, kept), target, yes=yes))
    if mode is not ExportMode.full or contexts is not ExportContexts.last:
        raise typer.BadParameter("--mode and --contexts go with --html.")
    if format_ is not ExportFormat.jsonl and (wire or as_json):
        other = "--wire" if wire else "--json"
        raise typer.BadParameter(f"--format {format_} and {other} are two formats. Choose one.")
    if (id_ is None) is not every:
        raise typer.BadParameter("give the id of one conversation, or --all.")
    shape = command.Shape("jsonl" if as_json else format_.value, wire.replace("-", "_"), window, limit)
    return run(command.export(id_, db, shape, target))
