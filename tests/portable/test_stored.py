from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.portable.recordings import TALK, recording
from tests.scenes import after, answer, call, prompt, result, small_policy
from timeline import Timeline, policies
from timeline.errors import CallNotFound, HistoryUnavailable, ImportFailed
from timeline.events import BlockAppended, BlockRedacted, ModelCalled, event_ids
from timeline.importers import ImportedCompaction
from timeline.lab.simulate import simulate, simulate_from
from timeline.portable import export_log, read_copies
from timeline.portable.copying import copy_conversation
from timeline.portable.recordings import import_recording
from timeline.portable.stored import as_recording, exported_conversations, stored_conversation
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from timeline.importers import Recording
    from timeline.portable.stored import StoredConversation
    from timeline.ports import EventStore

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)


def session(rounds: int = 14, size: int = 900) -> Recording:
    """Return one prompt and many reported rounds, which a small policy compacts several times."""
    things: list[object] = [prompt(turn_id="turn_1")]
    for n in range(rounds):
        things += [
            call(f"c{n}", turn_id="turn_1", response_id=f"m{n}"),
            ModelCalled(model="m", response_id=f"m{n}"),
            result(f"c{n}", size, turn_id="turn_1"),
        ]
    return recording(*things, answer(turn_id="turn_1", response_id="last"), ModelCalled(model="m", response_id="last"))


async def exported(store: EventStore, ids: Iterable[str], folder: Path) -> Path:
    """Write conversations to a file as `timeline export` does."""
    file = folder / "log.jsonl"
    file.write_text("".join([f"{line}\n" async for line in export_log(store, ids)]), encoding="utf-8")
    return file


def read(file: Path) -> list[StoredConversation]:
    """Read the conversations of an exported file."""
    copies = read_copies(file)
    assert copies is not None
    return exported_conversations(file, copies)


async def test_a_stored_log_says_what_was_said_and_called_in_its_order() -> None:
    """The recording of an imported recording is that recording, with its blocks' paths."""
    store = MemoryStore()
    await import_recording(store, recording(*TALK))
    stored = await stored_conversation(store, "r")
    kinds = [type(event.payload) for event in stored.recording.events]
    assert kinds == [BlockAppended, BlockAppended, ModelCalled, BlockAppended, BlockAppended]
    assert [event.at for event in stored.recording.events] == [event.at for event in recording(*TALK).events]
    assert stored.versions == (2, 3, 4, 5, 6)


async def test_the_decisions_of_a_log_are_those_of_a_recorded_client() -> None:
    """So that sizes are measured from what was reported, and another policy leaves them out."""
    store = MemoryStore()
    run = await simulate(store, session(), POLICY)
    stored = await stored_conversation(store, run.id)
    compactions = [e for e in stored.recording.events if isinstance(e.payload, ImportedCompaction)]
    assert len(compactions) == run.compactions > 1


async def test_a_call_begins_behind_what_it_answers_and_before_what_was_decided_for_it() -> None:
    """Every context of the log is of the version that its call begins at, or of one made by decisions for that call."""
    store = MemoryStore()
    run = await simulate(store, session(), POLICY)
    stored = await stored_conversation(store, run.id)
    contexts = [event for event in stored.events if event.type == "context.rendered"]
    begins = [stored.before_call(number) for number in range(1, 16)]
    for version, context in zip(begins, contexts, strict=True):
        between = [e.type for e in stored.events if version < e.version < context.version]
        assert set(between) <= {"compaction.started", "compaction.completed", "blocks.hidden"}
        assert stored.events[version - 1].payload.type == "block.appended"


