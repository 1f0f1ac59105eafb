"""The server of the fake provider: routes, the script, and its misbehaviour on the wire."""

from __future__ import annotations

import json
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from tests.providers.script import Answer, Asked, Cut, Hang, Raw, Step, Trouble
from tests.providers.wires import BrokenRequest

if TYPE_CHECKING:
    from types import TracebackType

    from tests.providers.wires import Wire

Script: TypeAlias = Step | Sequence[Step] | Callable[[Asked], Step]
_ROUTES: Final = {
    "anthropic": re.compile(r"/v1/messages"),
    "openai_chat": re.compile(r"/v1/chat/completions"),
    "openai_responses": re.compile(r"/v1/responses"),
    "gemini": re.compile(r"/v1(?:beta|alpha)?/models/(?P<model>[^/:]+):(?:g|streamG)enerateContent"),
}
"""The wires, and the path of each: its module is imported with the first request, since SDKs take their time."""
_GLANCE: Final = 0.02
"""Seconds between two looks at whether a client that waits has gone."""


class FakeProvider:
    """A server on a free loopback port, from ``with`` to its end; any number of clients and threads may ask it.

    Attributes:
        asked: the requests that were in order, in the order in which they came.
        refused: what was wrong with the others, and how those above the limit were.
        gone: how many clients went away before their answer was complete.

    Args:
        script: see the package.
        limit: tokens that the model takes; a longer request is refused, with the figures, as the provider does.
    """

    def __init__(self, script: Script = "Done.", *, limit: int | None = None) -> None:
        self.asked: list[Asked] = []
        self.refused: list[str] = []
        self.gone = 0
        self._script = script
        self._limit = limit
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(self)

    @property
    def url(self) -> str:
        """The base URL for ``anthropic`` and ``google-genai``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """The base URL for ``openai``."""
        return f"{self.url}/v1"

    def __enter__(self) -> Self:
        """Serve."""
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let whoever hangs go, and close."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, wire: Wire, body: dict[str, Any], headers: dict[str, str], *, stream: bool) -> tuple[Asked, Step]:
        """Check a request and find its step.

        Raises:
            BrokenRequest: the provider would refuse it, or the script is used up.
        """
        with self._lock:
            try:
                wire.check(body)
                system, said = wire.said(body)
                asked = Asked(wire.name, body, headers, len(self.asked), stream, system, tuple(said))
                if self._limit is not None and asked.tokens > self._limit:
                    self.refused.append(f"{asked.tokens} tokens > {self._limit}")
                    return asked, Trouble("context_limit", limit=self._limit)
                step = self._step(asked)
            except BrokenRequest as problem:
                self.refused.append(str(problem))
                raise
            self.asked.append(asked)
            return asked, step

    def _step(self, asked: Asked) -> Step:
        if callable(self._script):
            return self._script(asked)
        if isinstance(self._script, Sequence) and not isinstance(self._script, str):
            if asked.number >= len(self._script):
                raise BrokenRequest(f"the script has no step for request {asked.number}")
            return self._script[asked.number]
        return self._script

    def wait_for(self, *, asked: int = 0, gone: int = 0, seconds: float = 20.0) -> None:
        """Wait, in a thread of its own, until so many requests came, and so many clients went away.

        Raises:
            TimeoutError: they did not.
        """
        until = time.monotonic() + seconds
        while len(self.asked) < asked or self.gone < gone:
            if time.monotonic() > until:
                raise TimeoutError(f"{len(self.asked)} of {asked} requests came, {self.gone} of {gone} clients went")
            time.sleep(_GLANCE)

    def wait_while(self, client: socket.socket, seconds: float | None = None) -> bool:
        """Keep a client waiting until its time is over; say whether it, and this server, are still there."""
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            if self._closing.wait(_GLANCE):
                return False
            if _is_gone(client):
                with self._lock:
                    self.gone += 1
                return False
        return True


def _is_gone(client: socket.socket) -> bool:
    readable, _, _ = select.select([client], [], [], 0)
    try:
        return bool(readable) and not client.recv(1, socket.MSG_PEEK)
    except OSError:
        return True


class _Server(ThreadingHTTPServer):
    """Hands its provider to each handler."""

    request_queue_size = 64

    def __init__(self, provider: FakeProvider) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.provider = provider


class _Handler(BaseHTTPRequestHandler):
    """One connection, which is closed behind each answer: a test's client never waits for another test's."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        self.close_connection = True
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        found = next(((match, name) for name, route in _ROUTES.items() if (match := route.fullmatch(path))), None)
        if found is None:
            self._send(404, {"error": {"message": f"no route {path}"}})
            return
        match, name = found
        wire: Wire = import_module(f"tests.providers.{name}").WIRE
        body |= match.groupdict()
        stream = bool(body.get("stream")) or ":streamGenerate" in path
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            asked, step = self.server.provider.take(wire, body, headers, stream=stream)
        except BrokenRequest as problem:
            self._send(400, wire.broken(str(problem)))
            return
        try:
            self._play(wire, asked, step)
        except (BrokenPipeError, ConnectionResetError):
            self.server.provider.gone += 1

    def _play(self, wire: Wire, asked: Asked, step: Step) -> None:
        match step:
            case Trouble():
                self._send(*wire.refusal(step, asked), retry_after=step.retry_after)
            case Raw():
                self._begin(step.status, step.content_type, length=len(step.body))
                self.wfile.write(step.body)
            case Cut():
                self._answer(wire, asked, step.answer, share=step.share)
            case Hang():
                if step.answer is not None:
                    self._answer(wire, asked, step.answer, share=step.share)
                self.server.provider.wait_while(self.connection)
            case Answer():
                if self.server.provider.wait_while(self.connection, step.delay):
                    self._answer(wire, asked, step)
            case str():
                self._answer(wire, asked, Answer(step))

    def _answer(self, wire: Wire, asked: Asked, answer: Answer, *, share: float = 1.0) -> None:
        """Send an answer, or its first share."""
        if not asked.stream:
            self._send(200, wire.whole(answer, asked), share=share)
            return
        lines = [(str(event.get("type", "")), json.dumps(event)) for event in wire.events(answer, asked)]
        lines += [("", wire.last_line)] if wire.last_line else []
        self._begin(200, "text/event-stream", length=None)
        for name, data in lines[: max(1, int(len(lines) * share))]:
            self._chunk(f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n")
        if share >= 1.0:
            self._chunk("")  # of length 0: the stream is complete

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _send(
        self, status: int, answer: dict[str, Any], *, share: float = 1.0, retry_after: float | None = None
    ) -> None:
        body = json.dumps(answer).encode()
        self._begin(status, "application/json", length=len(body), retry_after=retry_after)
        self.wfile.write(body[: int(len(body) * share)])

    def _begin(self, status: int, content_type: str, *, length: int | None, retry_after: float | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Connection", "close")
        if length is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(length))
        if retry_after is not None:
            self.send_header("Retry-After", str(round(retry_after)))
            self.send_header("Retry-After-Ms", str(round(retry_after * 1000)))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing: a test's output is its failures."""
