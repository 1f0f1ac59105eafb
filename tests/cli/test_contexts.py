from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cli import sessions
from timeline.cli.exits import Exit
from timeline.wire import WIRES, decoder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def test_a_dry_run_appends_nothing_and_gives_the_same_bytes(
    run: Callable[..., Done], recording: Path, db: Path
) -> None:
    """Rendering twice without `--record` gives one fingerprint, though it compacts, and leaves the file as it was."""
    run("import", recording)
    before = db.read_bytes()
    contexts = [run("render", sessions.SESSION, "--max-tokens", 1200, "--json").json for _ in range(2)]
    assert contexts[0]["fingerprint"] == contexts[1]["fingerprint"]
    assert contexts[0]["decisions"][-1]["kind"] == "compacted"
    assert db.read_bytes() == before


def test_recording_appends_what_was_decided(run: Callable[..., Done], recording: Path) -> None:
    """`--record` writes the compaction and the context; the next render finds nothing left to decide."""
    run("import", recording)
    now = ("--now", "2026-01-06T00:00:00Z")
    context = run("render", sessions.SESSION, "--max-tokens", 1200, "--record", *now, "--json").json
    types = [row["type"] for row in run("show", sessions.SESSION, "--json").json]
    assert types[-2:] == ["conv.range.summary", "context.rendered"]
    again = run("render", sessions.SESSION, "--max-tokens", 1200, "--json").json
    assert again["fingerprint"] == context["fingerprint"]
    assert again["decisions"] == []
    assert run("ls", "--json").json[0]["updated_at"] == "2026-01-06T00:00:00.000000Z"


