"""The help of commands without Python's types: `ID`, not `{ID}` and `ID <str>`; "at least 1", not "x>=1"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Callable

_TYPE: Final = re.compile(r" <[^<>|]*>(\.\.\.)?")
"""The type of an argument or option; the choices of an option, such as <jsonl|markdown>, are kept."""
_REQUIRED: Final = re.compile(r"^\{(.*)\}")
_BETWEEN: Final = re.compile(r"\b(\d+)<=x<=(\d+)\b")
_AT_LEAST: Final = re.compile(r"\bx>=(\d+)\b")


class _Command(TyperCommand):
    """A command with such a help."""

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


class Commands(typer.Typer):
    """A group of commands, each with such a help, which `-h` prints, too."""

    def __init__(self, **options: Any) -> None:
        names = {"help_option_names": ["-h", "--help"]}
        super().__init__(rich_markup_mode=None, context_settings=names, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Register a command, as typer does."""
        return super().command(name, cls=_Command, **options)
