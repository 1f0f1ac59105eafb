"""Importing recordings: what an importer read becomes events of a log, once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.portable.recordings import TALK, recorded, recording
from tests.scenes import COUNTER, after, answer, call, log_of, opened, paths, payloads_of, prompt, result, words
from timeline import Timeline
from timeline.events import BlockAppended, ParentLink, derived_event_id
from timeline.importers import ImportedCompaction, ImportedHide, RecordedEvent, Recording, Report
from timeline.planning.summary_block import HEADING
from timeline.portable.recordings import import_recording
from timeline.ports import Hooks
from timeline.store.memory import MemoryStore


async def test_blocks_and_calls_keep_their_recorded_times() -> None:
    """An event stands in the log at the moment at which it was recorded."""
    store = MemoryStore()
    done = await import_recording(store, recording(*TALK, title="A talk"))
    assert (done.id, done.events, done.known) == ("r", 5, 0)
    log = await log_of(store, "r")
    assert [event.type for event in log] == [
        "conversation.opened",
        *["block.appended"] * 2,
        "model.called",
        *["block.appended"] * 2,
    ]
    assert [event.at for event in log] == [after(0), *[after(second) for second in range(5)]]
    assert [event.id for event in log[1:]] == [derived_event_id(after(n), "r", f"line {n}") for n in range(5)]
    blocks = [event.payload.block for event in log if isinstance(event.payload, BlockAppended)]
    assert [block.at for block in blocks] == [after(0), after(1), after(3), after(4)]


async def test_the_conversation_says_where_it_comes_from() -> None:
    """Title, parent and format of the recording."""
    store = MemoryStore()
    parent = ParentLink(conversation="main", path="tc:turn_1.a.call")
    await import_recording(store, recording(*TALK, title="A talk", parent=parent))
    [opening] = await payloads_of(store, "conversation.opened", "r")
    assert (opening.title, opening.parent, opening.source) == ("A talk", parent, "claude_code")


async def test_blocks_are_counted_and_addressed_on_the_way_in() -> None:
    """A recording brings no counts and no paths."""
    store = MemoryStore()
    await import_recording(store, recording(*TALK))
    timeline = await Timeline.open(store, "r")
    assert paths(timeline.window.items) == [
        "ar:turn_1.user.prompt",
        "tc:turn_1.a.call",
        "tc:turn_1.a.result",
        "ar:turn_1.assistant.completion",
    ]
    items = timeline.window.items
    assert [i.tokens for i in items] == [timeline.counter.count(i.block.countable()) for i in items]


async def test_importing_twice_adds_nothing() -> None:
    """Every event's id follows from the recording; the second import finds them all."""
    store = MemoryStore()
    things = (
        *TALK,
        ImportedCompaction("SUMMARY"),
        prompt(turn_id="turn_2"),
        ImportedHide(("a",)),
        ImportedHide(("zz",)),
    )
    first = await import_recording(store, recording(*things))
    log = await log_of(store, "r")
    second = await import_recording(store, recording(*things))
    assert (first.events, first.known) == (9, 0)
    assert (second.events, second.known) == (0, 9)
    assert await log_of(store, "r") == log


async def test_a_file_that_has_grown_adds_what_is_new() -> None:
    """The rest of a session is imported behind what is there."""
    store = MemoryStore()
    await import_recording(store, recording(*TALK))
    more = (*TALK, prompt(text="and now?", turn_id="turn_2"), answer(turn_id="turn_2"))
    done = await import_recording(store, recording(*more))
    assert (done.events, done.known) == (2, 5)
    timeline = await Timeline.open(store, "r")
    assert [i.block.text for i in timeline.window.items][-2] == "and now?"
    assert (await timeline.verify()).ok


async def test_a_result_that_arrives_with_the_rest_answers_its_call() -> None:
    """A file that ended in mid-round goes on as if it had been read at once."""
    store = MemoryStore()
    await import_recording(store, recording(*TALK[:3]))
    await import_recording(store, recording(*TALK))
    whole = MemoryStore()
    await import_recording(whole, recording(*TALK))
    assert (await Timeline.open(store, "r")).window.items == (await Timeline.open(whole, "r")).window.items


