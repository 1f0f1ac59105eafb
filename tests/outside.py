"""Watches that no test asks for anything outside this machine.

Python tells an audit hook of every connection and every look-up of a name, whatever library makes it. One that leaves
the machine is refused, and noted, so that a library which swallows the refusal still fails its test.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import sys
from pathlib import Path
from typing import Any, Final

import certifi
import httpcore2

ATTEMPTS: Final[list[str]] = []
"""What was tried to reach, and was refused."""
_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"
_NAMES: Final = frozenset({"", "localhost", "0.0.0.0", "::"})  # noqa: S104 - names, nothing is bound to them


class LeavesTheMachineError(OSError):
    """A test tried to reach another machine."""


def watch() -> None:
    """Refuse connections to other machines from now on; it cannot be taken back."""
    sys.addaudithook(_refuse)


def stays_here(host: object) -> bool:
    """Say whether a host is this machine."""
    name = host.decode(errors="replace") if isinstance(host, bytes) else host
    if name is None or name in _NAMES:
        return True
    try:
        return ipaddress.ip_address(str(name).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        host: object = arguments[0]
    elif event in {"socket.connect", "socket.sendto", "socket.sendmsg"} and isinstance(arguments[1], tuple):
        if event == "socket.connect" and arguments[0].type == socket.SOCK_DGRAM:
            return  # sends nothing: it is how libraries ask the system for this machine's own address
        host = arguments[1][0]
    else:  # a path of a socket between processes of this machine, or nothing of the kind
        return
    if not stays_here(host):
        ATTEMPTS.append(f"{event} {host!r}")
        raise LeavesTheMachineError(f"a test tried to reach {host!r}")


def trust_one_authority(folder: Path) -> None:
    """Let clients of HTTPS trust one authority: each of them parses the file of all hundred and fifty for 60 ms.

    No test speaks TLS with anybody whom one of them knows. Only this process is told so: pip asks an index in another.
    """
    known = Path(certifi.where()).read_text(encoding="ascii")
    file = folder / "one-authority.pem"
    file.write_text(f"{known[known.index(_BEGIN) : known.index(_END)]}{_END}\n", encoding="ascii")
    certifi.where = lambda: str(file)
    # The SDKs' client asks the system for its authorities, not certifi.
    httpcore2.default_ssl_context = lambda **_: ssl.create_default_context(cafile=file)
