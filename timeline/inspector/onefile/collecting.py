"""Collect what the file of a conversation carries: answers of the API, and every row with its text and its states."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from timeline.answers.about import text_of
from timeline.blocks import instant_text
from timeline.errors import ContextUnavailable
from timeline.events import appended_block
from timeline.fold.window import tombstone
from timeline.inspector import asked
from timeline.inspector.blocks import MOST_TEXT, fields_of, list_rows, redactions
from timeline.inspector.calls import list_calls, show_body, show_call, show_context
from timeline.inspector.chart import show_chart
from timeline.inspector.cleaning import Cleaner
from timeline.inspector.compactions import all_compactions, list_compactions
from timeline.inspector.conversations import listed_row, show_conversation
from timeline.inspector.family import show_family
from timeline.inspector.onefile.histories import Histories, histories
from timeline.inspector.reader import Reader
from timeline.inspector.states import show_state
from timeline.log.off_loop import off_loop
from timeline.projection.explain import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.frozen import Frozen
    from timeline.ports import EventStore

Mode: TypeAlias = Literal["full", "chat"]
Contexts: TypeAlias = Literal["all", "last", "none"]
CHAT: Final = frozenset({"user.prompt", "assistant.completion", "conv.range.summary", "note"})
"""The types of blocks whose texts are in a file of the mode `chat`."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a file is to carry.

    Attributes:
        mode: every text, or those of prompts, answers and summaries alone.
        contexts: of which calls what was sent can be looked at.
        redact: take credentials and paths of home folders out.
        keep: the names of findings that stay where they are.
        newest: carry only so many of the newest rows; all unless given.
    """

    mode: Mode = "full"
    contexts: Contexts = "last"
    redact: bool = False
    keep: tuple[str, ...] = ()
    newest: int | None = None


@dataclass(slots=True)
class Carried:
    """What a file carries.

    Attributes:
        conversation: the id.
        version: of the newest event.
        answers: answers of the API by their paths below the conversation.
        rows: the rows of the log, by version; ``texts`` their blocks with texts, None where there is none to show.
        histories: how the states of blocks changed.
        contexts: what was sent at calls, by number; parts of the same text are in ``pool`` once.
        left_out: what is not in the file, in words.
        cleaner: what was taken out.
        moment: whether it is one version alone, without the log that led there.
    """

    conversation: str
    version: int
    answers: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    texts: list[dict[str, Any] | None] = field(default_factory=list)
    histories: Histories = field(default_factory=Histories)
    contexts: dict[int, Any] = field(default_factory=dict)
    pool: list[Any] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    cleaner: Cleaner | None = None
    moment: bool = False


async def collect(
    store: EventStore, conversation: str, wish: Wish, advance: Callable[[int], None] = lambda _: None
) -> Carried:
    """Read a conversation for a file.

    Args:
        store: holds it.
        conversation: its id.
        wish: what the file is to carry.
        advance: called with the number of rows that were read.
    """
    reader = Reader(store)
    carried = Carried(
        conversation, (await store.info(conversation)).version, cleaner=Cleaner(wish.keep) if wish.redact else None
    )
    await _rows(reader, carried, wish, advance)
    await _answers(reader, carried)
    await _contexts(reader, carried, wish)
    await off_loop(len(carried.rows), partial(_clean, carried))
    carried.left_out += [
        "What happened since it was exported, and other conversations.",
        "Other policies, and differences between contexts: `timeline simulate`, `timeline diff`.",
        "The bodies of requests byte for byte: `timeline call ID N --body`.",
    ]
    return carried


async def _rows(reader: Reader, carried: Carried, wish: Wish, advance: Callable[[int], None]) -> None:
    id_, version = carried.conversation, carried.version
    first = 0 if wish.newest is None else max(0, version - wish.newest)
    if first:
        carried.left_out.append(f"The rows 1 to {first:,}: only the newest {wish.newest:,} are here.")
    after: int | None = first
    while after is not None:
        listed = await list_rows(reader, asked.AskedRows(id=id_, after=after, until=version, limit=asked.MOST_ROWS))
        carried.rows += [row.model_dump(mode="json") for row in listed.rows]
        advance(len(listed.rows))
        after = listed.next_after
    await _texts(reader, carried, wish, first)
    carried.histories = await histories(reader, id_, carried.rows)


async def _texts(reader: Reader, carried: Carried, wish: Wish, first: int) -> None:
    """Collect the texts of the rows behind a version. A chat has the rows of calls, results and thoughts without."""
    id_ = carried.conversation
    reasons = await redactions(reader.store, id_)
    by_version = {row["version"]: row for row in carried.rows}
    texts: dict[int, dict[str, Any]] = {}
    silent = 0
    async for event in reader.store.read(id_, after=first, until=carried.version):
        block = appended_block(event.payload)
        if block is None or event.version not in by_version:
            continue
        if wish.mode == "chat" and block.type not in CHAT:
            silent += 1
            if carried.cleaner is not None:
                carried.cleaner.learn(text_of(block))
            by_version[event.version] |= {"text": "", "left_out": len(text_of(block))}
            continue
        if event.version in reasons:
            block = tombstone(block, reasons[event.version])
        fields, left_out = fields_of(block)
        texts[event.version] = {
            "conversation": event.conversation,
            "version": event.version,
            "at": instant_text(event.at),
            "checksum": event.checksum,
            "address": by_version[event.version]["address"],
            "path": block.path,
            "type": block.type,
            "text": text_of(block),
            "block": fields,
            "left_out": left_out,
        }
    if silent:
        carried.left_out.append(f"The texts of {silent:,} calls, results and thoughts: this is the chat alone.")
    carried.texts = [texts.get(row["version"]) for row in carried.rows]


async def _answers(reader: Reader, carried: Carried) -> None:
    one = asked.AskedConversation(id=carried.conversation)
    shown = await show_conversation(reader, one)
    found: dict[str, Frozen] = {
        "": shown,
        "family": await show_family(reader, one),
        "compactions": await list_compactions(reader, one),
    }
    found["state"] = await show_state(reader, asked.AskedState(id=carried.conversation))
    for card in await all_compactions(reader, carried.conversation):
        found[f"compactions/{card.compaction.version}"] = card
    carried.answers = {path: answer.model_dump(mode="json") for path, answer in found.items()}
    carried.answers["chart"] = await _pages(reader, carried.conversation, asked.AskedChart, show_chart, ("points",))
    carried.answers["calls"] = await _pages(
        reader, carried.conversation, asked.AskedCalls, list_calls, ("calls", "costs", "cache")
    )
    row = await listed_row(reader, await reader.store.info(carried.conversation))
    carried.answers["conversations"] = {
        "conversations": [row.model_dump(mode="json")],
        "total": 1,
        "next_cursor": None,
    }


async def _pages(reader: Reader, conversation: str, asks: Any, read: Any, lists: tuple[str, ...]) -> dict[str, Any]:
    """Read an answer whose lists come in pages, as one."""
    whole: dict[str, Any] = {}
    after = 0
    while True:
        page = (await read(reader, asks(id=conversation, after=after, limit=5_000))).model_dump(mode="json")
        for name in lists:
            page[name] = [*whole.get(name, ()), *page[name]]
        whole = page
        if page["next_after"] is None:
            return whole
        after = page["next_after"]


def _pooling(pool: list[Any]) -> Callable[[Any], Any]:
    """Return what gives a value whose longer lists of objects are in a pool, each object once."""
    places: dict[str, int] = {}

    def once(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: once(one) for name, one in value.items()}
        if not isinstance(value, list) or len(value) < 2 or not all(isinstance(one, dict) for one in value):
            return value
        numbers = []
        for one in value:
            text = json.dumps(one, sort_keys=True)
            if text not in places:
                places[text] = len(pool)
                pool.append(one)
            numbers.append(places[text])
        return {"$": numbers}

    return once


async def _contexts(reader: Reader, carried: Carried, wish: Wish) -> None:
    calls = [call["number"] for call in carried.answers["calls"]["calls"] if call["context"] is not None]
    wanted = {"all": calls, "last": calls[-1:], "none": []}[wish.contexts if wish.mode == "full" else "none"]
    once, gone = _pooling(carried.pool), 0
    for number in wanted:
        call = await show_call(reader, asked.AskedCall(id=carried.conversation, number=number))
        try:
            context = await show_context(reader, asked.AskedContext(id=carried.conversation, number=number))
        except ContextUnavailable:
            gone += 1
            continue
        both = {"call": call.model_dump(mode="json"), "context": context.model_dump(mode="json")}
        carried.contexts[number] = {name: once(answer) for name, answer in both.items()}
        if carried.cleaner is not None and call.body_bytes is not None:
            carried.cleaner.learn(await _body(reader, carried.conversation, number))
    if left := len(calls) - len(wanted):
        which = "all of the" if not wanted else "the other"
        carried.left_out.append(f"What was sent at {which} {left:,} calls: --contexts all has them.")
    if gone:
        calls_gone = counted(gone, "call", "calls")
        carried.left_out.append(f"What was sent at {calls_gone} cannot be built again; `timeline call` says why.")


async def _body(reader: Reader, conversation: str, number: int) -> str:
    """Return the whole body of a call, of which a file has the beginnings of its pieces."""
    text, offset = "", 0
    while True:
        body = await show_body(reader, asked.AskedBody(id=conversation, number=number, offset=offset))
        text += body.text
        if body.next_offset is None:
            return text
        offset = body.next_offset


def _clean(carried: Carried) -> None:
    """Take out what may not be shown: of the texts first, since a row's beginning may end inside of a credential."""
    cleaner = carried.cleaner
    if cleaner is None:
        return
    for value in (carried.texts, carried.rows, carried.pool, list(carried.contexts.values()), carried.answers):
        cleaner.learn(value)
    for row, text in zip(carried.rows, carried.texts, strict=True):
        if text is not None:
            text |= {name: cleaner.clean(text[name], f"@{row['version']}") for name in ("text", "block", "path")}
            if row["text"]:
                row |= {"text": text["text"][:MOST_TEXT], "left_out": max(0, len(text["text"]) - MOST_TEXT)}
    carried.rows = [cleaner.clean(row, f"@{row['version']}") for row in carried.rows]
    carried.pool = cleaner.clean(carried.pool, "what was sent")
    carried.contexts = {n: cleaner.clean(one, "what was sent") for n, one in carried.contexts.items()}
    carried.answers = {
        path: cleaner.clean(answer, path or "the conversation") for path, answer in carried.answers.items()
    }
    cleaner.check_kept()
