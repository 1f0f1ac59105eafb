"""What a call does, told from its name and arguments."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenes import call
from timeline.facts.tool_use import ToolUse, tool_use

PATCH = (
    "*** Begin Patch\n*** Add File: src/new.py\n+x\n*** Update File: src/old.py\n-y\n"
    "*** Delete File: gone.py\n*** End Patch"
)


@pytest.mark.parametrize(
    ("name", "arguments", "use"),
    [
        ("Read", {"file_path": "a.py"}, ToolUse("read", ("a.py",))),
        ("read_file", {"path": "a.py"}, ToolUse("read", ("a.py",))),
        ("fs.readFile", {"filename": "a.py"}, ToolUse("read", ("a.py",))),
        ("Write", {"file_path": "a.py", "content": "x"}, ToolUse("write", ("a.py",))),
        ("writeFile", {"path": "a.py"}, ToolUse("write", ("a.py",))),
        ("MultiEdit", {"file_path": "a.py", "edits": []}, ToolUse("write", ("a.py",))),
        ("NotebookEdit", {"notebook_path": "a.ipynb"}, ToolUse("write", ("a.ipynb",))),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, ToolUse("read", ("a.py",))),
        ("str_replace_editor", {"command": "create", "path": "a.py"}, ToolUse("write", ("a.py",))),
        ("str_replace_based_edit_tool", {"command": "str_replace", "path": "a.py"}, ToolUse("write", ("a.py",))),
        ("apply_patch", {"input": PATCH}, ToolUse("write", ("src/new.py", "src/old.py", "gone.py"))),
        ("apply_patch", PATCH, ToolUse("write", ("src/new.py", "src/old.py", "gone.py"))),
        ("Bash", {"command": "make test", "description": "d"}, ToolUse("command", ("make test",))),
        ("shell", {"command": ["bash", "-lc", "ls"]}, ToolUse("command", ("bash -lc ls",))),
        ("execute_command", {"cmd": "ls"}, ToolUse("command", ("ls",))),
        ("Grep", {"pattern": "x+", "path": "src"}, ToolUse("search", ("x+",))),
        ("Glob", {"pattern": "**/*.py"}, ToolUse("search", ("**/*.py",))),
        ("memsearch", {"query": "birthday"}, ToolUse("search", ("birthday",))),
        ("web_search", {"query": "sqlite wal"}, ToolUse("search", ("sqlite wal",))),
        ("LS", {"path": "src"}, ToolUse("search", ("src",))),
        ("TodoWrite", {"todos": []}, None),
        ("think", {"thought": "x"}, None),
        ("run", {}, None),
        ("Read", {"file_path": ""}, None),
        ("Read", {"file_path": 7}, None),
        ("Read", '{"file_path": "torn', None),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 30 else "",
)
def test_a_call_is_told_by_its_name_and_arguments(name: str, arguments: Any, use: ToolUse | None) -> None:
    """Names compare without case and separators; a tool about no file, command or search is None."""
    assert tool_use(call("c", name, arguments=arguments)) == use
