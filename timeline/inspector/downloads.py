"""A conversation as a file that a browser saves: the page with the log inside, or the log itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import timeline
from timeline.errors import needs
from timeline.inspector.onefile.collecting import Wish
from timeline.inspector.onefile.page import one_file
from timeline.portable import export_log

with needs("inspector"):
    from starlette.responses import Response, StreamingResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.inspector.asked import AskedFile
    from timeline.inspector.reader import Reader


async def download(reader: Reader, asked: AskedFile) -> Response:
    """Return a conversation as a file: ``html`` opens from disk, ``jsonl`` imports again event for event.

    Redacted content is in neither.

    Raises:
        ConversationNotFound: there is no such conversation.
        InvalidArgument: the page would be larger than a browser opens well.
    """
    version = (await reader.store.info(asked.id)).version
    name = f"{_plain(asked.id)}-v{version}.{asked.form}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    if asked.form == "html":
        text, _ = await one_file(reader.store, asked.id, Wish(asked.mode, asked.contexts))
        return Response(text, media_type="text/html; charset=utf-8", headers=headers)
    return StreamingResponse(_lines(reader, asked.id), media_type="application/jsonl", headers=headers)


async def _lines(reader: Reader, conversation: str) -> AsyncIterator[str]:
    """Yield the lines of a log as they are read: it may be larger than the memory."""
    async for line in export_log(reader.store, [conversation], library=timeline.__version__):
        yield f"{line}\n"


def _plain(conversation: str) -> str:
    """Return an id without what file systems refuse."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", conversation).strip("-.")[:100] or "conversation"
