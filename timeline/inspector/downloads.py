"""A conversation as a file that a browser saves: the page with the log inside, or the log itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import timeline
from timeline.errors import needs
from timeline.inspector.bundle import bundle
from timeline.inspector.onefile.collecting import Wish
from timeline.inspector.onefile.page import one_file
from timeline.inspector.saved import plain_name
from timeline.portable import export_log
from timeline.portable.atif import trajectory

with needs("inspector"):
    from starlette.responses import Response, StreamingResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.inspector.asked import AskedFile
    from timeline.inspector.reader import Reader

_ENDINGS: Final = {"html": "html", "jsonl": "jsonl", "atif": "atif.json", "bundle": "bundle.zip"}


async def download(reader: Reader, asked: AskedFile) -> Response:
    """Return a conversation as a file: ``html`` opens from disk, ``jsonl`` imports again, ``atif`` is a trajectory.

    A ``bundle`` is what a fault is reported with. Redacted content is in none of them.
    """
    version = (await reader.store.info(asked.id)).version
    name = f"{plain_name(asked.id)}-v{version}.{_ENDINGS[asked.format]}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    if asked.format == "html":
        text, _ = await one_file(reader.store, asked.id, Wish(asked.mode, asked.contexts, asked.redact, asked.kept))
        return Response(text, media_type="text/html; charset=utf-8", headers=headers)
    if asked.format == "bundle":
        packed = await bundle(reader.store, asked.id, asked.kept)
        return Response(packed.data, media_type="application/zip", headers=headers)
    if asked.format == "atif":
        made = await trajectory(reader.store, asked.id, library=timeline.__version__)
        return Response(json.dumps(made, ensure_ascii=False), media_type="application/json", headers=headers)
    return StreamingResponse(_lines(reader, asked.id), media_type="application/jsonl", headers=headers)


async def _lines(reader: Reader, conversation: str) -> AsyncIterator[str]:
    """Yield the lines of a log as they are read: it may be larger than the memory."""
    async for line in export_log(reader.store, [conversation], library=timeline.__version__):
        yield f"{line}\n"
