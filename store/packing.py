"""Pack payloads, and read packed ones. Each payload is packed by itself, so that it is read, damaged and removed alone.

A packed payload is its form, one byte, then raw deflate (RFC 1951) of the payload's UTF-8. A form names a dictionary:
text that both sides know, without which a payload of a few hundred bytes would hardly get smaller. A form is stored, so
its dictionary never changes; a better one is another form.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORM: Final = 1
_DICTIONARY: Final = (
    b'{"arguments":{"path":"","query":"","pattern":"","old_string":"","new_string":"","content":"","description":"",'
    b'"file_path":"/home/user/project/src/","command":"cd "},"cause":"","effort":"","parameters":{"max_tokens":'
    b'"temperature":"provider":"signature":"redacted":"usage":{"input_tokens":,"output_tokens":,"cache_read_tokens":'
    b',"cache_write_tokens":,"reasoning_tokens":},"finish_reason":"tool_use","answers":,"duration":,"request":{"wire":'
    b'"openai-chat","encoder":1,"model":"claude-opus-","response_id":"msg_01","sha256":"stop"}}{"version":,'
    b'"projection":3,"fingerprint":"","policy":"","system":"","tools":"","tokens":,"total":,"limit":000}'
    b'{"block":{"at":"2026-01-01T00:00:00.000Z","call_id":"call_","toolu_01","exit_status":0,"is_error":true,'
    b'"meta":{"name":"Bash","bash","Read","Edit","Write","Grep","path":"tc:turn_1.toolu_01.call","response_id":"msg_01'
    b'","text":"","turn_id":"turn_1","type":"react.tool.call"},"counter":"o200k_base","tokens":1'
    b'.result","response_id":"msg_01","text":"\\n    def return import self.\\n","turn_id":"turn_1",'
    b'"type":"react.tool.result"},"counter":"o200k_base","tokens":'
    b'"path":"ar:turn_1.user.prompt.assistant.completion","turn_id":"turn_1","type":"assistant.completion"},'
    b'"react.reasoning","user.prompt"},"counter":"o200k_base","tokens":'
)
_DICTIONARIES: Final[Mapping[int, bytes]] = {_FORM: _DICTIONARY}
_LEVEL: Final = 1
_LEVEL_OF_LONG: Final = 4
_BITS: Final = 13
"""A window of 8 KB: with the usual 32 KB, making room for it would take longer than packing a payload."""
_MEMORY: Final = 7
_WORTH: Final = 0.9
"""A payload that is not at least a tenth smaller stays as it is."""
_MOST: Final = 1_000_000_000
"""Bytes of the longest text that SQLite stores: one that unpacks to more was never packed from a row."""


def packed(payload: bytes) -> bytes | None:
    """Pack a payload in UTF-8; None where it is not worth it."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -_BITS, _MEMORY, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)
    body = bytes((_FORM,)) + packer.compress(payload) + packer.flush()
    return body if len(body) <= len(payload) * _WORTH else None


def packed_whole(text: str) -> bytes:
    """Pack a long text, such as a snapshot, which needs no dictionary."""
    return zlib.compress(text.encode(), _LEVEL_OF_LONG)


def unpacked_whole(body: object) -> str:
    """Read a long text that was packed; empty for a damaged one, whose checksum then reports the damage."""
    try:
        return _bounded(zlib.decompressobj(), body)  # type: ignore[arg-type] # whatever the column holds
    except (zlib.error, TypeError):
        return ""


def unpacked(body: bytes) -> str:
    """Read a packed payload; empty for a damaged one, whose checksum then reports the damage."""
    try:
        return _bounded(zlib.decompressobj(-_BITS, zdict=_DICTIONARIES[body[0]]), body[1:])
    except (zlib.error, LookupError, TypeError):
        return ""


def _bounded(reader: zlib._Decompress, body: bytes) -> str:
    """Read a packed text; empty for a longer one than a store holds: a few megabytes may unpack to any length."""
    text = reader.decompress(body, _MOST + 1)
    return "" if len(text) > _MOST else text.decode(errors="replace")
