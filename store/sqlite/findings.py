"""What is to be mended about a database file, or good to know: who may read it, where it lies, what is beside it."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..doctor import DoctorFinding
from ..migrations import MIGRATIONS
from .files import WAL_RESET_FIXED, advice

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGE_LOG: Final = 64 * 1024 * 1024
"""Bytes to which a log is cut back once it was copied into the database; one that is larger is being held back."""
_MOUNTS: Final = Path("/proc/self/mountinfo")
_OVER_A_NETWORK: Final = frozenset(
    [
        "9p",
        "afs",
        "afpfs",
        "ceph",
        "cifs",
        "davfs",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
        "virtiofs",
    ]
)


def findings(file: Path, schema: int) -> list[DoctorFinding]:
    """Return what there is to say about a store's file; nothing is opened or changed."""
    real = Path(os.path.realpath(file))
    found = (_mode, _file_system, _log, _beside)
    return [*(finding for look in found for finding in look(real)), *_version(schema)]


def _mode(file: Path) -> Iterator[DoctorFinding]:
    mode = stat.S_IMODE(file.stat().st_mode)
    if os.name != "nt" and mode & 0o077:
        yield DoctorFinding(
            "mode", "warning", f"others than its owner may open it (mode {mode:o}). Run: chmod 600 {file}; and its -wal"
        )


def _file_system(file: Path) -> Iterator[DoctorFinding]:
    kind = file_system(file)
    if kind in _OVER_A_NETWORK:
        yield DoctorFinding(
            "network",
            "warning",
            f"it is on a network file system ({kind}), where SQLite's locks and its shared log do not hold between "
            "machines. Put it on a local disk",
        )


def file_system(file: Path, mounts: Path = _MOUNTS) -> str | None:
    """Return the type of the file system that holds a file; None where the platform does not say."""
    best, kind = "", None
    with suppress(OSError):
        for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
            before, _, behind = line.partition(" - ")
            point = before.split(" ")[4].replace("\\040", " ")
            if len(point) >= len(best) and file.is_relative_to(point):
                best, kind = point, behind.split(" ")[0]
    return kind


def _log(file: Path) -> Iterator[DoctorFinding]:
    log = file.with_name(f"{file.name}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > LARGE_LOG:
        yield DoctorFinding(
            "log",
            "warning",
            f"its write-ahead log has {size:,} bytes: a reader that stays open, or a program that was killed, keeps it "
            "from being copied. Close the programs that have the database open, then open it for writing",
        )
    elif size:
        yield DoctorFinding(
            "log",
            "note",
            f"events are in its write-ahead log ({size:,} bytes): a program has it open, or was killed. A copy of the "
            "file alone misses them; use `timeline backup`",
        )


def _beside(file: Path) -> Iterator[DoctorFinding]:
    for what, pattern in (
        ("was replaced by a restore", f"{file.name}.replaced-*"),
        ("is an unfinished backup or restore, or one under way", f".{file.name}.*.*"),
    ):
        for left in sorted(file.parent.glob(pattern)):
            yield DoctorFinding(
                "beside",
                "note",
                f"{left.name} ({left.stat().st_size:,} bytes) {what}. Delete it when you no longer need it",
            )


def _version(schema: int) -> Iterator[DoctorFinding]:
    yield from (DoctorFinding("sqlite", "warning", advised.removesuffix(".")) for advised in advice())
    if sqlite3.sqlite_version_info < WAL_RESET_FIXED and not advice():
        yield DoctorFinding(
            "sqlite",
            "note",
            f"SQLite {sqlite3.sqlite_version} can damage a database that several programs write to (fixed in 3.51.3). "
            "Programs that use this library take turns and are safe; let no other program write to it",
        )
    if schema < len(MIGRATIONS):
        yield DoctorFinding(
            "schema",
            "note",
            f"an earlier version wrote it (schema {schema}). Opening it for writing brings it to schema "
            f"{len(MIGRATIONS)}, and that version will refuse it then. Back it up first to be able to go back",
        )
