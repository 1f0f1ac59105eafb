"""What the command line prints about a conversation, for people and as JSON."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from timeline.cli import main

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS: Final = (
    "show {id} --all",
    "show {id}",
    "facts {id}",
    "facts {id} --record",
    "digests {id}",
    "search {word} {id}",
)


async def outputs(file: Path, conversation: str, word: str) -> dict[str, str]:
    """Return what each command prints, by its words."""
    asked = [command.format(id=conversation, word=word) for command in COMMANDS]
    forms = [form for words in asked for form in (words, f"{words} --json")]
    return {words: await to_thread.run_sync(_output, [*words.split(), "--db", str(file)]) for words in forms}


def _output(words: list[str]) -> str:
    printed = StringIO()
    with redirect_stdout(printed):
        code = main(words)
    if code:
        raise AssertionError(f"timeline {' '.join(words)} ends with {code}")
    return printed.getvalue()
