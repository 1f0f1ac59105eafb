"""The shell: opening, appending, rendering and reading one conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.scenes import (
    AT,
    Scribe,
    Still,
    after,
    answer,
    call,
    exchange,
    log_of,
    opened,
    paths,
    payloads_of,
    prompt,
    result,
    small_policy,
    turn,
    words,
)
from timeline import Timeline, policies
from timeline.blocks import Note, StageDigest, ToolCall, UserPrompt
from timeline.errors import ConversationNotFound, InvalidBlock
from timeline.events import ConversationOpened, ParentLink
from timeline.frozen import sha256_hex
from timeline.log.stored import StoredLog
from timeline.projection.project import PROJECTION
from timeline.store.memory import MemoryStore
from timeline.tokens import get_counter
from timeline.tokens.counter import QuarterCounter
from timeline.usage import Usage

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)
SYSTEM = "You help."
TOOLS: list[Any] = [{"name": "run", "input_schema": {"type": "object"}}]


# Opening


async def test_the_first_event_opens_the_conversation() -> None:
    """Title, parent and source are said once, at the beginning."""
    store = MemoryStore()
    parent = ParentLink(conversation="other", path="tc:t.c.call")
    await opened(store, title="A talk", parent=parent, source="claude_code")
    [event] = await log_of(store)
    assert event.payload == ConversationOpened(
        title="A talk",
        parent=parent,
        source="claude_code",
        policy=small_policy().hash(),
        origin=small_policy().origin,
    )
    assert (event.version, event.at) == (1, AT)
    assert (await store.info("c")).title == "A talk"


async def test_opening_again_writes_nothing() -> None:
    """A conversation is opened where it was left."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    again = await opened(store, title="another title")
    assert again.version == 3
    assert again.window == timeline.window
    assert len(await log_of(store)) == 3


async def test_opening_without_creating_refuses_an_unknown_conversation() -> None:
    """With ``create=False`` nothing is begun."""
    store = MemoryStore()
    with pytest.raises(ConversationNotFound):
        await opened(store, create=False)
    with pytest.raises(ConversationNotFound):
        await store.info("c")


async def test_the_policy_is_balanced_unless_given() -> None:
    """The default counts exactly."""
    timeline = await Timeline.open(MemoryStore(), "c")
    assert timeline.policy == policies.balanced()
    assert timeline.counter.name == "o200k_base"


