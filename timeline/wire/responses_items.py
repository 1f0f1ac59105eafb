"""OpenAI's items that only its server makes: what its own tools did, and what is left of a history that it compacted.

They go back as they came, with the fields that a request takes. An output goes back behind its call alone, a call with
its output alone, save for a program, which waits for the results of the calls that it makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.content.native import APPROVAL, CALLER, NATIVE, OPENAI_ITEMS
from timeline.wire.foreign import text_of
from timeline.wire.groups import Call
from timeline.wire.read_only import plain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from timeline.wire.groups import Placed
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry

_PROGRAM: Final = "program"
"""The type of an item that is code of the model's which the server runs, and which calls tools."""
_OF_PROGRAM: Final = "program_output"
_MCP_CALL: Final = "mcp_call"
"""The type of an item that is a call of an MCP server's tool, with what it gave."""
_APPROVED_BY: Final = "approval_request_id"
"""The key of such a call for the request by which it was approved."""
_REFERRED_TO: Final = {_PROGRAM: "call_id", APPROVAL: "id"}
"""Items that later ones name, each with the key of the id by which they do."""


class ItemReferences:
    """The items since the user's newest message that later ones may name, by type and id.

    They are kept: to look for one among all items would cost a request of a long loop the square of its length.
    """

    def __init__(self, items: Iterable[Part] = (), earlier: Collection[tuple[str, str]] = ()) -> None:
        self._own: set[tuple[str, str]] = set()
        self._earlier = earlier
        self.take(items)

    def take(self, items: Iterable[Part]) -> None:
        """Note items that are written, in order."""
        for item in items:
            kind = text_of(item, "type")
            if item.get("role") == "user":
                self._own, self._earlier = set(), ()
            elif kind in _REFERRED_TO:
                self._own.add((kind, item[_REFERRED_TO[kind]]))

    def branch(self) -> ItemReferences:
        """Return references that go on from here, and leave these as they are; of a branch there is no other."""
        return ItemReferences(earlier=self._own)

    def has(self, kind: str, id_: str, written: Sequence[Part]) -> bool:
        """Return whether an item may be named.

        Args:
            kind: its type.
            id_: its id.
            written: the items of the same response in front of the one that names it.
        """
        known = (kind, id_) in self._own or (kind, id_) in self._earlier
        return known or any(text_of(i, "type") == kind and i[_REFERRED_TO[kind]] == id_ for i in written)


class _Fields(NamedTuple):
    """The fields of an item that a request takes: those that it demands, those that it demands or null, and others."""

    needed: tuple[str, ...]
    nullable: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


_SENT: Final[dict[str, _Fields]] = {
    "web_search_call": _Fields(("id", "action", "status")),
    "file_search_call": _Fields(("id", "queries", "status"), optional=("results",)),
    "code_interpreter_call": _Fields(("id", "container_id", "status"), ("code", "outputs")),
    "image_generation_call": _Fields(
        ("id", "status"),
        ("result",),
        ("action", "background", "error", "output_format", "quality", "revised_prompt", "size", "svg_usage"),
    ),
    "mcp_list_tools": _Fields(("id", "server_label", "tools"), optional=("error",)),
    _MCP_CALL: _Fields(
        ("id", "arguments", "name", "server_label"),
        optional=(_APPROVED_BY, "error", "output", "status"),
    ),
    "tool_search_call": _Fields(("arguments",), optional=("call_id", "execution", "status")),
    "tool_search_output": _Fields(("tools",), optional=("call_id", "execution", "status")),
    "shell_call": _Fields(("action", "call_id"), optional=("environment", "status")),
    "shell_call_output": _Fields(("call_id", "output"), optional=("max_output_length", "status")),
    _PROGRAM: _Fields(("id", "call_id", "code", "fingerprint")),
    _OF_PROGRAM: _Fields(("id", "call_id", "result", "status")),
    "item_reference": _Fields(("id",)),
    "compaction": _Fields(("encrypted_content",), optional=("id",)),
}
"""An id where it may be left out is, save for a compaction's: the API would look for the thought that it belongs to."""
_CALL_OF: Final = {"tool_search_output": "tool_search_call", "shell_call_output": "shell_call"}
_RUN_BY: Final = "execution"
_UNFINISHED: Final = frozenset({"in_progress", "searching", "interpreting", "generating", "calling"})
"""What an item says of itself that a stream was cut in: it is left out, save for what was approved and may have run."""


