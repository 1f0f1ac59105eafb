"""A chat page that shows what happens to its context: the elements of timeline-ui over the stream of a store.

Run it with `python docs/inspector/chat.py`, and write until the context is full: 3,000 tokens are enough to watch. It
needs the extra `inspector`, no model and no key: the answers are made up here, which `build` has a place for.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import FileResponse, JSONResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import timeline.inspector
from timeline import Timeline, open_store, policies
from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.errors import BudgetError, CompactionError
from timeline.events import BlockAppended
from timeline.inspector.stream import Live
from timeline.lifecycle import lifecycle_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from timeline.policy.model import Policy
    from timeline.ports import EventStore, Summarizer

    Model = Callable[[str], Awaitable[str]]

UI = Path(timeline.inspector.__file__).with_name("web") / "timeline-ui"
FIRST = "chat"


async def echo(prompt: str) -> str:
    """Answer in place of a model."""
    return f"You said {len(prompt.split())} words. " + "Here is more about each of them. " * 20


class Chat:
    """The conversations of a store, each under one policy."""

    def __init__(self, store: EventStore, policy: Policy, summarizer: Summarizer | None, model: Model) -> None:
        self._store, self._policy, self._summarizer, self._model = store, policy, summarizer, model
        self._open: dict[str, Timeline] = {}

    async def timeline(self, conversation: str) -> Timeline:
        """Open a conversation once."""
        if conversation not in self._open:
            opened = await Timeline.open(self._store, conversation, policy=self._policy, summarizer=self._summarizer)
            self._open.setdefault(conversation, opened)
        return self._open[conversation]

    async def sessions(self, request: Request) -> JSONResponse:
        """List the conversations, each with how often it was compacted."""
        del request
        await self.timeline(FIRST)
        listed = [info async for info in self._store.conversations()]
        return JSONResponse([{"id": info.id, "compactionCount": info.compactions} for info in listed])

    async def messages(self, request: Request) -> JSONResponse:
        """List what was said, with a message of the role `compaction` wherever a summary was written."""
        conversation = request.path_params["id"]
        await self.timeline(conversation)
        shown: list[dict[str, Any]] = []
        async for event in self._store.read(conversation):
            if isinstance(event.payload, BlockAppended):
                block = event.payload.block
                if isinstance(block, UserPrompt | AssistantCompletion):
                    shown.append({"role": block.author, "content": block.text})
            shown += [
                {"role": "compaction", "content": told.summary, "event": told.payload()}
                for told in lifecycle_of(event)
                if told.type == "compaction-complete" and told.was_summarized
            ]
        return JSONResponse(shown)

    async def say(self, request: Request) -> JSONResponse:
        """Append a prompt, render, ask the model, append its answer."""
        said = (await request.json())["text"]
        session = await self.timeline(request.path_params["id"])
        await session.append(UserPrompt(text=said))
        try:
            await session.render()  # a real agent sends it: context.request("anthropic", model=…)
        except (BudgetError, CompactionError) as problem:
            return JSONResponse({"error": str(problem)}, 409)
        answered = await self._model(said)
        await session.append(AssistantCompletion(text=answered))
        return JSONResponse({"text": answered})

    async def retry(self, request: Request) -> JSONResponse:
        """Compact again, after a compaction that failed."""
        session = await self.timeline(request.path_params["id"])
        try:
            await session.compact()
        except CompactionError as problem:
            return JSONResponse({"error": str(problem)}, 409)
        return JSONResponse({})

    async def new_session(self, request: Request) -> JSONResponse:
        """Begin a new conversation that carries the summary over."""
        fresh = await (await self.timeline(request.path_params["id"])).hand_over()
        self._open[fresh.id] = fresh
        return JSONResponse({"id": fresh.id})


async def _page(request: Request) -> FileResponse:
    del request
    return FileResponse(Path(__file__).with_name("chat.html"))


def build(
    store: EventStore,
    *,
    policy: Policy | None = None,
    summarizer: Summarizer | None = None,
    model: Model = echo,
) -> Starlette:
    """Make the chat's ASGI application. The stream is mounted as any other part of it."""
    chat = Chat(store, policy or policies.cut_point(max_tokens=3_000), summarizer, model)
    return Starlette(
        routes=[
            Route("/", _page),
            Route("/sessions", chat.sessions),
            Route("/sessions/{id}/messages", chat.messages),
            Route("/sessions/{id}/say", chat.say, methods=["POST"]),
            Route("/sessions/{id}/retry", chat.retry, methods=["POST"]),
            Route("/sessions/{id}/new", chat.new_session, methods=["POST"]),
            Mount("/timeline-ui", StaticFiles(directory=UI)),
            Mount("/timeline", Live(store)),
        ]
    )


async def main(port: int = 8760) -> None:
    """Serve the page until it is stopped."""
    async with open_store("chat.db") as store:
        await uvicorn.Server(uvicorn.Config(build(store), port=port, log_level="warning")).serve()


if __name__ == "__main__":
    import asyncio

    asyncio.run(main())
