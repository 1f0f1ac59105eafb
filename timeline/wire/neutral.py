"""The neutral context: what every wire format encodes, and the bytes that are fingerprinted.

Entries stand in timeline order and are only ever appended to between two decisions, so that the neutral bytes before
the previous tail never change (design, invariant 8). Putting results beside their calls, merging roles and answering
calls that have no result is each wire's own work.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from pydantic import JsonValue

from timeline.frozen import Frozen, canonical_json, sha256_hex, without_empty
from timeline.usage import KeptLong

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]
"""A wish that each wire lowers: text from the conversation never becomes a system message."""

INTERRUPTED: Final = "[interrupted: no result was recorded for this call]"
"""What the wire sends as the result of a call that has none (design, invariant 2).

One text for dead and for open calls: when an open call dies, the bytes that were sent before stay as they are.
"""


class Entry(Frozen):
    """One block of the context as the model is to see it.

    Attributes:
        path: the block's address.
        type: the block's type.
        role: whose text it is to be.
        text: what is shown: the block's text, or its replacement.
        name, call_id: of a tool call or result.
        arguments: of a call: an object, or the raw text where the model wrote no JSON object.
        loose: of a result whose call is not in this context, or was given up before the result came: it goes out as
            user text with its path.
        is_error: of a result.
        response_id: entries of one model response share it.
        group: number of the entry's atomic group in this context; a wire keeps a group's calls and results together.
        data: the block's structured or opaque content, byte for byte; None where a replacement is shown.
        mime: content type.
        rewritten: of reasoning: the prefix before this entry was rewritten since the block was made, so that a
            provider's signature may not hold any more.
        in_loop: of such reasoning: it belongs to the assistant's turn that was the newest one when the prefix was
            rewritten. A provider that demands a tool loop back as it was is sent it all the same.
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

    @cached_property
    def canonical(self) -> str:
        """The entry's canonical JSON; kept, since an unchanged entry is written in every later context.

        The group number is left out: it only tells neighbours apart, and is the same for the same entries.
        """
        fields: dict[str, Any] = self.model_dump(mode="json", exclude={"group"})
        if self.arguments is not None:
            fields["arguments"] = fields["arguments"] or {}
        kept = without_empty({k: v for k, v in fields.items() if v is not False})
        if self.arguments is not None:
            kept["arguments"] = fields["arguments"]
        return canonical_json(kept)


class CachePoint(Frozen):
    """A place for a cache marker: after the entry at ``index``."""

    kind: Literal["previous_turn", "pre_tail", "tail", "lagging"]
    index: int


class NeutralContext(Frozen):
    """A whole context: system prompt, tools, entries, cache points, and an ephemeral tail that is never cached or kept.

    ``system`` is a text or the provider's list of content parts, ``tools`` the provider's tool schemas; both go out as
    they came in. ``policy`` is the hash of the policy that decided what stands here: the same words under another
    policy are another context, and are recorded as one. ``model`` is the id of the model that it is for, as far as that
    is known: a wire looks up what that model takes. ``kept_long`` is what the provider is asked to keep for its
    long time. Neither is part of the canonical JSON: the log says the one and the policy the other, and nothing that is
    said depends on them.
    """

    system: JsonValue = None
    tools: tuple[JsonValue, ...] = ()
    entries: tuple[Entry, ...] = ()
    cache_points: tuple[CachePoint, ...] = ()
    ephemeral: tuple[Entry, ...] = ()
    policy: str = ""
    model: str = ""
    kept_long: KeptLong = "nothing"

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

    def fingerprint(self) -> str:
        """Return the sha256 of the canonical JSON."""
        return sha256_hex(self.canonical())
