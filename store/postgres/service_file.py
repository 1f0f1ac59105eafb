"""Read a service of PostgreSQL's connection service file, as libpq does.

The driver reads one, too: a service that the file does not name, it takes for none, and connects elsewhere. A `%` in a
password it takes for a reference, and its errors show the lines that it cannot read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from timeline.databases import read_text
from timeline.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAKEN: Final = frozenset(
    (
        *("host", "port", "dbname", "user", "password", "passfile", "target_session_attrs", "krbsrvname", "gsslib"),
        *("sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslpassword", "sslnegotiation"),
        *("ssl_min_protocol_version", "ssl_max_protocol_version"),
    )
)
"""What the driver takes from a service. The rest, such as `connect_timeout`, libpq alone knows."""


def read_service(where: str, service: str) -> dict[str, str]:
    """Return the settings of a service: from the user's file, else from that of the system.

    Args:
        where: names the store in errors.
        service: its name in the file.

    Raises:
        StoreError: no file names the service, or one cannot be read; no line of it is shown, which may hold a password.
    """
    for file in _files():
        settings = _section(where, file, service)
        if settings is not None:
            return {name: value for name, value in settings.items() if name in _TAKEN}
    looked = " and ".join(str(file) for file in _files())
    raise StoreError(f"{where}: there is no service {service!r} in {looked}. Check its name, or PGSERVICEFILE.")


def _files() -> Iterator[Path]:
    yield Path(os.environ.get("PGSERVICEFILE") or "~/.pg_service.conf").expanduser()
    if folder := os.environ.get("PGSYSCONFDIR"):
        yield Path(folder) / "pg_service.conf"


def _section(where: str, file: Path, service: str) -> dict[str, str] | None:
    """Return the settings below a service's name, of several the first of a name as in libpq; None without the name."""
    found: dict[str, str] | None = None
    for number, line in enumerate(_lines(where, file), 1):
        if line.startswith("["):
            if found is not None:
                return found
            found = {} if line == f"[{service}]" else None
        elif found is not None and line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            if not equals:
                raise StoreError(f"{where}: line {number} of {file} is no setting. Write NAME=VALUE.")
            found.setdefault(name.rstrip(), value.lstrip())
    return found


def _lines(where: str, file: Path) -> list[str]:
    try:
        return [line.strip() for line in read_text(file).splitlines()]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{where}: {file} cannot be read ({type(error).__name__}).") from error
