"""What a call does, told from its name and arguments."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenes import call
from timeline.facts.tool_use import ToolUse, tool_use, tool_uses

PATCH = (
    "*** Begin Patch\n*** Add File: src/new.py\n+x\n*** Update File: src/old.py\n-y\n"
    "*** Delete File: gone.py\n*** End Patch"
)


@pytest.mark.parametrize(
    ("name", "arguments", "use"),
    [
        ("Read", {"file_path": "a.py"}, ToolUse("read", ("a.py",))),
        ("Task", {"description": "Find the parser", "prompt": "Look at …"}, ToolUse("search", ("Find the parser",))),
        ("spawn_agent", {"message": "Find the parser"}, ToolUse("search", ("Find the parser",))),
        ("read_file", {"path": "a.py"}, ToolUse("read", ("a.py",))),
        ("fs.readFile", {"filename": "a.py"}, ToolUse("read", ("a.py",))),
        ("Write", {"file_path": "a.py", "content": "x"}, ToolUse("write", ("a.py",))),
        ("writeFile", {"path": "a.py"}, ToolUse("write", ("a.py",))),
        ("MultiEdit", {"file_path": "a.py", "edits": []}, ToolUse("write", ("a.py",))),
        ("NotebookEdit", {"notebook_path": "a.ipynb"}, ToolUse("write", ("a.ipynb",))),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, ToolUse("read", ("a.py",))),
        ("str_replace_editor", {"command": "create", "path": "a.py"}, ToolUse("write", ("a.py",))),
        ("str_replace_based_edit_tool", {"command": "str_replace", "path": "a.py"}, ToolUse("write", ("a.py",))),
        ("apply_patch", {"input": PATCH}, ToolUse("write", ("src/new.py", "src/old.py"))),
        ("apply_patch", PATCH, ToolUse("write", ("src/new.py", "src/old.py"))),
        ("mcp__files__read_text_file", {"path": "a.py"}, ToolUse("read", ("a.py",))),
        ("read", {"filePath": "a.py"}, ToolUse("read", ("a.py",))),
        ("write_to_file", {"TargetFile": "a.py"}, ToolUse("write", ("a.py",))),
        ("read_many_files", {"paths": ["a.py", "b.py"]}, ToolUse("read", ("a.py", "b.py"))),
        ("read_file", {"files": [{"path": "a.py"}, {"path": "b.py"}]}, ToolUse("read", ("a.py", "b.py"))),
        ("MultiEdit", {"edits": [{"file_path": "a"}, {"file_path": "b"}]}, ToolUse("write", ("a", "b"))),
        ("apply_patch", {"operation": {"type": "delete_file", "path": "a"}}, ToolUse("delete", ("a",))),
        ("delete_file", {"target_file": "a.py"}, ToolUse("delete", ("a.py",))),
        ("memory", {"command": "delete", "path": "a.md"}, ToolUse("delete", ("a.md",))),
        ("shell", {"command": ["apply_patch", PATCH]}, ToolUse("write", ("src/new.py", "src/old.py"))),
        ("run_command", {"CommandLine": "ls"}, ToolUse("command", ("ls",))),
        ("execute_code", {"code": "1 + 1"}, ToolUse("command", ("1 + 1",))),
        ("get_file_contents", {"path": "a.py"}, ToolUse("read", ("a.py",))),
        ("create_directory", {"path": "src"}, None),
        ("mcp__ide__getDiagnostics", {"uri": "file:///a.py"}, None),
        ("read_resource", {"uri": "https://example.com/a"}, None),
        ("edit", {"search": "old text", "replace": "new text"}, None),
        ("NotebookEdit", {"notebook_path": "a.ipynb", "edit_mode": "delete"}, ToolUse("write", ("a.ipynb",))),
        ("Bash", {"command": "make test > log.txt"}, ToolUse("command", ("make test > log.txt",))),
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


@pytest.mark.parametrize(
    ("name", "arguments", "uses"),
    [
        ("apply_patch", PATCH, (ToolUse("write", ("src/new.py", "src/old.py")), ToolUse("delete", ("gone.py",)))),
        (
            "apply_patch",
            "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n*** End Patch",
            (ToolUse("write", ("b.py",)), ToolUse("delete", ("a.py",))),
        ),
        (
            "apply_diff",
            {"diff": "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-1\n+2\n--- a/y.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"},
            (ToolUse("write", ("x.py",)), ToolUse("delete", ("y.py",))),
        ),
        (
            "move_file",
            {"source": "a.py", "destination": "b.py"},
            (ToolUse("write", ("b.py",)), ToolUse("delete", ("a.py",))),
        ),
        (
            "memory",
            {"command": "rename", "old_path": "a", "new_path": "b"},
            (ToolUse("write", ("b",)), ToolUse("delete", ("a",))),
        ),
        (
            "copy_path",
            {"source_path": "a", "destination_path": "b"},
            (ToolUse("write", ("b",)), ToolUse("read", ("a",))),
        ),
    ],
)
def test_a_call_that_writes_some_files_and_deletes_others_has_both_uses(
    name: str, arguments: Any, uses: tuple[ToolUse, ...]
) -> None:
    """Files written come first; a file that is moved is deleted where it was."""
    assert tool_uses(call("c", name, arguments=arguments)) == uses


@pytest.mark.parametrize(
    ("name", "arguments", "uses"),
    [
        (
            "mcp__serena__rename_symbol",
            {"name_path": "Foo/bar", "relative_path": "a.py", "new_name": "baz"},
            (ToolUse("write", ("a.py",)),),
        ),
        ("rename_refactoring", {"pathInProject": "a.py", "newName": "y"}, (ToolUse("write", ("a.py",)),)),
        ("rename", {"file_path": "a.py", "line": 3, "new_name": "y"}, (ToolUse("write", ("a.py",)),)),
        (
            "rename_sheet",
            {"file_path": "a.xlsx", "old_name": "A", "new_name": "B"},
            (ToolUse("write", ("a.xlsx",)),),
        ),
        ("move_lines", {"file": "a.py", "from": "3", "to": "10"}, (ToolUse("write", ("a.py",)),)),
        ("mcp__serena__delete_lines", {"relative_path": "a.py", "start_line": 1}, (ToolUse("write", ("a.py",)),)),
        ("remove_import", {"file_path": "a.py", "name": "os"}, (ToolUse("write", ("a.py",)),)),
        ("delete_cell", {"notebook_path": "a.ipynb", "cell": 3}, (ToolUse("write", ("a.ipynb",)),)),
        ("delete_symbol", {"relative_path": "a.py", "name": "f"}, (ToolUse("write", ("a.py",)),)),
        ("remove_text_from_file", {"path": "a.py", "text": "x"}, (ToolUse("write", ("a.py",)),)),
        ("copy_text", {"source": "A1:B2", "destination": "C1"}, ()),
        ("rename_branch", {"old_name": "a", "new_name": "b"}, ()),
        ("move_cursor", {"file": "a.py", "to": "10"}, ()),
        ("remove_breakpoint", {"file": "a.py", "line": 3}, ()),
        ("create_breakpoint", {"file": "a.py", "line": 3}, ()),
    ],
)
def test_a_call_about_something_in_a_file_deletes_and_moves_no_file(
    name: str, arguments: Any, uses: tuple[ToolUse, ...]
) -> None:
    """The file is written, or is only shown: the words of the name say what the call is about."""
    assert tool_uses(call("c", name, arguments=arguments)) == uses


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("rename_file", {"old_name": "a.py", "new_name": "b.py"}),
        ("rename_file", {"path": "a.py", "new_name": "b.py"}),
        ("mv", {"source": "a.py", "target": "b.py"}),
        ("move", {"from": "a.py", "to": "b.py"}),
        ("relocate_and_rename_module", {"old_path": "a.py", "new_path": "b.py"}),
    ],
)
def test_a_file_that_moves_is_named_by_paths_or_by_a_tool_of_files(name: str, arguments: Any) -> None:
    """A path is a file's under any name; a bare name is one only for a tool whose name says that it moves files."""
    moved = (ToolUse("write", ("b.py",)), ToolUse("delete", ("a.py",)))
    assert tool_uses(call("c", name, arguments=arguments)) == moved


