"""The pictures and the table of docs/policies.md, made from the presets: ``python -m tests.project.pictures``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tests.project.sources import ROOT
from timeline.cli.picture import picture
from timeline.cli.policies import said_in_words
from timeline.planning.outline import outline
from timeline.policy.presets import PRESETS, PUBLISHED

if TYPE_CHECKING:
    from pathlib import Path

PAGE: Final = ROOT / "docs" / "policies.md"
PICTURES: Final = ROOT / "docs" / "policies"
TABLE: Final = re.compile(r"(?<=<!-- presets -->\n).*?(?=<!-- /presets -->)", re.DOTALL)
"""What stands between the marks of the page is written by this module."""


def pictures() -> dict[Path, str]:
    """Return the picture of each preset by its file."""
    return {
        PICTURES / f"{name}.svg": picture(outline(preset()), seed=PUBLISHED.get(name, ""))
        for name, preset in PRESETS.items()
    }


def table() -> str:
    """Return the table of all presets."""
    lines = [
        "| preset | seed | limit | compacts above | steps | what stands for a summary | when none can be written |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, preset in PRESETS.items():
        brief = outline(preset())
        due = "never" if brief.trigger is None else f"{brief.trigger:,}: {brief.when}"
        steps = "<br>".join(f"{n}. {step.title}: {step.does}" for n, step in enumerate(brief.steps, start=1))
        shows = "<br>".join(said_in_words(said) for said in brief.shows)
        failure = brief.on_failure if brief.steps else ""
        cells = (f"`{name}`", PUBLISHED.get(name, ""), f"{brief.limit:,}", due, steps, shows, failure)
        lines.append(f"| {' | '.join(cell or '-' for cell in cells)} |")
    return "\n".join(lines) + "\n"


def write() -> None:
    """Write the pictures, and the table into the page."""
    PICTURES.mkdir(exist_ok=True)
    for file, drawn in pictures().items():
        file.write_text(drawn, encoding="utf-8")
    made = table()
    PAGE.write_text(TABLE.sub(lambda _: made, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
