"""The tables and plots of docs/speed.md: ``python -m tests.project.speed`` writes them.

`python -m tests.bench --keep` writes what this reads, docs/speed/measured.json. A plot of a part has a line for each
row: what share of its bar the median takes, and the interval that holds the median. Rows of growth have a plot of
their sizes and times. The plots follow the reader's light or dark scheme.
"""

from __future__ import annotations

import json
import math
import re
from html import escape
from typing import TYPE_CHECKING, Any, Final

from tests.bench.rows import Row, exponent
from tests.project.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PAGE: Final = ROOT / "docs" / "speed.md"
FOLDER: Final = ROOT / "docs" / "speed"
MEASURED: Final = FOLDER / "measured.json"
WRITTEN: Final = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- /measured -->)", re.DOTALL)
"""What is between the marks of the page."""

_WIDTH: Final = 760
_LEFT: Final = 24
_LINE: Final = 34
_TOP: Final = 58
_SCALE: Final = (_LEFT, _WIDTH - 2 * _LEFT)
_SHARES: Final = (0.01, 2.0)
"""What the axis of a part's plot shows, as shares of the bar."""
_STYLE: Final = """
text{font:11px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#3d444d}
.name{font-size:16px;font-weight:600;fill:#1f2328}.faint{fill:#6e7781}.page{fill:#ffffff}
.track{fill:#eaeef2}.grid{stroke:#d0d7de}.bar{stroke:#b35900;stroke-width:2}.due{fill:#b35900;font-weight:600}
.kept{fill:#2f6f44;stroke:#2f6f44}.broken{fill:#b3261e;stroke:#b3261e}.free{fill:#6e7781;stroke:#6e7781}
.line{fill:none;stroke:#2f6db3;stroke-width:2}.dot{fill:#2f6db3}.fit{fill:none;stroke:#8c959f;stroke-dasharray:4 3}
@media (prefers-color-scheme:dark){
text{fill:#c9d1d9}.name{fill:#f0f6fc}.faint{fill:#8b949e}.page{fill:#0d1117}
.track{fill:#21262d}.grid{stroke:#30363d}.bar{stroke:#e09b4b}.due{fill:#e09b4b}
.kept{fill:#6cc08a;stroke:#6cc08a}.broken{fill:#ff7b72;stroke:#ff7b72}.free{fill:#8b949e;stroke:#8b949e}
.line{stroke:#6cb0f0}.dot{fill:#6cb0f0}.fit{stroke:#6e7681}}
"""


def joined(file: Path, report: Mapping[str, Any]) -> str:
    """Return what a file of measured rows holds with a new report: its rows in place of those that measure the same."""
    before = json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []
    rows = {(row["part"], row["what"], row["limit"]): row for row in [*before, *report["rows"]]}
    return json.dumps({**report, "rows": list(rows.values())}, indent=1, ensure_ascii=False) + "\n"


def read() -> tuple[dict[str, str], dict[str, list[Row]]]:
    """Return the machine that was measured on, and the rows by their part."""
    report = json.loads(MEASURED.read_text(encoding="utf-8"))
    parts: dict[str, list[Row]] = {}
    for kept in report["rows"]:
        row = Row.from_json(kept)
        parts.setdefault(row.part, []).append(row)
    return report["machine"], dict(sorted(parts.items()))


def with_measured(text: str) -> str:
    """Return the page with the tables of all parts and their plots."""
    machine, parts = read()
    made = [f"Measured on {machine['processor']}, Python {machine['python']}, SQLite {machine['sqlite']}.\n"]
    for part, rows in parts.items():
        made.append(f"### {part}\n\n![{part}, as shares of the bars](speed/{_slug(part)}.svg)\n")
        made.append("\n".join(_table(rows)) + "\n")
        made += [f"![{row.what}](speed/{_slug(row.what)}.svg)\n" for row in rows if row.points]
    return WRITTEN.sub(lambda _: "\n" + "\n".join(made) + "\n", text)


def plots() -> dict[Path, str]:
    """Return the plot of each part, and of each row of growth, by its file."""
    _, parts = read()
    drawn = {FOLDER / f"{_slug(part)}.svg": shares(part, rows) for part, rows in parts.items()}
    grown = [row for rows in parts.values() for row in rows if row.points]
    return drawn | {FOLDER / f"{_slug(row.what)}.svg": growth(row) for row in grown}


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| work | against | measured | interval | bar | |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in rows:
        interval = f"{_figure(row.measured.low)} to {_figure(row.measured.high)} ({row.measured.values})"
        side = "≥" if row.least else "≤"
        cells = (
            row.what,
            row.limit or "-",
            _said(row),
            interval,
            f"{side} {_figure(row.bar)} {row.unit}",
            _verdict(row),
        )
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _said(row: Row) -> str:
    return f"{_figure(row.measured.median)} {row.unit}"


