"""What a policy says of staged work (seed 000): the memory digest's words, and how much is told of each stage."""

from __future__ import annotations

from pydantic import Field

from timeline.frozen import Frozen


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
