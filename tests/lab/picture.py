"""The picture of a report in docs/lab.md: ``python -m tests.lab.picture``. It needs the machine's Chromium.

What is replayed is a session that this project made up, so that the picture can be made again by anybody.
"""

from __future__ import annotations

import sys
from base64 import b64decode, b64encode
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from playwright.sync_api import sync_playwright

from tests.lab.browsing import installed, launch
from tests.project.recording import TURNS, write_recording
from tests.project.sources import ROOT
from timeline.lab.report.page import page
from timeline.lab.runner import plan, run
from timeline.lab.work import Options
from timeline.policy.files import find_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Browser

PICTURE: Final = ROOT / "docs" / "lab" / "report.webp"
POLICIES: Final = ("none", "balanced", "gentle", "claude-code", "opencode", "gemini-cli", "pi", "cline")
LIMIT: Final = 32_000
PROMPTS: Final = (*TURNS, "Show the due cards first, and how many are left.", "Write the README, with an example.")
STEPS: Final = 36
IDLE: Final = timedelta(minutes=20)
WIDTH: Final = 1280
_AS_WEBP: Final = """async (source) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.85);
}"""
"""A picture of text is half as large in the browser's WebP as in its PNG."""


def write_report(folder: Path, policies: Sequence[str] = POLICIES) -> Path:
    """Write the report that the picture is of: a day's work with pauses, under what is published and ours."""
    session = write_recording(folder, dict.fromkeys(PROMPTS, STEPS), idle=IDLE)
    works = plan([str(session)], [(name, find_policy(name, max_tokens=LIMIT)) for name in policies], Options())
    report = folder / "report.html"
    report.write_text(page(works, run(works, jobs=1)), encoding="utf-8")
    return report


def picture(browser: Browser, report: Path) -> bytes:
    """Return a picture of what is told at a glance: the answer, the table and the three plots below it."""
    opened = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
    opened.goto(report.as_uri())
    height = opened.evaluate("document.querySelector('.pair').getBoundingClientRect().bottom")
    taken = opened.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height + 28})
    opened.goto("about:blank")
    small = opened.evaluate(_AS_WEBP, f"data:image/png;base64,{b64encode(taken).decode()}")
    opened.close()
    return b64decode(small.partition(",")[2])


def main() -> None:
    """Take the picture."""
    program = installed()
    if program is None:
        sys.exit("There is no Chromium on this machine; Debian's package is called chromium.")
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = launch(driver, program)
        taken = picture(browser, write_report(Path(folder)))
        browser.close()
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(taken)


if __name__ == "__main__":
    main()
