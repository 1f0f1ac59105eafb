"""Connections: to the first of several servers that is there, and to none that is gone without a word."""

from __future__ import annotations

import re
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from timeline.errors import StoreUnavailable
from timeline.store.postgres import connecting
from timeline.store.postgres.connecting import Servers, servers_of
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.postgres_server import Server


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql://u@h/d", ["postgresql://u@h/d"]),
        ("postgresql://u:p@a:1,b:2/d?x=1", ["postgresql://u:p@a:1/d?x=1", "postgresql://u:p@b:2/d?x=1"]),
        ("postgresql://u@[::1]:1,b/d", ["postgresql://u@[::1]:1/d", "postgresql://u@b/d"]),
        ("postgresql://u@/d?host=a,b", ["postgresql://u@/d?host=a", "postgresql://u@/d?host=b"]),
        (
            "postgresql://u@/d?host=a,b&port=1,2&x=1",
            ["postgresql://u@/d?host=a&port=1&x=1", "postgresql://u@/d?host=b&port=2&x=1"],
        ),
        (
            "postgresql://u@/d?host=a,b&port=1",
            ["postgresql://u@/d?host=a&port=1", "postgresql://u@/d?host=b&port=1"],
        ),
        ("postgresql://u@h/d?host=a,b", ["postgresql://u@h/d?host=a,b"]),
        ("postgresql://u@/d?host=a,b&port=1,2,3", ["postgresql://u@/d?host=a,b&port=1,2,3"]),
    ],
)
def test_a_url_becomes_one_for_each_server_that_it_names(url: str, each: list[str]) -> None:
    """Hosts before the database win over those among the settings; what the driver refuses is left to it."""
    assert servers_of(url) == each


@contextmanager
def silent(folder: Path) -> Iterator[socket.socket]:
    """Listen in a folder as a server would, and never answer."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / ".s.PGSQL.5432"))
        listening.listen()
        listening.setblocking(False)
        yield listening


def callers(listening: socket.socket) -> int:
    """Return how many connections a socket has been asked for."""
    called = 0
    with suppress(BlockingIOError):
        while True:
            listening.accept()[0].close()
            called += 1
    return called


async def test_a_server_that_does_not_answer_leaves_time_for_the_next_one(own_postgres: Server, tmp_path: Path) -> None:
    """The store opens on the other one, and goes there at once from then on."""
    url = own_postgres.url()
    with silent(tmp_path) as listening:
        # Of five, each has two seconds to answer.
        both = url.replace("host=", f"host={tmp_path}" + 3 * f",{own_postgres.folder}" + ",")
        async with await PostgresStore.open(both) as store:
            await store.append("a", events(2))
            assert (await store.info("a")).version == 2
        assert callers(listening) == 1


async def test_the_next_server_is_taken_where_one_cannot_be_reached(own_postgres: Server, tmp_path: Path) -> None:
    """Whatever kind is wanted: a primary is what will do where a standby is preferred and there is none."""
    both = own_postgres.url().replace("host=", f"host={tmp_path},")
    for wanted in ("any", "primary", "read-write", "prefer-standby"):
        connection = await Servers(f"{both}&target_session_attrs={wanted}").connect()
        try:
            assert await connection.fetchval("SELECT pg_is_in_recovery()") is False
        finally:
            await connection.close()


async def test_where_no_server_is_there_the_error_names_them(tmp_path: Path) -> None:
    """One clear error says which servers were tried."""
    place = quote(str(tmp_path))
    said = re.escape(f"host={place}/a,{place}/b: the server cannot be reached")
    with pytest.raises(StoreUnavailable, match=said):
        await PostgresStore.open(f"postgresql://u@/d?host={place}/a,{place}/b")


def test_a_connection_notices_that_its_server_is_gone() -> None:
    """The system asks a silent other side, and breaks a connection whose other side confirms nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        connecting._watch(made)
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        for name, value in connecting._KEPT_ALIVE:
            if (option := getattr(socket, name, None)) is not None:
                assert made.getsockopt(socket.IPPROTO_TCP, option) == value
