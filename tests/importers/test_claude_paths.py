"""Claude Code sessions in which the user went back: each branch is a conversation, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.importers.session import Session, blocks, kinds, said, use
from timeline import open_store
from timeline.events import ModelCalled, ParentLink
from timeline.importers.claude_code import MOST_BRANCHES, read_claude_code
from timeline.importers.claude_paths import paths_of
from timeline.importers.lines import Record
from timeline.portable.recordings import import_recording

if TYPE_CHECKING:
    from timeline.importers import Recording


class Linked(Session):
    """A session whose rows name the row before them, as the client writes them, unless they name another."""

    def row(self, type_: str, **fields: Any) -> dict[str, Any]:
        """Add a row behind the newest one."""
        newest = next((row["uuid"] for row in reversed(self.rows) if row.get("isSidechain") is False), None)
        return super().row(type_, **{"parentUuid": newest, **fields})


def read_all(session: Session) -> list[Recording]:
    """Read every branch of a session, and its subagents."""
    return read_claude_code(session.text().encode(), "file")


def texts(recording: Recording) -> list[str]:
    """Return what the blocks of a recording say."""
    return [block.text for block in blocks(recording)]


def edited() -> tuple[Linked, dict[str, Any], dict[str, Any]]:
    """Return a session with an edited second question, the row that it goes on from, and the row that it left last."""
    session = Linked()
    session.user("one")
    first = session.answer("m1", said("answer one"))
    session.user("two")
    last = session.answer("m2", said("answer two"))
    session.user("two, but other", parentUuid=first["uuid"])
    session.answer("m3", said("answer three"))
    return session, first, last


def test_what_the_user_went_back_behind_is_a_conversation_of_its_own() -> None:
    """The live conversation comes first, without what was left; the older one keeps the session's id."""
    session, _, _ = edited()
    live, older = read_all(session)
    assert (live.id, texts(live)) == (
        "session-1.branch-session-1-uuid-5",
        ["one", "answer one", "two, but other", "answer three"],
    )
    assert (older.id, texts(older)) == ("session-1", ["one", "answer one", "two", "answer two"])
    assert (live.parent, older.parent) == (ParentLink(conversation="session-1", relation="fork"), None)
    assert live.report.findings == [{"kind": "branch", "line": 1, "detail": "session-1"}]
    assert older.report.counts == {}
    assert older.report.records == 4


def test_what_branches_share_costs_once() -> None:
    """The calls of the shared rows are paid in the conversation that they were written in."""
    session, _, _ = edited()
    live, older = read_all(session)
    sent = [
        [event.payload.usage.sent_tokens for event in recording.events if isinstance(event.payload, ModelCalled)]
        for recording in (live, older)
    ]
    assert sent == [[0, 1053], [1053, 1053]]


async def test_a_session_that_has_grown_adds_to_the_branches_imported_before() -> None:
    """The ids stay, whichever branch is the newest: an older one is taken up again at its end."""
    session, first, last = edited()
    size = len(session.rows)
    short, grown = Linked(), Linked()
    short.rows, grown.rows = session.rows[: size - 2], [*session.rows]
    grown.user("three", parentUuid=last["uuid"])
    grown.answer("m4", said("answer four"))
    grown.user("two again", parentUuid=first["uuid"])
    async with open_store("memory://") as store:
        done = []
        for one in (short, session, grown):
            done += [await import_recording(store, recording) for recording in read_all(one)]
    assert [(one.id.removeprefix("session-1"), one.events, one.known) for one in done] == [
        ("", 6, 0),
        (".branch-session-1-uuid-5", 6, 0),
        ("", 0, 6),
        (".branch-session-1-uuid-9", 4, 0),
        ("", 3, 6),
        (".branch-session-1-uuid-5", 0, 6),
    ]


def test_a_branch_of_a_branch_says_where_it_came_from() -> None:
    """A prompt in the middle of a branch that was left begins another one; it has what that had up to there."""
    session, _, last = edited()
    live_end = session.rows[-1]
    session.user("three", parentUuid=last["uuid"])
    session.answer("m4", said("answer four"))
    session.user("three, but other", parentUuid=last["uuid"])
    session.user("four", parentUuid=live_end["uuid"])
    session.user("four, but other", parentUuid=live_end["uuid"])
    found = read_all(session)
    links = {one.id.removeprefix("session-1"): one.parent.conversation if one.parent else None for one in found}
    assert links == {
        ".branch-session-1-uuid-11": "session-1.branch-session-1-uuid-5",
        ".branch-session-1-uuid-5": "session-1",
        ".branch-session-1-uuid-9": "session-1",
        "": None,
    }
    assert texts(found[0]) == ["one", "answer one", "two, but other", "answer three", "four, but other"]
    assert texts(found[2]) == ["one", "answer one", "two", "answer two", "three, but other"]


