from __future__ import annotations

import re
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from tests.depth import at_night
from tests.forgetting.planted import LEAK, PLAIN, SECRETS, UNICODE, left_in, places_left, plant
from tests.log.counted import Counted
from tests.meanwhile import Meanwhile
from tests.portable.test_portable import copies
from tests.postgres import new_schema
from tests.scenes import Scribe
from timeline import Timeline, open_store, policies
from timeline.audit.deep import verify_deep
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.errors import (
    BlockNotFound,
    BlockProtected,
    CallUnavailable,
    CompactionRefused,
    ContextUnavailable,
    InvalidArgument,
    SummarizerFailed,
    UnderLegalHold,
)
from timeline.events import (
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    CompactionCompleted,
    ContextRendered,
    event_id,
    new_event,
)
from timeline.events.encoding import encode_payload
from timeline.events.other_payloads import FrameworkEntry
from timeline.forgetting import find_subject, redact
from timeline.portable import export_log, import_copy
from timeline.retention import scavenge
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from timeline.blocks import Block
    from timeline.ports import EventStore, ForksOnErase, Rewriting, Summary, SummaryRequest

WHY = "a password"


@pytest.fixture(params=["sqlite", "memory", pytest.param("server", marks=at_night)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventStore]:
    """Each of the three stores."""
    async with AsyncExitStack() as stack:
        places = {"sqlite": str(tmp_path / "agent.db"), "memory": "memory://"}
        if request.param in places:
            url = places[request.param]
        else:
            url = await stack.enter_async_context(new_schema())
        yield await stack.enter_async_context(open_store(url))


async def contexts_of(*timelines: Timeline) -> str:
    """Return what models are sent from now on."""
    return "".join([str((await one.render()).to_anthropic()) for one in timelines])


async def everything_of(store: EventStore) -> bytes:
    """Return all that can be read of a store by its methods."""
    ids = [info.id async for info in store.conversations()]
    said = [str(await store.info(id_)) for id_ in ids]
    said += [str(await store.load_window(id_)) for id_ in ids]
    said += [encode_payload(event.payload) async for event in store.read_all()]
    said += [str(fact) async for fact in store.facts()] + [str(digest) async for digest in store.digests()]
    return "".join(said).encode()


async def test_a_summary_that_was_told_the_task_goes_with_it_whichever_prompt_it_is(store: EventStore) -> None:
    """The first prompt may be blank; the task is the next one, also where it lies behind what the summary covers."""
    policy = policies.cut_point(max_tokens=4_000, counter="chars4", keep_recent_tokens=400)
    timeline = await Timeline.open(store, "c", policy=policy, summarizer=Scribe(answers=["They want a yellow boat."]))
    await timeline.append(UserPrompt(text=" "), *(AssistantCompletion(text="word " * 900) for _ in range(3)))
    [task] = await timeline.append(UserPrompt(text="Build a boat, and paint it like the sun."))
    await timeline.compact()
    summary = next(item for item in timeline.window.items if item.is_summary)
    assert "yellow boat" in summary.block.text
    await timeline.redact(task.path, WHY)
    assert "yellow boat" not in (await timeline.read(summary.block.path)).text
    assert (await timeline.verify()).ok


async def test_no_byte_is_left_in_the_file_its_log_or_its_search_index(tmp_path: Path) -> None:
    """What was planted in 40 payloads, values, titles, facts and digests is in no column, packed or not, nor page."""
    file = tmp_path / "agent.db"
    async with await open_store(file) as store:
        world = await plant(store)
        assert len(places_left(file)) > 6
        report = await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
        assert report.physical
        assert places_left(file) == {}
        assert [hit async for hit in store.search("kestrel")] == []
        assert places_left(file) == {}
    assert places_left(file) == {}


async def test_nothing_that_is_read_or_sent_has_it_any_more(store: EventStore) -> None:
    """In forks neither, whether they began before the compaction or behind it, and in handles that were open."""
    world = await plant(store)
    assert left_in(await everything_of(store)) > 20
    await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
    handles = [world[name] for name in ("timeline", "fork", "late")]
    assert left_in((await contexts_of(*handles)).encode()) == 0
    assert left_in(await everything_of(store)) == 0
    for path in (*world["paths"], world["echo"]):
        assert (await world["late"].read(path)).text == "[redacted]"
    assert left_in(str([(await world["timeline"].at(v)).window for v in range(1, 12)]).encode()) == 0


async def test_exports_made_afterwards_do_not_have_it(store: EventStore) -> None:
    """They are whole otherwise: as many events, and the summaries that were written anew."""
    world = await plant(store)
    await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
    for id_ in ("cards", "cards.early", "cards.late"):
        lines = [line async for line in export_log(store, [id_])]
        assert left_in("".join(lines).encode()) == 0
        assert len(lines) > (await store.info(id_)).version


async def test_every_invariant_holds_and_contexts_of_before_are_unverifiable(store: EventStore) -> None:
    """Never a mismatch; what is rendered afterwards is proved as before."""
    world = await plant(store)
    await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
    for name in ("timeline", "fork", "late"):
        await world[name].append(UserPrompt(text="And now?"))
        await world[name].render(system="Be brief.")
        report = await world[name].verify()
        assert report.ok, report.problems
        assert report.renders + report.calls - sum(report.unverifiable.values()) == 1
        assert set(report.unverifiable) == {"redacted"}


async def test_contexts_and_calls_of_before_say_that_they_were_redacted(store: EventStore) -> None:
    """`diff` and `call` raise, or give no body, for that reason."""
    world = await plant(store)
    await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
    with pytest.raises(ContextUnavailable) as unavailable:
        await world["timeline"].diff("#1", "#2")
    assert unavailable.value.reason == "redacted"
    call = await world["timeline"].call(1)
    assert (call.request, call.unproved, call.sha256) == (None, "redacted", "")
    with pytest.raises(CallUnavailable, match="redacted"):
        call.proved()


async def test_a_context_that_was_rendered_before_and_recorded_behind_a_redaction_is_no_mismatch(
    store: EventStore,
) -> None:
    """Two handles race: the record comes behind the redaction, its version before it."""
    timeline = await Timeline.open(store, "cards")
    [prompt] = await timeline.append(UserPrompt(text=f"Say {PLAIN} twice."))
    context = await timeline.render(record=False)
    await timeline.redact(prompt.path, WHY)
    late = ContextRendered(
        version=context.version, projection=3, fingerprint=context.fingerprint, policy=timeline.policy.hash()
    )
    await timeline._log.commit([late], at=None)
    report = await timeline.verify()
    assert (report.ok, report.unverifiable) == (True, {"redacted": 1})


async def test_the_summary_is_written_anew_from_what_is_left(store: EventStore) -> None:
    """By extraction; it says who wrote it, keeps what it covers, and its digest is of what is left."""
    world = await plant(store)
    [before] = [e async for e in store.read("cards", types=["compaction.completed"])]
    await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
    [after] = [e async for e in store.read("cards", types=["compaction.completed"])]
    assert isinstance(before.payload, CompactionCompleted)
    assert isinstance(after.payload, CompactionCompleted)
    assert (after.id, after.version, after.at) == (before.id, before.version, before.at)
    assert (after.payload.covers, after.payload.carried) == (before.payload.covers, before.payload.carried)
    assert after.payload.written_by.summarizer == "extractive"
    assert "redaction" in (after.payload.written_by.fallback_reason or "")
    assert "Write card 0." in after.payload.block.text
    assert LEAK not in after.payload.block.text
    assert [d.digest async for d in store.digests(conversation="cards")] == [after.payload.digest]


async def test_the_event_names_each_rewritten_event_with_its_new_checksum(store: EventStore) -> None:
    """That of a conversation names its own rows and those that it shares, and no other row of the log changed."""
    world = await plant(store)
    before = {(e.conversation, e.version): e async for e in store.read_all()}
    await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
    after = {(e.conversation, e.version): e async for e in store.read_all()}
    changed = {place for place, event in before.items() if after[place] != event}
    for name in ("timeline", "fork", "late"):
        id_, base = world[name].id, (await store.info(world[name].id)).base
        named = {
            ("cards" if one.version <= base else id_, one.version): one.checksum
            for (holder, _), event in after.items()
            if holder == id_ and isinstance(event.payload, BlockRedacted)
            for one in event.payload.rewritten
        }
        seen = {(holder, v) for holder, v in changed if holder == id_ or (holder == "cards" and v <= base)}
        assert named.keys() == seen
        assert all(after[place].checksum == checksum for place, checksum in named.items())


async def test_the_memory_digest_loses_the_words_and_keeps_the_other_decisions(store: EventStore) -> None:
    """It lists what stages decided, and is sent with every request: nobody would redact it for itself."""
    timeline = await Timeline.open(store, "c")
    for stage, decision in (("plan", "build a boat"), ("key", "sign with hunter2-of-hers"), ("end", "ship it")):
        await timeline.enter_stage(stage, label=stage.title())
        [prompt, _] = await timeline.append(UserPrompt(text=f"We {decision}"), AssistantCompletion(text="Well."))
        await timeline.approve_stage(decision=decision)
        if stage == "key":
            asked = prompt
    await timeline.render()
    report = await timeline.redact(asked.path, WHY, text="hunter2-of-hers")
    assert report.left == {}
    assert b"hunter2" not in await everything_of(store)
    reopened = await Timeline.open(store, "c")
    for handle in (timeline, reopened):
        tail = (await handle.render()).neutral.ephemeral[0].text
        assert tail.splitlines()[1:] == ["- Plan: build a boat", "- Key: sign with [redacted]", "- End: ship it"]
    assert (await timeline.verify()).ok


async def test_a_redaction_reads_the_log_once() -> None:
    """Any event may quote the words, so all are read: once, however many summaries are written anew."""
    store = Counted()
    timeline = await Timeline.open(store, "cards", policy=policies.balanced(max_tokens=4_000, counter="chars4"))
    for number in range(40):
        await timeline.append(UserPrompt(text=f"Prompt {number}. " + "abc " * 300))
        await timeline.render()
    assert timeline.window.compactions
    last = timeline.version
    store.events = 0
    await timeline.redact(timeline.window.items[-1].block.path, WHY)
    assert store.events < 2 * last


class _Growing(Counted):
    """A store in which another block comes right before each of the first redactions."""

    times = 3

    async def rewrite(self, parts: Sequence[Rewriting], **options: Any) -> dict[str, int]:
        """Append a block, so that the redaction comes too late."""
        if self.times:
            self.times -= 1
            at = (await self.info("cards")).updated_at
            late = UserPrompt(text="Go on.").placed(turn_id="late", path=f"late.{self.times}", at=at)
            appended = BlockAppended(block=late, tokens=2, counter="chars4")
            await self.append("cards", [new_event(event_id(at), at, appended)])
        return await super().rewrite(parts, **options)


async def test_a_conversation_that_grows_while_it_is_read_is_read_on_and_not_anew() -> None:
    """An agent may work in it: an append that comes too soon costs what was appended, and not another look at all."""
    store = _Growing()
    timeline = await Timeline.open(store, "cards")
    await timeline.append(*(UserPrompt(text=f"Prompt {number}. " + PLAIN * (number == 20)) for number in range(40)))
    store.events = 0
    await redact(store, "cards", "@22", WHY)
    assert (store.times, left_in(await everything_of(store))) == (0, 0)
    assert store.events < 2 * 40
    assert (await timeline.verify()).ok


async def _at_work(store: EventStore) -> tuple[Timeline, str]:
    """Return a conversation that was compacted, with a secret behind that, and the secret's path."""
    timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=2_000, keep_recent_tokens=500))
    for number in range(3):
        await timeline.append(UserPrompt(text=f"Write card {number}. " * 80))
    await timeline.compact()
    made = ToolResult(call_id="1", text=f"Deployed with {PLAIN}. " + "All is well. " * 250)
    [_, result] = await timeline.append(ToolCall(call_id="1", name="bash", arguments={"command": "make"}), made)
    await timeline.append(ToolCall(call_id="before", name="recall", arguments={"path": result.path}))
    return timeline, result.path


