"""Fresh environments beside that of the tests, and what is built to be installed into them, without network."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from build import ProjectBuilder
from pyproject_hooks import quiet_subprocess_runner

from tests.project.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping


class Environment(NamedTuple):
    """An environment, and an empty folder to work in."""

    python: Path
    packages: Path
    folder: Path

    def run(self, *command: str | Path, folder: Path | None = None) -> str:
        """Run a command in a folder, the empty one by default, and return what it prints; no path leads elsewhere."""
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        place = folder or self.folder
        done = subprocess.run(command, cwd=place, env=alone, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run_program(self, text: str, folder: Path | None = None) -> str:
        """Run a program in a folder, with warnings as errors, and return what it prints."""
        return self.run(self.python, "-W", "error", "-c", text, folder=folder)

    def run_timeline(self, *arguments: str) -> str:
        """Run the installed command line in the empty folder and return what it prints."""
        return self.run(self.python.with_name("timeline"), *arguments)

    def install(self, wheel: Path) -> None:
        """Install a wheel; a file that is there already is an error."""
        self.run(self.python, "-m", "installer", "--no-compile-bytecode", wheel)

    def uninstall(self, name: str) -> None:
        """Remove what a distribution's record lists, what was compiled of it, and the folders that this empties."""
        files = list(self.files(name))
        for file in files:
            file.unlink()
            for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
                compiled.unlink()
        folders = {folder for file in files for folder in (file.parent / "__pycache__", *file.parents)}
        for folder in sorted(folders, reverse=True):  # a folder comes after those inside it
            if self.packages in folder.parents and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def files(self, name: str) -> dict[Path, bytes]:
        """Return the files that an installed distribution's record lists, with what is in them now."""
        [found] = distributions(name=name, path=[str(self.packages)])
        files = [Path(str(found.locate_file(file))).resolve() for file in found.files or ()]
        return {file: file.read_bytes() for file in files}


def new_environment(folder: Path) -> Environment:
    """Make an environment that has what the library depends on, but not the library.

    The dependencies are read from the environment of the tests, in which the sources themselves are not to be found:
    the path file that leads there is read only in an environment's own folder.
    """
    venv.create(folder / "environment", with_pip=False)
    scheme = {"base": str(folder / "environment"), "platbase": str(folder / "environment")}
    packages = Path(sysconfig.get_path("purelib", "venv", scheme)).resolve()
    dependencies = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in sorted(dependencies)))
    (folder / "elsewhere").mkdir()
    python = Path(sysconfig.get_path("scripts", "venv", scheme), "python")
    return Environment(python, packages, folder / "elsewhere")


def built(kind: Literal["wheel", "sdist", "editable"], folder: Path, source: Path = ROOT) -> Path:
    """Build the library into a folder with the build backend that is installed, and return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(ProjectBuilder(source, sys.executable, quiet_subprocess_runner).build(kind, folder))


def made_wheel(folder: Path, name: str, files: Mapping[str, str]) -> Path:
    """Write a wheel of another distribution by hand."""
    metadata = f"{name}-1.0.dist-info"
    held = {
        **files,
        f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{metadata}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{path},sha256={_hash(text)},{len(text.encode())}\n" for path, text in held.items()]
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in held.items():
            archive.writestr(path, text)
        archive.writestr(f"{metadata}/RECORD", "".join([*record, f"{metadata}/RECORD,,\n"]))
    return wheel


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
