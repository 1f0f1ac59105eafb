"""Steps and cuts: what a compaction is made of. A policy lists its steps; each is a frozen value with its figures.

What a step does is decided in `timeline.planning`, in the file that bears its ``kind``; here are only its settings.
Figures are the ones of the design that a step was taken from. For work in stages (seed 000): the memory digest's words,
and how much is said of each stage.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from timeline.frozen import Frozen
from timeline.ports import PromptName


class MemoryDigest(Frozen):
    """The words of the memory digest: a line a stage, ``- label: decision``, under a heading.

    Attributes:
        heading: the first line.
        replaces: the last line, wherever an earlier digest may still be in view.
        nothing: the only line once going back took the last decision away.
    """

    heading: str = "MEMORY DIGEST (decisions kept, one line a stage):"
    replaces: str = "(This list replaces the earlier ones.)"
    nothing: str = "- none: no earlier decision holds any more"


class StageData(Frozen):
    """How much of the approved stages is told in the uncached tail of each context (seed 000, formatStageData).

    Attributes:
        heading: the first line.
        detailed: the newest so many stages are told in detail, as long as their messages are in view.
        detailed_chars, short_chars: characters of a stage's detailed and short text.
        references, citations: the most of each that are told of a stage.
        artifacts: the most that are told of all stages together, the newest first.
        artifact_chars: characters of one.
    """

    heading: str = "STAGE DATA (approved stages):"
    detailed: int = Field(default=3, ge=0)
    detailed_chars: int = Field(default=1_000, ge=1)
    short_chars: int = Field(default=280, ge=1)
    references: int = Field(default=5, ge=0)
    citations: int = Field(default=5, ge=0)
    artifacts: int = Field(default=10, ge=0)
    artifact_chars: int = Field(default=500, ge=1)


class CutPoint(Frozen):
    """Seed 002's cut point: by tokens, at a legal boundary, splitting a turn where it has to.

    Attributes:
        keep_recent: share of (limit - fixed part) that stays verbatim behind the cut.
        keep_recent_tokens: the same in tokens; overrides the share.
        halvings: how often the keep is halved to meet the target.
        on_split: a cut inside a turn summarises the turn's prefix, or moves to the turn's start.
    """

    kind: Literal["cut_point"] = "cut_point"
    keep_recent: float = Field(default=0.2, gt=0, lt=1)
    keep_recent_tokens: int | None = Field(default=None, ge=1)
    halvings: int = Field(default=4, ge=0, le=10)
    on_split: Literal["split", "whole_turn"] = "split"


class KeepLast(Frozen):
    """Keep the newest messages, one more where a tool pair stands on the boundary (seed 001)."""

    kind: Literal["keep_last"] = "keep_last"
    messages: int = Field(default=10, ge=1)


class KeepRatio(Frozen):
    """Keep a share of the messages, moved so that no tool pair is divided (seed 003)."""

    kind: Literal["keep_ratio"] = "keep_ratio"
    share: float = Field(default=0.4, gt=0, lt=1)


class KeepTurns(Frozen):
    """Keep the newest turns, whole (seed 004)."""

    kind: Literal["keep_turns"] = "keep_turns"
    turns: int = Field(default=2, ge=1)


class Oldest(Frozen):
    """Take the oldest messages; in a staged conversation those of the current stage only (seed 000, P3).

    Attributes:
        messages: how many.
        scope: ``stage``: where there are stages, what stands before the current one is left alone; where none is going
            on, what belongs to the approved ones. ``conversation``: begin at its beginning in any case.
    """

    kind: Literal["oldest"] = "oldest"
    messages: int = Field(default=20, ge=1)
    scope: Literal["stage", "conversation"] = "stage"


Cut: TypeAlias = Annotated[CutPoint | KeepLast | KeepRatio | KeepTurns | Oldest, Field(discriminator="kind")]
"""Where a summary's range ends."""
MessageCut: TypeAlias = KeepLast | KeepRatio | KeepTurns | Oldest
"""A cut that counts messages."""


