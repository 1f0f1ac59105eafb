"""Read recorded conversations of other programs into events of the log.

The format is recognised by content, never by the file's name. Reading is tolerant: damage is repaired or reported, and
a file is refused only if it is no recording at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Final, TypeAlias

from timeline.databases import IsDatabase, NotPlain, read_file
from timeline.errors import ImportFailed
from timeline.frozen import repair_text
from timeline.importers.agents_sqlite import read_agents_database
from timeline.importers.ai_sdk import is_ai_sdk, is_ai_sdk_message, read_ai_sdk, read_ai_sdk_lines
from timeline.importers.aider import is_aider, read_aider
from timeline.importers.atif import is_atif, read_atif
from timeline.importers.chat import messages_of, read_chat
from timeline.importers.chat_lines import is_chat_line, is_chat_list, read_chat_lines, read_chat_list
from timeline.importers.claude_code import OPENING, is_claude_code, read_claude_code
from timeline.importers.claude_stream import (
    is_claude_stream,
    is_claude_stream_document,
    read_claude_stream,
    read_claude_stream_document,
)
from timeline.importers.cline import is_cline, read_cline
from timeline.importers.codex import is_codex, is_codex_document, read_codex, read_codex_document
from timeline.importers.codex_exec import is_codex_exec, read_codex_exec
from timeline.importers.exchange import joined_exchange
from timeline.importers.gemini_cli import is_gemini_cli, read_gemini_cli
from timeline.importers.gemini_lines import is_gemini_line, read_gemini_lines
from timeline.importers.gemini_stream import is_gemini_stream, read_gemini_stream
from timeline.importers.lines import BYTE_ORDER_MARK, read_records
from timeline.importers.mini_swe_agent import is_mini_swe_agent, read_mini_swe_agent
from timeline.importers.opencode import is_opencode, read_opencode
from timeline.importers.openhands import is_openhands, read_openhands
from timeline.importers.pi import is_pi, read_pi
from timeline.importers.qwen_code import is_qwen_code, read_qwen_code
from timeline.importers.recording import ImportedCompaction, ImportedHide, RecordedEvent, Recording, Report
from timeline.importers.responses import is_prompt_alone, is_responses, read_responses
from timeline.importers.swe_agent import is_swe_agent, read_swe_agent
from timeline.wire.foreign import decode_value

__all__ = [
    "FORMATS",
    "ImportedCompaction",
    "ImportedHide",
    "RecordedEvent",
    "Recording",
    "Report",
    "read_recording",
]

FORMATS: Final = (
    "Claude Code sessions, and what `claude -p --output-format stream-json` prints (JSON Lines or JSON)",
    "pi sessions (JSON Lines)",
    "Codex rollouts, and what `codex exec --json` prints (JSON Lines)",
    "OpenAI Agents SDK sessions (SQLite)",
    "OpenAI chat messages (JSON or JSON Lines)",
    "OpenAI Responses requests (JSON)",
    "Anthropic messages (JSON or JSON Lines)",
    "ShareGPT conversations (JSON or JSON Lines)",
    "Gemini contents (JSON or JSON Lines)",
    "AI SDK chats (JSON or JSON Lines)",
    "Gemini CLI chats, and what `gemini -p --output-format stream-json` prints (JSON or JSON Lines)",
    "Qwen Code sessions (JSON Lines)",
    "opencode sessions (JSON)",
    "Cline tasks (JSON)",
    "aider histories (Markdown)",
    "SWE-agent trajectories (JSON)",
    "mini-swe-agent trajectories (JSON)",
    "OpenHands trajectories (JSON)",
    "ATIF trajectories (JSON)",
)
"""The names of the formats that can be read."""

_DocumentReader: TypeAlias = Callable[[Any, str, str], list[Recording]]
"""Reads a decoded document; also given are the file's name without its extension, and its hash."""

_PACKED: Final = "the file is compressed ({}). Unpack it, and import what is in it."
_WIDE: Final = "the file is in UTF-16. Save it in UTF-8, and import that."
_WRAPPED: Final = {
    b"\x1f\x8b": _PACKED.format("gzip"),
    b"\x28\xb5\x2f\xfd": _PACKED.format("zstd"),
    b"\xfd7zXZ\x00": _PACKED.format("xz"),
    b"BZh": _PACKED.format("bzip2"),
    b"PK\x03\x04": _PACKED.format("zip"),
    b"\xff\xfe": _WIDE,
    b"\xfe\xff": _WIDE,
}
"""The first bytes of files that may hold a recording in another form, as rollouts that Codex has packed away."""


def _by_name(read: Callable[[Any, str], list[Recording]]) -> _DocumentReader:
    """Return a reader that needs no hash of the file: its documents have an id, or are named after the file."""
    return lambda document, name, _: read(document, name)


