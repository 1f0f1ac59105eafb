from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.lab.browsing import installed, launch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


_PATIENCE: Final = 20_000
"""Milliseconds within which a page shows what is expected of it: a machine may be busy with much else."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start the machine's Chromium; checks of a submission must have one."""
    program = installed()
    if program is None and not os.environ.get("CI"):
        pytest.skip("there is no Chromium on this machine; Debian's package is called chromium")
    assert program is not None, "there is no Chromium here, and the page is not checked without one"
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as driver:
        started = launch(driver, program)
        yield started
        started.close()
