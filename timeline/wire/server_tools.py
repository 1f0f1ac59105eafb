"""Tools that Anthropic's server runs: its calls and their results go back together, or neither does.

The API refuses a result without its call, and a call without a result, unless the turn still goes on: it paused
(``pause_turn``), or waits for the results of other calls, and runs the tool with the next request. Whatever else
follows ends the turn, a text behind these results, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.content.native import SERVER_CALLS
from timeline.wire.foreign import text_of
from timeline.wire.groups import Call

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from timeline.wire.groups import Placed
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry
    from timeline.wire.writing import Message

_PART: Final = "assistant.part"
_FOUND: Final = "_tool_result"


def part_of(entry: Entry) -> Part | None:
    """Return the call or result that an entry sends to the server that made it; None of any other entry."""
    part = entry.data if entry.type == _PART and isinstance(entry.data, dict) else None
    return part if part is not None and (is_call(part) or is_result(part)) else None


def id_of(part: Part) -> str:
    """Return the id of a call, or of the call that a result is of."""
    return text_of(part, "id") if is_call(part) else text_of(part, "tool_use_id")


def is_call(part: Part) -> bool:
    """Return whether a part is a call of a tool that the server runs."""
    return (
        text_of(part, "type") in SERVER_CALLS
        and bool(text_of(part, "id") and text_of(part, "name"))
        and "input" in part
    )


def is_result(part: Part) -> bool:
    """Return whether a part is what such a tool found."""
    kind = text_of(part, "type")
    return kind.endswith(_FOUND) and kind != "tool_result" and bool(text_of(part, "tool_use_id")) and "content" in part


def entries_of_server(parts: Iterable[Placed | Call]) -> list[Entry]:
    """Return the entries of a response that say what the provider's own tools did, hidden ones too."""
    return [part.entry for part in parts if not isinstance(part, Call) and part.entry.type == _PART]


def sent_ids(entries: Collection[Entry], waiting: Collection[str]) -> set[str]:
    """Return the ids of the server's calls of a response whose parts are sent: the call, its result, or both.

    Args:
        entries: those of the response.
        waiting: ids of the calls before it that the server was still to run.
    """
    parts = [part for entry in entries if (part := part_of(entry)) is not None]
    calls = {id_of(part) for part in parts if is_call(part)}
    results = {id_of(part) for part in parts if is_result(part)}
    if any(entry.data is None for entry in entries):  # one of them is hidden
        return results & {*calls, *waiting}
    return calls | (results & {*waiting})


class Waiting(NamedTuple):
    """A call that the server is still to run, at a place of a message.

    It is in the assistant's newest message, which only results of the client's calls may follow.
    """

    message: int
    place: int
    part: Part


def waiting_calls(messages: Sequence[Message], since: tuple[int, int]) -> list[Waiting]:
    """Return the calls in messages that the server is still to run.

    Args:
        messages: that are written.
        since: number of the message, and place in it, where the newest response begins. What older ones called has its
            result, or words instead.
    """
    newest = len(messages) - 1
    if newest > 0 and messages[newest]["content"][-1]["type"] == "tool_result":
        newest -= 1
    if newest < 0 or messages[newest]["role"] != "assistant":
        return []
    begin = since[1] if since[0] == newest else 0
    parts = messages[newest]["content"][begin:]
    answered = {id_of(part) for part in parts if is_result(part)}
    calls = ((place, part) for place, part in enumerate(parts, start=begin) if is_call(part))
    return [Waiting(newest, place, part) for place, part in calls if id_of(part) not in answered]