_DOCUMENTS: Final[tuple[tuple[Callable[[Any], bool], _DocumentReader], ...]] = (
    (is_atif, read_atif),
    (is_mini_swe_agent, read_mini_swe_agent),
    (is_opencode, _by_name(read_opencode)),
    (is_openhands, _by_name(read_openhands)),
    (is_cline, read_cline),
    (is_ai_sdk, _by_name(read_ai_sdk)),
    (is_responses, read_responses),
    (lambda document: messages_of(document) is not None, read_chat),
    (is_chat_list, _by_name(read_chat_list)),
    (is_gemini_cli, _by_name(read_gemini_cli)),
    (is_swe_agent, read_swe_agent),
    (is_codex_document, _by_name(read_codex_document)),
    (is_claude_stream_document, _by_name(read_claude_stream_document)),
)
"""The formats that are one JSON document; the first one that recognises it reads it."""
_LINES: Final[tuple[tuple[Callable[[Any], bool], Callable[[bytes, str], list[Recording]]], ...]] = (
    (is_qwen_code, read_qwen_code),
    (is_claude_code, read_claude_code),
    (is_claude_stream, read_claude_stream),
    (is_pi, read_pi),
    (is_codex, read_codex),
    (is_codex_exec, read_codex_exec),
    (is_gemini_line, read_gemini_lines),
    (is_gemini_stream, read_gemini_stream),
    (is_ai_sdk_message, read_ai_sdk_lines),
)
"""The formats of lines; the first one that recognises a record reads the file."""
_NOTHING: Final = b" \t\r\n\x00" + BYTE_ORDER_MARK
_SPANS: Final = re.compile(rb'"resource_?[sS]pans"')
"""A name near the beginning of every exported trace."""
_BLANK: Final = re.compile(r"\s*")


def read_recording(path: Path | str) -> list[Recording]:
    """Read a recorded file: the main conversation first, then its subagents or other branches.

    Raises:
        ImportFailed: the file is missing, empty, unreadable, no regular file, or no recording of a known format.
    """
    source = Path(path)
    data = _read(source)
    if data is None:
        return _said(read_agents_database(source), path)
    if not data.strip(_NOTHING):
        raise ImportFailed(str(path), "the file is empty. Give a recorded conversation.")
    name = repair_text(source.stem)
    if is_aider(data):
        return _said(read_aider(data, name), path)
    value = _document(data)
    document = joined_exchange(value)
    read_document = next((read for is_of, read in _DOCUMENTS if is_of(document)), None)
    recordings = None
    if read_document is read_chat and is_chat_line(value) and b"\n" not in data.strip(_NOTHING):
        recordings = read_chat_lines(data, name)  # the first line of a file that may grow
    elif read_document is not None:
        recordings = read_document(document, name, sha256(data).hexdigest())
    if recordings is None and (read_lines := _reader_of_lines(data)) is not None:
        recordings = read_lines(data, name)
    if recordings is None and is_prompt_alone(document):
        recordings = read_responses(document, name, sha256(data).hexdigest())
    if recordings is None:
        raise ImportFailed(str(path), _why_unknown(data))
    return _said(recordings, path)


def _said(recordings: list[Recording], path: Path | str) -> list[Recording]:
    """Return the recordings of a file; refuse a file without any message."""
    if not recordings:
        raise ImportFailed(str(path), "no message is in it. Give a recording in which something was said.")
    return recordings


def _document(data: bytes) -> Any:
    """Decode a file that is one JSON value; return None for any other, such as a file of lines."""
    text = data.removeprefix(BYTE_ORDER_MARK).decode(errors="replace")
    try:
        value, end = decode_value(text)
    except ValueError:
        return None
    return value if _BLANK.fullmatch(text, end) else None


def _why_unknown(data: bytes) -> str:
    """Return what is said of a file that shows no format; of a known kind that cannot be read its name."""
    if wrapped := next((packing for start, packing in _WRAPPED.items() if data.startswith(start)), ""):
        return wrapped
    if _SPANS.search(data, 0, 1_000):
        return "this is a trace of OpenTelemetry (OTLP). Give the recording of the agent itself."
    known = f"What can be read: {', '.join(FORMATS)}; and logs of `timeline export`, by `timeline import`."
    return f"the format is not known{_damage(data)}. {known}"


def _damage(data: bytes) -> str:
    """Return where a torn JSON document breaks off; it shows no format, so the error can only name the place."""
    text = data.removeprefix(BYTE_ORDER_MARK).decode(errors="replace")
    try:
        decode_value(text)
    except JSONDecodeError as error:
        torn = text.lstrip().startswith(("{", "["))
        return f"; as one JSON document it breaks in line {error.lineno}, column {error.colno}" if torn else ""
    except ValueError as error:
        return f"; it is {error}"
    return ""


def _read(source: Path) -> bytes | None:
    """Return the bytes of a file, or None for a SQLite database."""
    try:
        if source.is_dir():
            raise ImportFailed(str(source), "this is a folder. Give a file, or several: timeline import FOLDER/*.jsonl")
        if source.exists() and not source.is_file():
            raise ImportFailed(str(source), "this is not a regular file. Copy the recording to a file first.")
        return read_file(source)
    except IsDatabase:
        return None
    except FileNotFoundError:
        raise ImportFailed(str(source), "there is no such file. Check the path.") from None
    except PermissionError:
        raise ImportFailed(str(source), "the file may not be read. Change its permissions, or copy it.") from None
    except NotPlain as error:
        raise ImportFailed(str(source), f"{error.strerror}. Divide it into smaller files.") from None
    except (OSError, ValueError) as error:
        raise ImportFailed(str(source), f"the file cannot be read: {error}. Copy it and try again.") from None


def _reader_of_lines(data: bytes) -> Callable[[bytes, str], list[Recording]] | None:
    """Return the reader of a format of lines, by the first record that a format recognises.

    Plain messages come last: a program's file may have such lines, too.
    """
    is_chat = False
    for record in read_records(data, Report(), opening=OPENING):
        for is_of, read in _LINES:
            if is_of(record.value):
                return read
        is_chat = is_chat or is_chat_line(record.value)
    return read_chat_lines if is_chat else None
