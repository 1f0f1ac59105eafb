from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, cast

import pytest

from timeline.databases import IsDatabase, NotPlain, application_id, database_uri, is_database, read_file, read_text

if TYPE_CHECKING:
    from collections.abc import Callable

LOCKED = """
import fcntl, struct, sys
with open(sys.argv[1], "rb+") as file:
    wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0x40000000, 512, 0)
    print(struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, wanted))[0] != fcntl.F_UNLCK)
"""
"""Prints whether another process holds a lock on the bytes that SQLite locks."""


def _made(file: Path, journal: str = "delete") -> Path:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA application_id = 77")
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("CREATE TABLE t (x)")
    return file


@pytest.mark.skipif(sys.platform != "linux", reason="the layout of a lock in memory is that of Linux")
@pytest.mark.parametrize("look", [application_id, is_database])
def test_a_look_takes_no_lock_away(tmp_path: Path, look: object) -> None:
    """Another process finds the locks of an open database, also when this one has looked at the file."""
    file = _made(tmp_path / "a.db", "wal")
    command = [sys.executable, "-c", LOCKED, str(file)]
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("SELECT * FROM t").fetchall()
        assert callable(look)
        look(file)
        with pytest.raises(IsDatabase):
            read_file(file)
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_is_known_and_left_as_it_is(tmp_path: Path, journal: str) -> None:
    """Whatever its journal, nothing is made beside it, and it is not read as anything else."""
    file = _made(tmp_path / "odd name ?#%é.db", journal)
    assert is_database(file)
    assert application_id(file) == 77
    for read in (read_file, read_text):
        with pytest.raises(IsDatabase, match="it is a SQLite database"):
            read(file)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (r"C:\my agents\a.db", "file:///C:/my%20agents/a.db?mode=ro"),
        (r"\\server\share\a.db", "file:////server/share/a.db?mode=ro"),
        (r"\\wsl$\Debian\home\a.db", "file:////wsl%24/Debian/home/a.db?mode=ro"),
    ],
)
def test_the_uri_of_a_file_of_windows_names_no_host(path: str, uri: str) -> None:
    """SQLite refuses one: of a share, the server is a part of the path."""

    class Windows(PureWindowsPath):
        """A path of Windows that is absolute already."""

        def absolute(self) -> Windows:
            """Return itself."""
            return self

    assert database_uri(cast("Path", Windows(path)), "mode=ro") == uri


def test_a_database_in_the_making_is_known_by_its_first_page(tmp_path: Path) -> None:
    """The other pages may still be on their way."""
    file = _made(tmp_path / "a.db")
    os.truncate(file, 4096)
    assert is_database(file)
    assert application_id(file) == 77


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"x" * 511, b"x" * 512, b"\x00" * 5_000, b"hello\n" * 1_000, b"SQLite format 3\x00" + b"junk" * 200],
)
def test_what_is_no_database_is_read_as_it_is(tmp_path: Path, content: bytes) -> None:
    """Any bytes, as many as are asked for; and text."""
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    assert not is_database(file)
    assert read_file(file) == content
    assert read_file(file, 3) == content[:3]
    assert read_text(file) == content.decode()


def test_a_path_that_holds_no_file_is_refused_as_the_file_system_refuses_it(tmp_path: Path) -> None:
    """A missing file and a folder are no databases, and cannot be read."""
    for path, error in ((tmp_path / "missing", FileNotFoundError), (tmp_path, IsADirectoryError)):
        assert not is_database(path)
        for read in (read_file, read_text):
            with pytest.raises(error):
                read(path)


@pytest.mark.parametrize("read", [read_file, read_text])
def test_what_may_never_end_is_not_opened(tmp_path: Path, read: Callable[[Path], object]) -> None:
    """A pipe waits for somebody who writes to it, and a device fills the memory."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for path in (pipe, tmp_path / "link", Path("/dev/zero")):
        with pytest.raises(NotPlain, match="it is not a regular file"):
            read(path)
    assert not read(Path(os.devnull))


@pytest.mark.parametrize(("read", "problem"), [(read_file, "this machine's memory"), (read_text, "it has more than")])
def test_a_file_that_is_far_too_large_is_refused_unread(
    tmp_path: Path, read: Callable[[Path], object], problem: str
) -> None:
    """It would end the process, and others beside it."""
    file = tmp_path / "large.jsonl"
    file.write_text("{}")
    os.truncate(file, 2**42)
    with pytest.raises(NotPlain, match=problem):
        read(file)
    assert read_file(file, 2) == b"{}"
