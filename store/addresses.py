"""Tell the URLs of stores apart, and write them for people: a password is never shown."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode

_SERVERS: Final = frozenset({"postgresql", "postgres"})
_SECRETS: Final = frozenset({"password", "passfile", "sslpassword", "listen_url"})


def is_server(url: str) -> bool:
    """Return whether a path or URL names a store on a server."""
    scheme, separator, _ = url.partition("://")
    return bool(separator) and scheme.partition("+")[0] in _SERVERS


def without_password(url: str) -> str:
    """Return a path or URL as errors and output show it: a password, and each setting that may hold one, left out."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    place, _, query = rest.partition("?")
    if "@" in query and "@" not in place and "listen_url=" not in query:
        # A password with a question mark that is not written as %3F: only the user's name is sure to be none of it.
        return f"{scheme}://{place.partition(':')[0]}"
    settings = parse_qsl(query, keep_blank_values=True)
    shown = urlencode([(name, value) for name, value in settings if name not in _SECRETS], safe="/,:")
    user, at, host = place.rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{host}" + (f"?{shown}" if shown else "")


def with_setting(url: str, name: str, value: str) -> str:
    """Return a URL with one setting of the store, in the place of one that it has."""
    place, _, query = url.partition("?")
    kept = [(key, old) for key, old in parse_qsl(query, keep_blank_values=True) if key != name]
    return f"{place}?{urlencode([*kept, (name, value)])}"
