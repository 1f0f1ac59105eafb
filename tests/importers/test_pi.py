from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.pi_session import PiSession, call
from tests.importers.session import START, Session, blocks, kinds, said
from tests.recorded import needs_recordings, recorded
from timeline import Timeline, policies
from timeline.blocks import Attachment, CustomBlock, Reasoning, SystemMessage, ToolCall, ToolResult
from timeline.events import ModelCalled, ParentLink
from timeline.importers import ImportedCompaction, Recording, read_recording
from timeline.importers.pi import MOST_BRANCHES, read_pi
from timeline.lab.simulate import simulate
from timeline.portable.recordings import import_recording
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

PICTURE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
SENT_PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def read_all(session: PiSession) -> list[Recording]:
    """Read a session without a file."""
    return read_pi(session.text().encode(), "file")


def read(session: PiSession) -> Recording:
    """Read a session's main conversation without a file."""
    return read_all(session)[0]


def calls(recording: Recording) -> list[ModelCalled]:
    """Return the model calls of a recording."""
    return [e.payload for e in recording.events if isinstance(e.payload, ModelCalled)]


def compactions(recording: Recording) -> list[ImportedCompaction]:
    """Return the compactions of a recording."""
    return [e.payload for e in recording.events if isinstance(e.payload, ImportedCompaction)]


def texts(recording: Recording) -> list[str]:
    """Return what a recording's blocks say."""
    return [block.text for block in blocks(recording)]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_session_becomes_turns_of_blocks(tmp_path: Path, version: int) -> None:
    """Prompts, texts, calls, results and model calls are all there, whichever version wrote the file."""
    session = PiSession(version=version)
    session.user("List the files,\nplease")
    session.answer(said("I will"), call("a", command="ls"), call("b", command="pwd"), stop="toolUse")
    session.result("a", "x.py")
    session.result("b", "/home")
    session.answer(said("One file"))
    session.user([said("Thanks")])
    recording = read_recording(session.write(tmp_path, "odd.name"))[0]
    assert kinds(recording) == [
        "user.prompt",
        "assistant.completion",
        "react.tool.call",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "react.tool.result",
        "assistant.completion",
        "ModelCalled",
        "user.prompt",
    ]
    assert [b.turn_id for b in blocks(recording)] == ["turn_1"] * 7 + ["turn_2"]
    assert (recording.id, recording.title, recording.report.format) == ("pi-1", "List the files,", "pi")
    assert not recording.report.counts


def test_the_keys_stay_when_pi_gives_old_entries_ids() -> None:
    """A file of the first version is written again in place; an import of it afterwards adds nothing."""
    keys = []
    for version in (1, 3):
        session = PiSession(version=version)
        session.user("go")
        session.answer(call("a"), stop="toolUse")
        session.result("a")
        keys.append([(e.key, e.at) for e in read(session).events])
    assert keys[0] == keys[1]


def test_a_model_call_tells_its_cost_and_when_it_began() -> None:
    """Usage with cache reads and writes by lifetime; the message's time is the call's, the entry's its end."""
    session = PiSession()
    session.user("go")
    session.answer(said("yes"), responseId="msg_1")
    session.answer(said("no"), responseModel="claude-opus-4-5-1", responseId="msg_1")["message"]["usage"] |= {
        "cacheWrite1h": 20
    }
    first, second = calls(read(session))
    assert first == ModelCalled(
        model="claude-opus-4-5",
        response_id="msg_1",
        usage=Usage(input_tokens=3, output_tokens=7, cache_read_tokens=1000, cache_write_5m_tokens=50),
        finish_reason="stop",
        started_at=START + timedelta(seconds=1.5),
    )
    assert (second.usage.cache_write_5m_tokens, second.usage.cache_write_1h_tokens) == (30, 20)
    assert second.model == "claude-opus-4-5-1"
    assert second.response_id != first.response_id


def test_a_failed_call_says_what_went_wrong() -> None:
    """Nothing of an answer came; the call is there, with the words of the error."""
    session = PiSession()
    session.user("go")
    session.answer(stop="error", errorMessage="429 rate limited")
    recording = read(session)
    assert kinds(recording) == ["user.prompt", "ModelCalled"]
    assert [(called.finish_reason, called.error) for called in calls(recording)] == [("error", "429 rate limited")]


