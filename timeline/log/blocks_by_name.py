"""Find the event that appended a block, by the block's path or address.

Only this module decides what a text names: for reading, for decisions, for the model's recall tool, for MCP and for the
command line. If the text names no block, the error says what it names instead, and which blocks are near.
"""

from __future__ import annotations

from bisect import bisect_left
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.errors import BlockNotFound, ConversationNotFound, HistoryUnavailable
from timeline.events import appended_block
from timeline.events.addresses import SIGN, Address, parse_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from timeline.blocks import Block
    from timeline.events import Event
    from timeline.ports import EventStore

_KINDS: Final = ("ar", "tc", "fi", "so", "su", "bl")
_MOST_LIKELY: Final = 3
_MOST_COMPARED: Final = 200
_LONGEST: Final = 1_000
"""Most characters of a path. A longer text is no path, and to compare it with the paths would take seconds."""

_AROUND: Final = 8
"""The nearest blocks are looked for among so many versions before and behind an address."""
_NEAREST: Final = 3


class FoundBlock(NamedTuple):
    """A block with the event that appended it, and the conversation in which it was looked up.

    For a block of a fork's shared past, that conversation is the fork, although the event is its parent's.
    """

    conversation: str
    event: Event
    block: Block

    def address_in(self, conversation: str) -> Address:
        """Return the address as a conversation prints it: with the conversation's id where that is another one."""
        return Address(self.event.version, "" if self.conversation == conversation else self.conversation)


async def find_block(store: EventStore, conversation: str, name: str, *, until: int | None = None) -> FoundBlock:
    """Find a block of a conversation, or of the past that it shares with its parent.

    A text that begins with ``@`` is an address. Any other text is a path first, since a path may end like an address.

    Args:
        store: holds the conversation.
        conversation: its id.
        name: a path, ``@152``, or ``cards@152``, where ``cards`` is the conversation itself or one that it was forked
            from.
        until: the last version in view; all of them unless given.

    Raises:
        BlockNotFound: the conversation has no such block, or not yet at ``until``.
        ConversationNotFound: there is no such conversation.
        HistoryUnavailable: `timeline scavenge` removed the block.
    """
    address = parse_address(name)
    if address is None or address.conversation:
        event = await store.find(conversation, name)
        block = None if event is None else appended_block(event.payload)
        if event is not None and block is not None:
            _check_in_view(event.version, conversation, name, until)
            return FoundBlock(conversation, event, block)
    if address is None:
        raise await _no_path(store, conversation, name, until)
    if address.conversation not in {"", conversation} and not await _shares(store, conversation, address):
        cure = f"it is another conversation's: open {address.conversation!r}, and read {address.bare} there"
        raise BlockNotFound(conversation, name, problem=cure)
    return await _at(store, conversation, address.version, name, until)


async def find_readable(store: EventStore, conversation: str, name: str) -> FoundBlock:
    """Find a block as `find_block` does, also in a subagent's conversation.

    The agent that called a subagent may read what it did: its results may print addresses of that conversation.

    Raises:
        BlockNotFound: neither the conversation nor a subagent of it has such a block.
        ConversationNotFound: there is no such conversation.
        HistoryUnavailable: `timeline scavenge` removed the block.
    """
    address = parse_address(name)
    if address is not None and await _is_subagent(store, address.conversation, conversation):
        return await _at(store, address.conversation, address.version, name, None)
    return await find_block(store, conversation, name)


async def _is_subagent(store: EventStore, conversation: str, of: str) -> bool:
    """Return whether a conversation is a subagent's that another conversation called, directly or through others."""
    seen: set[str] = set()
    while conversation and conversation not in seen:
        seen.add(conversation)
        try:
            parent = (await store.info(conversation)).parent
        except ConversationNotFound:
            return False
        if parent is None or parent.relation != "subagent":
            return False
        conversation = parent.conversation
        if conversation == of:
            return True
    return False