def test_rows_beside_the_conversation_go_with_its_rows() -> None:
    """A file that the old question named is left with it; a caveat and a hook's words lead to the new one."""
    session = Linked()
    session.user("one")
    first = session.answer("m1", said("answer one"))
    session.user("Explain @a.py")
    file = {"filePath": "/p/a.py", "content": "print(1)"}
    session.row("attachment", attachment={"type": "file", "content": {"type": "text", "file": file}})
    last = session.answer("m2", said("answer two"))
    for name, place in (("cost", first), ("model", last)):
        hook = {"type": "hook_additional_context", "content": [f"Hook of {name}."]}
        session.row("attachment", attachment=hook, parentUuid=place["uuid"])
        session.user(f"Caveat of {name}.", isMeta=True)
        session.user(f"<command-name>/{name}</command-name>")
    live, other = (texts(one) for one in read_all(session))
    before = ["one", "answer one"]
    assert other == [*before, "Hook of cost.", "Caveat of cost.", "<command-name>/cost</command-name>"]
    asked = ["Explain @a.py", "/p/a.py\n\nprint(1)", "answer two"]
    assert live == [*before, *asked, "Hook of model.", "Caveat of model.", "<command-name>/model</command-name>"]


def test_a_compaction_is_left_where_the_user_goes_back_in_front_of_it() -> None:
    """Its mark goes with its summary; a user who goes back behind the summary keeps both."""
    session = Linked()
    session.user("one")
    first = session.answer("m1", said("answer one"))
    session.row("system", subtype="compact_boundary", parentUuid=None, compactMetadata={"trigger": "manual"})
    summary = session.user("A summary.", isCompactSummary=True)
    session.user("two")
    session.answer("m2", said("answer two"))
    session.user("two, but other", parentUuid=summary["uuid"])
    session.user("in front", parentUuid=first["uuid"])
    front, behind, oldest = read_all(session)
    assert kinds(front) == ["user.prompt", "assistant.completion", "ModelCalled", "user.prompt"]
    assert front.report.counts == {"branch": 2}
    assert kinds(behind)[3:] == ["ImportedCompaction", "user.prompt"]
    assert kinds(oldest)[3:5] == ["ImportedCompaction", "user.prompt"]


def test_a_subagent_names_the_branch_in_which_it_was_called() -> None:
    """Also where that branch was left."""
    session = Linked()
    session.user("one")
    called = session.answer("m1", use("task", "Task"))
    session.user("look", isSidechain=True, parentUuid=None, agentId="a1", parentToolUseID="task")
    session.result("task", parentUuid=called["uuid"])
    session.user("one, but other", parentUuid=called["uuid"])
    session.answer("m2", use("again", "Task"))
    session.user("look", isSidechain=True, parentUuid=None, agentId="a2", parentToolUseID="again")
    live, _, *agents = read_all(session)
    links = [(one.parent.conversation, one.parent.path) for one in agents if one.parent]
    assert links == [("session-1", "tc:turn_1.task.call"), (live.id, "tc:turn_2.again.call")]


def test_a_session_with_very_many_branches_is_read_up_to_a_bound() -> None:
    """Each branch repeats what it shares, so a bound keeps a file from growing without measure."""
    session = Linked()
    first = session.user("go")
    answer = session.answer("m1", said("well"), parentUuid=first["uuid"])
    for number in range(MOST_BRANCHES + 5):
        session.user(f"try {number}", parentUuid=answer["uuid"])
    found = read_all(session)
    assert len(found) == MOST_BRANCHES
    assert texts(found[0]) == ["go", "well", f"try {MOST_BRANCHES + 4}"]
    assert found[0].report.counts == {"branch": MOST_BRANCHES + 4}


def test_a_row_whose_type_is_no_text_is_an_unknown_record() -> None:
    """A damaged row costs only itself."""
    session = Linked()
    session.user("go")
    session.row("user")["type"] = ["user"]
    session.answer("m1", said("done"))
    recording = read_all(session)[0]
    assert texts(recording) == ["go", "done"]
    assert recording.report.counts == {"unknown_record": 1}


@pytest.mark.timeout(40)  # looking at all rows at each place takes a minute
@pytest.mark.parametrize(("rows", "every"), [(16_000, False), (3_000, True)])
def test_a_session_that_was_resumed_at_thousands_of_places_is_divided(rows: int, *, every: bool) -> None:
    """At its first prompt each time, or at each prompt of one way: with all rows at each place, it took a minute."""

    def prompt(number: int) -> dict[str, Any]:
        before = f"row-{(number - 1) // 2 * 2 if every else 0}"
        named = {"uuid": f"row-{number}", "parentUuid": before if number else None, "sessionId": "a"}
        return {"type": "user", **named, "message": {"role": "user", "content": "Go on."}}

    session = [Record(number + 1, prompt(number)) for number in range(rows)]
    paths = paths_of(session)
    assert len(paths) > rows / 3
    assert {*paths[0].shared, *paths[0].own} >= {0, rows - 1}


def test_a_reply_beside_what_was_gone_back_to_is_left_where_the_user_goes_back_again() -> None:
    """The client's message far back is on the way to the first branch, which has a late part of the reply."""
    session = Linked()
    session.user("one")
    session.answer("m1", use("c1"))
    note = session.user("a note of the client's", isMeta=True)
    session.user("two")
    session.result("c1", "done")
    third = session.user("three")
    session.answer("m1", said("late"))
    again = session.user("another note", isMeta=True, parentUuid=note["uuid"])
    session.user("four", parentUuid=again["uuid"])
    session.user("five", parentUuid=third["uuid"])
    live = read_all(session)[0]
    assert "late" not in texts(live)
    assert texts(live)[-1] == "five"
