"""Ids of calls to which a provider gave none, and of the results that answer them.

Google's API, old function calls of OpenAI's, and servers that are nearly compatible name a result by its tool, or not
at all. Such a result answers the next open call of its tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from timeline.frozen import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from timeline.blocks import ToolCall

OpenCalls: TypeAlias = "Callable[[], Iterable[ToolCall]]"
"""Returns the calls that wait for a result; it is called only if one is needed."""


class CallIds:
    """Names the calls of one list of messages, and finds the calls that its results answer.

    Args:
        logged: calls of the log, in order. A call without an id is taken for the next of them with the same content.

    Attributes:
        made: whether a call had no id, or a result neither an id nor a call that it answers.
    """

    def __init__(self, logged: Iterable[ToolCall] = ()) -> None:
        self.made: bool = False
        self._logged = [*logged]
        self._behind = 0
        self._open: list[ToolCall] = []
        self._nameless = set[str]()
        """The ids that were made up."""
        self._earlier: OpenCalls | None = None
        self._begun = False

    def expect(self, earlier: OpenCalls) -> None:
        """Let results answer calls from before the list from now on, unless the list has calls itself."""
        if not self._begun:
            self._earlier = earlier

    def named(self, call: ToolCall, *, has_id: bool) -> ToolCall:
        """Return a call with its id: its own, that of the log, or else the one that was made up for it."""
        ahead = range(self._behind, len(self._logged))
        place = next((n for n in ahead if _is_same(call, self._logged[n], by_id=has_id)), None)
        if place is not None:
            self._behind = place + 1
        if has_id:
            return call
        self.made = True
        call = call if place is None else call.model_copy(update={"call_id": self._logged[place].call_id})
        self._nameless.add(call.call_id)
        return call

    def wait(self, calls: Iterable[ToolCall]) -> None:
        """Wait for the results of a response's calls; the calls of earlier responses wait no longer."""
        self._open, self._earlier, self._begun = [*calls], None, True

    def answered(self, call_id: str, name: str) -> str | None:
        """Return the id of the call that a result answers; None where it has no id, and no call waits.

        A result may have an id where its call has none: clients make one up for it alone (Gemini CLI).

        Args:
            call_id: the result's own id, or an empty text.
            name: the name of its tool, or an empty text.
        """
        if self._earlier is not None and not call_id:
            self._open, self._earlier = [*self._earlier()], None
        own = (n for n, call in enumerate(self._open) if call.call_id == call_id)
        of_tool = (n for n, call in enumerate(self._open) if call.name == name)
        of_nameless = (n for n, call in enumerate(self._open) if call.name == name and call.call_id in self._nameless)
        place = next(own, next(of_nameless, None)) if call_id else next(of_tool, 0 if self._open else None)
        self.made = self.made or (place is None and not call_id)
        return call_id or None if place is None else self._open.pop(place).call_id


def _is_same(call: ToolCall, logged: ToolCall, *, by_id: bool) -> bool:
    if by_id:
        return call.call_id == logged.call_id
    if call.name != logged.name:
        return False
    return canonical_json(call.arguments) == canonical_json(logged.arguments)
