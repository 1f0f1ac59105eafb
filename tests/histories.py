"""Histories: what several processes did to the conversations of a store, and whether one log explains all of it.

Each process notes when an operation began and how it ended: *ok*, *failed*, or, where it never heard, *unknown*. The
log itself says in which order the appends took effect; `problems` looks for a moment for each operation, between its
begin and its end, that fits that order. A conversation is a register that holds its version.

``python -m tests.histories URL NAME SEED`` is one process: it works until its standard input is closed.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from timeline.events import NewEvent
    from timeline.ports import EventStore

ROOT: Final = Path(__file__).parent.parent
TASKS: Final = 4
CONVERSATIONS: Final = 3
_PATIENCE: Final = 60.0


@dataclass
class Operation:
    """An append, or a look at a conversation's version.

    Attributes:
        name: of the process, the task and the number in it.
        conversation: its id.
        begin: when it began, by the clock that all processes share.
        ids: of the events to append; empty for a look.
        end: when it ended; None if its process never heard.
        outcome: how; a look is never unknown.
        version: the last version that was appended, or the version that was seen, also in a conflict.
    """

    name: str
    conversation: str
    begin: int
    ids: Sequence[str] = ()
    end: int | None = None
    outcome: Literal["ok", "failed", "unknown"] = "unknown"
    version: int = 0


def problems(operations: Iterable[Operation], logs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what no order of the operations explains; ``logs`` has the ids of each conversation's events in order."""
    by_conversation: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        by_conversation[operation.conversation].append(operation)
    found: list[str] = []
    for conversation in logs.keys() | by_conversation.keys():
        log, played = logs.get(conversation, ()), by_conversation[conversation]
        writers = _writers(conversation, log, played, found)
        _order(conversation, len(log), writers, played, found)
    return found


def _writers(
    conversation: str, log: Sequence[str], played: Sequence[Operation], found: list[str]
) -> dict[int, Operation]:
    """Return the append that ends at each version; note those that are lost, doubled, torn or nobody's."""
    places = {id_: version for version, id_ in enumerate(log, 1)}
    found += [f"{conversation}: {id_} is in the log {n} times" for id_, n in Counter(log).items() if n > 1]
    writers: dict[int, Operation] = {}
    for operation in played:
        if not operation.ids:
            continue
        held = [places[id_] for id_ in operation.ids if id_ in places]
        if operation.outcome == "ok":
            first = operation.version - len(operation.ids) + 1
            if held != list(range(first, operation.version + 1)):
                found.append(f"{operation.name} was acknowledged at version {first}, and is at {held}")
        elif operation.outcome == "failed" and held:
            found.append(f"{operation.name} was refused, and is at {held}")
        elif held and held != list(range(held[0], held[0] + len(operation.ids))):
            found.append(f"{operation.name} is there in part, at {held}")
        if held:
            writers[held[-1]] = operation
    known = {id_ for operation in played for id_ in operation.ids}
    found += [f"{conversation}: nobody appended {id_}" for id_ in log if id_ not in known]
    return writers


def _order(
    conversation: str, length: int, writers: Mapping[int, Operation], played: Sequence[Operation], found: list[str]
) -> None:
    """Give each operation the earliest moment that fits the order of the log, and note those that have none."""
    seen: defaultdict[int, list[Operation]] = defaultdict(list)
    for operation in played:
        if operation.end is not None and (not operation.ids or operation.outcome == "failed"):
            seen[operation.version].append(operation)
    moment = 0
    for version in range(length + 1):
        if version and version not in writers:
            found += [f"{one.name} saw version {version}, in the middle of an append" for one in seen.pop(version, ())]
            continue
        here = sorted(seen.pop(version, ()), key=lambda one: one.begin)
        for one in ([writers[version]] if version else []) + here:
            moment = max(moment, one.begin)
            if one.end is not None and moment > one.end:
                found.append(f"{one.name} ended before version {version} of {conversation} can have been there")
    found += [f"{one.name} saw version {v}, and the log ends at {length}" for v, all_ in seen.items() for one in all_]


@dataclass
class Player:
    """One process, and the file with what it did."""

    process: subprocess.Popen[str]
    notes: Path

    def operations(self) -> list[Operation]:
        """Return what it noted; a line that it was killed at is not whole."""
        noted: dict[str, Operation] = {}
        for line in self.notes.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                part = json.loads(line)
                if part["name"] in noted:
                    vars(noted[part["name"]]).update(part)
                else:
                    noted[part["name"]] = Operation(**part)
        return list(noted.values())


