"""The digest: what a covered range did, told without a model (design, section 6, Digest)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import answer, apply, call, fold_of, prompt, result, window_of
from timeline.blocks import Attachment, StageDigest
from timeline.digest import Artifact, Command, Digest, FileUse, HiddenBlock, Named, Problem, Search, ToolOutputs
from timeline.events import ABRIDGED, BlocksHidden, Replacement
from timeline.planning.covered_digest import build_digest

if TYPE_CHECKING:
    from timeline.blocks import Block


def digest_of(*blocks: Block) -> Digest:
    """Return the digest of some blocks."""
    return build_digest(window_of(prompt(), *blocks).items)


def used(call_id: str, name: str, output: str = "ok", **arguments: object) -> list[Block]:
    """Return a call with its arguments, and its result."""
    return [call(call_id, name, arguments=arguments), result(call_id, text=output, name=name)]


def test_files_written_and_read_are_listed_once_with_their_last_call() -> None:
    """By file, with how often and where to read it last."""
    digest = digest_of(
        *used("a", "Read", file_path="x.py"),
        *used("b", "Write", file_path="x.py"),
        *used("d", "Edit", file_path="x.py"),
        *used("e", "Read", file_path="y.py"),
        *used("f", "Read", file_path="x.py"),
    )
    assert digest.files_written == (FileUse(file="x.py", tool="Edit", path="tc:turn_1.d.call", times=2),)
    assert digest.files_read == (
        FileUse(file="x.py", tool="Read", path="tc:turn_1.f.result", times=2),
        FileUse(file="y.py", tool="Read", path="tc:turn_1.e.result", times=1),
    )


@pytest.mark.parametrize(
    ("answered", "command"),
    [
        (result("a", text="fine"), Command(command="make", path="tc:turn_1.a.result")),
        (result("a", text="ok", exit_status=0), Command(command="make", path="tc:turn_1.a.result", exit_status=0)),
        (
            result("a", text="no  rule\nto make", exit_status=2),
            Command(command="make", path="tc:turn_1.a.result", exit_status=2, failed=True, output="no rule to make"),
        ),
        (
            result("a", text="Exit code 2\nmake: ***", is_error=True),
            Command(
                command="make", path="tc:turn_1.a.result", exit_status=2, failed=True, output="Exit code 2 make: ***"
            ),
        ),
        (
            result("a", text="killed", is_error=True),
            Command(command="make", path="tc:turn_1.a.result", failed=True, output="killed"),
        ),
        (
            result("a", text="\nexited with code: 1"),
            Command(
                command="make", path="tc:turn_1.a.result", exit_status=1, failed=True, output="exited with code: 1"
            ),
        ),
    ],
    ids=["no status", "status 0", "status 2", "told in the text", "an error without a status", "in mid-text"],
)
def test_commands_have_their_exit_status_and_whether_they_failed(answered: Block, command: Command) -> None:
    """The status comes from the result or from what it says; a failing command's first words are kept."""
    assert digest_of(call("a", "bash", arguments={"command": "make"}), answered).commands == (command,)


def test_a_call_without_a_result_did_nothing_that_is_known() -> None:
    """Whether a dead call's command ran, nobody knows."""
    assert digest_of(call("a", "bash", arguments={"command": "make"})).commands == ()


def test_a_failed_write_is_an_error_and_no_file_written() -> None:
    """The error names the file that it was about."""
    digest = digest_of(
        call("a", "Write", arguments={"file_path": "/etc/x"}),
        result("a", text="Permission denied", is_error=True),
    )
    assert digest.files_written == ()
    assert digest.errors == (
        Problem(tool="Write", path="tc:turn_1.a.result", message="Permission denied", subject="/etc/x"),
    )


def test_files_deleted_urls_and_identifiers_are_listed() -> None:
    """Each once, with the last block that did or named it."""
    digest = digest_of(
        *used("a", "delete_file", "deleted", path="old.py"),
        *used("b", "WebFetch", "as ENT-241 says", url="https://x.y/z"),
        *used("d", "Bash", "see https://x.y/z", command="gh issue view ENT-241"),
    )
    assert digest.files_deleted == (FileUse(file="old.py", tool="delete_file", path="tc:turn_1.a.call"),)
    assert digest.urls == (Named(name="https://x.y/z", path="tc:turn_1.d.result", times=2),)
    assert digest.identifiers == (Named(name="ENT-241", path="tc:turn_1.d.call", times=2),)


