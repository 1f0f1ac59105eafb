"""Search over all conversations: blocks by their words, facts by their fields, compactions by what they covered."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from timeline.answers.digests import digest_rows
from timeline.answers.facts import fact_rows
from timeline.answers.found import found_rows
from timeline.blocks import parse_instant
from timeline.errors import InvalidFilter
from timeline.inspector.blocks import states_at
from timeline.inspector.compactions import compaction_rows
from timeline.inspector.shapes import Digests, FoundBlocks, FoundFact, FoundFacts

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.answers.facts import FactRow
    from timeline.inspector.asked import AskedDigests, AskedFacts, AskedSearch
    from timeline.inspector.decided import DecidedStates, FoldedStates
    from timeline.inspector.reader import Reader


async def search_blocks(reader: Reader, asked: AskedSearch) -> FoundBlocks:
    """Find the blocks that hold all words of a text, the best first."""
    types = [word for word in (part.strip() for part in asked.types.split(",")) if word]
    filters = {**_span(asked), "types": types or None}
    rows = [row async for row in found_rows(reader.store, asked.query, filters, asked.limit + 1)]
    return FoundBlocks(found=tuple(rows[: asked.limit]), more=len(rows) > asked.limit)


async def list_digests(reader: Reader, asked: AskedDigests) -> Digests:
    """Find the compactions whose digest meets every filter, oldest first."""
    filters = {
        **_span(asked),
        "tool": asked.tool,
        "path_glob": asked.path,
        "command": asked.command,
        "error": asked.error_text if asked.error_text is not None else asked.failed or None,
        "reverted": asked.reverted,
    }
    rows = []
    async for row in digest_rows(reader.store, filters):
        rows.append(row)
        if len(rows) > asked.limit:
            break
    return Digests(digests=tuple(rows[: asked.limit]), more=len(rows) > asked.limit)


async def list_facts(reader: Reader, asked: AskedFacts) -> FoundFacts:
    """Find the newest facts that meet every filter, each with the compaction that covers it."""
    given = asked.model_dump(exclude={"limit", "since", "until", "conversation"}, exclude_none=True)
    newest: deque[FactRow] = deque(maxlen=asked.limit + 1)
    async for row in fact_rows(reader.store, {**_span(asked), **given}):
        newest.append(row)
    rows = list(newest)[::-1]
    places = _Places(reader)
    # What a fork shares belongs to its parent; what the model still sees of it is the fork's own.
    found = [await places.of(row, asked.conversation or row.conversation) for row in rows[: asked.limit]]
    return FoundFacts(facts=tuple(found), more=len(rows) > asked.limit)


class _Places:
    """Where the blocks of facts are now, read once for each conversation."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._states: dict[str, DecidedStates | FoldedStates] = {}
        self._numbers: dict[str, dict[int, int]] = {}

    async def of(self, row: FactRow, id_: str) -> FoundFact:
        """Return a fact with the state of its block in a conversation."""
        if id_ not in self._states:
            info = await self._reader.store.info(id_)
            self._states[id_] = await states_at(self._reader, info, info.version)
        states = self._states[id_]
        state, standing = states.of(row.version)
        covered_by = None if standing is None else states.covering(row.version)
        if covered_by is not None and id_ not in self._numbers:
            made = await compaction_rows(self._reader, id_)
            self._numbers[id_] = {one.version: one.compaction_number for one in made}
        number = None if covered_by is None else self._numbers[id_].get(covered_by)
        return FoundFact(**row.model_dump(), state=state, covered_by=covered_by, compaction_number=number)


def _span(asked: AskedSearch | AskedDigests | AskedFacts) -> dict[str, Any]:
    since, until = _moment("since", asked.since), _moment("until", asked.until)
    return {"conversation": asked.conversation, "since": since, "until": until}


def _moment(name: str, text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_instant(text)
    except (ValueError, OverflowError):
        raise InvalidFilter(name, f"{text!r} is not a time with a zone. Write 2026-01-31T12:00:00Z") from None
