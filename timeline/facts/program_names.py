"""Find the names of a program in what a user or a model wrote: functions, classes, options, variables.

They are recognised by their shape: a hump or an underscore inside (``getUserName``, ``max_tokens``). Results are full
of them; in prompts and in the arguments of calls they are what the work is about.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST: Final = 80
_PATH: Final = re.compile(r"(?<![\w.@~+%-])[\w.@~+%-]*+/[\w./@~+%-]*+")
"""Matches folders and files, which are facts of their own. A run of letters without a slash is looked through once."""
_NAME: Final = re.compile(r"(?<![\w$])[A-Za-z_$][A-Za-z0-9_$]{3,}(?![\w$])")
_JOINED: Final = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]")
FILE_SUFFIX: Final = re.compile(
    r"\.(?:c|cc|cfg|cpp|cs|css|csv|go|h|hpp|html|ini|java|js|json|jsonl|jsx|kt|lock|log|md|php|py|pyi|rb|rs|sh|sql|svg"
    r"|swift|toml|ts|tsx|txt|xml|yaml|yml)\b"
)
"""Matches the end of a file name that is written without its folder."""


def program_names(text: str) -> Iterator[str]:
    """Yield the names of a program in a text, in order, each as often as it comes. The time is linear in the text.

    Take URLs out of the text before.
    """
    if "/" in text:
        text = _PATH.sub(" ", text)
    for found in _NAME.finditer(text):
        name = found[0]
        if len(name) <= _LONGEST and _JOINED.search(name) is not None and FILE_SUFFIX.match(text, found.end()) is None:
            yield name
