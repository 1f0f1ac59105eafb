"""What `Timeline.render` returns: the context, with the reason for each block, its account and its fingerprint."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from timeline.events import Replacement
from timeline.frozen import Frozen
from timeline.planning.budget import Account
from timeline.projection.explain import explain_text
from timeline.wire import encoder
from timeline.wire.neutral import CachePoint, NeutralContext

if TYPE_CHECKING:
    from timeline.fold.window import Window


class ContextBlock(Frozen):
    """A live block as this context treats it: ``tokens`` of what is shown, ``of_tokens`` of the whole."""

    version: int
    path: str
    type: str
    turn_id: str
    state: Literal["visible", "hidden", "carried", "omitted", "redacted"]
    reason: str
    tokens: int
    of_tokens: int


class Taken(Frozen):
    """A decision that this render took: what, why, and the figures behind it."""

    kind: Literal["compacted", "spilled", "refused", "failed"]
    reason: str
    facts: dict[str, int | str] = {}


class RenderedContext(Frozen):
    """A context to send, frozen.

    Attributes:
        conversation, version: the log and the version that it was projected from.
        projection: number of the projection's format.
        neutral: the context in no provider's dialect.
        blocks: every live block in order, with its state and the reason for it.
        account: tokens by category.
        decisions: what this render decided.
        overflow: above the trigger still, but within the limit.
    """

    conversation: str
    version: int
    projection: int
    neutral: NeutralContext
    blocks: tuple[ContextBlock, ...]
    account: Account
    decisions: tuple[Taken, ...] = ()
    overflow: bool = False

    @cached_property
    def fingerprint(self) -> str:
        """Sha256 of the neutral context's canonical JSON."""
        return self.neutral.fingerprint()

    @property
    def cache_points(self) -> tuple[CachePoint, ...]:
        """Where cache markers go."""
        return self.neutral.cache_points

    def to_wire(self, wire: str) -> dict[str, Any]:
        """Return the request body of a wire format, by name.

        Raises:
            InvalidPolicy: there is no such wire format.
        """
        return encoder(wire)(self.neutral)

    def to_anthropic(self) -> dict[str, Any]:
        """Return ``system``, ``tools`` and ``messages`` for Anthropic's messages call, cache markers included."""
        return self.to_wire("anthropic")

    def to_openai_chat(self) -> dict[str, Any]:
        """Return ``messages`` and ``tools`` for OpenAI's chat completions call."""
        return self.to_wire("openai_chat")

    def explain(self) -> str:
        """Return a readable table: each block with its state, its tokens and why it is so."""
        return explain_text(self)

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape of `timeline render --json`."""
        return {
            "conversation": self.conversation,
            "version": self.version,
            "projection": self.projection,
            "fingerprint": self.fingerprint,
            "blocks": [b.model_dump() for b in self.blocks],
            "entries": [e.model_dump(mode="json", exclude_defaults=True) for e in self.neutral.entries],
            "cache_points": [p.model_dump() for p in self.cache_points],
            "account": self.account.facts(),
            "decisions": [d.model_dump() for d in self.decisions],
            "overflow": self.overflow,
        }


def context_blocks(window: Window) -> tuple[ContextBlock, ...]:
    """List the live blocks of a window with their states and reasons."""
    rows: list[ContextBlock] = []
    for item in window.items:
        reason = _REASONS[item.state]
        if item.is_summary:
            reason = "stands for what it covers"
        elif item.state == "hidden" and isinstance(item.replacement, Replacement):
            reason = f"shown as a replacement of {item.replacement.tokens} of {item.tokens} tokens"
        elif item.state == "carried" and item.keeps:
            reason = "pinned: kept verbatim behind the summary"
        rows.append(
            ContextBlock(
                version=item.version,
                path=item.block.path,
                type=item.block.type,
                turn_id=item.block.turn_id,
                state=item.state,  # type: ignore[arg-type]  # a live item is never covered or deleted
                reason=reason,
                tokens=item.shown_tokens,
                of_tokens=item.tokens,
            )
        )
    return tuple(rows)


_REASONS = {
    "visible": "inside the window",
    "hidden": "shown as a replacement",
    "carried": "kept verbatim behind the summary: prompt of the split turn, or an open call",
    "omitted": "hidden without a replacement",
    "redacted": "erased; a tombstone stays",
}
