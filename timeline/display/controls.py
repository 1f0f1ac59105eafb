"""Take the effect from control characters: what a conversation holds cannot steer the terminal or page that shows it.

C0 (but not the line end and the tab), DEL and C1 can move a cursor, clear a screen or set a title; the bidirectional
controls of Unicode reorder the text around them (https://trojansource.codes).
"""

from __future__ import annotations

import re
from typing import Final

_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_CONTROLS: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}]")


def show_controls(text: str) -> str:
    """Replace each control character by a visible one; the length stays the same.

    Use it for text that a person reads, in a terminal, a page or an error. C0 and DEL become their pictures (␛), C1
    and bidirectional controls become U+FFFD.
    """
    return _CONTROLS.sub(_picture, text)


def escape_controls(text: str) -> str:
    r"""Escape each control character in JSON or TOML as ``\u001b``; what reads the text gets the same value.

    Use it for text that a machine reads and a terminal may show. Line ends and tabs outside strings stay.
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 32:
        return chr(0x2400 + code)
    return "\u2421" if code == 127 else "\ufffd"
