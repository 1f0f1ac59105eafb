"""Stage data: what the approved stages came to, for the uncached tail of a context (seed 000, formatStageData).

The newest stages are told in detail, the others in short; all in short once the messages of one of the newest gave way
to a summary (P4). That is told from the window alone, so that the same window always gives the same text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.planning.collapse_stages import approvals, is_out_of_view
from timeline.planning.shortening import cut_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events.stage_events import StageApproved
    from timeline.fold.window import Window
    from timeline.policy.stages import StageData


def stage_data(window: Window, told: StageData | None) -> str:
    """Write what a policy tells of the approved stages; nothing where it tells nothing, or none is approved."""
    approved = approvals(window.stages)
    if told is None or not approved:
        return ""
    newest = approved[max(0, len(approved) - told.detailed) :]
    detailed = 0 if any(is_out_of_view(window, each) for each in newest) else len(newest)
    sections: list[str] = []
    room = told.artifacts
    for age, each in enumerate(reversed(approved)):
        shown = each.artifacts[:room]
        room -= len(shown)
        sections.append(_section(each, told, in_detail=age < detailed, artifacts=shown))
    return "\n\n".join([told.heading, *reversed(sections)])


def _section(each: StageApproved, told: StageData, *, in_detail: bool, artifacts: Sequence[str]) -> str:
    """Write one stage; a text that was not given is told by the next shorter one."""
    short = cut_to(each.short or each.decision, told.short_chars)
    text = cut_to(each.detailed, told.detailed_chars) if in_detail and each.detailed else short
    lines = [
        " ".join(f"## {each.label or each.stage}".split()),
        text,
        *_list("References", each.references[: told.references], len(each.references)),
        *_list("Citations", each.citations[: told.citations], len(each.citations)),
        *_list("Artifacts", [cut_to(artifact, told.artifact_chars) for artifact in artifacts], len(each.artifacts)),
    ]
    return "\n".join(lines)


def _list(title: str, shown: Sequence[str], every: int) -> list[str]:
    """Write a list under its title, and how many are left out."""
    if not shown:
        return []
    left = every - len(shown)
    return [f"{title}:", *(f"- {one}" for one in shown), *([f"- and {left} more"] if left else [])]
