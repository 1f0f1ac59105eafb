"""`timeline export`: a whole conversation as its own log, as a transcript, or as a provider's messages."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from timeline import __version__
from timeline.blocks import instant_text
from timeline.cli import output
from timeline.cli.database import reading
from timeline.cli.exits import Exit, UsageProblem
from timeline.cli.markdown import transcript
from timeline.cli.output import note
from timeline.errors import StoreCorrupt
from timeline.events import BlockAppended, ContextRendered, PolicyChanged, UnknownPayload
from timeline.fold.fold import Fold
from timeline.frozen import compact_json
from timeline.history import reverted_versions
from timeline.projection.project import Projector
from timeline.wire import encoder
from timeline.wire.neutral import NeutralContext

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path
    from typing import TextIO

    from timeline.events import Event
    from timeline.ports import EventStore

FORMAT: Final = "timeline-events"
"""Name of the native format, in its first line."""
FORMAT_VERSION: Final = 1
_MOST_DAMAGED: Final = 1_000


async def export(conversation: str, db: str, format_: str, file: Path | None) -> int:
    """Write a conversation out. A damaged event is left out of the native format, reported, and told by the exit code.

    Raises:
        ConversationNotFound: there is no such conversation.
        StoreCorrupt: the database is damaged beyond single events, or an event is and the format has no place for that.
        UsageProblem: the file cannot be written.
    """
    async with reading(db) as store:
        await store.info(conversation)
        with _sink(file) as write:
            match format_:
                case "jsonl":
                    return await _native(store, conversation, write)
                case "markdown":
                    async for part in transcript(store, conversation):
                        write(part)
                case _:
                    write(output.to_json(await _messages(store, conversation, format_), indent=2))
    return Exit.OK


@contextmanager
def _sink(file: Path | None) -> Iterator[Callable[[str], None]]:
    """Give a function that writes lines: to standard output, or to a file that appears when it is complete."""
    if file is None or str(file) == "-":
        yield output.write
        return
    target = file.resolve()
    # A device or a pipe is written to; only a regular file can be replaced by a complete one.
    draft = target.with_name(f".{target.name}.part") if target.is_file() or not target.exists() else target
    try:
        with draft.open("w", encoding="utf-8") as written:
            yield lambda text: _put(written, text)
        draft.replace(target)
    except OSError as error:
        raise UsageProblem(f"{file}: it cannot be written: {error.strerror}. Name another file with -o.") from error
    finally:
        if draft != target:
            draft.unlink(missing_ok=True)


def _put(written: TextIO, text: str) -> None:
    written.write(text + "\n")


async def _native(store: EventStore, conversation: str, write: Callable[[str], None]) -> int:
    """Write a header line, then an event a line, each with its checksum, its payload as it is stored.

    The header holds the content-addressed values too, so that the recorded contexts can be rebuilt from the file alone.
    """
    info = await store.info(conversation)
    write(
        compact_json(
            {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                "library": __version__,
                "conversation": conversation,
                "title": info.title,
                "version": info.version,
                "parent": None if info.parent is None else info.parent.model_dump(mode="json"),
                "values": await store.values(await _hashes(store, conversation)),
            }
        )
    )
    damaged: list[int] = []
    async for event in _undamaged(store, conversation, info.version, damaged):
        write(compact_json(_line(event, conversation)))
    if damaged:
        versions = ", ".join(map(str, damaged[:10]))
        note(f"{len(damaged)} damaged events are left out (versions {versions}). Everything else was exported.")
        return Exit.DATABASE
    return Exit.OK


def _line(event: Event, conversation: str) -> dict[str, Any]:
    """Return an event as a line of the native format; its checksum is over exactly these values.

    An event that a fork shares with its parent names the parent, whose it is, and by whose name it was hashed.
    """
    line = {
        "version": event.version,
        "id": str(event.id),
        "type": event.type,
        "schema_version": event.schema_version,
        "at": instant_text(event.at),
        "checksum": event.checksum,
        "payload": event.payload.dump(),
    }
    return line if event.conversation == conversation else {"conversation": event.conversation, **line}


async def _hashes(store: EventStore, conversation: str) -> set[str]:
    """Collect the hashes of the values that the recorded contexts and policies refer to."""
    hashes: set[str | None] = set()
    async for event in store.read(conversation, types=["context.rendered", "policy.changed"]):
        match event.payload:
            case ContextRendered(policy=policy, system=system, tools=tools, ephemeral=ephemeral):
                hashes |= {policy, system, tools, ephemeral}
            case PolicyChanged(policy=policy):
                hashes.add(policy)
    return {hash_ for hash_ in hashes if hash_ is not None}


async def _undamaged(store: EventStore, conversation: str, last: int, damaged: list[int]) -> AsyncIterator[Event]:
    """Iterate over the events that can be read; note the versions of those that cannot.

    Raises:
        StoreCorrupt: so much is damaged that it is no use.
    """
    version = 0
    while version < last:
        try:
            async for event in store.read(conversation, after=version, until=last):
                yield event
                version = event.version
        except StoreCorrupt:
            version += 1
            damaged.append(version)
            if len(damaged) > _MOST_DAMAGED:
                raise
        else:
            return


async def _messages(store: EventStore, conversation: str, wire: str) -> dict[str, Any]:
    """Return all messages as a provider takes them: nothing hidden or covered, no summaries, no cache markers."""
    fold = Fold(conversation, await reverted_versions(store, conversation))
    async for event in store.read(conversation):
        if isinstance(event.payload, BlockAppended | UnknownPayload):
            fold.apply(event.version, event.at, event.payload)
    entries, _ = Projector().entries(fold.window)
    return encoder(wire)(NeutralContext(entries=tuple(entries)))
