"""The options of all commands against each other: one flag means one thing, and takes one kind of value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from typer.main import get_command

from timeline.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

OF_SEVERAL_KINDS: Final = {
    "--db": "the demo keeps its conversation in a file alone",
    "--from": "of redact a list of places, of copy a store",
    "--html": "of lab the file that is written beside the table, of export the form of its own output",
    "--keep": "of simulate the new conversation, of export a finding",
    "--to": "of backup a file, of copy a store",
    "--until": "of compact the first block that stays, of the questions a time",
    "--version": "of undo that of a compaction, without a command that of the library",
}
"""Options that take values of several kinds, each with the reason."""
WITHOUT_JSON: Final = {"demo", "inspect", "mcp"}
"""Commands that answer nothing: a story for people, and two servers."""


def commands(group: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the commands of a group and of those below it, each with its name."""
    for own in group.list_commands(None):
        command = group.get_command(None, own)
        yield f"{name} {own}".strip(), command
        if hasattr(command, "list_commands"):
            yield from commands(command, own)


def test_an_option_takes_one_kind_of_value() -> None:
    """Whatever command it is given to."""
    kinds: dict[str, set[str | None]] = {}
    root: Any = get_command(app)
    for _, command in [("", root), *commands(root)]:
        for option in (param for param in command.params if param.param_type_name == "option"):
            for flag in option.opts:
                kinds.setdefault(flag, set()).add(option.metavar)
    assert {flag for flag, found in kinds.items() if len(found) > 1} == OF_SEVERAL_KINDS.keys()


def test_each_command_that_answers_something_answers_in_json() -> None:
    """As its readers may be programs."""
    silent = {
        name
        for name, command in commands(get_command(app))
        if not any("--json" in param.opts for param in command.params)
    }
    assert silent == WITHOUT_JSON


def test_the_help_puts_brackets_around_an_argument_once() -> None:
    """Those of a command's usage; an argument's own name has none."""
    names = [param.metavar or "" for _, command in commands(get_command(app)) for param in command.params]
    assert [name for name in names if "[" in name] == []
