from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from timeline.errors import StoreClosed, StoreCorrupt, StoreError, StoreFull, StoreLocked, StoreReadOnly
from timeline.store.failures import store_error, unwritable

FILE = Path("folder/agent.db")
NAMES = """
ABORT AUTH BUSY CANTOPEN CONSTRAINT CORRUPT EMPTY ERROR FORMAT FULL INTERNAL INTERRUPT IOERR LOCKED MISMATCH MISUSE
NOLFS NOMEM NOTADB NOTFOUND PERM PROTOCOL RANGE READONLY SCHEMA TOOBIG
"""
RESULTS = {f"SQLITE_{name}" for name in NAMES.split()}
CODES = sorted(name for name in dir(sqlite3) if "_".join(name.split("_")[:2]) in RESULTS)
PRIMARY = {
    "SQLITE_BUSY": StoreLocked,
    "SQLITE_LOCKED": StoreLocked,
    "SQLITE_PROTOCOL": StoreLocked,
    "SQLITE_READONLY": StoreReadOnly,
    "SQLITE_PERM": StoreReadOnly,
    "SQLITE_FULL": StoreFull,
    "SQLITE_CORRUPT": StoreCorrupt,
    "SQLITE_NOTADB": StoreCorrupt,
    "SQLITE_FORMAT": StoreCorrupt,
}
EXTENDED = {
    "SQLITE_IOERR_BLOCKED": StoreLocked,
    "SQLITE_IOERR_LOCK": StoreLocked,
    "SQLITE_IOERR_CORRUPTFS": StoreCorrupt,
    "SQLITE_IOERR_SHORT_READ": StoreCorrupt,
    "SQLITE_IOERR_SHMSIZE": StoreFull,
}
ERRORS = [cls for cls in vars(sqlite3).values() if isinstance(cls, type) and issubclass(cls, sqlite3.Error)]


def _expected(name: str) -> type[StoreError]:
    family = "_".join(name.split("_")[:2])
    return EXTENDED.get(name) or PRIMARY.get(family) or StoreError


def _raised(cls: type[sqlite3.Error], code: int | None = None) -> sqlite3.Error:
    error = cls("what SQLite says")
    if code is not None:
        error.sqlite_errorcode = code
    return error


def test_a_column_that_is_no_utf8_is_damage_and_is_not_quoted() -> None:
    """`doctor` and `repair` said that the database refused, and printed what the column holds."""
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.OperationalError) as caught:
        connection.execute("SELECT CAST(x'736563726574ff' AS TEXT)").fetchone()
    connection.close()
    error = store_error(caught.value, FILE)
    assert type(error) is StoreCorrupt
    assert "timeline restore FILE" in str(error)
    assert "secret" not in str(error)


@pytest.mark.parametrize("name", CODES)
def test_every_code_of_the_driver_becomes_a_store_error(name: str) -> None:
    """Each result code, extended ones by their family, has its place in the tree, and the message names the file."""
    error = store_error(_raised(sqlite3.OperationalError, getattr(sqlite3, name)), FILE)
    assert type(error) is _expected(name)
    assert str(error).startswith("folder/agent.db: ")
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        *((errno.ENOSPC, StoreFull), (errno.EDQUOT, StoreFull), (errno.EACCES, StoreReadOnly)),
        *((errno.EROFS, StoreReadOnly), (errno.EMFILE, StoreError)),
    ],
    ids=["full", "quota", "permission", "file system", "too many files"],
)
def test_a_file_that_cannot_be_made_says_whether_there_is_no_room_or_no_permission(
    number: int, kind: type[StoreError]
) -> None:
    """A database has files beside it, which are made when it is opened."""
    error = unwritable(OSError(number, "refused"), FILE)
    assert type(error) is kind
    assert str(error).startswith("folder/agent.db: ")


@pytest.mark.parametrize("cls", ERRORS, ids=lambda cls: cls.__name__)
def test_every_error_class_of_the_driver_becomes_a_store_error(cls: type[sqlite3.Error]) -> None:
    """Errors that the driver itself raises carry no code, and are mapped too."""
    error = store_error(_raised(cls), FILE)
    assert type(error) is StoreError
    assert "what SQLite says" in str(error)


def test_a_closed_connection_is_a_closed_store() -> None:
    """Using a connection after its end says how to open the store again."""
    connection = sqlite3.connect(":memory:")
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError) as closed:
        connection.execute("SELECT 1")
    assert isinstance(store_error(closed.value, FILE), StoreClosed)


def test_damaged_text_in_a_message_of_the_driver_is_damage() -> None:
    """The driver cannot even say what is wrong when the damaged text is in its own message."""
    with pytest.raises(UnicodeDecodeError) as undecodable:
        b"\x87".decode()
    assert type(store_error(undecodable.value, FILE)) is StoreCorrupt


def test_the_error_classes_are_those_that_are_known() -> None:
    """A driver with a new class of errors makes this list, and the mapping, worth another look."""
    assert {cls.__name__ for cls in ERRORS} == {
        "Error",
        "DatabaseError",
        "DataError",
        "IntegrityError",
        "InterfaceError",
        "InternalError",
        "NotSupportedError",
        "OperationalError",
        "ProgrammingError",
    }
