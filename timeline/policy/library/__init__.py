"""The published defaults of agents and frameworks as policies, as far as our steps can express them.

Each is a TOML file whose first lines name the source and what is approximated; `timeline.policy.files` reads them by
name.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

RELEASE: Final = 1
"""Number of the figures of all these files: raise it whenever one of them makes another policy."""


@cache
def designs() -> dict[str, str]:
    """Return the texts of the published designs, by name."""
    found = [file for file in files(__package__).iterdir() if file.name.endswith(".toml")]
    return {file.name.removesuffix(".toml"): file.read_text(encoding="utf-8") for file in sorted(found, key=str)}


def about(name: str) -> str:
    """Return the comment of a published design's file: its source, and what is approximated."""
    lines = designs()[name].splitlines()
    comment = lines[: next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))]
    return " ".join(line.removeprefix("#").strip() for line in comment)