async def _shares(store: EventStore, conversation: str, address: Address) -> bool:
    """Return whether an address lies in the past that a conversation shares with those that it was forked from."""
    info = await store.info(conversation)
    while info.parent is not None and address.version <= info.base:
        if info.parent.conversation == address.conversation:
            return True
        info = await store.info(info.parent.conversation)
    return False


async def _at(store: EventStore, conversation: str, version: int, name: str, until: int | None) -> FoundBlock:
    """Return the block that the event of a version appended."""
    info = await store.info(conversation)
    last = info.version
    if not 1 <= version <= last:
        raise BlockNotFound(
            conversation,
            name,
            await _nearest(store, conversation, min(version, last), until),
            problem=f"it has the versions 1 to {last}",
        )
    _check_in_view(version, conversation, name, until)
    found = await store.read_versions(conversation, [version])
    if not found:
        scavenged = version < info.first_version
        raise HistoryUnavailable(conversation, version, info.first_version, last, scavenged=scavenged)
    [event] = found
    block = appended_block(event.payload)
    if block is None:
        nearest = await _nearest(store, conversation, version, until)
        raise BlockNotFound(
            conversation, name, nearest, problem=f"version {version} is not a block: it is {event.type}"
        )
    return FoundBlock(conversation, event, block)


def _check_in_view(version: int, conversation: str, name: str, until: int | None) -> None:
    if until is not None and version > until:
        problem = f"it came at version {version}, and this is the conversation as it was at version {until}"
        raise BlockNotFound(conversation, name, problem=f"{problem}; read it without `at`, or at a later version")


async def _nearest(store: EventStore, conversation: str, version: int, until: int | None) -> list[str]:
    """Return the addresses of the blocks that are nearest to a version, the nearest first."""
    last = version + _AROUND if until is None else min(version + _AROUND, until)
    events = await store.read_versions(conversation, range(max(1, version - _AROUND), last + 1))
    versions = [event.version for event in events if appended_block(event.payload) is not None]
    return [str(Address(near)) for near in sorted(versions, key=lambda near: (abs(near - version), near))[:_NEAREST]]


async def _no_path(store: EventStore, conversation: str, name: str, until: int | None) -> BlockNotFound:
    """Return the error for a path that no block has; a bare number, or ``@`` alone, was meant as an address."""
    if name.startswith(SIGN):
        problem = f"an address is {SIGN} and a version, such as {SIGN}152"
        return BlockNotFound(conversation, name, problem=problem)
    if name.isascii() and name.isdigit() and len(name) < len(str(10**18)):
        last = (await store.info(conversation)).version
        return BlockNotFound(conversation, name, await _nearest(store, conversation, min(int(name), last), until))
    return BlockNotFound(conversation, name, await _likely_paths(name, partial(store.paths_taken, conversation)))


async def _likely_paths(path: str, paths: Callable[[Collection[str]], Awaitable[Collection[str]]]) -> list[str]:
    """Return the existing paths most like an unknown one: those below it, else its parent's, else its turn's.

    Args:
        path: the unknown path.
        paths: returns the paths in use that begin with one of some stems.
    """
    kind, colon, rest = path[:_LONGEST].partition(":")
    names = [path] if colon and kind in _KINDS else [f"{known}:{rest if colon else path}" for known in _KINDS]
    for stems in (names, [_parent(name) for name in names], [f"{_turn(name)}." for name in names]):
        found = sorted(await paths([stem for stem in stems if stem[3:].strip(".")]))
        near = bisect_left(found, path)
        close = found[max(0, near - _MOST_COMPARED) : near + _MOST_COMPARED]
        if close:
            return get_close_matches(path[:_LONGEST], close, n=_MOST_LIKELY, cutoff=0.0)
    return []


def _parent(path: str) -> str:
    return f"{path.rpartition('.')[0]}."


def _turn(path: str) -> str:
    return path.partition(".")[0]
