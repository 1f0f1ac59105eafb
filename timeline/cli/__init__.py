"""The `timeline` command. `main` is the entry point: it runs one command and turns every error into one line.

So functions here list the errors that they raise themselves, and not those of the library that pass through.
Importing this package is cheap; each command imports what it needs when it runs.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code (`timeline --help` lists them).

    Args:
        arguments: the words after `timeline`; those of the process unless given.
    """
    if arguments is None:
        gc.set_threshold(_FEW_COLLECTIONS)
    _prepare(sys.stdout)
    _prepare(sys.stderr)
    try:
        _check_output()
        code = _run(arguments)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the outermost edge: nothing may leave as a traceback
        code = _explain(error)
        _drop_output()
    if arguments is None:
        gc.freeze()
    return code


def _prepare(stream: TextIO) -> None:
    """Let a stream accept any text: as UTF-8 in files and pipes, in the terminal's own encoding elsewhere.

    Files and pipes get the same bytes on every platform: Windows would put a carriage return before each newline.
    """
    if isinstance(stream, TextIOWrapper):
        shown = stream.isatty()
        stream.reconfigure(
            encoding=None if shown else "utf-8", errors="backslashreplace", newline=None if shown else "\n"
        )


def _check_output() -> None:
    """Refuse to run without standard output, as after `>&-`, before anything is done that nobody would hear of.

    Raises:
        UsageProblem: it is closed.
    """
    if sys.stdout is None:
        from timeline.cli.exits import UsageProblem  # noqa: PLC0415 - see below

        raise UsageProblem("standard output is closed. Send it to a file, or to /dev/null.")


def _run(arguments: Sequence[str] | None) -> int:
    from timeline.cli.app import app  # noqa: PLC0415 - importing `timeline.cli` stays cheap

    answer = app(args=None if arguments is None else list(arguments), prog_name="timeline", standalone_mode=False)
    if answer == _INTERRUPTED:  # how typer returns from Ctrl-C
        raise KeyboardInterrupt
    return answer if isinstance(answer, int) else 0


_INTERRUPTED = 130
_FEW_COLLECTIONS = 100_000
"""New objects until garbage is collected. What a command imports stays, and to walk it again and again was a tenth of
the time of most commands. At the end all that is left is kept from the collector, which the interpreter calls once
more before it exits: 0.15 s after a comparison in the lab. A process that calls `main` for itself keeps its own."""


def _explain(error: BaseException) -> int:
    """Print an error on standard error, in one line; return the exit code."""
    from timeline.cli.exits import Exit, PipeClosed, exit_code, one_line  # noqa: PLC0415 - see above
    from timeline.display.controls import show_controls  # noqa: PLC0415 - see above

    if isinstance(error, PipeClosed | BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
        return Exit.PIPE  # typer, too, exits over a broken pipe
    if isinstance(error, SystemExit) and error.__context__ is None:  # how typer ends a completion
        return int(error.code or 0)
    code = exit_code(error)
    if os.environ.get("TIMELINE_DEBUG") and isinstance(error, Exception):
        print(show_controls("".join(traceback.format_exception(error))), file=sys.stderr)  # noqa: T201 - as below
    with suppress(OSError):  # nobody listens to standard error either
        print(f"timeline: {one_line(error)}", file=sys.stderr, flush=True)  # noqa: T201 - this is the command line
    return code


def _drop_output() -> None:
    """Drop output that can no longer be written; otherwise the interpreter reports it when it exits."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):  # no real file: a test's stream
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
