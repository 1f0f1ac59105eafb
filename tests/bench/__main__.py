"""`python -m tests.bench`: every benchmark, as JSON rows of name, ratio, bar and ok."""

from __future__ import annotations

import json
import sys

from tests.bench import append, crowds, hiding, limits, replays, timelines, together

rows = [*append.run(), *together.run(), *crowds.run(), *hiding.run(), *timelines.run(), *limits.run(), *replays.run()]
sys.stdout.write(json.dumps(rows, indent=2) + "\n")
sys.exit(0 if all(row["ok"] for row in rows) else 1)
