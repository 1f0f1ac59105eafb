"""The layout of each shape of summary: its headings, the points under them, and their shares of the cap.

From the second compaction on a structured summary ends with a line that counts the compactions it incorporates
(keep-last design).
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
class LayoutPart:
    """One heading, and the points under it.

    Attributes:
        heading: the line, or lines, above the points; empty for none.
        sections: the kinds of its points.
        share: part of the cap that it may claim before the other parts have had theirs.
        mark: the beginning of each point's line.
        empty: the text under the heading when there are no points; if it is empty, the heading is left out.
    """

    heading: str
    sections: tuple[Section, ...]
    share: float
    mark: str = "- "
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a summary, in the order of the text."""

    parts: tuple[LayoutPart, ...]

    def by_priority(self) -> list[LayoutPart]:
        """Return the parts in the order in which they claim room."""
        return sorted(self.parts, key=lambda part: min(map(_PRIORITY.index, part.sections)))

    def titles(self) -> dict[str, Section]:
        """Return the section that each heading gives to its points when a summary is read back.

        It is the first of the heading's sections.
        """
        return {part.heading.splitlines()[0].lstrip("# "): part.sections[0] for part in self.parts if part.heading}


_PRIORITY: Final = (
    *(Section.TASK, Section.STATE, Section.ERRORS, Section.DECISIONS, Section.DONE, Section.PREFERENCES),
    *(Section.NEXT, Section.QUESTIONS, Section.FILES),
)


def plain(shares: Mapping[Section, float]) -> Layout:
    """Return the generic layout: one heading a section, left out where it has no points."""
    return Layout(tuple(LayoutPart(f"## {section}", (section,), share) for section, share in shares.items()))


UNKNOWN_TASK: Final = "Unknown task"
SECTIONS: Final = Layout(
    (
        LayoutPart("### Original Task", (Section.TASK,), 0.3, mark="", empty=UNKNOWN_TASK),
        LayoutPart(
            "### Completed Work\n| File/Component | Action | Description |\n|----------------|--------|-------------|",
            (Section.FILES, Section.DONE),
            0.3,
            mark="",
            empty="| - | - | Nothing recorded |",
        ),
        LayoutPart("### Key Technical Decisions", (Section.DECISIONS,), 0.2, empty="- None recorded"),
        LayoutPart("### Current State", (Section.STATE,), 0.2),
        LayoutPart(
            "### Pending Work",
            (Section.NEXT, Section.QUESTIONS),
            0.12,
            mark="- [ ] ",
            empty="- None recorded",
        ),
        LayoutPart("### Errors & Resolutions", (Section.ERRORS,), 0.16),
    )
)
"""The keep-last design's template of a structured summary; errors only if there were any."""
CONTINUATION: Final = Layout(
    (
        LayoutPart("## What Was Accomplished", (Section.DONE, Section.FILES), 0.3, empty="- Nothing recorded"),
        LayoutPart("## Current State", (Section.STATE,), 0.25, empty="- Nothing recorded"),
        LayoutPart("## User Preferences (Critical)", (Section.PREFERENCES,), 0.2, empty="- None stated"),
        LayoutPart("## What Comes Next", (Section.NEXT, Section.QUESTIONS), 0.15, empty="- Nothing recorded"),
        LayoutPart(
            "## Technical Context",
            (Section.DECISIONS, Section.ERRORS),
            0.3,
            empty="- Nothing recorded",
        ),
    )
)
"""The five headings of the prune-then-summarize design."""
BULLETS: Final = Layout((LayoutPart("", tuple(Section), 1.0),))
"""The three to five bullet points of the priority-chain design."""
