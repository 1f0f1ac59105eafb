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
    from collections.abc import Iterator

    from timeline.blocks import Block

_EDGE: Final = r"(?<![A-Za-z0-9_-])"
_END: Final = r"(?![A-Za-z0-9_-])"
_SHAPES: Final[tuple[tuple[str, str], ...]] = (
    ("private-key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]{16,}?-----END [A-Z0-9 ]*-----"),
    ("anthropic", rf"{_EDGE}sk-ant-[A-Za-z0-9]{{2,10}}-[A-Za-z0-9_-]{{24,}}"),
    ("openai", rf"{_EDGE}sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{{24,}}"),
    ("openai", rf"{_EDGE}sk-[A-Za-z0-9]{{20}}T3BlbkFJ[A-Za-z0-9]{{20}}{_END}"),
    ("openrouter", rf"{_EDGE}sk-or-v1-[0-9a-f]{{64}}{_END}"),
    ("github", rf"{_EDGE}gh[pousr]_[A-Za-z0-9]{{36,}}{_END}"),
    ("github", rf"{_EDGE}github_pat_[A-Za-z0-9]{{22}}_[A-Za-z0-9]{{59}}{_END}"),
    ("gitlab", rf"{_EDGE}gl(?:pat|dt|ptt|rt|soat|cbt)-[A-Za-z0-9_-]{{20,}}"),
    ("aws", rf"{_EDGE}(?:AKIA|ASIA)[A-Z2-7]{{16}}{_END}"),
    ("google", rf"{_EDGE}AIza[A-Za-z0-9_-]{{35}}{_END}"),
    ("google-oauth", rf"{_EDGE}(?:ya29\.[A-Za-z0-9_-]{{30,}}|GOCSPX-[A-Za-z0-9_-]{{28}}){_END}"),
    ("slack", rf"{_EDGE}xox[abeoprs]-[A-Za-z0-9-]{{20,}}"),
    ("slack", r"https://hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,}"),
    ("stripe", rf"{_EDGE}(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{{20,}}{_END}"),
    ("stripe", rf"{_EDGE}whsec_[A-Za-z0-9]{{32,}}{_END}"),
    ("npm", rf"{_EDGE}npm_[A-Za-z0-9]{{36}}{_END}"),
    ("pypi", rf"{_EDGE}pypi-AgEI[A-Za-z0-9_-]{{50,}}"),
    ("huggingface", rf"{_EDGE}hf_[A-Za-z]{{34}}{_END}"),
    ("sendgrid", rf"{_EDGE}SG\.[A-Za-z0-9_-]{{22}}\.[A-Za-z0-9_-]{{43}}{_END}"),
    ("telegram", rf"{_EDGE}[0-9]{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}"),
    ("digitalocean", rf"{_EDGE}do[opr]_v1_[0-9a-f]{{64}}{_END}"),
    ("jwt", rf"{_EDGE}eyJ[A-Za-z0-9_-]{{14,}}\.eyJ[A-Za-z0-9_-]{{14,}}\.[A-Za-z0-9_-]{{20,}}"),
)
_KNOWN: Final = re.compile("|".join(f"(?P<s{n}>{shape})" for n, (_, shape) in enumerate(_SHAPES)))
_HINT: Final = re.compile(
    r"BEGIN |sk-|gh[pousr]_|github_pat|gl[a-z]{2,4}-|AKIA|ASIA|AIza|ya29|GOCSPX|xox|hooks\.slack|_live_|_test_|whsec_|npm_"
    r"|pypi-|hf_|SG\.|:AA|do[opr]_v1|eyJ|://|(?i:secret|token|passw|api_?-?key|bearer)"
)
"""What a text must have somewhere to be looked at more closely."""
_IN_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@'\"<>]{1,64}:(?P<value>[^\s:/@'\"<>]{6,128})@")
_LABELLED: Final = re.compile(
    r"(?i)\b[a-z0-9_.-]{0,40}(?:secret|passw(?:or)?d|(?:api|access)[_-]?key|(?:auth|access)?[_-]?token|bearer)"
    r"[a-z0-9_]{0,20}[\"']?\s*(?:[:=]\s*|\s+)[\"']?(?P<value>[A-Za-z0-9+/_=.~-]{20,200})(?![A-Za-z0-9(\[])"
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
    if _HINT.search(text) is None:
        return []
    found = [_known(match) for match in _KNOWN.finditer(text)]
    found += [Credential("url", *match.span("value")) for match in _IN_URL.finditer(text) if _is_meant(match["value"])]
    found += [Credential("secret", *m.span("value")) for m in _LABELLED.finditer(text) if _is_random(m["value"])]
    apart: list[Credential] = []
    for one in sorted(found, key=lambda c: (c.start, -c.end)):
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
    return apart


def _known(match: re.Match[str]) -> Credential:
    return Credential(_SHAPES[int((match.lastgroup or "s0")[1:])][0], *match.span())


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


def kinds() -> Iterator[str]:
    """Yield the kinds of credentials that are recognised, each once."""
    yield from dict.fromkeys((*(kind for kind, _ in _SHAPES), "url", "secret"))
