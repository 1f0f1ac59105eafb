"""Facts of a log's blocks: what a call did by its result, and what a text names."""

from __future__ import annotations

import gc
import sys
from itertools import count
from time import process_time
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import pytest

from tests.scenes import AT, answer, call, prompt, result
from timeline.blocks import RangeSummary, UserPrompt
from timeline.facts.extracting import MOST_NAMED, facts_named, facts_of_result, hits_in, status_in

if TYPE_CHECKING:
    from timeline.facts.model import Fact

VERSIONS: Final = count(1_000)


def facts_of(name: str, arguments: Any, text: str = "ok", **fields: Any) -> tuple[Fact, ...]:
    """Return the facts of a call and its result."""
    asked = call("a", name, arguments=arguments).model_copy(update={"path": "tc:t.a.call"})
    answered = result("a", text=text, **fields).model_copy(update={"path": "tc:t.a.result"})
    return facts_of_result(asked, 3, answered, 7, AT)


def test_a_read_file_is_known_by_its_result_and_a_written_one_by_its_call() -> None:
    """The block that holds the content: of a write that is the call."""
    [read] = facts_of("Read", {"file_path": "a.py"})
    assert (read.kind, read.subject, read.path, read.version) == ("file_read", "a.py", "tc:t.a.result", 7)
    [written] = facts_of("Write", {"file_path": "a.py", "content": "x"})
    assert (written.kind, written.subject, written.path, written.version) == ("file_written", "a.py", "tc:t.a.call", 3)


def test_a_failed_write_is_marked_failed_and_gives_an_error() -> None:
    """Nothing was written, and the error says why."""
    written, error = facts_of("Write", {"file_path": "a.py"}, "Permission\n denied", is_error=True)
    assert (written.kind, written.failed, written.detail) == ("file_written", True, "Permission denied")
    assert (error.kind, error.subject, error.path, error.version) == ("error", "Write", "tc:t.a.result", 7)
    assert error.detail == "Permission denied"


def test_a_failed_command_says_so_itself() -> None:
    """A command has its status, so that it needs no error beside it."""
    [command] = facts_of("Bash", {"command": "make"}, "Exit code 2\nmake: ***", is_error=True)
    assert (command.kind, command.exit_status, command.failed) == ("command", 2, True)
    assert command.detail == "Exit code 2 make: ***"


def test_a_failed_call_of_a_tool_without_rules_is_an_error() -> None:
    """Whatever the tool does."""
    [error] = facts_of("fetch", {"url": "https://example.com"}, "502", exit_status=1)
    assert (error.kind, error.subject, error.exit_status, error.detail) == ("error", "fetch", 1, "502")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Exit code 2\nmake: ***", 2),
        ("made\nexited with code: 1", 1),
        ("Chunk ID: 4\nProcess exited with code 0\nOutput:\n", 0),
        ("Output: x\nExit Code: 137\n", 137),
        ("x\n" * 5_000 + "\nCommand exited with code 1", 1),
        ("x\n" * 5_000 + "Exit code 1\n" + "x\n" * 5_000, None),
        ("it says exit code 1 in the middle of a line", None),
        ("FAIL\nexit status 1\nFAIL example.org/x", None),
        ("step 1\nExit code: 1\nstep 2 ok", None),
        ("step 1\nProcess exited with code 1\nOutput:\nstep 2 ok", None),
        ("\n\nExit code: 1\n", 1),
        ("Exit code 1 means that there was no match", None),
        ("Exit code: 2\nWall time: 0.1 seconds\nOutput:\nExit code: 3", 2),
        ("Chunk ID: 4\nWall time: 0.1 seconds\nProcess exited with code 2\nOriginal token count: 9\nOutput:\nx", 2),
        ("Warning: cut\nExit code: 2\nOutput:\nx", None),
        ("Output: x\nError: (none)\nExit Code: 137\nSignal: 9\nProcess Group PGID: 71", 137),
        ("Exit Code: 137\n" + "Signal: 9\n" * 99 + "x", 137),
        ("x\nExit Code: 1\nSignal: 9\nx", None),
        ("x\nexited with code 99999999999", None),
        ("y" * 5_000 + "Exit code: 1".ljust(200), None),
        ("", None),
    ],
)
def test_an_exit_status_is_read_from_a_clients_first_or_last_line(text: str, status: int | None) -> None:
    """Between the lines of an output it is that of another program: of a log that a command prints, say."""
    assert status_in(text) == status


@pytest.mark.parametrize(
    ("text", "hits"),
    [("Found 3 files\na\nb\nc", "3"), ("a\nb\n12 matches", "12"), ("Found 1 match for x", "1"), ("a: 3 files", "")],
)
def test_the_hits_of_a_search_are_read_from_its_first_or_last_line(text: str, hits: str) -> None:
    """They stand in the detail of the fact."""
    assert hits_in(text) == hits
    [search] = facts_of("Grep", {"pattern": "x"}, text)
    assert search.detail == hits


NAMED = (
    "See https://en.wikipedia.org/wiki/A_(b), and (http://x.y/z). ENT-241 and #12 were fixed in df4989c "
    "(3af4a879..84d57297); toolu_01AbCdEf23, i-0ab1234567, CVE-2024-12345, 123e4567-e89b-12d3-a456-426614174000."
)