async def test_a_compaction_of_the_recorded_client_covers_everything_before_it() -> None:
    """Its summary stands for all that was live, and what was covered reads back."""
    store = MemoryStore()
    things = (*TALK, ImportedCompaction("THE SUMMARY", trigger="auto", pre_tokens=160_000), prompt(turn_id="turn_2"))
    await import_recording(store, recording(*things))
    timeline = await Timeline.open(store, "r")
    assert paths(timeline.window.items) == ["su:turn_1.conv.range.summary", "ar:turn_2.user.prompt"]
    [completed] = await payloads_of(store, "compaction.completed", "r")
    assert completed.block.text == f"{HEADING}\n\nTHE SUMMARY"
    assert (completed.source, completed.reason) == ("imported", "imported")
    assert completed.written_by.summarizer == "imported"
    assert completed.parts.history == "THE SUMMARY"
    assert all(version in completed.covers for version in (2, 3, 5, 6))
    assert completed.block.at == after(5)
    assert [c.command for c in completed.digest.commands] == ["make"]
    assert completed.digest.commands[0].failed
    assert (await timeline.read("ar:turn_1.user.prompt")).text == "build it"
    report = await timeline.verify()
    assert (report.ok, report.compactions) == (True, 1)


async def test_a_compaction_of_the_recorded_client_reports_the_prompts_that_its_summary_leaves_unsaid() -> None:
    """Also those that the summary before it said; a prompt that is kept word for word is in view."""
    store = MemoryStore()
    asked = [prompt(text=text, turn_id=f"turn_{n}") for n, text in enumerate(("Use tabs.", "Never push.", "Go."), 1)]
    first, second = (ImportedCompaction(text, kept_blocks=1) for text in ("He said: Use tabs.", "Never push."))
    await import_recording(store, recording(*asked[:2], first, asked[2], second))
    done = await payloads_of(store, "compaction.completed", "r")
    assert [compaction.unsaid for compaction in done] == [(), (2,)]


async def test_a_hide_of_the_recorded_client_reports_the_answers_that_it_clears() -> None:
    """They are a user's words in a result."""
    store = MemoryStore()
    asking = call("a", "ask_user", turn_id="turn_1", response_id="r1")
    answered = result("a", text='{"answers":{"0":"Never push."}}', turn_id="turn_1")
    await import_recording(store, recording(prompt(turn_id="turn_1"), asking, answered, ImportedHide(("a",))))
    [hidden] = await payloads_of(store, "blocks.hidden", "r")
    assert hidden.unsaid == tuple(replaced.version for replaced in hidden.blocks)


async def test_an_imported_summary_block_has_the_same_meta_keys() -> None:
    """Whoever reads a summary need not ask who made it; the client's own figures are kept beside."""
    store = MemoryStore()
    await import_recording(store, recording(*TALK, ImportedCompaction("S", trigger="manual", pre_tokens=160_000)))
    [completed] = await payloads_of(store, "compaction.completed", "r")
    meta = completed.block.meta
    assert meta["covered_turn_ids"] == ["turn_1"]
    assert (meta["trigger"], meta["recorded_tokens"], meta["round"]) == ("manual", 160_000, 1)
    assert {"covers", "carried", "before_tokens", "after_tokens", "written_by", "parts"} <= set(meta)
    assert (meta["first_at"], meta["last_at"]) == ("2026-03-01T12:00:00.000000Z", "2026-03-01T12:00:04.000000Z")


async def test_a_second_recorded_compaction_supersedes_the_first() -> None:
    """One summary is live; it stands for the turns of both."""
    store = MemoryStore()
    more = (prompt(turn_id="turn_2"), answer(turn_id="turn_2"))
    await import_recording(store, recording(*TALK, ImportedCompaction("ONE"), *more, ImportedCompaction("TWO")))
    timeline = await Timeline.open(store, "r")
    assert paths(timeline.window.items) == ["su:turn_2.conv.range.summary"]
    _, second = await payloads_of(store, "compaction.completed", "r")
    assert second.round == 2
    assert second.block.meta["covered_turn_ids"] == ["turn_1", "turn_2"]
    assert (await timeline.verify()).ok


