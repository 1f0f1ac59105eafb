"""The parts of the benchmarks: the modules of this folder that have a function ``rows``."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import tests.bench


def names() -> list[str]:
    """Return the names of the parts."""
    modules = sorted(name for _, name, _ in iter_modules(tests.bench.__path__) if name != "__main__")
    return [name for name in modules if hasattr(import_module(f"tests.bench.{name}"), "rows")]


def measure(name: str) -> list[dict[str, Any]]:
    """Measure a part, and return its rows as JSON values."""
    return [row.as_json() for row in import_module(f"tests.bench.{name}").rows()]