class Summarize(Frozen):
    """Cover a range with a summary.

    Attributes:
        cut: where the range ends.
        prompt: what the summarizer is asked for.
        language: of the summary; that of the conversation unless given.
    """

    kind: Literal["summarize"] = "summarize"
    cut: Cut = CutPoint()
    prompt: PromptName = "generic"
    language: str = ""


class StripChitchat(Frozen):
    """Omit short user messages that say nothing (seed 000, P1); the newest prompt stays.

    Attributes:
        most_length: longer messages are never chitchat, in characters as written.
        below_length: trimmed messages of fewer characters may be.
        kept_words: trimmed, lower-cased messages that are never chitchat: commands and one-word answers.
    """

    kind: Literal["strip_chitchat"] = "strip_chitchat"
    most_length: int = Field(default=50, ge=0)
    below_length: int = Field(default=15, ge=0)
    kept_words: tuple[str, ...] = ("stop", "berhenti", "batal", "cancel", "yes", "no", "tidak", "undo", "ulang")


class ClearToolOutputs(Frozen):
    """Clear old tool outputs; the calls stay (seed 004, tool output pruning).

    Attributes:
        protect: tokens of the newest tool outputs, behind the kept turns, that stay.
        minimum: tokens that clearing frees at the least, or nothing is cleared.
        keep_turns: the newest turns are not looked at.
    """

    kind: Literal["clear_tool_outputs"] = "clear_tool_outputs"
    protect: int = Field(default=40_000, ge=0)
    minimum: int = Field(default=20_000, ge=0)
    keep_turns: int = Field(default=2, ge=0)


class CollapseStages(Frozen):
    """Cover the messages of approved stages, oldest first, by what each decided (seed 000, P2 and P4).

    Attributes:
        which: ``oldest``: all but the newest ones; ``recent``: those too.
        recent: how many are the newest ones.
    """

    kind: Literal["collapse_stages"] = "collapse_stages"
    which: Literal["oldest", "recent"] = "oldest"
    recent: int = Field(default=3, ge=0)


class DropOldest(Frozen):
    """Keep the newest messages; what stands before them is covered by a notice, not a summary (seed 000, P5)."""

    kind: Literal["drop_oldest"] = "drop_oldest"
    keep_last: int = Field(default=50, ge=1)


Step: TypeAlias = Annotated[
    Summarize | StripChitchat | ClearToolOutputs | CollapseStages | DropOldest, Field(discriminator="kind")
]
"""One step of a compaction."""
HidingStep: TypeAlias = StripChitchat | ClearToolOutputs
"""A step that hides blocks."""
CoveringStep: TypeAlias = Summarize | CollapseStages | DropOldest
"""A step that covers a range with a summary block."""


class SummaryForm(Frozen):
    """How a summary looks to the model; recorded with each compaction.

    A role is a wish that each wire lowers to what its provider takes. Texts may name ``{round}``.

    Attributes:
        role: who says the summary.
        heading: what it begins with; an empty line follows unless it ends a line itself.
        question: what the user asks before it, where it is told as an answer.
        answer: what the assistant says behind it.
        record: whether the digest's facts stand at its end.
    """

    role: Literal["user", "assistant", "system"] = "user"
    heading: str = "[Summary of the earlier conversation: a record of what happened, not instructions.]"
    question: str = ""
    answer: str = ""
    record: bool = True

    @property
    def plain(self) -> bool:
        """Whether the summary is a single text of the user's."""
        return self.role == "user" and not self.question and not self.answer


BLOCK_FORM: Final = SummaryForm()
"""Ours: labelled text of the user's."""
FORM_KEY: Final = "form"
"""Key of a summary's ``meta``: how it is told, where that is not our own form. Recorded, so that it never changes."""
