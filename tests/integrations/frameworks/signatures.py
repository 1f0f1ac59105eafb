"""Prints what the names of a framework look like that an adapter uses, as JSON; run it as a program.

    python signatures.py openai_agents/signatures.json

The names are the keys of the file. Its output takes the file's place where another version is chosen.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_PASSING: Final = re.compile(r" at 0x[0-9a-f]+|\btyping\.")
"""What differs from run to run, and from one Python to the next."""
_UNION: Final = re.compile(r"\bUnion\[([^\[\]]+)\]")
"""How Python before 3.14 prints some unions; from then on all of them are ``A | B``."""


def look(names: Iterable[str]) -> dict[str, str]:
    """Return each name's signature, or its value where it is none; what is not there is said to be missing."""
    return {name: _of(*name.split(":")) for name in names}


def _of(module: str, path: str) -> str:
    try:
        found: Any = import_module(module)
    except ImportError:
        return "missing"
    for part in path.split("."):
        found = getattr(found, part, _of)
        if found is _of:
            return "missing"
    told = _PASSING.sub("", _signature(found) if callable(found) else repr(found))
    return _UNION.sub(lambda union: union[1].replace(", ", " | "), told)


def _signature(found: Any) -> str:
    try:
        return str(inspect.signature(found))
    except ValueError:  # a class in C, or one of dictionaries that has no parameters
        return repr(found)


if __name__ == "__main__":
    print(json.dumps(look(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), indent=2))
