"""The named policies, as functions: keyword arguments change single fields.

`by_name` is what the command line uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import ValidationError

from timeline.blocks import invalid_block
from timeline.errors import InvalidPolicy
from timeline.policy.model import Hiding, Policy
from timeline.policy.steps import DropOldest, Oldest, StripChitchat, Summarize, SummaryForm
from timeline.policy.triggers import Overdrawn, OverShare, OverThreshold, OverUtilization

if TYPE_CHECKING:
    from collections.abc import Callable


def cut_point(
    *,
    keep_recent: float = 0.2,
    keep_recent_tokens: int | None = None,
    halvings: int = 4,
    on_split: Literal["split", "whole_turn"] = "split",
    **changes: Any,
) -> Policy:
    """Seed 002: hide old content once the cache is cold; above 0.9 of the limit compact into a summary block.

    Args:
        keep_recent: share of (limit - fixed part) that stays verbatim behind the cut.
        keep_recent_tokens: the same in tokens; overrides the share.
        halvings: how often that is halved to meet the target.
        on_split: a cut inside a turn summarises the turn's prefix, or moves to the turn's start.
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
    return _policy({"name": "cut_point", "hiding": Hiding(), "steps": steps, **changes})


def none(**changes: Any) -> Policy:
    """Never compact; a context above the limit is a `ContextOverflow`.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    return _policy({"name": "none", "trigger": "never", "steps": (), **changes})


def priority_chain(**changes: Any) -> Policy:
    """Seed 000: above 0.85 of the limit strip chitchat, summarise the oldest 20 messages, keep the newest 50.

    Stops as soon as the trigger does not say any more that it is due. Tokens are characters / 4.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    steps = (
        StripChitchat(),
        Summarize(cut=Oldest(messages=20), prompt="bullets", language="Indonesian"),
        DropOldest(keep_last=50),
    )
    return _policy(
        {
            **_LITERAL,
            "name": "priority_chain",
            "max_tokens": 128_000,
            "counter": "chars4",
            "trigger": OverShare(share=0.85),
            "steps": steps,
            "on_failure": "next_step",
            "form": SummaryForm(role="system", heading="[RINGKASAN DISKUSI SEBELUMNYA]\n", record=False),
            "summary_tokens": 200,
            "min_progress": 0.0,
            "min_progress_tokens": 1,
            **changes,
        }
    )


def keep_last(*, messages: int = 10, **changes: Any) -> Policy:
    """Seed 001: above 93,600 tokens of 128,000 summarise all but the newest ten messages, in fixed sections.

    Args:
        messages: how many stay.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    return _policy(
        {
            **_LITERAL,
            "name": "keep_last",
            "max_tokens": 128_000,
            "output_reserve": 4_000,
            "safety_buffer": 5_000,
            "counter": "chars4",
            "message_tokens": 2,
            "trigger": OverThreshold(),
            "steps": [{"kind": "summarize", "cut": {"kind": "keep_last", "messages": messages}, "prompt": "sections"}],
            "on_failure": "unchanged",
            "form": SummaryForm(role="assistant", heading="## Session Summary (Round {round})", record=False),
            "summary_tokens": 1_000,
            **changes,
        }
    )


def keep_ratio(*, share: float = 0.4, **changes: Any) -> Policy:
    """Seed 003: above a utilization of 0.8 summarise all but the newest 40 % of the messages; else truncate.

    Args:
        share: of the messages that stay.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    return _policy(
        {
            **_LITERAL,
            "name": "keep_ratio",
            "max_tokens": 200_000,
            "output_reserve": 16_384,
            "counter": "chars4",
            "message_tokens": 4,
            "trigger": OverUtilization(),
            "steps": [{"kind": "summarize", "cut": {"kind": "keep_ratio", "share": share}}],
            "on_failure": "truncate",
            "form": SummaryForm(heading="[COMPACT SUMMARY]\n", answer="Understood.", record=False),
            **changes,
        }
    )


def prune_then_summarize(
    *, protect: int = 40_000, minimum: int = 20_000, keep_turns: int = 2, **changes: Any
) -> Policy:
    """Seed 004: when nothing is available any more clear old tool outputs, then summarise all but two turns.

    Args:
        protect: tokens of the newest tool outputs that stay.
        minimum: tokens that clearing frees at the least.
        keep_turns: the newest turns, which are neither cleared nor summarised.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    clear = {"kind": "clear_tool_outputs", "protect": protect, "minimum": minimum, "keep_turns": keep_turns}
    cut = {"kind": "keep_turns", "turns": keep_turns}
    return _policy(
        {
            **_LITERAL,
            "name": "prune_then_summarize",
            "max_tokens": 16_000,
            "output_reserve": 4_096,
            "message_tokens": 4,
            "response_tokens": 4,
            "trigger": Overdrawn(),
            "steps": [clear, {"kind": "summarize", "cut": cut, "prompt": "continuation"}],
            "form": SummaryForm(role="assistant", heading="", question=_PROGRESS, record=False),
            "summary_tokens": 2_000,
            **changes,
        }
    )


_LITERAL: Final[dict[str, Any]] = {"stop_at": "trigger", "attempts": 1, "digest_tokens": 0}
"""What the four designs that are not ours have in common: one try, down to their trigger, prose alone."""
_PROGRESS: Final = (
    "What have we accomplished in our conversation so far? Summarize our progress, current state, and next steps."
)
"""Seed 004's fixed question (gap 9)."""
PRESETS: Final[dict[str, Callable[..., Policy]]] = {
    "cut_point": cut_point,
    "keep_last": keep_last,
    "keep_ratio": keep_ratio,
    "none": none,
    "priority_chain": priority_chain,
    "prune_then_summarize": prune_then_summarize,
}


def by_name(name: str, **changes: Any) -> Policy:
    """Make the preset of a name.

    Raises:
        InvalidPolicy: there is no such preset, or a field does not hold.
    """
    preset = PRESETS.get(name)
    if preset is None:
        raise InvalidPolicy("policy", f"there is no preset {name!r}; there are {', '.join(sorted(PRESETS))}")
    return preset(**changes)


def _policy(fields: dict[str, Any]) -> Policy:
    try:
        return Policy.model_validate(fields)
    except ValidationError as error:
        problem = invalid_block(error)
        raise InvalidPolicy(problem.field, problem.problem) from None
