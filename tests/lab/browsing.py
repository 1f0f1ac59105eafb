"""The browser that the report is looked at with: the machine's own Chromium, which talks to nobody."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

_NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The shell has the same engine and no windows: an empty page of it takes a sixth of the time."""
_QUIET: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
"""Without these a browser talks to its makers by itself; nobody else is found by a page either."""


def installed() -> str | None:
    """Return where the machine's Chromium is; None where there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def launch(driver: Playwright, program: str) -> Browser:
    """Start it."""
    return driver.chromium.launch(executable_path=program, args=_QUIET)
