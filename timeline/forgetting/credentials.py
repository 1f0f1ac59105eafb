"""Recognise common credentials by their shapes, and mask them before they are stored.

Each shape is one that its issuer documents, with a fixed beginning and a length, or a labelled value that looks random.
A word that merely sounds secret is not masked: false alarms would take text out of a conversation for good.
"""

from __future__ import annotations

import re
from math import log2
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.blocks import ToolCall
from timeline.forgetting.credential_shapes import (
    BEGINNINGS,
    EDGE,
    END,
    HEX,
    KEY_BEGINS,
    KEY_ENDS,
    LOWER,
    SHAPES,
    UUID,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.blocks import Block

_KNOWN: Final = (
    *((kind, hints, re.compile(shape)) for kind, hints, shape in SHAPES),
    *(
        # In ASCII, as the edge is: letters of other scripts would let a search begin again and again within one word.
        (kind, hints, re.compile(rf"{EDGE}(?:{'|'.join(map(re.escape, hints))}){rest}{END}", re.ASCII))
        for kind, hints, rest in BEGINNINGS
    ),
)
_HINTS: Final = tuple((hint, number) for number, (_, hints, _) in enumerate(_KNOWN) for hint in hints)
"""What a text of a kind has, with the kind's number: in one list, since most texts have none of several hundred."""
_KEY_BEGINS: Final = re.compile(KEY_BEGINS)
_KEY_ENDS: Final = re.compile(KEY_ENDS)
_LEAST_KEY: Final = 16
"""Fewest characters between the lines around a private key."""
_IN_URL: Final = re.compile(r"://[^\s:/@'\"<>]{1,64}:(?P<value>[^\s:/@'\"<>]{6,128})@")
_LABELS: Final = (
    "secret",
    "passw",
    "apikey",
    "api_key",
    "api-key",
    "app_key",
    "app-key",
    "access_key",
    "access-key",
    "accesskey",
    "token",
    "bearer",
)
_LABELLED: Final = re.compile(
    r"(?:secret|passw(?:or)?d|(?:api|app|access)[_-]?key|token|bearer)"
    r"[a-z0-9_-]{0,20}[\"']?\s*(?P<set>[:=]\s*|\s)[\"']?(?P<value>[a-z0-9+/_=.~-]{20,200})(?![a-z0-9(\[])",
    re.IGNORECASE,
)
_LEAST_BITS: Final = 3.6
"""Fewest bits for each character of a labelled value: random base64 has more, identifiers and paths have less."""
_HEX_BITS: Final = 3.2
_LEAST_DIGITS: Final = 3
"""Fewest separate digits in a value of small letters and digits alone; a word with a number has fewer."""
_SLASHES: Final = 16
"""Fewest characters for each slash in a value: a path has more slashes."""
_PLACEHOLDER: Final = re.compile(r"(?i)xxx|\*\*\*|\.\.\.|your|example|placeholder|redacted|dummy|changeme|<|\$\{|test")


class Credential(NamedTuple):
    """A credential in a text: its kind, and where it is."""

    kind: str
    start: int
    end: int


def credentials_in(text: str) -> list[Credential]:
    """Return the credentials in a text, in order, none inside another."""
    hinted = sorted({number for hint, number in _HINTS if hint in text})
    shapes = ((kind, shape) for kind, _, shape in map(_KNOWN.__getitem__, hinted))
    found = [Credential(kind, *match.span()) for kind, shape in shapes for match in shape.finditer(text)]
    if "PRIVATE KEY" in text:
        found += [Credential("private-key", *place) for place in _private_keys(text)]
    if "://" in text and "@" in text:
        found += [Credential("url", *m.span("value")) for m in _IN_URL.finditer(text) if _is_meant(m["value"])]
    folded = text.lower()
    if any(label in folded for label in _LABELS):
        labelled = _LABELLED.finditer(text)
        found += [Credential("secret", *m.span("value")) for m in labelled if _is_secret(m["value"], m["set"].strip())]
    apart: list[Credential] = []
    for one in sorted(found, key=lambda c: (c.start, -c.end)):
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
    return apart


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of private keys. If one has no end, those behind it have none either."""
    begun = _KEY_BEGINS.search(text)
    while begun and (ended := _KEY_ENDS.search(text, begun.end() + _LEAST_KEY)):
        yield begun.start(), ended.end()
        begun = _KEY_BEGINS.search(text, ended.end())


def _is_meant(value: str) -> bool:
    return _PLACEHOLDER.search(value) is None and not value.startswith(("$", "{", "%"))


def _is_secret(value: str, sign: str) -> bool:
    """Return whether a labelled value looks like a secret; one that a sign sets may have fewer characters."""
    if not _is_meant(value) or value.count("/") > max(2, len(value) // _SLASHES) or value.count(".") > 2:
        return False
    if re.fullmatch(r"[0-9a-f]{32,}|[0-9A-F]{32,}", value):
        return _bits(value) >= _HEX_BITS
    if sign and re.fullmatch(UUID, value):
        return True
    if value.startswith("sk-") and re.fullmatch(HEX + "{32,}", value[3:]):
        return True
    kinds = sum(any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit))
    mixed = sign and re.fullmatch(LOWER + "{22,}", value) and len(re.findall(r"[a-z](?=\d)", value)) >= _LEAST_DIGITS
    return (kinds == 3 or bool(mixed)) and _bits(value) >= _LEAST_BITS


def _bits(value: str) -> float:
    """Return the entropy of a value in bits a character, from how often each of its characters occurs."""
    return -sum(n / len(value) * log2(n / len(value)) for n in (value.count(c) for c in set(value)))


def masked(text: str) -> str:
    """Return a text with its credentials masked, each by its kind: ``[masked: github]``."""
    parts: list[str] = []
    at = 0
    for found in credentials_in(text):
        parts += [text[at : found.start], f"[masked: {found.kind}]"]
        at = found.end
    return "".join((*parts, text[at:])) if parts else text


def mask_credentials(block: Block) -> Block:
    """Return a block with common credentials masked, in its text, its data, its meta and the arguments of a call.

    Give it as a hook, and no such credential is stored. What a shape does not show, such as a password of words, it
    does not find.

    Example:
        ```python
        from timeline import Hooks, Timeline, open_store
        from timeline.forgetting import mask_credentials

        store = await open_store("memory://")
        timeline = await Timeline.open(store, "cards", hooks=Hooks(on_append=mask_credentials))
        [prompt] = await timeline.append({"type": "user.prompt", "text": f"Use ghp_{'a1B2' * 9}."})
        assert prompt.text == "Use [masked: github]."
        ```
    """
    changes: dict[str, Any] = {}
    for name in ("text", "data", "meta", *(("arguments",) if isinstance(block, ToolCall) else ())):
        old = getattr(block, name)
        new = _masked_value(old)
        if new != old:
            changes[name] = new
    return block.model_copy(update=changes) if changes else block


def _masked_value(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list):
        return [_masked_value(item) for item in value]
    if isinstance(value, dict):
        return {masked(key): _masked_value(item) for key, item in value.items()}
    return value
