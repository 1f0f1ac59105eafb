"""The pictures of docs/inspector.md, at three widths, light and dark: ``python -m tests.inspector.pictures``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Literal

from playwright.sync_api import sync_playwright

from tests.inspector.looking import change, looking, served_apart
from tests.inspector.small_png import small
from tests.inspector.story import FORGETFUL, tell_forgetful
from tests.lab.browsing import installed, launch
from tests.project.sources import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER: Final = ROOT / "docs" / "inspector"
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
SIGHTS: Final = {
    "call": (1440, 840, f"/c/{FORGETFUL}/context?at=424&query=rename&block=%40323"),
    "compactions": (768, 900, f"/c/{FORGETFUL}/compactions?compaction=385"),
    "log": (390, 844, f"/c/{FORGETFUL}?at=424"),
}
"""What is seen: its width, its height and its address."""


def names() -> list[str]:
    """Return the files of the pictures."""
    return [f"{name}-{width}-{scheme}.png" for name, (width, _, _) in SIGHTS.items() for scheme in SCHEMES]


def write(folder: Path = FOLDER) -> None:
    """Take the pictures with the machine's Chromium."""
    program = installed()
    if program is None:
        raise SystemExit("there is no Chromium on this machine; Debian's package is called chromium")
    with TemporaryDirectory() as scratch, sync_playwright() as driver:
        file = Path(scratch) / "told.db"
        change(file, tell_forgetful)
        browser = launch(driver, program)
        with served_apart(file) as server:
            for name in SIGHTS:
                for scheme in SCHEMES:
                    _take(browser, server.base, name, scheme, folder)
        browser.close()


def _take(browser: Browser, base: str, name: str, scheme: Literal["light", "dark"], folder: Path) -> None:
    width, height, address = SIGHTS[name]
    with looking(browser, base, width=width, height=height, scheme=scheme) as seen:
        seen.go(address)
        seen.page.locator(".plot path").first.wait_for()
        seen.page.locator(".view > *").first.wait_for()
        seen.page.locator(".loading").first.wait_for(state="detached")
        seen.page.wait_for_timeout(800)  # the rows that are measured settle
        (folder / f"{name}-{width}-{scheme}.png").write_bytes(small(seen.page.screenshot()))


if __name__ == "__main__":
    write()