async def _at_work_in(store: EventStore, where: str) -> tuple[list[Timeline], str]:
    """Return the conversation with its fork, if it has one, the one in which something happens last."""
    timeline, path = await _at_work(store)
    forks = [] if where == "alone" else [await timeline.fork(conversation="fork")]
    return [timeline, *forks] if where == "in a fork" else [*forks, timeline], path


async def _grow(timeline: Timeline, _: str) -> None:
    await timeline.append(UserPrompt(text="Write one more card. " * 90))
    await timeline.render()


async def _compact(timeline: Timeline, _: str) -> None:
    await timeline.append(UserPrompt(text="Write one more card. " * 150))
    with suppress(CompactionRefused):  # most of what it would cover is redacted by then
        await timeline.compact()


async def _undo(timeline: Timeline, _: str) -> None:
    await timeline.undo_compaction()
    await _compact(timeline, _)


async def _hide(timeline: Timeline, path: str) -> None:
    with suppress(BlockProtected):  # it is redacted by then
        await timeline.hide(path, text=f"[it said {PLAIN}]")


async def _ask(timeline: Timeline, path: str) -> None:
    call = ToolCall(call_id="late", name="recall", arguments={"path": path})
    await timeline.append(call, ToolResult(call_id="late", text=f"Deploy with {PLAIN}."))


