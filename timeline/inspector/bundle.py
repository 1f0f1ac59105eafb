"""The bug bundle: one zip with all that is needed to look at a conversation elsewhere, and to report a fault of it.

It has the log, cleaned; the policy; versions; what `verify` says of the log, and of what is left when the cleaned one
is imported; the newest errors; and how much was taken out, without the words. The same log gives the same bytes.
"""

from __future__ import annotations

import json
import platform
import re
import sqlite3
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import anyio
import anyio.to_thread

import timeline
from timeline import open_store
from timeline.audit.verify import verify
from timeline.errors import ConversationNotFound, ImportFailed, InvalidArgument, StoreCorrupt
from timeline.inspector.asked import AskedConversation
from timeline.inspector.cleaned_log import cleaned_lines
from timeline.inspector.cleaning import Cleaner
from timeline.inspector.conversations import show_conversation
from timeline.inspector.reader import Reader
from timeline.log.off_loop import off_loop
from timeline.log.undisturbed import undisturbed
from timeline.portable import Exported, export_log, import_copy, read_exported
from timeline.portable.lines import KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from timeline.errors import TimelineError
    from timeline.ports import EventStore

_DISTRIBUTION: Final = "timeline-engine"
MOST_CHARACTERS: Final = 200_000_000
"""Characters of a log that is bundled: it is in memory several times."""
_MOST_ERRORS: Final = 100
_MOST_TEXT: Final = 2_000
"""Characters of an error."""
_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""The date of every file in a bundle: the first that a zip can say."""
_UNIX: Final = 3
_PRIVATE: Final = 0o100600
_README: Final = """\
A conversation of timeline-engine, to be looked at elsewhere.

    unzip BUNDLE
    timeline import log.jsonl --db bug.db
    timeline inspect --db bug.db

log.jsonl          every event, without what was taken out. Its chain is another one, and what was sent cannot be
                   proved where something in it was taken out; everything else is as it was
policy.json        the policy in force
conversation.json  how full its context is, and what is wrong with it, as the inspector shows it
verify.json        what `timeline verify` says: of the log as it is stored, and of log.jsonl when it is imported
errors.json        the newest failed calls, tools, compactions, hooks and renders, and what could not be read
versions.json      the library, and what it runs on
left-out.json      how often credentials and names of home folders were taken out, by kind. A pattern knows only what
                   it knows: look at the files before you share them
