"""The help of commands without Python's types: `ID`, not `{ID}` and `ID <str>`; "at least 1", not "x>=1"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand
from typer.main import get_command, get_command_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typer.models import CommandInfo

_TYPE: Final = re.compile(r" <[^<>|]*>(\.\.\.)?")
"""The type of an argument or option; the choices of an option, such as <jsonl|markdown>, are kept."""
_REQUIRED: Final = re.compile(r"^\{(.*)\}")
_BETWEEN: Final = re.compile(r"\b(\d+)<=x<=(\d+)\b")
_AT_LEAST: Final = re.compile(r"\bx>=(\d+)\b")


class _Command(TyperCommand):
    """A command with such a help, which takes one side of a switch (`--failed/--worked`), not both."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(args=[*args])
        for param in given:
            both = [name for name in (*param.opts, *param.secondary_opts) if name in args]
            if param.secondary_opts and given.count(param) > 1 and len(both) > 1:
                ctx.fail(f"{' and '.join(both)} exclude each other. Leave out one of them.")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [_REQUIRED.sub(r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                rows[param.param_type_name].append((_TYPE.sub("", record[0]), _in_words(record[1])))
        for heading, records in zip(("Arguments", "Options"), rows.values(), strict=True):
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _in_words(text: str) -> str:
    return _AT_LEAST.sub(r"at least \1", _BETWEEN.sub(r"\1 to \2", text))


class _WhenAsked(Mapping[str, Any]):
    """Commands by name, each made when it is asked for: typer reads a hundred functions to make all of ours."""

    def __init__(self, infos: dict[str, CommandInfo], made: Mapping[str, Any]) -> None:
        self._infos = infos
        self._made = dict(made)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
            alone.registered_commands.append(self._infos[name])
            self._made[name] = get_command(alone)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self._infos, *self._made))

    def __len__(self) -> int:
        return len(self._infos.keys() | self._made.keys())


class Commands(typer.Typer):
    """A group of commands, each with such a help, which `-h` prints, too."""

    def __init__(self, **options: Any) -> None:
        names = {"help_option_names": ["-h", "--help"]}
        super().__init__(rich_markup_mode=None, context_settings=names, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Register a command, as typer does."""
        return super().command(name, cls=_Command, **options)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run a command."""
        return self._group(*args, **options)

    @cached_property
    def _group(self) -> Any:
        """All commands and groups, as they are registered when the first one is run."""
        infos = {_name(info): info for info in self.registered_commands}
        self.registered_commands: list[CommandInfo] = []
        group: Any = get_command(self)
        self.registered_commands = list(infos.values())
        group.commands = _WhenAsked(infos, group.commands)
        return group


def _name(info: CommandInfo) -> str:
    return info.name or get_command_name(getattr(info.callback, "__name__", ""))
