"""The neutral context: the input of every wire format, and the bytes that are fingerprinted.

Entries are in timeline order and are only ever appended between two decisions, so that the neutral bytes before
the previous tail never change (design: Invariants). Each wire itself puts results beside their calls, merges roles and
answers calls that have no result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from operator import is_
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, JsonValue, SerializerFunctionWrapHandler, WrapSerializer

from timeline.frozen import Frozen, begins_with, canonical_json, common_length, sha256_hex, without_empty
from timeline.usage import KeptLong

if TYPE_CHECKING:
    from collections.abc import Iterator

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]
"""The role that a text is meant for. Each wire maps it to one of its own; no text of a log becomes a system message."""

INTERRUPTED: Final = "[interrupted: no result was recorded for this call]"
"""The result that a wire sends for a call without one (design: Invariants).

One text for dead and for open calls: when an open call dies, the bytes that were sent before stay as they are.
"""

FAILED: Final = "[failed, without any output]"
"""The result that a wire without a mark for errors sends for one without a word: an empty text is a success."""


class Entry(Frozen):
    """One block of the context as the model will see it.

    Attributes:
        path: the block's address.
        type: the block's type.
        role: the role that its text is meant for.
        text: the shown text: the block's own, or its replacement.
        name, call_id: of a tool call or result.
        arguments: of a call: an object, or the raw text where the model wrote no JSON object.
        loose: of a result whose call is not in this context, or was given up before the result came: it is sent as
            user text with its path.
        is_error: of a result.
        response_id: shared by the entries of one model response.
        group: number of the entry's atomic group in this context; a wire keeps a group's calls and results together.
        data: the block's structured or opaque content, byte for byte; None where a replacement is shown.
        mime: content type.
        rewritten: of reasoning: the prefix before this entry was rewritten since the block was made, so a provider's
            signature may no longer hold.
        in_loop: of rewritten reasoning: it belongs to the assistant's turn that was the newest when the prefix was
            rewritten. A provider that demands a tool loop back unchanged is still sent it.
        continues: whether it is a further part of the user's message to which the entry before it belongs.
    """

    path: str
    type: str
    role: Role
    text: str = ""
    name: str = ""
    arguments: dict[str, JsonValue] | str | None = None
    call_id: str | None = None
    loose: bool = False
    is_error: bool = False
    response_id: str | None = None
    group: int = 0
    data: JsonValue = None
    mime: str = "text/plain"
    rewritten: bool = False
    in_loop: bool = False
    continues: bool = False

    @cached_property
    def hash(self) -> bytes:
        """Sha256 of the canonical JSON. The JSON is not kept, since it would be a second copy of the text."""
        return hashlib.sha256(self._written().encode()).digest()

    @cached_property
    def canonical(self) -> str:
        """The entry's canonical JSON: equal texts are equal entries.

        The group number is left out: it only separates neighbouring groups, and is the same for the same entries.
        """
        return self._written()

    def _written(self) -> str:
        fields: dict[str, Any] = self.model_dump(mode="json", exclude={"group"})
        if self.arguments is not None:
            fields["arguments"] = fields["arguments"] or {}
        kept = without_empty({k: v for k, v in fields.items() if v is not False})
        if self.arguments is not None:
            kept["arguments"] = fields["arguments"]
        return canonical_json(kept)


class EntryChain:
    """Hashes entries in order: link n is the hash of link n - 1 and of entry n, so it stands for all entries up to n.

    It remembers the last entries that it was given, and hashes the next ones from the first different entry on. So a
    context with one more entry costs one hash, however many entries there are.
    """

    def __init__(self) -> None:
        self._entries: Sequence[Entry] = ()
        self._links: list[bytes] = []

    def apart(self) -> EntryChain:
        """Return a chain that goes on from here; this one does not change."""
        twin = EntryChain()
        twin._entries, twin._links = self._entries, [*self._links]
        return twin

    def end(self, entries: Sequence[Entry]) -> bytes:
        """Return the last link; no bytes where there is no entry."""
        grew = begins_with(entries, self._entries)
        known = len(self._entries) if grew else common_length(self._entries, entries, is_)
        del self._links[known:]
        link = self._links[-1] if self._links else b""
        for entry in entries[known:]:
            link = hashlib.sha256(link + entry.hash).digest()
            self._links.append(link)
        self._entries = entries
        return link


class CachePoint(Frozen):
    """A place for a cache marker: after the entry at ``index``."""

    kind: Literal["previous_turn", "pre_tail", "tail", "lagging"]
    index: int


def _as_tuple(entries: Sequence[Entry], write: SerializerFunctionWrapHandler) -> Any:
    return write(tuple(entries))


class NeutralContext(Frozen):
    """A whole context: system prompt, tools, entries, cache points, and an ephemeral tail that is never cached or kept.

    ``system`` is a text or the provider's list of content parts, ``tools`` the provider's tool schemas; both are sent
    unchanged. ``policy`` is the hash of the policy behind the context: the same words under another policy are another
    context, and are recorded as one. ``model`` is the id of the model that it is for, where that is known: a wire looks
    up that model's rules. ``kept_long`` is the part that the provider is asked to keep for its long time. ``model`` and
    ``kept_long`` are not part of the canonical JSON: the log records the model and the policy ``kept_long``, and
    neither changes the text of the context.
    """

    system: JsonValue = None
    tools: tuple[JsonValue, ...] = ()
    entries: Annotated[Sequence[Entry], BeforeValidator(tuple), WrapSerializer(_as_tuple)] = ()
    cache_points: tuple[CachePoint, ...] = ()
    ephemeral: tuple[Entry, ...] = ()
    policy: str = ""
    model: str = ""
    kept_long: KeptLong = "nothing"

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        yield from {"entries": len(self.entries), "tools": len(self.tools), "ephemeral": len(self.ephemeral)}.items()

    def canonical(self) -> str:
        """Return the canonical JSON: equal texts are equal contexts."""
        return (
            '{"cache_points":'
            + canonical_json([p.model_dump() for p in self.cache_points])
            + ',"entries":['
            + ",".join(e.canonical for e in self.entries)
            + '],"ephemeral":['
            + ",".join(e.canonical for e in self.ephemeral)
            + '],"policy":'
            + canonical_json(self.policy)
            + ',"system":'
            + canonical_json(self.system)
            + ',"tools":'
            + canonical_json(list(self.tools))
            + "}"
        )

    def fingerprint(self, chain: EntryChain | None = None) -> str:
        """Return the sha256 of the context: of the chain's end over its entries, and of what is sent beside them.

        Args:
            chain: what hashed earlier contexts of the same conversation, so that only new entries are hashed.
        """
        end = (chain or EntryChain()).end(self.entries)
        beside = {
            "cache_points": [point.model_dump() for point in self.cache_points],
            "entries": end.hex(),
            "ephemeral": [entry.hash.hex() for entry in self.ephemeral],
            "policy": self.policy,
            "system": self.system,
            "tools": list(self.tools),
        }
        return sha256_hex(canonical_json(beside))
