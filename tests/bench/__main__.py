"""`python -m tests.bench`: every benchmark, as JSON rows of name, ratio, bar and ok."""

from __future__ import annotations

import json
import sys

from tests.bench import append, crowds, hiding, limits, replays, stalls, starting, timelines, together

PARTS = (append, together, crowds, hiding, timelines, limits, stalls, replays, starting)

rows = [row for part in PARTS for row in part.run()]
sys.stdout.write(json.dumps(rows, indent=2) + "\n")
sys.exit(0 if all(row["ok"] for row in rows) else 1)
