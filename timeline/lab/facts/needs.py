"""What each recorded answer needs: the facts that it used, and that the uncut context of its call held.

The uncut context is what no policy has cut: everything before the call that the provider is sent. So a fact of a
thought that is not sent back, of the system prompt, or that the model made up is no need.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from timeline.blocks import AssistantCompletion, Attachment, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled
from timeline.facts.extracting import facts_of_result
from timeline.facts.tool_use import tool_use
from timeline.frozen import strings_in
from timeline.lab.facts.strings import FactClass, StringFinder, facts_in, words_beside
from timeline.lab.segments import is_sent
from timeline.lab.sizes import block_of
from timeline.wire.neutral import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from timeline.blocks import Block
    from timeline.importers.recording import RecordedEvent
    from timeline.lab.results import Distance
    from timeline.lab.sizes import Measured

Origin: TypeAlias = Literal["user", "assistant", "tool", "file", "other"]
NEAR: Final = 2
"""Calls since the last mention, the call in question included, up to which a fact is near."""
MIDDLE: Final = 15
"""The same for a middle distance; beyond, a fact is far."""


class Need(NamedTuple):
    """A fact that an answer needs.

    Attributes:
        fact: the exact string.
        kind: its class.
        distance: by the calls since its last mention.
        origin: who mentioned it first; ``file`` is the content of a file, ``tool`` any other result.
        first, last: places in the recording of the first and of the last block that held it.
        before: places of the earlier states of what the last one is about, which a change in between made stale.
        beside: the words on either side of it in the answer, to search for it with (`timeline.lab.facts.searching`).
    """

    fact: str
    kind: FactClass
    distance: Distance
    origin: Origin
    first: int
    last: int
    before: tuple[int, ...] = ()
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a recording's calls, by the place of the call, and the index that finds them in texts.

    ``mentions`` has the places of all blocks that hold a fact, rising.
    """

    of_call: Mapping[int, tuple[Need, ...]]
    held: StringFinder
    mentions: Mapping[str, Sequence[int]]


def block_strings(block: Block) -> list[str]:
    """Return what a block says to the model: its text, and of a call the name and the values of the arguments."""
    strings = [block.text] if block.text else []
    if isinstance(block, ToolCall):
        strings += [block.name, *strings_in(block.arguments)]
    return strings


def entry_strings(entry: Entry) -> list[str]:
    """Return what an entry of a context says to the model, as `block_strings` does of a block."""
    strings = [entry.text] if entry.text else []
    if entry.arguments is not None:
        strings += [entry.name, *strings_in(entry.arguments)]
    return strings


def needs_of(measured: Measured) -> Needs:
    """Return what the answers of a recording need."""
    blocks = [block_of(event) for event in measured.recording.events]
    answers = dict(_answers(blocks, measured))
    held = StringFinder({fact for facts in answers.values() for fact in facts})
    texts = [[] if block is None else block_strings(block) for block in blocks]
    held.learn(text for several in texts for text in several)
    mentions: dict[str, list[int]] = {}
    for place, several in enumerate(texts):
        for fact in {fact for text in several for fact in held.within(text)}:
            mentions.setdefault(fact, []).append(place)
    places = [call.position for call in measured.calls]
    thoughts = _Thoughts(blocks, measured)
    origins, states = _origins(blocks), _States(measured.recording.events)
    found: dict[int, tuple[Need, ...]] = {}
    for position in places:
        needs: list[Need] = []
        for fact, (kind, beside) in answers[position].items():
            every = mentions.get(fact, [])
            where = [at for at in every[: bisect_left(every, position)] if thoughts.are_sent(at, position)]
            if where:
                since = bisect_left(places, position) + 1 - bisect_left(places, where[-1] + 1)
                origin, stale = origins.get(where[0], "other"), states.before(where[-1])
                needs.append(Need(fact, kind, _distance(since), origin, where[0], where[-1], stale, beside))
        found[position] = tuple(needs)
    return Needs(found, held, mentions)


def _distance(calls: int) -> Distance:
    return "near" if calls <= NEAR else "middle" if calls <= MIDDLE else "far"