async def test_a_counter_of_the_applications_own_is_used() -> None:
    """Its name is stored beside every count."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", counter=get_counter("chars4"))
    await timeline.append(prompt(7))
    [appended] = await payloads_of(store, "block.appended")
    assert (appended.tokens, appended.counter) == (7, "chars4")


# Appending


@pytest.mark.shows("001-62", "004-13", "004-99", "004-105")
async def test_a_block_is_counted_once_and_the_count_is_stored() -> None:
    """Opening again takes the stored count, and counts nothing."""

    class Forgetful(QuarterCounter):
        """Bears the name of the stored counts, and gives others."""

        def count(self, text: str) -> int:
            return len(text)

    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(prompt(100))
    again = await Timeline.open(store, "c", policy=small_policy(), counter=Forgetful())
    assert again.window.tokens == 100


@pytest.mark.shows("001-62", "004-99")
async def test_renders_count_no_text_again() -> None:
    """A block is counted as it is appended, a system prompt by the first render that has it."""
    counted: list[str] = []

    class Noting(QuarterCounter):
        """Keeps the texts that it is asked to count."""

        def count(self, text: str) -> int:
            counted.append(text)
            return super().count(text)

    timeline = await opened(MemoryStore(), counter=Noting())
    for text in ("one", "two", "three"):
        await timeline.append(prompt(text=text), answer(text=f"{text} done"))
        for _ in range(2):
            await timeline.render(system=SYSTEM)
    once = [SYSTEM, *(said for text in ("one", "two", "three") for said in (text, f"{text} done"))]
    assert sorted(text for text in counted if text) == sorted(once)


async def test_blocks_of_one_append_are_one_transaction() -> None:
    """One invalid block and none is written."""
    store = MemoryStore()
    timeline = await opened(store)
    with pytest.raises(InvalidBlock):
        await timeline.append(prompt(), {"type": "react.tool.call"})
    assert timeline.version == (await store.info("c")).version == 1


async def test_two_writers_of_one_conversation_take_turns() -> None:
    """An append that comes second is addressed anew behind the first."""
    store = MemoryStore()
    one, two = await opened(store), await opened(store)
    await one.append(prompt(text="one"))
    [block] = await two.append(prompt(text="two"))
    assert block.path == "ar:turn_2.user.prompt"
    assert [i.block.text for i in two.window.items] == ["one", "two"]
    assert [i.block.text for i in one.window.items] == ["one"]
    context = await one.render()
    assert [e.text for e in context.neutral.entries] == ["one", "two"]


async def test_a_block_may_be_given_as_its_json() -> None:
    """Plain dictionaries are read like stored blocks."""
    timeline = await opened(MemoryStore())
    [block] = await timeline.append({"type": "user.prompt", "text": "hi"})
    assert isinstance(block, UserPrompt)


async def test_arguments_that_are_the_text_of_an_object_are_that_object() -> None:
    """As OpenAI's SDK gives a call; what the model wrote otherwise stays text, and so does what its form says."""
    timeline = await Timeline.open(MemoryStore(), "c")
    given = ('{"path": "a.py"}', '{"path":', "[1]")
    calls = [ToolCall(call_id=str(n), name="read_file", arguments=text) for n, text in enumerate(given)]
    formed = ToolCall(call_id="f", name="run", arguments="{}", data={"type": "custom_tool_call"})
    appended = await timeline.append(*calls, formed)
    arguments = [call.arguments for call in appended if isinstance(call, ToolCall)]
    assert arguments == [{"path": "a.py"}, *given[1:], "{}"]
    assert (await timeline.render()).to_anthropic()["messages"][1]["content"][0]["input"] == {"path": "a.py"}


async def test_a_blocks_own_time_is_kept() -> None:
    """Only a missing time is filled in."""
    timeline = await opened(MemoryStore())
    own, filled = await timeline.append(prompt(at=after(-60)), answer(), now=after(5))
    assert (own.at, filled.at) == (after(-60), after(5))


# Rendering


async def test_a_render_is_recorded_in_full() -> None:
    """The event holds what is needed to build the context again, and the store the values."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    context = await timeline.render(system=SYSTEM, tools=TOOLS, ephemeral=["noon"], now=after(9))
    event = (await log_of(store))[-1]
    payload: Any = event.payload
    assert (event.type, event.at) == ("context.rendered", after(9))
    assert (payload.version, payload.projection, payload.fingerprint) == (3, PROJECTION, context.fingerprint)
    assert (payload.record, payload.tokens, payload.overflow) == ("full", context.account.sent, False)
    values = await store.values([payload.policy, payload.system, payload.tools, payload.ephemeral])
    assert values[payload.policy] == timeline.policy.canonical()
    assert values[payload.system] == f'"{SYSTEM}"'
    assert len(values) == 4


async def test_a_render_that_changes_nothing_appends_nothing() -> None:
    """The same context twice is recorded once, also by a process that opened the log again."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    await timeline.render(system=SYSTEM)
    version = timeline.version
    await timeline.render(system=SYSTEM)
    await (await opened(store)).render(system=SYSTEM)
    assert (await store.info("c")).version == version
    await timeline.append(*turn())
    version = timeline.version
    await timeline.render(system=SYSTEM)
    assert timeline.version == version + 1


