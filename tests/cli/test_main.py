from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli import sessions
from timeline import __version__
from timeline.cli.exits import MEANINGS, Exit, exit_code, one_line
from timeline.errors import (
    BlockNotFound,
    BudgetImpossible,
    CompactionRefused,
    ConversationNotFound,
    ImportFailed,
    InvalidPolicy,
    StoreFull,
    StoreLocked,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

COMMANDS = ["demo", "import", "simulate", "lab", "ls", "show", "render", "diff"]
COMMANDS += [
    "why",
    "calls",
    "usage",
    "call",
    "compact",
    "undo",
    "go-back",
    "fork",
    "hide",
    "reveal",
    "pin",
    "unpin",
    "watch",
    "retention",
    "scavenge",
    "find-subject",
    "redact",
    "erase",
    "backup",
    "restore",
    "copy",
    "migrate",
    "doctor",
]
COMMANDS += ["read", "digests", "facts", "search", "verify", "repair", "export", "mcp", "inspect", "policies"]


def test_help_lists_the_commands_and_the_exit_codes(run: Callable[..., Done]) -> None:
    """`timeline --help` names every command, and what every exit code says."""
    done = run("--help")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.partition("Commands:\n")[2].split("\n\n")[0].splitlines()] == COMMANDS
    assert [line for code, meaning in MEANINGS.items() if (line := f"    {code:<3}  {meaning}\n") not in done.out] == []


def test_no_command_at_all_gives_the_help(run: Callable[..., Done]) -> None:
    """A newcomer who types `timeline` sees what there is."""
    assert run() == run("--help")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_fits_a_narrow_terminal(run: Callable[..., Done], name: str) -> None:
    """Each command explains itself in lines of at most 80 columns."""
    done = run(name, "--help")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_read_by_people(run: Callable[..., Done], name: str) -> None:
    """`-h` prints it, too; no type of Python's and no inequality is in it, and the file is the documents' one."""
    done = run(name, "-h")
    assert done == run(name, "--help")
    assert not [word for word in ("<str>", "<path>", "<int>", "list[", "{", "x>=", "x<=") if word in done.out]
    assert "--db" not in done.out or "agent.db" in done.out or name == "demo"


def test_version_is_the_packages_own(run: Callable[..., Done]) -> None:
    """`timeline --version` prints the version and nothing else."""
    assert run("--version").out == f"timeline {__version__}\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nope"], "nope"),
        (["show"], "ID"),
        (["show"], "timeline ls"),
        (["ls", "--nope"], "--nope"),
        (["render", "a", "--max-tokens", "many"], "--max-tokens"),
        (["export", "a", "--format", "pdf"], "pdf"),
        (["render", "a", "--wire", "telex"], "telex"),
        (["render", "a", "--wire", "anthropic", "--explain"], "--explain"),
        (["render", "a", "--now", "noon"], "noon"),
        (["render", "a", "--now", "2026-01-01T00:00:00"], "zone"),
        (["render", "a", "--now", "9999-12-31T23:59:59-23:59"], "is not a time"),
        (["render", "a", "--policy", "nope"], "nope"),
        (["render", "a", "--max-tokens", "3"], "max_tokens"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(run: Callable[..., Done], words: list[str], told: str) -> None:
    """A word that cannot be used gives exit code 2 and one line that names it."""
    run(*words).fails(Exit.USAGE, told)


def test_options_stand_anywhere_behind_the_command(run: Callable[..., Done], recording: Path, tmp_path: Path) -> None:
    """`--db` and `--json` may come before, between or after the arguments."""
    other = tmp_path / "other.db"
    run("import", recording, "--db", other)
    orders = [
        ["show", sessions.SESSION, "--db", other, "--json"],
        ["show", "--json", sessions.SESSION, "--db", other],
        ["show", "--db", other, "--json", sessions.SESSION],
    ]
    answers = {run(*words).out for words in orders}
    assert len(answers) == 1
    assert json.loads(answers.pop())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConversationNotFound("a"), 3),
        (BlockNotFound("a", "b"), 3),
        (StoreLocked("busy"), 4),
        (StoreFull("full"), 4),
        (CompactionRefused("no_progress", {}), 5),
        (BudgetImpossible({}), 5),
        (InvalidPolicy("a", "b"), 2),
        (ImportFailed("a", "b"), 2),
        (OSError(28, "No space left on device"), 2),
        (KeyboardInterrupt(), 130),
        (RuntimeError("never\nmind"), 70),
    ],
)
def test_every_error_has_a_documented_exit_code_and_one_line(error: BaseException, code: int) -> None:
    """Exit codes are those of the table, and no message breaks the line."""
    assert exit_code(error) == code
    assert Exit(code) in MEANINGS
    assert "\n" not in one_line(error)


def test_an_unexpected_error_asks_for_a_report() -> None:
    """A fault of the command itself is named as one, with the way to see more."""
    line = one_line(RuntimeError("the moon is out"))
    assert "RuntimeError: the moon is out" in line
    assert "please report" in line
    assert "TIMELINE_DEBUG=1" in line


