"""The picture of a report in the lab's document: it can be made again, and stays small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.lab.picture import PICTURE, POLICIES, picture, write_report
from tests.project.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

MOST_BYTES: Final = 150_000


def is_small_webp(picture: bytes) -> bool:
    """Say whether bytes are a WebP picture that a document may carry."""
    return picture[:4] == b"RIFF" and picture[8:12] == b"WEBP" and len(picture) <= MOST_BYTES


def test_the_document_shows_the_picture() -> None:
    """With what is to be seen on it in words."""
    text = (ROOT / "docs" / "lab.md").read_text(encoding="utf-8")
    assert f"]({PICTURE.relative_to(ROOT / 'docs').as_posix()})" in text
    assert is_small_webp(PICTURE.read_bytes())


def test_the_picture_can_be_made_again(browser: Browser, tmp_path: Path) -> None:
    """From a session of the project's own, by a command: python -m tests.lab.picture."""
    assert is_small_webp(picture(browser, write_report(tmp_path, POLICIES[:2])))
