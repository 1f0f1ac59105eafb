"""Write the HTML file of what was collected: page, modules, and the data in chunks that are unpacked on demand."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from functools import partial
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Any, Final

from timeline.display.controls import show_controls
from timeline.errors import InvalidArgument
from timeline.inspector.onefile.collecting import collect
from timeline.inspector.onefile.modules import ENTRY, import_map, styles
from timeline.log.off_loop import off_loop
from timeline.log.undisturbed import undisturbed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from timeline.inspector.onefile.collecting import Carried, Wish
    from timeline.ports import EventStore

CHUNK: Final = 500
"""Rows, texts and parts of contexts in a chunk."""
MOST_BYTES: Final = 100_000_000
"""A browser takes long to open a larger file."""
_NONE: Final = "'none'"
_BOOT: Final = f'import "tl/{ENTRY}";'


async def one_file(
    store: EventStore, conversation: str, wish: Wish, advance: Callable[[int], None] = lambda _: None
) -> tuple[str, Carried]:
    """Return a conversation as one HTML file, with what it carries and what was left out."""
    carried = await undisturbed(store, partial(collect, store, conversation, wish, advance), conversation)
    return await off_loop(len(carried.rows), partial(written, carried)), carried


def written(carried: Carried, *, framed: bool = False) -> str:
    """Write the file.

    Args:
        carried: what it carries.
        framed: whether it is to be the `srcdoc` of a frame, whose links would lead to the page around it.

    Raises:
        InvalidArgument: it would be larger than a browser opens well.
    """
    chunks: list[str] = []
    size = 0
    for name, data in _chunks(carried):
        chunks.append(f'<script type="application/octet-stream" id="{name}">{_packed(data)}</script>')
        size += len(chunks[-1])
        if size > MOST_BYTES:
            raise InvalidArgument(
                "conversation",
                f"makes a file of more than {MOST_BYTES // 1_000_000} MB, which browsers open slowly. Leave contexts "
                "out (--contexts none), export the chat alone (--mode chat), or look at it with `timeline inspect`",
            )
    return _page(carried, chunks, "about:srcdoc" if framed else None)


def _chunks(carried: Carried) -> Iterator[tuple[str, Any]]:
    """Return the file's data by the ids of their elements, the index first."""
    rows, texts = carried.rows, carried.texts
    starts = range(0, len(rows), CHUNK)
    addressed = (row for row in rows if row["path"])
    yield (
        "index",
        {
            "conversation": carried.conversation,
            "version": carried.version,
            "first": rows[0]["version"] if rows else 1,
            "chunks": [rows[start]["version"] for start in starts],
            "paths": {row["path"]: row["version"] for row in addressed},
            "answers": carried.answers,
            "histories": carried.histories.changes,
            "superseded": carried.histories.superseded,
            "contexts": list(carried.contexts),
            "moment": carried.moment,
        },
    )
    for number, start in enumerate(starts):
        yield f"rows-{number}", rows[start : start + CHUNK]
        shown = (text for text in texts[start : start + CHUNK] if text is not None)
        yield f"texts-{number}", {text["version"]: text for text in shown}
    for number, context in carried.contexts.items():
        yield f"context-{number}", context
    for number, start in enumerate(range(0, len(carried.pool), CHUNK)):
        yield f"pool-{number}", carried.pool[start : start + CHUNK]


def _packed(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return b64encode(gzip.compress(text, 6, mtime=0)).decode()


def _page(carried: Carried, chunks: list[str], base: str | None) -> str:
    names, style = import_map(), "\n".join((*styles(), _STYLE))
    policy = (
        f"default-src 'none'; script-src {_hashed(names)} {_hashed(_BOOT)} data:; style-src {_hashed(style)}; "
        f"img-src data:; base-uri {'about:' if base else _NONE}; form-action 'none'"
    )
    left_out = "".join(f"<li>{escape(line)}</li>" for line in [*carried.left_out, *_taken(carried)])
    title = escape(show_controls(f"{carried.conversation} at version {carried.version}"))
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            *([f'<base href="{base}">'] if base else []),
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{title}</title>",
            '<link rel="icon" href="data:,">',
            f"<style>{style}</style>",
            f'<script type="importmap">{names}</script>',
            "</head>",
            "<body>",
            f'<details class="file-note"><summary>{title}{_KINDS[carried.moment]}. What is not in it</summary>',
            f"<ul>{left_out}</ul></details>",
            '<div id="app"><p class="starting">The log is being unpacked.</p></div>',
            "<noscript><p>The log is drawn by scripts of this file, which this browser does not run.</p></noscript>",
            *chunks,
            f'<script type="module">{_BOOT}</script>',
            "</body>",
            "</html>",
        ]
    )


_STYLE: Final = """
.file-note{font:12.5px/1.5 system-ui,sans-serif;padding:4px 16px;color:light-dark(#52525b,#a1a1aa)}
.file-note{border-bottom:1px solid light-dark(#d4d4d8,#3f3f46)}
.file-note summary{cursor:pointer}.file-note ul{margin:4px 0 8px;padding-left:20px}
"""


_KINDS: Final = {False: ", as a file", True: ": its window"}


def _taken(carried: Carried) -> list[str]:
    """Describe what was taken out, by kind."""
    if carried.cleaner is None:
        return []
    kinds = carried.cleaner.kinds.items()
    return [f"{times:,} of the kind {kind!r}, taken out before it was shared." for kind, times in kinds]


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