def test_control_characters_in_a_message_never_reach_the_terminal(run: Callable[..., Done], recording: Path) -> None:
    """An id that would colour the screen is shown without its escape character."""
    run("import", recording)
    done = run("show", "\x1b[31mred")
    done.fails(Exit.NOT_FOUND)
    assert "\x1b" not in done.err


def test_help_loads_no_database_no_tokenizer_and_no_sdk(command: list[str]) -> None:
    """`timeline --help` and importing `timeline.cli` load nothing heavy."""
    heavy = ["sqlmodel", "sqlalchemy", "aiosqlite", "tiktoken", "anthropic", "openai", "pydantic", "store", "rich"]
    program = (
        "import json, sys\n"
        "from timeline.cli import main\n"
        "before = sorted(sys.modules)\n"
        "code = main(['--help'])\n"
        "print(json.dumps([code, before, sorted(sys.modules)]), file=sys.stderr)\n"
    )
    done = subprocess.run([command[0], "-c", program], capture_output=True, text=True, check=True)
    code, before, after = json.loads(done.stderr)
    assert code == 0
    assert not {name.partition(".")[0] for name in before} & {*heavy, "typer"}
    assert not {name.partition(".")[0] for name in after} & {*heavy}


def test_a_reader_that_goes_away_is_no_error(run: Callable[..., Done], command: list[str], tmp_path: Path) -> None:
    """`timeline show … | head -1` ends quietly, though there is more to print."""
    run("import", sessions.write(tmp_path, sessions.rows(40)))
    with subprocess.Popen(
        [*command, "show", sessions.SESSION, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "[\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == Exit.PIPE


def test_a_reader_that_never_came_is_no_error(command: list[str]) -> None:
    """Help that nobody reads ends quietly, too."""
    with subprocess.Popen([*command, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == Exit.PIPE


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")  # noqa: PTH110 - evaluated early
def test_output_that_cannot_be_written_is_told_in_one_line(
    run: Callable[..., Done], recording: Path, command: list[str]
) -> None:
    """A full disk under standard output gives one line and exit code 2."""
    run("import", recording)
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123 - a device
        done = subprocess.run([*command, "ls"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == Exit.USAGE
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell closes it")
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&-"])
def test_closed_output_is_told_in_one_line(command: list[str], db: Path, closed: str) -> None:
    """A daemon that starts the command without standard output learns that; nothing is done before."""
    words = ["sh", "-c", f'"$@" {closed}', "sh", *command, "ls"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == Exit.USAGE, done.stderr
    told = "timeline: standard output is closed. Send it to a file, or to /dev/null.\n"
    assert done.stderr == ("" if "2>" in closed else told)
    assert not db.exists()


def test_ctrl_c_ends_with_one_line_and_leaves_a_sound_log(
    run: Callable[..., Done], command: list[str], tmp_path: Path, db: Path
) -> None:
    """An interrupted simulation exits with 130, and what it stored verifies."""
    file = sessions.write(tmp_path, sessions.rows(900))
    with subprocess.Popen([*command, "simulate", str(file)], stderr=subprocess.PIPE, text=True) as process:
        _wait_for_events(run, db)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait() == Exit.INTERRUPTED, said
    assert said == "timeline: interrupted. What was stored before is intact.\n"
    report: Any = run("verify", "--json").json
    assert report["ok"]
    assert report["conversations"][0]["events"] > 1


def _wait_for_events(run: Callable[..., Done], db: Path) -> None:
    for _ in range(600):
        if db.exists():
            listed = run("ls", "--json")
            if listed.code == 0 and any(row["version"] > 20 for row in listed.json):
                return
        time.sleep(0.05)
    pytest.fail("the simulation stored nothing")


def test_output_into_a_pipe_is_utf_8_whatever_the_locale(
    run: Callable[..., Done], command: list[str], tmp_path: Path
) -> None:
    """A narrow locale neither breaks JSON nor loses a character."""
    made = sessions.rows(1, 1)
    made[0]["message"]["content"] = "Grüße aus 東京"
    run("import", sessions.write(tmp_path, made))
    done = subprocess.run(
        [*command, "ls", "--json"], capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert json.loads(done.stdout.decode("utf-8"))[0]["title"] == "Grüße aus 東京"


def test_output_into_a_pipe_has_the_same_line_ends_on_every_platform(
    run: Callable[..., Done], command: list[str], recording: Path, tmp_path: Path
) -> None:
    """Where text streams end lines as on Windows, an export into a pipe is the bytes of the file that `-o` writes."""
    run("import", recording)
    program = (
        "import sys\n"
        "for stream in (sys.stdout, sys.stderr):\n"
        "    stream.reconfigure(newline='\\r\\n')\n"
        "from timeline.cli import main\n"
        "sys.exit(main())\n"
    )
    words = ("export", sessions.SESSION, "--format", "markdown")
    assert run(*words, "-o", tmp_path / "whole.md").code == 0
    piped = subprocess.run([command[0], "-c", program, *words], capture_output=True, check=True)
    assert piped.stdout == (tmp_path / "whole.md").read_bytes()
    refused = subprocess.run([command[0], "-c", program, "show", "nothing"], capture_output=True, check=False)
    assert refused.stderr.startswith(b"timeline: ")
    assert b"\r" not in refused.stderr
