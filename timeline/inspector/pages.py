"""The files of the page, from the folder `web` beside this module: read once, and none beside them is ever opened."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

_KINDS: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "woff2": "font/woff2",
}
_INLINE: Final = re.compile(rb"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
_REST: Final = (
    "style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'"
)
IN_FRAME: Final = "frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
"""What the lab's page may, which our page shows in a frame; what it may load is in the page itself, by hashes."""
POLICY: Final = f"default-src 'none'; script-src 'self'; {_REST}"
"""What a page of ours may load: its own files, and nothing of anywhere else."""


class PageFile(NamedTuple):
    """A file of the page: its content, its content type, its tag, and what it may load."""

    body: bytes
    kind: str
    tag: str
    policy: str


@cache
def page_files() -> Mapping[str, PageFile]:
    """Return the files of the page by their path below it; the page itself is at the empty path too."""
    folder = files(__package__) / "web"
    found = {path: _page_file(path, file.read_bytes()) for path, file in _walk(folder, "")} if folder.is_dir() else {}
    return {**found, "": found["index.html"]} if "index.html" in found else found


def _walk(folder: Traversable, below: str) -> Iterator[tuple[str, Traversable]]:
    for child in folder.iterdir():
        if child.is_dir():
            yield from _walk(child, f"{below}{child.name}/")
        elif child.name.rpartition(".")[2] in _KINDS:
            yield f"{below}{child.name}", child


def _page_file(path: str, body: bytes) -> PageFile:
    tag = f'"{sha256(body).hexdigest()[:32]}"'
    kind = _KINDS[path.rpartition(".")[2]]
    return PageFile(body, kind, tag, _policy(body) if path.endswith(".html") else POLICY)


def _policy(page: bytes) -> str:
    """Return the policy of a page, which allows the scripts in it by their hashes."""
    hashes = [f"'sha256-{b64encode(sha256(text).digest()).decode()}'" for text in _INLINE.findall(page)]
    allowed = " ".join(["'self'", *hashes])
    return f"default-src 'none'; script-src {allowed}; {_REST}"
