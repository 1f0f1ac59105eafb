"""Which files of a checkout differ from where its branch began."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

TRUNKS: Final = ("origin/HEAD", "origin/main", "main")
"""Where a branch may have begun; the first of these that is there counts."""


def changed_files(checkout: Path) -> frozenset[str]:
    """Return the files that changed since the branch began, committed or not; none without git, or without a trunk."""
    start = next((found for trunk in TRUNKS if (found := _git(checkout, "merge-base", "HEAD", trunk))), None)
    if start is None:
        return frozenset()
    new = _git(checkout, "ls-files", "--others", "--exclude-standard")
    return frozenset([*_git(checkout, "diff", "--name-only", "--relative", *start), *new])


def _git(checkout: Path, *words: str) -> list[str]:
    """Return the lines that a git command prints; none where it fails."""
    program = shutil.which("git")
    if program is None:
        return []
    # In a container the checkout is often another user's, of which git tells nothing unless it is told to.
    command = [program, "-c", f"safe.directory={checkout}", "-c", "core.quotePath=off", *words]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []
