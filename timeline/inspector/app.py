"""The inspector as one ASGI application, which needs no lifespan and keeps nothing outside itself.

A request is refused by where it comes from before anything else is looked at; then by who asks; then by its method.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from urllib.parse import quote, unquote

import anyio
from pydantic import ValidationError

from timeline.display.logs import logger_of
from timeline.errors import InvalidArgument, TimelineError, needs
from timeline.frozen import compact_json
from timeline.inspector.asked import AskedConversation, AskedDecision, AskedFile, AskedLab
from timeline.inspector.decisions import decide
from timeline.inspector.downloads import download
from timeline.inspector.openapi import openapi
from timeline.inspector.pages import IN_FRAME, POLICY, page_files
from timeline.inspector.problems import Refused, invalid, problem_of
from timeline.inspector.reader import Reader
from timeline.inspector.routes import ROUTES
from timeline.inspector.shapes import Problem
from timeline.inspector.stream import Live
from timeline.integrations.http_bounds import BodyRefused, bounded
from timeline.integrations.loopback import foreign, is_loopback, loopback_hosts, passed_on
from timeline.log.undisturbed import undisturbed

with needs("inspector"):
    from starlette.requests import Request
    from starlette.responses import RedirectResponse, Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from timeline.inspector.asked import Decision
    from timeline.inspector.routes import Route
    from timeline.lab.prices import PriceTable
    from timeline.ports import EventStore

Auth: TypeAlias = "Callable[[Request], bool | Response | Awaitable[bool | Response]]"
"""Decides who may ask: True lets a request in, a response is sent instead, such as a redirect to a login."""

T = TypeVar("T")

DECIDING: Final = "x-timeline-decision"
"""The header that a decision needs: a page of another origin cannot send it without asking first."""
DEADLINE: Final = 30.0
"""Seconds that an answer may take."""
_SAFE: Final = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}
"""Headers of every answer; a page has a policy of its own."""
_FOREVER: Final = "private, max-age=31536000, immutable"
_REVALIDATE: Final = "private, no-cache"
_LOG: Final = logger_of(__name__)


def inspector(
    store: EventStore,
    *,
    auth: Auth | None = None,
    allow: Collection[Decision] = (),
    hosts: Collection[str] = (),
    prices: PriceTable | None = None,
    deadline: float = DEADLINE,
) -> ASGIApp:
    """Return the inspector of a store: a page, and the JSON API below ``v1`` that it reads.

    Mount it anywhere; its addresses are relative to that place. Unless decisions are allowed it only reads, so open
    the store with ``readonly=True`` where nothing else needs it.

    Args:
        store: the store; it belongs to the event loop that the application runs in.
        auth: decides who may ask. Without it only a server on loopback answers, under a loopback name, and nothing
            that a proxy passed on.
        allow: decisions that its readers may take: hide, reveal, pin, unpin, compact, undo, fork.
        hosts: Host headers that the server is asked under, such as ``["agents.example:8000"]``; with ``auth`` any,
            unless given.
        prices: what tokens cost; the packaged table unless given.
        deadline: seconds that an answer may take.

    Example:
        ```python
        from starlette.applications import Starlette

        from timeline import open_store
        from timeline.inspector import inspector

        store = await open_store("memory://")
        app = Starlette()
        app.mount("/timeline", inspector(store))
        ```
    """
    return _Inspector(Reader(store, prices, allow), auth, frozenset(host.lower() for host in hosts), deadline)


class _Inspector:
    """Answers requests about one store."""

    def __init__(self, reader: Reader, auth: Auth | None, hosts: frozenset[str], deadline: float) -> None:
        self._reader = reader
        self._live = Live(reader.store)
        self._auth = auth
        self._hosts = hosts
        self._deadline = deadline

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            InvalidArgument: nothing decides who may ask, and others than this machine can.
        """
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        self._check_open(scope)
        receive = bounded(receive, self._deadline)  # of a request that is refused, no byte of its body is held
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, _safely(send))

    def _check_open(self, scope: Scope) -> None:
        """Refuse to serve others than this machine without anything that decides who they are."""
        address = (scope.get("server") or ("", None))[0]
        if self._auth is None and not is_loopback(address):
            problem = (
                f"the server is reached at {address or 'an unknown address'}, which others can reach too. Pass auth="
            )
            raise InvalidArgument("auth", f"{problem}, or bind the server to 127.0.0.1")

    async def _answer(self, request: Request) -> ASGIApp:
        try:
            return await self._entering(request) or await self._found(request)
        except Refused as refusal:
            return _problem(refusal.problem())
        except BodyRefused as refused:
            return _problem(Refused(refused.status, "request-not-read", refused.problem).problem(), closing=True)
        except ValidationError as error:
            return _problem(invalid(error))
        except TimelineError as error:
            return _problem(problem_of(error))
        except Exception:  # noqa: BLE001 - whatever it is, the reader gets an answer, and the log of the server the traceback
            _LOG.exception("the inspector failed to answer %s", request.url.path)
            detail = "This is a bug in timeline: please report it, with what the server's log says."
            return _problem(Problem(type="fault", title="fault", status=500, detail=detail))

    async def _entering(self, request: Request) -> Response | None:
        """Refuse a request from elsewhere, or let ``auth`` decide about it; None where it may be answered."""
        hosts: frozenset[str] | None = self._hosts
        if self._auth is None:
            hosts = self._hosts | loopback_hosts((request.scope.get("server") or ("", None))[1] or 80)
        if (problem := foreign(request.scope["headers"], hosts or None)) is not None:
            raise Refused(403, "foreign-request", problem)
        if self._auth is None:
            if (problem := passed_on(request.scope["headers"])) is not None:
                raise Refused(403, "foreign-request", f"{problem} Pass auth= to inspector().")
            return None
        let_in = self._auth(request)
        if isawaitable(let_in):
            let_in = await let_in
        if isinstance(let_in, Response):
            return let_in
        if let_in is not True:
            cure = "Open the address that the server printed, with its token; scripts send it as Authorization: Bearer."
            raise Refused(403, "not-let-in", f"Nothing shows that you may ask. {cure}")
        return None

    async def _found(self, request: Request) -> ASGIApp:
        path = _path_below(request.scope)
        if request.method not in {"GET", "HEAD"}:
            return await self._decided(request, _segments(path or ""))
        if path is None:  # without a slash behind the place of mounting, relative addresses would miss it
            last = quote(request.scope["path"].rstrip("/").rpartition("/")[2])
            return RedirectResponse(f"./{last}/", status_code=307)
        if (file := page_files().get(unquote(path))) is not None:
            kept = {"Content-Security-Policy": file.policy, "Cache-Control": _REVALIDATE}
            return _tagged(request, file.body, file.kind, file.tag, kept)
        if path == "v1/openapi.json":
            return _json(request, compact_json(openapi()).encode())
        segments = _segments(path)
        if len(segments) == 4 and segments[:2] == ["v1", "conversations"] and segments[3] in {"events", "status"}:
            await request.body()  # a stream waits for what comes behind it: that its reader is gone
            return self._live_of(segments[2], segments[3])
        if len(segments) == 4 and segments[:2] == ["v1", "conversations"] and segments[3] == "file":
            asked = AskedFile.model_validate({**_query(request, {"id": ""}), "id": segments[2]})
            return await self._in_time(download(self._reader, asked))
        if len(segments) == 4 and segments[:2] == ["v1", "conversations"] and segments[3] == "lab-page":
            return await self._lab_page(request, segments[2])
        for route in ROUTES:
            if (given := route.match(segments)) is not None:
                return await self._read(request, route, given)
        raise Refused(404, "no-such-address", "There is nothing at this address; v1/openapi.json lists what there is.")

    async def _decided(self, request: Request, segments: list[str]) -> Response:
        """Take a decision, if one is asked for where that is allowed, by a page of ours or by a script."""
        here = len(segments) == 4 and segments[:2] == ["v1", "conversations"] and segments[3] == "decisions"
        if request.method != "POST" or not here:
            raise Refused(405, "method-not-allowed", "This address can only be read: use GET.")
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin" or DECIDING not in request.headers:
            cure = f"Only the server's own page decides, and scripts that send the header {DECIDING}"
            raise Refused(403, "foreign-request", f"{cure}.")
        asked = AskedDecision.model_validate_json(await request.body())
        if asked.decision not in self._reader.allow:
            cure = "Start it with `timeline inspect --allow-decisions`, or inspector(store, allow=…)"
            raise Refused(403, "decision-not-allowed", f"This inspector takes no decision {asked.decision!r}. {cure}.")
        decided = await self._in_time(decide(self._reader, segments[2], asked))
        return _json(request, decided.model_dump_json().encode())

    async def _in_time(self, reading: Awaitable[T]) -> T:
        """Return an answer that comes within the deadline.

        Raises:
            Refused: it does not; what it was doing is cancelled.
        """
        with anyio.move_on_after(self._deadline):
            return await reading
        cure = "Ask for less: fewer rows, one conversation, a shorter time"
        detail = f"The answer took longer than {self._deadline:g} seconds and was given up. {cure}."
        raise Refused(408, "deadline", detail)

    def _live_of(self, conversation: str, what: str) -> ASGIApp:
        """Return what streams the events of a conversation, or answers how its context is now."""

        async def respond(scope: Scope, receive: Receive, send: Send) -> None:
            if what == "events":
                await self._live.events(conversation, scope, receive, send)
            else:
                await self._live.status(conversation, send)

        return respond

    async def _lab_page(self, request: Request, conversation: str) -> Response:
        """Return the page of a comparison that has ended."""
        asked = AskedLab.model_validate({**_query(request, {"id": ""}), "id": conversation})
        run = await self._in_time(self._reader.laboratory.run(asked))
        if not run.ended:
            raise Refused(409, "not-yet", "The comparison goes on: ask for …/lab until it has ended.")
        body = run.page.encode()
        kept = {"Content-Security-Policy": IN_FRAME, "Cache-Control": _REVALIDATE}
        return _tagged(request, body, "text/html; charset=utf-8", f'"{sha256(body).hexdigest()[:32]}"', kept)

    async def _read(self, request: Request, route: Route, given: dict[str, str]) -> Response:
        asked = route.asks.model_validate({**_query(request, given), **given})
        reading = partial(route.read, self._reader, asked)
        about = [asked.id] if isinstance(asked, AskedConversation) else []
        answer = await self._in_time(undisturbed(self._reader.store, reading, *about))
        lasting = route.lasts(asked, answer)
        return _json(request, answer.model_dump_json().encode(), _FOREVER if lasting else _REVALIDATE)