def _verdict(row: Row) -> str:
    return "not for this machine" if not row.applies else "kept" if row.ok else "**not kept**"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def shares(part: str, rows: Sequence[Row]) -> str:
    """Draw the rows of a part, each as a share of its bar: what is left of the line keeps to it."""
    height = _TOP + _LINE * len(rows) + 34
    parts = [*_opening(part, "; ".join(f"{row.what}: {_said(row)}" for row in rows), height)]
    for share in (0.01, 0.1, 1.0):
        x, below = _across(share), height - 26
        parts.append(f'<path class="{"bar" if share == 1 else "grid"}" d="M{x:.1f} {_TOP - 8}V{below}"/>')
        parts.append(
            _text(x, below + 14, "the bar" if share == 1 else f"{share:g} of it", "due" if share == 1 else "faint")
        )
    for number, row in enumerate(rows):
        parts += _line(row, _TOP + _LINE * number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _line(row: Row, top: int) -> Iterator[str]:
    style = "free" if not row.applies else "kept" if row.ok else "broken"
    low, median, high = (
        _across(_share(row, value)) for value in (row.measured.low, row.measured.median, row.measured.high)
    )
    yield _text(_LEFT, top + 10, f"{row.what.replace('`', '')}: {_said(row)}")
    yield f'<rect class="track" x="{_LEFT}" y="{top + 17}" width="{_SCALE[1]}" height="4" rx="2"/>'
    yield f'<path class="{style}" stroke-width="3" d="M{min(low, high):.1f} {top + 19}H{max(low, high):.1f}"/>'
    yield f'<circle class="{style}" cx="{median:.1f}" cy="{top + 19}" r="4.5"/>'


def _share(row: Row, value: float) -> float:
    """Return how much of the bar a value takes, whichever side it has to be on."""
    if row.least:
        return row.bar / value if value > 0 else _SHARES[1]
    return value / row.bar


def _across(share: float) -> float:
    low, high = map(math.log, _SHARES)
    place = (math.log(min(max(share, _SHARES[0]), _SHARES[1])) - low) / (high - low)
    return _SCALE[0] + _SCALE[1] * place


def growth(row: Row) -> str:
    """Draw how work grows with its size, on logarithmic axes, beside the line that the fit gives."""
    height, left, right, top, bottom = 260, 70, _WIDTH - 40, 62, 214
    sizes, values = ([point[axis] for point in row.points] for axis in (0, 1))
    fit = exponent(sizes, values)
    middle = math.exp(sum(map(math.log, values)) / len(values))
    centre = math.exp(sum(map(math.log, sizes)) / len(sizes))
    fitted = [middle * (size / centre) ** fit for size in sizes]
    least, most = min(*values, *fitted) / 1.3, max(*values, *fitted) * 1.3

    def place(size: float, value: float) -> tuple[float, float]:
        along = math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])
        up = math.log(value / least) / math.log(most / least)
        return left + (right - left) * along, bottom - (bottom - top) * up

    points = [place(size, value) for size, value in row.points]
    parts = [*_opening(row.what, f"Grows with an exponent of {row.measured.median:.2f}.", height)]
    parts.append(f'<path class="grid" d="M{left} {bottom}H{right}M{left} {top}V{bottom}"/>')
    parts.append(f'<path class="fit" d="M{_path([place(*each) for each in zip(sizes, fitted, strict=True)])}"/>')
    parts.append(f'<path class="line" d="M{_path(points)}"/>')
    for (x, y), (size, value) in zip(points, row.points, strict=True):
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
        parts.append(_text(x, y - 10, _seconds(value), anchor="middle"))
        parts.append(_text(x, bottom + 18, f"{size:,.0f}", "faint", "middle"))
    said = f"exponent {row.measured.median:.2f}, bar {row.bar:g}"
    parts.append(_text(right, 48, said, "kept" if row.ok else "broken", "end"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value * 1_000:.3g} ms"


def _opening(title: str, description: str, height: int) -> Iterator[str]:
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">'
    yield f"<title>{escape(title)}</title>"
    yield f"<desc>{escape(description)}</desc>"
    yield f"<style>{_STYLE}</style>"
    yield f'<rect class="page" width="{_WIDTH}" height="{height}"/>'
    yield _text(_LEFT, 30, title, "name")


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    kind = f' class="{style}"' if style else ""
    side = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}"{side}>{escape(text, quote=False)}</text>'


def write() -> None:
    """Write the page and its plots; remove the plots of rows that are not measured any more."""
    drawn = plots()
    for file in FOLDER.glob("*.svg"):
        if file not in drawn:
            file.unlink()
    for file, plot in drawn.items():
        file.write_text(plot, encoding="utf-8")
    PAGE.write_text(with_measured(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
