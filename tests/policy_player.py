"""Opens conversations and does things with them by command: in this process, or as a script in another one.

It imports nothing but the library, so that another release of that can run it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

import timeline
from timeline import Timeline, open_store, policies
from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.errors import TimelineError

AT: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONVERSATION: Final = "c"


class Player:
    """One process's stores and handles, each by a name."""

    def __init__(self) -> None:
        self._stores: dict[tuple[str, bool], Any] = {}
        self._handles: dict[str, Timeline] = {}

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out a command; a typed error is an answer."""
        arguments = {name: value for name, value in command.items() if name != "do"}
        warned: list[str] = []
        handler = _Noting(warned)
        logging.getLogger("timeline").addHandler(handler)
        try:
            answer: dict[str, Any] = await getattr(self, f"_{command['do']}")(**arguments)
        except TimelineError as error:
            answer = {"error": type(error).__name__}
        finally:
            logging.getLogger("timeline").removeHandler(handler)
        handle = self._handles.get(arguments.get("handle", ""))
        if handle is not None:
            answer |= {"policy": handle.policy.hash(), "held": handle.window.is_held}
        return {**answer, "warned": warned}

    async def _where(self) -> dict[str, Any]:
        return {"where": timeline.__file__}

    async def _hash(self, policy: dict[str, Any]) -> dict[str, Any]:
        return {"hash": made(policy).hash()}

    async def _open(
        self, file: str, handle: str, policy: dict[str, Any] | None, *, readonly: bool = False, source: str = ""
    ) -> dict[str, Any]:
        key = (file, readonly)
        if key not in self._stores:
            self._stores[key] = await open_store(file, readonly=readonly)
        given = None if policy is None else made(policy)
        self._handles[handle] = await Timeline.open(
            self._stores[key], CONVERSATION, policy=given, source=source, now=AT
        )
        return {}

    async def _append(self, handle: str) -> dict[str, Any]:
        opened = self._handles[handle]
        await opened.append(UserPrompt(text="abc " * 150), AssistantCompletion(text="abc " * 150), now=AT)
        return {}

    async def _render(self, handle: str, *, record: bool) -> dict[str, Any]:
        context = await self._handles[handle].render(now=AT, record=record)
        return {"kinds": [taken.kind for taken in context.decisions], "used": context.policy.hash()}

    async def _compact(self, handle: str) -> dict[str, Any]:
        return {"kinds": [taken.kind for taken in await self._handles[handle].compact(now=AT)]}

    async def _undo(self, handle: str) -> dict[str, Any]:
        return {"undone": await self._handles[handle].undo_compaction(cascade=True, now=AT)}

    async def _use_policy(self, handle: str, policy: dict[str, Any]) -> dict[str, Any]:
        await self._handles[handle].use_policy(made(policy), now=AT)
        return {}

    async def _past(self, handle: str, version: int) -> dict[str, Any]:
        view = await self._handles[handle].at(version)
        return {"past": view.policy.hash()}

    async def _fork(self, handle: str, version: int, name: str) -> dict[str, Any]:
        branch = await self._handles[handle].fork(at=version, conversation=name, now=AT)
        return {"fork": branch.policy.hash(), "named": branch.window.policy}

    async def _close(self) -> dict[str, Any]:
        self._handles.clear()
        for store in self._stores.values():
            await store.aclose()
        self._stores.clear()
        return {}


def made(policy: dict[str, Any]) -> Any:
    """Return the policy of a preset and its arguments."""
    return policies.by_name(policy["preset"], **policy["arguments"])


class _Noting(logging.Handler):
    """Keeps the warnings of policies that are a handle's own."""

    def __init__(self, noted: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._noted = noted

    def emit(self, record: logging.LogRecord) -> None:
        if "policy of its own" in (text := record.getMessage()):
            self._noted.append(text)


def main() -> None:
    """Serve commands until the other side closes."""
    logging.getLogger("timeline").propagate = False
    player = Player()
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            sys.stdout.write(f"{json.dumps(runner.run(player.do(json.loads(line))))}\n")
            sys.stdout.flush()
        runner.run(player.do({"do": "close"}))


if __name__ == "__main__":
    main()