async def _answer(timeline: Timeline, _: str) -> None:
    await timeline.append(ToolResult(call_id="before", text=f"Deploy with {PLAIN}."))


async def _go_back(timeline: Timeline, _: str) -> None:
    await timeline.go_back()


async def _scavenge(timeline: Timeline, _: str) -> None:
    await timeline.set_retention("window")
    await scavenge(timeline._store)


async def _fork(timeline: Timeline, _: str) -> None:
    await timeline.fork(conversation="another")


@pytest.mark.parametrize("where", ["alone", pytest.param("beside a fork", marks=at_night), "in a fork"])
@pytest.mark.parametrize(
    "happens",
    [_grow, _compact, _undo, _hide, _ask, _answer, _go_back, _scavenge, _fork],
    ids=lambda happens: happens.__name__.strip("_"),
)
async def test_whatever_happens_while_a_block_is_redacted_nothing_of_it_is_left(
    happens: Callable[[Timeline, str], Awaitable[None]], where: str
) -> None:
    """Between any two steps of the redaction: then it is as if that had come before."""
    async with open_store("memory://") as store:
        timelines, path = await _at_work_in(store, where)
        await happens(timelines[-1], path)
        await redact(store, "cards", path, WHY, text=PLAIN)
        as_before = await contexts_of(*timelines)
    for step in count(1):
        async with open_store("memory://") as store:
            timelines, path = await _at_work_in(store, where)
            meanwhile = Meanwhile(store, partial(happens, timelines[-1], path), step)
            await redact(meanwhile.as_store, "cards", path, WHY, text=PLAIN)
            if not meanwhile.has_happened:
                assert step > 10
                return
            log = [event async for event in store.read(timelines[-1].id)]
            if isinstance(log[-1].payload, BlockRedacted):  # else it came behind the redaction
                assert left_in(await everything_of(store)) == 0, step
                assert await contexts_of(*timelines) == as_before, step
            assert (await verify_deep(store)).ok, step
            assert all([(await timeline.verify()).ok for timeline in timelines]), step


async def test_a_legal_hold_that_is_set_while_a_block_is_redacted_is_heeded() -> None:
    """Between any two steps: whichever is in the log first holds."""
    for step in count(1):
        async with open_store("memory://") as store:
            timeline, path = await _at_work(store)
            meanwhile = Meanwhile(store, partial(timeline.set_legal_hold, on=True), step)
            with suppress(UnderLegalHold):
                await redact(meanwhile.as_store, "cards", path, WHY, text=PLAIN)
            if not meanwhile.has_happened:
                assert step > 10
                return
            types = [event.type async for event in store.read("cards", types=["retention.set", "block.redacted"])]
            assert types in (["retention.set"], ["block.redacted", "retention.set"]), step


async def test_a_block_of_the_shared_past_is_erased_from_the_fork_too(store: EventStore) -> None:
    """Asked of the fork, it goes in the parent, and in the other forks."""
    world = await plant(store)
    report = await world["late"].redact(world["paths"][0], WHY)
    assert set(report.conversations) == {"cards", "cards.early", "cards.late"}
    for name in ("timeline", "fork", "late"):
        assert (await world[name].read(world["paths"][0])).text == "[redacted]"


async def test_what_a_fork_appended_itself_concerns_nobody_else(store: EventStore) -> None:
    """A version of the fork's own may be another event in the parent, which stays."""
    timeline = await Timeline.open(store, "cards")
    await timeline.append(UserPrompt(text="Build a flashcard app."))
    fork = await timeline.fork(conversation="fork")
    kept = await timeline.append(*(UserPrompt(text=f"What the parent says, {n}, stays as it is.") for n in range(4)))
    await fork.append(UserPrompt(text="First of the fork, which stays as well."))
    [gone] = await fork.append(UserPrompt(text=f"The fork says {PLAIN}."))
    report = await fork.redact(gone.path, WHY)
    assert report.conversations == ("fork",)
    assert [(await timeline.read(block.path)).text for block in kept] == [block.text for block in kept]
    assert (await fork.read(gone.path)).text == "[redacted]"


@pytest.mark.parametrize(
    ("text", "left"),
    [(PLAIN, '"You are kind. The key is [redacted]."'), ("", '"[redacted]"')],
    ids=["words", "no-words"],
)
async def test_of_a_stored_text_the_words_go_and_without_words_all_of_it(
    store: EventStore, text: str, left: str
) -> None:
    """A system prompt is stored once, and its place is its hash."""
    timeline = await Timeline.open(store, "cards")
    await timeline.append(UserPrompt(text="Go."))
    await timeline.render(system=f"You are kind. The key is {PLAIN}.")
    [found] = [place async for place in find_subject(store, PLAIN)]
    await timeline.redact(found.place, WHY, text=text)
    [rendered] = [event.payload async for event in store.read("cards", types=["context.rendered"])]
    assert isinstance(rendered, ContextRendered)
    assert rendered.system is not None
    assert list((await store.values([rendered.system])).values()) == [left]


