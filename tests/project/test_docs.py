from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.depth import full_depth, sampled
from tests.project.changes import changed_files
from tests.project.depths import MARKS, WHOLE, with_depths
from tests.project.front_page import PAGE as README
from tests.project.front_page import with_picture
from tests.project.numbers import IN_PROSE, sentences, with_numbers
from tests.project.numbers import PAGE as DESIGN
from tests.project.pages import TEST_NAME, code_blocks, commands, is_defined, needs_a_shell, pages, run_page, table_rows
from tests.project.recording import write_recording
from tests.project.sources import PACKAGES, ROOT
from timeline.policy.presets import PRESETS

if TYPE_CHECKING:
    from pathlib import Path

    from _pytest.mark import ParameterSet

    from timeline.policy.model import Policy

DOCUMENTS = ("concepts", "conformance/README", "design", "guarantees", "quickstart")
EXPECTED = ("README.md", "CHANGELOG.md", "LICENSE", *(f"docs/{name}.md" for name in DOCUMENTS))
"""Documents that have to be there."""
ADRS = sorted((ROOT / "docs" / "adr").glob("*.md"))
LINK = re.compile(r"\[[^\]\n]*\]\((?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
TO_THE_DESIGN = re.compile(r"\bdesign: (?P<heading>[A-Z][^;.)\n]*)")
"""How code refers to a part of docs/design.md."""
SERVER = re.compile(r"""(['"]?)postgresql://\w+:[\w-]+@localhost:5432/agents(?:\?(?:schema=(?P<new>\w+)|\w+=\w+))?\1""")
"""The URL of a server in a document; the tests' own is in its place, and a new schema for one with a name."""
HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)
SAMPLE = """
<!-- python
answer = 41
-->
```python
import asyncio
answer += await asyncio.sleep(0, result=1)
```
```console
$ timeline --version \\
    | cat
$ git commit
0.1.0
```
<!-- no-run: it would cost money -->
```python
raise SystemExit
```
<!-- no-run: -->
```python
assert answer == 42, answer
```
"""


def name_of(page: Path) -> str:
    """Return a page's path in the project."""
    return page.relative_to(ROOT).as_posix()


def test_the_documents_are_there() -> None:
    """What the project promises to describe is described."""
    assert [name for name in EXPECTED if not (ROOT / name).is_file()] == []


def played() -> list[ParameterSet]:
    """Return the pages; where some differ from those of the branch's beginning, a quick run plays these only."""
    changed = changed_files(ROOT)
    unchanged = {page for page in pages() if changed and name_of(page) not in changed}
    return [pytest.param(page, id=name_of(page), marks=full_depth if page in unchanged else ()) for page in pages()]


