"""Make the facts of stored events, whichever database holds them.

This needs other events, too: the calls that results answer, and the redactions. A store's writer and its readers look
them up in different ways, so `facts_of_page` is a generator that yields questions, and both answer them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Generator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from timeline.blocks import ToolCall, ToolResult
from timeline.errors import StoreCorrupt
from timeline.events import BlockAppended
from timeline.events.encoding import decode_payload
from timeline.facts.extracting import facts_of_result

from .column_numbers import LARGEST
from .facts import FactRow, call_path, rows_named, rows_of_facts
from .failures import RESTORE
from .search.scanning import redacted_version

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from timeline.blocks import Block
    from timeline.facts.tool_use import CallFields

    from .codec import Row

T = TypeVar("T")


class FactQuestion(NamedTuple):
    """What the facts of a page depend on, about a conversation and its ancestors.

    Attributes:
        about: ``redactions``: conversation's key, version and payload of each. ``calls_at``: path, version and payload
            of the blocks at these paths. ``calls_of_ids``: call's id, version and payload of the calls of these ids.
        last: only events up to this version.
        key: the conversation's.
        listed: see ``about``.
    """

    about: Literal["redactions", "calls_at", "calls_of_ids"]
    last: int
    key: int
    listed: tuple[str, ...] = ()


Asking: TypeAlias = Generator[FactQuestion, "Sequence[Row]", T]

_CALL: Final = ToolCall.model_fields["type"].default
_NO_ARGUMENTS: Final[dict[str, Any]] = {}


class MadeFacts(NamedTuple):
    """The facts of one stored event: what its result says was done, and what its block names.

    ``resolved`` is False for a result whose call is not in the log, or no longer: its facts can only be rows.
    """

    position: int
    at: str
    path: str
    done: list[FactRow]
    named: list[FactRow]
    resolved: bool


class _Stored(NamedTuple):
    position: int
    key: int
    version: int
    at: str
    path: str
    block: Block


def facts_of_page(rows: Sequence[Row], known: Collection[int] = ()) -> Asking[list[MadeFacts]]:
    """Make the facts of appended blocks, in order; ask for the calls and the redactions that this takes.

    Args:
        rows: position, conversation's key, version, time, path and payload of each; none of them scavenged.
        known: positions of results whose facts are there already.
    """
    stored = [
        _Stored(row[0], row[1], row[2], row[3], row[4], block) for row in rows if (block := _block(row[5])) is not None
    ]
    gone: dict[int, set[int]] = {}
    for key in dict.fromkeys(event.key for event in stored):
        gone[key] = redacted((yield FactQuestion("redactions", LARGEST, key)))
    results = [e for e in stored if type(e.block) is ToolResult and e.position not in known]
    calls = yield from _calls_of([e for e in results if e.version not in gone[e.key]])
    made = []
    for event in stored:
        position, key, version, at, path, block = event
        if version in gone[key]:
            continue
        moment = moment_of(at)
        done: list[FactRow] = []
        call = calls.get(position)
        if call is not None and isinstance(block, ToolResult) and call[0] not in gone[key]:
            of_call = facts_of_result(call[1], call[0], block, version, moment)
            done = rows_of_facts(of_call, key, position, path, call[0])
        named = rows_named(block, key, position, version, moment)
        resolved = call is not None or not isinstance(block, ToolResult)
        made.append(MadeFacts(position, at, path, done, named, resolved))
    return made


def _calls_of(results: Sequence[_Stored]) -> Asking[dict[int, tuple[int, CallFields]]]:
    """Return the call that each result answers, by the result's position: by its path, else the newest of its id."""
    calls: dict[int, tuple[int, CallFields]] = {}
    by_key: defaultdict[int, list[_Stored]] = defaultdict(list)
    for result in results:
        by_key[result.key].append(result)
    for key, some in by_key.items():
        last = some[-1].version - 1
        paths = [path for result in some if (path := call_path(result.path)) is not None]
        at_path = {path: (v, text) for path, v, text in (yield FactQuestion("calls_at", last, key, tuple(paths)))}
        left = []
        for result in some:
            version, text = at_path.get(call_path(result.path) or "", (0, ""))
            call = _call(text) if 0 < version < result.version else None
            if call is not None:
                calls[result.position] = (version, call)
            elif not version or version > result.version or text:
                # If the call was scavenged, another call with its id is not the one that the result answers.
                left.append(result)
        if left:
            ids = sorted({result.block.call_id or "" for result in left})
            found = yield FactQuestion("calls_of_ids", last, key, tuple(ids))
            of_id: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
            for id_, version, text in found:
                of_id[id_].append((version, text))
            for result in left:
                earlier = [each for each in of_id[result.block.call_id or ""] if each[0] < result.version]
                version, text = max(earlier, default=(0, ""))
                if version and (call := _call(text)) is not None:
                    calls[result.position] = (version, call)
    return calls


def moment_of(at: str) -> datetime:
    """Read the time of an event.

    Raises:
        StoreCorrupt: it is none.
    """
    try:
        return datetime.fromisoformat(at)
    except (ValueError, TypeError):
        cure = f"`timeline verify --deep` lists all damage. {RESTORE}."
        raise StoreCorrupt(f"the time {at!r} of an event is damaged. {cure}") from None


def _block(payload: str) -> Block | None:
    """Return the block of an event; None for a damaged one: reading it reports the damage."""
    try:
        decoded = decode_payload("block.appended", BlockAppended.schema_version, payload)
    except StoreCorrupt:
        return None
    return decoded.block if isinstance(decoded, BlockAppended) else None


class _StoredCall(NamedTuple):
    """The fields of a call from which facts are made. They take a tenth of the time of the whole, validated block."""

    path: str
    name: str
    arguments: dict[str, Any] | str


def _call(payload: str) -> _StoredCall | None:
    """Return the call of an event; None for another block, and for a damaged one."""
    try:
        block = json.loads(payload)["block"]
        if block["type"] != _CALL:
            return None
        call = _StoredCall(block.get("path", ""), block["name"], block.get("arguments", _NO_ARGUMENTS))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    sound = isinstance(call.path, str) and isinstance(call.name, str) and isinstance(call.arguments, (dict, str))
    return call if sound else None


def redacted(rows: Iterable[Row]) -> set[int]:
    """Return the versions that redactions erase; a redaction of a later version erases nothing."""
    pairs = ((by, redacted_version(payload)) for _, by, payload in rows)
    return {version for by, version in pairs if version is not None and version < by}
