"""The five published designs as policies; keyword arguments change single fields.

A dict changes single fields of a part, such as ``form={"question": "..."}``; a value of its type replaces the part.
``model=`` takes a model's name, or its `ModelLimits`, and fills in the context limit; each preset documents what else
it takes from a model. A field that is given overrides the model's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Unpack

from timeline.policy.limits import ModelLimits, limits_of
from timeline.policy.making import COUNTED, RESERVED, make, preset
from timeline.policy.model import Hiding, Overdrawn, OverShare, OverThreshold, OverUtilization
from timeline.policy.steps import MemoryDigest, StageData, StripChitchat, SummaryForm

if TYPE_CHECKING:
    from timeline.policy.fields import PolicyFields
    from timeline.policy.making import Model
    from timeline.policy.model import Policy
    from timeline.policy.steps import OnSplit


@preset(release=1)
def cut_point(
    *,
    model: Model = None,
    keep_recent: float = 0.2,
    keep_recent_tokens: int | None = None,
    halvings: int = 4,
    on_split: OnSplit = "split",
    **changes: Unpack[PolicyFields],
) -> Policy:
    """Hide old content once the cache is cold; above 0.9 of the limit compact into a summary block.

    The cut-point design (002).

    Args:
        model: whose limits, vocabulary and margin to take.
        keep_recent: share of (limit - fixed part) that stays verbatim behind the cut.
        keep_recent_tokens: the same in tokens; overrides the share.
        halvings: how often, at most, the kept part is halved to meet the target.
        on_split: what to do with a cut inside a turn. ``split``: summarise the turn's prefix by a request of its own.
            ``together``: summarise it with the history, by one request. ``whole_turn``: move the cut to the turn's
            start.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    cut = {
        "kind": "cut_point",
        "keep_recent": keep_recent,
        "keep_recent_tokens": keep_recent_tokens,
        "halvings": halvings,
        "on_split": on_split,
    }
    steps = [{"kind": "summarize", "cut": cut}]
    return make(cut_point, {"hiding": Hiding(), "steps": steps}, changes, model, COUNTED)


@preset(release=1)
def priority_chain(
    *,
    model: Model = None,
    recent_stages: int = 3,
    oldest_messages: int = 20,
    keep_last: int = 50,
    **changes: Unpack[PolicyFields],
) -> Policy:
    """Above 0.85 of the limit strip chitchat, collapse old stages, summarise, collapse recent stages, drop.

    The priority-chain design (000). It stops as soon as the trigger is no longer due; the steps about stages do nothing
    where there are none. Tokens are characters / 4.

    Args:
        model: whose limit to take.
        recent_stages: how many of the newest approved stages are collapsed only when summarising did not help.
        oldest_messages: number of messages to summarise at a time; those of the current stage, if there is one.
        keep_last: number of messages that stay when nothing else helped.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    steps = [
        StripChitchat().model_dump(),
        {"kind": "collapse_stages", "which": "oldest", "recent": recent_stages},
        {
            "kind": "summarize",
            "cut": {"kind": "oldest", "messages": oldest_messages},
            "prompt": "bullets",
            "language": "Indonesian",
        },
        {"kind": "collapse_stages", "which": "recent", "recent": recent_stages},
        {"kind": "drop_oldest", "keep_last": keep_last},
    ]
    return make(
        priority_chain,
        {
            **_LITERAL,
            "max_tokens": 128_000,
            "counter": "chars4",
            "trigger": OverShare(share=0.85),
            "steps": steps,
            "on_failure": "next_step",
            "form": SummaryForm(role="system", heading="[RINGKASAN DISKUSI SEBELUMNYA]\n", record=False),
            "summary_tokens": 200,
            "memory_digest": _KEPT,
            "stage_data": StageData(),
            **_ANY_PROGRESS,
        },
        changes,
        model,
    )


@preset(release=1)
def keep_last(*, model: Model = None, messages: int = 10, **changes: Unpack[PolicyFields]) -> Policy:
    """From 93,600 tokens of 128,000 on summarise all but the newest ten messages, in fixed sections.

    The keep-last design (001). Without a system prompt the first message stays in the prompt's place. The design's
    reserves for the answer and for safety only make a compaction due earlier; a context that fits the model's window is
    sent. To keep room for the answer free as well, give ``output_reserve``.

    Args:
        model: whose limit to take; 128,000 for an unknown model.
        messages: number of messages that stay.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    cut = {"kind": "keep_last", "messages": messages}
    return make(
        keep_last,
        {
            **_LITERAL,
            "max_tokens": 128_000,
            "counter": "chars4",
            "message_tokens": 2,
            "results_counted_as": "json",
            "trigger": OverThreshold(output_reserve=4_000, safety_buffer=5_000),
            "steps": [{"kind": "summarize", "cut": cut, "prompt": "sections", "temperature": 0.3, "answer_room": 1.0}],
            "on_failure": "unchanged",
            "form": SummaryForm(role="assistant", heading="## Session Summary (Round {round})", record=False),
            "summary_tokens": 1_000,
        },
        changes,
        model,
    )


