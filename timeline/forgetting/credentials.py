"""Recognise common credentials by their shapes, and mask them before they are stored.

Each shape is one that its issuer documents, with a fixed beginning and a length, or a labelled value that looks random.
A word that merely sounds secret is not masked: false alarms would take text out of a conversation for good.
"""

from __future__ import annotations

import re
from math import log2
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.blocks import ToolCall

if TYPE_CHECKING:
    from timeline.blocks import Block

_EDGE: Final = r"(?<![A-Za-z0-9_-])"
_END: Final = r"(?![A-Za-z0-9_-])"
_SHAPES: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    (
        "private-key",
        ("PRIVATE KEY",),
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]{16,}?-----END [A-Z0-9 ]*-----",
    ),
    ("anthropic", ("sk-ant-",), rf"{_EDGE}sk-ant-[A-Za-z0-9]{{2,10}}-[A-Za-z0-9_-]{{24,}}"),
    ("openai", ("sk-",), rf"{_EDGE}sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{{24,}}"),
    ("openai", ("T3BlbkFJ",), rf"{_EDGE}sk-[A-Za-z0-9]{{20}}T3BlbkFJ[A-Za-z0-9]{{20}}{_END}"),
    ("openrouter", ("sk-or-v1-",), rf"{_EDGE}sk-or-v1-[0-9a-f]{{64}}{_END}"),
    ("github", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), rf"{_EDGE}gh[pousr]_[A-Za-z0-9]{{36,}}{_END}"),
    ("github", ("github_pat_",), rf"{_EDGE}github_pat_[A-Za-z0-9]{{22}}_[A-Za-z0-9]{{59}}{_END}"),
    (
        "gitlab",
        ("glpat-", "gldt-", "glptt-", "glrt-", "glsoat-", "glcbt-"),
        rf"{_EDGE}gl(?:pat|dt|ptt|rt|soat|cbt)-[A-Za-z0-9_-]{{20,}}",
    ),
    ("aws", ("AKIA", "ASIA"), rf"{_EDGE}(?:AKIA|ASIA)[A-Z2-7]{{16}}{_END}"),
    ("google", ("AIza",), rf"{_EDGE}AIza[A-Za-z0-9_-]{{35}}{_END}"),
    ("google-oauth", ("ya29.", "GOCSPX-"), rf"{_EDGE}(?:ya29\.[\w-]{{30,}}|GOCSPX-[\w-]{{28}}){_END}"),
    ("slack", ("xox",), rf"{_EDGE}xox[abeoprs]-[A-Za-z0-9-]{{20,}}"),
    ("slack", ("hooks.slack",), r"https://hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,}"),
    ("stripe", ("_live_", "_test_"), rf"{_EDGE}(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{{20,}}{_END}"),
    ("stripe", ("whsec_",), rf"{_EDGE}whsec_[A-Za-z0-9]{{32,}}{_END}"),
    ("npm", ("npm_",), rf"{_EDGE}npm_[A-Za-z0-9]{{36}}{_END}"),
    ("pypi", ("pypi-AgEI",), rf"{_EDGE}pypi-AgEI[A-Za-z0-9_-]{{50,}}"),
    ("huggingface", ("hf_",), rf"{_EDGE}hf_[A-Za-z]{{34}}{_END}"),
    ("sendgrid", ("SG.",), rf"{_EDGE}SG\.[A-Za-z0-9_-]{{22}}\.[A-Za-z0-9_-]{{43}}{_END}"),
    ("telegram", (":AA",), rf"{_EDGE}[0-9]{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}"),
    ("digitalocean", ("_v1_",), rf"{_EDGE}do[opr]_v1_[0-9a-f]{{64}}{_END}"),
    ("jwt", (".eyJ",), rf"{_EDGE}eyJ[A-Za-z0-9_-]{{14,}}\.eyJ[A-Za-z0-9_-]{{14,}}\.[A-Za-z0-9_-]{{20,}}"),
)
"""Kinds, with what a text must have somewhere to be looked at more closely, and the shape."""
_KNOWN: Final = tuple((kind, hints, re.compile(shape)) for kind, hints, shape in _SHAPES)
_IN_URL: Final = re.compile(r"://[^\s:/@'\"<>]{1,64}:(?P<value>[^\s:/@'\"<>]{6,128})@")
_LABELS: Final = (
    "secret",
    "passw",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "access-key",
    "accesskey",
    "token",
    "bearer",
)
_LABELLED: Final = re.compile(
    r"(?:secret|passw(?:or)?d|(?:api|access)[_-]?key|token|bearer)"
    r"[a-z0-9_]{0,20}[\"']?\s*(?:[:=]\s*|\s)[\"']?(?P<value>[a-z0-9+/_=.~-]{20,200})(?![a-z0-9(\[])",
    re.IGNORECASE,
)
_LEAST_BITS: Final = 3.6
"""Bits a character of a labelled value: random text in base 64 has more, identifiers and paths have less."""
_HEX_BITS: Final = 3.2
_PLACEHOLDER: Final = re.compile(r"(?i)xxx|\*\*\*|\.\.\.|your|example|placeholder|redacted|dummy|changeme|<|\$\{|test")


class Credential(NamedTuple):
    """A credential in a text: its kind, and where it is."""

    kind: str
    start: int
    end: int


def credentials_in(text: str) -> list[Credential]:
    """Return the credentials in a text, in order, none inside another."""
    found = [
        Credential(kind, *match.span())
        for kind, hints, shape in _KNOWN
        if any(hint in text for hint in hints)
        for match in shape.finditer(text)
    ]
    if "://" in text and "@" in text:
        found += [Credential("url", *m.span("value")) for m in _IN_URL.finditer(text) if _is_meant(m["value"])]
    folded = text.lower()
    if any(label in folded for label in _LABELS):
        found += [Credential("secret", *m.span("value")) for m in _LABELLED.finditer(text) if _is_random(m["value"])]
    apart: list[Credential] = []
    for one in sorted(found, key=lambda c: (c.start, -c.end)):
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
    return apart


def _is_meant(value: str) -> bool:
    return _PLACEHOLDER.search(value) is None and not value.startswith(("$", "{", "%"))


def _is_random(value: str) -> bool:
    """Return whether a labelled value looks random: of several kinds of characters, with few repeated."""
    kinds = sum(any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit))
    is_hex = re.fullmatch(r"[0-9a-f]{32,}|[0-9A-F]{32,}", value) is not None
    if not _is_meant(value) or (kinds < 3 and not is_hex) or value.count("/") > 2 or value.count(".") > 2:
        return False
    bits = -sum(n / len(value) * log2(n / len(value)) for n in (value.count(c) for c in set(value)))
    return bits >= (_HEX_BITS if is_hex else _LEAST_BITS)


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
