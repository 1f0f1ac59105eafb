"""Whatever is done to the conversations of a store, what was forgotten is nowhere, and all else is whole."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.forgetting.words import Model, Repeating, Told, bytes_of, cores_in, said_by
from tests.invariants.designs import DESIGNS
from tests.invariants.playing import AT, search
from tests.invariants.strategies import HIDINGS, small
from timeline.audit.deep import verify_deep
from timeline.audit.replay import rebuild_contexts, recorded_contexts
from timeline.blocks import AssistantCompletion, Attachment, Block, Note, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.engine.lease import LEASE
from timeline.errors import (
    BlockProtected,
    BudgetError,
    CompactionError,
    ContextUnavailable,
    ConversationErased,
    HistoryUnavailable,
    StageRefused,
    UnderLegalHold,
    UndoUnavailable,
)
from timeline.events import BlocksPinned, event_id, new_event
from timeline.events.other_payloads import FrameworkEntry
from timeline.forgetting import find_subject
from timeline.portable import Copied, copy_store, export_log, import_copy, read_copies
from timeline.ports import StoppedClock
from timeline.retention import scavenge
from timeline.store import open_store
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from timeline.fold.window import Item
    from timeline.policy.model import Policy
    from timeline.ports import ErasureReport, EventStore

T = TypeVar("T")

Kind = Literal["prompt", "answer", "round", "failed", "call", "note", "thought", "attachment"]
How = Literal["path", "address", "words", "found", "several"]
Meanwhile = Literal["redact", "fork", "say", "scavenge", "render", "undo", "take over", "hold"]
Asked = Literal["path", "address", "again"]
ANY: Final = st.integers(0, 99)
WRITTEN: Final = st.sampled_from(["{}", "`{}`", " [{}]. "])
"""Ways in which a model may write a path."""
FORMS: Final = st.integers(0, 3)
SIZES: Final = st.sampled_from([0, 1, 5, 30, 60])
KINDS: Final[st.SearchStrategy[list[Kind]]] = st.lists(st.sampled_from(get_args(Kind)), min_size=1, max_size=4)
SAID: Final = st.lists(st.tuples(KINDS, FORMS, SIZES), min_size=2, max_size=6)
_MOST: Final = 5
"""Conversations at a time, so that each is looked at often."""


def _is_made(item: Item) -> bool:
    return item.is_summary or isinstance(item.block, ToolResult)


@dataclass
class Sent:
    """A recorded context: the log's version that it shows, its bytes, and why it need not be rebuilt any more."""

    conversation: str
    version: int
    recorded: int
    body: str
    excused: set[str] = field(default_factory=set)


