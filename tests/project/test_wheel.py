"""The wheel is what people get: it is built, looked into, installed, and used away from its sources."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.archives import unpack
from tests.project.environments import built
from tests.project.sources import PACKAGES, ROOT

if TYPE_CHECKING:
    from tests.project.environments import Environment

PROGRAM = """
import asyncio
import timeline
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
for package in (timeline, timeline.store, timeline.summarizers):
    print(package.__name__, package.__file__)
"""


def files_in(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_one_package(wheel: Path) -> None:
    """Nothing but `timeline` ends up among an application's packages: no `store`, no test, document or tool."""
    names = zipfile.ZipFile(wheel).namelist()
    [metadata] = {name.partition("/")[0] for name in names} - {"timeline"}
    assert metadata.startswith("timeline_engine-")
    assert metadata.endswith(".dist-info")
    assert f"{metadata}/licenses/LICENSE" in names


def test_the_wheel_holds_every_file_of_the_three_folders(wheel: Path) -> None:
    """Types, vocabularies and prompts travel with the code; what only a checkout needs stays there."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file()]
    held = {file.relative_to(ROOT).as_posix() for file in files if file.suffix not in {".pyc", ".pyo"}}
    wanted = {name for name in held if not name.startswith("timeline/checkout/")}
    names = files_in(wheel).keys()
    assert {name if name.startswith("timeline/") else f"timeline/{name}" for name in wanted} == names
    assert {"timeline/py.typed", "timeline/store/py.typed", "timeline/summarizers/py.typed"} <= names
    assert {f"timeline/tokens/{name}.tokens" for name in ("o200k_base", "cl100k_base")} <= names
    assert any(name.startswith("timeline/summarizers/prompts/") and not name.endswith(".py") for name in names)


def test_a_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """A package built from the sources has the files of the wheel."""
    with built("sdist", tmp_path).open("rb") as archive:
        unpack(archive, tmp_path / "unpacked")
    [source] = (tmp_path / "unpacked").iterdir()
    assert files_in(built("wheel", tmp_path / "again", source)) == files_in(wheel)


def test_the_installed_library_works_away_from_its_sources(installed: Environment) -> None:
    """A conversation is stored, rendered, read back and verified by the installed packages."""
    found = dict(line.split(" ", 1) for line in installed.run_program(PROGRAM).splitlines())
    own = installed.packages / "timeline"
    assert {name: Path(file).resolve().parent for name, file in found.items()} == {
        "timeline": own,
        "timeline.store": own / "store",
        "timeline.summarizers": own / "summarizers",
    }


def test_the_installed_command_knows_its_version(installed: Environment, wheel: Path) -> None:
    """`timeline --version` answers with the version that the wheel is named by."""
    assert wheel.name.split("-")[1] in installed.run_timeline("--version").split()


def test_the_installed_command_demonstrates_itself(installed: Environment) -> None:
    """`timeline demo` needs no argument, key, network or source tree."""
    assert "verif" in installed.run_timeline("demo").lower()
