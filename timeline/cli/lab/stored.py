"""Conversations of the database for `timeline lab`, whose work is on files: each is exported to one."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import anyio

import timeline
from timeline.cli.database import reading
from timeline.errors import ConversationNotFound, RemovedMeanwhile, StoreError
from timeline.portable import export_log
from timeline.portable.exporting import Exported
from timeline.portable.stored import stored_conversation
from timeline.store.addresses import check_address, is_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextmanager
def exported(named: Sequence[Path], db: str) -> Iterator[list[Path]]:
    """Yield the named files, and for each name of a conversation instead a file with its log, which is gone afterwards.

    A name that is neither stays, for the command to report.
    """
    if all(path.exists() for path in named):
        yield [*named]
        return
    with TemporaryDirectory() as folder:
        yield [path if path.exists() else anyio.run(_export, path, db, Path(folder)) for path in named]


async def _export(name: Path, db: str, folder: Path) -> Path:
    path = folder / f"{str(name).replace('/', '%2F')}.jsonl"
    done = Exported()
    check_address(db)
    try:
        async with reading(db) as store:
            lines = [line async for line in export_log(store, [str(name)], library=timeline.__version__, result=done)]
            if done.scavenged:  # it cannot be replayed: the error names the versions that are there
                await stored_conversation(store, str(name))
    except ConversationNotFound:
        return name
    except RemovedMeanwhile:
        raise
    except StoreError:
        if is_server(db):
            raise
        return name  # most runs of the lab have files, and no database
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