@pytest.mark.parametrize(("kept", "left"), [(0, 0), (1, 1), (2, 3), (3, 3), (4, 4), (9, 4)])
async def test_what_a_recorded_client_kept_stays_in_whole_groups(kept: int, left: int) -> None:
    """A result stays with its call, whatever the client said; the rest is covered."""
    store = MemoryStore()
    await import_recording(store, recording(*TALK, ImportedCompaction("ONE", kept_blocks=kept)))
    timeline = await Timeline.open(store, "r")
    assert len(timeline.window.items) == left + 1
    [completed] = await payloads_of(store, "compaction.completed", "r")
    assert completed.split_turn_id == ("turn_1" if 0 < left < 4 else None)
    assert completed.after_tokens == timeline.window.tokens
    assert (await timeline.verify()).ok


async def test_a_second_recorded_compaction_may_keep_what_the_first_one_kept() -> None:
    """But nothing that stands before the first one's summary, which it supersedes."""
    store = MemoryStore()
    first, second = ImportedCompaction("ONE", kept_blocks=1), ImportedCompaction("TWO", kept_blocks=3)
    more = (prompt(turn_id="turn_2"), answer(turn_id="turn_2"))
    await import_recording(store, recording(*TALK, first, *more, second))
    timeline = await Timeline.open(store, "r")
    summary, *kept = timeline.window.items
    assert summary.block.text.endswith("TWO")
    assert len(kept) == 3
    assert (await timeline.verify()).ok


async def test_two_recorded_compactions_in_a_row_are_both_kept() -> None:
    """A client that compacts twice without a word between has two summaries in the log, one live."""
    store = MemoryStore()
    await import_recording(store, recording(*TALK, ImportedCompaction("ONE"), ImportedCompaction("TWO")))
    timeline = await Timeline.open(store, "r")
    assert paths(timeline.window.items) == ["su:turn_1.conv.range.summary.2"]
    assert (await timeline.verify()).ok


@pytest.mark.parametrize("decision", [ImportedCompaction("FIRST"), ImportedHide(("a",))], ids=["compaction", "hide"])
async def test_a_decision_at_the_very_beginning_is_on_record(decision: ImportedCompaction | ImportedHide) -> None:
    """A file may begin with the summary of what came before it."""
    store = MemoryStore()
    done = await import_recording(store, recording(decision, *TALK))
    assert done.events == 6
    again = await import_recording(store, recording(decision, *TALK))
    assert (again.events, again.known) == (0, 6)
    assert (await (await Timeline.open(store, "r")).verify()).ok


async def test_what_the_recorded_client_cleared_is_hidden_and_readable() -> None:
    """A replacement with the path stands for it."""
    store = MemoryStore()
    await import_recording(store, recording(*TALK, ImportedHide(("a",))))
    timeline = await Timeline.open(store, "r")
    [hidden] = [item for item in timeline.window.items if item.state == "hidden"]
    assert hidden.replacement is not None
    assert hidden.replacement.text == "[cleared by the recorded client: tc:turn_1.a.result]"
    assert (await timeline.read("tc:turn_1.a.result")).text == "Exit code 2"


async def test_a_long_recording_is_imported_in_batches_and_tells_its_progress() -> None:
    """Progress rises to the number of events."""
    store = MemoryStore()
    told: list[int] = []
    things = [prompt(text=f"{n}", turn_id=f"turn_{n}") for n in range(1_203)]
    done = await import_recording(store, recording(*things), on_progress=told.append)
    assert done.events == 1_203
    assert told == sorted(told)
    assert told[-1] == 1_203
    assert len(told) >= 3
    assert (await store.info("r")).version == 1_204


async def test_an_empty_recording_opens_its_conversation() -> None:
    """Nothing was said, and that is on record."""
    store = MemoryStore()
    done = await import_recording(store, recording())
    assert (done.events, done.known) == (0, 0)
    assert (await store.info("r")).version == 1