async def test_what_stands_for_a_hidden_result_goes_with_its_call(store: EventStore) -> None:
    """It names what the call asked for in words of its own: of two files in one folder, the folder once."""
    timeline = await Timeline.open(store, "cards")
    call = ToolCall(call_id="1", name="read_files", arguments={"paths": ["/srv/cards/a.txt", "/srv/cards/b.txt"]})
    await timeline.append(UserPrompt(text="Read."), call, ToolResult(call_id="1", text="ok " * 200))
    await timeline.hide("tc:turn_1.1.result")
    assert b"/srv/cards/{a.txt,b.txt}" in await everything_of(store)
    await timeline.redact("tc:turn_1.1.call", WHY)
    assert b"/srv/cards/" not in await everything_of(store)


async def test_a_hidden_call_whose_result_is_redacted_is_shown_without_arguments_and_without_a_text(
    store: EventStore,
) -> None:
    """It may quote the result, and is still a call."""
    timeline = await Timeline.open(store, "cards")
    call = ToolCall(call_id="1", name="write", arguments={"path": "/srv/cards/a.txt", "content": "ok " * 200})
    await timeline.append(UserPrompt(text="Write."), call, ToolResult(call_id="1", text=LEAK))
    await timeline.hide("tc:turn_1.1.call")
    await timeline.redact("tc:turn_1.1.result", WHY)
    [hidden] = [event.payload async for event in store.read("cards", types=["blocks.hidden"])]
    assert isinstance(hidden, BlocksHidden)
    assert [(block.text, block.arguments) for block in hidden.blocks] == [("", {})]


def called(name: str, arguments: dict[str, Any], text: str) -> list[Block]:
    """Return a round whose call has the id that the server of the model gives the first call of each response."""
    return [ToolCall(call_id="call_1", name=name, arguments=arguments), ToolResult(call_id="call_1", text=text)]


async def test_where_responses_give_their_calls_the_same_id_a_replacement_goes_with_its_own_call(
    store: EventStore,
) -> None:
    """The other one, of a call that stays, is not touched."""
    timeline = await Timeline.open(store, "cards")
    for number, folder in enumerate(("kept", "gone"), 1):
        paths = {"paths": [f"/srv/{folder}/a.txt", f"/srv/{folder}/b.txt"]}
        await timeline.append(UserPrompt(text="Read."), *called("read_files", paths, "ok " * 200))
        await timeline.hide(f"tc:turn_{number}.call_1.result")
    await timeline.redact("tc:turn_2.call_1.call", WHY)
    left = await everything_of(store)
    assert (b"/srv/kept/{a.txt,b.txt}" in left, b"/srv/gone/" in left) == (True, False)


async def test_where_responses_give_their_calls_the_same_id_only_what_repeats_the_block_goes(
    store: EventStore,
) -> None:
    """The recall tool's result repeats it; that of the next call with this id says something else."""
    timeline = await Timeline.open(store, "cards")
    [prompt] = await timeline.append(UserPrompt(text=f"The password is {PLAIN}."))
    [_, echo] = await timeline.append(*called("recall", {"path": prompt.path}, f"It is {PLAIN}."))
    [_, _, built] = await timeline.append(UserPrompt(text="Build."), *called("bash", {"command": "make"}, "7 files"))
    await timeline.redact(prompt.path, WHY)
    assert (await timeline.read(echo.path)).text == "[redacted]"
    assert (await timeline.read(built.path)).text == "7 files"


async def test_a_fork_that_begins_right_behind_the_block_loses_what_it_made_of_it_too(store: EventStore) -> None:
    """The block is the last version that both share."""
    timeline = await Timeline.open(store, "cards")
    [block] = await timeline.append(UserPrompt(text=f"The password is {PLAIN}."))
    fork = await timeline.fork(at=timeline.version, conversation="fork")
    await fork.append(UserPrompt(text="Go on."))
    await fork.hide(block.path, text=f"the password {PLAIN}")
    await timeline.redact(block.path, WHY)
    assert left_in(await everything_of(store)) == 0


async def test_a_fork_of_before_has_it_redacted_as_well(store: EventStore) -> None:
    """It begins at a version before the redaction, and shows the tombstone."""
    world = await plant(store)
    await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
    again = await world["timeline"].fork(at=6, conversation="again")
    assert left_in((await contexts_of(again)).encode()) == 0
    assert again.window.items[0].redacted
    assert (await again.verify()).ok


async def test_a_fork_that_is_begun_while_its_parent_is_redacted_does_not_keep_it(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The redaction comes between the fork's look at its parent and its first append, and cannot know the fork."""
    timeline = await Timeline.open(store, "cards")
    [call, result] = await timeline.append(
        ToolCall(call_id="1", name="bash", arguments={"command": "make"}),
        ToolResult(call_id="1", text=f"{LEAK}. " * 40),
    )
    await timeline.hide(result.path, text=f"[it printed {PLAIN}]")
    await timeline.append(UserPrompt(text="Go on."))
    append, redacted = type(store).append, False

    async def late(self: Any, conversation: str, *args: Any, **options: Any) -> Any:
        nonlocal redacted
        if conversation == "fork" and not redacted:
            redacted = True
            await timeline.redact(result.path, WHY)
        return await append(self, conversation, *args, **options)

    monkeypatch.setattr(type(store), "append", late)
    fork = await timeline.fork(conversation="fork")
    assert (await fork.read(call.path)).path == call.path
    assert left_in((await contexts_of(fork)).encode()) == 0
    assert left_in(await everything_of(store)) == 0
    again = await Timeline.open(store, "fork")
    assert [item.redacted for item in again.window.items] == [False, True, False]
    assert (await again.verify()).ok


async def handed_down(store: EventStore) -> tuple[Timeline, str]:
    """Return a conversation whose newest summary, a replacement and a stage quote a secret, and the secret's path."""
    timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=2_000))
    await timeline.enter_stage("deploy", label=f"Deploy with {PLAIN}")
    [prompt] = await timeline.append(UserPrompt(text=f"Deploy with {PLAIN}."))
    for number in range(5):
        await timeline.append(UserPrompt(text=f"Write card {number}. " * 80))
        await timeline.render()
    call = ToolCall(call_id="1", name="bash", arguments={"command": "make"})
    [_, result] = await timeline.append(call, ToolResult(call_id="1", text="ok. " * 40))
    await timeline.hide(result.path, text=f"[it printed {PLAIN}]")
    return timeline, prompt.path