@sampled
@pytest.mark.parametrize("page", played())
def test_everything_that_a_page_shows_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A reader who types a document's code and commands, in order, meets no error."""
    text = page.read_text(encoding="utf-8")
    if SERVER.search(text):
        url = request.getfixturevalue("postgres_url")  # ends in the name of a schema
        # Quoted as Python and the shell read it.
        text = SERVER.sub(lambda found: repr(f"{url}_{found['new']}" if found["new"] else url), text)
    write_recording(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIMELINE_DB", raising=False)
    run_page(text, name_of(page), tmp_path)


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_a_block_that_is_not_run_says_why(page: Path) -> None:
    """No code is left out of the tests in silence."""
    silent = [block.line for block in code_blocks(page.read_text(encoding="utf-8")) if block.no_run == ""]
    assert not silent, f"{name_of(page)}, lines {silent}: no-run without a reason"


@pytest.mark.parametrize("page", [*pages(), ROOT / "CHANGELOG.md"], ids=name_of)
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    """A relative link of a document names a file of the project, and a heading in it."""
    links = [match for match in LINK.finditer(page.read_text(encoding="utf-8")) if match["target"] or match["anchor"]]
    inner = [link for link in links if "://" not in link["target"] and not link["target"].startswith("mailto:")]
    files = [(page.parent / link["target"] if link["target"] else page, link["anchor"]) for link in inner]
    assert [file for file, _ in files if not file.exists()] == []
    assert [(file, anchor) for file, anchor in files if anchor and anchor not in anchors_of(file)] == []


def anchors_of(page: Path) -> set[str]:
    """Return what links to a page's headings may end with, as Markdown on the web makes them."""
    headings = [match["text"].lower() for match in HEADING.finditer(page.read_text(encoding="utf-8"))]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


def test_each_guarantee_names_tests_that_exist() -> None:
    """Every row of the guarantees' tables points at the tests that hold it up."""
    rows = table_rows((ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8"))
    assert rows
    assert [row for row in rows if not TEST_NAME.search(row)] == []
    named = {name for row in rows for name in TEST_NAME.findall(row)}
    assert sorted(name for name in named if not is_defined(name)) == []


def test_each_guarantee_names_the_depth_at_which_it_is_held() -> None:
    """What a row says is what its tests are marked with; `python -m tests.project.depths` writes the column."""
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    assert with_depths(text) == text
    depths = {word for row in table_rows(text) for word in row.split(" | ")[1].split(", ")}
    assert depths <= {WHOLE, *MARKS.values()}
    assert [word for word in depths if f"- **{word}**: " not in text] == [], "the page explains each word"


def test_the_readme_prints_the_commands_that_ci_runs() -> None:
    """A fresh clone is tested by what the README says, and the plain form is what make calls."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test", "night"):
        assert f"make {target}" in readme
        assert f"python3 .ci/dev.py {target}" in readme
        assert f"$(PYTHON) .ci/dev.py {target}\n" in makefile
    assert "\nmake test </dev/null\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_readme_shows_what_its_first_program_prints() -> None:
    """The picture of the front page is real output; `python -m tests.project.front_page` writes it."""
    text = README.read_text(encoding="utf-8")
    assert with_picture(text) == text


def test_the_design_names_the_figures_that_policies_have() -> None:
    """The default's and those of the published design; `python -m tests.project.numbers` writes them."""
    text = DESIGN.read_text(encoding="utf-8")
    assert with_numbers(text) == text
    assert "| `max_tokens` | 80,000 | 80,000 |" in with_numbers(text.replace("| 80,000 |", "| 7 |"))


@pytest.mark.parametrize("page", IN_PROSE)
def test_a_page_says_in_its_sentences_what_the_default_has(page: str) -> None:
    """They kept the figures of an earlier default, beside a table with those of today."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert [sentence for sentence in sentences(page) if sentence not in text] == []


def test_the_page_of_summaries_names_all_presets_of_a_prompt_and_of_a_failure() -> None:
    """It named those of published designs alone, and not the default."""
    rows = [row.strip("| ").split(" | ") for row in table_rows((ROOT / "docs" / "summaries.md").read_text("utf-8"))]
    told = {row[0].strip("`"): {*re.findall(r"`(\w+)`", row[-1])} for row in rows}
    made = {name: make() for name, make in PRESETS.items() if name != "none"}
    for field in ("prompt", "on_failure"):
        for value in {value for policy in made.values() for value in _values_of(policy, field)}:
            assert told[value] == {name for name, policy in made.items() if value in _values_of(policy, field)}, value


def _values_of(policy: Policy, field: str) -> list[str]:
    """Return a field of a policy, or of its steps."""
    return [getattr(owner, field) for owner in (policy, *policy.steps) if hasattr(owner, field)]


def test_what_code_refers_to_in_the_design_is_a_heading_of_it() -> None:
    """A reference by number pointed somewhere else as soon as a part was added."""
    headings = tuple(match["text"] for match in HEADING.finditer(DESIGN.read_text(encoding="utf-8")))
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    named = [(f, m["heading"]) for f in files for m in TO_THE_DESIGN.finditer(f.read_text(encoding="utf-8"))]
    assert [(file, heading) for file, heading in named if not heading.startswith(headings)] == []
    assert [heading for heading in headings if heading[0].isdigit()] == [], "a number is no name"


def test_decision_records_are_numbered_and_of_one_form() -> None:
    """Records count up without a gap, and each one says its context, its decision and its consequences."""
    assert [adr.name[:4] for adr in ADRS] == [f"{number:04}" for number in range(1, len(ADRS) + 1)]
    for adr in ADRS:
        text = adr.read_text(encoding="utf-8")
        assert text.startswith(f"# {adr.name[:4]} · "), adr.name
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences"], adr.name


def test_a_page_runs_as_one_program(tmp_path: Path) -> None:
    """Blocks share names and a loop, hidden ones too; an excused block is left out, one without a reason is listed."""
    run_page(SAMPLE, "sample.md", tmp_path)
    assert [block.no_run for block in code_blocks(SAMPLE)] == [None, None, None, "it would cost money", ""]
    assert commands(code_blocks(SAMPLE)[2]) == [("timeline --version      | cat", "")]


@pytest.mark.parametrize(
    "command", ["ls | cat", "ls > a", "mcp < /dev/null", "show $ID", "import *.jsonl", 'show "$ID"']
)
def test_a_command_that_is_more_than_words_is_given_to_a_shell(command: str) -> None:
    """What a shell would do with a command is not guessed at."""
    assert needs_a_shell(f"timeline {command}")
    assert not needs_a_shell("timeline search 'card*' \"#11\" --since 2026-01-01T00:00:00Z --db try.db")


@pytest.mark.parametrize(
    "block",
    [
        "```python\nassert 1 == 2\n```",
        "```console\n$ timeline nonsense\n```",
        "```console\n$ timeline --version\n$ timeline nonsense\n```",
    ],
)
def test_a_page_that_is_wrong_fails(tmp_path: Path, block: str) -> None:
    """Code that raises and commands that fail are errors of the document."""
    with pytest.raises(AssertionError):
        run_page(f"# Title\n\n{block}\n", "sample.md", tmp_path)
