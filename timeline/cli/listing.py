"""`timeline ls` and `read`: list the conversations of a database, print one block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.answers.about import text_of
from timeline.answers.listed import ConversationRow, PolicyRow
from timeline.blocks import instant_text
from timeline.cli import output
from timeline.cli.database import db_option, reading
from timeline.cli.output import write, write_rows
from timeline.errors import StoreCorrupt
from timeline.events import ConversationOpened, PolicyChanged, PolicyOrigin
from timeline.events.addresses import Address
from timeline.facts.name_list import LIST_KEY, asked_list
from timeline.log.blocks_by_name import find_readable
from timeline.log.listed import listed
from timeline.store.addresses import without_password
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from timeline.ports import ConversationInfo, EventStore


async def ls(db: str, *, limit: int | None, as_json: bool) -> None:
    """Print the conversations, in the order in which they were opened; with a limit those that changed last.

    "window from" is the version of the first event that a render still reads; "compactions" counts undone ones too.

    Args:
        db: the database.
        limit: the most conversations, the one that changed last first; all in the order of their opening without it.
        as_json: print a row of JSON for each, with its policy.

    Raises:
        StoreCorrupt: what is stored of a conversation is damaged; all that can be listed are printed.
    """
    async with reading(db) as store:
        infos, unlisted = await listed(store) if limit is None else (await _newest(store, limit), None)
        if as_json:
            await write_rows(_rows(store, infos, unlisted))
            return
    if not infos and unlisted is None:
        write(f"{without_password(db)} holds no conversation. Add one: timeline import FILE{db_option(db)}")
        return
    output.table(
        ("id", "version", "window from", "compactions", "updated", "part of", "title"),
        [
            (
                info.id,
                info.version,
                info.window_start,
                info.compactions or "",
                instant_text(info.updated_at)[:16].replace("T", " "),
                "" if info.parent is None else info.parent.conversation,
                info.title,
            )
            for info in infos
        ],
    )
    if unlisted is not None:
        raise unlisted


async def _newest(store: EventStore, most: int) -> list[ConversationInfo]:
    """Return the conversations that changed last, the newest first."""
    found: list[ConversationInfo] = []
    async for info in store.recent_conversations(page=most):
        found.append(info)
        if len(found) == most:
            break
    return found


async def _rows(
    store: EventStore, infos: Iterable[ConversationInfo], damage: StoreCorrupt | None
) -> AsyncIterator[ConversationRow]:
    """Yield a row for each conversation, without its policy where that does not read; the damage comes behind all."""
    for info in infos:
        policy = None
        try:
            policy = await _policy(store, info.id)
        except StoreCorrupt as error:
            damage = damage or error
        yield _conversation(info, policy)
    if damage is not None:
        raise damage


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
    """Print the block of a path or address: its text in full, or its JSON form."""
    async with reading(db) as store:
        timeline = await Timeline.open(store, conversation, create=False)
        block = await timeline.read(path)
        asked = asked_list(path) if LIST_KEY in block.meta else None
        found = await find_readable(store, conversation, path if asked is None else asked[0])
    if as_json:
        output.write_json({**block.dump(), "address": str(Address(found.event.version, found.conversation))})
    else:
        write(text_of(block))
