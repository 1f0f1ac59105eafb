"""Token counters by name: exact counters that need no network, and an estimate of four characters a token.

Importing this package costs nothing; a vocabulary is loaded when its counter is first asked for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from timeline.errors import InvalidPolicy
from timeline.tokens.counter import QuarterCounter
from timeline.tokens.first import FirstCounter
from timeline.tokens.vocabulary import VOCABULARIES

if TYPE_CHECKING:
    from timeline.ports import TokenCounter

__all__ = ["COUNTER_NAMES", "get_counter", "may_start_engine", "start_engine"]

COUNTER_NAMES: Final = (*VOCABULARIES, "chars4")
"""The names that `get_counter` and a policy's ``counter`` take."""


@cache
def get_counter(name: str) -> TokenCounter:
    """Return the counter of a name, the same object each time in a process.

    The first few texts of a process are counted without an engine, the others by the extra ``fast`` where it is
    installed: the counts are those of tiktoken's own ids, which tests prove, so stored counts mean the same.

    Args:
        name: ``o200k_base``, ``cl100k_base`` or ``chars4``.

    Raises:
        InvalidPolicy: there is no counter of this name.
    """
    if name not in COUNTER_NAMES:
        raise InvalidPolicy("counter", f"{name!r} is not one of {', '.join(COUNTER_NAMES)}")
    return QuarterCounter() if name == "chars4" else FirstCounter(name)


def may_start_engine(counter: TokenCounter) -> bool:
    """Return whether the next text that this counter counts may start an engine, which belongs off the event loop."""
    return isinstance(counter, FirstCounter) and not counter.started


def start_engine(name: str = "o200k_base", *, characters: int | None = None) -> None:
    """Start the engine of a counter: in a server, before it takes its first request.

    An engine starts by itself with the first long text, or some short ones, and holds the interpreter's lock: other
    conversations of the process wait for 0.2 to 0.3 s, and with the extra ``fast`` for 0.4 to 0.8 s. After that,
    ``fast`` counts two to three times as fast: it is for processes that count more than five million characters.

    Args:
        name: of the counter that the policies count by, see `COUNTER_NAMES`; an estimate has nothing to start.
        characters: about how many the process will count; the engine that needs the least time for them is started,
            none for less than a hundred thousand. None for a server, which counts many.

    Raises:
        InvalidPolicy: there is no counter of this name.

    Example:
        ```python
        from timeline import policies
        from timeline.tokens import start_engine

        start_engine(policies.balanced(max_tokens=100_000).counter)
        ```
    """
    counter = get_counter(name)
    if isinstance(counter, FirstCounter):
        counter.start(characters)
