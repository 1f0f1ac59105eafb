"""Write the description of the API that a test holds: `python -m tests.inspector.golden`."""

from __future__ import annotations

import json
from pathlib import Path

from timeline.inspector.openapi import openapi

GOLDEN = Path(__file__).parent / "openapi.json"


def described() -> str:
    """Return the description as it is kept."""
    return json.dumps(openapi(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    GOLDEN.write_text(described(), encoding="utf-8")
