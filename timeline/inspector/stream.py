"""The lifecycle stream as server-sent events, and how a context is now: two plain ASGI handlers, of no framework.

The ids of the stream are versions of the log, so that a browser that comes back goes on where it was. Nothing is
queued for a reader: what it has not taken yet is read from the log when it takes it.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qs, unquote

import anyio

from timeline.blocks import instant_text
from timeline.errors import ConversationErased, InvalidArgument, StoreError, TimelineError
from timeline.inspector.problems import Refused, problem_of
from timeline.lifecycle import INTERVAL
from timeline.lifecycle.live import present, steps

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping

    from timeline.inspector.shapes import Problem
    from timeline.lifecycle.live import Present, Step
    from timeline.ports import EventStore

    Scope: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

__all__ = ["Live"]

HEARTBEAT: Final = 15.0
"""Seconds without an event after which a comment is sent, so that no proxy takes the connection for dead."""
RETRY: Final = 2.0
"""Seconds after which a browser comes back that was cut off."""
PATIENCE: Final = 30.0
"""Seconds that a reader may take for what is being sent; it comes back and goes on where it was."""
MOST: Final = 100
"""Streams at a time."""
_STREAM: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]
_JSON: Final = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]


class Live:
    """An ASGI application over a store: ``{conversation}/events`` streams, ``{conversation}/status`` answers.

    Mount it in an application of yours, behind its own authentication, or call `events` and `status` from a route of
    its own. It holds no state but the number of open streams.

    Args:
        store: the store of the conversations; it is only read.
        interval: seconds between two looks for the appends of other processes; this process's own come at once.
        heartbeat: seconds of silence after which a comment is sent.
        patience: seconds after which a reader that takes nothing is cut off.
        most: number of streams that may be open; another one is answered with 503.

    Example:
        ```python
        from timeline import open_store
        from timeline.inspector.stream import Live

        store = await open_store("memory://")
        live = Live(store)  # in Starlette: app.mount("/timeline", live)
        ```
    """

    def __init__(
        self,
        store: EventStore,
        *,
        interval: float = INTERVAL,
        heartbeat: float = HEARTBEAT,
        patience: float = PATIENCE,
        most: int = MOST,
    ) -> None:
        self._store, self._interval, self._heartbeat = store, interval, heartbeat
        self._patience, self._most, self._open = patience, most, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer ``{conversation}/events`` and ``{conversation}/status``."""
        if scope["type"] != "http":
            return
        conversation, _, what = _path(scope).rpartition("/")
        if not conversation or "/" in conversation or what not in {"events", "status"}:
            there_are = "There are {conversation}/events and {conversation}/status here."
            await _refuse(send, Refused(HTTPStatus.NOT_FOUND, "no-such-address", there_are).problem())
        elif scope["method"] not in {"GET", "HEAD"}:
            refused = Refused(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", "It can only be read, with GET.")
            await _refuse(send, refused.problem())
        elif what == "events":
            await self.events(unquote(conversation), scope, receive, send)
        else:
            await self.status(unquote(conversation), send)

    async def status(self, conversation: str, send: Send) -> None:
        """Answer with how a conversation's context is now; its ``version`` is where `events` go on."""
        try:
            now = await present(self._store, conversation)
        except TimelineError as error:
            await _refuse(send, problem_of(error))
            return
        await _answer(send, HTTPStatus.OK, status_body(conversation, now))

    async def events(self, conversation: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream the events of a conversation, behind `Last-Event-ID` or ``after``, until the reader goes.

        Without either it begins with the next thing that happens.
        """
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": _STREAM})
            await send({"type": "http.response.body", "body": b""})
            return
        if self._open >= self._most:
            full = f"{self._most} streams are open, which is the limit."
            await _refuse(send, Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too-many-streams", full).problem())
            return
        self._open += 1
        try:
            place = _Place.of(scope)
            follow = steps(self._store, conversation, after=place.after, interval=self._interval)
            async with aclosing(follow), anyio.create_task_group() as tasks:  # type: ignore[type-var]  # a generator
                first = await anext(follow, None)
                tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
                await self._write(first, follow, place, send)
                tasks.cancel_scope.cancel()
        except* TimelineError as errors:
            error = _first(errors)
            await _refuse(send, problem_of(error))
        finally:
            self._open -= 1

    async def _write(self, first: Step | None, rest: AsyncIterator[Step], place: _Place, send: Send) -> None:
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": _STREAM})
        await self._send(send, f"retry: {round(1000 * RETRY)}\n\n".encode())
        sent = monotonic()
        try:
            step = first
            while step is not None:
                data = _encoded(step, place)
                if data or monotonic() - sent >= self._heartbeat:
                    # A block without data moves the id of the reader, and is no event.
                    await self._send(send, data or f": {step.version}\nid: {step.version}\n\n".encode())
                    sent = monotonic()
                step = await anext(rest, None)
        except ConversationErased as erased:
            await self._send(send, _block("conversation-erased", {"conversation": erased.conversation}))
        except StoreError as error:
            await self._send(send, _block("stream-error", problem_of(error).model_dump(mode="json")))
        except TimeoutError:
            return  # the reader takes nothing: it comes back, and the log goes on where it was
        await self._send(send, b"", more=False)

    async def _send(self, send: Send, data: bytes, *, more: bool = True) -> None:
        with anyio.fail_after(self._patience):
            await send({"type": "http.response.body", "body": data, "more_body": more})


class _Place(NamedTuple):
    """Where a reader goes on: behind a version, of which it has the first ``had`` events of the version behind it."""

    after: int | None
    had: int = 0

    @classmethod
    def of(cls, scope: Scope) -> _Place:
        """Read it from a request.

        Raises:
            InvalidArgument: it is no id of the stream.
        """
        asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("after", [""])[-1]
        id_ = dict(scope["headers"]).get(b"last-event-id", b"").decode("latin-1") or asked
        if not id_:
            return cls(None)
        version, dot, had = id_.partition(".")
        if len(id_) > 30 or not (version.isdecimal() and version.isascii()) or (dot and not had.isdecimal()):
            raise InvalidArgument("after", f"{id_[:30]!r} is not an id of this stream: give a version, such as 84")
        return cls(int(version) - 1, int(had)) if dot else cls(int(version))


def _encoded(step: Step, place: _Place) -> bytes:
    """Write the events of a version, save those that the reader has."""
    had = place.had if place.after is not None and step.version == place.after + 1 else 0
    last = len(step.events)
    blocks = (
        _block(event.type, event.payload(), str(step.version) if number == last else f"{step.version}.{number}")
        for number, event in enumerate(step.events, start=1)
        if number > had
    )
    return b"".join(blocks)


def _block(name: str, data: dict[str, Any], id_: str = "") -> bytes:
    """Write one server-sent event; JSON on one line keeps line breaks out of it."""
    head = f"id: {id_}\n" if id_ else ""
    return f"{head}event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "surrogatepass")


def status_body(conversation: str, now: Present) -> dict[str, Any]:
    """Return how a context is now, as front ends take it: the same words as in the events."""
    progress = now.progress
    return {
        "conversation": conversation,
        "version": now.version,
        "phase": progress.phase,
        "isCompacting": progress.status == "compacting",
        "expiresAt": None if progress.expires_at is None else instant_text(progress.expires_at),
        "tokensBefore": progress.tokens_before,
        "tokensAfter": progress.tokens_after,
        "percentSaved": progress.percent_saved,
        "error": None if progress.error is None else progress.error.payload(),
        "overflow": None if progress.overflow is None else progress.overflow.payload(),
        "usage": None if progress.usage is None else progress.usage.payload(),
        "compactionCount": now.compactions,
        "lastCompactionAt": None if now.last_compaction_at is None else instant_text(now.last_compaction_at),
    }


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def _path(scope: Scope) -> str:
    """Return the path below where the application is mounted, as it was sent, so that an id may hold a slash."""
    root = scope.get("root_path", "")
    raw = scope.get("raw_path")
    path = scope["path"] if raw is None else raw.decode("latin-1").partition("?")[0]
    return str(path.removeprefix(root)).strip("/")


def _first(errors: BaseExceptionGroup[TimelineError]) -> TimelineError:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error  # type: ignore[return-value]  # the group holds no others


async def _refuse(send: Send, problem: Problem) -> None:
    await _answer(send, problem.status, problem.model_dump(mode="json"), b"application/problem+json")


async def _answer(
    send: Send, status: int, body: dict[str, Any], kind: bytes = b"application/json; charset=utf-8"
) -> None:
    data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    headers = [(b"content-type", kind), *_JSON, (b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
