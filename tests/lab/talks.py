"""Recordings with a usage that is worked out by hand: a strict provider's, with a cache of five minutes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, Any, Final

from tests.scenes import AT
from timeline.blocks import AssistantCompletion, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.content.media_tokens import with_media
from timeline.events import BlockAppended, ModelCalled
from timeline.importers.recording import ImportedCompaction, RecordedEvent, Recording, Report
from timeline.tokens import get_counter
from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.events import Payload

MODEL: Final = "claude-opus-4-5"
FIXED: Final = 10_000
"""Tokens of system prompt and tools."""
RATIO: Final = 1.25
"""The provider's tokens for one of ours."""
UNCACHED: Final = 3
"""Tokens of each call that stand behind the last marker."""
_COUNTER: Final = get_counter("o200k_base")


@dataclass
class Talk:
    """A recording in the making; time goes on by five seconds an event.

    Attributes:
        model: that is called.
        long: the cache is asked to keep all for an hour.
        signed: thoughts carry the provider's signature.
        long_head: it is asked to keep system prompt and tools for an hour, and the rest for five minutes.
        left: tokens in front that another conversation had left in the cache.
        ratio: the provider's tokens for one of ours.
    """

    model: str = MODEL
    long: bool = False
    long_head: bool = False
    signed: bool = True
    fixed: int = FIXED
    left: int = 0
    ratio: float = RATIO
    events: list[RecordedEvent] = field(default_factory=list)
    context: int = 0
    cached: int = 0
    responses: int = 0
    turns: int = 0
    seconds: float = 0.0
    ended: float = 0.0

    def __post_init__(self) -> None:
        self.context = self.fixed

    @property
    def head(self) -> int:
        """Tokens of system prompt and tools; the rest of the fixed part stands in the first message."""
        return round(self.fixed * 0.78)

    def wait(self, seconds: float) -> None:
        """Let time go on."""
        self.seconds += seconds

    def _add(self, payload: Payload | ImportedCompaction) -> None:
        self.seconds += 5
        at = AT + timedelta(seconds=self.seconds)
        self.events.append(RecordedEvent(payload, at, f"event {len(self.events)}"))

    def say(self, block: Block) -> None:
        """Append a block of the present turn."""
        placed = block.model_copy(update={"turn_id": f"turn_{self.turns}"})
        self.context += round(with_media(block, _COUNTER.count(block.countable())) * self.ratio)
        self._add(BlockAppended(block=placed, tokens=0, counter=""))

    def ask(self, text: str) -> None:
        """Open a turn."""
        self.turns += 1
        self.say(UserPrompt(text=text))

    def respond(self, *calls: tuple[str, dict[str, Any], str], text: str = "", thought: str = "") -> None:
        """Answer with calls, each with its arguments and its result; the usage is what a strict provider reports."""
        self.responses += 1
        name = f"msg_{self.responses}"
        started, asked = self.seconds, self.context
        idle = started - self.ended if self.responses > 1 else inf
        head = self.head if self.long_head and idle <= 3_600 else 0
        kept = self.left if self.responses == 1 else self.cached if idle <= (3_600 if self.long else 300) else head
        written = asked - kept - UNCACHED
        hour = written if self.long else max(0, self.head - kept) if self.long_head else 0
        usage = Usage(
            input_tokens=UNCACHED,
            output_tokens=50,
            cache_read_tokens=kept,
            cache_write_1h_tokens=hour,
            cache_write_5m_tokens=written - hour,
        )
        if thought:
            part: JsonValue = {"type": "thinking", "thinking": thought, "signature": "c2lnbmVk"}
            data = part if self.signed else None
            self.say(Reasoning(text=thought, data=data, response_id=name))
        if text:
            self.say(AssistantCompletion(text=text, response_id=name))
        for number, (tool, arguments, _) in enumerate(calls):
            self.say(ToolCall(call_id=f"{name}_{number}", name=tool, arguments=arguments, response_id=name))
        start = AT + timedelta(seconds=started)
        self._add(ModelCalled(model=self.model, response_id=name, usage=usage, started_at=start))
        self.cached, self.ended = asked, self.seconds
        for number, (tool, _, result) in enumerate(calls):
            self.say(ToolResult(call_id=f"{name}_{number}", name=tool, text=result))

    def compact(self, summary: str) -> None:
        """Let the recorded client compact; what it puts beside the summary is not told."""
        self._add(ImportedCompaction(summary, "auto", self.context))
        self.context = self.fixed + round(_COUNTER.count(summary) * self.ratio)
        self.cached = self.head

    def recording(self, name: str = "talk", **fields: Any) -> Recording:
        """Return what was said so far."""
        return Recording(name, tuple(self.events), Report(format="claude-code"), **fields)


def code(name: str, lines: int = 40) -> str:
    """Return the text of a file: some 15 tokens a line."""
    return "\n".join(f"def {name}_{n}(card: Card) -> Card:  # moved by {n} days" for n in range(lines))


def numbered(text: str) -> str:
    """Return a text as a tool prints it that reads files: behind the numbers of its lines."""
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(text.split("\n"), start=1))


def work(rounds: int = 24, *, pauses: Mapping[int, float] | None = None, **fields: Any) -> Talk:
    """Return an agent's work: reads, writes, edits and tests of four files, in turns of eight rounds.

    Args:
        rounds: responses with calls; a turn's last one has none.
        pauses: seconds that pass before a round.
        fields: of the talk.
    """
    talk = Talk(**fields)
    for number in range(rounds):
        talk.wait((pauses or {}).get(number, 0.0))
        if number % 8 == 0:
            talk.ask(f"Please take care of part {number // 8}: " + "the scheduler must not know any database. " * 3)
        name = ("cards", "scheduler", "storage", "rows")[number % 4]
        file = {"file_path": f"src/{name}.py"}
        match number % 4:
            case 0:
                other = {"file_path": "src/model.py"}
                talk.respond(
                    ("Read", file, code(name)),
                    ("Read", other, code("model", 20)),
                    thought=f"Read {name}: part {number}.",
                )
            case 1:
                talk.respond(("Write", {**file, "content": code(name)}, f"Written: src/{name}.py"), text="I write it.")
            case 2:
                edit = {**file, "old_string": "days", "new_string": "weeks"}
                talk.respond(("Edit", edit, "Edited."), thought=f"It is weeks: part {number}.", text=f"Now {name}.")
            case _:
                failed = "Exit code 1\n" + "\n".join(f"FAILED test_{name}_{n}: due date is late" for n in range(30))
                talk.respond(("Bash", {"command": "make test"}, failed), text="I test it.")
        if number % 8 == 7:
            talk.respond(text="Done with this part; the tests are green.")
    return talk
