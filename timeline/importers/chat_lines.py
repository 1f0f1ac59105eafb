"""Read chat JSON as JSON Lines: a message a line, or a conversation a line, as data sets and logs of calls have it.

What the lines say is read as chat JSON is. No line says which program wrote it, so a file counts as this format only if
no other format recognises a line of it.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from timeline.frozen import compact_json
from timeline.importers.chat import messages_of, recordings_of
from timeline.importers.exchange import joined_exchange
from timeline.importers.lines import read_records
from timeline.importers.recording import Report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.importers.recording import Recording

OPENING: Final = '{"role":"'
"""The beginning of most lines that are messages."""
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "model", "tool", "function"})
_ANSWERS: Final = frozenset({"assistant", "model"})
_SAYS: Final = frozenset({"content", "parts", "tool_calls", "function_call"})


def is_chat_line(value: Any) -> bool:
    """Return whether a JSON value is a message, or an object with messages."""
    return _is_message(value) or _is_conversation(joined_exchange(value))


def read_chat_lines(data: bytes, name: str) -> list[Recording]:
    """Read the bytes of a file of lines: its messages are one conversation, and each line with messages is another.

    Args:
        data: the file.
        name: the file's name without its extension; the ids begin with it. That of the messages ends with the hash of
            their beginning, and that of a line with the hash of the line, so that a file that has grown adds what is
            new.
    """
    report = Report()
    return _read(read_records(data, report, opening=OPENING), report, name)


def is_chat_list(document: Any) -> bool:
    """Return whether a JSON document is a list of conversations."""
    return isinstance(document, list) and bool(document) and all(_is_conversation(joined_exchange(v)) for v in document)


def read_chat_list(document: list[Any], name: str) -> list[Recording]:
    """Read a list of conversations as if each stood on a line; see `read_chat_lines`."""
    report = Report(lines=len(document), records=len(document))
    return _read(enumerate(document, start=1), report, name)


def _read(records: Iterable[tuple[int, Any]], report: Report, name: str) -> list[Recording]:
    messages: list[dict[str, Any]] = []
    found: dict[str, Recording] = {}
    for line, value in records:
        document = joined_exchange(value)
        if _is_conversation(document):
            id_ = f"{name}-{_hash(value)}"
            if id_ in found:
                report.note("duplicate_record", line, "a conversation for the second time")
            size = len(messages_of(document) or [])
            made = recordings_of(document, id_, Report(lines=size, records=size))
            if not made:
                report.note("unknown_record", line, "messages that say nothing")
            found |= {one.id: one for one in made}
        elif _is_message(value):
            messages.append(value)
        else:
            report.note("unknown_record", line, "neither a message nor an object with messages")
    said = recordings_of(messages, f"{name}-{_hash(_beginning(messages))}", report) if messages else []
    # Another log may begin with the same answer; of a snapshot, what it has otherwise is reported.
    recordings = [*(replace(one, is_snapshot=True) for one in said), *found.values()]
    if recordings and not said:  # what is wrong with the file is told with its first conversation
        recordings[0].report.counts.update(report.counts)
        recordings[0].report.findings.extend(report.findings)
    return recordings


def _beginning(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a log still has when it has grown, and no other log has: all up to the first answer.

    Runs that are asked the same differ by what is answered. A log that has no answer yet is another one with it.
    """
    first = next((n for n, message in enumerate(messages) if message["role"] in _ANSWERS), len(messages))
    return messages[: first + 1]


def _hash(value: Any) -> str:
    return sha256(compact_json(value).encode()).hexdigest()[:12]


def _is_message(value: Any) -> bool:
    """Return whether a value is a message; rows of programs have a type beside the role."""
    return (
        isinstance(value, dict) and value.get("role") in _ROLES and "type" not in value and bool(_SAYS & value.keys())
    )


def _is_conversation(document: Any) -> bool:
    return isinstance(document, dict) and "type" not in document and messages_of(document) is not None
