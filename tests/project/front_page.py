"""What the README's first program prints, below that program: ``python -m tests.project.front_page`` writes it."""

from __future__ import annotations

import os
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.project.pages import code_blocks
from tests.project.sources import ROOT

PAGE: Final = ROOT / "README.md"
PICTURE: Final = re.compile(r"(?<=<!-- front page -->\n```text\n).*?(?=```\n<!-- /front page -->)", re.DOTALL)
"""What is between the marks of the page."""


def with_picture(text: str) -> str:
    """Return the page with what its first program prints."""
    printed = _printed(next(block.text for block in code_blocks(text) if block.language == "python"))
    return PICTURE.sub(lambda _: printed, text)


def _printed(program: str) -> str:
    before, said = Path.cwd(), StringIO()
    with TemporaryDirectory() as folder, redirect_stdout(said):
        os.chdir(folder)
        try:
            exec(compile(program, PAGE.name, "exec"), {"__name__": "__page__"})  # noqa: S102 - the project's own page
        finally:
            os.chdir(before)
    return "".join(f"{line.rstrip()}\n" for line in said.getvalue().splitlines())


if __name__ == "__main__":
    PAGE.write_text(with_picture(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
