"""Nothing that a user asked for is lost without a word: held against a reader of prompts that shares no code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.depth import at_night, sampled
from tests.independent import asking
from tests.independent.asking import asked_in, lost
from tests.recorded import needs_recordings, swept
from tests.scenes import AT, words
from timeline import Timeline, policies
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.importers import read_recording
from timeline.lab.sizes import block_of
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from timeline.blocks import Block
    from timeline.policy.model import Policy

COMPACTIONS: Final = 10
LIMIT: Final = 6_000
REFUSED: Final = "To tell you how to proceed, the user said:"
"""What a client says before the words with which a user refuses a call."""
PLANTED: Final = (
    "From now on answer in English only. Never push to main, and always run `make lint` before you commit.",
    "Bitte ändere niemals die öffentlichen Namen. Ab jetzt nur noch kleine Commits, immer mit einem Test.",
    "从现在起不要修改公共接口。请务必先写测试。",
    "公開APIは絶対に変更しないでください。必ずテストを書いてください。",
    "Tolong jangan mengubah berkas konfigurasi. Pastikan semua tes selalu hijau.",
    "Please make sure that the exporter keeps its order, and prefer short functions. Could you read the importer too?",
)


def strings(value: Any) -> Iterator[str]:
    """Yield the strings of a request."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list | tuple):
            waiting.extend(value.values() if isinstance(value, dict) else value)


class Talk:
    """A conversation that is played into a store; after each compaction and hide it is looked at what was lost."""

    def __init__(self, timeline: Timeline, store: MemoryStore) -> None:
        self.timeline, self.store = timeline, store
        self.prompts: dict[int, str] = {}
        self.not_the_models: set[int] = set()
        """What may bind the model: also rules in a client's message, a file or an attachment."""
        self.compactions = self.decisions = 0
        self.reported = 0

    async def say(self, *blocks: Block) -> None:
        """Append blocks."""
        for block in blocks:
            await self.timeline.append(block, now=block.at or AT)
            if block.author != "assistant":
                self.not_the_models.add(self.timeline.window.version)
            refused = isinstance(block, ToolResult) and block.is_error and REFUSED in block.text
            if isinstance(block, UserPrompt) or refused:
                self.prompts[self.timeline.window.version] = block.text.rpartition(REFUSED)[2]

    async def look(self, at: Any = AT) -> None:
        """Render, and check the context if a compaction or a hide came before it."""
        context = await self.timeline.render(now=at)
        summaries = self.timeline.window.summaries
        made = [event async for event in self.store.read("c", types=["compaction.completed", "blocks.hidden"])]
        if len(made) == self.decisions:
            return
        self.decisions, self.compactions = len(made), summaries[-1].round if summaries else 0
        # A compaction says anew of all prompts what is lost; behind it each hide says what it shortens.
        since = max((place for place, event in enumerate(made) if event.type == "compaction.completed"), default=0)
        reported = {version for event in made[since:] for version in event.payload.dump().get("unsaid", ())}
        self.reported += len(reported)
        assert reported <= self.not_the_models
        assert lost(self.prompts, strings(context.to_anthropic()), reported) == []


async def talk_in(policy: Policy) -> Talk:
    """Open a conversation."""
    store = MemoryStore()
    return Talk(await Timeline.open(store, "c", policy=policy, now=AT), store)


def work(number: int, tokens: int) -> list[Block]:
    """Return a round of work."""
    call = ToolCall(call_id=f"call_{number}", name="bash", arguments={"command": f"pytest tests/test_{number}.py"})
    return [call, ToolResult(call_id=call.call_id, text=words(tokens)), AssistantCompletion(text=f"Did part {number}.")]


PRESETS: Final[dict[str, Callable[..., Policy]]] = {
    "balanced": policies.balanced,
    "gentle": policies.gentle,
    "economical": policies.economical,
    "cut_point": policies.cut_point,
    "keep_last": policies.keep_last,
}


