"""`timeline undo`, `go-back`, `fork`, `hide`, `reveal`, `pin`, `unpin`: decide by hand, under the log's own policy."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

from timeline.answers.listed import DecidedBlock
from timeline.cli import output
from timeline.cli.database import changing
from timeline.cli.exits import UsageProblem
from timeline.cli.options import BLANK_ID
from timeline.cli.output import paint, say, state_colour, write
from timeline.cli.wishes import opened
from timeline.errors import VersionConflict
from timeline.events.addresses import Address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from timeline.cli.shapes import DecidedRow, ForkedRow, UndoneRow
    from timeline.cli.wishes import PolicyWish
    from timeline.fold.window import Item
    from timeline.timeline import Timeline

Decision: TypeAlias = Literal["reveal", "pin", "unpin"]


@asynccontextmanager
async def _opened(conversation: str, db: str) -> AsyncIterator[Timeline]:
    """Open a conversation under its own policy."""
    async with changing(db) as store:
        yield await opened(store, conversation)


async def undo(conversation: str, version: int | None, db: str, *, cascade: bool, as_json: bool) -> None:
    """Undo compactions, and print which."""
    async with _opened(conversation, db) as timeline:
        before = timeline.window.tokens
        reverted = await timeline.undo_compaction(version, cascade=cascade)
        row: UndoneRow = {
            "conversation": conversation,
            "version": timeline.version,
            "decision": "undo",
            "reverted": reverted,
            "before_tokens": before,
            "after_tokens": timeline.window.tokens,
        }
    if as_json:
        output.write_json(row)
        return
    _head(conversation, row["version"])
    which = f"compaction of version {reverted[0]}" if len(reverted) == 1 else f"compactions of versions {reverted}"
    write(f"undid the {which.replace('[', '').replace(']', '')}")
    write(f"the window holds {row['after_tokens']:,} tokens; before, it held {before:,}")
    say("No render compacts this conversation until you run `timeline compact`.")


async def go_back(conversation: str, path: str | None, db: str, *, as_json: bool) -> None:
    """Go back behind a block, or the newest prompt, and print the blocks that changed."""
    async with _opened(conversation, db) as timeline:
        before = timeline.window.items
        await timeline.go_back(path)
        _print_decided(timeline, "go-back", before, as_json=as_json)


async def fork(
    conversation: str,
    db: str,
    wish: PolicyWish,
    *,
    at: int | None,
    call: int | None,
    new_id: str | None,
    title: str,
    as_json: bool,
) -> None:
    """Begin a fork, and print its id and the version that it starts from.

    Raises:
        UsageProblem: the new id is in use or empty, or both ``at`` and ``call`` are given.
    """
    if at is not None and call is not None:
        raise UsageProblem("--at and --call both name where the fork begins. Leave out one of them.")
    if new_id == "":
        raise UsageProblem(BLANK_ID)
    wish.check()
    async with changing(db) as store:
        timeline = await opened(store, conversation)
        policy = wish.instead_of(timeline.policy)
        try:
            branch = await timeline.fork(at=at, call=call, policy=policy, conversation=new_id, title=title)
        except VersionConflict as taken:
            raise UsageProblem(
                f"There is a conversation {taken.conversation!r} already. Name another id with --as, or leave it out."
            ) from None
        shared = (await store.info(branch.id)).base
        row: ForkedRow = {
            "conversation": branch.id,
            "version": branch.version,
            "decision": "fork",
            "base": shared,
        }
    if as_json:
        output.write_json(row)
        return
    _head(branch.id, branch.version)
    write(f"continues {conversation} from version {shared}")


async def hide(conversation: str, path: str, db: str, *, text: str | None, omit: bool, as_json: bool) -> None:
    """Hide a block, and print what is shown instead.

    Raises:
        UsageProblem: ``omit`` is given together with a text.
    """
    if omit and text is not None:
        raise UsageProblem("--omit shows nothing, so it takes no text. Leave out one of --omit and --text.")
    async with _opened(conversation, db) as timeline:
        before = timeline.window.items
        await timeline.hide(path, mode="omit" if omit else "replace", text=text)
        _print_decided(timeline, "hide", before, as_json=as_json)


async def decide(conversation: str, path: str, db: str, decision: Decision, *, as_json: bool) -> None:
    """Reveal, pin or unpin a block, and print the blocks that changed."""
    async with _opened(conversation, db) as timeline:
        before = timeline.window.items
        await {"reveal": timeline.reveal, "pin": timeline.pin, "unpin": timeline.unpin}[decision](path)
        _print_decided(timeline, decision, before, as_json=as_json)


def _print_decided(timeline: Timeline, decision: str, before: Sequence[Item], *, as_json: bool) -> None:
    """Print the blocks that a decision changed."""
    known = {item.version: item for item in before}
    changed = [item for item in timeline.window.items if item != known.get(item.version)]
    row: DecidedRow = {
        "conversation": timeline.id,
        "version": timeline.version,
        "decision": decision,
        "blocks": [DecidedBlock.of(item).model_dump() for item in changed],
    }
    if as_json:
        output.write_json(row)
        return
    _head(timeline.id, timeline.version)
    for item in changed:
        tokens = f"{item.tokens:,} tokens" if item.state == "visible" else f"{item.tokens:,} -> {item.shown_tokens:,}"
        state = paint(item.state, state_colour(item.state)) + (", pinned" if item.pinned else "")
        write(f"{state}  {tokens}  {Address(item.version)}  {item.block.path}")
        replacement = item.replacement
        if replacement is not None and item.state != "abridged":
            shown = replacement.text if replacement.arguments is None else output.to_json(replacement.arguments)
            write(f"  {shown}")
    if not changed:
        write("nothing changed")


def _head(conversation: str, version: int) -> None:
    write(paint(conversation, bold=True) + f"  version {version}")