@preset(release=1)
def keep_ratio(
    *, model: Model = None, share: float = 0.4, long_context: bool = False, **changes: Unpack[PolicyFields]
) -> Policy:
    """Above a utilization of 0.8 summarise all but the newest 40 % of the messages; if that fails, truncate.

    The keep-ratio design (003).

    Args:
        model: whose limit to take; 200,000 for an unknown model.
        share: share of the messages that stays.
        long_context: set it if your requests carry the provider's beta flag for the long window. Takes the model's long
            window, if it has one, and 1,000,000 for an unknown model.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    return make(
        keep_ratio,
        {
            **_LITERAL,
            "max_tokens": _UNKNOWN_OPENED.context if long_context else 200_000,
            "output_reserve": 16_384,
            "counter": "chars4",
            "message_tokens": 4,
            "trigger": OverUtilization(),
            "steps": [{"kind": "summarize", "cut": {"kind": "keep_ratio", "share": share}}],
            "on_failure": "truncate",
            "form": SummaryForm(heading="[COMPACT SUMMARY]\n", answer="Understood.", record=False),
            "boundary": True,
            **_ANY_PROGRESS,
        },
        changes,
        _opened(model) if long_context else model,
    )


@preset(release=1)
def prune_then_summarize(
    *,
    model: Model = None,
    protect: int = 40_000,
    minimum: int = 20_000,
    keep_turns: int = 2,
    **changes: Unpack[PolicyFields],
) -> Policy:
    """When no tokens are free, clear old tool outputs, then summarise all but two turns.

    The prune-then-summarize design (004). The design's configuration keeps 4,096 tokens free for every model's answer;
    this policy keeps the model's longest answer free, as the design's table of limits does. ``output_reserve`` gives
    another figure.

    Args:
        model: whose limits to take: the window, the longest answer as reserve, the vocabulary, and a margin of a tenth
            if the tokenizer is not public. An unknown model has a window of 16,000 and a reserve of 4,096.
        protect: tokens of the newest tool outputs that stay.
        minimum: the fewest tokens that clearing has to free.
        keep_turns: number of newest turns, which are neither cleared nor summarised.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    clear = {"kind": "clear_tool_outputs", "protect": protect, "minimum": minimum, "keep_turns": keep_turns}
    cut = {"kind": "keep_turns", "turns": keep_turns}
    return make(
        prune_then_summarize,
        {
            **_LITERAL,
            "max_tokens": 16_000,
            "output_reserve": 4_096,
            "message_tokens": 4,
            "response_tokens": 4,
            "trigger": Overdrawn(),
            "steps": [clear, {"kind": "summarize", "cut": cut, "prompt": "continuation", "answer_room": 1.0}],
            "form": SummaryForm(role="assistant", heading="", question=_PROGRESS, record=False),
            "system_parts": 2,
            "summary_tokens": 2_000,
            **_ANY_PROGRESS,
        },
        changes,
        model,
        RESERVED,
    )


_UNKNOWN_OPENED: Final = ModelLimits(context=1_000_000)
"""The limit with the beta flag, for an unknown model (keep-ratio design)."""
_LITERAL: Final[dict[str, Any]] = {"stop_at": "trigger", "attempts": 1, "digest_tokens": 0}
"""Shared by the four designs that are not ours: one try, down to their trigger, prose only."""
_ANY_PROGRESS: Final[dict[str, Any]] = {"min_progress": 0.0, "min_progress_tokens": 1}
"""Of the designs that compact before each call that is above their line, however little that frees."""
_KEPT: Final = MemoryDigest(heading="MEMORY DIGEST (keputusan tersimpan per tahap):")
"""The priority-chain design's heading."""
_PROGRESS: Final = (
    "What have we accomplished in our conversation so far? Summarize our progress, current state, and next steps."
)
"""The fixed question of the prune-then-summarize design (gap 9)."""


def _opened(model: Model) -> Model:
    """Return the limits of a model when the provider's beta flag opens its long window."""
    limits = limits_of(model, default=_UNKNOWN_OPENED, preset="keep_ratio") if isinstance(model, str) else model
    return limits if limits is None else limits.opened()
