"""A plain model of what a store may still say: which words each conversation was told, and which of them went."""

from __future__ import annotations

import pickle
import pickletools
import re
import sqlite3
import zlib
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.events.encoding import encode_payload
from timeline.ports import Summary
from timeline.store.memory import MemoryStore
from timeline.store.packing import unpacked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from timeline.ports import EventStore, SummaryRequest

CORE: Final = re.compile(r"7f3a\d{4}k")
"""What each word has inside, in plain letters, so that it is found however the word is escaped."""
BODY: Final = re.compile(r"9c5d\d{4}q")
"""What stands inside of a text, where no summary and no fact takes it from."""
_FORMS: Final = ("kestrel{}aa", "größe{}ßtür", 'say"{}\\', "<b>{}&amp;")
_PARTS: Final = vars(MemoryStore()).keys() - {"late_writes", "_home"}
"""What a store in memory holds; others hang on to it what wakes them."""
FILLER: Final = "and so it goes on, line by line\n"


class Words(NamedTuple):
    """What a block says: a word that begins its text, with its core, and a body inside of the text."""

    core: str
    body: str
    word: str
    text: str


@dataclass
class Told:
    """A block that was appended: the conversation that it belongs to, its place, its words, and what became of it."""

    owner: str
    version: int
    path: str
    words: Words
    gone: bool = False


@dataclass
class Model:
    """All that was told to the conversations of a store.

    Attributes:
        told: every block.
        parents: of each fork its parent, and the last version of both.
        alive: ids of the conversations that are there.
        erased: ids that are never given again.
        holds: legal holds that were put on conversations or taken off, with their versions.
        spared: what may stay in a summary of a block that was scavenged before it was redacted.
        number: how many blocks were told.
    """

    told: list[Told] = field(default_factory=list)
    parents: dict[str, tuple[str, int]] = field(default_factory=dict)
    alive: list[str] = field(default_factory=list)
    erased: set[str] = field(default_factory=set)
    holds: list[tuple[str, int, bool]] = field(default_factory=list)
    spared: set[str] = field(default_factory=set)
    number: int = 0

    def next_words(self, form: int, size: int) -> Words:
        """Return the words of the next block."""
        self.number += 1
        core, body = f"7f3a{self.number:04}k", f"9c5d{self.number:04}q"
        word = _FORMS[form % len(_FORMS)].format(core)
        return Words(core, body, word, f"{word} begins it\n{FILLER * size}{body}\n{FILLER * size}")

    def line(self, conversation: str) -> Iterator[tuple[str, int | None]]:
        """Yield a conversation and those that it was forked from, each with the last version that it shares."""
        until: int | None = None
        yield conversation, None
        while conversation in self.parents:
            conversation, base = self.parents[conversation]
            until = base if until is None else min(until, base)
            yield conversation, until

    def seen_by(self, conversation: str) -> list[Told]:
        """Return the blocks of a conversation, those that it shares too, oldest first."""
        line = list(self.line(conversation))
        found = [
            told
            for owner, until in line
            for told in self.told
            if told.owner == owner and (until is None or told.version <= until)
        ]
        return sorted(found, key=lambda told: told.version)

    def is_held(self, conversation: str) -> bool:
        """Return whether the newest setting of a conversation, or of what it shares, is a legal hold."""
        for owner, until in self.line(conversation):
            own = [on for of, version, on in self.holds if of == owner and (until is None or version <= until)]
            if own:
                return own[-1]
        return False

    def forks_of(self, conversation: str) -> list[str]:
        """Return the conversation's own forks."""
        return [fork for fork, (parent, _) in self.parents.items() if parent == conversation and fork in self.alive]

    def family(self, conversation: str) -> list[str]:
        """Return a conversation, its forks, and theirs."""
        return [conversation, *(each for fork in self.forks_of(conversation) for each in self.family(fork))]

    def erase(self, conversation: str, *, with_forks: bool) -> None:
        """Take a conversation out, with its forks, or after each of them got its own copy of what it shares."""
        goes = self.family(conversation) if with_forks else [conversation]
        if not with_forks:
            for fork in self.forks_of(conversation):
                for told in self.seen_by(fork):
                    if told.owner != fork:
                        self.told.append(replace(told, owner=fork))
                self.holds += [(fork, 0, True)] if self.is_held(fork) else []
                del self.parents[fork]
        self.told = [told for told in self.told if told.owner not in goes]
        self.alive = [id_ for id_ in self.alive if id_ not in goes]
        self.erased |= set(goes)
        for id_ in goes:
            self.parents.pop(id_, None)

    def forgotten(self) -> set[str]:
        """Return the cores and bodies that nothing may say any more."""
        known = {told.words.core for told in self.told if not told.gone}
        numbers = {f"{number:04}" for number in range(1, self.number + 1)} - {core[4:8] for core in known}
        return ({f"7f3a{number}k" for number in numbers} | {f"9c5d{number}q" for number in numbers}) - self.spared


class Repeating:
    """A summarizer that repeats every word that it was shown, and lets something happen meanwhile."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    @property
    def name(self) -> str:
        """Always ``repeating``."""
        return "repeating"

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Say all words of the request."""
        said = "\n".join(block.text for block in request.blocks) + (request.previous or "")
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        words = " ".join(dict.fromkeys(CORE.findall(said)))
        return Summary(text=request.counter.truncate(f"Said: {words}.", request.max_tokens), summarizer=self.name)


async def said_by(store: EventStore) -> str:
    """Return all that can be read of a store by its methods."""
    ids = [info.id async for info in store.conversations()]
    said = [str(await store.info(id_)) for id_ in ids] + [str(await store.load_window(id_)) for id_ in ids]
    said += [encode_payload(event.payload) async for event in store.read_all()]
    said += [str(fact) async for fact in store.facts()] + [str(digest) async for digest in store.digests()]
    if isinstance(store, MemoryStore):
        held = {name: part for name, part in vars(store).items() if name in _PARTS}
        said += [plain(each) for _, each, _ in pickletools.genops(pickle.dumps(held))]
    return "\n".join(said).casefold()


def bytes_of(file: Path) -> str:
    """Return what a database's columns hold, with packed ones unpacked, its words, and the raw files."""
    said: list[str] = []
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608 - a name of the schema
                said += [plain(value) for value in row]
        if "search_index" in tables:
            connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, search_index, row)")
            said += [term for (term,) in connection.execute("SELECT term FROM temp.terms")]
    for suffix in ("", "-wal", "-shm"):
        beside = file.with_name(file.name + suffix)
        if beside.exists():
            said.append(beside.read_bytes().decode("latin-1"))
    return "\n".join(said).casefold()


def plain(value: object) -> str:
    """Return what a column holds, whichever way it is packed."""
    if not isinstance(value, bytes):
        return str(value)
    with suppress(zlib.error):
        return zlib.decompress(value).decode("latin-1")
    return unpacked(value) or value.decode("latin-1")


def cores_in(said: str) -> set[str]:
    """Return the cores and bodies that a text says."""
    return {*CORE.findall(said), *BODY.findall(said)}