async def test_whenever_its_parent_is_redacted_a_fork_that_is_begun_has_none_of_it(tmp_path: Path) -> None:
    """Between any two steps of the fork: not in what it sends next, not in a snapshot, not in a file."""
    for step in count(1):
        file = tmp_path / f"{step}.db"
        async with open_store(str(file)) as store:
            timeline, path = await handed_down(store)
            redaction = partial(timeline.redact, path, WHY, text=PLAIN)
            meanwhile = Meanwhile(store, redaction, step)
            before = await Timeline.open(meanwhile.as_store, "cards")
            fork = await before.fork(conversation="fork")
            if not meanwhile.has_happened:
                assert step > 10
                return
            assert left_in((await contexts_of(fork)).encode()) == 0, step
            assert (await fork.verify()).ok, step
            assert (await verify_deep(store)).ok, step
        assert places_left(file) == {}, step


async def test_a_fork_that_begins_while_words_alone_are_redacted_loses_them(store: EventStore) -> None:
    """The redaction has read the log, and looks for forks once more before it writes: no block of them is to go."""
    timeline, _ = await handed_down(store)
    [stage] = [event async for event in store.read("cards", types=["stage.entered"])]
    forks: list[Timeline] = []

    async def begin() -> None:
        forks.append(await timeline.fork(conversation="fork"))

    meanwhile = Meanwhile(store, begin, 0)
    rewrite = store.rewrite

    async def late(*args: Any, **options: Any) -> dict[str, int]:
        if not forks:
            await begin()
        return await rewrite(*args, **options)

    vars(meanwhile)["rewrite"] = late
    await redact(meanwhile.as_store, "cards", f"@{stage.version}", WHY, text=PLAIN)
    [fork] = forks
    assert left_in((await contexts_of(fork)).encode()) == 0
    assert (await verify_deep(store)).ok


@pytest.mark.parametrize("forks", ["copy", "erase"])
async def test_a_relative_that_is_erased_meanwhile_does_not_end_a_redaction(forks: ForksOnErase) -> None:
    """The parent of a fork that keeps a copy, or a fork, at every second step: what is asked about is redacted."""
    for step in count(1, 2):
        store = MemoryStore()
        timeline, path = await handed_down(store)
        await timeline.fork(conversation="fork")
        asked, erased = ("fork", "cards") if forks == "copy" else ("cards", "fork")
        meanwhile = Meanwhile(store, partial(store.erase, erased, forks=forks), step, page=100)
        await redact(meanwhile.as_store, asked, path, WHY, text=PLAIN)
        assert left_in(await everything_of(store)) == 0, step
        if not meanwhile.has_happened:
            assert step > 10
            return


async def test_the_report_counts_what_was_reached_by_its_place(store: EventStore) -> None:
    """A reader sees what was made of the content; the events that say so have the time that was given."""
    world = await plant(store)
    at = datetime(2031, 5, 1, tzinfo=UTC)
    report = await world["timeline"].redact(world["paths"], WHY, text=PLAIN, now=at)
    counts = {"titles": 1, "payloads": 6, "summaries": 1, "replacements": 1, "contexts": 13, "calls": 1, "entries": 3}
    assert report.reached.items() >= counts.items()
    redactions = [event async for event in store.read_all() if event.type == "block.redacted"]
    assert {event.at for event in redactions} == {at}


async def test_redacting_again_changes_nothing(store: EventStore) -> None:
    """Not one event comes; a run that was killed in between is repeated like this."""
    world = await plant(store)
    await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
    before = [event async for event in store.read_all()]
    report = await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
    assert [event async for event in store.read_all()] == before
    assert (report.rewritten, report.physical) == ((), True)


async def test_a_second_block_goes_although_a_fork_shares_only_the_one_that_is_gone(store: EventStore) -> None:
    """Nothing is left to do in the fork, and that keeps nothing from being done in its parent."""
    timeline = await Timeline.open(store, "cards")
    [first] = await timeline.append(UserPrompt(text="The old key was swordfish."))
    await timeline.fork(conversation="fork")
    [second] = await timeline.append(UserPrompt(text=f"The new one is {PLAIN}."))
    await timeline.redact(first.path, WHY)
    report = await timeline.redact([first.path, second.path], WHY)
    assert report.conversations == ("cards",)
    assert PLAIN.encode() not in await everything_of(store)


async def test_a_handle_that_is_open_elsewhere_is_written_anew_at_its_next_look(tmp_path: Path) -> None:
    """Two stores of one file stand for two processes."""
    async with await open_store(tmp_path / "a.db") as here, await open_store(tmp_path / "a.db") as there:
        world = await plant(here)
        other = await Timeline.open(there, "cards")
        assert left_in(str(other.window.items).encode()) > 0
        await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
        assert left_in((await contexts_of(other)).encode()) == 0
        assert left_in(str(other.window.items).encode()) == 0


async def test_a_compaction_under_way_does_not_bring_it_back(store: EventStore) -> None:
    """A summary that was asked for before the redaction is not committed behind it."""
    timeline = await Timeline.open(store, "cards")
    [prompt] = await timeline.append(UserPrompt(text=f"Say {PLAIN} twice."))
    await timeline.append(*(UserPrompt(text=f"Write card {n}. " * 150) for n in range(6)))
    other = await Timeline.open(store, "cards", summarizer=_Redacting(timeline, prompt.path))
    await other.compact()
    assert left_in(await everything_of(store)) == 0


