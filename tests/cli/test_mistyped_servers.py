"""An address of a server that is mistyped, or given for a file: one line with how to write it, and no password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.store.test_opening import MISTYPED
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

PASSWORD: Final = "sesame"  # noqa: S105 - of no server
FORMS: Final = MISTYPED[:5] + MISTYPED[10:11]
"""One of each kind."""
COMMANDS: Final = (
    "ls --db",
    "find-subject jane --db",
    "erase a --db",
    "hide a@1 --db",
    "doctor --db",
    "backup --db",
    "migrate --db",
    "migrate --sql --db",
    "mcp --db",
    "inspect --no-open --db",
    "simulate a --db",
    "lab a --db",
    "import {recording} --db",
    "copy --to new.db --from",
    "copy --from {there} --to",
)
"""Each takes what a user may mistype as its last word."""
WITH_FILES: Final = ("import", "simulate", "lab", "inspect --no-open", "restore", "policies show", "render a --policy")
"""Each takes the name of a file as its last word."""


@pytest.fixture
def there(
    run: Callable[..., Done], recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Path]:
    """Stand in an empty folder; return a recording, and a database that holds it."""
    file = tmp_path / "there.db"
    assert run("import", recording, "--db", file).code == 0
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    return {"recording": recording, "there": file}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mistyped_address_is_named_as_one(
    run: Callable[..., Done], there: dict[str, Path], tmp_path: Path, command: str
) -> None:
    """By each command that takes a database; no file of that name is made."""
    words = [word.format(**there) for word in command.split()]
    for url in FORMS:
        done = run(*words, url)
        done.fails(Exit.DATABASE, "Write postgresql://user:password@host:5432/database")
        assert PASSWORD not in done.out + done.err
    assert not [file for file in (tmp_path / "empty").rglob("*") if "new.db" not in file.name]


@pytest.mark.parametrize("url", MISTYPED)
def test_a_mistyped_address_in_the_environment_is_named_as_one(
    run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Whichever form it has."""
    monkeypatch.setenv("TIMELINE_DB", url)
    done = run("ls")
    done.fails(Exit.DATABASE, "Write postgresql://user:password@host:5432/database")
    assert PASSWORD not in done.err


@pytest.mark.parametrize("command", WITH_FILES)
@pytest.mark.parametrize(
    "url",
    ["postgresql://ann:sesame@127.0.0.1/x", "postgresql:ann:sesame@127.0.0.1/x", "host=127.0.0.1 password='a sesame'"],
)
def test_an_address_in_the_place_of_a_file_shows_no_password(
    run: Callable[..., Done], there: dict[str, Path], command: str, url: str
) -> None:
    """There is no such file, and the line that says so is seen by others."""
    done = run(*command.split(), url, "--db", there["there"])
    assert done.code != 0
    assert PASSWORD not in done.out + done.err
