"""The chat page of the documentation, with a real store, and a summarizer that a test holds back."""

from __future__ import annotations

import asyncio
import runpy
import socket
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import uvicorn

from timeline import Timeline, open_store, policies
from timeline.errors import SummarizerFailed
from timeline.ports import Summary

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from playwright.sync_api import Browser, Page

    from timeline.policy.model import Policy
    from timeline.ports import EventStore, SummaryRequest

CHAT: Final = Path(__file__).parents[2] / "docs" / "inspector" / "chat.py"
POLICY: Final = policies.prune_then_summarize(
    max_tokens=6_000, output_reserve=1_000, counter="chars4", protect=500, minimum=500
).model_copy(update={"on_failure": "unchanged"})
SUMMARY: Final = "We looked at <b>every</b> file, and line 2\nis left."


@dataclass
class Held:
    """A summarizer that waits until it may answer, or fails."""

    name: str = "held"
    may: Event = field(default_factory=Event)
    fails: bool = False

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Wait, then answer."""
        del request
        await asyncio.to_thread(self.may.wait, 20)
        if self.fails:
            raise SummarizerFailed(["the model is overloaded"])
        return Summary(text=SUMMARY, summarizer=self.name)


@dataclass
class Chat:
    """A served chat.

    Attributes:
        url: of the page.
        store: what it writes to; use it in its own loop, by `do`.
        summarizer: writes its summaries, once it may.
    """

    url: str
    store: EventStore
    summarizer: Held
    loop: asyncio.AbstractEventLoop
    policy: Policy = POLICY

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the loop of the server."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def timeline(self, conversation: str) -> Timeline:
        """Open a conversation beside the server, as another process would."""
        opened = Timeline.open(self.store, conversation, policy=self.policy, summarizer=self.summarizer)
        timeline: Timeline = self.do(opened)
        return timeline


@contextmanager
def chat(policy: Policy = POLICY) -> Iterator[Chat]:
    """Serve the page of the documentation in a thread."""
    ready, loop = Event(), asyncio.new_event_loop()
    listening = socket.create_server(("127.0.0.1", 0))
    summarizer, held = Held(), dict[str, Any]()

    async def serve() -> None:
        async with open_store("memory://") as store:
            app = runpy.run_path(str(CHAT))["build"](store, policy=policy, summarizer=summarizer)
            config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
            held["server"], held["store"] = uvicorn.Server(config), store
            ready.set()
            await held["server"].serve(sockets=[listening])

    thread = Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(20)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        yield Chat(url, held["store"], summarizer, loop, policy)
    finally:
        summarizer.may.set()
        held["server"].should_exit = True
        thread.join()
        loop.close()


@contextmanager
def visiting(browser: Browser, chat: Chat, conversation: str) -> Iterator[Page]:
    """Open the page at a conversation; at the end it has said nothing wrong and asked nobody else."""
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(chat.url) else None)
    page.goto(f"{chat.url}#{quote(conversation)}")
    page.wait_for_selector("body[data-ready]")
    try:
        yield page
        assert wrong == [], wrong
    finally:
        context.close()