class _Redacting:
    """A summarizer in whose time another handle redacts, once."""

    name = "slow"

    def __init__(self, timeline: Timeline, path: str) -> None:
        self._timeline = timeline
        self._path = path

    async def summarize(self, request: Any) -> Any:
        """Redact, and answer with what it was shown."""
        from timeline.ports import Summary  # noqa: PLC0415 - as an application would

        shown = request.blocks[0].text[:40]
        await self._timeline.redact(self._path, WHY)
        return Summary(text=shown, summarizer=self.name)


async def test_a_place_that_holds_no_block_loses_the_words_alone(store: EventStore) -> None:
    """A framework's entry stays as it is otherwise, so that the framework reads it."""
    world = await plant(store)
    [event] = [e async for e in store.read("cards", types=["framework.entry"])]
    with pytest.raises(InvalidArgument, match="words"):
        await world["timeline"].redact(f"@{event.version}", WHY)
    await world["timeline"].redact(f"@{event.version}", WHY, text=UNICODE)
    [now] = [e async for e in store.read("cards", types=["framework.entry"])]
    assert isinstance(now.payload, FrameworkEntry)
    assert f"Deploy with token={PLAIN} and [redacted]" in str(now.payload.data)


async def test_facts_that_outlived_a_scavenge_are_found_and_go(store: EventStore) -> None:
    """The block is gone already; its version says whose they are."""
    timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=4_000))
    call = ToolCall(call_id="1", name="Read", arguments={"file_path": f"/srv/{PLAIN}.txt"})
    await timeline.append(call, ToolResult(call_id="1", text="ok"))
    for number in range(8):
        await timeline.append(UserPrompt(text=f"Write card {number}. " * 120))
        await timeline.render()
    await timeline.set_retention("window")
    assert (await scavenge(store)).events
    places = [found async for found in find_subject(store, PLAIN)]
    assert "fact" in {found.kind for found in places}
    await Timeline.open(store, "other")
    assert [found async for found in find_subject(store, PLAIN, ["other"])] == []
    await timeline.redact([found.place for found in places], WHY, text=PLAIN)
    assert [found async for found in find_subject(store, PLAIN)] == []
    assert left_in(await everything_of(store)) == 0
    assert (await timeline.verify()).ok


async def test_an_export_of_what_is_left_is_imported_and_verified(store: EventStore) -> None:
    """The redactions of before are no gaps of it."""
    world = await plant(store)
    await world["timeline"].redact(world["paths"], WHY, text=PLAIN)
    lines = [line async for line in export_log(store, ["cards", "cards.late"])]
    async with await open_store("memory://") as other:
        for copy in copies(lines):
            await import_copy(other, copy)
        for id_ in ("cards", "cards.late"):
            copied = await Timeline.open(other, id_, create=False)
            assert (await copied.verify()).ok
            assert copied.window.items == (await Timeline.open(store, id_)).window.items


async def test_a_summary_that_is_named_loses_the_words_and_stays(store: EventStore) -> None:
    """It is no block whose content goes: the model is shown the rest of it."""
    world = await plant(store)
    [summary] = [e async for e in store.read("cards", types=["compaction.completed"])]
    await world["timeline"].redact(f"@{summary.version}", WHY, text=PLAIN)
    [shown] = [item.block.text for item in world["timeline"].window.items if item.is_summary]
    assert PLAIN not in shown
    assert "Write card 0." in shown
    assert PLAIN in (await world["timeline"].read("@2")).text


async def test_what_is_not_there_cannot_be_redacted(store: EventStore) -> None:
    """Nothing is written, and a reason must be a text."""
    timeline = await Timeline.open(store, "cards")
    await timeline.append(UserPrompt(text="Build a flashcard app."))
    with pytest.raises(BlockNotFound):
        await timeline.redact("ar:turn_9.user.prompt", WHY)
    with pytest.raises(InvalidArgument):
        await timeline.redact("@2", 7)  # type: ignore[arg-type] # what an application may do
    assert (await store.info("cards")).version == 2


@pytest.mark.parametrize("given", [{"reason": "M\udcfcsli"}, {"reason": WHY, "text": "M\udcfcsli"}])
async def test_a_word_that_cannot_be_stored_redacts_nothing(store: EventStore, given: dict[str, Any]) -> None:
    """A byte of a command line that is not in the encoding of the locale is refused before anything is written."""
    timeline = await Timeline.open(store, "cards")
    await timeline.append(UserPrompt(text="Build a flashcard app."))
    with pytest.raises(InvalidArgument, match="surrogate"):
        await timeline.redact("@2", **given)
    with pytest.raises(InvalidArgument, match="surrogate"):
        await redact(store, "cards", "@2", **given, dry_run=True)
    assert (await store.info("cards")).version == 2


async def test_nothing_is_redacted_under_a_legal_hold(store: EventStore) -> None:
    """Neither where the hold is on a fork that shares the block."""
    world = await plant(store)
    await world["late"].set_legal_hold(on=True)
    before = [event async for event in store.read_all()]
    with pytest.raises(UnderLegalHold, match="late"):
        await world["timeline"].redact(world["paths"], WHY)
    assert [event async for event in store.read_all()] == before


async def test_a_framework_that_still_has_it_does_not_bring_it_back(store: EventStore) -> None:
    """Its list is known by the tombstones' places, in a process that never saw the content too."""
    timeline = await Timeline.open(store, "cards")
    call = ToolCall(call_id="1", name="bash", arguments={"command": PLAIN})
    history: list[list[Block]] = [[UserPrompt(text=f"Use {PLAIN}.")], [call], [ToolResult(call_id="1", text=UNICODE)]]
    await timeline.list_follower().take(history, ids=["a", "", ""])
    await timeline.redact([f"@{item.version}" for item in timeline.window.items], WHY)
    again = await Timeline.open(store, "cards")
    assert await again.list_follower().take(history, ids=["a", "", ""]) == []
    further: list[list[Block]] = [*history, [UserPrompt(text="And now?")]]
    [appended] = await again.list_follower().take(further, ids=["a", "", "", ""])
    assert appended.text == "And now?"
    assert left_in(await everything_of(store)) == 0