@pytest.mark.parametrize("name", ["delete", "git_rm", "mcp__fs__safe_delete_file", "removeDirectory", "move_to_trash"])
def test_a_tool_that_deletes_files_says_so_by_its_whole_name(name: str) -> None:
    """Beside the word for deleting there are only words for files, and for how it is done."""
    assert tool_uses(call("c", name, arguments={"path": "a"})) == (ToolUse("delete", ("a",)),)


MANY = 2_000_000


@pytest.mark.parametrize(
    ("patch", "uses"),
    [
        ("*** Add File: a" + " " * MANY + "b\n*** Add File: c.py\n", (ToolUse("write", ("c.py",)),)),
        ("*** Add File: a.py" + " " * MANY + "\n", (ToolUse("write", ("a.py",)),)),
        ("*** Update File: " + "a" * MANY + "\n*** Move to: b.py\n", (ToolUse("write", ("b.py",)),)),
        ("*** Move to: b.py\n", (ToolUse("write", ("b.py",)),)),
        ("--- " + "a" * MANY + "\nx +++ y\n--- a/x.py\n+++ b/x.py\n", (ToolUse("write", ("x.py",)),)),
        ("--- a/x.py" + "\t" * MANY + "\n+++ b/x.py\t2026\n", (ToolUse("write", ("x.py",)),)),
        ("--- a/x.py\n+++ " + "b" * MANY + "\n", ()),
    ],
    ids=["spaces", "trailing", "long old", "no old", "long line", "tabs", "long new"],
)
def test_a_patch_of_any_size_is_read_in_one_pass(patch: str, uses: tuple[ToolUse, ...]) -> None:
    """A pass for each character of two million would not end in the time of a test; a name that long is no file."""
    assert tool_uses(call("c", "apply_patch", arguments={"patch": patch})) == uses


