"""Look at a store's file for `timeline doctor`: what it holds, what its room is used for, what is to be mended."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from ..failures import DRIVER_ERRORS, store_error
from . import statements
from .copying import PATIENCE
from .files import exists
from .findings import findings
from .reading import connect_alone
from .sizes import sizes

if TYPE_CHECKING:
    from pathlib import Path

    from ..doctor import DoctorFinding


class Examined(NamedTuple):
    """What was found: ``sizes`` are bytes by class, and add up to ``size``, the log's in addition."""

    file: Path
    size: int
    schema: int
    sqlite: str
    conversations: int
    events: int
    sizes: dict[str, int]
    findings: list[DoctorFinding]


async def examine(file: Path) -> Examined:
    """Examine a store's file; nothing is changed.

    Raises:
        StoreError: there is no store, or it cannot be read.
    """
    return await asyncio.to_thread(_examine, file)


async def schema_of(file: Path) -> int:
    """Return the number of the newest migration that a store's file has; nothing is changed.

    Raises:
        StoreError: there is no store, or it cannot be read.
    """
    return await asyncio.to_thread(_schema_of, file)


def _schema_of(file: Path) -> int:
    exists(file, readonly=True)
    try:
        with closing(connect_alone(file, PATIENCE)) as connection:
            ((schema,),) = connection.execute(statements.SCHEMA_VERSION)
    except DRIVER_ERRORS as error:
        raise store_error(error, file) from error
    return int(schema)


def _examine(file: Path) -> Examined:
    exists(file, readonly=True)
    try:
        with closing(connect_alone(file, PATIENCE)) as connection:
            ((schema,),) = connection.execute(statements.SCHEMA_VERSION)
            ((conversations,),) = connection.execute("SELECT count(*) FROM conversations")
            ((events,),) = connection.execute("SELECT count(*) FROM events")
    except DRIVER_ERRORS as error:
        raise store_error(error, file) from error
    by_class = sizes(file)
    size = sum(by_class.values()) - by_class["log"]
    version = sqlite3.sqlite_version
    return Examined(file, size, schema, version, conversations, events, by_class, findings(file, schema))
