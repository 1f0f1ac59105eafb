"""Recognise the URLs of stores, and write them for people: a password is never shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, urlencode

from timeline.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SERVERS: Final = frozenset({"postgresql", "postgres"})
_SECRETS: Final = ("pass", "pwd", "listen_url")
"""A setting whose name contains one of these may hold a password."""
_NAMED: Final = r"(?:password|(?<![a-z])(?:passwd|pass|pwd))\s*="
"""The beginning of a password that is given by a name."""
_SECRET: Final = re.compile(_NAMED, re.IGNORECASE)
_SCHEME: Final = r"(?:postgres(?:ql)?|pgsql)(?:\+\w+)?"
_BEGINS: Final = re.compile(rf"\s*(?P<scheme>(?:jdbc:)?{_SCHEME})\s*(?::|//.*@)", re.IGNORECASE)
"""How an address of PostgreSQL begins, and hardly the name of a file: its slashes or its colon may be missing."""
_IN_TEXT: Final = re.compile(rf"({_SCHEME}(?::/{{0,2}}|//)[^\s:@/?]*):(?!password@)\S*@", re.IGNORECASE)
"""An address with a password, but for the one that `WRITE_IT` shows."""
_NAMED_IN_TEXT: Final = re.compile(rf"({_NAMED}\s*)(?:'[^']*'|\"[^\"]*\"|\S+)", re.IGNORECASE)
_SHORT: Final = re.compile(r"(sqlite|file|memory):(?!//)")
"""How a URL begins whose slashes are missing, and hardly the name of a file."""
_BEHIND_THE_NAME: Final = re.compile(r"[:@/?;=\s]")
_HOST: Final = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::\d*)?")
_PLAIN: Final = re.compile(r"[\w\s=.,'/-]*")
"""Settings before a password, in the form ``host=db user=ann``."""
EXAMPLE: Final = "postgresql://user@host:5432/database"
WRITE_IT: Final = (
    "Write postgresql://user:password@host:5432/database, with / ? # [ ] @ : % in the password as"
    " %2F %3F %23 %5B %5D %40 %3A %25."
)


def is_server(url: str) -> bool:
    """Return whether a path or URL names a store on a server."""
    scheme, separator, _ = url.partition("://")
    return bool(separator) and scheme.partition("+")[0] in _SERVERS


def is_mistyped(location: str) -> bool:
    """Return whether a path or URL looks like an address of PostgreSQL that cannot be read as one.

    The URL of a file, ``sqlite:///``, opens one whose name looks so.
    """
    _, separator, rest = location.partition("://")
    if is_server(location):
        place, _, query = rest.partition("?")
        return _has_named_password(place) or any("=" not in before for before in _before_at(query))
    return _BEGINS.match(location) is not None or (not separator and _SECRET.search(location) is not None)


def check_address(location: str) -> None:
    """Refuse what is no address: a file of that name would be made, and would show a password in the name.

    Raises:
        StoreError: it is a mistyped address of PostgreSQL, SQLite's name for a database in memory, or a scheme without
            its two slashes.
    """
    if location == ":memory:":
        raise StoreError(":memory:: write memory:// for a store in memory, or ./:memory: for a file of that name.")
    if is_mistyped(location):
        raise StoreError(f"{without_password(location)}: this is not a PostgreSQL URL that can be used. {WRITE_IT}")
    if short := _SHORT.match(location):
        cure = "memory:// for a store in memory" if short[1] == "memory" else "sqlite:///agent.db, or the path alone"
        raise StoreError(f"{location}: write {cure}; ./{location} is a file of that name.")


def without_password(url: str) -> str:
    """Return a path or URL as errors and output show it: without a password, or a setting that may hold one.

    Of a mistyped address, only that is shown which is certainly no part of a password.
    """
    scheme, separator, rest = url.partition("://")
    if not is_server(url) and is_mistyped(url):
        return _beginning(url)
    if not separator:
        return url
    place, _, query = rest.partition("?")
    user, at, host = place.rpartition("@")
    if _has_named_password(place) or any(True for _ in _before_at(query)):
        # The password is behind the database, or holds a question mark that is not written as %3F.
        return f"{scheme}://{_BEHIND_THE_NAME.split(place, maxsplit=1)[0]}"
    name = user.partition(":")[0]
    if not all(_HOST.fullmatch(one) for one in host.partition("/")[0].split(",")):
        # The text in the place of a port may be a password whose server was left out.
        return f"{scheme}://{name}{at}{_BEHIND_THE_NAME.split(host, maxsplit=1)[0]}"
    settings = [(key, value) for key, value in settings_in(query) if not _is_secret(key)]
    shown = query_of([(k, v.partition(":")[0] if k == "user" else v) for k, v in settings], safe="/,:")
    return f"{scheme}://{name}{at}{host}" + (f"?{shown}" if shown else "")


def without_passwords_in(text: str) -> str:
    """Return a text without the passwords of the addresses in it, such as one that was given for a file."""
    return _NAMED_IN_TEXT.sub(r"\1…", _IN_TEXT.sub(r"\1@", text))


def with_setting(url: str, name: str, value: str) -> str:
    """Return a URL with one setting of the store, which replaces a value that the URL has for it."""
    place, _, query = url.partition("?")
    kept = [(key, old) for key, old in settings_in(query) if key != name]
    return f"{place}?{query_of([*kept, (name, value)])}"


def settings_in(query: str) -> list[tuple[str, str]]:
    """Return the settings behind the question mark of a URL. A ``+`` is no space there, as to libpq: %20 is one."""
    return parse_qsl(query.replace("+", "%2B"), keep_blank_values=True)


def query_of(settings: Mapping[str, str] | Sequence[tuple[str, str]], safe: str = "") -> str:
    """Return settings as they stand behind the question mark of a URL: the same to libpq and to the driver."""
    return urlencode(settings, safe=safe, quote_via=quote)


def _beginning(location: str) -> str:
    """Return the beginning of a mistyped address."""
    if begun := _BEGINS.match(location):
        return f"{begun['scheme']}:…"
    before, named, _ = re.split(f"({_NAMED})", location, maxsplit=1, flags=re.IGNORECASE)
    return f"{before if _PLAIN.fullmatch(before) else ''}{named}…"


def _has_named_password(place: str) -> bool:
    """Return whether a URL has a password by name before the question mark; a part of the user's own may look so."""
    _, at, behind = place.partition("@")
    return _SECRET.search(behind if at else place) is not None


def _before_at(query: str) -> Iterator[str]:
    """Yield each setting with an ``@``, up to it: the ``@`` may be the URL's own, behind the rest of a password."""
    for setting in re.split(r"[&?]", query):
        before, at, _ = setting.partition("@")
        if at and not setting.startswith("listen_url="):
            yield before


def _is_secret(name: str) -> bool:
    return any(each in name.casefold() for each in _SECRETS)