@dataclass
class Players:
    """The processes that worked on a store, those that were killed too."""

    url: str
    folder: Path
    all: list[Player] = field(default_factory=list)

    def join(self) -> Player:
        """Start one more, and wait until it has the store open."""
        name = f"p{len(self.all)}"
        notes = self.folder / f"notes-{name}"
        with notes.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.histories", self.url, name, str(len(self.all))],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.PIPE,
                text=True,
            )
        player = Player(process, notes)
        self.all.append(player)
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n", process.communicate()[1]
        return player

    def end(self) -> list[Operation]:
        """Let all that run end what they began, and return what was ever done."""
        for player in self.all:
            if player.process.poll() != -signal.SIGKILL:
                complaint = player.process.communicate(timeout=2 * _PATIENCE)[1]
                assert player.process.returncode == 0, complaint
        return [operation for player in self.all for operation in player.operations()]

    def kill(self) -> None:
        """Kill all that still run."""
        for player in self.all:
            if player.process.poll() is None:
                player.process.kill()
            if player.process.stdin is not None and not player.process.stdin.closed:
                player.process.communicate()


async def logs_of(store: EventStore) -> dict[str, list[str]]:
    """Read the ids of all conversations' events."""
    return {info.id: [str(event.id) async for event in store.read(info.id)] async for info in store.conversations()}


def _note(name: str, **parts: Any) -> None:
    sys.stdout.write(json.dumps({"name": name, **parts}) + "\n")
    sys.stdout.flush()


async def _play(store: EventStore, name: str, seed: int, ended: asyncio.Event) -> None:
    from timeline.blocks import UserPrompt  # noqa: PLC0415 - the checker needs none of it
    from timeline.events import BlockAppended, NewEvent, event_id  # noqa: PLC0415

    def event() -> NewEvent:
        at = datetime.now(UTC)
        return NewEvent(
            id=event_id(at), at=at, payload=BlockAppended(block=UserPrompt(text=name), tokens=1, counter="c")
        )

    draw, seen = random.Random(seed), dict.fromkeys(map(str, range(CONVERSATIONS)), 0)
    for number in count():
        if ended.is_set():
            return
        conversation, operation = draw.choice(list(seen)), f"{name}.{number}"
        if draw.random() < 0.3:
            seen[conversation] = await _look(store, operation, conversation)
        else:
            events = [event() for _ in range(draw.randint(1, 4))]
            exact = seen[conversation] if draw.random() < 0.7 else None
            seen[conversation] = await _append(store, operation, conversation, events, exact)
        await asyncio.sleep(0)


async def _look(store: EventStore, name: str, conversation: str) -> int:
    from timeline.errors import ConversationNotFound, StoreError  # noqa: PLC0415

    until = time.monotonic() + _PATIENCE
    while True:
        begin = time.monotonic_ns()
        try:
            version = (await store.info(conversation)).version
        except ConversationNotFound:
            version = 0
        except StoreError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)
            continue
        _note(name, conversation=conversation, begin=begin, end=time.monotonic_ns(), outcome="ok", version=version)
        return version


async def _append(
    store: EventStore, name: str, conversation: str, events: Sequence[NewEvent], exact: int | None
) -> int:
    """Append until it is known how that ended, under the same ids; return the version that is known then."""
    from timeline.errors import StoreError, VersionConflict  # noqa: PLC0415
    from timeline.ports import Expected  # noqa: PLC0415

    _note(name, conversation=conversation, begin=time.monotonic_ns(), ids=[str(event.id) for event in events])
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            done = await store.append(conversation, events, expected=Expected.ANY if exact is None else exact)
        except VersionConflict as conflict:
            _note(name, end=time.monotonic_ns(), outcome="failed", version=conflict.actual)
            return conflict.actual
        except StoreError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)
        else:
            _note(name, end=time.monotonic_ns(), outcome="ok", version=done.version)
            return done.version


async def _main(url: str, name: str, seed: int) -> None:
    from timeline import open_store  # noqa: PLC0415

    ended = asyncio.Event()
    async with open_store(url) as store:
        sys.stderr.write("ready\n")
        sys.stderr.flush()
        playing = [_play(store, f"{name}.{task}", 100 * seed + task, ended) for task in range(TASKS)]
        waiting = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        waiting.add_done_callback(lambda _: ended.set())
        await asyncio.gather(*playing)
        await waiting


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