async def test_a_framework_that_cut_its_history_does_not_bring_it_back_under_its_id(store: EventStore) -> None:
    """Not as rewritten either: a redacted message is known by its id, whatever stands before it now."""
    timeline = await Timeline.open(store, "cards")
    said: list[list[Block]] = [
        [UserPrompt(text="Hello.")],
        [AssistantCompletion(text="Hello to you.")],
        [UserPrompt(text=f"Use {PLAIN}.")],
        [AssistantCompletion(text="I will.")],
    ]
    await timeline.list_follower().take(said, ids=["a", "b", "c", "d"])
    await timeline.redact([f"@{next(i for i in timeline.window.items if PLAIN in i.block.text).version}"], WHY)
    again = await Timeline.open(store, "cards")
    trimmed: list[list[Block]] = [*said[2:], [UserPrompt(text="And now?")]]
    [appended] = await again.list_follower().take(trimmed, ids=["c", "d", "e"])
    assert appended.text == "And now?"
    assert left_in(await everything_of(store)) == 0


async def test_a_prompt_is_redacted_with_its_title_and_a_call_keeps_its_result(store: EventStore) -> None:
    """A result of a redacted call is still its answer, in another block's words."""
    world = await plant(store)
    await world["timeline"].redact(world["paths"][1], WHY)
    call, result = [await world["fork"].read(path) for path in world["paths"][1:3]]
    assert (call.arguments, call.text) == ({}, "[redacted]")
    assert isinstance(result, ToolResult)
    assert result.text.startswith("fatal:")
    assert (await store.info("cards")).title.startswith("Deploy with")


class Refused:
    """A summarizer whose provider refuses the request, and quotes a part of it."""

    name = "refused"

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Quote the beginnings of what is to be summarised."""
        raise ValueError(f"400 invalid request near {[block.text[:60] for block in request.blocks]}")


async def test_the_error_of_a_summarizer_that_was_asked_about_it_goes(store: EventStore) -> None:
    """A provider may quote a part of what it was sent. An error of before stays."""
    policy = policies.cut_point(max_tokens=4_000).model_copy(update={"on_failure": "unchanged"})
    timeline = await Timeline.open(store, "cards", policy=policy, summarizer=Refused())

    async def failed() -> None:
        for number in range(6):
            await timeline.append(UserPrompt(text=f"Write card {number}. " * 100))
        with suppress(SummarizerFailed):
            await timeline.compact()

    await failed()
    [prompt] = await timeline.append(UserPrompt(text=f"The password is {PLAIN}. {'Use it. ' * 40}"))
    await failed()
    before, asked = [event async for event in store.read("cards", types=["compaction.failed"])]
    assert PLAIN in encode_payload(asked.payload)
    await timeline.redact(prompt.path, WHY)
    assert left_in(await everything_of(store)) == 0
    assert next(iter(await store.read_versions("cards", [before.version]))).payload == before.payload
    assert (await timeline.verify()).ok


def test_secrets_are_looked_for_in_all_forms() -> None:
    """The helper of these tests finds what it should."""
    data = f"{SECRETS[1]} {SECRETS[2].lower()}".encode() + SECRETS[0].encode("utf-16-le")
    assert left_in(data) >= 3


async def _covered(store: EventStore) -> tuple[Timeline, Block]:
    """Return a conversation whose compactions covered a secret, and the secret's block."""
    timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=4_000))
    [asked] = await timeline.append(UserPrompt(text=f"Never print {PLAIN}."))
    for number in range(8):
        await timeline.append(UserPrompt(text=f"Write card {number}. " * 120))
        await timeline.render()
    return timeline, asked


async def test_summaries_of_what_was_scavenged_are_named_and_lose_the_words(store: EventStore) -> None:
    """The words are not there any more, so that only who asks knows them."""
    timeline, asked = await _covered(store)
    await timeline.set_retention("window")
    assert (await scavenge(store)).events
    found = {place.place for place in [place async for place in find_subject(store, PLAIN)] if place.kind == "summary"}
    assert found
    report = await timeline.redact(asked.path, WHY)
    assert all(f"cards{address}" in report.left["summaries"] for address in found)
    report = await timeline.redact(asked.path, WHY, text=PLAIN)
    assert "summaries" not in report.left
    assert left_in(await everything_of(store)) == 0


async def test_a_redaction_names_a_scavenged_block_in_the_log_once(store: EventStore) -> None:
    """So that a copy, and whoever asks again, knows that it was redacted."""
    timeline, asked = await _covered(store)
    await timeline.set_retention("window")
    await scavenge(store)
    for _ in range(2):
        await timeline.redact(asked.path, WHY)
        events = [event.payload async for event in store.read("cards", types=["block.redacted"])]
        assert [event.version for event in events if isinstance(event, BlockRedacted)] == [2]


@pytest.mark.parametrize("asked_by", ["path", "address"])
@pytest.mark.parametrize("named_by", ["path", "address"])
async def test_an_answer_of_the_recall_tool_goes_with_a_block_that_was_scavenged(
    store: EventStore, asked_by: str, named_by: str
) -> None:
    """The block is gone, and what the model was given back of it is in view."""
    timeline, asked = await _covered(store)
    names = {"path": asked.path, "address": "@2"}
    call = ToolCall(call_id="r", name="recall", arguments={"path": names[asked_by]})
    answer = await timeline.recall_tool("anthropic").handle({"path": names[asked_by]})
    await timeline.append(call, ToolResult(call_id="r", text=str(answer)))
    await timeline.set_retention("window")
    assert (await scavenge(store)).events
    assert PLAIN in await contexts_of(timeline)
    await timeline.redact(names[named_by], WHY, text=PLAIN)
    assert PLAIN not in await contexts_of(timeline)
    assert (await timeline.verify()).ok