"""


@dataclass(slots=True)
class Bundle:
    """A bug bundle.

    Attributes:
        data: the zip's bytes.
        cleaner: what was taken out.
        files: the names of its files, each with its size.
    """

    data: bytes
    cleaner: Cleaner
    files: dict[str, int] = field(default_factory=dict)


async def bundle(
    store: EventStore,
    conversation: str,
    keep: Collection[str] = (),
    advance: Callable[[int], None] = lambda _: None,
) -> Bundle:
    """Return the bug bundle of a conversation. Show what was taken out before anything is written.

    Args:
        store: holds it.
        conversation: its id.
        keep: the names of findings that stay where they are.
        advance: called with the number of events that were read since.
    """
    return await undisturbed(store, partial(_bundle, store, conversation, keep, advance), conversation)


async def _bundle(
    store: EventStore, conversation: str, keep: Collection[str], advance: Callable[[int], None]
) -> Bundle:
    cleaner, done, log = await _cleaned(store, conversation, keep, advance)
    shown = await _shown(store, conversation)
    verified = {
        "stored": await _verified(store, conversation),
        "bundled": await _verified_elsewhere(log, cleaner.clean(conversation, "the conversation")),
    }
    errors = {"errors": _errors(log), "unreadable_events": done.damaged, "unreadable_texts": done.lost_values}
    reports = {"policy.json": shown.pop("policy", None), "conversation.json": shown, "verify.json": verified}
    reports |= {"errors.json": errors, "versions.json": await _versions(store)}
    parts = {"README.txt": _README, "log.jsonl": "".join(f"{line}\n" for line in log)}
    parts |= {name: _written(cleaner.clean(report, name)) for name, report in reports.items()}
    parts["left-out.json"] = _written([{"kind": kind, "times": times} for kind, times in cleaner.kinds.items()])
    data = await off_loop(len(log), partial(_zipped, parts))
    return Bundle(data, cleaner, {name: len(text.encode()) for name, text in parts.items()})


async def review_bundle(
    store: EventStore,
    conversation: str,
    keep: Collection[str] = (),
    advance: Callable[[int], None] = lambda _: None,
) -> Cleaner:
    """Return what would be taken out of a bundle, without making one: arguments and errors are those of `bundle`."""
    cleaned = partial(_cleaned, store, conversation, keep, advance)
    cleaner, _, _ = await undisturbed(store, cleaned, conversation)
    return cleaner


async def _cleaned(
    store: EventStore, conversation: str, keep: Collection[str], advance: Callable[[int], None]
) -> tuple[Cleaner, Exported, list[str]]:
    """Return the cleaned log; all else in a bundle repeats what it says."""
    cleaner, done = Cleaner(keep), Exported()
    lines = await _exported(store, conversation, done, advance)
    log = await off_loop(len(lines), lambda: list(cleaned_lines(lines, cleaner)))
    cleaner.check_kept()
    return cleaner, done, log


async def _exported(store: EventStore, conversation: str, done: Exported, advance: Callable[[int], None]) -> list[str]:
    lines: list[str] = []
    size = 0
    async for line in export_log(store, [conversation], library=timeline.__version__, result=done):
        lines.append(line)
        size += len(line)
        advance(done.events)
        if size > MOST_CHARACTERS:
            most = f"{MOST_CHARACTERS // 1_000_000:,} million characters"
            cure = "Fork it shortly before what is wrong, and bundle the fork; or hand over a backup"
            raise InvalidArgument("conversation", f"has a log of more than {most}, too long for a bundle. {cure}")
    return lines


async def _shown(store: EventStore, conversation: str) -> dict[str, Any]:
    """Return the conversation as the inspector shows it first; why not, where its log is damaged."""
    try:
        shown = await show_conversation(Reader(store), AskedConversation(id=conversation))
    except StoreCorrupt as error:
        return _failed(error)
    return shown.model_dump(mode="json")


async def _verified(store: EventStore, conversation: str) -> dict[str, Any]:
    """Return what the verification of a conversation says; why it says nothing, where it cannot be read."""
    try:
        return (await verify(store, conversation)).model_dump(mode="json")
    except StoreCorrupt as error:
        return _failed(error)


async def _verified_elsewhere(log: Sequence[str], conversation: str) -> dict[str, Any]:
    """Verify the cleaned log in an event loop of its own, in a thread: nothing that others wait for is in its store."""
    return await anyio.to_thread.run_sync(partial(anyio.run, _verified_again, log, conversation))


async def _verified_again(log: Sequence[str], conversation: str) -> dict[str, Any]:
    """Import the cleaned log into a store of its own, and verify it there.

    The head is left out: a chain is salted anew by each import of a log of which something was taken out.
    """
    data = "".join(f"{line}\n" for line in log).encode()
    async with open_store("memory://") as store:
        try:
            imported = [await import_copy(store, copy) for copy in read_exported(data, "log.jsonl")]
            report = (await verify(store, conversation)).model_dump(mode="json", exclude={"head"})
        except (ImportFailed, ConversationNotFound, StoreCorrupt) as error:
            return _failed(error)
    return {**report, "imported": [one.report for one in imported]}


def _failed(error: TimelineError) -> dict[str, Any]:
    return {"ok": False, "error": type(error).__name__, "message": str(error)}


def _errors(log: Sequence[str]) -> list[dict[str, Any]]:
    """Return the newest failed calls, tools, compactions, hooks and renders of a cleaned log."""
    found: list[dict[str, Any]] = []
    for line in map(json.loads, reversed(log)):
        if line[KEY] == "event" and (text := _error(line["type"], line["payload"])) is not None:
            place = {name: line[name] for name in ("conversation", "version", "at", "type")}
            found.append({**place, "text": text[:_MOST_TEXT], "left_out": max(0, len(text) - _MOST_TEXT)})
            if len(found) == _MOST_ERRORS:
                break
    return found


def _error(type_: str, payload: dict[str, Any]) -> str | None:
    block = payload.get("block") or {}
    match type_:
        case "model.called" if payload.get("finish_reason") == "error":
            return str(payload.get("error", ""))
        case "compaction.failed":
            return f"{payload['reason']}: {payload.get('detail', '')}".removesuffix(": ")
        case "hook.failed":
            return f"{payload['hook']}: {payload['error']}"
        case "context.overflowed":
            return f"{payload['tokens']:,} tokens, and the limit is {payload['limit']:,}"
        case "block.appended" if block.get("is_error") or block.get("exit_status"):
            return str(block.get("text", ""))
    return None


async def _versions(store: EventStore) -> dict[str, Any]:
    """Return what the library runs on; nothing that names the machine or who works on it."""
    wanted = {re.split(r"[^A-Za-z0-9._-]", need, maxsplit=1)[0] for need in requires(_DISTRIBUTION) or ()}
    return {
        "timeline-engine": timeline.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "sqlite": sqlite3.sqlite_version,
        "store": type(store).__name__,
        "retention": await store.retention(),
        "packages": {name: found for name in sorted(wanted) if (found := _installed(name)) is not None},
    }


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _written(report: Any) -> str:
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def _zipped(parts: Mapping[str, str]) -> bytes:
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED, compresslevel=6) as file:
        for name, text in parts.items():
            about = ZipInfo(name, _DATE)
            about.compress_type = ZIP_DEFLATED
            about.create_system = _UNIX
            about.external_attr = _PRIVATE << 16
            file.writestr(about, text.encode())
    return packed.getvalue()
