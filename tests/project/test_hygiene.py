from __future__ import annotations

import re
import subprocess

import pytest

from tests.project.sources import ROOT

# Written with brackets, so that this file does not find itself.
UNWANTED = {
    "the host of a package registry": r"pypi[.]org|python[h]osted|npmj[s][.]|registry[.]\w+[.]\w+|/artifactor[y]/",
    "a path of one machine": r"(?<![\w.~-])/(wor[k]|roo[t])/",
    "a person's folder": r"(?<![\w.~-])/(hom[e]|User[s])/(?!(user|dev|me|you|ada)\b)[a-z]",
    "a note for later": r"\b(TOD[O]|FIXM[E])\b",
}
"""What no committed file says; in examples, `user`, `dev`, `me`, `you` and `ada` are nobody's name."""


@pytest.fixture(scope="module")
def committed() -> dict[str, str]:
    """The text of every file that git knows and that is one; binary files are left out."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout, so there is no list of what is committed")
    # In a container the checkout is often another user's, and git lists nothing of it without this setting.
    words = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    held = {str(file.relative_to(ROOT)): file.read_bytes() for file in files}
    return {name: data.decode() for name, data in held.items() if b"\0" not in data[:8192]}


@pytest.mark.parametrize("what", UNWANTED)
def test_no_committed_file_names_something_unwanted(committed: dict[str, str], what: str) -> None:
    """What is committed is true on every machine and asks nobody to come back to it."""
    pattern = re.compile(UNWANTED[what])
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in committed.items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_pins_hold_nothing_but_names_versions_and_hashes() -> None:
    """Pinned packages come from wherever a machine gets its packages."""
    requirement = re.compile(r"[a-z0-9][a-z0-9._-]*==[^\s;]+( ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?|#.*")
    odd = [line for kind in ("run", "test") for line in pins(kind).splitlines() if not requirement.fullmatch(line)]
    assert not odd, odd


def test_both_pins_name_the_same_versions() -> None:
    """The demonstration runs with the versions that the tests ran with."""
    run, tested = (set(re.findall(r"(?m)^[^#\s]+==\S+", pins(kind))) for kind in ("run", "test"))
    assert run < tested


def pins(kind: str) -> str:
    """Return the text of a file of pinned packages."""
    return (ROOT / ".ci" / f"pins-{kind}.txt").read_text()