async def test_a_system_prompt_whose_contexts_were_scavenged_is_found_and_goes(store: EventStore) -> None:
    """The snapshot that was kept names it beside the provider's counts, so that its text was kept, too."""
    timeline = await Timeline.open(store, "cards", policy=policies.balanced(max_tokens=4_000))
    for number in range(12):
        await timeline.append(UserPrompt(text=f"Write card {number}. " * 120))
        system = f"Never print {PLAIN}." if number < 6 else "Be brief."
        context = await timeline.render(system=system)
        await timeline.record_model_call(Usage(input_tokens=context.account.total), model="claude-opus-5")
    await timeline.set_retention("window")
    assert (await scavenge(store)).events
    contexts = [event.payload async for event in store.read("cards", types=["context.rendered"])]
    [found] = [place async for place in find_subject(store, PLAIN)]
    assert found.kind == "value"
    assert found.place.removeprefix("value:") not in str(contexts), "no event names it any more"
    for dry_run in (True, False):
        report = await redact(store, "cards", found.place, WHY, text=PLAIN, dry_run=dry_run)
        assert report.reached["values"] == 1
        assert not report.left
    assert await store.values([found.place.removeprefix("value:")]) == {}
    assert [place async for place in find_subject(store, PLAIN)] == []
    assert left_in(await everything_of(store)) == 0
    await timeline.redact(f"@{timeline.version}", WHY, text="tokens")
    reopened = await Timeline.open(store, "cards")
    assert reopened.policy.hash() == policies.balanced(max_tokens=4_000).hash(), "a policy's text is no text of theirs"
    assert (await reopened.verify()).ok


async def test_a_conversation_that_was_handed_over_to_is_named_until_its_summary_is_redacted(store: EventStore) -> None:
    """The summary is a block of its own, and of a conversation of its own."""
    timeline = await Timeline.open(store, "cards")
    [asked] = await timeline.append(UserPrompt(text=f"Never print {PLAIN}."))
    fresh = await timeline.hand_over()
    later = await fresh.hand_over()
    [afterwards] = await timeline.append(UserPrompt(text=f"Nor this: {UNICODE}."))
    assert "handed_over" not in (await timeline.redact(afterwards.path, WHY)).left, "no summary reaches so far"
    for dry_run in (True, False):
        report = await redact(store, "cards", asked.path, WHY, dry_run=dry_run)
        for id_ in (fresh.id, later.id):
            assert f"`timeline redact {id_} @3`" in report.left["handed_over"]
    for each in (fresh, later):
        await each.redact("@3", WHY)
    assert "handed_over" not in (await timeline.redact(asked.path, WHY)).left
    assert left_in(await everything_of(store)) == 0


async def test_what_was_in_view_at_a_scavenge_is_in_no_later_summary_that_is_written_anew(store: EventStore) -> None:
    """A scavenged log is read from a base, whose window holds the block as it was."""
    timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=4_000))
    for number in range(20):
        prompt = UserPrompt(text=f"Never print {PLAIN}-prompt-{number}. {'Say why. ' * 90}")
        about = {"file_path": f"/srv/{number}.txt", "content": f"{PLAIN}-call-{number} {'Look at it again. ' * 50}"}
        call = ToolCall(call_id=f"{number}", name="Write", arguments=about)
        await timeline.append(prompt, call, ToolResult(call_id=call.call_id, text=f"{PLAIN}-result-{number}"))
        await timeline.render()
        if number == 8:
            await timeline.set_retention("window")
            assert (await scavenge(store)).events
    base = await store.load_base("cards")
    assert base is not None
    assert base.snapshot is not None
    in_view = [event for event in base.events if event.version <= base.snapshot.version]
    blocks = [event for event in in_view if isinstance(event.payload, BlockAppended)]
    keys = [key for event in blocks for key in re.findall(rf"{PLAIN}-\w+-\d+", encode_payload(event.payload))]
    summaries = [e async for e in store.read("cards", types=["compaction.completed"])]
    later = [e.version for e in summaries if e.version > base.snapshot.version]
    assert keys
    assert later
    await timeline.redact([f"@{event.version}" for event in blocks], WHY)
    for event in await store.read_versions("cards", later):
        assert re.findall(rf"(?:{'|'.join(keys)})\b", encode_payload(event.payload)) == []


async def test_a_preview_goes_with_its_prompt_where_the_decision_was_scavenged(store: EventStore) -> None:
    """The prompt of a split turn stays in view, and only the base has the preview that is shown of it."""
    timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=4_000))
    [asked] = await timeline.append(UserPrompt(text=f"Never print {PLAIN}. {'Read all of this first. ' * 600}"))
    await timeline.render()
    for number in range(24):
        call = ToolCall(call_id=f"{number}", name="Write", arguments={"file_path": f"/srv/{number}.txt"})
        await timeline.append(call, ToolResult(call_id=call.call_id, text="ok " * 300))
        await timeline.render()
    await timeline.set_retention("window")
    assert (await scavenge(store)).events
    base = await store.load_base("cards")
    assert base is not None
    assert PLAIN in str(base.snapshot)
    await timeline.redact(asked.path, WHY)
    assert PLAIN not in str(await store.load_base("cards"))
    assert left_in(await everything_of(store)) == 0
    assert (await timeline.verify()).ok


async def test_a_scavenged_fork_that_keeps_a_copy_of_an_erased_past_is_proved(store: EventStore) -> None:
    """What is left of its scavenged events is linked by the types that they had."""
    policy = policies.cut_point(max_tokens=1_000, counter="chars4")
    timeline = await Timeline.open(store, "cards", policy=policy)
    await timeline.append(UserPrompt(text="Build a flashcard app."))
    fork = await timeline.fork(conversation="fork")
    for _ in range(4):
        await fork.append(UserPrompt(text="word " * 300), AssistantCompletion(text="word " * 300))
        await fork.render()
    await store.set_retention("window")
    assert (await scavenge(store)).events
    await store.erase("cards", forks="copy")
    report = await (await Timeline.open(store, "fork", create=False)).verify()
    assert report.ok, report.problems