def test_signed_thinking_is_the_providers_own_part_again() -> None:
    """Text and signature stand as they were signed, under the names that the provider knows them by."""
    item = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "b3BhcXVl"}
    odd = {"type": "thinking", "thinking": "hm", "thinkingSignature": "xyz"}
    session = PiSession()
    session.answer(
        {"type": "thinking", "thinking": "hm \u2028 ", "thinkingSignature": "c2ln+/=="},
        {"type": "thinking", "thinking": "[redacted]", "thinkingSignature": "b3Bh", "redacted": True},
        {"type": "thinking", "thinking": "unsigned"},
    )
    session.answer(
        {"type": "thinking", "thinking": "so", "thinkingSignature": json.dumps(item)}, api="openai-responses"
    )
    session.answer(odd, api="openai-responses")
    session.answer(odd, api="google-generative-ai")
    found = [block for block in blocks(read(session)) if isinstance(block, Reasoning)]
    assert [(block.text, block.data) for block in found] == [
        ("hm \u2028 ", {"type": "thinking", "thinking": "hm \u2028 ", "signature": "c2ln+/=="}),
        ("", {"type": "redacted_thinking", "data": "b3Bh"}),
        ("unsigned", {"type": "thinking", "thinking": "unsigned"}),
        ("so", item),
        ("hm", odd),
        ("hm", odd),
    ]


def test_signatures_of_texts_and_calls_are_kept_beside_them() -> None:
    """They are in the meta, and no wire sends them; a part of an unknown kind is kept whole."""
    session = PiSession()
    session.answer({**said("yes"), "textSignature": "t"}, {**call("a"), "thoughtSignature": "u"}, {"type": "odd"})
    text, made, odd = blocks(read(session))
    assert (text.meta, made.meta) == ({"text_signature": "t"}, {"thought_signature": "u"})
    assert isinstance(odd, CustomBlock)
    assert odd.data == {"type": "odd"}


def test_results_say_how_it_went_and_keep_pictures() -> None:
    """Tool name, error flag and exit status; a picture gets the form that the providers take."""
    session = PiSession()
    session.answer(call("a"), call("b"), call("c"), call("d", "read"), stop="toolUse")
    session.result("a", "fine")
    session.result("b", "no such file\n\nCommand exited with code 127", is_error=True)
    session.result("c", "Command aborted", is_error=True)
    session.result("d", toolName="read", content=[said("see"), PICTURE])
    found = [block for block in blocks(read(session)) if isinstance(block, ToolResult)]
    assert [(r.name, r.is_error, r.exit_status) for r in found] == [
        ("bash", False, 0),
        ("bash", True, 127),
        ("bash", True, None),
        ("read", False, None),
    ]
    assert (found[3].text, found[3].data) == ("see", [said("see"), SENT_PICTURE])


def test_pictures_in_a_prompt_are_attachments_of_its_turn() -> None:
    """The picture stands in its prompt's turn."""
    session = PiSession()
    session.user([PICTURE, said("see")])
    attachment, prompt = blocks(read(session))
    assert isinstance(attachment, Attachment)
    assert (attachment.data, attachment.mime, attachment.turn_id) == (SENT_PICTURE, "image/png", prompt.turn_id)


def test_an_aborted_answer_keeps_what_arrived_and_is_marked() -> None:
    """A call whose arguments broke off is no call; where nothing arrived there is the model call alone."""
    session = PiSession()
    session.user("go")
    session.answer(said("Let me"), {**call("a"), "partialJson": '{"comm'}, stop="aborted")
    session.answer(stop="aborted")
    session.answer(stop="error", errorMessage="overloaded")
    recording = read(session)
    assert kinds(recording) == ["user.prompt", "assistant.completion", *["ModelCalled"] * 3]
    cut = {"call_id": "a", "name": "bash", "arguments": '{"comm'}
    assert blocks(recording)[1].meta == {"interrupted": True, "cut_calls": [cut]}
    assert [c.finish_reason for c in calls(recording)] == ["aborted", "aborted", "error"]
    assert not recording.report.counts


