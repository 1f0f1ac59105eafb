from __future__ import annotations

import socket

import pytest

from tests import outside


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost", b"localhost", None, ""], ids=repr)
def test_this_machine_may_be_reached(host: object) -> None:
    """Fakes of providers, databases and browsers are on loopback."""
    assert outside.stays_here(host)


def test_a_connection_to_another_machine_is_refused_and_noted() -> None:
    """By address and by name; nothing is sent."""
    with socket.socket() as client, pytest.raises(outside.LeavesTheMachineError):
        client.connect(("192.0.2.1", 80))
    with pytest.raises(outside.LeavesTheMachineError):
        socket.getaddrinfo("elsewhere.invalid", 80)
    assert [attempt.split()[0] for attempt in outside.ATTEMPTS] == ["socket.connect", "socket.getaddrinfo"]
    outside.ATTEMPTS.clear()
