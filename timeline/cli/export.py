"""`timeline export`: write conversations as logs, as a transcript, or as a provider's messages."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from timeline import __version__
from timeline.audit.redacting import eraser_of
from timeline.cli import output
from timeline.cli.database import reading
from timeline.cli.exits import Exit, UsageProblem
from timeline.cli.markdown import transcript
from timeline.cli.output import note, progress
from timeline.databases import is_database
from timeline.display.controls import escape_controls
from timeline.events import BlockAppended, UnknownPayload
from timeline.fold.fold import Fold
from timeline.log.history import restored, reverted_versions
from timeline.log.listed import listed
from timeline.portable import Exported, export_log
from timeline.portable.atif import trajectory
from timeline.projection.project import Projector
from timeline.store.addresses import without_password
from timeline.store.private_files import make_private, take_over_mode
from timeline.wire import encoder
from timeline.wire.neutral import NeutralContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from timeline.ports import EventStore


@dataclass(frozen=True, slots=True)
class Shape:
    """What to write.

    Attributes:
        format: ``jsonl``, the log itself, ``markdown``, a transcript, or ``atif``, a trajectory.
        wire: write a provider's messages instead, in this wire format; empty for none.
        window: write only what the model would see now, of a transcript or of messages.
        limit: characters of each block in a transcript; None for all.
    """

    format: str = "jsonl"
    wire: str = ""
    window: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """Where to write: a file, which only ``force`` replaces, or standard output (None, or ``-``)."""

    file: Path | None = None
    force: bool = False


async def export(conversation: str | None, db: str, shape: Shape, target: Target) -> int:
    """Write one conversation, or the logs of all of them.

    A damaged event is left out of a log and reported; the exit code is then that of a damaged database.

    Raises:
        UsageProblem: the file exists already or cannot be written, or the options exclude each other.
    """
    _check(conversation, shape)
    async with reading(db) as store:
        infos, unlisted = ([], None) if conversation is not None else await listed(store)
        ids = [conversation] if conversation is not None else [info.id for info in infos]
        if not ids and unlisted is None:
            note(f"{without_password(db)} holds no conversation: the file is empty.")
        total = sum([(await store.info(id_)).version for id_ in ids])
        with sink(target) as write, progress("exporting", total) as advance:
            if shape.wire:
                write(output.to_json(await _messages(store, ids[0], shape), indent=2))
            elif shape.format == "atif":
                write(output.to_json(await trajectory(store, ids[0], library=__version__), indent=2))
            elif shape.format == "markdown":
                async for part in transcript(store, ids[0], limit=shape.limit, only_window=shape.window):
                    write(part)
            else:
                done = await _log(store, ids, write, advance)
                if unlisted is not None:
                    note(str(unlisted))
                return Exit.DATABASE if unlisted is not None else done
    return Exit.OK


def _check(conversation: str | None, shape: Shape) -> None:
    is_log = shape.format == "jsonl" and not shape.wire
    if conversation is None and not is_log:
        raise UsageProblem("--all writes logs (--format jsonl). For any other format name one conversation.")
    if (shape.window or shape.limit is not None) and shape.format == "atif" and not shape.wire:
        raise UsageProblem("A trajectory is always whole. Leave --window and --characters out.")
    if shape.window and is_log:
        raise UsageProblem("A log is always whole, so --window needs --wire or --format markdown. Add one of them.")
    if shape.limit is not None and (is_log or shape.wire):
        raise UsageProblem(
            "--characters cuts the blocks of a transcript. Add --format markdown, or leave --characters out."
        )


@contextmanager
def sink(target: Target) -> Iterator[Callable[[str], None]]:
    """Yield a function that writes lines to standard output, or to a file that appears only when it is complete."""
    if target.file is None or str(target.file) == "-":
        yield lambda text: output.send_escaped(text + "\n")
        return
    with sink_bytes(target) as write:
        yield lambda text: _put(write, text)


def _put(write: Callable[[bytes], object], text: str) -> None:
    write(f"{text}\n".encode())


@contextmanager
def sink_bytes(target: Target) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes bytes as they are, where `sink` writes lines."""
    file = target.file
    if file is None or str(file) == "-":
        yield sys.stdout.buffer.write
        return
    real = file.resolve()
    if real.is_file() and not target.force:
        raise UsageProblem(f"{file}: the file exists already. Name another with -o, or replace it with --force.")
    if is_database(real):
        raise UsageProblem(f"{file}: this is a database, which an export never replaces. Name another file with -o.")
    # A device or a pipe is written directly, by the name that was given: the pipe that /dev/stdout leads to has no
    # other. Only a regular file can be replaced by a complete draft.
    direct = file.exists() and not real.is_file()
    draft = file if direct else real.with_name(f".{real.name}.{os.getpid()}.part")
    try:
        if not direct:
            make_private(draft)
            take_over_mode(draft, real)
        with draft.open("wb") as written:
            yield written.write
            if not direct:
                written.flush()
                os.fsync(written.fileno())
        if not direct:
            draft.replace(real)
    except OSError as error:
        raise UsageProblem(f"{file}: it cannot be written: {error.strerror}. Name another file with -o.") from error
    finally:
        if not direct:
            draft.unlink(missing_ok=True)


async def _log(
    store: EventStore, ids: Sequence[str], write: Callable[[str], None], advance: Callable[[int], None]
) -> int:
    """Write logs; report the parts that were left out, and why."""
    done = Exported()
    async for line in export_log(store, ids, library=__version__, result=done):
        write(escape_controls(line))
        advance(done.events)
    if done.redacted:
        note(f"{done.redacted} events were exported without their redacted content.")
    for scavenged, whole_from in done.scavenged:
        note(
            f"{scavenged}: events before version {whole_from} were scavenged and are missing. An import "
            "needs a whole log: to move this conversation, copy the database file."
        )
    if done.lost_values:
        note(f"{len(done.lost_values)} damaged texts that contexts refer to are left out. The rest was exported.")
    if done.damaged:
        first = done.damaged[0][0]
        versions = ", ".join(str(version) if id_ == first else f"{id_} {version}" for id_, version in done.damaged[:10])
        note(
            f"{len(done.damaged)} damaged events are left out (versions {versions}). Everything else was exported; an "
            "import goes as far as the first of them."
        )
    for id_, damage in done.left_out:
        note(f"{id_} is left out, because it cannot be found out what was redacted in it: {damage}")
    return Exit.DATABASE if done.damaged or done.lost_values or done.left_out else Exit.OK


async def _messages(store: EventStore, conversation: str, shape: Shape) -> dict[str, Any]:
    """Return messages in a provider's format, without cache markers.

    Without ``window`` these are all messages: nothing is hidden or covered, and there are no summaries. With it they
    are the window as it is now, without any new decision.
    """
    eraser = await eraser_of(store, conversation)
    until = (await store.info(conversation)).version
    undone = await reverted_versions(store, conversation, until)
    fold = Fold(conversation, undone)
    base = await store.load_base(conversation) if shape.window else None
    if base is not None:
        left = [eraser.cleaned(event) for event in base.events]
        fold = await restored(store, conversation, base.snapshot, left, undone)
    elif missing := sum((await store.scavenged(conversation)).values()):
        note(f"{missing:,} events before the window were scavenged and are missing.")
    async for event in store.read(conversation, after=fold.version, until=until):
        payload = eraser.cleaned(event).payload
        if shape.window or isinstance(payload, BlockAppended | UnknownPayload):
            fold.apply(event.version, event.at, payload)
    entries, _ = Projector().entries(fold.window)
    return encoder(shape.wire)(NeutralContext(entries=tuple(entries)))
