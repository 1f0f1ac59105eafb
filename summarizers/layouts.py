"""Layouts: the headings of each shape of summary, what is below them, and how much of the cap each may claim.

From the second compaction on a structured summary ends with a line that says how many it incorporates (seed 001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .ranking import Section

if TYPE_CHECKING:
    from collections.abc import Mapping


def incorporates(number: int) -> str:
    """Return the line that ends the summary of a compaction, from the second one on."""
    return f"This summary incorporates context from {number - 1} previous compaction rounds."


@dataclass(frozen=True, slots=True)
class Part:
    """One heading, and the points under it.

    Attributes:
        heading: the line, or lines, above the points; empty for none.
        sections: what kinds of points stand under it.
        share: part of the cap that it may claim before the other parts had theirs.
        mark: what each point begins with.
        empty: what stands there without any point; empty where the heading is left out then.
    """

    heading: str
    sections: tuple[Section, ...]
    share: float
    mark: str = "- "
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a summary, in the order in which they are written."""

    parts: tuple[Part, ...]

    def by_priority(self) -> list[Part]:
        """Return the parts in the order in which they claim their room."""
        return sorted(self.parts, key=lambda part: min(map(_PRIORITY.index, part.sections)))

    def titles(self) -> dict[str, Section]:
        """Return the section that each heading stands for when a summary is read back: the first one under it."""
        return {part.heading.splitlines()[0].lstrip("# "): part.sections[0] for part in self.parts if part.heading}


_PRIORITY: Final = (
    *(Section.TASK, Section.STATE, Section.ERRORS, Section.DECISIONS, Section.DONE, Section.PREFERENCES),
    *(Section.NEXT, Section.QUESTIONS, Section.FILES),
)


def plain(shares: Mapping[Section, float]) -> Layout:
    """Return the generic layout: a heading a section, left out where there is nothing under it."""
    return Layout(tuple(Part(f"## {section}", (section,), share) for section, share in shares.items()))


UNKNOWN_TASK: Final = "Unknown task"
SECTIONS: Final = Layout(
    (
        Part("### Original Task", (Section.TASK,), 0.3, mark="", empty=UNKNOWN_TASK),
        Part(
            "### Completed Work\n| File/Component | Action | Description |\n|----------------|--------|-------------|",
            (Section.FILES, Section.DONE),
            0.3,
            mark="",
            empty="| - | - | Nothing recorded |",
        ),
        Part("### Key Technical Decisions", (Section.DECISIONS,), 0.2, empty="- None recorded"),
        Part("### Current State", (Section.STATE,), 0.2),
        Part(
            "### Pending Work",
            (Section.NEXT, Section.QUESTIONS),
            0.12,
            mark="- [ ] ",
            empty="- None recorded",
        ),
        Part("### Errors & Resolutions", (Section.ERRORS,), 0.16),
    )
)
"""Seed 001's summary structure template; errors only if there were any."""
CONTINUATION: Final = Layout(
    (
        Part("## What Was Accomplished", (Section.DONE, Section.FILES), 0.3, empty="- Nothing recorded"),
        Part("## Current State", (Section.STATE,), 0.25, empty="- Nothing recorded"),
        Part("## User Preferences (Critical)", (Section.PREFERENCES,), 0.2, empty="- None stated"),
        Part("## What Comes Next", (Section.NEXT, Section.QUESTIONS), 0.15, empty="- Nothing recorded"),
        Part(
            "## Technical Context",
            (Section.DECISIONS, Section.ERRORS),
            0.3,
            empty="- Nothing recorded",
        ),
    )
)
"""Seed 004's five headings."""
BULLETS: Final = Layout((Part("", tuple(Section), 1.0),))
"""Seed 000's three to five bullet points."""