def test_a_failing_commands_output_is_cut_after_200_characters() -> None:
    """First words only."""
    output = "error " * 100
    [command] = digest_of(*used("a", "bash", f"Exit code 1\n{output}", command="make")).commands
    assert len(command.output) == 201
    assert command.output.endswith("…")


@pytest.mark.shows("002-48")
def test_searches_have_their_hits_and_the_hits_paths() -> None:
    """How many hits where that shows, and the files that they are in, each once."""
    found = "Found 3 files\nsrc/a.py\nsrc/b.py:12: x\nsrc/a.py:9\nREADME"
    assert digest_of(*used("a", "Grep", found, pattern="x")).searches == (
        Search(query="x", tool="Grep", path="tc:turn_1.a.result", hits=3, hit_paths=("src/a.py", "src/b.py")),
    )


@pytest.mark.shows("002-48")
@pytest.mark.parametrize(
    "found",
    [
        "Found 2 hits\nar:turn_0.user.prompt: the deadline is Friday\nfi:turn_0.plan: deadline",
        '{"hits":[{"path":"ar:turn_0.user.prompt","text":"x"},{"path":"fi:turn_0.plan"}]}',
    ],
)
def test_a_search_of_the_memory_has_the_paths_that_it_found(found: str) -> None:
    """The paths of a timeline, in lines or in JSON; where no number is said, as many as there are."""
    [search] = digest_of(*used("a", "memsearch", found, query="deadline")).searches
    assert (search.query, search.tool, search.hits) == ("deadline", "memsearch", 2)
    assert search.hit_paths == ("ar:turn_0.user.prompt", "fi:turn_0.plan")


@pytest.mark.shows("002-48")
def test_of_a_search_of_the_memory_ten_paths_are_named() -> None:
    """Beside the number of all that it found."""
    paths = [f"ar:turn_{n}.user.prompt" for n in range(11)]
    [search] = digest_of(*used("a", "memsearch", "\n".join(paths), query="deadline")).searches
    assert (search.hits, search.hit_paths) == (11, tuple(paths[:10]))


def test_a_failed_call_that_is_no_command_is_an_error() -> None:
    """Commands say themselves that they failed; other tools' failures are listed with their message."""
    digest = digest_of(
        call("a", "Read", arguments={"file_path": "x"}),
        result("a", text="no such\n file", is_error=True),
        call("b", "fetch"),
        result("b", text="502", exit_status=1),
        call("d", "bash", arguments={"command": "x"}),
        result("d", text="no", is_error=True),
    )
    assert digest.errors == (
        Problem(tool="Read", path="tc:turn_1.a.result", message="no such file", subject="x"),
        Problem(tool="fetch", path="tc:turn_1.b.result", message="502"),
    )


@pytest.mark.shows("002-47")
def test_tool_outputs_are_counted_by_tool() -> None:
    """How many, their tokens, how many failed, and where to read them."""
    digest = digest_of(
        call("a", "grep"),
        call("b", "bash"),
        result("a", 10, name="grep"),
        result("b", 20, name="bash", is_error=True),
        call("d", "bash"),
        result("d", 30, name="bash"),
    )
    assert digest.tool_outputs == (
        ToolOutputs(tool="grep", count=1, tokens=10, paths=("tc:turn_1.a.result",)),
        ToolOutputs(tool="bash", count=2, tokens=50, errors=1, paths=("tc:turn_1.b.result", "tc:turn_1.d.result")),
    )


def test_a_result_without_a_name_is_counted_under_its_calls_name() -> None:
    """Most callers leave a result's name empty: the call says which tool it was."""
    [outputs] = digest_of(call("a", "bash"), result("a", 10)).tool_outputs
    assert outputs.tool == "bash"
    [orphan] = digest_of(result("lost", 10)).tool_outputs
    assert orphan.tool == "unknown"


