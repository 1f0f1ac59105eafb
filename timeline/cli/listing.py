"""`timeline ls`, `read` and `digests`: what a database holds, one block of it, and what compactions covered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.blocks import ToolCall
from timeline.cli import output
from timeline.cli.database import reading
from timeline.cli.output import brief, note, paint, write, write_rows
from timeline.events import CompactionCompleted, instant_text
from timeline.frozen import canonical_json
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from timeline.blocks import Block
    from timeline.cli.shapes import ConversationRow, DigestRow
    from timeline.ports import ConversationInfo, EventStore

_MOST_LINES = 8
"""Items of each list of a digest that a person is shown."""


async def ls(db: str, *, as_json: bool) -> None:
    """List the conversations, in the order in which they were opened.

    Raises:
        StoreError: the database is not there, or cannot be read.
    """
    async with reading(db) as store:
        if as_json:
            await write_rows(_conversations(store))
            return
        rows = [row async for row in _conversations(store)]
    if not rows:
        write(f"{db} holds no conversation. Add one: timeline import FILE --db {db}")
        return
    output.table(
        ("id", "version", "window", "updated", "part of", "title"),
        [
            (
                row["id"],
                row["version"],
                row["window_start"],
                row["updated_at"][:16].replace("T", " "),
                (row["parent"] or {}).get("conversation", ""),
                row["title"],
            )
            for row in rows
        ],
    )


async def _conversations(store: EventStore) -> AsyncIterator[ConversationRow]:
    async for info in store.conversations():
        yield _conversation(info)


def _conversation(info: ConversationInfo) -> ConversationRow:
    return {
        "id": info.id,
        "title": info.title,
        "version": info.version,
        "window_start": info.window_start,
        "created_at": instant_text(info.created_at),
        "updated_at": instant_text(info.updated_at),
        "parent": None if info.parent is None else info.parent.model_dump(mode="json"),
    }


async def read(conversation: str, path: str, db: str, *, as_json: bool) -> None:
    """Print the block at a path: its text in full, or its JSON form.

    Raises:
        ConversationNotFound: there is no such conversation.
        BlockNotFound: it has no such path.
    """
    async with reading(db) as store:
        timeline = await Timeline.open(store, conversation, create=False)
        block = await timeline.read(path)
    if as_json:
        output.write_json(block.dump())
    else:
        write(output.plain(text_of(block)))


def text_of(block: Block) -> str:
    """Return what a person reads of a block: its text, a call's name and arguments, or data where that is all."""
    if isinstance(block, ToolCall):
        arguments = block.arguments
        shown = arguments if isinstance(arguments, str) else output.to_json(arguments, indent=2)
        return "\n".join(filter(None, [f"{block.name} {shown}", block.text]))
    if block.text or block.data is None:
        return block.text
    return canonical_json(block.data)


async def digests(conversation: str | None, db: str, *, as_json: bool) -> None:
    """Print what each compaction covered, oldest first, over all conversations or one.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    async with reading(db) as store:
        if conversation is not None:
            await store.info(conversation)
        rows = _digests(store, conversation)
        if as_json:
            await write_rows(rows)
            return
        found = 0
        async for row in rows:
            found += 1
            _print_digest(row)
    if not found:
        write("No compaction yet. Try one: timeline compact ID, or timeline simulate FILE")


async def _digests(store: EventStore, conversation: str | None) -> AsyncIterator[DigestRow]:
    types = ["compaction.completed"]
    events = store.read_all(types=types) if conversation is None else store.read(conversation, types=types)
    newer = 0
    async for event in events:
        payload = event.payload
        if not isinstance(payload, CompactionCompleted):
            newer += 1
            continue
        yield {
            "conversation": event.conversation,
            "version": event.version,
            "at": instant_text(event.at),
            "round": payload.round,
            "summary": payload.block.path,
            "covers": payload.covers.model_dump(mode="json"),
            "digest": payload.digest.dump(),
        }
    if newer:
        note(f"{newer} compactions were written by a later version and are left out. Upgrade timeline-engine.")


def _print_digest(row: DigestRow) -> None:
    ranges = ", ".join(f"{first}-{last}" for first, last in row["covers"]["ranges"])
    write(paint(output.plain(row["conversation"]), bold=True) + f"  round {row['round']}, {row['at'][:16]}")
    write(f"  {output.plain(row['summary'])} covers versions {ranges}")
    digest = row["digest"]
    _list("wrote", (f"{f['file']}{_times(f)}" for f in digest.get("files_written", ())))
    _list("read", (f"{f['file']}{_times(f)}" for f in digest.get("files_read", ())))
    _list("ran", (f"{c['command']}{_outcome(c)}" for c in digest.get("commands", ())))
    _list("searched", (f"{s['query']} ({s['tool']})" for s in digest.get("searches", ())))
    _list("errors", (f"{e['tool']}: {e['message']}" for e in digest.get("errors", ())))
    tools = (f"{t['tool']} {t['count']}x, {t['tokens']:,} tokens" for t in digest.get("tool_outputs", ()))
    _list("tools", [", ".join(tools)])
    write()


def _times(use: dict[str, int]) -> str:
    times = use.get("times", 1)
    return f" ({times} times)" if times > 1 else ""


def _outcome(command: dict[str, object]) -> str:
    if not command.get("failed"):
        return ""
    status = command.get("exit_status")
    return " - failed" + (f" with status {status}" if status is not None else "")


def _list(label: str, items: Iterable[str]) -> None:
    texts = [text for text in items if text]
    for number, text in enumerate(texts[:_MOST_LINES]):
        write(f"  {'' if number else label:<9} {brief(text, max(output.width() - 13, 20))}")
    if len(texts) > _MOST_LINES:
        write(f"  {'':<9} … and {len(texts) - _MOST_LINES} more: see --json")