def named(text: str) -> list[str]:
    """Return what a text of the model names."""
    return [fact.subject for fact in facts_named(answer(text=text), 4, AT)]


def test_urls_and_identifiers_are_taken_from_a_text_in_order() -> None:
    """URLs first; what a URL holds is no identifier of its own."""
    assert named(NAMED) == [
        "https://en.wikipedia.org/wiki/A_(b)",
        "http://x.y/z",
        "ENT-241",
        "#12",
        "df4989c",
        "3af4a879",
        "84d57297",
        "toolu_01AbCdEf23",
        "i-0ab1234567",
        "CVE-2024-12345",
        "123e4567-e89b-12d3-a456-426614174000",
    ]


@pytest.mark.parametrize(
    "text",
    ["UTF-8 SHA-256 FEB-2026", "test_login2 snake_case_name", "C#3 &#123;", "1234567", "deadbeef", "x" * 100, "#fff"],
)
def test_words_of_programs_standards_and_numbers_are_no_identifiers(text: str) -> None:
    """An identifier was made to name one thing."""
    assert named(text) == []


def test_the_arguments_of_a_call_name_what_their_strings_do() -> None:
    """Each string by itself: a line break ends a URL."""
    asked = call("a", "Bash", arguments={"command": "git show df4989c\nopen https://x.y/z"})
    assert [(fact.kind, fact.subject) for fact in facts_named(asked, 4, AT)] == [
        ("url", "https://x.y/z"),
        ("identifier", "df4989c"),
    ]


def test_prompts_and_calls_name_what_the_program_calls_so() -> None:
    """Names with a hump or an underscore inside; not the tool's own words, nor folders and files, nor URLs."""
    text = "getUserName in src/user_data/old_names.py, and max_tokens: new_names.py, $INDEX_FILE, _private, Word, x_1"
    ours = ["getUserName", "max_tokens", "$INDEX_FILE"]
    asked = facts_named(prompt(text=f"{text} https://a_b.org/c_d"), 4, AT)
    assert [(f.subject, f.detail) for f in asked if f.kind == "identifier"] == [(name, "prompt") for name in ours]
    called = facts_named(call("a", "Edit", arguments={"new_string": text, "file_path": "/a/old_name.py"}), 4, AT)
    assert [(f.subject, f.tool) for f in called if f.kind == "identifier"] == [(name, "Edit") for name in ours]
    assert named(text) == []


def test_a_summary_names_nothing_of_its_own() -> None:
    """The blocks that it covers hold what it names."""
    assert facts_named(RangeSummary(text=NAMED), 4, AT) == ()


def test_what_a_block_names_is_remembered_without_the_block() -> None:
    """Blocks hold screenshots. Each of these lies where the one before it lay, and names something else."""
    for number in range(100, 200):
        block = UserPrompt(text=f"See ENT-{number}.")
        known = ref(block)
        assert [fact.subject for fact in facts_named(block, 1, AT) if fact.kind == "identifier"] == [f"ENT-{number}"]
        del block
        assert known() is None


def test_a_block_gives_at_most_so_many_of_each() -> None:
    """The first ones of its text."""
    text = " ".join(f"https://x.y/{n} ENT-{n}" for n in range(300))
    kinds = [fact.kind for fact in facts_named(answer(text=text), 4, AT)]
    assert (kinds.count("url"), kinds.count("identifier")) == (MOST_NAMED, MOST_NAMED)


@pytest.mark.parametrize("ending", [")", ").", "))", ".,;"])
def test_the_end_of_a_url_is_cut_in_one_step_however_long_it_is(ending: str) -> None:
    """The functions that are called for it, each of which may read the whole URL, are as many for 900 as for one."""
    assert steps("see https://x.y/z" + ending * 900) == steps("see https://x.y/z" + ending)
    assert named("see https://x.y/(z)" + ending * 900) == ["https://x.y/(z)"]


def steps(text: str) -> int:
    """Return how many functions are called to find what a text names."""
    block, version = answer(text=text), next(VERSIONS)
    calls = 0

    def note(_frame: object, event: str, _function: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    gc.disable()  # a collection calls what other tests left
    sys.setprofile(note)
    try:
        facts_named(block, version, AT)
    finally:
        sys.setprofile(before)
        gc.enable()
    return calls


@pytest.mark.parametrize(
    "piece",
    ["a", "a_1-", "0123456789abcdef", "https://", "#1 ", "x ", "http://(", "(https://a.b/c)))) ", "aaaa#", "é#1"],
)
def test_the_time_to_find_names_is_linear_in_the_text(piece: str) -> None:
    """A text of sixteen times the size takes at most some eighty times as long; a square would take 256 times."""
    times: list[float] = []
    for size in (100_000, 1_600_000):
        block = prompt(text=piece * (size // len(piece)))
        started = process_time()
        facts_named(block, 4, AT)
        times.append(process_time() - started)
    assert times[1] < 80 * max(times[0], 0.005)


@pytest.mark.timeout(60)  # trying each letter takes minutes
def test_a_word_without_an_end_beside_a_path_is_read_once() -> None:
    """It may be the beginning of a path from each of its letters on: 80 KB took ten seconds."""
    found = facts_named(prompt(text=f"src/main.py {'a' * 400_000}"), 4, AT)
    assert [fact.kind for fact in found] == ["request"]
