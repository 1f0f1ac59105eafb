"""The wheel is what people get: it is built, looked into, installed, and used away from its sources."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.project.sources import PACKAGES, ROOT

PROGRAM = """
import asyncio
import store, summarizers, timeline
from timeline import Timeline, open_store, policies
from timeline.blocks import UserPrompt


async def talk():
    async with open_store("conversations.db") as opened:
        conversation = await Timeline.open(
            opened, "c", policy=policies.cut_point(), summarizer=timeline.summarizers.ExtractiveSummarizer()
        )
        [prompt] = await conversation.append(UserPrompt(text="Build a flashcard app"))
        await conversation.render(system="You help.")
        assert (await conversation.read(prompt.path)).text == "Build a flashcard app"
        assert (await conversation.verify()).ok


asyncio.run(talk())
for package in (timeline, store, summarizers):
    print(package.__file__)
"""


class Installed(NamedTuple):
    """A wheel, the environment that it was installed into, and an empty folder to work in."""

    wheel: Path
    python: Path
    folder: Path

    def run(self, *command: str | Path) -> str:
        """Run a command of the environment in the empty folder and return what it prints."""
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build the wheel and install it into a fresh environment, without network.

    Its dependencies are read from the environment of the tests, in which the sources themselves are not to be found:
    the path file that leads there is read only in an environment's own folder.
    """
    folder = tmp_path_factory.mktemp("wheel")
    building = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    built = subprocess.run(building, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    [wheel] = folder.glob("*.whl")
    venv.create(folder / "environment", with_pip=False)
    scheme = {"base": str(folder / "environment"), "platbase": str(folder / "environment")}
    python = Path(sysconfig.get_path("scripts", "venv", scheme), "python")
    packages = Path(sysconfig.get_path("purelib", "venv", scheme))
    dependencies = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in sorted(dependencies)))
    (folder / "elsewhere").mkdir()
    environment = Installed(wheel, python, folder / "elsewhere")
    environment.run(python, "-m", "installer", wheel)
    return environment


def test_the_wheel_holds_exactly_the_three_packages(installed: Installed) -> None:
    """No test, document or tool of the project ends up among an application's packages."""
    names = zipfile.ZipFile(installed.wheel).namelist()
    [metadata] = {name.partition("/")[0] for name in names} - set(PACKAGES)
    assert metadata.startswith("timeline_engine-")
    assert metadata.endswith(".dist-info")
    assert {name.partition("/")[0] for name in names} == {*PACKAGES, metadata}
    assert f"{metadata}/licenses/LICENSE" in names


def test_the_wheel_holds_every_file_of_the_packages(installed: Installed) -> None:
    """Types, vocabularies and prompts travel with the code."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file()]
    wanted = {file.relative_to(ROOT).as_posix() for file in files if file.suffix not in {".pyc", ".pyo"}}
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    assert wanted <= names
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {f"timeline/tokens/{name}.tokens.xz" for name in ("o200k_base", "cl100k_base")} <= names
    assert any(name.startswith("summarizers/prompts/") and not name.endswith(".py") for name in names)


def test_the_installed_library_works_away_from_its_sources(installed: Installed) -> None:
    """A conversation is stored, rendered, read back and verified by the installed packages."""
    printed = installed.run(installed.python, "-W", "error", "-c", PROGRAM)
    folders = {Path(line).resolve().parent.parent for line in printed.splitlines()}
    assert len(folders) == 1
    assert folders.pop().is_relative_to(installed.python.parent.parent.resolve())


def test_the_installed_command_knows_its_version(installed: Installed) -> None:
    """`timeline --version` answers with the version that the wheel is named by."""
    version = installed.wheel.name.split("-")[1]
    assert version in installed.run(installed.python.with_name("timeline"), "--version").split()


def test_the_installed_command_demonstrates_itself(installed: Installed) -> None:
    """`timeline demo` needs no argument, key, network or source tree."""
    printed = installed.run(installed.python.with_name("timeline"), "demo")
    assert "verif" in printed.lower()
