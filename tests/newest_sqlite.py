"""Run a program on the newest SQLite there is for Python: a wheel that bundles it stands in for `sqlite3`."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Final

WHEEL: Final = "pysqlite3"
THERE: Final = find_spec(WHEEL) is not None
"""Whether the wheel is installed; there is one for Linux."""


def use() -> str:
    """Put the wheel in the place of `sqlite3`, before anything imports that; return the version of its SQLite.

    The wheel's module is that of an earlier Python: the names that it lacks, constants, are those of this Python's.
    """
    taken = sorted({"aiosqlite", "timeline.store.failures"} & sys.modules.keys())
    if taken:
        raise RuntimeError(f"too late: {', '.join(taken)} has the machine's SQLite already")
    ours, newest = import_module("sqlite3"), import_module(WHEEL)
    for name in vars(ours).keys() - vars(newest).keys():
        setattr(newest, name, getattr(ours, name))
    sys.modules["sqlite3"] = newest
    return str(newest.sqlite_version)