def test_what_pi_says_in_the_users_place_opens_no_turn() -> None:
    """Commands that the user ran, messages of extensions and summaries of branches are by the author client."""
    session = PiSession()
    session.user("go")
    session.answer(said("yes"))
    ran = {"command": "make", "cancelled": False, "truncated": False}
    session.message("bashExecution", output="bad", exitCode=2, **ran)
    session.message("bashExecution", output="", exitCode=0, **{**ran, "cancelled": True})
    session.message("bashExecution", output="secret", exitCode=0, excludeFromContext=True, **ran)
    session.entry("custom_message", customType="plan", content=[said("The plan"), PICTURE], display=True)
    session.message("hookMessage", content="From a hook")
    session.entry("branch_summary", fromId="x", summary="Tried A")
    recording = read(session)
    told = blocks(recording)[2:]
    assert [b.text.splitlines() for b in told] == [
        ["Ran `make`", "```", "bad", "```", "", "Command exited with code 2"],
        ["Ran `make`", "(no output)", "", "(command cancelled)"],
        ["The plan"],
        [],
        ["From a hook"],
        ["The conversation came back from another branch. Summary of that branch:", "", "Tried A"],
    ]
    assert {b.author for b in told} == {"client"}
    assert {b.turn_id for b in told} == {"turn_1"}
    assert recording.report.counts == {"skipped": 1}


def test_pis_own_state_is_counted_and_unknown_entries_are_reported() -> None:
    """None of it is conversation, and nothing is fatal; the newest name is the title."""
    session = PiSession()
    session.message("system", content="Be brief.")
    session.user("go")
    session.entry("model_change", provider="openai", modelId="gpt-5")
    session.entry("thinking_level_change", thinkingLevel="high")
    session.entry("custom", customType="todo", data={"text": "x"})
    session.entry("label", targetId="1", label="here")
    session.entry("active_tools_change", activeToolNames=["bash"])
    session.entry("leaf", targetId="1")
    session.entry("session_info", name="My session")
    session.message("assistant", content=[said("ye")], stopReason="pending")
    session.entries[-1]["checkpoint"] = True
    session.entry("novelty")
    session.message("critic", content="bad")
    session.user({"not": "content"})
    session.entry("compaction", summary=None)
    recording = read(session)
    assert kinds(recording) == ["system.message", "user.prompt"]
    assert recording.report.counts == Counter(skipped=8, unknown_record=2, invalid=2)
    assert recording.title == "My session"


def test_the_named_sections_of_a_system_message_are_its_text() -> None:
    """Newer versions write the prompt so, and then what changed of it; a section that is null ends."""
    session = PiSession()
    sections = {"preamble": "You build cards.", "rules": "<rules>\n- Be brief\n</rules>"}
    session.message("system", content="", sections=sections, toolsAdded=[{"name": "read"}])
    session.user("go")
    session.message("system", content="Plan first.", sections={"rules": None, "mode": "<mode>plan</mode>"})
    session.message("system", content="", toolsRemoved=[{"name": "read"}])
    texts = [block.text for block in blocks(read(session)) if isinstance(block, SystemMessage)]
    assert texts == [
        "You build cards.\n\n<rules>\n- Be brief\n</rules>",
        "Plan first.\n\n<mode>plan</mode>",
    ]


def branched() -> PiSession:
    """Return a session in which the user went back to the first answer, and on from there."""
    session = PiSession()
    session.user("first")
    back = session.answer(said("one"))["id"]
    session.user("second")
    session.answer(said("two"))
    session.leaf = back
    session.entry("model_change", provider="openai", modelId="gpt-5")
    session.user("other")
    session.answer(said("three"))
    return session


def test_each_branch_is_a_conversation_and_the_newest_comes_first() -> None:
    """Each has what it shares with the others too; the path that was there first has the session's id."""
    main, older = read_all(branched())
    assert (main.id, texts(main)) == ("pi-1.branch-00000005", ["first", "one", "other", "three"])
    assert main.parent == ParentLink(conversation="pi-1", relation="fork")
    assert (older.id, texts(older), older.parent) == ("pi-1", ["first", "one", "second", "two"], None)
    assert main.report.findings == [{"kind": "branch", "line": 1, "detail": "pi-1"}]
    assert main.report.counts == {"skipped": 1, "branch": 1}
    assert (older.report.counts, older.report.records) == ({}, 4)