def _answers(
    blocks: Sequence[Block | None], measured: Measured
) -> Iterator[tuple[int, dict[str, tuple[FactClass, str]]]]:
    """Yield the facts of each answer's texts and arguments, with the words beside them, by the position of its call."""
    of_response: dict[str, dict[str, tuple[FactClass, str]]] = {}
    events = measured.recording.events
    for event, block in zip(events, blocks, strict=True):
        if isinstance(block, AssistantCompletion | ToolCall):
            _take_facts(block, of_response.setdefault(block.response_id or event.key, {}))
    for call in measured.calls:
        first = blocks[call.position]
        key = (first.response_id if first is not None else None) or events[call.position].key
        yield call.position, of_response.get(key, {})


def _take_facts(block: AssistantCompletion | ToolCall, facts: dict[str, tuple[FactClass, str]]) -> None:
    """Add the facts of a block's text and arguments to those of its response; the first one of a fact stays."""
    for text in (block.text, *(strings_in(block.arguments) if isinstance(block, ToolCall) else ())):
        found = facts_in(text)
        for fact, kind in found.items():
            if fact not in facts:
                facts[fact] = kind, words_beside(fact, text, found)


class _Thoughts:
    """Decides which thoughts the uncut context of a call holds: those that the called model takes back."""

    def __init__(self, blocks: Sequence[Block | None], measured: Measured) -> None:
        self._entries = {
            at: Entry(path="", type=block.type, role="assistant", text=block.text, data=block.data)
            for at, block in enumerate(blocks)
            if isinstance(block, Reasoning)
        }
        self._models: dict[int, str] = {}
        model = ""
        calls = {call.position for call in measured.calls}
        for at, event in enumerate(measured.recording.events):
            if at in calls:
                self._models[at] = model
            if isinstance(event.payload, ModelCalled):
                model = event.payload.model or model

    def are_sent(self, place: int, position: int) -> bool:
        """Return whether the context of a call holds the block at a place, which is a thought or anything else."""
        entry = self._entries.get(place)
        return entry is None or is_sent(entry, self._models[position])


def _origins(blocks: Sequence[Block | None]) -> dict[int, Origin]:
    calls = {block.call_id: block for block in blocks if isinstance(block, ToolCall)}
    return {at: _origin(block, calls) for at, block in enumerate(blocks) if block is not None}


def _origin(block: Block, calls: Mapping[str, ToolCall]) -> Origin:
    if isinstance(block, UserPrompt):
        return "user"
    if isinstance(block, Attachment):
        return "file"
    if isinstance(block, ToolResult):
        call = calls.get(block.call_id or "")
        use = None if call is None else tool_use(call)
        return "file" if use is not None and use.kind == "read" else "tool"
    return "assistant" if block.author == "assistant" else "other"


class _States:
    """Finds the earlier states of a file or a command, which a later write or another outcome made stale."""

    def __init__(self, events: Sequence[RecordedEvent]) -> None:
        calls: dict[str, tuple[int, ToolCall]] = {}
        files: dict[str, list[tuple[int, bool]]] = {}
        runs: dict[str, list[tuple[int, bool]]] = {}
        self._about: dict[int, tuple[list[tuple[int, bool]], bool]] = {}
        for at, event in enumerate(events):
            block = block_of(event)
            if isinstance(block, ToolCall):
                calls[block.call_id] = (at, block)
            if not isinstance(block, ToolResult) or (asked := calls.get(block.call_id or "")) is None:
                continue
            place, call = asked
            for fact in facts_of_result(call, place, block, at, event.at):
                if fact.kind == "command":
                    states = runs.setdefault(fact.subject, [])
                    states.append((at, fact.failed))
                    self._about[at] = (states, False)
                elif fact.kind in {"file_read", "file_written"} and not fact.failed:
                    states = files.setdefault(fact.subject, [])
                    wrote = fact.kind == "file_written"
                    states.append((place if wrote else at, wrote))
                    self._about[place if wrote else at] = (states, True)

    def before(self, place: int) -> tuple[int, ...]:
        """Return the places of the states that the state at a place made stale."""
        about = self._about.get(place)
        if about is None:
            return ()
        states, is_file = about
        mine = next((n for n, (at, _) in enumerate(states) if at == place), 0)
        if not is_file:  # another outcome of the same command
            return tuple(at for at, failed in states[:mine] if failed != states[mine][1])
        writes = [n for n, (_, wrote) in enumerate(states[: mine + 1]) if wrote]
        return tuple(at for at, _ in states[: writes[-1]]) if writes else ()
