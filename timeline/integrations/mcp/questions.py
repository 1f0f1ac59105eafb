"""Answer a model's questions to a store, each within a budget of tokens."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio.to_thread

from timeline.blocks import instant_text
from timeline.errors import ConversationNotFound, InvalidArgument, InvalidFilter
from timeline.events.addresses import Address, parse_address
from timeline.facts.full_record import MOST, full_record
from timeline.integrations.mcp.answers import (
    ConversationRow,
    ConversationsAnswer,
    DigestRow,
    DigestsAnswer,
    FactRow,
    FactsAnswer,
    FoundRow,
    ReadAnswer,
    RecordAnswer,
    RecordLine,
    SearchAnswer,
    cost,
    cut_text,
    page,
)
from timeline.integrations.mcp.given_hits import GivenHits
from timeline.integrations.mcp.listing import Listing, no_cursor
from timeline.queries import selects_entries
from timeline.timeline import Timeline
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from timeline.agent.recall import Recalled
    from timeline.digest import Digest
    from timeline.integrations.mcp.arguments import (
        ConversationsArguments,
        DigestsArguments,
        FactsArguments,
        ReadArguments,
        RecordArguments,
        SearchArguments,
    )
    from timeline.ports import ConversationInfo, EventStore
    from timeline.queries import Found, StoredDigest, StoredFact

    FoundT = TypeVar("FoundT", StoredDigest, StoredFact)

_FRAME: Final = 120
"""Tokens that the lines around the rows, and the keys around them in JSON, may take."""
_LONGEST: Final = 300
"""Characters of a title, of one text inside a digest, or of an id that an error names as like an unknown one."""
_SHOWN: Final = 100
"""Characters of an unknown id that an error repeats."""
_PATHS: Final = 3
"""How many of an entry's paths an answer has, the newest."""
_ENTRIES: Final = (20, 8, 3, 1, 0)
"""How many entries of each list of a digest an answer has: the first number with which it fits."""
_UNSAID: Final = 5
"""For each of these entries, as many addresses of prompts that a compaction left unsaid."""
_DIGITS: Final = 18
"""Most digits of a cursor that is a number: there are not as many rows."""
_LARGE_PAGE: Final = 10_000


