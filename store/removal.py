"""Decide what of a conversation may be removed, and which content-addressed texts are still named.

Pure decisions over what a store reads, so that every store answers alike; see `timeline.ports.Scavenging`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.events import DISOWNED

from .frequent_types import FREQUENT_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from timeline.ports import Snapshot

HASH: Final = "(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])"
"""Matches a sha256 as events write it. A false match only keeps a text, but a missed one would lose a text."""

_HASHES: Final = re.compile(HASH)
_NAMING: Final = ("policy", "system", "tools", "ephemeral")
"""Fields of events that hold the hash of a text."""
_NAMING_BY_HASH: Final = ("policy",)
"""The fields whose text is kept even for a context that was recorded as hashes."""
_HIDDEN: Final = "blocks.hidden"
_DISOWNING: Final = tuple(f'{{"mode":"omit","reason":"{reason}"' for reason in sorted(DISOWNED))
"""How the payloads of such events begin, as `timeline.store.codec` writes them; no other payload begins so."""
DISOWNS_WHERE: Final = f"type = '{_HIDDEN}' AND (" + " OR ".join(f"payload LIKE '{p}%'" for p in _DISOWNING) + ")"
"""Condition that an event says that blocks never happened, for the agent. Such an event stays, as the facts of its
blocks do: no summary is to tell them as something that was asked for or done. It names versions only."""
OTHER_SCAVENGED: Final = "scavenged"
"""Type of a removed event that is neither an appended block, a recorded context nor a model call."""


def type_left(type_: str) -> str:
    """Return the type of a removed event."""
    return type_ if type_ in FREQUENT_TYPES else OTHER_SCAVENGED


def disowns(type_: str, payload: str) -> bool:
    """Return whether an event says that blocks never happened, for the agent; see `DISOWNS_WHERE`."""
    return type_ == _HIDDEN and payload.startswith(_DISOWNING)


class RemovalBounds(NamedTuple):
    """The versions that may be removed, ``first`` to ``last``, without those of ``kept``; none where ``last`` is 0."""

    first: int
    last: int
    kept: frozenset[int]
    fork: str | None


def bounds(snapshot: Snapshot | None, base: int, fork: tuple[str, int] | None, newest_undo: int) -> RemovalBounds:
    """Return the bounds of one conversation.

    Args:
        snapshot: its own snapshot; without one, or with an outdated one, its window begins at version 1.
        base: the last version that it shares with its parent.
        fork: the one of its own forks that shares most, with the last version that both share.
        newest_undo: version of its newest undo; 0 without one.
    """
    shared = base if fork is None else max(base, fork[1])
    first = shared + 1
    limited_by = None if fork is None or fork[1] < base else fork[0]
    # An undo behind the snapshot, without one of its own, can only be folded from version 1.
    if snapshot is None or snapshot.is_outdated or newest_undo > snapshot.version:
        return RemovalBounds(first, 0, frozenset(), None)
    last = min(snapshot.window_start - 1, snapshot.version)
    return RemovalBounds(first, last if last >= first else 0, _needed(snapshot), limited_by)


def _needed(snapshot: Snapshot) -> frozenset[int]:
    """Return the versions of the events that a snapshot names: its blocks, and the newest recorded context.

    The context says under which policy the conversation was rendered last, for those that open it without one.
    """
    rendered = snapshot.state.get("rendered")
    version = rendered[0] if isinstance(rendered, list) and rendered else None
    return frozenset(snapshot.blocks) | ({version} if isinstance(version, int) else set())


def named_in(texts: Iterable[str]) -> Iterator[str]:
    """Return every hash that texts name."""
    for text in texts:
        yield from _HASHES.findall(text)


def values_named(payload: str) -> set[str]:
    """Return the hashes of the texts that an event is to find in the store; none for a damaged one."""
    try:
        fields = json.loads(payload)
        naming = _NAMING_BY_HASH if fields.get("record") == "hash" else _NAMING
        return {fields.get(name) for name in naming} - {None}
    except (ValueError, AttributeError, TypeError):
        return set()  # reading the event reports the damage