@pytest.mark.shows("002-49")
def test_hidden_blocks_are_listed_with_what_stood_for_them() -> None:
    """What was hidden when it was covered can still be read back by its path."""
    fold = fold_of(prompt(), call("a"), result("a", 100))
    apply(fold, 5, BlocksHidden(reason="ttl", blocks=(Replacement(version=4, text="[a: 100 tokens]", tokens=4),)))
    digest = build_digest(fold.window.items)
    assert digest.hidden == (HiddenBlock(path="tc:turn_1.a.result", replacement="[a: 100 tokens]"),)


@pytest.mark.parametrize("reason", sorted(ABRIDGED))
def test_abridged_results_are_no_hidden_blocks(reason: str) -> None:
    """All of them was in sight."""
    fold = fold_of(prompt(), call("a"), result("a", 100))
    apply(fold, 5, BlocksHidden(reason=reason, blocks=(Replacement(version=4, text="1: one", tokens=4),)))
    assert build_digest(fold.window.items).hidden == ()


@pytest.mark.shows("002-46")
def test_attachments_and_blocks_with_sources_are_artifacts() -> None:
    """Path, kind of content, visibility, and what they were made from."""
    digest = digest_of(
        Attachment(text="x", mime="application/pdf", meta={"file": "plan"}),
        answer(text="report", mime="text/markdown", meta={"sources_used": ["so:1", "so:2"]}),
    )
    assert digest.artifacts == (
        Artifact(path="fi:turn_1.plan", mime="application/pdf"),
        Artifact(path="ar:turn_1.assistant.completion", mime="text/markdown", sources_used=("so:1", "so:2")),
    )


@pytest.mark.shows("002-46")
def test_an_artifact_is_as_visible_as_the_application_says() -> None:
    """A tool's result with sources is one too; without a word of the application it is as visible as its block."""
    fold = fold_of(
        prompt(),
        Attachment(text="x" * 90, meta={"file": "plan", "visibility": "external"}),
        Attachment(text="x" * 90, meta={"file": "notes"}),
        call("w", "write_report"),
        result("w", mime="application/pdf", meta={"sources_used": ["so:1"], "visibility": "internal"}),
    )
    hidden = tuple(Replacement(version=version, text="[gone]", tokens=2) for version in (3, 4))
    apply(fold, 7, BlocksHidden(reason="manual", blocks=hidden))
    assert build_digest(fold.window.items).artifacts == (
        Artifact(path="fi:turn_1.plan", visibility="external"),
        Artifact(path="fi:turn_1.notes", visibility="hidden"),
        Artifact(path="tc:turn_1.w.result", mime="application/pdf", visibility="internal", sources_used=("so:1",)),
    )


def test_stages_are_listed() -> None:
    """What a stage decided is part of the record."""
    assert digest_of(StageDigest(text="outline approved")).stages == ("outline approved",)


def test_a_long_list_is_shortened_to_its_newest_and_counts_the_rest() -> None:
    """The copy in the summary block holds 50 items a list, and how many more there are by list."""
    digest = Digest(
        stages=tuple(f"stage {n}" for n in range(70)),
        errors=tuple(Problem(tool="t", path=f"p{n}", message="m") for n in range(50)),
        hidden=tuple(HiddenBlock(path=f"h{n}", replacement="r") for n in range(51)),
    )
    short = digest.shortened(50)
    assert short.stages == tuple(f"stage {n}" for n in range(20, 70))
    assert len(short.errors) == len(short.hidden) == 50
    assert short.more == {"stages": 20, "hidden": 1}
    assert digest.more == {}


def test_a_dump_leaves_empty_lists_out() -> None:
    """The JSON form holds what there is."""
    assert Digest(stages=("s",)).dump() == {"stages": ["s"]}
    assert Digest().dump() == {}


def test_the_digest_is_deterministic() -> None:
    """The same range gives the same digest."""
    blocks = [*used("a", "Read", file_path="x.py"), *used("b", "bash", command="make"), *used("d", "Grep", pattern="x")]
    assert digest_of(*blocks) == digest_of(*blocks)
