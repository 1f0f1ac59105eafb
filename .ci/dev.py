#!/usr/bin/env python3
"""What `make demo`, `test`, `night` and `bench` do, for any machine that has Python 3.11 or later and pip.

    python3 .ci/dev.py demo     make .venv, install the library from pinned packages, run `timeline demo`
    python3 .ci/dev.py test     the same with the developers' packages, then every check that a change must pass
    python3 .ci/dev.py night    the same checks, and searches a hundred times as long, and whole sweeps: hours
    python3 .ci/dev.py bench    the benchmarks; JSON on standard output
    python3 .ci/dev.py install  make .venv with the developers' packages, as the three before do first
    python3 .ci/dev.py pins     choose the pinned packages anew from pyproject.toml (needs uv)

Only the standard library is imported here. What was installed is remembered in .venv, so that a second run starts at
once; after a change of the pins or of pyproject.toml the next run installs again.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
PINS = {"run": Path(".ci", "pins-run.txt"), "test": Path(".ci", "pins-test.txt")}
"""Hashed packages to run the library, and to develop it; the second holds all of the first, in the same versions."""
PIP = Path(".ci", "pins-pip.txt")
"""What installs them: it takes half the time of the pip that comes with an older Python."""
LINKS = {ROOT / ".ci" / "types" / "timeline" / name: ROOT / name for name in ("store", "summarizers")}
"""What shows type checkers `timeline.store` and `timeline.summarizers`; git has them, a source distribution has not."""

CHECKS: tuple[tuple[str, ...], ...] = (("ruff", "check"), ("ruff", "format", "--check"))
"""They answer within a second, before anything else."""
WAITING: tuple[str, ...] = tuple(
    f"tests/store/postgres/test_{name}.py" for name in ("soak", "standby", "killed_server", "server")
)
"""Tests that wait for time to pass, or for a server to come back, and leave the processor to others."""
TESTS: tuple[str, ...] = (
    *("pytest", "--numprocesses=2", "--dist=worksteal", "--durations=40", "--durations-min=3"),
    *(f"--ignore={file}" for file in WAITING),
)
"""A third process on two cores takes longer: it collects everything once more, and makes what files of tests share."""
BESIDE: tuple[tuple[str, ...], ...] = (("mypy",), ("pytest", "--durations=5", *WAITING))
"""Run beside the tests: types take two minutes of one core where nothing is cached, what waits next to nothing."""


def say(text: str) -> None:
    """Tell the person at the terminal; standard output belongs to what is run."""
    print(text, file=sys.stderr, flush=True)


def show(*command: str | Path) -> list[str]:
    """Tell the person which command comes now; return its words."""
    words = [str(word) for word in command]
    say("$ " + shlex.join(word.removeprefix(f"{ROOT}{os.sep}") for word in words))
    return words


def run(*command: str | Path) -> int:
    """Show a command, run it in the checkout, and return its exit status."""
    return subprocess.run(show(*command), cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode


def must_run(*command: str | Path) -> None:
    """Run a command that the rest depends on; its failure ends the program."""
    if status := run(*command):
        sys.exit(status)


def fingerprint(pins: Path) -> str:
    """Return what an environment was made of: another Python, place, pin or project file makes another one."""
    files = (pins, PIP, Path("pyproject.toml"))
    text = [sys.version, str(VENV), *((ROOT / file).read_text() for file in files)]
    return hashlib.sha256("\0".join(text).encode()).hexdigest()


def link() -> None:
    """Make the links that are missing."""
    for place, folder in LINKS.items():
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(folder, target_is_directory=True)


def install(kind: str) -> None:
    """Make .venv and install the pinned packages and the library itself, unless that is done already."""
    link()
    made = {name: VENV / f"installed-{name}" for name in PINS}
    enough = ("run", "test") if kind == "run" else ("test",)
    if any(made[name].is_file() and made[name].read_text() == fingerprint(PINS[name]) for name in enough):
        return
    # Debian's python3 may lack ensurepip; the pip that runs this then installs the other one from outside.
    if find_spec("ensurepip") is not None:
        must_run(sys.executable, "-m", "venv", "--clear", VENV)
        first: tuple[str | Path, ...] = (PYTHON, "-m", "pip")
    else:
        must_run(sys.executable, "-m", "venv", "--clear", "--without-pip", VENV)
        first = (sys.executable, "-m", "pip", "--python", PYTHON)
    # Not compiled: Python does that for what is imported.
    options = ("install", "-qq", "--no-input", "--disable-pip-version-check", "--no-compile", "--no-deps")
    # The pins are complete: nothing is looked for beside them, not even what a package names and does not need here.
    must_run(*first, *options, "--require-hashes", "--requirement", PIP)
    must_run(PYTHON, "-m", "pip", *options, "--require-hashes", "--requirement", PINS[kind])
    must_run(PYTHON, "-m", "pip", *options, "--no-build-isolation", "--editable", ".")
    made[kind].write_text(fingerprint(PINS[kind]))


def demo() -> int:
    """Run the demonstration."""
    install("run")
    return run(BIN / "timeline", "demo")


def test() -> int:
    """Run every check, also after one has failed, and say at the end which ones did."""
    install("test")
    statuses = {check: checked(check) for check in CHECKS}
    with ExitStack() as stack:
        beside = {check: stack.enter_context(Beside(check)) for check in BESIDE}
        statuses[TESTS] = checked(TESTS)
        statuses |= {check: running.end() for check, running in beside.items()}
    if failed := [shlex.join(check) for check, status in statuses.items() if status]:
        say("FAILED: " + "; ".join(failed))
        return 1
    return 0


def checked(check: Sequence[str]) -> int:
    """Run a check, say how it ended and how long it took, and return its exit status."""
    start = time.monotonic()
    status = run(PYTHON, "-m", *check)
    say(f"  {ended(status)} in {time.monotonic() - start:.0f} s")
    return status


def ended(status: int) -> str:
    """Return how a check ended, in words."""
    return "passed" if status == 0 else f"failed with exit status {status}"


class Beside:
    """A check that runs while others do; what it prints is kept until they are done."""

    def __init__(self, check: Sequence[str]) -> None:
        self._command: list[str | Path] = [PYTHON, "-m", *check]

    def __enter__(self) -> Self:
        self._printed = tempfile.TemporaryFile("w+")  # a pipe that nobody reads yet would hold the check up
        self._running = subprocess.Popen(
            list(map(str, self._command)),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._printed,
            stderr=subprocess.STDOUT,
        )
        return self

    def end(self) -> int:
        """Wait for it, print what it printed and how it ended, and return its exit status."""
        status = self._running.wait()
        show(*self._command)
        self._printed.seek(0)
        print(self._printed.read(), end="", flush=True)
        say(f"  {ended(status)}")
        return status

    def __exit__(self, *_: object) -> None:
        self._running.kill()  # nothing, unless the other checks were interrupted
        self._running.wait()
        self._printed.close()


def night() -> int:
    """Run every check, and the tests as deep as they go (tests/depth.py)."""
    os.environ["TIMELINE_TEST_DEPTH"] = "night"
    return test()


def prepare() -> int:
    """Install what the checks need, for a caller that prepares the machine meanwhile."""
    install("test")
    return 0


def bench() -> int:
    """Run the benchmarks."""
    install("test")
    return run(PYTHON, "-m", "tests.bench")


def pins() -> int:
    """Write the pins: for every platform and Python at once, with hashes, and without the address of any registry."""
    options = ("--quiet", "--upgrade", "--universal", "--python-version=3.11", "--generate-hashes", "--no-annotate")
    compiling = ("uv", "pip", "compile", *options, "--custom-compile-command=python3 .ci/dev.py pins")
    must_run(*compiling, "--group=pip", f"--output-file={PIP}")
    must_run(*compiling, "pyproject.toml", "--all-extras", "--group=dev", f"--output-file={PINS['test']}")
    constraint = f"--constraint={PINS['test']}"
    must_run(*compiling, "pyproject.toml", "--group=backend", constraint, f"--output-file={PINS['run']}")
    return 0


TARGETS: dict[str, Callable[[], int]] = {
    "demo": demo,
    "test": test,
    "night": night,
    "bench": bench,
    "install": prepare,
    "pins": pins,
}


def main(arguments: Sequence[str]) -> int:
    """Run one target."""
    if len(arguments) != 1 or arguments[0] not in TARGETS:
        say(__doc__ or "")
        return 2
    return TARGETS[arguments[0]]()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
