"""Draw a policy as SVG: the limit with its trigger and target, the steps in order, and what the model sees afterwards.

The picture is made from the policy's `Outline` alone, so that it cannot differ from the policy. It follows the reader's
light or dark scheme.
"""

from __future__ import annotations

from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.planning.outline import Outline

_WIDTH: Final = 760
_LEFT: Final = 24
_ROOM: Final = _WIDTH - 2 * _LEFT
_BAR: Final = (98, 26)
"""Top and height of the bar that represents the limit."""
_STEPS: Final = 180
"""Top of the steps."""
_GAP: Final = 26
"""Between steps, with an arrow in it."""
_NARROW_GAP: Final = 6
_WIDEST_STEP: Final = 250
_CHARACTER: Final = 6.2
"""Width of a character of the small text, on average and a little more."""
_LINE: Final = 14
_STYLE: Final = """
text{font:11px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#3d444d}
.name{font-size:18px;font-weight:600;fill:#1f2328}.strong{font-weight:600;fill:#1f2328}.faint{fill:#6e7781}
.page{fill:#ffffff}.box{fill:#f6f8fa;stroke:#c4cad1}.cold{fill:none;stroke:#8c959f;stroke-dasharray:4 3}
.room{fill:#eaeef2}.held{fill:#a8c7e8}.edge{fill:none;stroke:#8c959f}.stripe{stroke:#8c959f;stroke-width:2}
.striped{fill:url(#kept-free)}
.line{stroke:#b35900;stroke-width:2}.target{stroke:#2f6f44;stroke-width:2;stroke-dasharray:4 3}
.due{fill:#b35900;font-weight:600}.goal{fill:#2f6f44;font-weight:600}.arrow{stroke:#8c959f;fill:none}
.said{fill:#fdf0d5;stroke:#d9a441}.kept{fill:#dbe9f8;stroke:#7fa9d4}
@media (prefers-color-scheme:dark){
text{fill:#c9d1d9}.name,.strong{fill:#f0f6fc}.faint{fill:#8b949e}
.page{fill:#0d1117}.box{fill:#161b22;stroke:#3d444d}.cold,.edge,.arrow,.stripe{stroke:#6e7681}
.room{fill:#21262d}.held{fill:#2b4f77}
.line{stroke:#e09b4b}.target{stroke:#6cc08a}.due{fill:#e09b4b}.goal{fill:#6cc08a}
.said{fill:#3a2f17;stroke:#8a6d2f}.kept{fill:#172a40;stroke:#3d6ea5}}
"""

_STRIPES: Final = (
    '<pattern id="kept-free" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="stripe" d="M0 0v6"/></pattern>'
)


class Box(NamedTuple):
    """A box of the picture: its colours, a line in bold, texts below it, and its width."""

    style: str
    title: str
    texts: tuple[str, ...]
    width: float

    def lines(self) -> list[tuple[str, str]]:
        """Return the lines of text in the box, each with its style."""
        room = int((self.width - 18) / _CHARACTER)
        lines = [(line, "strong") for line in wrap(self.title, room)]
        for text in self.texts:
            lines += [(line, "") for line in wrap(text, room, max_lines=4, placeholder=" …")]
        return lines


def picture(brief: Outline, *, seed: str = "") -> str:
    """Draw a policy as an SVG document.

    Args:
        brief: the policy's outline.
        seed: number of the published design that the policy was taken from.
    """
    steps, seen = _steps(brief), _seen(brief)
    below = _STEPS + _height(steps) + 42
    height = below + _height(seen) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(brief.name)}</title>",
        f"<desc>{escape(_described(brief))}</desc>",
        f"<style>{_STYLE}</style>",
        f"<defs>{_STRIPES}</defs>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        _text(_LEFT, 34, brief.name, "name"),
        _text(_WIDTH - _LEFT, 34, f"seed {seed}" if seed else "", "faint", "end"),
        _text(_LEFT, 54, f"compacts {brief.when}; counts with {brief.counts}"),
        *_bar(brief),
        _text(_LEFT, _STEPS - 10, _ending(brief), "faint"),
        *_row(steps, _STEPS, _GAP),
        _text(_LEFT, below - 10, "what the model sees then" if brief.shows else "what the model sees", "faint"),
        *_row(seen, below, _NARROW_GAP),
        _text(_LEFT, height - 16, _failure(brief), "faint"),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _described(brief: Outline) -> str:
    steps = "; ".join(f"{step.title}: {step.does}" for step in brief.steps) or "no steps"
    return f"Limit {brief.limit:,} tokens, compacts {brief.when}. {steps}. Keeps {brief.keeps}."