class Forgetting(RuleBasedStateMachine):
    """Several conversations and forks of a store, two handles on each; all is compared with a plain model.

    The second handle of each conversation has a store of its own, over other connections.
    """

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = TemporaryDirectory()
        self.model = Model()
        self.sent: list[Sent] = []
        self.summarizer = Repeating()
        self.handles: dict[str, list[Timeline]] = {}
        self.scavenged: set[str] = set()
        self.now = AT
        self.calls = 0
        self.store: EventStore
        self.beside: EventStore
        self.policy: Policy

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the machine's own loop."""
        return self.loop.run_until_complete(coroutine)

    async def open_stores(self) -> None:
        """Open the store, twice where others can open it, too."""
        self.store = self.beside = await open_store("memory://").__aenter__()

    async def close_stores(self) -> None:
        """Close what is open."""
        await self.store.aclose()
        if self.beside is not self.store:
            await self.beside.aclose()

    async def leave(self) -> None:
        """Remove the place that the stores were in."""

    async def stored(self) -> str:
        """Return what lies where the store keeps its rows, past its methods."""
        return ""

    def later(self) -> datetime:
        """Let a second pass."""
        self.now += timedelta(seconds=1)
        return self.now

    async def opened(self, conversation: str, store: EventStore | None = None) -> Timeline:
        """Open a conversation that is there."""
        return await Timeline.open(
            store or self.store,
            conversation,
            policy=self.policy,
            summarizer=self.summarizer,
            create=False,
            now=self.now,
        )

    async def join(self, *conversations: str) -> None:
        """Open two handles on conversations."""
        for conversation in conversations:
            self.handles[conversation] = [await self.opened(conversation, each) for each in (self.store, self.beside)]

    def handle(self, number: int) -> Timeline:
        """Return one of the handles."""
        alive = self.model.alive
        return self.handles[alive[number % len(alive)]][number // len(alive) % 2]

    @initialize(policy=st.builds(small, st.sampled_from([1_000, 2_000, 4_000]), hiding=HIDINGS) | DESIGNS, said=SAID)
    def begin(self, policy: Policy, said: list[tuple[list[Kind], int, int]]) -> None:
        """Open the store and a conversation, and say enough for a compaction."""
        self.policy = policy
        self.run(self._begin())
        for kinds, form, size in said:
            self.say(0, kinds, form, size)
        self.render(0, None, tail=False)

    async def _begin(self) -> None:
        await self.open_stores()
        await Timeline.open(self.store, "c", policy=self.policy, now=self.now)
        self.model.alive.append("c")
        await self.join("c")

    # What is said

    @rule(number=ANY, kinds=KINDS, form=FORMS, size=SIZES)
    def say(self, number: int, kinds: list[Kind], form: int, size: int) -> None:
        """Append blocks, each with words of its own."""
        self.run(self._say(self.handle(number), kinds, form, size))

    async def _say(self, timeline: Timeline, kinds: Sequence[Kind], form: int, size: int) -> None:
        for kind in kinds:
            await self._tell(timeline, kind, form, size)

    async def _tell(self, timeline: Timeline, kind: Kind, form: int, size: int) -> None:
        words = self.model.next_words(form, size)
        text, word = words.text, words.word
        self.calls += 1
        id_ = f"call_{self.calls}"
        made: dict[Kind, list[Block]] = {
            "prompt": [UserPrompt(text=text)],
            "answer": [AssistantCompletion(text=text)],
            "round": [
                ToolCall(call_id=id_, name="bash", arguments={"command": "make"}),
                ToolResult(call_id=id_, text=text),
            ],
            "failed": [
                ToolCall(call_id=id_, name="bash", arguments={"command": "make"}),
                ToolResult(call_id=id_, text=text, is_error=True),
            ],
            "call": [ToolCall(call_id=id_, name="write_file", arguments={"path": f"src/{word}.py", "content": text})],
            "note": [Note(text=text)],
            "thought": [Reasoning(text=text)],
            "attachment": [Attachment(text=text, meta={"file": "notes.txt", "said": word})],
        }
        blocks = await timeline.append(*made[kind], now=self.later())
        path = blocks[-1].path
        version = next(item.version for item in timeline.window.items if item.block.path == path)
        self.model.told.append(Told(timeline.id, version, path, words))

    def some(self, timeline: Timeline, number: int) -> Told | None:
        """Return a block that a conversation still says."""
        told = [told for told in self.model.seen_by(timeline.id) if not told.gone]
        return told[number % len(told)] if told else None

    @rule(number=ANY, which=ANY, where=st.sampled_from(["entry", "title", "call", "stage"]))
    def quote(self, number: int, which: int, where: str) -> None:
        """Let what is no block quote one: a framework's entry, a fork's title, an error and a request, a stage."""
        timeline = self.handle(number)
        told = self.some(timeline, which)
        if told is not None and not self._is_scavenged(told):
            self.run(self._quote(timeline, told, where))

    async def _quote(self, timeline: Timeline, told: Told, where: str) -> None:
        match where:
            case "entry":
                data: Any = {"parts": [{"content": told.words.text, "n": 1}], told.words.text: "as a key"}
                entry = FrameworkEntry(framework="pydantic-ai", key=str(self.model.number), data=data)
                await self.store.append(timeline.id, [new_event(event_id(self.now), self.later(), entry)])
            case "title":
                await self._fork(timeline, 0, told.words.text)
            case "call":
                # A server quotes what it was sent.
                if await self._render(timeline, {"ephemeral": [told.words.text]}):
                    await timeline.record_model_call(
                        None, model="m", error=f"refused: {told.words.text}", now=self.later()
                    )
            case _:
                if len(told.words.text) <= 900:  # longer ones would be quoted in part
                    with suppress(StageRefused):
                        await timeline.enter_stage(f"s{self.calls}", now=self.later())
                        await timeline.approve_stage(decision="done", detailed=told.words.text, now=self.later())

    def _is_scavenged(self, told: Told) -> bool:
        return told.owner in self.scavenged

    # What is decided

    @rule(number=ANY, quoted=st.none() | ANY, tail=st.booleans())
    def render(self, number: int, quoted: int | None, tail: bool) -> None:  # noqa: FBT001 - drawn
        """Render and record; the system prompt or the tail may quote a block."""
        timeline = self.handle(number)
        told = None if quoted is None else self.some(timeline, quoted)
        prompt: dict[str, Any] = {}
        if told is not None and not self._is_scavenged(told):
            text = f"Be brief. It was said: {told.words.text}"
            prompt = {"ephemeral": [text]} if tail else {"system": text}
        self.run(self._render(timeline, prompt))

    async def _render(self, timeline: Timeline, prompt: dict[str, Any]) -> bool:
        try:
            context = await timeline.render(**prompt, now=self.later())
        except BudgetError:
            return False
        assert context.recorded is not None
        self.sent.append(Sent(timeline.id, context.version, context.recorded, context.neutral.canonical()))
        return True

    @rule(
        number=ANY,
        meanwhile=st.none() | st.sampled_from(get_args(Meanwhile)),
        which=ANY,
    )
    def compact(self, number: int, meanwhile: Meanwhile | None, which: int) -> None:
        """Compact whatever the size, while something else happens."""
        timeline = self.handle(number)
        if meanwhile is not None:
            self.summarizer.meanwhile = lambda: self._act(timeline.id, meanwhile, which)
        self.run(self._compact(timeline))
        self.summarizer.meanwhile = None

    async def _compact(self, timeline: Timeline) -> None:
        with suppress(CompactionError):
            await timeline.compact(now=self.later(), wait=False)

    async def _act(self, conversation: str, act: Meanwhile, which: int) -> None:
        other = self.handles[conversation][1]
        match act:
            case "redact":
                await self._redact(other, which, "path")
            case "fork":
                await self._fork(other, which, "")
            case "say":
                await self._tell(other, "prompt", 0, 5)
            case "scavenge":
                await self._scavenge()
            case "render":
                await other.render(now=self.later(), record=False)
            case "undo":
                await self._undo(other)
            case "take over":
                self.now += LEASE + timedelta(seconds=1)
                await self._compact(other)
            case "hold":
                await self._hold(other, on=which % 2 == 0)

    @rule(number=ANY)
    def undo(self, number: int) -> None:
        """Take the newest compaction back."""
        self.run(self._undo(self.handle(number)))

    async def _undo(self, timeline: Timeline) -> None:
        with suppress(UndoUnavailable, HistoryUnavailable):
            await timeline.undo_compaction(cascade=True, now=self.later())

    @rule(
        number=ANY,
        which=ANY,
        how=st.sampled_from(["hide", "hide with a text", "omit", "reveal", "pin", "unpin"]),
    )
    def manage(self, number: int, which: int, how: str) -> None:
        """Hide, reveal, pin or unpin a block; the text of a hide quotes it."""
        timeline = self.handle(number)
        told = self.some(timeline, which)
        if told is not None:
            self.run(self._manage(timeline, told, how))

    async def _manage(self, timeline: Timeline, told: Told, how: str) -> None:
        now = self.later()
        with suppress(BlockProtected, HistoryUnavailable):
            match how:
                case "hide":
                    await timeline.hide(told.path, now=now)
                case "hide with a text":
                    await timeline.hide(told.path, text=f"[hidden: {told.words.word}]", now=now)
                case "omit":
                    await timeline.hide(told.path, mode="omit", now=now)
                case "reveal":
                    await timeline.reveal(told.path, now=now)
                case "pin":
                    await timeline.pin(told.path, now=now)
                case _:
                    await timeline.unpin(told.path, now=now)

    @rule(number=ANY, which=ANY)
    def go_back(self, number: int, which: int) -> None:
        """Go back behind a block: it and what follows never happened for the agent, and stay in the log."""
        timeline = self.handle(number)
        told = self.some(timeline, which)
        if told is not None:
            self.run(self._go_back(timeline, told))

    async def _go_back(self, timeline: Timeline, told: Told) -> None:
        with suppress(BlockProtected, HistoryUnavailable):
            await timeline.go_back(told.path, now=self.later())

    @rule(number=ANY, which=ANY, asked=st.sampled_from(get_args(Asked)), written=WRITTEN)
    def recall(self, number: int, which: int, asked: Asked, written: str) -> None:
        """Let the model read back a block, a summary or what it read back before: its result repeats that."""
        timeline = self.handle(number)
        told = self.some(timeline, which)
        if asked == "again":
            names = [f"@{item.version}" for item in timeline.window.items if _is_made(item)]
        elif told is None or self._is_scavenged(told):
            return
        else:
            names = [told.path if asked == "path" else f"@{told.version}"]
        if names:
            self.run(self._recall(timeline, written.format(names[which % len(names)])))

    async def _recall(self, timeline: Timeline, name: str) -> None:
        self.calls += 1
        id_ = f"call_{self.calls}"
        answer = await timeline.recall_tool("anthropic").handle({"path": name})
        call = ToolCall(call_id=id_, name="recall", arguments={"path": name})
        await timeline.append(call, ToolResult(call_id=id_, text=answer), now=self.later())

    @precondition(lambda self: len(self.model.alive) < _MOST)
    @rule(number=ANY, back=st.integers(0, 40))
    def fork(self, number: int, back: int) -> None:
        """Fork a conversation, at its newest version or before."""
        self.run(self._fork(self.handle(number), back, ""))

    async def _fork(self, timeline: Timeline, back: int, title: str) -> None:
        version = (await self.store.info(timeline.id)).version
        name = f"f{len(self.model.alive) + len(self.model.erased)}"
        try:
            fork = await timeline.fork(at=max(1, version - back), conversation=name, title=title, now=self.later())
        except HistoryUnavailable as gone:
            if not gone.scavenged:
                raise
            return
        info = await self.store.info(fork.id)
        assert info.parent is not None
        self.model.alive.append(fork.id)
        self.model.parents[fork.id] = (info.parent.conversation, info.base)
        if timeline.id in self.scavenged:
            self.scavenged.add(fork.id)
        await self.join(fork.id)

    @rule(number=ANY)
    def snapshot(self, number: int) -> None:
        """Write a snapshot of the window as it is."""
        timeline = self.handle(number)
        self.run(self._snapshot(timeline))

    async def _snapshot(self, timeline: Timeline) -> None:
        await timeline.catch_up()
        if timeline.window.items:
            pinned = BlocksPinned(versions=(timeline.window.items[0].version,))
            await timeline._log.commit([pinned], at=self.later(), snapshot=True)

    # What is forgotten

    @rule(
        number=ANY,
        which=ANY,
        how=st.sampled_from(get_args(How)),
    )
    def redact(self, number: int, which: int, how: How) -> None:
        """Redact a block, or several, named in each of the ways."""
        self.run(self._redact(self.handle(number), which, how))
        self.run(self.check())

    async def _redact(self, timeline: Timeline, which: int, how: How) -> None:
        told = self.some(timeline, which)
        if told is None:
            return
        gone, text = [told], ""
        match how:
            case "path":
                places = [told.path]
            case "address":
                places = [f"@{told.version}"]
            case "words":
                places, text = [told.path], told.words.core
            case "found":
                places = [
                    f.place async for f in find_subject(self.store, told.words.core) if f.conversation == timeline.id
                ]
                places, text = [*dict.fromkeys([*places, told.path])], told.words.core
            case _:
                seen = [each for each in self.model.seen_by(timeline.id) if not each.gone]
                gone = list({id(each): each for each in (told, seen[0], seen[-1])}.values())
                places = [each.path for each in gone]
        if any(self._is_scavenged(each) for each in gone) and not text:
            text, gone, places = told.words.core, [told], [told.path]
        report = await self._redacted(timeline, places, text)
        if report is None:
            return
        assert report.physical, report
        for each in gone:
            each.gone = True
            if self._is_scavenged(each):  # nothing is left to compare with: what was given as words goes, and no more
                self.model.spared.add(each.words.body)
            self._excuse("redacted", [c for c in self.model.alive if each in self.model.seen_by(c)], each.version)

    async def _redacted(self, timeline: Timeline, places: Sequence[str], text: str) -> ErasureReport | None:
        """Redact places; return None where a legal hold on what shares them keeps them."""
        held = ""
        try:
            report = await timeline.redact(places, "asked for", text=text, now=self.later())
        except UnderLegalHold as refused:
            held = refused.conversation
        if held:
            assert self.model.is_held(held)
            return None
        assert not self.model.is_held(timeline.id)
        return report

    def _excuse(self, reason: str, conversations: Sequence[str], since: int = 0) -> None:
        for sent in self.sent:
            if sent.conversation in conversations and sent.version >= since:
                sent.excused.add(reason)

    @precondition(lambda self: len(self.model.alive) > 1)
    @rule(number=ANY, copy=st.booleans())
    def erase(self, number: int, copy: bool) -> None:  # noqa: FBT001 - drawn
        """Erase a conversation, with its forks, or so that each keeps a copy of what it shares."""
        conversation = self.model.alive[number % len(self.model.alive)]
        if not copy and len(self.model.family(conversation)) == len(self.model.alive):
            return
        self.run(self._erase(conversation, copy=copy))
        self.run(self.check())

    async def _erase(self, conversation: str, *, copy: bool) -> None:
        goes = [conversation] if copy else self.model.family(conversation)
        if any(map(self.model.is_held, goes)):
            with pytest.raises(UnderLegalHold):
                await self.store.erase(conversation, forks="copy" if copy else "erase", reason="asked for")
            return
        report = await self.store.erase(conversation, forks="copy" if copy else "erase", reason="asked for")
        assert set(report.conversations) >= set(goes)
        assert report.physical, report
        self.model.erase(conversation, with_forks=not copy)
        self.sent = [sent for sent in self.sent if sent.conversation not in goes]
        for id_ in goes:
            for stale in self.handles.pop(id_):
                try:
                    await stale.append(UserPrompt(text="still there?"), now=self.later())
                except ConversationErased:
                    continue
                raise AssertionError("an erased conversation was appended to")

    @rule(conversation=st.none() | ANY, window=st.booleans())
    def keep(self, conversation: int | None, window: bool) -> None:  # noqa: FBT001 - drawn
        """Set the retention of a conversation, or of all."""
        retention: Literal["window", "keep"] = "window" if window else "keep"
        if conversation is None:
            self.run(self.store.set_retention(retention))
        else:
            self.run(self.handle(conversation).set_retention(retention, now=self.later()))

    @rule()
    def scavenge(self) -> None:
        """Remove what lies before the windows of those that do not keep it."""
        self.run(self._scavenge())
        self.run(self.check())

    async def _scavenge(self) -> None:
        report = await scavenge(self.store, clock=StoppedClock(self.now + timedelta(days=1)))
        for found in report.conversations:
            if found.events:
                assert not self.model.is_held(found.conversation)
                lost = [c for c in self.model.alive if found.conversation in dict(self.model.line(c))]
                self.scavenged |= set(lost)
                self._excuse("retention", lost)

    @rule(number=ANY, on=st.booleans())
    def hold(self, number: int, on: bool) -> None:  # noqa: FBT001 - drawn
        """Put a legal hold on a conversation, or take it off."""
        self.run(self._hold(self.handle(number), on=on))

    async def _hold(self, timeline: Timeline, *, on: bool) -> None:
        if self.model.is_held(timeline.id) != on:
            await timeline.set_legal_hold(on=on, now=self.later())
            self.model.holds.append((timeline.id, timeline.version, on))

    # What is moved

    @precondition(lambda self: len(self.model.alive) < _MOST)
    @rule(number=ANY)
    def copy_by_file(self, number: int) -> None:
        """Export a conversation and import it under another id; both have the same words."""
        timeline = self.handle(number)
        if timeline.id not in self.model.parents and timeline.id not in self.scavenged:
            self.run(self._copy(timeline.id))

    async def _copy(self, conversation: str) -> None:
        file = Path(self.folder.name) / "export.jsonl"
        file.write_text("\n".join([line async for line in export_log(self.store, [conversation])]), encoding="utf-8")
        [copy] = read_copies(file) or []
        name = f"f{len(self.model.alive) + len(self.model.erased)}"
        await import_copy(self.store, copy.under(name))
        for told in self.model.seen_by(conversation):
            self.model.told.append(replace(told, owner=name))
        self.model.holds += [(name, version, on) for of, version, on in self.model.holds if of == conversation]
        self.model.alive.append(name)
        await self.join(name)

    @rule()
    def reopen(self) -> None:
        """Close the store and open it again."""
        self.run(self._reopen())

    async def _reopen(self) -> None:
        if not isinstance(self.store, MemoryStore):
            await self.close_stores()
            await self.open_stores()
        await self.join(*self.model.alive)

    # What has to hold

    async def check(self) -> None:
        """Nothing says what was forgotten; all else is whole, verifies and is built again."""
        await self._check_bytes()
        for conversation in self.model.alive:
            fresh = await self.opened(conversation)
            await self._check_reads(fresh)
            for handle in self.handles[conversation]:
                await handle.catch_up()
                assert handle.window == fresh.window
            report = await fresh.verify()
            assert report.ok, report.problems
            assert set(report.unverifiable) <= {"redacted", "retention"}, report.unverifiable
        deep = await verify_deep(self.store)
        assert not deep.differences, deep.differences
        await self._check_contexts()

    async def _check_bytes(self) -> None:
        said = await said_by(self.store) + await self.stored()
        left = cores_in(said) & self.model.forgotten()
        assert not left, left

    async def _check_reads(self, timeline: Timeline) -> None:
        shown = {item.block.path for item in timeline.window.items}
        for told in self.model.seen_by(timeline.id):
            try:
                block = await timeline.read(told.path)
            except HistoryUnavailable:
                assert timeline.id in self.scavenged
                assert told.path not in shown
                continue
            if told.gone:
                assert block.text == "[redacted]", told
            elif isinstance(block, ToolCall):
                assert block.arguments == {"path": f"src/{told.words.word}.py", "content": told.words.text}
            else:
                assert block.text == told.words.text

    async def _check_contexts(self) -> None:
        recorded = {id_: await recorded_contexts(self.store, id_) for id_ in self.model.alive}
        for sent in self.sent:
            try:
                found = [c for c in recorded[sent.conversation] if c.version == sent.recorded]
                [again] = await rebuild_contexts(self.store, sent.conversation, found)
            except ContextUnavailable as unavailable:
                if unavailable.reason not in sent.excused:
                    raise
            except (ValueError, IndexError):
                assert "retention" in sent.excused, sent
            else:
                assert again.neutral.canonical() == sent.body, sent

    def teardown(self) -> None:
        """Check all once more, also in a copy and in the file that was closed; let go of everything."""
        try:
            if self.handles:
                self.run(self._end())
        finally:
            self.run(self.leave())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            self.folder.cleanup()

    async def _end(self) -> None:
        try:
            await self.check()
            await self._check_copy()
        finally:
            await self.close_stores()
        assert not cores_in(await self.stored()) & self.model.forgotten()

    async def _check_copy(self) -> None:
        other = MemoryStore()
        done = [outcome async for outcome in copy_store(self.store, other)]
        assert not cores_in(await said_by(other)) & self.model.forgotten()
        for outcome in done:
            if isinstance(outcome, Copied):
                copy = await Timeline.open(other, outcome.conversation, policy=self.policy, create=False)
                mine = await self.opened(outcome.conversation)
                assert outcome.version < mine.version or copy.window == mine.window
                report = await copy.verify()
                assert report.ok, report.problems
            else:
                assert self.scavenged, outcome


class ForgettingInSQLite(Forgetting):
    """The same on a database file."""

    @property
    def file(self) -> Path:
        """The database."""
        return Path(self.folder.name) / "machine.db"

    async def open_stores(self) -> None:
        """Open the file twice."""
        self.store, self.beside = [await open_store(self.file).__aenter__() for _ in range(2)]

    async def stored(self) -> str:
        """Return what the columns and files hold."""
        return bytes_of(self.file)


TestForgettingInMemory = Forgetting.TestCase
TestForgettingInMemory.settings = search(20, steps=30)
TestForgettingInSQLite = ForgettingInSQLite.TestCase
TestForgettingInSQLite.settings = search(10, steps=30)