class Questions:
    """Answers questions from a store, which is only read.

    Args:
        store: the store.
        max_tokens: most tokens of an answer, counted by o200k_base.
    """

    def __init__(self, store: EventStore, max_tokens: int) -> None:
        self._store = store
        self._max_tokens = max_tokens
        self._counter = get_counter("o200k_base")
        self._given = GivenHits()

    async def conversations(self, asked: ConversationsArguments) -> ConversationsAnswer:
        """List conversations, the last active one first; those that were active since the first page come last.

        Raises:
            InvalidArgument: the cursor is none.
            StoreError: the store cannot be read.
        """
        wanted = (asked.query or "").casefold()
        # Looked for in all, in large pages: each costs a look at when every conversation changed.
        listing = Listing(self._store, asked.cursor, _LARGE_PAGE if wanted else asked.limit + 1)

        async def rows() -> AsyncIterator[ConversationRow]:
            async for info in listing.conversations():
                if wanted in info.id.casefold() or wanted in info.title.casefold():
                    yield _conversation_row(info)

        taken, more = await page(rows(), asked.limit, self._room, self._counter)
        cursor = listing.cursor_behind(taken[-1].updated_at, taken[-1].id) if more else None
        return ConversationsAnswer(conversations=tuple(taken), next_cursor=cursor)

    async def read(self, asked: ReadArguments) -> ReadAnswer:
        """Read a block, a long one in pieces; if it cannot be read, the answer's text explains why.

        Raises:
            InvalidFilter: there is no such conversation; the message names the nearest.
            InvalidArgument: no conversation is named.
            StoreError: the store cannot be read.
        """
        conversation = asked.conversation or _conversation_of(asked.path)
        try:
            # Counted by the server's counter: an answer's budget has nothing to do with the conversation's policy.
            timeline = await Timeline.open(self._store, conversation, counter=self._counter, create=False)
        except ConversationNotFound:
            raise await self._not_found(conversation) from None
        room = self._room
        while True:
            tool = timeline.recall_tool("anthropic", max_tokens=room)
            recalled = await tool.look({"path": asked.path, "offset": asked.offset, "limit": asked.limit})
            answer = _read_answer(conversation, recalled, asked.path)
            over = cost(answer, self._counter) - self._room
            if over <= 0 or room == 1:
                return answer
            # The tool counts the text alone; in JSON each quote, backslash and line break of it costs more.
            room = max(room - over, room // 2)

    async def search(self, asked: SearchArguments) -> SearchAnswer:
        """Find blocks by their words, the best first.

        Raises:
            InvalidFilter: there is no word in the text.
            InvalidArgument: the cursor is not one, or it comes from another server's page and names a block that is
                gone.
            ConversationNotFound: there is no such conversation.
            StoreError: the store cannot be read, or has no full-text search.
        """
        newest, last = _place_in_log(asked.cursor)
        newest = newest or (await self._store.fact_reach()).newest_position
        filters = asked.model_dump(include={"conversation", "since", "until"})
        found, places = self._store.search(asked.query, **filters, types=asked.types or None), list[int]()
        given = self._given.before(asked)

        async def rows() -> AsyncIterator[FoundRow]:
            placed = (await self._placed(hit) async for hit in found)
            known = (hit async for hit in placed if 0 < hit.position <= newest)
            async for hit in _behind_hit(known, last) if given is None else _not_given(known, given):
                places.append(hit.position)
                yield _found_row(hit)

        taken, more = await self._page_of(rows(), asked.limit, asked.conversation)
        cursor = f"{newest}.{places[len(taken) - 1]}" if more else None
        if cursor is not None:
            self._given.remember(asked, cursor, places[: len(taken)])
        return SearchAnswer(found=tuple(taken), next_cursor=cursor)

    async def _placed(self, hit: Found) -> Found:
        """Return a hit with its position, which a store of an earlier contract leaves out; 0 where it is gone."""
        if hit.position:
            return hit
        events = await self._store.read_versions(hit.conversation, [hit.version])
        return replace(hit, position=sum(event.position for event in events))

    async def digests(self, asked: DigestsArguments) -> DigestsAnswer:
        """Find compactions by what they covered, the oldest first.

        Raises:
            InvalidFilter: a filter cannot be used.
            InvalidArgument: the cursor is none.
            ConversationNotFound: there is no such conversation.
            StoreError: the store cannot be read.
        """
        filters = _filters(asked)
        in_part = selects_entries(filters)
        found, places = _behind(self._store.digests(**filters), asked.cursor), list[str]()

        async def rows() -> AsyncIterator[DigestRow]:
            async for place, stored in found:
                places.append(place)
                yield self._digest_row(stored, stored.matched if in_part else stored.digest)

        taken, more = await self._page_of(rows(), asked.limit, asked.conversation)
        return DigestsAnswer(digests=tuple(taken), next_cursor=places[len(taken) - 1] if more else None)

    async def facts(self, asked: FactsArguments) -> FactsAnswer:
        """Find facts, the oldest first.

        Raises:
            InvalidFilter: a condition cannot be used.
            InvalidArgument: the cursor is none.
            ConversationNotFound: there is no such conversation.
            StoreError: the store cannot be read.
        """
        given = asked.model_dump(exclude={"kind", "limit", "cursor"})
        found, places = _behind(self._store.facts(**given, kind=asked.kind or None), asked.cursor), list[str]()

        async def rows() -> AsyncIterator[FactRow]:
            async for place, fact in found:
                places.append(place)
                yield _fact_row(fact)

        taken, more = await self._page_of(rows(), asked.limit, asked.conversation)
        return FactsAnswer(facts=tuple(taken), next_cursor=places[len(taken) - 1] if more else None)

    async def record(self, asked: RecordArguments) -> RecordAnswer:
        """Give the merged record of a conversation, as many lines as fit.

        Raises:
            InvalidFilter: there is no such conversation; the message names the nearest.
            StoreError: the store cannot be read.
        """
        try:
            found = await self._store.fact_record(asked.conversation, most=MOST)
        except ConversationNotFound:
            raise await self._not_found(asked.conversation) from None
        lines = full_record(found).splitlines()[asked.offset :]

        async def rows() -> AsyncIterator[RecordLine]:
            for line in lines:
                yield RecordLine(line=line)

        room = self._room - self._counter.count(asked.conversation)
        taken, more = await page(rows(), len(lines), room, self._counter)
        return RecordAnswer(
            conversation=asked.conversation,
            lines=tuple(row.line for row in taken),
            offset=asked.offset,
            next_offset=asked.offset + len(taken) if more else None,
        )

    @property
    def _room(self) -> int:
        return max(self._max_tokens - _FRAME, 1)

    async def _page_of(self, rows: AsyncIterator[Any], limit: int, conversation: str | None) -> tuple[list[Any], bool]:
        try:
            return await page(rows, limit, self._room, self._counter)
        except ConversationNotFound:
            raise await self._not_found(conversation or "") from None

    async def _not_found(self, conversation: str) -> InvalidFilter:
        """Return the error for an unknown conversation, with the ids that are most like it."""
        known = [info.id async for info in self._store.conversations() if len(info.id) <= _LONGEST]
        asked = _cut(conversation)
        # In a thread: it compares every id with every other character by character.
        near = await anyio.to_thread.run_sync(partial(get_close_matches, asked, known, n=3))
        like = f"; {', '.join(map(repr, near))} would be like it" if near else ""
        shown = asked if len(asked) <= _SHOWN else f"{asked[:_SHOWN]}…"
        return InvalidFilter("conversation", f"there is no {shown!r}{like}. The tool conversations lists all")

    def _digest_row(self, stored: StoredDigest, digest: Digest) -> DigestRow:
        """Return a compaction with as many entries of each list of a digest as fit an answer."""
        for most in _ENTRIES:
            entries: dict[str, Any] = _cut(digest.shortened(most).dump())
            left_out = entries.pop("more", {})
            unsaid = stored.unsaid[max(0, len(stored.unsaid) - _UNSAID * most) :]  # the newest, as of an entry's paths
            if len(unsaid) < len(stored.unsaid):
                left_out = {**left_out, "unsaid": len(stored.unsaid) - len(unsaid)}
            row = DigestRow(
                conversation=stored.conversation,
                version=stored.version,
                compaction_number=stored.compaction_number,
                at=instant_text(stored.at),
                path=stored.path,
                address=str(Address(stored.version, stored.conversation)),
                before_tokens=stored.before_tokens,
                after_tokens=stored.after_tokens,
                reverted_by=stored.reverted_by,
                duration=stored.duration,
                unsaid_addresses=tuple(str(Address(version, stored.conversation)) for version in unsaid),
                left_out=left_out,
                entries=entries,
            )
            if cost(row, self._counter) <= self._room:
                break
        return row


def _read_answer(conversation: str, recalled: Recalled, asked: str) -> ReadAnswer:
    path, address = recalled.path or _cut(asked), _address_in(conversation, recalled.address)
    return ReadAnswer(
        conversation=conversation,
        path=path if len(path) <= _LONGEST else address,
        address=address,
        outcome="unknown" if recalled.outcome == "malformed" else recalled.outcome,
        content=recalled.text,
        offset=recalled.begin,
        end=recalled.end,
        characters=recalled.characters,
        next_offset=recalled.end if recalled.begin < recalled.end < recalled.characters else None,
    )


def _found_row(found: Found) -> FoundRow:
    return FoundRow(
        conversation=found.conversation,
        path=found.path,
        address=str(Address(found.version, found.conversation)),
        type=found.type,
        at=instant_text(found.at),
        snippet=found.snippet,
        reverted_by=found.reverted_by,
    )


def _conversation_row(info: ConversationInfo) -> ConversationRow:
    return ConversationRow(
        id=info.id,
        title=_cut(info.title),
        version=info.version,
        created_at=instant_text(info.created_at),
        updated_at=instant_text(info.updated_at),
        parent=None if info.parent is None else info.parent.model_dump(mode="json"),
    )


def _fact_row(fact: StoredFact) -> FactRow:
    return FactRow(
        conversation=fact.conversation,
        kind=fact.kind,
        subject=_cut(fact.subject),
        tool=fact.tool,
        exit_status=fact.exit_status,
        failed=fact.failed,
        at=instant_text(fact.at),
        address=str(Address(fact.version, fact.conversation)),
        path=fact.path,
        detail=fact.detail,
        covered=fact.covered,
    )


def _filters(asked: DigestsArguments) -> dict[str, Any]:
    """Return the filters for the store.

    Raises:
        InvalidFilter: the range of compactions goes backwards.
    """
    first, _, last = (asked.compaction_number or "").partition("-")
    numbers = range(int(first), int(last or first) + 1) if first else None
    if numbers is not None and not numbers:
        raise InvalidFilter(
            "compaction_number", f"{asked.compaction_number} goes backwards: write the smaller number first"
        )
    return {
        "conversation": asked.conversation,
        "since": asked.since,
        "until": asked.until,
        "tool": asked.tool,
        "path_glob": asked.path,
        "command": asked.command,
        "error": asked.error_text if asked.error_text is not None else asked.failed or None,
        "compaction_number": numbers,
        "reverted": asked.reverted,
    }


def _conversation_of(path: str) -> str:
    """Return the conversation that an address names.

    Raises:
        InvalidArgument: it names none.
    """
    address = parse_address(path)
    if address is None or not address.conversation:
        raise InvalidArgument("conversation", "give the id of one, or for the path an address with it: cards@152")
    return address.conversation


def _address_in(conversation: str, address: str) -> str:
    """Return an address with the conversation in front; empty where there is none."""
    known = parse_address(address)
    return "" if known is None else str(Address(known.version, known.conversation or conversation))


def _behind(found: AsyncIterator[FoundT], cursor: str | None) -> AsyncIterator[tuple[str, FoundT]]:
    """Iterate over what follows a cursor in the log, each with the cursor that leads behind it.

    A cursor is a place in the log: what is undone, covered or redacted between two pages moves no row to another place.

    Raises:
        InvalidArgument: the cursor is none.
    """
    begin = _place_in_log(cursor)

    async def behind() -> AsyncIterator[tuple[str, FoundT]]:
        position = number = 0
        async for one in found:
            number = number + 1 if one.position == position else 1
            position = one.position
            if (position, number) > begin:
                yield f"{position}.{number}", one

    return behind()


async def _not_given(found: AsyncIterator[Found], given: Collection[int]) -> AsyncIterator[Found]:
    """Iterate over the hits that no page gave."""
    async for hit in found:
        if hit.position not in given:
            yield hit


async def _behind_hit(found: AsyncIterator[Found], position: int) -> AsyncIterator[Found]:
    """Iterate over the hits behind the one at a position, in the order of now: which ones a page gave is not known.

    Raises:
        InvalidArgument: no hit is there.
    """
    async for hit in found:
        if hit.position == position:
            break
    else:
        raise InvalidArgument("cursor", "the block that it names is not found any more; ask again without one")
    async for hit in found:
        yield hit


def _place_in_log(cursor: str | None) -> tuple[int, int]:
    """Return the two numbers of a cursor: of a search the newest position that it knows, and that of the last hit.

    Of others they are a position, and the number of a row among those at that position.
    """
    if cursor is None:
        return 0, 0
    position, _, number = cursor.partition(".")
    if not all(digits.isdecimal() and len(digits) <= _DIGITS for digits in (position, number)):
        raise no_cursor(cursor)
    return int(position), int(number)


def _cut(value: Any) -> Any:
    """Cut long texts inside a value, but no paths of blocks, which the model reads with `read`."""
    if isinstance(value, str):
        return cut_text(value, _LONGEST)
    if isinstance(value, dict):
        return {key: inner if key == "path" else _cut(inner) for key, inner in value.items()} | {
            key: value[key][-_PATHS:] for key in ("paths", "hit_paths") if key in value
        }
    return [_cut(inner) for inner in value] if isinstance(value, list) else value