def _failure(brief: Outline) -> str:
    if not brief.steps:
        return "Above the limit the context is refused, with a typed error that lists the largest blocks."
    return f"When no summary can be written: {brief.on_failure}."


def _bar(brief: Outline) -> Iterator[str]:
    """Draw the limit as a bar: the usable part, the trigger, the target, and the reserves."""
    top, height = _BAR
    free = _at(brief, brief.limit - brief.reserved)
    due = free if brief.trigger is None else _at(brief, brief.trigger)
    yield _rect("room", _LEFT, top, free - _LEFT, height)
    yield _rect("held", _LEFT, top, due - _LEFT, height)
    if brief.reserved:
        yield _rect("striped", free, top, _LEFT + _ROOM - free, height)
        names = " and ".join(f"{name} {tokens:,}" for name, tokens in brief.reserves)
        yield _text(_LEFT + _ROOM, top + height + 32, f"kept free: {names}", "faint", "end")
    yield _rect("edge", _LEFT, top, _ROOM, height)
    yield _text(_LEFT + 8, top + 17, "system prompt, tools, messages")
    yield _text(_LEFT + _ROOM, top + height + 18, f"limit {brief.limit:,}", "strong", "end")
    if brief.trigger is None or brief.target is None:
        return
    yield f'<path class="line" d="M{due:.1f} {top - 12}v{height + 18}"/>'
    yield _text(due, top - 18, f"compacts above {brief.trigger:,}", "due", _anchor(due))
    if brief.target < brief.trigger:
        goal = _at(brief, brief.target)
        yield f'<path class="target" d="M{goal:.1f} {top - 4}v{height + 10}"/>'
        yield _text(goal, top + height + 18, f"down to {brief.target:,}", "goal", _anchor(goal))


def _at(brief: Outline, tokens: int) -> float:
    return _LEFT + _ROOM * min(max(0, tokens), brief.limit) / brief.limit


def _anchor(x: float) -> str:
    return "end" if x > _WIDTH / 2 else "start"


def _steps(brief: Outline) -> list[Box]:
    """Return a box for each step of a render, in order; hiding, which needs a cold cache, is dashed."""
    made = [("box", f"{number} · {step.title}", step.does) for number, step in enumerate(brief.steps, start=1)]
    if brief.hides != "nothing":
        made.insert(0, ("cold", "When the cache is cold", f"{brief.hides} is hidden behind short lines"))
    width = min(_WIDEST_STEP, (_ROOM - _GAP * (len(made) - 1)) / max(1, len(made)))
    return [Box(style, title, (text,), width) for style, title, text in made]


def _ending(brief: Outline) -> str:
    if not brief.steps:
        return "no steps"
    if brief.trigger == brief.target:
        return "steps, in order, until the context is not above the line any more"
    return "steps, in order, until the target is reached"


def _seen(brief: Outline) -> list[Box]:
    """Return a box for each part that the model sees after a compaction."""
    boxes = [Box("box", "system", ("as it is",), 80)]
    for message in brief.shows:
        if message.is_summary:
            texts = (message.text, f"summary, up to {brief.summary_tokens:,} tokens")
            boxes.append(Box("said", message.role, texts, 230))
        else:
            boxes.append(Box("box", message.role, (message.text,), 30 + min(180, len(message.text) * 7)))
    if brief.stages:
        boxes.append(Box("box", "approved stages", (brief.stages,), 130))
    left = _ROOM - sum(box.width + _NARROW_GAP for box in boxes)
    return [*boxes, Box("kept", "word for word", (brief.keeps,), left)]


def _height(boxes: Sequence[Box]) -> int:
    return 14 + _LINE * max((len(box.lines()) for box in boxes), default=0)


def _row(boxes: Sequence[Box], top: int, gap: int) -> Iterator[str]:
    """Draw boxes side by side, with arrows if the gap is wide enough."""
    height = _height(boxes)
    x = float(_LEFT)
    for number, box in enumerate(boxes):
        if number and gap == _GAP:
            yield f'<path class="arrow" d="M{x - gap + 5:.1f} {top + height / 2:.1f}h{gap - 10}m-5 -4l5 4l-5 4"/>'
        yield _rect(box.style, x, top, box.width, height, corner=5)
        for row, (line, style) in enumerate(box.lines()):
            yield _text(x + 9, top + 18 + row * _LINE, line, style)
        x += box.width + gap


def _rect(style: str, x: float, y: float, width: float, height: float, *, corner: int = 0) -> str:
    round_ = f' rx="{corner}"' if corner else ""
    return f'<rect class="{style}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}"{round_}/>'


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    if not text:
        return ""
    kind = f' class="{style}"' if style else ""
    side = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text{kind} x="{x:.1f}" y="{y}"{side}>{escape(text, quote=False)}</text>'
