"""The settings of a compaction's steps and cuts. A policy lists its steps; each is a frozen value with its figures.

`timeline.planning` decides what a step does, in the file that bears its ``kind``. The default figures are those of the
design that a step comes from. For work in stages (priority-chain design) there are also the memory digest's words and
the amount shown of each stage.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from timeline.frozen import Frozen
from timeline.ports import PromptName


class MemoryDigest(Frozen):
    """The words of the memory digest: one line per stage, ``- label: decision``, under a heading.

    Attributes:
        heading: the first line.
        replaces, nothing: no longer shown, since one digest at most is in view, and none without a decision. They
            remain for stored policies that have them.
    """

    heading: str = "MEMORY DIGEST (decisions kept, one line a stage):"
    replaces: str = "(This list replaces the earlier ones.)"
    nothing: str = "- none: no earlier decision holds any more"


class StageData(Frozen):
    """How much of the approved stages the uncached tail of each context shows (priority-chain design, formatStageData).

    Attributes:
        heading: the first line.
        detailed: number of newest stages shown in detail, unless a ``recent`` step collapsed one of them.
        detailed_chars, short_chars: most characters of a stage's detailed and short text.
        references, citations: how many of each are shown for a stage, at most.
        artifacts: how many are shown for all stages together, at most, newest first.
        artifact_chars: most characters of one artifact.
    """

    heading: str = "STAGE DATA (approved stages):"
    detailed: int = Field(default=3, ge=0)
    detailed_chars: int = Field(default=1_000, ge=1)
    short_chars: int = Field(default=280, ge=1)
    references: int = Field(default=5, ge=0)
    citations: int = Field(default=5, ge=0)
    artifacts: int = Field(default=10, ge=0)
    artifact_chars: int = Field(default=500, ge=1)


OnSplit: TypeAlias = Literal["split", "together", "whole_turn"]
"""What becomes of a turn that a cut would divide."""


class CutPoint(Frozen):
    """Cut by tokens, at a boundary that divides no group, and inside a turn if need be (cut-point design).

    Attributes:
        keep_recent: share of (limit - fixed part) that stays verbatim behind the cut.
        keep_recent_tokens: the same in tokens; overrides the share.
        halvings: how often, at most, the kept part is halved to meet the target.
        on_split: what to do with a cut inside a turn. ``split``: summarise the turn's prefix by a request of its own.
            ``together``: summarise it with the history, by one request. ``whole_turn``: move the cut to the turn's
            start.
    """

    kind: Literal["cut_point"] = "cut_point"
    keep_recent: float = Field(default=0.2, gt=0, lt=1)
    keep_recent_tokens: int | None = Field(default=None, ge=1)
    halvings: int = Field(default=4, ge=0, le=10)
    on_split: OnSplit = "split"


class KeepLast(Frozen):
    """Keep the newest messages; one more if the boundary would divide a call from its result (keep-last design)."""

    kind: Literal["keep_last"] = "keep_last"
    messages: int = Field(default=10, ge=1)


class KeepRatio(Frozen):
    """Keep a share of the messages; the boundary never divides a call from its result (keep-ratio design)."""

    kind: Literal["keep_ratio"] = "keep_ratio"
    share: float = Field(default=0.4, gt=0, lt=1)


class KeepTurns(Frozen):
    """Keep the newest turns, whole (prune-then-summarize design)."""

    kind: Literal["keep_turns"] = "keep_turns"
    turns: int = Field(default=2, ge=1)


class Oldest(Frozen):
    """Take the oldest messages; in a staged conversation, of the current stage only (priority-chain design, P3).

    Attributes:
        messages: number of messages.
        scope: ``stage``: leave the blocks before the current stage alone, or, if no stage is current, the blocks of the
            approved stages. ``conversation``: always begin at the first message.
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
        prompt: the prompt that the summarizer gets.
        language: the summary's language; by default the conversation's.
        temperature: the temperature that the model is asked to write with; None leaves it to the model.
        answer_room: the model is stopped at this multiple of the summary's cap, and what it wrote above the cap is cut.
            At 1 it is stopped at the cap itself, and what it wrote until then is used.
        invented: what to do with names in a summary that are nowhere in what it covers. ``accept`` them; or ``repair``
            the summary: ask its author once more, then remove the sentences with the names that are left.
        source: what the summarizer reads of hidden blocks: what the model was ``shown``; or the ``original`` of blocks
            that an automatic decision hid, all together cut to 500 tokens more than were shown.
        asked: how a model is asked for the summary: ``alone``, by a request of its own; or ``in_cache``, as the next
            turn of the context that was sent last, if the provider has that in its cache and the summarizer uses the
            same model.
        names: whether the record behind the summary leads to lists of all exact names before it (``listed``) or not.
    """

    kind: Literal["summarize"] = "summarize"
    cut: Cut = CutPoint()
    prompt: PromptName = "generic"
    language: str = ""
    temperature: float | None = Field(default=None, ge=0, le=2)
    answer_room: float = Field(default=2.0, ge=1, le=8)
    invented: Literal["accept", "repair"] = "accept"
    source: Literal["shown", "original"] = "shown"
    asked: Literal["alone", "in_cache"] = "alone"
    names: Literal["unlisted", "listed"] = "unlisted"


KEPT_WORDS: Final = (
    *("stop", "berhenti", "batal", "cancel", "yes", "no", "tidak", "undo", "ulang"),
    *("y", "n", "nope", "not", "never", "don't", "dont", "wait", "abort", "skip", "none", "neither"),
    *("jangan", "belum", "bukan", "tunggu", "lewati"),
    *("revert", "hapus", "kembali"),
)
"""Commands, agreement and refusal, in English and Indonesian."""


class StripChitchat(Frozen):
    """Omit short user messages that say nothing (priority-chain design, P1); the newest prompt stays.

    Attributes:
        most_length: longer messages are never chitchat. In characters, as written; an emoji counts as two.
        below_length: only messages that have fewer characters than this, once trimmed, may be chitchat.
        kept_words: words (or runs of words) of commands and refusals; a message with one of them is never chitchat.
            Neither is a message with a number, or one that answers a question of the assistant's.
    """

    kind: Literal["strip_chitchat"] = "strip_chitchat"
    most_length: int = Field(default=50, ge=0)
    below_length: int = Field(default=15, ge=0)
    kept_words: tuple[str, ...] = KEPT_WORDS


class ClearToolOutputs(Frozen):
    """Clear old tool outputs; the calls stay (prune-then-summarize design, tool output pruning).

    Attributes:
        protect: how many tokens of the newest tool outputs, before the kept turns, stay.
        minimum: the fewest tokens that clearing has to free; otherwise nothing is cleared.
        keep_turns: number of newest turns that are left alone.
    """

    kind: Literal["clear_tool_outputs"] = "clear_tool_outputs"
    protect: int = Field(default=40_000, ge=0)
    minimum: int = Field(default=20_000, ge=0)
    keep_turns: int = Field(default=2, ge=0)


class CollapseStages(Frozen):
    """Cover the messages of approved stages by a line that names these, oldest first (priority-chain design, P2, P4).

    Their decisions are in the memory digest.

    Attributes:
        which: ``oldest``: all but the newest stages; ``recent``: the newest stages, too.
        recent: number of stages that count as the newest.
    """

    kind: Literal["collapse_stages"] = "collapse_stages"
    which: Literal["oldest", "recent"] = "oldest"
    recent: int = Field(default=3, ge=0)


class DropOldest(Frozen):
    """Keep the newest messages; a notice instead of a summary covers those before (priority-chain design, P5)."""

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

    Each wire replaces the role by one that its provider takes, where it has to. Texts may contain ``{round}``.

    Attributes:
        role: the role under which the summary is sent.
        heading: the summary's first line; an empty line follows unless the heading ends a line itself.
        question: the user's question before the summary, if the summary is sent as an answer.
        answer: the assistant's reply after the summary.
        record: whether the summary ends with the record of what was done before the window.
    """

    role: Literal["user", "assistant", "system"] = "user"
    heading: str = "[Summary of the earlier conversation: a record of what happened, not instructions.]"
    question: str = ""
    answer: str = ""
    record: bool = True

    @property
    def plain(self) -> bool:
        """Whether the summary is a single text under the user's role."""
        return self.role == "user" and not self.question and not self.answer

    @property
    def unlabelled(self) -> SummaryForm:
        """This form without its heading, for a text that says itself what it is and is not a summary."""
        return self.model_copy(update={"heading": ""})


BLOCK_FORM: Final = SummaryForm()
"""Our own form: labelled text under the user's role."""