async def test_what_stands_beside_the_log_may_hold_lone_surrogates() -> None:
    """Prompt, tools and tail are repaired once: counted, hashed, stored, sent and rebuilt as the same text."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(prompt())
    tools: list[Any] = [{"name": "run", "description": "r\ud83dn", "k\udc00": ["\ud83d\ude00"]}]
    broken = await timeline.render(system="be \ud800 kind", tools=tools, ephemeral=["it is \udfff noon"])
    assert broken.neutral.system == "be \ufffd kind"
    assert broken.neutral.tools == ({"name": "run", "description": "r\ufffdn", "k\ufffd": ["\U0001f600"]},)
    assert [entry.text for entry in broken.neutral.ephemeral] == ["it is \ufffd noon"]
    whole = await timeline.render(
        system=broken.neutral.system, tools=broken.neutral.tools, ephemeral=["it is \ufffd noon"], record=False
    )
    assert (whole.fingerprint, whole.account) == (broken.fingerprint, broken.account)
    json.dumps(broken.to_anthropic(), ensure_ascii=False).encode()
    report = await timeline.verify()
    assert (report.ok, report.unverifiable) == (True, {})


async def test_a_pinned_note_is_counted_with_the_label_that_it_is_sent_under() -> None:
    """What a note costs is what the model is sent of it; a stage digest's, too."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(Note(text=words(5)), StageDigest(text=words(5)))
    context = await timeline.render()
    for entry, item, label in zip(
        context.neutral.entries, timeline.window.items, ("[pinned note] ", "[stage digest] "), strict=True
    ):
        assert entry.text == label + words(5)
        assert item.tokens == timeline.counter.count(entry.text) > 5
    appended = await payloads_of(store, "block.appended")
    assert context.account.messages == sum(payload.tokens for payload in appended)


async def test_a_dry_run_knows_the_paths_that_it_gave_out_itself() -> None:
    """Two summaries of one turn in one dry run get different paths, and those of the log are known beside them."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY)
    await timeline.append(*turn(1_500), *turn(300))
    await timeline.compact()
    dry = (await StoredLog.load(store, "c", Still())).dry_run(AT)
    stem = "su:turn_2.conv.range.summary"
    assert await dry.paths_taken([stem]) == {stem}
    [payload] = await payloads_of(store, "compaction.completed")
    block = payload.block.model_copy(update={"path": f"{stem}.2"})
    await dry.commit([payload.model_copy(update={"block": block})], at=AT)
    assert await dry.paths_taken([stem]) == {stem, f"{stem}.2"}
    assert await dry.paths_taken(["su:turn_1."]) == set()
    assert await store.paths_taken("c", [stem]) == {stem}


async def test_a_dry_run_appends_nothing_and_gives_the_same_bytes() -> None:
    """``record=False`` takes the very same decisions, a compaction included, and forgets them."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(1_500), *turn(1_500), *turn(400, asked=300))
    log = await log_of(store)
    dry = await timeline.render(system=SYSTEM, tools=TOOLS, record=False)
    assert await log_of(store) == log
    assert timeline.version == len(log)
    real = await timeline.render(system=SYSTEM, tools=TOOLS)
    assert dry.fingerprint == real.fingerprint
    assert dry.to_anthropic() == real.to_anthropic()
    assert dry.decisions == real.decisions


async def test_recording_hashes_keeps_no_prompt_and_no_tools() -> None:
    """``record="hash"`` stores the policy and the hashes of everything else."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    await timeline.render(system="a secret prompt", tools=TOOLS, ephemeral=["noon"], record="hash")
    [payload] = await payloads_of(store, "context.rendered")
    assert payload.record == "hash"
    assert payload.system == sha256_hex('"a secret prompt"')
    values = await store.values([payload.policy, payload.system, payload.tools, payload.ephemeral])
    assert set(values) == {payload.policy}


async def test_a_full_record_follows_a_hashed_one_of_the_same_context() -> None:
    """Who asks for a full record gets it; a hashed one after it adds nothing."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    for record in ("hash", "full", "hash", "full"):
        await timeline.render(system=SYSTEM, record=record)
    assert [p.record for p in await payloads_of(store, "context.rendered")] == ["hash", "full"]