def is_of_server(item: Part) -> bool:
    """Return whether an item is one of the server's; a shell and a search for tools may be the client's."""
    kind = text_of(item, "type")
    if kind == "shell_call":
        where = item.get("environment")
        return isinstance(where, dict) and where.get("type") != "local"
    if kind in {"tool_search_call", "tool_search_output"}:
        return text_of(item, _RUN_BY) == "server" or not text_of(item, "call_id")
    return kind in OPENAI_ITEMS and kind != "shell_call_output"


def items_of_server(parts: Iterable[Placed | Call]) -> dict[int, Part]:
    """Return the items of a response that may go back as they came, by the number of their entry."""
    sent: dict[int, Part] = {}
    waiting: dict[tuple[str, str], tuple[int, Part]] = {}
    for part in parts:
        item = None if isinstance(part, Call) else _request_item(part.entry)
        if item is None or isinstance(part, Call):
            continue
        kind, call_id = item["type"], text_of(item, "call_id")
        if kind in _CALL_OF.values():
            waiting[kind, call_id] = (part.number, item)
        elif kind not in _CALL_OF:
            sent[part.number] = item
        elif (call := waiting.pop((_CALL_OF[kind], call_id), None)) is not None:
            sent[call[0]], sent[part.number] = call[1], item
    return sent


def with_reference(item: Part, references: ItemReferences, written: Sequence[Part]) -> Part | None:
    """Return an item of the server's as it is sent behind others; None where it needs one that is not among them.

    A call of an MCP server's tool names the request that approved it, where that is sent as well.

    Args:
        item: the item.
        references: what the items in front of its response are.
        written: the items of its response in front of it.
    """
    if item["type"] == _OF_PROGRAM:
        return item if references.has(_PROGRAM, item["call_id"], written) else None
    request = text_of(item, _APPROVED_BY)
    if request and not references.has(APPROVAL, request, written):
        return {key: value for key, value in item.items() if key != _APPROVED_BY}
    return item


def with_caller(call: Part, references: ItemReferences, written: Sequence[Part]) -> Part:
    """Return a call of the client's tool; it names the program that made it, where that is sent as well.

    Args:
        call: the item of the call.
        references: see `with_reference`.
        written: see `with_reference`.
    """
    caller = call.get(CALLER)
    if caller is None or references.has(_PROGRAM, text_of(caller, "caller_id"), written):
        return call
    return {key: value for key, value in call.items() if key != CALLER}


def _request_item(entry: Entry) -> Part | None:
    """Return the item that an entry is in a request; None where it is hidden, or lacks what the API demands."""
    data: Any = entry.data
    fields = _SENT.get(text_of(data, "type")) if entry.type == NATIVE and isinstance(data, dict) else None
    if fields is None or "content" in data:  # Anthropic's compaction has a content
        return None
    if text_of(data, "type") == _MCP_CALL and "arguments" not in data:
        data = {**data, "arguments": "{}", "output": entry.text}  # hidden: what was approved may not run again
    if data.get("status") in _UNFINISHED:
        if not data.get(_APPROVED_BY):
            return None
        data = {**data, "status": "incomplete"}
    if any(data.get(name) is None for name in fields.needed):
        return None
    names = [name for name in (*fields.needed, *fields.optional) if data.get(name) is not None]
    item: Part = {"type": data["type"], **{name: plain(data[name]) for name in names}}
    return {**item, **{name: plain(data.get(name)) for name in fields.nullable}}