async def test_the_import_says_what_was_met() -> None:
    """The stable shape of the command's JSON."""
    report = Report(format="claude_code", lines=7, records=6)
    report.note("glued", 3, "two records")
    done = await import_recording(MemoryStore(), recording(*TALK, report=report))
    assert done.dump() == {
        "id": "r",
        "events": 5,
        "known": 0,
        "report": {
            "format": "claude_code",
            "lines": 7,
            "records": 6,
            "counts": {"glued": 1},
            "findings": [{"kind": "glued", "line": 3, "detail": "two records"}],
        },
    }


async def test_an_imported_conversation_goes_on_like_any_other() -> None:
    """The next prompt opens the next turn."""
    store = MemoryStore()
    await import_recording(store, recording(*TALK))
    timeline = await opened(store, "r")
    [block] = await timeline.append(prompt(text=words(3)))
    assert block.turn_id == "turn_2"
    assert timeline.window.items[-1].tokens == COUNTER.count(words(3))


async def _findings(store: MemoryStore, *events: RecordedEvent, hooks: Hooks | None = None) -> list[tuple[str, str]]:
    """Import a snapshot; return what it says otherwise than the log."""
    snapshot = Recording("r", events, Report(format="ai-sdk-ui"), is_snapshot=True)
    found = (await import_recording(store, snapshot, hooks=hooks)).report["findings"]
    return [(one["kind"], one["detail"]) for one in found]


ASKED = recorded(prompt(text="the capital?", turn_id="turn_1"), 0)
LYON = recorded(answer(text="Lyon", turn_id="turn_1", response_id="m1"), 1)
PARIS = recorded(answer(text="Paris", turn_id="turn_1", response_id="m2"), 2)


async def test_an_answer_that_a_newer_snapshot_no_longer_has_is_kept_and_reported() -> None:
    """It may have been written again, or trimmed: the log cannot know. Once it is left out, no word is said of it."""
    store = MemoryStore()
    assert await _findings(store, ASKED, LYON) == []
    assert await _findings(store, ASKED, PARIS) == [("left_out", "@3 ar:turn_1.assistant.completion")]
    timeline = await Timeline.open(store, "r")
    assert [item.block.text for item in timeline.window.items] == ["the capital?", "Lyon", "Paris"]
    await timeline.hide("@3", mode="omit")
    assert await _findings(store, ASKED, recorded(answer(text="Nice", turn_id="turn_1", response_id="m3"), 3)) == [
        ("left_out", "@4 ar:turn_1.assistant.completion.2")
    ]


async def test_an_older_snapshot_of_a_conversation_leaves_nothing_out() -> None:
    """The log merely knows more."""
    store = MemoryStore()
    await _findings(store, ASKED, LYON, PARIS)
    assert await _findings(store, ASKED, LYON) == []


async def test_a_prompt_that_a_newer_snapshot_has_in_other_words_is_reported() -> None:
    """A question was edited under its id; the log keeps what it has. What a hook masks is no other word."""
    store = MemoryStore()
    edited = replace(LYON, payload=recorded(answer(text="Nice", turn_id="turn_1", response_id="m1"), 1).payload)
    await _findings(store, ASKED, LYON)
    assert await _findings(store, ASKED, edited) == [("rewritten", "@3 ar:turn_1.assistant.completion")]
    hooks = Hooks(on_append=lambda block: block.model_copy(update={"text": block.text.replace("Nice", "Lyon")}))
    assert await _findings(store, ASKED, edited, hooks=hooks) == []


async def test_a_message_is_known_in_a_snapshot_that_was_trimmed_in_front_of_it() -> None:
    """Its time was derived from its place, which is another one now; a new turn comes behind the log's newest."""
    store = MemoryStore()
    first = [recorded(prompt(text=f"question {n}", turn_id=f"turn_{n}"), n) for n in (1, 2)]
    await _findings(store, *first)
    again = replace(first[1], at=after(1), payload=recorded(prompt(text="question 2", turn_id="turn_1"), 2).payload)
    new = recorded(prompt(text="question 3", turn_id="turn_2"), 3)
    assert await _findings(store, again, new) == [("left_out", "@2 ar:turn_1.user.prompt")]
    timeline = await Timeline.open(store, "r")
    assert paths(timeline.window.items) == [f"ar:turn_{n}.user.prompt" for n in (1, 2, 3)]
