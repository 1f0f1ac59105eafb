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
_HEX, _LOWER, _UPPER = "[0-9a-f]", "[a-z0-9]", "[A-Z0-9]"
_ALNUM, _URL, _BASE64 = "[A-Za-z0-9]", r"[\w-]", "[A-Za-z0-9+/]"
_UUID: Final = rf"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}"
_BEGINNINGS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("1password", ("ops_eyJ",), rf"{_BASE64}{{200,}}={{0,3}}"),
    ("adobe", ("p8e-",), rf"{_LOWER}{{32}}"),
    ("age", ("AGE-SECRET-KEY-1",), rf"{_UPPER}{{58}}"),
    ("airtable", ("pat",), rf"{_ALNUM}{{14}}\.{_HEX}{{64}}"),
    ("alibaba", ("LTAI",), rf"{_ALNUM}{{20}}"),
    ("anthropic", ("sk-ant-",), rf"{_ALNUM}{{2,10}}-{_URL}{{24,}}"),
    ("artifactory", ("AKCp", "cmVmdGtu"), rf"{_ALNUM}{{50,80}}"),
    ("atlassian", ("ATATT3", "ATCTT3", "ATBB"), rf"{_URL}{{32,}}=?"),
    ("aws", ("AKIA", "ASIA", "ABIA", "ACCA"), "[A-Z2-7]{16}"),
    ("aws", ("ABSK",), rf"{_BASE64}{{100,}}={{0,2}}"),
    ("azure", ("AccountKey=", "SharedAccessKey="), rf"{_BASE64}{{43,86}}={{1,2}}"),
    ("brevo", ("xkeysib-", "xsmtpsib-"), rf"{_HEX}{{64}}-{_ALNUM}{{16}}"),
    ("cloudflare", ("v1.0-",), rf"{_HEX}{{24}}-{_HEX}{{146}}"),
    ("databricks", ("dapi",), rf"{_HEX}{{32}}(?:-\d)?"),
    ("digitalocean", ("dop_v1_", "doo_v1_", "dor_v1_"), rf"{_HEX}{{64}}"),
    ("discord", ("M", "N", "O"), rf"(?=[\w.-]*\d){_ALNUM}{{23,25}}\.{_URL}{{6}}\.{_URL}{{27,38}}"),
    ("doppler", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa."), rf"{_ALNUM}{{40,44}}"),
    ("duffel", ("duffel_live_", "duffel_test_"), rf"{_URL}{{43}}"),
    ("dynatrace", ("dt0c01.",), rf"{_UPPER}{{24}}\.{_UPPER}{{64}}"),
    ("easypost", ("EZAK", "EZTK"), rf"{_ALNUM}{{54}}"),
    ("facebook", ("EAAC", "EAAM", "EAAB", "EAAG"), rf"{_ALNUM}{{100,}}"),
    ("flutterwave", ("FLWSECK_TEST-", "FLWSECK-"), rf"{_HEX}{{32}}-X"),
    ("fly", ("fo1_",), rf"{_URL}{{43}}"),
    ("fly", ("fm1a_", "fm1r_", "fm2_"), rf"{_BASE64}{{100,}}={{0,3}}"),
    ("frameio", ("fio-u-",), rf"{_URL}{{64}}"),
    ("github", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), rf"{_ALNUM}{{36,}}"),
    ("github", ("github_pat_",), rf"{_ALNUM}{{22}}_{_ALNUM}{{59}}"),
    ("gitlab", ("glpat-", "gldt-", "glptt-", "glrt-", "glsoat-", "glcbt-"), rf"{_URL}{{20,}}"),
    ("gitlab", ("glft-", "glimt-", "gloas-", "glagent-", "glffct-", "GR1348941"), rf"{_URL}{{20,}}"),
    ("google", ("AIza",), rf"{_URL}{{35}}"),
    ("google", ("AQVN",), rf"{_URL}{{35,38}}"),
    ("google-oauth", ("ya29.",), rf"{_URL}{{30,}}"),
    ("google-oauth", ("GOCSPX-",), rf"{_URL}{{28}}"),
    ("grafana", ("glc_",), rf"{_BASE64}{{32,}}={{0,2}}"),
    ("grafana", ("glsa_",), rf"{_ALNUM}{{32}}_[0-9A-Fa-f]{{8}}"),
    ("groq", ("gsk_",), rf"{_ALNUM}{{48,56}}"),
    ("harness", ("pat.", "sat."), rf"{_URL}{{22}}\.{_HEX}{{24}}\.{_ALNUM}{{20}}"),
    ("heroku", ("HRKU-AA",), rf"{_URL}{{58}}"),
    ("huggingface", ("hf_", "api_org_"), r"[A-Za-z]{34}"),
    ("jwt", ("eyJ",), rf"{_URL}{{14,}}\.eyJ{_URL}{{14,}}\.{_URL}{{20,}}"),
    ("linear", ("lin_api_", "lin_oauth_"), rf"{_ALNUM}{{40,64}}"),
    ("mailgun", ("key-",), rf"{_HEX}{{32}}"),
    ("mapbox", ("sk.eyJ",), rf"{_URL}{{50,}}\.{_URL}{{22}}"),
    ("newrelic", ("NRAK-", "NRII-"), r"[A-Za-z0-9-]{27,32}"),
    ("npm", ("npm_",), rf"{_ALNUM}{{36}}"),
    ("nuget", ("oy2",), "[a-z2-7]{43}"),
    ("octopus", ("API-",), rf"(?=[A-Z]*\d){_UPPER}{{26}}"),
    ("openai", ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"), rf"{_URL}{{24,}}"),
    ("openai", ("sk-",), rf"{_ALNUM}{{20}}T3BlbkFJ{_ALNUM}{{20}}"),
    ("openrouter", ("sk-or-v1-",), rf"{_HEX}{{64}}"),
    ("openshift", ("sha256~",), rf"{_URL}{{43}}"),
    ("perplexity", ("pplx-",), rf"{_ALNUM}{{40,64}}"),
    ("plaid", ("access-sandbox-", "access-development-", "access-production-"), _UUID),
    ("planetscale", ("pscale_tkn_", "pscale_oauth_", "pscale_pw_"), r"[\w=.-]{32,64}"),
    ("postman", ("PMAK-",), rf"{_HEX}{{24}}-{_HEX}{{34}}"),
    ("prefect", ("pnu_",), rf"{_ALNUM}{{36}}"),
    ("pulumi", ("pul-",), rf"{_HEX}{{40}}"),
    ("pypi", ("pypi-AgEI",), rf"{_URL}{{50,}}"),
    ("readme", ("rdme_",), rf"{_LOWER}{{70}}"),
    ("replicate", ("r8_",), rf"{_ALNUM}{{37}}"),
    ("rubygems", ("rubygems_",), rf"{_HEX}{{48}}"),
    ("scalingo", ("tk-us-",), rf"{_URL}{{48}}"),
    ("sendgrid", ("SG.",), rf"{_URL}{{22}}\.{_URL}{{43}}"),
    ("sentry", ("sntryu_",), rf"{_HEX}{{64}}"),
    ("sentry", ("sntrys_eyJ",), rf"{_BASE64}{{20,}}={{0,2}}_{_BASE64}{{43}}"),
    ("shippo", ("shippo_live_", "shippo_test_"), rf"{_HEX}{{40}}"),
    ("shopify", ("shpat_", "shpca_", "shppa_", "shpss_"), "[0-9A-Fa-f]{32}"),
    ("slack", ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), "[A-Za-z0-9-]{20,}"),
    ("slack", ("xoxe.xoxb-", "xoxe.xoxp-"), "[A-Za-z0-9-]{20,}"),
    ("slack", ("https://hooks.slack.com/services/",), rf"T{_UPPER}{{6,}}/B{_UPPER}{{6,}}/{_ALNUM}{{20,}}"),
    ("sourcegraph", ("sgp_",), rf"(?:(?:{_HEX}{{16}}|local)_)?{_HEX}{{40}}"),
    ("square", ("sq0atp-", "sq0csp-"), rf"{_URL}{{22,60}}"),
    ("stripe", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), rf"{_ALNUM}{{20,}}"),
    ("stripe", ("whsec_",), rf"{_ALNUM}{{32,}}"),
    ("supabase", ("sbp_", "sb_secret_"), r"[A-Za-z0-9_-]{30,40}"),
    ("twilio", ("SK",), rf"{_HEX}{{32}}"),
    ("vault", ("hvs.", "hvb.", "hvr."), rf"{_URL}{{24,}}"),
    ("xai", ("xai-",), rf"{_ALNUM}{{70,90}}"),
)
"""Kinds, what their credentials begin with, and what follows; as their issuers document them."""
_SHAPES: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    (
        "private-key",
        ("PRIVATE KEY",),
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]{16,}?-----END [A-Z0-9 ]*-----",
    ),
    ("azure", ("Q~",), rf"(?<![\w~.-])[A-Za-z0-9_~.]{{3}}\dQ~[A-Za-z0-9_~.-]{{31,34}}{_END}"),
    ("hashicorp", (".atlasv1.",), rf"{_EDGE}{_ALNUM}{{14}}\.atlasv1\.{_URL}{{60,70}}{_END}"),
    ("mailchimp", ("-us",), rf"{_EDGE}{_HEX}{{32}}-us\d{{1,2}}{_END}"),
    ("maxmind", ("_mmk",), rf"{_EDGE}{_ALNUM}{{6}}_{_ALNUM}{{29}}_mmk{_END}"),
    ("teams", (".webhook.office.com",), r"https://[a-z0-9]+\.webhook\.office\.com/webhookb2/[\w@/-]{100,}"),
    ("telegram", (":AA",), rf"{_EDGE}[0-9]{{8,10}}:AA{_URL}{{33}}{_END}"),
)
"""Kinds whose credentials do not begin with a fixed word: what a text must hold to be looked at, and the shape."""
_KNOWN: Final = (
    *((kind, hints, re.compile(shape)) for kind, hints, shape in _SHAPES),
    *(
        (kind, hints, re.compile(rf"{_EDGE}(?:{'|'.join(map(re.escape, hints))}){rest}{_END}"))
        for kind, hints, rest in _BEGINNINGS
    ),
)
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
"""Bits a character of a labelled value: random text in base 64 has more, identifiers and paths have less."""
_HEX_BITS: Final = 3.2
_LEAST_DIGITS: Final = 3
"""Digits of a value of small letters and digits alone, apart from each other, which words with a number lack."""
_SLASHES: Final = 16
"""Characters for each slash in a value: a path has more of them."""
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
        labelled = _LABELLED.finditer(text)
        found += [Credential("secret", *m.span("value")) for m in labelled if _is_secret(m["value"], m["set"].strip())]
    apart: list[Credential] = []
    for one in sorted(found, key=lambda c: (c.start, -c.end)):
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
    return apart


def _is_meant(value: str) -> bool:
    return _PLACEHOLDER.search(value) is None and not value.startswith(("$", "{", "%"))


def _is_secret(value: str, sign: str) -> bool:
    """Return whether a labelled value looks like a secret; one that is set by a sign may be of fewer characters."""
    if not _is_meant(value) or value.count("/") > max(2, len(value) // _SLASHES) or value.count(".") > 2:
        return False
    if re.fullmatch(r"[0-9a-f]{32,}|[0-9A-F]{32,}", value):
        return _bits(value) >= _HEX_BITS
    if sign and re.fullmatch(_UUID, value):
        return True
    if value.startswith("sk-") and re.fullmatch(_HEX + "{32,}", value[3:]):
        return True
    kinds = sum(any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit))
    mixed = sign and re.fullmatch(_LOWER + "{22,}", value) and len(re.findall(r"[a-z](?=\d)", value)) >= _LEAST_DIGITS
    return (kinds == 3 or bool(mixed)) and _bits(value) >= _LEAST_BITS


def _bits(value: str) -> float:
    """Return the bits a character of a value, as its own characters have it."""
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
