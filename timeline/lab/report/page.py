"""Write the report page: one file with its styles, programs and figures, which makes no outside request.

Text from recordings (names of files and policies, errors) is in the figures alone, which are JSON without any character
that HTML could take for a tag; the programs put it on the page as text. The page's content security policy lets a
browser run these programs and nothing else.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any, Final

from timeline.display.controls import show_controls
from timeline.lab.report.data import page_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.lab.work import Outcome, Work

_PROGRAMS: Final = (
    "vendor/uPlot.iife.min.js",
    "base.js",
    "bars.js",
    "overview.js",
    "scatter.js",
    "recordings.js",
    "differences.js",
    "main.js",
)
_STYLES: Final = ("vendor/uPlot.min.css", "page.css")
_ESCAPED: Final = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


def page(works: Sequence[Work], outcomes: Sequence[Outcome]) -> str:
    """Return the HTML page of a comparison.

    Args:
        works: the planned units, at least one.
        outcomes: the outcome of each.
    """
    programs = [_asset(name) for name in _PROGRAMS]
    allowed = " ".join(f"'sha256-{_hash(program)}'" for program in programs)
    return Template(_asset("page.html")).substitute(
        allowed=allowed,
        styles="\n".join(_asset(name) for name in _STYLES),
        licence=_asset("vendor/LICENSE").strip(),
        figures=_json(page_data(works, outcomes)),
        programs="\n".join(f"<script>{program}</script>" for program in programs),
    )


def _json(value: Any) -> str:
    """Return JSON that is safe inside HTML: no tag, no entity, nothing beyond ASCII, and no control that acts."""
    return json.dumps(_visible(value), separators=(",", ":")).translate(_ESCAPED)


def _visible(value: Any) -> Any:
    """Make the control characters visible in every text of a JSON value."""
    if isinstance(value, str):
        return show_controls(value)
    if isinstance(value, dict):
        return {show_controls(key): _visible(inner) for key, inner in value.items()}
    return [_visible(inner) for inner in value] if isinstance(value, list | tuple) else value


def _hash(program: str) -> str:
    return b64encode(sha256(program.encode()).digest()).decode()


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
