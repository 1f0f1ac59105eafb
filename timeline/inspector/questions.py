"""Search over all conversations: blocks by their words, compactions by what they covered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.answers.digests import digest_rows
from timeline.answers.found import found_rows
from timeline.blocks import parse_instant
from timeline.errors import InvalidFilter
from timeline.inspector.shapes import Digests, FoundBlocks

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.inspector.asked import AskedDigests, AskedSearch
    from timeline.inspector.reader import Reader


async def search_blocks(reader: Reader, asked: AskedSearch) -> FoundBlocks:
    """Find the blocks that hold all words of a text, the best first.

    Raises:
        InvalidFilter: the text has no word, or a time cannot be read.
        ConversationNotFound: there is no such conversation.
        SearchUnavailable: SQLite has no full-text search here.
    """
    types = [word for word in (part.strip() for part in asked.types.split(",")) if word]
    filters = {**_span(asked), "types": types or None}
    rows = [row async for row in found_rows(reader.store, asked.query, filters, asked.limit + 1)]
    return FoundBlocks(found=tuple(rows[: asked.limit]), more=len(rows) > asked.limit)


async def list_digests(reader: Reader, asked: AskedDigests) -> Digests:
    """Find the compactions whose digest meets every filter, oldest first.

    Raises:
        InvalidFilter: a filter cannot be used.
        ConversationNotFound: there is no such conversation.
    """
    filters = {
        **_span(asked),
        "tool": asked.tool,
        "path_glob": asked.file,
        "command": asked.command,
        "error": asked.error if asked.error is not None else asked.failed or None,
        "reverted": asked.reverted,
    }
    rows = []
    async for row in digest_rows(reader.store, filters):
        rows.append(row)
        if len(rows) > asked.limit:
            break
    return Digests(digests=tuple(rows[: asked.limit]), more=len(rows) > asked.limit)


def _span(asked: AskedSearch | AskedDigests) -> dict[str, Any]:
    since, until = _moment("since", asked.since), _moment("until", asked.until)
    return {"conversation": asked.conversation, "since": since, "until": until}


def _moment(name: str, text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_instant(text)
    except (ValueError, OverflowError):
        raise InvalidFilter(name, f"{text!r} is not a time with a zone. Write 2026-01-31T12:00:00Z") from None
