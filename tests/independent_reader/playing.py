"""Replay a recording under a policy in a real store, and check after each compaction what the log knows and shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.independent_reader.claims import Known
from tests.independent_reader.commands import outputs
from tests.independent_reader.logged import NamedCalls, differences, logged, of_calls
from tests.independent_reader.reading import read
from tests.independent_reader.shown import PLAYED, parsed, printed, record_in
from timeline.blocks import ToolCall, ToolResult
from timeline.errors import BlockNotFound, BudgetError
from timeline.events import BlockAppended, BlocksHidden, CompactionCompleted, appended_block, derived_event_id
from timeline.fold.turns import RESPONSE_BLOCKS
from timeline.importers import ImportedCompaction, ImportedHide, read_recording
from timeline.portable.recordings import drafts_of
from timeline.store import open_store
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tests.independent_reader.acts import Act
    from tests.independent_reader.logged import Named
    from timeline.importers import RecordedEvent, Recording
    from timeline.log.protocol import Draft
    from timeline.policy.model import Policy
    from timeline.ports import EventStore
    from timeline.projection.context import RenderedContext


WORD: Final = "error"
"""What is searched for in every log."""


@dataclass
class Played:
    """What one replay showed.

    Attributes:
        facts: facts of the whole log that agreed at the end.
        compared: facts that were compared, over all compactions.
        records: compactions that show a record.
        claims: entries of these records that were held against the reader.
        addresses: addresses and paths that were read.
        hidden_calls: hidden calls that were held against their subject.
        refused: renders that no compaction could make fit.
        wrong: a line for everything that was not so.
    """

    facts: int = 0
    compared: int = 0
    compactions: int = 0
    records: int = 0
    claims: int = 0
    addresses: int = 0
    hidden_calls: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


class _Playing:
    """A running replay of recordings, one behind the other, as one conversation."""

    def __init__(self, store: EventStore, acts: Iterable[Act], policy: Policy) -> None:
        self.store, self.acts, self.policy = store, list(acts), policy
        self.played = Played()
        self.of_call: dict[Named, list[Act]] = {}
        for act in self.acts:
            self.of_call.setdefault(act.call, []).append(act)
        self.calls = NamedCalls()
        self.answered: dict[Named, int] = {}
        """The calls that have a result, in the order of the results, with the versions of these."""
        self.read_until = 0

    async def through(self, recordings: Sequence[Recording]) -> None:
        """Replay all of them; check after each compaction, and at the end."""
        first = next(iter(recordings[0].events), None)
        at = first.at if first else None
        self.timeline = await Timeline.open(self.store, PLAYED, policy=self.policy, now=at)
        for recording in recordings:
            await self._play(recording)
        await self._look(None)
        await self._compare(at_end=True)
        window = self.timeline.window.items
        await self.resolve("the window", [item.replacement.text for item in window if item.replacement is not None])

    async def _play(self, recording: Recording) -> None:
        told = [e for e in recording.events if not isinstance(e.payload, ImportedCompaction | ImportedHide)]
        ids = [derived_event_id(event.at, recording.id, event.key) for event in told]
        drafts = await drafts_of(self.timeline, list(zip(told, ids, strict=True)))
        responses: set[str] = set()
        waiting: list[Draft] = []
        for event, draft in zip(told, drafts, strict=True):
            if (response := _response(event)) and response not in responses:
                responses.add(response)
                await self.timeline.extend(waiting)
                waiting = []
                await self._render(event)
            waiting.append(draft)
        await self.timeline.extend(waiting)

    async def _render(self, event: RecordedEvent) -> None:
        try:
            context = await self.timeline.render(now=event.at)
        except BudgetError:
            self.played.refused += 1
            return
        await self._look(context)

    async def _look(self, context: RenderedContext | None) -> None:
        """Read the events since the last look, and check each compaction among them."""
        done: list[CompactionCompleted] = []
        after, self.read_until = self.read_until, self.timeline.version
        async for event in self.store.read(self.timeline.id, after=after):
            match appended_block(event.payload):
                case ToolCall() as call:
                    self.calls.take(call)
                case ToolResult(path=path) if path in self.calls.by_path:
                    self.answered[self.calls.by_path[path]] = event.version
            if isinstance(event.payload, CompactionCompleted):
                done.append(event.payload)
            if isinstance(event.payload, BlocksHidden):
                await self._hold_hidden(event.payload)
        for compaction in done:
            self.played.compactions += 1
            await self._compare()
            await self.resolve("a summary", [compaction.block.text])
            recalled = await self.timeline.recall_tool("anthropic").handle({"path": compaction.block.path})
            await self.resolve("the recall tool", [recalled])
            await self._hold_to_the_reader(compaction, context)

    async def _compare(self, *, at_end: bool = False) -> None:
        read = of_calls(self.acts, self.answered)
        found = Counter(await logged(self.store, self.timeline.id, self.calls.by_path))
        self.played.compared += read.total()
        self.played.wrong += differences(read, found)
        if at_end:
            self.played.facts = (read & found).total()

    async def _hold_hidden(self, hidden: BlocksHidden) -> None:
        """Check that each replacement prints its own address and that of no other block, and that a call is named."""
        for replacement in hidden.blocks:
            block = await self.timeline.read(f"@{replacement.version}")
            self.played.addresses += 1
            shown = replacement.text if replacement.arguments is None else str(replacement.arguments.get("_hidden", ""))
            if shown and hidden.reason in {"cold", "pressure"} and not shown.endswith(f" @{replacement.version}"):
                self.played.wrong.append(f"what is shown for {block.path} does not end with its address: {shown!r}")
            if isinstance(block, ToolCall) and shown:
                self.played.hidden_calls += 1
                if not any(name in shown for name in _names(block)):
                    self.played.wrong.append(f"what is shown for {block.path} does not name its subject: {shown!r}")

    async def resolve(self, where: str, texts: Iterable[str]) -> None:
        """Read every address and path that some texts print."""
        for address in dict.fromkeys(address for text in texts for address in printed(text)):
            self.played.addresses += 1
            try:
                await self.timeline.read(address)
            except BlockNotFound:
                self.played.wrong.append(f"{where} prints {address}, which nothing is at")

    async def _hold_to_the_reader(self, compaction: CompactionCompleted, context: RenderedContext | None) -> None:
        """Check that a record keeps to its cap, claims nothing that is not so, and names the right blocks."""
        text = record_in(compaction.block.text)
        if not text:
            return
        self.played.records += 1
        replaced = [await self.timeline.read(f"@{version}") for version in compaction.covers.summaries]
        old = sum(self.timeline.counter.count(record_in(block.text)) for block in replaced)
        cap = min(self.policy.digest_tokens, old + compaction.compacted_tokens // 4)
        if context is not None:
            cap = min(cap, (context.account.limit - context.account.fixed.tokens) // 16)
        where = f"compaction {compaction.round}"
        if (size := self.timeline.counter.count(text)) > cap:
            self.played.wrong.append(f"{where} shows a record of {size} tokens; the cap is {cap}")
        done = [act for call in self.answered for act in self.of_call.get(call, ())]
        known = Known(done, [act for act in done if self.answered[act.call] in compaction.covers])
        record = parsed(text)
        self.played.claims += len(record.entries)
        addresses = [address for e in record.entries for address in (e.address, e.first) if address]
        paths = {address: (await self.timeline.read(address)).path for address in addresses}
        at = {address: self.calls.by_path[path] for address, path in paths.items() if path in self.calls.by_path}
        self.played.wrong += [f"{where}: {line}" for line in known.denied(record, at)]


def _names(call: ToolCall) -> list[str]:
    """Return texts of which the replacement of a call has one.

    They are the ends of its strings if they name files, unless it runs or searches something; else their beginnings;
    the names of its arguments; or that it has none.
    """
    if not isinstance(call.arguments, dict):
        return [" ".join(call.arguments.split())[:8]]
    texts = [" ".join(value.split()) for value in call.arguments.values() if isinstance(value, str)]
    files = [text.rpartition("/")[2] for text in texts if text.startswith("/") and " " not in text]
    if files and not {"command", "pattern", "query"} & call.arguments.keys():
        return files
    beginnings = [text[:8] for text in texts if text]
    return [*beginnings, *(f"{key}=" for key in call.arguments), *(["no arguments"] if not call.arguments else [])]


def _response(event: RecordedEvent) -> str:
    """Return the response that an event belongs to; empty for what no model said."""
    if not isinstance(event.payload, BlockAppended) or type(event.payload.block) not in RESPONSE_BLOCKS:
        return ""
    return event.payload.block.response_id or event.key


async def play(folder: Path, files: Sequence[Path], policy: Policy) -> Played:
    """Replay the sessions of some files, one behind the other, in a database of their own."""
    recordings = [next(iter(read_recording(file))) for file in files]
    acts = [act for file in files for conversation in read(file) if not conversation.name for act in conversation.acts]
    async with await open_store(folder / "played.db") as store:
        playing = _Playing(store, acts, policy)
        await playing.through(recordings)
        for command, printed_ in (await outputs(folder / "played.db", playing.timeline.id, WORD)).items():
            await playing.resolve(f"timeline {command}", [printed_])
    return playing.played
