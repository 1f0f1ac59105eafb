"""`timeline ls` and `read`: list the conversations of a database, print one block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.answers.about import text_of
from timeline.answers.listed import ConversationRow, PolicyRow
from timeline.blocks import instant_text
from timeline.cli import output
from timeline.cli.database import db_option, reading
from timeline.cli.output import write, write_rows
from timeline.events import ConversationOpened, PolicyChanged, PolicyOrigin
from timeline.events.addresses import Address
from timeline.facts.name_list import LIST_KEY, asked_list
from timeline.log.blocks_by_name import find_readable
from timeline.store.addresses import without_password
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.ports import ConversationInfo, EventStore


async def ls(db: str, *, as_json: bool) -> None:
    """Print the conversations, in the order in which they were opened.

    "window from" is the version of the first event that a render still reads; "compactions" counts undone ones too.

    Raises:
        StoreError: the database is not there, or cannot be read.
    """
    async with reading(db) as store:
        if as_json:
            await write_rows(_conversations(store))
            return
        rows = [row async for row in _conversations(store)]
    if not rows:
        write(f"{without_password(db)} holds no conversation. Add one: timeline import FILE{db_option(db)}")
        return
    output.table(
        ("id", "version", "window from", "compactions", "updated", "part of", "title"),
        [
            (
                row.id,
                row.version,
                row.window_start,
                row.compactions or "",
                row.updated_at[:16].replace("T", " "),
                (row.parent or {}).get("conversation", ""),
                row.title,
            )
            for row in rows
        ],
    )


async def _conversations(store: EventStore) -> AsyncIterator[ConversationRow]:
    async for info in store.conversations():
        yield _conversation(info, await _policy(store, info.id))


async def _policy(store: EventStore, conversation: str) -> PolicyRow | None:
    """Return the policy in force; None if the log names none."""
    found: PolicyRow | None = None
    async for event in store.read(conversation, types=["conversation.opened", "policy.changed"]):
        payload = event.payload
        if isinstance(payload, ConversationOpened | PolicyChanged) and payload.policy is not None:
            origin = payload.origin or PolicyOrigin()
            found = PolicyRow(name=origin.name, release=origin.release, hash=payload.policy)
    return found


def _conversation(info: ConversationInfo, policy: PolicyRow | None) -> ConversationRow:
    return ConversationRow(
        id=info.id,
        title=info.title,
        version=info.version,
        window_start=info.window_start,
        created_at=instant_text(info.created_at),
        updated_at=instant_text(info.updated_at),
        compactions=info.compactions,
        last_compaction_at=None if info.last_compaction_at is None else instant_text(info.last_compaction_at),
        policy=policy,
        parent=None if info.parent is None else info.parent.model_dump(mode="json"),
    )


async def read(conversation: str, path: str, db: str, *, as_json: bool) -> None:
    """Print the block of a path or address: its text in full, or its JSON form.

    Raises:
        ConversationNotFound: there is no such conversation.
        BlockNotFound: it has no such block.
    """
    async with reading(db) as store:
        timeline = await Timeline.open(store, conversation, create=False)
        block = await timeline.read(path)
        asked = asked_list(path) if LIST_KEY in block.meta else None
        found = await find_readable(store, conversation, path if asked is None else asked[0])
    if as_json:
        output.write_json({**block.dump(), "address": str(Address(found.event.version, found.conversation))})
    else:
        write(text_of(block))
