# ruff: noqa: PLC0415 - what a command needs is imported when it runs, so that `timeline --help` stays quick
"""The commands about policies: their options and help. `timeline.cli.policies` does the work."""

from __future__ import annotations

from typing import Annotated

import typer

from timeline.cli.options import AsJson, MaxTokens, Model  # noqa: TC001 - typer reads the annotations

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
