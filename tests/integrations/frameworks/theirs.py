"""Fetch a framework's source distribution, run its own tests with our part in place of its own, and read what failed.

Nothing of a framework's tests is kept here: the distribution is fetched by its hash, from wherever pip is told to look.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.archives import unpack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OURS: Final = Path(__file__).parents[3]
"""The checkout of this library."""


class Outcome(NamedTuple):
    """What a run of a framework's tests came to: how many ran on something of ours, and which failed."""

    tests: int
    on_ours: int
    failed: frozenset[str]


def pip(*arguments: str | Path) -> None:
    """Run pip; this environment may have none, and is then served by the one beside its Python."""
    python = sys.executable if find_spec("pip") is not None else str(Path(sys.base_prefix, "bin", "python3"))
    command: list[str | Path] = [python, "-m", "pip", "-qq", "--no-input", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def fetched(pins: Path, folder: Path) -> Path:
    """Fetch the source distribution that a file of hashed pins names; return the folder that it unpacks to."""
    return _unpacked(folder, "--require-hashes", "--requirement", pins)


def newest(distribution: str, folder: Path) -> Path:
    """Fetch the source distribution of the newest release; return the folder that it unpacks to."""
    return _unpacked(folder, distribution)


def _unpacked(folder: Path, *wanted: str | Path) -> Path:
    # What builds the distribution's metadata is in this environment; a pip from outside makes one of its own for it.
    building = ("--no-build-isolation",) if find_spec("pip") is not None else ()
    pip("download", *building, "--no-deps", "--no-binary=:all:", *wanted, "--dest", folder)
    (archive,) = folder.glob("*.tar.gz")
    with archive.open("rb") as packed:
        unpack(packed, folder)
    return folder / archive.name.removesuffix(".tar.gz")


def besides(pins: Path, folder: Path) -> Path:
    """Install what a framework's tests need besides, by a file of hashed pins; return the folder to import it from."""
    pip("install", "--no-deps", "--require-hashes", "--requirement", pins, "--target", folder)
    return folder


def run(
    source: Path, plugin: Path, told: Mapping[str, Any], *, python: Path | None = None, folders: Sequence[Path] = ()
) -> Outcome:
    """Run tests of a framework in a process of their own.

    Args:
        source: the unpacked distribution.
        plugin: the plugin of pytest that puts our part in place.
        told: the list of what is run and of what is not.
        python: of the environment that they run in; this one's unless given.
        folders: are imported from as well.
    """
    report = source / "report.xml"
    path = os.pathsep.join(map(str, (source / "src", OURS, plugin.parent, *folders)))
    names = [f"tests/{name.replace('::', '.py::', 1)}" for group in told["not_run"] for name in group["tests"]]
    command: list[str | Path] = [
        python or sys.executable,
        "-m",
        "pytest",
        f"-p{plugin.stem}",
        "-pno:cacheprovider",
        "-q",
    ]
    # In one process, and with plain asserts: a second one would import and collect everything again beside our own
    # suite's, and nobody reads the values of a failed assert here.
    command += ["-pno:xdist", "--assert=plain", "--timeout=60", "--tb=no", "--override-ini=addopts="]
    command += [f"--junitxml={report}", *(f"--deselect={name}" for name in names)]
    command += [*told.get("options", ()), *(f"tests/{name}" for name in told["files"])]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=source, env={**environment, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 1}, done.stdout[-4_000:] + done.stderr[-4_000:]
    return _read(report)


def _read(report: Path) -> Outcome:
    cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 - this machine's pytest wrote it
    failed = {_name(case) for case in cases if case.find("failure") is not None or case.find("error") is not None}
    made = [case.find("properties/property[@name='timeline']") for case in cases]
    return Outcome(len(cases), sum(one is not None and one.get("value") != "0" for one in made), frozenset(failed))


def _name(case: ET.Element) -> str:
    """Return the name of a test without its parameters: ``memory/test_session::test_pop``."""
    place = case.get("classname", "").removeprefix("tests.")
    parts = re.split(r"\.(?=Test[A-Z])", place, maxsplit=1)
    name = case.get("name", "").partition("[")[0]
    return "::".join([parts[0].replace(".", "/"), *parts[1:], name])


def listed(folder: Path) -> dict[str, Any]:
    """Return a framework's list of what is run and of what differs."""
    return tomllib.loads((folder / "differences.toml").read_text(encoding="utf-8"))


def check(outcome: Outcome, told: Mapping[str, Any]) -> None:
    """Check that exactly the listed tests failed, and that enough of them ran on ours."""
    expected = {test for group in told["difference"] for test in group["tests"]}
    # pytest explains no assert of a module that is not a test's.
    assert not outcome.failed - expected, sorted(outcome.failed - expected)
    assert not expected - outcome.failed, sorted(expected - outcome.failed)
    assert outcome.on_ours >= told["on_ours"]
