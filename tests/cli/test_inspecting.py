from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest

from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Done

ENTRY = "a-token-of-the-test-1234"


@contextmanager
def serving(*words: object) -> Iterator[str]:
    """Run `timeline inspect` in a process of its own, until the block ends; give the address that it prints."""
    command = [sys.executable, "-m", "timeline.cli", "inspect", "--no-open", *map(str, words)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line + process.stderr.read()
        yield found[0]
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
        assert process.returncode == Exit.INTERRUPTED, said
        assert "Traceback" not in said
    finally:
        process.kill()
        process.wait()


def answered(address: str, path: str, token: str) -> Any:
    """Ask a running inspector, as a script does."""
    base = address.partition("?")[0]
    request = Request(base + path, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - the address is ours
    with build_opener().open(request, timeout=20) as answer:
        return json.load(answer)


@pytest.mark.usefixtures("simulated")
def test_the_printed_address_lets_a_browser_in_and_nobody_else(run: Callable[..., Done], db: Path) -> None:
    """The token becomes a cookie; the conversations are those of `timeline ls`, and the database is not changed."""
    listed = [row["id"] for row in run("ls", "--json").json]
    before = db.read_bytes()
    with serving("--db", db) as address:
        base = address.partition("?")[0]
        browser = build_opener(HTTPCookieProcessor())
        for path, status in (("v1/conversations", 403), (f"v1/nowhere?{address.partition('?')[2]}", 404)):
            with pytest.raises(HTTPError) as refusal:
                browser.open(base + path, timeout=20)
            assert refusal.value.code == status
            refusal.value.close()
        with browser.open(base + "v1/conversations", timeout=20) as answer:
            rows = json.load(answer)["conversations"]
    assert sorted(row["id"] for row in rows) == sorted(listed)
    assert db.read_bytes() == before


def test_a_recording_is_looked_at_without_a_database(recording: Path, db: Path) -> None:
    """It is imported into memory; the address leads to it."""
    with serving(recording, "--token", ENTRY) as address:
        [row] = answered(address, "v1/conversations", ENTRY)["conversations"]
        assert row["turns"] > 0
        assert address.endswith(f"#/c/{row['id']}")
    assert not db.exists()


@pytest.mark.usefixtures("simulated")
def test_a_database_may_be_named_as_a_recording_is(run: Callable[..., Done], db: Path) -> None:
    """It needs no `--db` in front of it."""
    listed = [row["id"] for row in run("ls", "--json").json]
    with serving(db, "--db", db.parent / "none.db", "--token", ENTRY) as address:
        rows = answered(address, "v1/conversations", ENTRY)["conversations"]
    assert sorted(row["id"] for row in rows) == sorted(listed)


@pytest.mark.usefixtures("simulated")
def test_a_wrong_conversation_is_told_before_anything_is_served(run: Callable[..., Done]) -> None:
    """As every command tells it."""
    run("inspect", "nobody", "--no-open").fails(Exit.NOT_FOUND, "nobody")


def test_a_missing_recording_is_named_where_there_is_no_database(run: Callable[..., Done]) -> None:
    """Not only the database that nobody asked for."""
    run("inspect", "sesion.jsonl", "--no-open").fails(Exit.USAGE, "sesion.jsonl: there is no such file")


@pytest.mark.usefixtures("simulated")
def test_a_certificate_that_cannot_be_used_is_named_before_an_address_is_printed(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    """It was a port to choose anew, behind an address that nothing answered at."""
    (tmp_path / "key.pem").write_text("no key", encoding="utf-8")
    tls = ("--certificate", tmp_path / "none.pem", "--key", tmp_path / "key.pem")
    run("inspect", "--no-open", *tls).fails(Exit.USAGE, "none.pem", "No such file")
    tls = ("--certificate", tmp_path / "key.pem", "--key", tmp_path / "key.pem")
    run("inspect", "--no-open", *tls).fails(Exit.USAGE, "key.pem", "cannot be used")
    os.mkfifo(tmp_path / "pipe.pem")
    run("inspect", "--no-open", "--certificate", tmp_path / "pipe.pem").fails(
        Exit.USAGE, "pipe.pem", "it is not a regular file"
    )


def test_a_missing_database_is_told_before_anything_is_served(run: Callable[..., Done]) -> None:
    """And none is made."""
    run("inspect", "--no-open").fails(Exit.DATABASE, "there is no database")


def test_an_empty_file_is_told_apart_from_a_missing_one(run: Callable[..., Done], tmp_path: Path) -> None:
    """It is there, and has nothing in it."""
    empty = tmp_path / "empty.db"
    empty.touch()
    run("inspect", "--no-open", "--db", empty).fails(Exit.DATABASE, "the file is empty, so there is no database in it")


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (("--host", "192.168.7.7"), "--token"),
        (("--host", "192.168.7.7", "--token", ENTRY), "--behind-proxy"),
        (("--token", "short"), "16"),
        (("--key", "key.pem"), "--certificate"),
    ],
)
def test_a_place_that_is_not_safe_is_refused(run: Callable[..., Done], words: tuple[str, ...], cure: str) -> None:
    """In one line with the cure, and nothing listens."""
    run("inspect", "--no-open", *words).fails(Exit.USAGE, cure)


@pytest.mark.usefixtures("simulated")
def test_a_port_in_use_is_one_line(run: Callable[..., Done]) -> None:
    """It says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run("inspect", "--no-open", "--port", taken.getsockname()[1]).fails(Exit.USAGE, "Choose another port")


@pytest.mark.usefixtures("simulated")
def test_without_the_extra_the_command_names_it(db: Path) -> None:
    """In one line, in a process where it is not installed."""
    program = "import sys; sys.modules['uvicorn'] = None; from timeline.cli import main; sys.exit(main())"
    command: list[Any] = [sys.executable, "-c", program, "inspect", "--no-open", "--db", db]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert "pip install 'timeline-engine[inspector]'" in done.stderr
