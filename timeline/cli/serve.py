"""`timeline mcp`: serve a database, read-only, to MCP clients."""

from __future__ import annotations

import os
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from timeline.cli.database import only_reading
from timeline.cli.exits import UsageProblem
from timeline.cli.output import note
from timeline.integrations.bearer import checked_token
from timeline.integrations.mcp.scope import Scope
from timeline.store.addresses import without_password

if TYPE_CHECKING:
    from collections.abc import Sequence

_VARIABLE: Final = "TIMELINE_MCP_TOKEN"
_HOST: Final = "127.0.0.1"


async def mcp(db: str, only: Sequence[str], *, http: int | None, token: str | None, answer_tokens: int) -> None:
    """Serve a database until the client closes standard input or, with a port, until the process is stopped.

    Raises:
        UsageProblem: the port is in use, or not allowed; standard input is closed; or the token is empty.
        InvalidArgument: the token is too short.
    """
    if http is None and sys.stdin is None:
        raise UsageProblem("standard input is closed, on which a client asks. Serve over HTTP instead, with --http.")
    if http is not None and token is None and _VARIABLE in os.environ:  # empty, or it would be the token
        problem = f"{_VARIABLE} is set, but empty, and the server would answer every user of this machine"
        raise UsageProblem(f"{problem}. Give it the token, or unset it.")
    let_in = None if token is None else checked_token(token)
    again = partial(only_reading, db)
    async with again() as store:
        from timeline.integrations.mcp import server  # noqa: PLC0415 - slow: report a wrong database first

        scope = Scope.of(only) if only else None
        anew = None if "://" in db else again
        if http is None:
            await server.serve_stdio(store, max_tokens=answer_tokens, scope=scope, again=anew)
            return
        with _listening(http) as listening:
            note(f"serving {without_password(db)} at http://{_HOST}:{listening.getsockname()[1]}/mcp; Ctrl-C ends it")
            if let_in is None:
                note("every user of this machine can ask it; with --token, only those that know the token")
            await server.serve_http(store, listening, max_tokens=answer_tokens, scope=scope, token=let_in, again=anew)


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((_HOST, port))
    except OSError as error:
        raise UsageProblem(f"--http {port}: {error.strerror}. Choose another port, or 0 for a free one.") from error
