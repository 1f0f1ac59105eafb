# ruff: noqa: PLC0415 - a completion imports no more than it needs: a person waits for it between two keys
"""What the shell offers behind TAB besides commands and options: conversation ids, policies and wire formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer  # noqa: TC002 - typer reads the annotations

from timeline.display.controls import show_controls

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST: Final = 200
"""The most ids that are offered."""


def complete_conversation(context: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of the database that begin so; none where it cannot be read, since a prompt has no place for why.

    The database is only read. An id that a shell would take for several words is left out.
    """
    from timeline.cli.running import run
    from timeline.errors import TimelineError

    try:
        return run(_ids(context.params["db"], incomplete))
    except (TimelineError, OSError):
        return []


async def _ids(db: str, incomplete: str) -> list[str]:
    from timeline.cli.database import only_reading

    found: list[str] = []
    async with only_reading(db) as store:
        async for info in store.conversations():
            is_word = len(info.id.split()) == 1 and show_controls(info.id) == info.id
            if is_word and info.id.startswith(incomplete):
                found.append(info.id)
            if len(found) == _MOST:
                break
    return found


def complete_call(context: typer.Context, incomplete: str) -> list[str]:
    """Return the numbers of the conversation's calls that begin so, the newest first."""
    from timeline.cli.running import run
    from timeline.errors import TimelineError

    # Behind an option without its value yet, the arguments are not assigned to their names.
    conversation = context.params.get("id_") or next(iter(context.args), "")
    try:
        return run(_numbers(context.params["db"], conversation, incomplete))
    except (TimelineError, OSError):
        return []


async def _numbers(db: str, conversation: str, incomplete: str) -> list[str]:
    from timeline.audit.recorded_calls import recorded_calls
    from timeline.cli.database import only_reading

    async with only_reading(db) as store:
        calls = await recorded_calls(store, conversation)
    return _beginning(incomplete, (str(call.number) for call in reversed(calls)))[:_MOST]


def complete_policy(incomplete: str) -> list[str]:
    """Return the named policies that begin so; where none does, the shell offers files."""
    from timeline.policy.files import policy_names

    return _beginning(incomplete, policy_names())


def complete_kind(incomplete: str) -> list[str]:
    """Return the kinds of facts that begin so."""
    from timeline.queries import FACT_KINDS

    return _beginning(incomplete, FACT_KINDS)


def complete_wire(incomplete: str) -> list[str]:
    """Return the wire formats that begin so."""
    from timeline.wire import WIRES

    return _beginning(incomplete, WIRES)


def complete_sent_wire(incomplete: str) -> list[str]:
    """Return the wire formats that begin so and that a provider gets the bytes of."""
    from timeline.wire import SENT

    return _beginning(incomplete, SENT)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