def test_the_wire_is_exactly_the_request_body(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """`--wire` prints the provider's own keys, with or without `--json`, every result behind its call."""
    words = ("render", simulated["id"], "--max-tokens", 1500, "--system", "Be brief.")
    body = run(*words, "--wire", "anthropic").json
    assert body == run(*words, "--wire", "anthropic", "--json").json
    assert set(body) <= {"system", "messages", "tools"}
    assert body["messages"][0]["role"] == "user"
    assert _unanswered(body["messages"]) == []
    chat = run(*words, "--wire", "openai_chat").json
    assert set(chat) <= {"messages", "tools"}
    assert "Be brief." in str(chat["messages"][0])


@pytest.mark.parametrize("wire", WIRES)
def test_every_wire_format_is_rendered_and_exported(
    run: Callable[..., Done], simulated: dict[str, Any], wire: str
) -> None:
    """Both commands name all of them, and a hyphen is as good as an underscore."""
    body = run("render", simulated["id"], "--wire", wire.replace("_", "-")).json
    assert decoder(wire)(body)
    assert decoder(wire)(run("export", simulated["id"], "--wire", wire).json)


def _unanswered(messages: list[dict[str, Any]]) -> list[str]:
    parts = [p for m in messages if isinstance(m["content"], list) for p in m["content"]]
    results = {p["tool_use_id"] for p in parts if p["type"] == "tool_result"}
    return [p["id"] for p in parts if p["type"] == "tool_use" and p["id"] not in results]


def test_people_see_the_account_and_on_wish_every_block(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """The plain answer sums up, and says that it was a dry run; `--explain` lists each block with the reason."""
    words = ("render", simulated["id"], "--max-tokens", 1500)
    brief = run(*words)
    assert "dry run" in brief.out
    assert "cache point tail" in brief.out
    explained = run(*words, "--explain").out
    context = run(*words, "--json").json
    assert all(block["path"] in explained for block in context["blocks"])
    assert "stands for " in explained
    assert explained.count("dry run") == 1


def test_explain_as_json_is_the_explanation(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Rules and figures of blocks and cache points, beside the account and the decisions."""
    words = ("render", simulated["id"], "--policy", "cut_point", "--max-tokens", 1500)
    explained, context = run(*words, "--explain", "--json").json, run(*words, "--json").json
    for key in ("fingerprint", "blocks", "account", "decisions"):
        assert explained[key] == context[key]
    assert "entries" not in explained
    assert [point["kind"] for point in explained["cache_points"]] == [p["kind"] for p in context["cache_points"]]
    summary = next(block for block in explained["blocks"] if block["rule"] == "summary")
    assert summary["facts"]["last"] == simulated["steps"][-1]["covers"]["ranges"][-1][1]


def test_compact_compacts_now_and_says_what_it_did(run: Callable[..., Done], recording: Path) -> None:
    """A compaction far below the limit frees tokens, and covers what was there."""
    run("import", recording)
    row = run("compact", sessions.SESSION, "--max-tokens", 1500, "--json").json
    (taken,) = row["decisions"]
    assert set(row) == {"conversation", "version", "decision", "decisions", "duration"}
    assert taken["reason"] == "forced"
    assert taken["facts"]["after_tokens"] < taken["facts"]["before_tokens"]
    assert run("verify", sessions.SESSION).code == 0


def test_compact_keeps_what_is_from_the_named_block_on(run: Callable[..., Done], recording: Path) -> None:
    """All before it is covered, however much the policy would keep."""
    run("import", recording)
    paths = [block["path"] for block in run("render", sessions.SESSION, "--json").json["blocks"]]
    chosen = next(path for path in reversed(paths) if path.endswith("user.prompt"))
    run("compact", sessions.SESSION, "--until", chosen)
    blocks = run("render", sessions.SESSION, "--json").json["blocks"]
    behind = paths[paths.index(chosen) :]
    assert [block["path"] for block in blocks][1:] == behind
    run("compact", sessions.SESSION, "--until", paths[0]).fails(Exit.USAGE, "covered by a summary")


def test_a_compaction_that_gains_nothing_is_refused(run: Callable[..., Done], tmp_path: Path) -> None:
    """A short conversation gives exit code 5 and one line with the reason."""
    run("import", sessions.write(tmp_path, sessions.rows(1, 1, words=8)))
    run("compact", sessions.SESSION).fails(Exit.REFUSED, "refused")


def test_a_context_that_cannot_fit_is_refused(run: Callable[..., Done], recording: Path) -> None:
    """Over the limit under a policy that never compacts: exit code 5, and the largest blocks by path."""
    run("import", recording)
    done = run("render", sessions.SESSION, "--policy", "none", "--max-tokens", 1000, "--json")
    done.fails(Exit.REFUSED, "limit is 1000", "tc:")


def test_a_system_prompt_that_leaves_no_room_is_refused(run: Callable[..., Done], recording: Path) -> None:
    """A fixed part above the trigger gives exit code 5."""
    run("import", recording)
    run("render", sessions.SESSION, "--max-tokens", 1000, "--system", "word " * 1500).fails(Exit.REFUSED, "fixed part")


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        (".", "this is a folder"),
        ("prompts/sytem", "no such file"),
        ("sytem.md", "no such file"),
        ("/dev/zero", "not a regular file"),
    ],
)
def test_a_mistyped_file_is_no_system_prompt(
    run: Callable[..., Done], simulated: dict[str, Any], named: str, problem: str
) -> None:
    """Its name would go to the model as the prompt, and nobody would notice."""
    run("render", simulated["id"], "--system", named).fails(Exit.USAGE, named, problem, "text")


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_option_is_no_system_prompt(run: Callable[..., Done], simulated: dict[str, Any], blank: str) -> None:
    """As of a shell's variable that is not set; nothing was taken for a folder without a name."""
    run("render", simulated["id"], "--system", blank).fails(Exit.USAGE, "--system is blank")


def test_a_reserve_that_leaves_no_room_is_named(run: Callable[..., Done], recording: Path) -> None:
    """Shortening a prompt of three tokens is no cure for a reserve of 16,384."""
    run("import", recording)
    words = ("render", sessions.SESSION, "--policy", "keep_ratio", "--max-tokens", 8000, "--system", "Be brief.")
    run(*words).fails(Exit.REFUSED, "output_reserve and safety_buffer are 16384", "lower output_reserve")


def test_a_database_is_no_system_prompt(run: Callable[..., Done], simulated: dict[str, Any], db: Path) -> None:
    """A database that is named in place of a text file is refused without being opened."""
    run("render", simulated["id"], "--system", db).fails(Exit.USAGE, db.name, "this is a database")
