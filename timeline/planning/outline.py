"""Describe a policy in words and figures, for people who compare policies in reports, tables and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from timeline.planning.account import FixedPart, limits_of_policy
from timeline.policy.model import check_policy

if TYPE_CHECKING:
    from timeline.policy.model import Policy
    from timeline.policy.steps import Step


@dataclass(frozen=True, slots=True)
class StepOutline:
    """A step of a compaction: its name, its effect, and the messages that it keeps."""

    title: str
    does: str
    keeps: str


@dataclass(frozen=True, slots=True)
class Said:
    """A message around a summary: the question before it, the summary under its heading, or the answer to it."""

    role: str
    text: str
    is_summary: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """A policy in brief.

    Attributes:
        name: of the policy.
        limit: the context limit, in tokens.
        reserves: the tokens kept free, by name.
        trigger: the largest request that is not compacted, in tokens without reserves, system prompt and tools; None
            where nothing is ever compacted.
        target: the size that a compaction aims at, counted like the trigger.
        when: the trigger, in words.
        hides: the blocks hidden once the cache is cold, and the other decisions that depend on the cache.
        repeats: which passages of new results are left out; empty where none are.
        line_numbers: which lines of new results keep their number; empty where all do.
        steps: of a compaction, in order.
        keeps: the messages that stay verbatim behind the summary.
        stages: the part of approved stages that stays in view; empty where no step collapses stages.
        shows: how a summary looks to the model: its messages in order.
        summary_tokens: cap of its text.
        on_failure: what happens when no summary could be written.
        counts: how tokens are counted.
    """

    name: str
    limit: int
    reserves: tuple[tuple[str, int], ...]
    trigger: int | None
    target: int | None
    when: str
    hides: str
    repeats: str
    line_numbers: str
    steps: tuple[StepOutline, ...]
    keeps: str
    stages: str
    shows: tuple[Said, ...]
    summary_tokens: int
    on_failure: str
    counts: str

    @property
    def reserved(self) -> int:
        """All tokens kept free."""
        return sum(tokens for _, tokens in self.reserves)


def outline(policy: Policy) -> Outline:
    """Return the outline of a policy.

    Raises:
        InvalidArgument: it is not a policy.
    """
    check_policy("policy", policy)
    reserves = (("answer", policy.output_reserve), ("safety buffer", policy.safety_buffer))
    reserved = policy.output_reserve + policy.safety_buffer
    _, trigger, target = limits_of_policy(policy, FixedPart(reserved=reserved))
    steps = tuple(_step(step) for step in policy.steps) if policy.automatic else ()
    covering = [step for step in steps if step.keeps]
    return Outline(
        name=policy.name,
        limit=policy.max_tokens,
        reserves=tuple((name, tokens) for name, tokens in reserves if tokens),
        trigger=max(0, trigger - reserved) if policy.automatic else None,
        target=max(0, target - reserved) if policy.automatic else None,
        when=_filled(_WHEN, policy.trigger.model_dump()),
        hides=_hides(policy),
        repeats=_repeats(policy),
        line_numbers=_line_numbers(policy),
        steps=steps,
        keeps=covering[0].keeps if covering else "everything",
        stages="what each decided" if any(step.kind == "collapse_stages" for step in policy.steps) else "",
        shows=_shows(policy) if covering else (),
        summary_tokens=policy.summary_tokens,
        on_failure=_ON_FAILURE[policy.on_failure],
        counts=_counts(policy),
    )


_WHEN: Final = {
    "over_share": "above {share:.0%} of the limit",
    "over_falling_share": "above {share:.0%} of the limit's first {first:,} tokens and {beyond:.0%} of the others",
    "over_threshold": "from {share:.0%} of the limit less {system_reserve:,}, {output_reserve:,} and {safety_buffer:,}",
    "over_utilization": "above {share:.0%} of the room for messages",
    "overdrawn": "when nothing is available",
    "never": "never",
}
_DOES: Final = {
    "strip_chitchat": "short user messages that say nothing are omitted",
    "clear_tool_outputs": "all but the newest {protect:,} tokens and {keep_turns} turns, if that frees {minimum:,}",
    "collapse_stages": "{which} approved stages give way to a line that names them",
    "drop_oldest": "a notice stands for all but the newest {keep_last} messages",
}
_CUTS: Final = {
    "cut_point": (
        "what stands before the newest {keep_recent:.0%} of the room",
        "the newest {keep_recent:.0%} of the room, and the prompt of a turn that is divided",
    ),
    "keep_last": ("all but the newest {messages} messages", "the newest {messages} messages"),
    "keep_ratio": ("all but the newest {share:.0%} of the messages", "the newest {share:.0%} of the messages"),
    "keep_turns": ("all but the newest {turns} turns", "the newest {turns} turns"),
    "oldest": ("the oldest {messages} messages", "all but the oldest {messages} messages"),
}
"""By kind of cut, the messages that it covers and those that it keeps, in words."""
_CUT_TOKENS: Final = ("all but the newest {keep_recent_tokens:,} tokens", "the newest {keep_recent_tokens:,} tokens")
_ON_FAILURE: Final = {
    "next_step": "the next step",
    "unchanged": "nothing changes",
    "truncate": "a truncation notice",
    "fallback": "the extractive summarizer",
}
_COUNTERS: Final = {"chars4": "characters / 4"}


def _step(step: Step) -> StepOutline:
    fields = step.model_dump()
    title = str(step.kind).replace("_", " ").capitalize()
    cut = fields.get("cut")
    if cut is None:
        keeps = f"the newest {fields['keep_last']} messages" if "keep_last" in fields else ""
        return StepOutline(title, _filled(_DOES, fields), keeps)
    does, keeps = _CUT_TOKENS if cut.get("keep_recent_tokens") else _CUTS[cut["kind"]]
    return StepOutline(title, does.format(**cut), keeps.format(**cut))


def _filled(words: dict[str, str], fields: dict[str, Any]) -> str:
    return words[fields["kind"]].format(**fields)


def _repeats(policy: Policy) -> str:
    if policy.repeats is None:
        return ""
    return f"passages of new results that are in sight, where {policy.repeats.lines} lines or more are left out"


def _line_numbers(policy: Policy) -> str:
    if policy.line_numbers is None:
        return ""
    return f"one line in {policy.line_numbers.every} of new results, and both ends of a run of lines"


def _hides(policy: Policy) -> str:
    hiding = policy.hiding
    phrases = [] if hiding is None else [f"what is older than {hiding.intact} {hiding.unit}, files {hiding.files}"]
    if hiding is not None and hiding.pressure_minimum is not None:
        soon = "" if hiding.payback is None else f", paid back within {hiding.payback} calls"
        phrases.append(f"also when warm, {hiding.pressure_minimum:.0%} at once{soon}")
    if policy.automatic and policy.compact_when_cold is not None:
        phrases.append(f"then compacts above {policy.compact_when_cold:.0%}")
    return "; ".join(phrases) or "nothing"


def _shows(policy: Policy) -> tuple[Said, ...]:
    form = policy.form
    messages = (
        Said("user", form.question),
        Said(form.role, form.heading.strip(), is_summary=True),
        Said("assistant", form.answer),
    )
    return tuple(part for part in messages if part.text or part.is_summary)


def _counts(policy: Policy) -> str:
    parts = [_COUNTERS.get(policy.counter, policy.counter)]
    if policy.counts == "calibrated":
        parts.append("scaled to what the provider reports")
    if policy.margin:
        first = "at first " if policy.counts == "calibrated" else ""
        parts.append(f"{first}{policy.margin:+.0%}")
    if policy.message_tokens:
        parts.append(f"{policy.message_tokens} a message")
    if policy.response_tokens:
        parts.append(f"{policy.response_tokens} a response")
    if policy.abridged_counted_as == "whole":
        parts.append("abridged results as if they were whole")
    return ", ".join(parts)