async def test_a_render_without_a_decision_keeps_what_stands_before_the_previous_tail() -> None:
    """The wire's messages grow at their end only."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn(), prompt(), call("a"), result("a"))
    before = (await timeline.render(system=SYSTEM)).neutral.entries
    await timeline.append(call("b", response_id="m2"))
    middle = (await timeline.render(system=SYSTEM)).neutral.entries
    await timeline.append(result("b"), answer(response_id="m3"))
    later = (await timeline.render(system=SYSTEM)).neutral.entries
    assert middle[: len(before)] == before
    assert later[: len(middle)] == middle


@pytest.mark.shows("004-10", "004-18", "004-142")
async def test_a_model_call_is_recorded_with_its_usage() -> None:
    """Model, usage, how it ended and when it began."""
    store = MemoryStore()
    timeline = await opened(store)
    usage = Usage(input_tokens=3, output_tokens=5, cache_read_tokens=7, cache_write_5m_tokens=11)
    await timeline.record_model_call(
        usage, model="m", response_id="r1", finish_reason="end_turn", started_at=after(1), now=after(2)
    )
    event = (await log_of(store))[-1]
    payload: Any = event.payload
    assert event.at == after(2)
    assert (payload.usage, payload.model, payload.response_id) == (usage, "m", "r1")
    assert (payload.finish_reason, payload.started_at) == ("end_turn", after(1))


@pytest.mark.shows("004-18")
async def test_a_failed_call_is_recorded_with_its_error() -> None:
    """On one line, under the reason `error`."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.record_model_call(model="m", error="Overloaded.\nTry again later.")
    [payload] = await payloads_of(store, "model.called")
    assert (payload.finish_reason, payload.error) == ("error", "Overloaded. Try again later.")


async def test_a_model_call_names_the_render_that_it_answers() -> None:
    """By the version of the newest recorded context."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    await timeline.render()
    rendered = timeline.version
    await timeline.record_model_call(model="m")
    [payload] = await payloads_of(store, "model.called")
    assert payload.answers == rendered


async def test_the_margin_is_charged_on_the_fixed_part_too() -> None:
    """Every count is made larger for a model with another tokenizer."""
    timeline = await opened(MemoryStore(), policy=small_policy(margin=0.1))
    await timeline.append(prompt(100))
    account = (await timeline.render(system=words(50))).account
    assert (account.fixed.system, account.messages) == (55, 110)


async def test_what_cannot_be_sent_is_refused() -> None:
    """A system prompt or tool that has no JSON form is a typed error, before anything is written."""
    timeline = await opened(MemoryStore())
    unsendable: Any = object()
    for value in (float("nan"), unsendable):
        with pytest.raises(InvalidBlock) as caught:
            await timeline.render(tools=[{"x": value}])
        assert caught.value.field == "tools"
    assert timeline.version == 1


# Reading back


@pytest.mark.shows("002-35", "R-002-2")
async def test_a_covered_block_is_read_in_full_by_its_path() -> None:
    """What the summary covers is not lost."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe())
    stored = await timeline.append(*turn(1_500), *turn(1_500), *turn(400, asked=300))
    await timeline.render()
    assert "ar:turn_1.assistant.completion" not in paths(timeline.window.items)
    assert [await timeline.read(block.path) for block in stored] == stored


@pytest.mark.shows("R-002-3")
async def test_reading_a_summary_gives_the_full_digest() -> None:
    """The block in the window has no copy of it; ``read`` fills it in from the event."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe())
    reads = [b for n in range(60) for b in exchange(f"c{n}", 40, name="Read", arguments={"file_path": f"src/{n}.py"})]
    await timeline.append(prompt(), *reads, *turn(400, asked=300))
    await timeline.compact()
    assert timeline.window.summary is not None
    path = timeline.window.summary.block.path
    assert "compaction_digest" not in timeline.window.summary.block.meta
    full: Any = (await timeline.read(path)).meta["compaction_digest"]
    assert len(full["files_read"]) == 60
    assert "more" not in full


@pytest.mark.shows("002-50")
async def test_every_path_that_a_digest_prints_can_be_read() -> None:
    """Calls, results, hidden blocks and artifacts all resolve."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(
        prompt(),
        *exchange("w", 40, name="Write", arguments={"file_path": "a.py"}),
        call("m", "bash", arguments={"command": "make"}),
        result("m", 1_500, exit_status=1),
        call("f", "fetch"),
        result("f", 1_500, is_error=True),
        *turn(400, asked=300),
    )
    await timeline.compact()
    compaction = timeline.window.compaction
    assert compaction is not None
    digest = compaction.digest
    printed = [use.path for use in digest.files_written] + [command.path for command in digest.commands]
    printed += [problem.path for problem in digest.errors]
    printed += [path for outputs in digest.tool_outputs for path in outputs.paths]
    assert len(printed) == 6
    for path in printed:
        assert (await timeline.read(path)).path == path