def test_a_branch_of_a_branch_says_where_it_came_from() -> None:
    """An entry that only sets something up, and that nothing was said behind, is no branch."""
    session = branched()
    session.leaf = "00000006"
    session.user("again")
    session.leaf = "00000002"
    session.entry("label", targetId="00000002", label="here")
    ids = {r.id: r.parent and r.parent.conversation for r in read_all(session)}
    assert ids == {"pi-1.branch-00000008": "pi-1.branch-00000005", "pi-1.branch-00000005": "pi-1", "pi-1": None}


async def test_a_session_that_went_on_in_an_older_branch_adds_to_that_conversation() -> None:
    """Whichever branch is the newest, the ids and what is known under them stay."""
    store = MemoryStore()
    session = branched()
    for recording in read_all(session):
        await import_recording(store, recording)
    session.leaf = "00000004"
    session.user("third")
    done = [await import_recording(store, recording) for recording in read_all(session)]
    assert [(d.id, d.events, d.known) for d in done] == [("pi-1", 1, 6), ("pi-1.branch-00000005", 0, 6)]


def test_a_session_with_very_many_branches_is_read_up_to_a_bound() -> None:
    """What is left out is reported."""
    session = PiSession()
    for number in range(MOST_BRANCHES + 5):
        session.leaf = None
        session.user(f"try {number}")
    found = read_all(session)
    assert len(found) == MOST_BRANCHES
    assert texts(found[0]) == [f"try {MOST_BRANCHES + 4}"]
    assert found[0].report.counts == {"branch": MOST_BRANCHES + 4}


def test_an_entry_whose_parent_is_lost_follows_the_one_before_it() -> None:
    """A damaged line costs no more than what stood on it."""
    session = PiSession()
    session.user("go")
    session.answer(said("lost"))
    session.user("on")
    lines = session.text().splitlines(keepends=True)
    lines[2] = lines[2][:40] + "\n"
    recording = read_pi("".join(lines).encode(), "file")[0]
    assert texts(recording) == ["go", "on"]
    assert recording.report.counts == Counter(quarantined=1, lost_parent=1)


def test_glued_torn_and_repeated_entries_are_read_once_and_reported() -> None:
    """Two entries on one line are both read, an entry written twice is one, and the last one may break off."""
    session = PiSession()
    session.user("go")
    session.answer(said("yes"))
    session.entries.append(session.entries[-1])
    session.user("on")
    session.user("torn")
    glued = session.text().replace('}\n{"type":"message","id":"00000002"', '}{"type":"message","id":"00000002"', 1)
    recording = read_pi(glued[:-20].encode(), "file")[0]
    assert texts(recording) == ["go", "yes", "on"]
    assert recording.report.counts == Counter(glued=1, torn=1, duplicate_record=1)


def test_a_file_without_its_header_has_the_files_name() -> None:
    """The conversation is read all the same; a second header is another session's."""
    session = PiSession()
    session.user("go")
    lines = session.text().splitlines(keepends=True)
    assert read_pi(lines[1].encode(), "file")[0].id == "file"
    joined = [*lines, *(line.replace("pi-1", "pi-2") for line in lines[:1])]
    report = read_pi("".join(joined).encode(), "file")[0].report
    assert report.counts == {"second_conversation": 1}


def in_version_4(session: PiSession) -> str:
    """Return the file of a session of version 3 as pi writes it in version 4."""
    header, *entries = session.entries
    rows: list[dict[str, Any]] = [{"kind": "header", "version": 4, "id": header["id"], "createdAt": ms(header)}]
    rows += [
        {"kind": "entry", "lane": "main", **entry, "seq": seq, "timestamp": ms(entry)}
        for seq, entry in enumerate(entries, start=1)
    ]
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def ms(entry: dict[str, Any]) -> int:
    """Return an entry's time in milliseconds."""
    return int(datetime.fromisoformat(entry["timestamp"]).timestamp() * 1000)


def test_a_session_of_version_4_is_read_like_one_of_version_3(tmp_path: Path) -> None:
    """Keys and times are the same, so that one that pi brought into the new form adds nothing twice."""
    session = branched()
    path = tmp_path / "session.jsonl"
    path.write_text(in_version_4(session) + '{"kind":"entry","lane":"ma', encoding="utf-8")
    found = read_recording(path)
    assert [(r.id, r.events) for r in found] == [(r.id, r.events) for r in read_all(session)]
    assert found[0].report.counts["torn"] == 1