@pytest.mark.parametrize(
    ("script", "uses"),
    [
        (
            r'const r = await tools.exec_command({cmd:"make \"all\"","workdir":"/w"}); text(r.output);',
            (ToolUse("command", ('make "all"',)),),
        ),
        (
            """Promise.all([tools.exec_command({"workdir": "/w", "cmd": 'ls'}), tools.exec_command({cmd: `pwd`})])""",
            (ToolUse("command", ("ls",)), ToolUse("command", ("pwd",))),
        ),
        (
            r'const p = "*** Begin Patch\n*** Update File: a.py\n*** Delete File: b.py\n"; tools.apply_patch(p)',
            (ToolUse("write", ("a.py",)), ToolUse("delete", ("b.py",))),
        ),
        (
            'tools.apply_patch(`*** Begin Patch\n*** Add File: a.py\n`); tools.exec_command({cmd: "make"})',
            (ToolUse("write", ("a.py",)), ToolUse("command", ("make",))),
        ),
        ('*** Begin Patch\n*** Add File: a.js\n+tools.exec_command({cmd: "make"})\n', (ToolUse("write", ("a.js",)),)),
        ('text("exec_command({cmd})")', ()),
    ],
    ids=["command", "commands", "patch", "both", "patch alone", "none"],
)
def test_a_script_of_calls_does_what_is_in_its_texts(script: str, uses: tuple[ToolUse, ...]) -> None:
    """Models of newer clients write scripts, in which tools are functions."""
    assert tool_uses(call("call_1", "exec", arguments=script)) == uses