def _safely(send: Send) -> Send:
    """Return what sends a response with the headers that every answer has."""

    async def safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            message = {**message, "headers": [*given, *((n, v) for n, v in _SAFE.items() if n not in names)]}
        await send(message)

    return safely


def _path_below(scope: Scope) -> str | None:
    """Return the path below the place of mounting, still percent-encoded: an id may have a slash.

    None where the slash behind that place is missing.
    """
    raw = scope.get("raw_path")
    path = quote(scope["path"]) if raw is None else raw.partition(b"?")[0].decode("latin-1")
    root = scope.get("root_path", "").rstrip("/")
    for prefix in dict.fromkeys([quote(root), root]):
        if prefix and path == prefix:
            return None
        if prefix and path.startswith(f"{prefix}/"):
            return path[len(prefix) + 1 :]
    return path.removeprefix("/")


def _segments(path: str) -> list[str]:
    """Return the segments of a path, decoded.

    Browsers take a segment of one or two dots, however it is encoded, for a folder and never send it: an id of that
    form is an empty segment, which no id is, and the number of its dots.
    """
    segments = [unquote(segment) for segment in path.split("/")]
    if segments[:3] == ["v1", "conversations", ""] and segments[3:4] in (["1"], ["2"]):
        segments[2:4] = ["." * int(segments[3])]
    return segments


def _query(request: Request, given: dict[str, str]) -> dict[str, Any]:
    """Return the parameters of the query.

    Raises:
        Refused: one is there twice, or is part of the path.
    """
    pairs = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1 or name in given), None):
        raise Refused(400, "invalid-request", f"{twice!r} is given twice. Give it once.")
    return dict(pairs)


def _json(request: Request, body: bytes, keeping: str = _REVALIDATE) -> Response:
    tag = f'"{sha256(body).hexdigest()[:32]}"'
    return _tagged(request, body, "application/json", tag, {"Cache-Control": keeping})


def _tagged(request: Request, body: bytes, kind: str, tag: str, headers: dict[str, str]) -> Response:
    """Return a body with its tag, or only that it has not changed."""
    headers = {**headers, "ETag": tag}
    known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if tag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    response = Response(body, media_type=kind, headers=headers)
    if request.method == "HEAD":
        response.body = b""
    return response


def _problem(problem: Problem, *, closing: bool = False) -> Response:
    return Response(
        problem.model_dump_json(),
        status_code=problem.status,
        media_type="application/problem+json",
        headers={"Cache-Control": "no-store", **({"Connection": "close"} if closing else {})},
    )