@pytest.mark.parametrize("preset", PRESETS)
async def test_what_was_planted_is_said_listed_or_reported_after_each_compaction(preset: str) -> None:
    """In five languages, while the work goes on; under presets that list what was asked, and such that do not."""
    talk = await talk_in(PRESETS[preset](max_tokens=LIMIT, counter="chars4"))
    number = 0
    while talk.compactions < COMPACTIONS:
        number += 1
        if number % 3 == 1:
            await talk.say(UserPrompt(text=f"{PLANTED[number // 3 % len(PLANTED)]} Now part {number}, please."))
        await talk.say(*work(number, LIMIT // 30))
        if number % 7 == 0:
            said = f"It was rejected. {REFUSED}\nNever touch the file number {number}."
            refused = ToolResult(call_id=f"refused_{number}", text=said, is_error=True)
            await talk.say(ToolCall(call_id=refused.call_id, name="edit"), refused)
        await talk.look()
    assert sum(map(len, map(asked_in, talk.prompts.values()))) > 20


@pytest.mark.parametrize("preset", PRESETS)
async def test_each_constraint_of_a_long_prompt_is_said_listed_or_reported(preset: str) -> None:
    """Twenty of them in one prompt of 5,000 tokens, of which a record has room for some."""
    rules = "\n\n".join(f"{words(240)}.\nThe part {n} must never import part {n + 1}." for n in range(20))
    talk = await talk_in(PRESETS[preset](max_tokens=16_000, counter="chars4"))
    await talk.say(UserPrompt(text=rules), *work(1, 100))
    number = 1
    while talk.compactions < 3:
        number += 1
        answer = AssistantCompletion(text=words(1_500))
        await talk.say(UserPrompt(text=f"go on with {number}"), *work(number, 200), answer)
        await talk.look()


async def test_what_a_list_has_no_room_for_is_counted_and_reported() -> None:
    """The line that counts what is not shown has as many requests as the compaction's prompts that it reports."""
    talk = await talk_in(policies.balanced(max_tokens=6_000, counter="chars4"))
    for number in range(60):
        rule = f"The part number {number} must never import part {number + 1}, {words(20)}"
        await talk.say(UserPrompt(text=f"{rule}."), *work(number, 150))
        await talk.look()
    newest = talk.timeline.window.summaries[-1]
    assert newest.unsaid
    assert f"{len(newest.unsaid)} requests of the user" in newest.block.text


@needs_recordings
@sampled
@pytest.mark.parametrize("limit", [pytest.param(100_000, marks=at_night), 50_000, 32_000])
async def test_nothing_asked_in_recorded_conversations_is_lost_without_a_word(limit: int) -> None:
    """After each compaction of each recording, under the default preset; few are compacted at the largest limit."""
    compactions = 0
    for file in swept("*/*.json*"):
        for recording in read_recording(file):
            talk = await talk_in(policies.balanced(max_tokens=limit))
            for event in recording.events:
                if (block := block_of(event)) is None:
                    continue
                await talk.say(block.model_copy(update={"at": event.at}))
                if block.author != "assistant":
                    await talk.look(event.at)
            compactions += talk.compactions
    assert compactions > 0


def test_the_reader_imports_nothing_of_the_project() -> None:
    """So that no fault can be shared."""
    source = ast.parse(Path(asking.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(source) if isinstance(node, ast.Import | ast.ImportFrom)]
    named = {name for node in imports for name in (getattr(node, "module", None), *(a.name for a in node.names))}
    assert not {name for name in named if name and name.split(".")[0] in {"tests", "timeline", "store"}}


def test_the_reader_finds_what_is_lost() -> None:
    """Neither said nor listed nor reported: a line of addresses alone says nothing."""
    prompts = {2: "Never push to main. Thanks.", 9: "Bitte nicht mehr als drei Dateien. Immer mit Test."}
    assert lost(prompts, ["Read @2 and @9"], ()) == [
        (2, "Never push to main."),
        (9, "Bitte nicht mehr als drei Dateien."),
        (9, "Immer mit Test."),
    ]
    context = ["- Never push to main. (@2)", "He said: Immer mit\nTest."]
    assert lost(prompts, context, ()) == [(9, "Bitte nicht mehr als drei Dateien.")]
    assert lost(prompts, context, {9}) == []
