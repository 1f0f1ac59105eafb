from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli import sessions
from timeline.policy.files import policy_names
from timeline.policy.presets import PRESETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Done

_SCRIPT = """
eval "$(_TIMELINE_COMPLETE=source_bash timeline)"
function=$(complete -p timeline | sed 's/.*-F \\([^ ]*\\).*/\\1/')
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
$function timeline
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(db: Path, *words: str) -> list[str]:
    """Return what bash offers behind the last word."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "TIMELINE_DB": str(db)}
    line = ["bash", "--norc", "-c", _SCRIPT, "bash", "timeline", *words]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, check=True, cwd=db.parent)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_options_conversations_policies_and_formats(
    run: Callable[..., Done], recording: Path, db: Path
) -> None:
    """TAB behind a word offers what may follow, out of the database for ids."""
    assert offered(db, "show", "") == []  # no database yet
    assert not db.exists()
    run("import", recording)
    assert offered(db, "re") == ["render", "reveal", "retention", "redact", "restore", "read", "repair"]
    assert offered(db, "policies", "") == ["show"]
    assert {"--policy", "--explain", "--json"} <= set(offered(db, "render", "--"))
    assert offered(db, "show", "") == [sessions.SESSION]
    assert offered(db, "render", sessions.SESSION, "--policy", "") == policy_names()
    assert offered(db, "render", sessions.SESSION, "--policy", "keep_") == [n for n in PRESETS if n.startswith("keep_")]
    assert offered(db, "lab", "--policy", "lean-cl") == ["lean-claude-code", "lean-clear-tool-uses", "lean-cline"]
    assert offered(db, "render", sessions.SESSION, "--wire", "openai_r") == ["openai_responses"]
    assert offered(db.with_name("other.db"), "show", "--db", str(db), "sess") == [sessions.SESSION]


def test_bash_completes_the_numbers_of_calls(run: Callable[..., Done], recording: Path, db: Path) -> None:
    """Those of the conversation in front of them, the newest first; they count in imports too."""
    run("import", recording)
    numbers = [str(row["number"]) for row in run("calls", sessions.SESSION, "--json").json]
    assert len(numbers) > 2
    assert offered(db, "call", sessions.SESSION, "") == numbers[::-1]
    assert offered(db, "render", sessions.SESSION, "--call", "1") == [n for n in numbers[::-1] if n.startswith("1")]
    assert offered(db, "call", "nobody", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_for_each_shell(command: list[str], shell: str) -> None:
    """The script that a shell runs names the command."""
    environment = {**os.environ, "_TIMELINE_COMPLETE": f"source_{shell}"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert f"_TIMELINE_COMPLETE=complete_{shell}" in done.stdout
