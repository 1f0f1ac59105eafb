"""An environment for one framework: what it and its tests need of the pinned packages, and nothing of the developers'.

A framework that imports what happens to be beside it behaves otherwise than where its users install it.
"""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
import venv
from importlib.metadata import distribution, requires
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from importlib.metadata import Distribution

PINS: Final = Path(__file__).parents[3] / ".ci" / "pins-test.txt"
TOOLS: Final = ("pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist")
"""What runs the tests."""
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


def environment(folder: Path, *names: str) -> Path:
    """Make an environment in a folder, in which some packages run with what they need; return its Python.

    All of them are those of the developers' environment, which has them by version and hash: their files are linked,
    not installed a second time. This library itself is not among them.
    """
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    for name in needed([*names, *TOOLS, "timeline-engine"]) - {"timeline-engine"}:
        link(distribution(name), packages)
    return python


def link(installed: Distribution, packages: Path) -> None:
    """Link the files of a package into another folder of packages; the version is the pinned one."""
    name = canonicalize_name(installed.name)
    assert pinned([name]).startswith((f"{installed.name}=={installed.version} ", f"{name}=={installed.version} ")), name
    for file in installed.files or ():
        if ".." in file.parts:  # a program or a page beside the packages
            continue
        source, place = Path(file.locate()), packages / file
        _link(source, place)
        # Where the tests have imported it already, it is compiled: a framework takes seconds to compile.
        compiled = Path(cache_from_source(file.name)) if file.suffix == ".py" else None
        if compiled is not None and (source.parent / compiled).is_file():
            _link(source.parent / compiled, place.parent / compiled)


def _link(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, place)
    except OSError:  # on another file system
        shutil.copy2(source, place)


def needed(names: Iterable[str]) -> set[str]:
    """Return packages, and all that they need on this machine, by what is installed here."""
    found: dict[str, set[str]] = {}
    left = [(canonicalize_name(name), frozenset({""})) for name in names]
    while left:
        name, extras = left.pop()
        new = {"", *extras} - found.get(name, set())
        if not new:
            continue
        found.setdefault(name, set()).update(new)
        for requirement in map(Requirement, requires(name) or ()):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in new):
                left.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return set(found)


def pinned(names: Collection[str]) -> str:
    """Return the pins of packages, each with its hashes."""
    pins: dict[str, str] = {
        canonicalize_name(pin[1]): pin[0] for pin in _PIN.finditer(PINS.read_text(encoding="utf-8"))
    }
    return "".join(pins[name] for name in sorted(names))
