"""Summarise in fixed sections: the task verbatim, a table of files, decisions, state, pending work, errors.

The shape is that of the keep-last design.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from timeline.blocks import ToolCall
from timeline.facts.tool_use import tool_uses

from .layouts import SECTIONS, incorporates
from .original_task import original_task
from .outline import fitted
from .ranking import FACT, Point, Section
from .record import files_written
from .shapes import Shape, accomplished, fixed, reader, state
from .text import MOST_CHARACTERS, clip, head_and_tail, one_line, verbatim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.ports import SummaryRequest

    from .record import Gathered

CREATED: Final = "Created"
MODIFIED: Final = "Modified"
DONE: Final = "Done"
"""The action in the row of finished work on no particular file."""
_NO_COMPONENT: Final = "General"
_WORKED: Final = " (worked later)"
_ARROW: Final = " → "
_UNRESOLVED: Final = "not resolved yet"
_HEAD: Final = {"File/Component", "-"}
_NOT_POINTS: Final = re.compile(r"^(?:Session Summary\b|This summary incorporates context from \d+|None recorded$)")
_CREATES: Final = re.compile(r"write|create|save", re.IGNORECASE)
_OF_FILES: Final = frozenset({"read", "write", "delete"})
"""The kinds of use whose subjects are files."""
_TOLD_LENGTH: Final = 160
_FILE_LENGTH: Final = 200
_TASK_SHARE: Final = 0.28
_read: Final = reader(SECTIONS)


def _read_sections(summary: str) -> list[Point]:
    """Read a summary back, with the table's rows separate: the next summary's table begins with them."""
    lines = head_and_tail(summary, MOST_CHARACTERS).splitlines()
    rows = [cells for line in lines if (cells := _cells(line))]
    table = [
        _row(*cells, n - len(rows), earlier=True)
        for n, cells in enumerate(rows)
        if cells[0] not in _HEAD and cells[0].strip("- ")
    ]
    prose = "\n".join(line for line in lines if not _cells(line))
    points = [p for p in _read(prose) if not _NOT_POINTS.match(p.text) and p.section is not Section.TASK]
    return [replace(p, section=Section.DONE) if _is_done(p) else p for p in table] + points


def _points(request: SummaryRequest, found: Gathered, earlier: Sequence[Point]) -> list[Point]:
    """Make the points of all sections; the earlier table continues, and earlier decisions stay."""
    rows = _table(request.blocks, found, [p for p in earlier if _is_row(p)])
    rest = [p for p in [*earlier, *found.points] if p.section not in {Section.TASK, Section.FILES} and not _is_row(p)]
    done = [_done_row(p, rows) for p in accomplished(rest)]
    others = [p for p in rest if p.section is not Section.DONE]
    return [
        *_task(request, found),
        *state(request, found, [p for p in earlier if not _is_row(p)]),
        *rows,
        *(row for row in done if row is not None),
        *(replace(p, text=_with_resolution(p.text)) if p.section is Section.ERRORS else p for p in others),
    ]


def _task(request: SummaryRequest, found: Gathered) -> list[Point]:
    oldest = found.prompts[0][1] if found.prompts and not request.previous else ""
    first = request.original_task or oldest or original_task(request) or ""
    room = int(_TASK_SHARE * request.max_tokens)
    text = verbatim(first)
    task = text if request.counter.count(text) <= room else fitted(one_line(first), room, request.counter)
    return [Point(Section.TASK, task, 0, 3.0, pinned=True)] if task else []


def _table(blocks: Sequence[Block], found: Gathered, earlier: Sequence[Point]) -> list[Point]:
    """List each file once, with everything done to it since the beginning, and the newest description of it."""
    rows = {cells[0]: p for p in earlier if (cells := _cells(p.text))}
    newest_first = sorted(accomplished(found.points), key=lambda p: p.order, reverse=True)
    descriptions: dict[str, str] = {}  # by file, since a file is written again and again
    seen: set[str] = set()
    for order, block in enumerate(blocks):
        if not isinstance(block, ToolCall):
            continue
        written = () if block.call_id in found.failed else files_written(block)
        for file in (_cell(name, _FILE_LENGTH) for name in written):
            known = _cells(rows[file].text) if file in rows else None
            _, action, before = known or ("", "", "")
            fresh = bool(_CREATES.search(block.name)) and file not in seen
            if file not in descriptions:
                descriptions[file] = _said_of(file, newest_first)
            description = descriptions[file] or before or f"by {one_line(block.name)}"
            rows[file] = _row(file, action or (CREATED if fresh else MODIFIED), description, order)
        seen.update(
            _cell(name, _FILE_LENGTH) for use in tool_uses(block) if use.kind in _OF_FILES for name in use.subjects
        )
    return list(rows.values())


def _said_of(file: str, done: Sequence[Point]) -> str:
    """Return the first sentence about finished work that names a file."""
    name = file.rstrip("/").rpartition("/")[2]
    return next((point.text for point in done if name in point.text), "")


def _done_row(point: Point, rows: Sequence[Point]) -> Point | None:
    """Make a row of finished work; None where a file's row already says it."""
    cell = _cell(point.text)
    if any(cell in row.text for row in rows):
        return None
    facts = (fact.group().strip("`.,:;()") for fact in FACT.finditer(point.text))
    component = next((fact for fact in facts if any(map(str.isalpha, fact))), _NO_COMPONENT)
    row = _row(component, DONE, point.text, point.order, earlier=point.earlier)
    return replace(row, section=Section.DONE, weight=point.weight)


def _row(file: str, action: str, description: str, order: float, *, earlier: bool = False) -> Point:
    text = f"| {_cell(file, _FILE_LENGTH)} | {_cell(action)} | {_cell(description)} |"
    return Point(Section.FILES, text, order, 3.0, earlier=earlier)


def _cell(text: str, length: int = _TOLD_LENGTH) -> str:
    return clip(one_line(text).replace("|", "¦"), length)


def _cells(line: str) -> tuple[str, str, str] | None:
    """Read a row of the table: file, action, description; None for any other line."""
    row = line.strip()
    cells = row[1:-1].split("|") if row.startswith("|") and row.endswith("|") else []
    return (cells[0].strip(), cells[1].strip(), cells[2].strip()) if len(cells) == 3 else None


def _is_row(point: Point) -> bool:
    return _cells(point.text) is not None


def _is_done(point: Point) -> bool:
    cells = _cells(point.text)
    return cells is not None and cells[1] == DONE


def _with_resolution(error: str) -> str:
    if _ARROW in error:
        return error
    worked = error.endswith(_WORKED)
    return f"{error.removesuffix(_WORKED)}{_ARROW}{'the same call worked later' if worked else _UNRESOLVED}"


def _ending(request: SummaryRequest) -> str:
    return incorporates(request.compaction_number) if request.compaction_number > 1 else ""


SHAPE: Final = Shape(fixed(SECTIONS), _read_sections, _points, _ending)