async def test_what_was_said_while_the_model_was_answering_comes_behind_the_call() -> None:
    """The call was not sent it."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY)
    await timeline.append(prompt())
    await timeline.render()
    sent = timeline.version - 1
    await timeline.append(prompt(text="wait"))
    await timeline.record({"id": "x", "choices": [{"message": {"role": "assistant", "content": "Yes."}}]})
    assert (await stored_conversation(store, "c")).before_call(1) == sent


async def test_a_file_of_export_gives_the_same_as_the_store(tmp_path: Path) -> None:
    """A fork comes with the past that it shares."""
    store = MemoryStore()
    run = await simulate(store, session(), POLICY)
    branch = await (await Timeline.open(store, run.id)).fork(call=9)
    await branch.append(prompt(text="Another way."))
    found = read(await exported(store, [run.id, branch.id], tmp_path))
    for one, id_ in zip(found, (run.id, branch.id), strict=True):
        stored = await stored_conversation(store, id_)
        assert one.recording == stored.recording
        assert [event.payload for event in one.events] == [event.payload for event in stored.events]


async def test_a_fork_without_its_parent_in_the_file_is_refused(tmp_path: Path) -> None:
    """The cure is to export both."""
    store = MemoryStore()
    run = await simulate(store, session(3), POLICY)
    branch = await (await Timeline.open(store, run.id)).fork()
    file = await exported(store, [branch.id], tmp_path)
    lines = [line for line in file.read_text().splitlines() if f'"conversation":"{branch.id}"' in line]
    file.write_text("\n".join(lines))
    with pytest.raises(ImportFailed, match="parent"):
        read(file)


async def test_an_unknown_call_is_refused_with_the_nearest() -> None:
    """As `Timeline.call` refuses it."""
    store = MemoryStore()
    run = await simulate(store, session(3), POLICY)
    stored = await stored_conversation(store, run.id)
    with pytest.raises(CallNotFound, match=r"There are 4; the nearest are 2, 3, 4"):
        stored.before_call(7)


async def test_a_log_with_a_gap_cannot_run_again() -> None:
    """Its compactions would cover other blocks."""
    store = MemoryStore()
    run = await simulate(store, session(3), POLICY)
    events = (await stored_conversation(store, run.id)).events
    with pytest.raises(HistoryUnavailable):
        as_recording(run.id, [event for event in events if event.version != 3])


async def test_a_copy_in_another_store_is_the_same_log_with_its_parents() -> None:
    """Ids, versions, times and contents; the values that contexts name are there."""
    store, other = MemoryStore(), MemoryStore()
    run = await simulate(store, session(), POLICY, system="S")
    branch = await (await Timeline.open(store, run.id)).fork(call=9)
    await copy_conversation(store, branch.id, other)
    copied, original = [await stored_conversation(one, branch.id) for one in (other, store)]
    assert copied.recording == original.recording
    assert [(e.conversation, e.version, e.checksum) for e in copied.events] == [
        (e.conversation, e.version, e.checksum) for e in original.events
    ]
    report = await (await Timeline.open(other, branch.id)).verify()
    assert (report.ok, report.unverifiable) == (True, {})


REDACTED = "sesame-4711"


async def redacted_session(store: EventStore) -> Timeline:
    """Store a session with a secret in a prompt, a call and a result, which it redacts later."""
    timeline = await Timeline.open(store, "p", policy=policies.balanced(max_tokens=20_000), title=f"go {REDACTED}")
    await timeline.append(prompt(text=f"go {REDACTED}"))
    for n in range(6):
        request = (await timeline.render(system="S")).request("anthropic", model="m", max_tokens=9)
        secret = REDACTED if n == 1 else "open"
        content = [{"type": "tool_use", "id": f"c{n}", "name": "run", "input": {"command": f"curl {secret}"}}]
        usage = {"input_tokens": 9, "output_tokens": 2}
        said = {"id": f"m{n}", "type": "message", "role": "assistant", "model": "m", "content": content}
        await timeline.record({**said, "usage": usage, "stop_reason": "tool_use"}, request=request)
        await timeline.append(result(f"c{n}", text=f"boom {secret}"))
    shown = [
        e.version async for e in store.read("p", types=["block.appended"]) if REDACTED in e.payload.model_dump_json()
    ]
    assert len(shown) == 3
    at = after(9)
    await timeline.decide(
        [BlockRedacted(version=version, reason="secret") for version in shown], at=at, ids=event_ids(at, len(shown))
    )
    return timeline


async def shown_by(store: EventStore, id_: str) -> str:
    """Return what a conversation shows now, and what its own log holds."""
    timeline = await Timeline.open(store, id_)
    context = (await timeline.render(record=False)).to_anthropic()
    info = await store.info(id_)
    own = [event.payload.model_dump_json() async for event in store.read(id_, after=info.base)]
    return json.dumps([context, own, info.title])


@pytest.mark.parametrize("number", [None, 1, 4])
async def test_a_run_of_a_log_does_not_bring_back_what_was_redacted(number: int | None) -> None:
    """Neither in the new conversation's own events nor in its contexts, from the beginning or from a call on."""
    store = MemoryStore()
    await redacted_session(store)
    stored = await stored_conversation(store, "p")
    if number is None:
        run = await simulate(store, stored.recording, POLICY)
    else:
        run = await simulate_from(store, stored, POLICY, call=number)
    assert REDACTED not in await shown_by(store, run.id)
    assert (await (await Timeline.open(store, run.id)).verify()).ok


@pytest.mark.parametrize(("at", "number"), [(None, 4), (9, None), (None, None)])
async def test_a_fork_does_not_bring_back_what_was_redacted(at: int | None, number: int | None) -> None:
    """It redacts in the append that opens it what its parent redacted behind the shared part."""
    store = MemoryStore()
    timeline = await redacted_session(store)
    branch = await timeline.fork(conversation="b", at=at, call=number)
    assert REDACTED not in json.dumps((await branch.render(record=False)).to_anthropic())
    assert REDACTED not in await shown_by(store, "b")
    assert REDACTED not in await shown_by(store, (await branch.fork(conversation="again")).id)
    assert (await branch.verify()).ok


async def test_a_call_gives_nothing_of_what_was_redacted() -> None:
    """Its body is not proved, and its reply has tombstones."""
    store = MemoryStore()
    timeline = await redacted_session(store)
    calls = [call async for call in timeline.calls()]
    assert REDACTED not in json.dumps([call.dump() for call in calls])
    assert {(call.request is None, call.unproved, call.sha256) for call in calls} == {(True, "redacted", "")}
    assert [block.text for block in calls[1].reply] == ["[redacted]"]
    request = (await timeline.render(system="S")).request("anthropic", model="m", max_tokens=9)
    await timeline.record({"id": "x", "choices": [{"message": {"content": "Yes."}}]}, request=request)
    assert (await timeline.call(7)).unproved is None