def test_facts_and_records_of_version_4_are_the_clients_own(tmp_path: Path) -> None:
    """The name is the title; what was queued comes as an entry once the model gets it."""
    session = PiSession()
    session.user("go")
    queued = {"type": "message", "id": "q", "message": {"role": "user", "content": "later"}}
    rows = [
        {"kind": "record", "type": "queue_enqueued", "id": "r", "queue": "nextRun", "target": queued, "seq": 2},
        {"kind": "lane", "lane": "side", "leafId": None, "seq": 3},
        {"kind": "fact", "fact": "name", "name": "My session", "seq": 4},
    ]
    path = tmp_path / "session.jsonl"
    path.write_text(in_version_4(session) + "\n".join(map(json.dumps, rows)), encoding="utf-8")
    [recording] = read_recording(path)
    assert (kinds(recording), recording.title) == (["user.prompt"], "My session")
    assert recording.report.counts == {"skipped": 3}


def test_an_answer_that_is_still_to_come_is_not_read() -> None:
    """A deferred response is left out of what pi sends."""
    session = PiSession()
    session.user("go")
    session.answer(said("soon"), stop="deferred")
    assert kinds(read(session)) == ["user.prompt"]


def test_a_claude_code_session_is_none_of_pis() -> None:
    """The two are told apart by what their lines hold."""
    session = Session()
    session.user("go")
    assert not read_pi(session.text().encode(), "file")


def compacted(first_kept: str = "00000004") -> PiSession:
    """Return a session that was compacted once, and went on."""
    session = PiSession()
    session.user("first")
    session.answer(call("a"), stop="toolUse")
    session.result("a", "long output")
    session.entry("label", targetId="1", label="x")
    session.user("second")
    session.answer(said("two"))
    session.compaction("THE SUMMARY", first_kept)
    session.user("third")
    session.answer(said("three"))
    return session


@pytest.mark.parametrize(
    ("first_kept", "kept"),
    [("00000002", 4), ("00000003", 3), ("00000004", 2), ("00000006", 1), ("00000007", 0), ("gone", 0)],
)
def test_a_compaction_says_how_many_blocks_it_kept(first_kept: str, kept: int) -> None:
    """Counted from the first entry that stays, whether that is conversation or not."""
    assert compactions(read(compacted(first_kept))) == [
        ImportedCompaction("THE SUMMARY", pre_tokens=160_000, kept_blocks=kept)
    ]


def test_a_compaction_that_repeats_what_it_kept_kept_as_many_entries() -> None:
    """The newest form has the messages themselves instead of an id."""
    session = compacted("")
    session.entries[7]["retainedTail"] = [session.entries[n]["message"] for n in (5, 6)]
    assert compactions(read(session))[0].kept_blocks == 2


def test_the_first_version_names_what_it_kept_by_number() -> None:
    """Entries are counted with the header as 0; glued ones count each."""
    session = PiSession(version=1)
    for text in ("one", "two", "three"):
        session.user(text)
    session.entry("compaction", summary="S", firstKeptEntryIndex=2, tokensBefore=9, fromHook=True)
    glued = session.text().replace("}\n{", "}{")
    assert compactions(read_pi(glued.encode(), "file")[0]) == [ImportedCompaction("S", "extension", 9, 2)]


@pytest.mark.parametrize(
    ("first_kept", "kept"),
    [
        (
            "00000002",
            ["tc:turn_1.a.call", "tc:turn_1.a.result", "ar:turn_2.user.prompt", "ar:turn_2.assistant.completion"],
        ),
        ("00000004", ["ar:turn_2.user.prompt", "ar:turn_2.assistant.completion"]),
        ("00000007", []),
    ],
)
async def test_what_pi_kept_stays_word_for_word_behind_its_summary(first_kept: str, kept: list[str]) -> None:
    """The window is what pi went on with; all else is covered, and the log verifies."""
    store = MemoryStore()
    recording = read(compacted(first_kept))
    await import_recording(store, recording)
    timeline = await Timeline.open(store, recording.id)
    assert timeline.window.items[0].block.text.endswith("THE SUMMARY")
    later = ["ar:turn_3.user.prompt", "ar:turn_3.assistant.completion"]
    assert [item.block.path for item in timeline.window.items[1:]] == [*kept, *later]
    assert (await timeline.verify()).ok
    again = await import_recording(store, recording)
    assert (again.events, again.known) == (0, len(recording.events))


