"""``python -m tests.bench [PART …]``: the benchmarks, as JSON: the machine, and a row for each thing measured.

Every module of this folder that has a function ``rows`` is a part of the table; name some to measure these alone. Each
part has a process of its own: what others left in memory made Python's collector stop a compaction for 44 ms that takes
12 alone, so that a row depended on the parts before it.
``--keep`` writes the rows to docs/speed/measured.json, in place of the same ones; `python -m tests.project.speed` makes
the page of them. The exit status is 1 if a row does not keep to its bar.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench import parts
from tests.project.speed import MEASURED, joined

if TYPE_CHECKING:
    from collections.abc import Sequence


def machine() -> dict[str, Any]:
    """Return what the figures depend on besides the code."""
    return {
        "processor": _processor(),
        "system": platform.system(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} of {names[0]}" if names else platform.machine()


def main(arguments: Sequence[str]) -> int:
    """Measure the parts that are named, or all."""
    known = parts.names()
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("part", nargs="*", choices=[*known, []], default=[])
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args(arguments)
    report: dict[str, Any] = {"machine": machine(), "rows": []}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as each_by_itself:
        for rows in each_by_itself.map(parts.measure, asked.part or known):
            report["rows"] += rows
            if asked.keep:  # after each part: a run takes long
                MEASURED.parent.mkdir(exist_ok=True)
                MEASURED.write_text(joined(MEASURED, {**report, "rows": rows}), encoding="utf-8")
    sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    return 0 if all(row["ok"] for row in report["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
