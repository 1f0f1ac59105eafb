"""The export view: what is to be shared is looked over first, and saved without what was not kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote
from zipfile import ZipFile

from playwright.sync_api import expect

from tests.inspector.exporting import ID, SECRET, converse
from tests.inspector.looking import change, looking, served, violations

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser


def test_a_bundle_is_looked_over_before_it_can_be_saved(browser: Browser, tmp_path: Path) -> None:
    """The list has no credential; what is ticked stays, in the file and in the command."""
    file, saved = tmp_path / "talk.db", tmp_path / "saved.zip"
    change(file, converse)
    with served(file) as server, looking(browser, server.base) as seen:
        seen.go(f"/c/{quote(ID, safe='')}/export")
        bundle = seen.page.get_by_role("listitem").filter(has=seen.page.get_by_role("heading", name="Bug bundle"))
        expect(bundle.get_by_role("link", name="Save the file")).to_have_count(0)
        bundle.get_by_role("button", name="Look over what is taken out").click()
        findings = bundle.locator(".findings > li")
        expect(findings).to_have_count(2)
        expect(bundle).to_contain_text("«ghp_… 40 characters»")
        assert SECRET not in seen.page.content()
        findings.filter(has_text="home folder").get_by_role("checkbox").check()
        expect(bundle.locator(".command")).to_contain_text("--format bundle --keep")
        assert violations(seen.page) == []
        with seen.page.expect_download() as download:
            bundle.get_by_role("link", name="Save the file").click()
        download.value.save_as(saved)
    with ZipFile(saved) as files:
        log = files.read("log.jsonl").decode()
        assert SECRET not in log
        assert "/home/ada/3.txt" in log
        assert [one["kind"] for one in json.loads(files.read("left-out.json"))] == ["github"]
