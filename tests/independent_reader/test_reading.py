from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.importers.session import Session, use
from tests.independent.test_agreement import imported
from tests.independent_reader import reading
from tests.independent_reader.made import SESSIONS


@pytest.mark.parametrize("client", SESSIONS)
def test_a_session_is_read_as_it_was_made(tmp_path: Path, client: str) -> None:
    """What went well, failed, was refused or left open, in the order of the results."""
    file, acts = SESSIONS[client](tmp_path)
    assert reading.read(file)[0].acts == acts


def test_what_a_subagent_did_is_listed_by_itself(tmp_path: Path) -> None:
    """Its results lack the client's own record of a command: no status is read out of the output."""
    file, _ = SESSIONS["claude_code"](tmp_path)
    _, helper = reading.read(file)
    assert helper.name == "helper"
    assert [(act.kind, act.status, act.failed) for act in helper.acts] == [("command", None, False)]


def test_a_call_without_a_result_did_nothing_that_is_known(tmp_path: Path) -> None:
    """It is named, so that nobody takes it for one that was passed over."""
    file, acts = SESSIONS["claude_code"](tmp_path)
    assert reading.read(file)[0].unanswered == ["open"]
    assert "open" not in {act.call[0] for act in acts}


def test_a_tool_that_the_table_lacks_is_an_error(tmp_path: Path) -> None:
    """A recording with a new tool is looked at before anybody claims that all of it agrees."""
    session = Session()
    session.answer("m1", use("a", "NewTool", file_path="a.py"))
    with pytest.raises(ValueError, match="the table of tools has no 'NewTool'"):
        reading.read(session.write(tmp_path))


def test_the_reader_imports_nothing_of_the_project() -> None:
    """Its modules import each other and the standard library, so that no fault can be shared."""
    todo, seen = ["tests.independent_reader.reading"], set[str]()
    while todo:
        name = todo.pop()
        seen.add(name)
        found = imported(Path(reading.__file__).with_name(f"{name.rpartition('.')[2]}.py"))
        clients = {"claude_code", "codex", "gemini", "pi", "swe_agent"} if name.endswith(".reading") else set[str]()
        own = {one for one in found if one.startswith("tests.independent_reader.")}
        own |= {f"tests.independent_reader.{client}" for client in clients}
        assert {one.partition(".")[0] for one in found if not one.startswith("tests.independent_reader")} <= (
            sys.stdlib_module_names
        )
        todo += own - seen
    assert len(seen) == 7
