"""Check the arguments of public methods, and refuse wrong ones with `InvalidArgument`, which names the cure.

Only common mistakes are checked: values that would silently pass for something else (a text for a list of texts), or
fail deep inside with a message that helps nobody. The other types are left to type checkers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import AsyncIterable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import Block, utc
from timeline.errors import InvalidArgument
from timeline.policy.model import Policy
from timeline.ports import Hooks
from timeline.ports.clocks import time_of

if TYPE_CHECKING:
    from timeline.ports import Clock


_SHORT: Final = 60
"""Longest text that an error message repeats, in characters."""
A_POLICY: Final = "must be a policy, such as policies.cut_point()"
"""What `of_kind` says of an argument that is to be a policy."""


def choice(argument: str, value: Any, choices: Collection[object]) -> None:
    """Check that a value is one of the choices."""
    if not isinstance(value, str | bool) or value not in choices:
        *most, last = map(repr, choices)
        given = _named(value) if isinstance(value, str) else repr(value)
        raise InvalidArgument(argument, f"must be {', '.join(most)} or {last}, not {given}")


def version_number(argument: str, value: Any) -> None:
    """Check that a value is a version, a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidArgument(argument, f"must be a version, a whole number such as 120, not {value!r}")


def whole(argument: str, value: Any) -> None:
    """Check that a value is a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidArgument(argument, f"must be a whole number, not {value!r}")


def positive(argument: str, value: Any) -> None:
    """Check that a value is a whole number from 1 on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgument(argument, f"must be a whole number from 1 on, not {value!r}")


def seconds(argument: str, value: Any) -> None:
    """Check that a value is a time in seconds, above 0 and finite."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise InvalidArgument(argument, f"must be a number of seconds above 0, such as 60, not {value!r}")


def duration(argument: str, value: Any) -> None:
    """Check that a value is a duration in seconds, finite and not negative."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise InvalidArgument(argument, f"must be a number of seconds from 0 on, such as 1.2, not {value!r}")


def text(argument: str, value: Any) -> None:
    """Check that a value is a text."""
    if not isinstance(value, str):
        raise InvalidArgument(argument, f"must be a text, not {_named(value)}")


def written(argument: str, value: Any) -> None:
    """Check that a value is a text that UTF-8 can write: no stored text holds a lone surrogate.

    Python makes one of each byte of a command line that is not in the encoding of the locale.
    """
    text(argument, value)
    try:
        value.encode()
    except UnicodeEncodeError:
        cure = "on a command line, set LC_ALL to a locale of UTF-8"
        raise InvalidArgument(argument, f"holds a lone surrogate, which UTF-8 cannot write; {cure}") from None


def new_id(argument: str, value: Any) -> None:
    """Check that a value can be the id of a new conversation, as far as no store needs to be asked."""
    text(argument, value)
    if not value:
        raise InvalidArgument(argument, "needs an id; leave it out to get one")


def text_of(argument: str, value: Any, most: int, *, least: int = 0) -> None:
    """Check that a text has at most ``most`` characters, and at least ``least`` without the white space around it."""
    text(argument, value)
    if len(value) > most:
        raise InvalidArgument(argument, f"has {len(value):,} characters of at most {most:,}; say it shorter")
    if len(value.strip()) < least:
        raise InvalidArgument(argument, "is blank; give a text")


def texts(argument: str, values: Any) -> None:
    """Check that a value is a list of texts; a single text is refused, although Python can iterate over it."""
    listed(argument, values)
    for value in values:
        if not isinstance(value, str):
            raise InvalidArgument(argument, f"must be a list of texts, and {_named(value)} is in it")


