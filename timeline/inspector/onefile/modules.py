"""Put the page's modules into one file: an import map names each of them, so that they stay what they are.

A page from disk may load no module beside it. A module as a `data:` URL may, by a name that the import map has; so each
relative name in an `import` becomes such a name, and nothing else is changed.
"""

from __future__ import annotations

import json
import posixpath
import re
from base64 import b64encode
from functools import cache
from typing import TYPE_CHECKING, Final

from timeline.inspector.pages import page_files

if TYPE_CHECKING:
    from collections.abc import Iterator

ENTRY: Final = "static/main.js"
_NAMES: Final = re.compile(
    r"""^(?P<before>(?:import|export)\b[^;"']*?\bfrom\s*|import\s*)(?P<quote>["'])(?P<name>\.{1,2}/[^"']+)(?P=quote)""",
    re.MULTILINE,
)


def _resolved(module: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(module), name))


def reached() -> list[str]:
    """Return the modules that the page of a file imports, with itself."""
    found: dict[str, None] = {}

    def follow(module: str) -> None:
        if module not in found:
            found[module] = None
            for match in _NAMES.finditer(page_files()[module].body.decode()):
                follow(_resolved(module, match["name"]))

    follow(ENTRY)
    return list(found)


@cache
def import_map() -> str:
    """Return the import map with all modules in it, as JSON that may be in a script element."""
    urls = {f"tl/{module}": _url(module) for module in reached()}
    return json.dumps({"imports": urls}).replace("</", "<\\/")


def _url(module: str) -> str:
    text = page_files()[module].body.decode()
    renamed = _NAMES.sub(lambda m: f'{m["before"]}"tl/{_resolved(module, m["name"])}"', text)
    return f"data:text/javascript;base64,{b64encode(renamed.encode()).decode()}"


def styles() -> Iterator[str]:
    """Return the page's style sheets, in the order in which the page names them."""
    page = page_files()["index.html"].body.decode()
    for name in re.findall(r'<link rel="stylesheet" href="([^"]+)">', page):
        yield page_files()[name].body.decode()
