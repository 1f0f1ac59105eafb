"""A server and a client that do not agree on encryption: one error with the cure, and no waiting for what stays so."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import asyncpg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.postgres_server import given_to_server
from timeline.errors import StoreError, StoreUnavailable
from timeline.store.postgres.failures import is_away
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.postgres_server import Server

ADDRESS = "127.0.0.1"


def certificate(server: Server) -> Path:
    """Give a server a key and a certificate for localhost, which vouches for itself; return its file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for file, content in (("server.key", private), ("server.crt", made.public_bytes(pem))):
        (server.data / file).write_bytes(content)
        given_to_server(server.data / file).chmod(0o600)
    return server.data / "server.crt"


def listening(server: Server, rule: str, **settings: str) -> str:
    """Start a server again on a port of its own, with one rule and more settings; return its URL without settings."""
    with socket.socket() as free:
        free.bind((ADDRESS, 0))
        port = free.getsockname()[1]
    server.stop()
    (server.data / "pg_hba.conf").write_text(f"local all all trust\n{rule}\n", encoding="utf-8")
    server.start(listen_addresses=ADDRESS, port=str(port), **settings)
    return f"postgresql://postgres@localhost:{port}/postgres"


async def encrypts(server: Server) -> bool:
    """Return whether a server can encrypt connections at all."""
    connection = await asyncpg.connect(server.url())
    try:
        return bool(await connection.fetchval("SHOW ssl_library"))
    finally:
        await connection.close()


async def refused(url: str) -> str:
    """Return why a store was refused, which is no server that is away: trying again would change nothing."""
    with pytest.raises(StoreError) as caught:
        await PostgresStore.open(url)
    assert not isinstance(caught.value, StoreUnavailable)
    assert caught.value.__cause__ is None or not is_away(caught.value.__cause__)
    return str(caught.value)


async def test_a_server_that_takes_encrypted_connections_alone(own_postgres: Server, tmp_path: Path) -> None:
    """A client without encryption is told what to add, and one that trusts another certificate which one is wrong."""
    if not await encrypts(own_postgres):
        pytest.skip(
            f"PostgreSQL {own_postgres.binaries} was built without encryption; Debian's package postgresql has it"
        )
    trusted = certificate(own_postgres)
    url = listening(own_postgres, f"hostssl all all {ADDRESS}/32 trust", ssl="on")
    for setting in ("", "?sslmode=require", f"?sslmode=verify-full&sslrootcert={trusted}"):
        async with await PostgresStore.open(url + setting) as store:
            await store.append("a", events(1))
    async with await PostgresStore.open(url, readonly=True) as store:
        assert await versions(store, "a") == [1, 2, 3]
    plain = await refused(f"{url}?sslmode=disable")
    assert "no encryption" in plain
    assert "add ?sslmode=require" in plain
    assert "password" not in plain
    misnamed = url.replace("localhost", ADDRESS)
    assert "certificate is not trusted" in await refused(f"{misnamed}?sslmode=verify-full&sslrootcert={trusted}")
    missing = tmp_path / "none.crt"
    assert "there is no such file" in await refused(f"{url}?sslmode=verify-ca&sslrootcert={missing}")


async def test_a_server_that_wants_a_certificate_of_the_client(own_postgres: Server) -> None:
    """Another password would change nothing: what is missing is named, and with it the store opens."""
    if not await encrypts(own_postgres):
        pytest.skip(
            f"PostgreSQL {own_postgres.binaries} was built without encryption; Debian's package postgresql has it"
        )
    trusted = certificate(own_postgres)
    url = listening(
        own_postgres, f"hostssl all all {ADDRESS}/32 trust clientcert=verify-ca", ssl="on", ssl_ca_file=str(trusted)
    )
    assert "sslcert and sslkey" in await refused(f"{url}?sslmode=require")
    key = trusted.with_suffix(".key")
    async with await PostgresStore.open(f"{url}?sslmode=require&sslcert={trusted}&sslkey={key}") as store:
        await store.append("a", events(1))


async def test_a_server_without_encryption(own_postgres: Server) -> None:
    """What asks for it is refused, and what asks for none is served; a rule that is missing is no wrong password."""
    url = listening(own_postgres, f"host all postgres {ADDRESS}/32 trust", ssl="off")
    assert "takes no encrypted connection" in await refused(f"{url}?sslmode=require")
    async with await PostgresStore.open(f"{url}?sslmode=prefer") as store:
        await store.append("a", events(1))
    stranger = await refused(url.replace("postgres@", "stranger@"))
    assert "no rule of the server's pg_hba.conf" in stranger


@pytest.mark.parametrize("settings", ["sslrootcert={0}", "sslcert={0}&sslkey={0}"])
async def test_a_file_that_holds_no_certificate_is_no_server_that_is_away(tmp_path: Path, settings: str) -> None:
    """It is read before the server is asked, and trying again would change nothing."""
    wrong = tmp_path / "wrong.crt"
    wrong.write_text("no certificate", encoding="utf-8")
    assert "Check that sslrootcert" in await refused(
        f"postgresql://ann@{ADDRESS}:1/agents?sslmode=require&{settings.format(wrong)}"
    )