async def test_a_simulation_leaves_pis_compactions_out() -> None:
    """The policy makes its own, and every figure that should be 0 is."""
    session = PiSession()
    for turn in range(8):
        session.user(f"prompt {turn}")
        for step in range(6):
            session.answer(call(f"c{turn}-{step}", command="cat"), stop="toolUse")
            session.result(f"c{turn}-{step}", "word " * 300)
        session.answer(said("done"))
        session.compaction(f"PI'S SUMMARY {turn}")
    store = MemoryStore()
    run = await simulate(store, read(session), policies.cut_point(max_tokens=8_000))
    assert run.compactions
    assert (run.orphans, run.uncovered, run.no_progress, run.over_limit, run.dead_paths) == (0,) * 5
    timeline = await Timeline.open(store, run.id)
    assert not [item for item in timeline.window.items if "PI'S SUMMARY" in item.block.text]
    assert (await timeline.verify()).ok


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)
_parts = st.builds(said, st.text(max_size=4)) | st.just(call("a")) | st.fixed_dictionaries({"type": st.text()})


@given(st.data())
def test_entries_of_any_shape_in_any_tree_are_read_or_reported(data: st.DataObject) -> None:
    """No value in any field raises, every key is unique, and reading again gives the same."""
    session = PiSession(version=data.draw(st.sampled_from([1, 3])))
    for number in range(data.draw(st.integers(1, 6))):
        if session.version > 1 and data.draw(st.booleans()):
            session.leaf = data.draw(st.none() | st.integers(0, number + 1).map("{:08x}".format))
        said_, kind = data.draw(_parts), data.draw(st.sampled_from(["user", "assistant", "toolResult", "compaction"]))
        fields = {"content": [said_], "toolCallId": "a", "toolName": "bash", "api": "openai-responses", "usage": {}}
        entry = session.compaction("S", "00000001") if kind == "compaction" else session.message(kind, **fields)
        spoilt = entry.get("message", entry) if data.draw(st.booleans()) else entry
        spoilt[data.draw(st.sampled_from(sorted(spoilt)))] = data.draw(_values)
    found = read_all(session)
    for recording in found:
        assert len({e.key for e in recording.events}) == len(recording.events)
        json.dumps(recording.report.dump())
    assert len({recording.id for recording in found}) == len(found)
    assert [r.events for r in read_all(session)] == [r.events for r in found]


def count_simply(path: Path) -> Counter[str]:
    """Count a recorded file without the importer: JSON values, told apart by a few fields."""
    counts: Counter[str] = Counter()
    decoder = json.JSONDecoder()
    for line in path.read_text(encoding="utf-8").split("\n"):
        at = 0
        while at < len(line):
            entry, at = decoder.raw_decode(line, at)
            counts["compactions"] += entry["type"] == "compaction"
            message = entry.get("message") or {"role": "", "content": []}
            counts[message["role"]] += 1
            if message["role"] == "assistant":
                counts.update(part["type"] for part in message["content"] if "partialJson" not in part)
    return +Counter({kind: counts[kind] for kind in KINDS})


KINDS = {
    "user": "user.prompt",
    "assistant": "ModelCalled",
    "toolCall": "react.tool.call",
    "toolResult": "react.tool.result",
    "thinking": "assistant.reasoning",
    "bashExecution": "client.message",
    "compactions": "ImportedCompaction",
}


@needs_recordings
def test_recorded_sessions_hold_what_a_simple_count_finds() -> None:
    """Responses, calls, results, reasoning, prompts and compactions of every real file are all imported."""
    paths = recorded("pi/*.jsonl")
    assert paths
    for path in paths:
        (recording,) = read_recording(path)
        found = Counter(kinds(recording))
        assert count_simply(path) == +Counter({kind: found[type_] for kind, type_ in KINDS.items()})
        assert +recording.report.counts - Counter(skipped=8) == Counter(glued=1)
        answered = {b.call_id for b in blocks(recording) if isinstance(b, ToolResult)}
        assert answered == {b.call_id for b in blocks(recording) if isinstance(b, ToolCall)}
