"""In a checkout: `timeline.store` and `timeline.summarizers` are the folders beside `timeline`.

No wheel has this package: there both folders are inside `timeline`. A checkout and an editable install are on
`sys.path`, so that the folders can also be imported by their own names. Both names of a module give one object:
the classes of two objects would not be each other's instances.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

BESIDE: Final = ("store", "summarizers")
"""The folders that a wheel has inside `timeline`."""
ROOT: Final = Path(__file__).resolve().parents[2]


class CheckoutFinder:
    """Finds the packages beside `timeline`, and their modules by the folders' own names."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find ``timeline.store`` in the folder ``store``, and ``store.x`` as another name of ``timeline.store.x``.

        Every other module is left to Python: ``timeline.store.x`` is found in the folder of its package as usual, and
        ``store`` itself may be the application's.
        """
        package, _, inner = name.partition(".")
        if package == "timeline" and inner in BESIDE:
            return PathFinder.find_spec(name, [str(ROOT)], target)
        ours = sys.modules.get(f"timeline.{package}") if package in BESIDE and inner else None
        if ours is None or sys.modules.get(package) is not ours:
            return None
        found = PathFinder.find_spec(name, path, target)
        if found is not None:
            found.loader = _SameModule(name, found.origin or "")
        return found


class _SameModule(SourceFileLoader):
    """Loads ``store.x`` by putting the module ``timeline.store.x`` in its place."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(f"timeline.{module.__name__}")


def install() -> None:
    """Ask the finder before Python's own, which would load a module once for each of its names."""
    if CheckoutFinder not in sys.meta_path:
        sys.meta_path.insert(0, CheckoutFinder)
