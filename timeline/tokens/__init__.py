"""Token counters by name: exact counters that need no network, and an estimate of four characters a token.

Importing this package costs nothing; a vocabulary is loaded when its counter is first asked for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from timeline.errors import InvalidPolicy
from timeline.tokens.counter import QuarterCounter, TiktokenCounter, ToktokCounter
from timeline.tokens.vocabulary import VOCABULARIES

if TYPE_CHECKING:
    from timeline.ports import TokenCounter

__all__ = ["COUNTER_NAMES", "get_counter"]

COUNTER_NAMES: Final = (*VOCABULARIES, "chars4")
"""The names that `get_counter` and a policy's ``counter`` take."""


@cache
def get_counter(name: str) -> TokenCounter:
    """Return the counter of a name, the same object each time in a process.

    The extra ``fast`` is used where it is installed: its ids are tiktoken's own, which a test proves, so stored counts
    mean the same with and without it.

    Args:
        name: ``o200k_base``, ``cl100k_base`` or ``chars4``.

    Raises:
        InvalidPolicy: there is no counter of this name.
    """
    if name not in COUNTER_NAMES:
        raise InvalidPolicy("counter", f"{name!r} is none of {', '.join(COUNTER_NAMES)}")
    if name == "chars4":
        return QuarterCounter()
    try:
        return ToktokCounter(name)
    except ImportError:
        return TiktokenCounter(name)
