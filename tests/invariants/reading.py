"""An agent that reads and edits files, whose results repeat what is in sight and number their lines."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from tests.scenes import after
from timeline import Timeline
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.errors import BlockNotFound, BlockProtected, CompactionRefused

if TYPE_CHECKING:
    from timeline import RenderedContext
    from timeline.store.memory import MemoryStore

WORDS: Final = [
    "ant",
    "bee",
    "cat",
    "dog",
    "elk",
    "fox",
    "gnu",
    "hen",
    "ibis",
    "jay",
    "kiwi",
    "lynx",
    "mole",
    "newt",
    "owl",
    "pig",
]
STEPS: Final = st.one_of(
    st.tuples(st.just("read"), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("edit"), st.integers(0, 2), st.integers(0, 30)),
    st.tuples(st.just("write"), st.integers(0, 2)),
    st.tuples(st.just("prompt")),
    st.tuples(st.just("pause")),
    st.tuples(st.just("hide"), st.integers(0, 9), st.sampled_from(["replace", "omit"])),
    st.tuples(st.just("redact"), st.integers(0, 9)),
    st.tuples(st.just("compact")),
    st.tuples(st.just("undo")),
    st.tuples(st.just("fork")),
    st.tuples(st.just("open")),
)
"""Each is one for `Agent.take`."""


class Agent:
    """An agent that reads and edits three files, and renders before each of its responses."""

    def __init__(self, store: MemoryStore, timeline: Timeline) -> None:
        self.store, self.timeline = store, timeline
        self.files = [[f"{word} {number} of file {file}" for number, word in enumerate(WORDS * 2)] for file in range(3)]
        self.seconds = 0.0
        self.number = 0
        self.results: dict[str, str] = {}

    async def use(self, name: str, text: str, **arguments: Any) -> RenderedContext:
        """Call a tool, and render behind its result."""
        self.number += 1
        id_ = f"call{self.number}"
        await self.timeline.append(
            ToolCall(call_id=id_, name=name, arguments=arguments, response_id=id_), ToolResult(call_id=id_, text=text)
        )
        self.results[id_] = text
        return await self.render()

    async def render(self) -> RenderedContext:
        """Render, a second later."""
        self.seconds += 1
        return await self.timeline.render(now=after(self.seconds))

    async def take(self, step: tuple[Any, ...]) -> RenderedContext:
        """Take one step, and render behind it."""
        match step:
            case ("read", file, with_numbers):
                lines = self.files[file]
                if with_numbers:
                    lines = [f"{number:6}→{line}" for number, line in enumerate(lines, 1)]
                return await self.use("read_file", "\n".join(lines), path=f"{file}.txt")
            case ("edit", file, place):
                self.files[file].insert(place, f"edit {self.number}")
                return await self.use("edit_file", "edited", path=f"{file}.txt")
            case ("write", file):
                return await self.use("write_file", "written", path=f"{file}.txt", content="\n".join(self.files[file]))
            case ("prompt",):
                await self.timeline.append(AssistantCompletion(text="Done."), UserPrompt(text="Go on."))
            case ("fork",):
                self.timeline = await self.timeline.fork()
            case ("open",):
                self.timeline = await Timeline.open(self.store, self.timeline.id)
            case ("pause",):
                self.seconds += 4_000
            case _:
                await self.decide(step)
        return await self.render()

    async def decide(self, step: tuple[Any, ...]) -> None:
        """Take a decision of the application, as far as it may be taken."""
        timeline, now = self.timeline, after(self.seconds)
        live = [item.block.path for item in timeline.window.items if not item.is_summary and not item.redacted]
        with suppress(BlockNotFound, BlockProtected, CompactionRefused):
            match step:
                case ("hide", number, mode):
                    await timeline.hide(live[number % len(live)] if live else "", mode=mode)
                case ("redact", number):
                    await timeline.redact(live[number % len(live)] if live else "", "test")
                case ("compact",):
                    await timeline.compact(now=now)
                case ("undo",) if timeline.window.summaries:
                    await timeline.undo_compaction(cascade=True, now=now)
