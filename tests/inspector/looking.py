"""The page in a real browser: a server for a database, and what a person would see and press.

`served` serves it from a thread, which has no start to wait for; `served_apart` by `timeline inspect`, in a process.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import uvicorn
from playwright.sync_api import expect

from timeline import open_store
from timeline.inspector import inspector
from timeline.inspector.asked import DECISIONS
from timeline.inspector.doors import TokenDoor
from timeline.integrations.loopback import loopback_hosts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from pathlib import Path
    from typing import Any, Literal

    from playwright.sync_api import Browser, Page, Request

    from timeline.ports import EventStore

TOKEN: Final = "a-token-of-the-tests-alone"  # noqa: S105 - of a server on loopback that lives for one test
_STARTS_IN: Final = 30
"""Seconds that a server may take on a machine that does other things too."""


def apart(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a thread: the browser's driver has the loop of this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, coroutine).result()


def change(file: Path | str, does: Callable[[EventStore], Awaitable[object]]) -> None:
    """Open the store of a file or URL, let a function change it, and close it."""

    async def opened() -> None:
        async with open_store(str(file)) as store:
            await does(store)

    apart(opened())


@dataclass
class Served:
    """A server: its address."""

    base: str


@contextmanager
def served(database: Path | str, *, decisions: bool = False) -> Iterator[Served]:
    """Serve the inspector of a database, a file or a URL, from a thread of this process."""
    ready: Future[uvicorn.Server] = Future()
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        port = listening.getsockname()[1]

        async def serve() -> None:
            async with open_store(str(database), readonly=not decisions) as store:
                door, hosts = TokenDoor(port, TOKEN, secure=False), loopback_hosts(port)
                app = inspector(store, auth=door, allow=DECISIONS if decisions else (), hosts=hosts)
                config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
                server = uvicorn.Server(config)
                ready.set_result(server)
                await server.serve(sockets=[listening])

        running = pool.submit(asyncio.run, serve())
        either: tuple[Future[Any], ...] = (ready, running)
        wait(either, _STARTS_IN, FIRST_COMPLETED)
        if running.done():
            running.result()
        try:
            yield Served(f"http://127.0.0.1:{port}/")
        finally:
            ready.result(0).should_exit = True
            running.result()


@dataclass
class ServedApart(Served):
    """A server in a process of its own."""

    process: subprocess.Popen[str]

    def stop(self) -> None:
        """End it at once, as a crash would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def served_apart(file: Path | str, port: int = 0) -> Iterator[ServedApart]:
    """Serve the inspector of a database, a file or a URL, as `timeline inspect` does."""
    given = ("inspect", "--db", str(file), "--no-open", "--token", TOKEN, "--port", str(port))
    command = (sys.executable, "-m", "timeline.cli", *given)
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            yield ServedApart(_address(process), process)
        finally:
            process.kill()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said = []
    end = time.monotonic() + _STARTS_IN
    while time.monotonic() < end and (line := process.stderr.readline()):
        said.append(line)
        if "http://" in line:
            return "http://" + line.partition("http://")[2].partition("?")[0].strip()
    raise AssertionError("the server did not start:\n" + "".join(said))


@dataclass
class Seen:
    """A page, what it asked for elsewhere, and the mistakes of its scripts."""

    page: Page
    base: str
    outside: list[str] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)

    def go(self, address: str) -> None:
        """Go to an address of the page: what is behind the ``#``."""
        self.page.goto(self.base + "#" + address)

    def nodes(self) -> int:
        """Return how many elements there are."""
        found: int = self.page.evaluate("document.querySelectorAll('*').length")
        return found

    def text(self, selector: str) -> str:
        """Return what is to be read in the first element of a selector, as soon as it is there."""
        return self.page.locator(selector).first.inner_text()


@contextmanager
def looking(
    browser: Browser,
    base: str,
    *,
    width: int = 1440,
    height: int = 900,
    scheme: Literal["light", "dark"] = "light",
) -> Iterator[Seen]:
    """Open the page in a profile of its own; a request to anywhere else is noted, and finds nobody."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    seen = Seen(page, base)

    def note(request: Request) -> None:
        if not request.url.startswith((base, "data:", "blob:")):
            seen.outside.append(request.url)

    context.on("request", note)
    page.on("pageerror", lambda error: seen.mistakes.append(str(error)))
    try:
        page.goto(f"{base}?token={TOKEN}")
        yield seen
    finally:
        context.close()
    assert seen.outside == []
    assert seen.mistakes == []


def violations(page: Page) -> list[str]:
    """Return what the rules of axe-core find, each as its id and the elements."""
    # What is asked for anew is pale until its answer is there.
    expect(page.locator(".stale")).to_have_count(0)
    if not page.evaluate("'axe' in window"):
        page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run(document, { resultTypes: ['violations'] })).violations")
    return [f"{one['id']}: {[node['target'] for node in one['nodes']][:4]}" for one in found]