def listed(argument: str, values: Any) -> None:
    """Check that a value is a list or another collection of values."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidArgument(argument, f"must be a list, not {_named(values)}; put a single one into brackets")


def sequence(argument: str, values: Any) -> None:
    """Check that a value is a list, or what can be read twice as one: a generator is empty behind its first reading."""
    listed(argument, values)
    if not isinstance(values, Sequence):
        raise InvalidArgument(argument, f"must be a list, not {_named(values)}; make one with list(…)")


def of_kind(argument: str, value: Any, kind: type, cure: str) -> None:
    """Check that a value is of a class; ``cure`` says how to get one."""
    if not isinstance(value, kind):
        raise InvalidArgument(argument, f"{cure}, not {_named(value)}")


def awaitable(answer: Any) -> Any:
    """Return the answer of an application's function, which is to be awaited.

    Raises:
        TypeError: the function is no coroutine function.
    """
    if not isawaitable(answer):
        raise TypeError("it is not an async function, so its answer cannot be awaited; define it with `async def`")
    return answer


def able(argument: str, value: Any, method: str, cure: str) -> None:
    """Check that a value has the method that a port demands; ``cure`` says how to get such a value."""
    if isinstance(value, type) and callable(getattr(value, method, None)):
        raise InvalidArgument(argument, f"must be an object of {value.__name__}, not the class: call it")
    if not callable(getattr(value, method, None)):
        raise InvalidArgument(argument, f"{cure}, not {_named(value)}")


def function(argument: str, value: Any, cure: str) -> None:
    """Check that a value can be called; ``cure`` says what it is called with. A coroutine is a common mistake."""
    if not callable(value):
        raise InvalidArgument(argument, f"{cure}, not {_named(value)}")


def events(stream: Any) -> None:
    """Check that a value is a stream that ``async for`` reads: an SDK's other client gives plain ones."""
    if isawaitable(stream):
        raise InvalidArgument(
            "stream", "must be a stream, not the call that returns one: write `await` before the call"
        )
    if not isinstance(stream, AsyncIterable):
        cure = "take the SDK's asynchronous client, or timeline.sync for a plain stream"
        raise InvalidArgument("stream", f"must be a stream for `async for`, not {_named(stream)}; {cure}")


def block_name(argument: str, value: Any) -> None:
    """Check that a value is a path or an address: a bare version is a common mistake for one."""
    if not isinstance(value, str):
        number = isinstance(value, int) and not isinstance(value, bool)
        given = value if number else _named(value)
        raise InvalidArgument(
            argument, f"must be a path, or an address such as '@{value if number else 152}', not {given}"
        )


def block(value: Any) -> None:
    """Check that a value is a block, or may be one's JSON form: messages and lists are common mistakes for one."""
    if isinstance(value, Block) or (isinstance(value, dict) and ("type" in value or "role" not in value)):
        return
    if isinstance(value, dict):
        raise InvalidArgument("blocks", "must be blocks, not messages; append_messages([…]) takes these")
    if isinstance(value, list | tuple):
        raise InvalidArgument("blocks", "must come one by one, not as a list: append(*blocks)")
    raise InvalidArgument("blocks", f"must be blocks, such as UserPrompt(text='…'), not {_named(value)}")


def awaited_store(store: Any) -> None:
    """Check that a store is open, and can be awaited: the first append to one of `timeline.sync` would be written."""
    able("store", store, "load_window", "must be an open store: async with open_store('agent.db') as store")
    sync = sys.modules.get("timeline.sync")  # where it is not loaded, no store of it can be passed
    if sync is not None and isinstance(store, sync.Store):
        raise InvalidArgument("store", "is one of timeline.sync, which cannot be awaited; take timeline.open_store")


def parts(policy: Any, summarizer: Any = None, hooks: Any = None, counter: Any = None) -> None:
    """Check the parts that a timeline is made of: applications often pass a name in place of the object."""
    if policy is not None:
        of_kind("policy", policy, Policy, A_POLICY)
    if summarizer is not None:
        able(
            "summarizer",
            summarizer,
            "summarize",
            "must have a method summarize, as summarizers.CallableSummarizer(function) has",
        )
    if hooks is not None:
        of_kind("hooks", hooks, Hooks, "must be Hooks(on_before_compaction=…)")
    if counter is not None:
        able("counter", counter, "count_many", "must be a counter, such as get_counter('o200k_base')")


def _named(value: Any) -> str:
    """Return a value's name for a message: a short text as it is, any other value by its type."""
    short = isinstance(value, str) and len(value) <= _SHORT
    return repr(value) if short else f"an object of type {type(value).__name__}"


def moment(now: datetime | None, clock: Clock) -> datetime:
    """Return the time that a call plans by, in UTC: its argument if it has one, or else the clock's time."""
    at = given(now)
    return time_of(clock) if at is None else at


def given(now: datetime | None, argument: str = "now") -> datetime | None:
    """Return the time that an application gives the events of a call, in UTC; None where it gives none."""
    if now is None:
        return None
    of_kind(argument, now, datetime, "must be a moment, for example datetime.now(UTC)")
    try:
        return utc(now)
    except ValueError as error:
        raise InvalidArgument(argument, str(error)) from None
