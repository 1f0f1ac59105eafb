from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.abridged import read_numbered
from tests.cli import sessions
from timeline import open_store
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

RESULT = "tc:turn_1.toolu_1-1.result"
CALL = "tc:turn_1.toolu_1-1.call"


@pytest.fixture
def imported(run: Callable[..., Done], recording: Path) -> str:
    """Import the small session; return its id."""
    assert run("import", recording).code == 0
    return sessions.SESSION


def states(run: Callable[..., Done], id_: str, *options: object) -> dict[str, str]:
    """Return the state of every block by path."""
    return {row["path"]: row["state"] for row in run("show", id_, *options, "--json").json if row["path"]}


# undo


def test_undo_takes_the_newest_compaction_back(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """The answer names it; the summary before it stands again, and the log verifies."""
    versions = [step["version"] for step in simulated["steps"]]
    row = run("undo", simulated["id"], "--json").json
    assert set(row) == {"conversation", "version", "decision", "reverted", "before_tokens", "after_tokens"}
    assert row["reverted"] == versions[-1:]
    assert row["after_tokens"] > row["before_tokens"]
    covered = {event["covered_by"] for event in run("show", simulated["id"], "--json").json} - {None}
    assert covered == {versions[-2]}
    assert run("verify", simulated["id"]).code == 0


def test_undo_says_to_people_what_it_did(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """And that renders do not compact again by themselves."""
    done = run("undo", simulated["id"])
    assert done.code == 0
    assert f"undid the compaction of version {simulated['steps'][-1]['version']}" in done.out
    assert "until you run `timeline compact`" in done.out


def test_undo_holds_under_every_policy(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """A render under the conversation's own only reports, and one under another limit, too."""
    run("undo", simulated["id"])
    words = ("render", simulated["id"], "--now", "2026-01-05T08:10:00Z", "--json")
    for other in ((), ("--max-tokens", 1200), ("--policy", "cut_point", "--max-tokens", 1300)):
        held = run(*words, *other).json["decisions"]
        assert [taken["kind"] for taken in held] == ["held"]


def test_an_earlier_compaction_needs_the_cascade(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """One line says which one stands in the way, and the cure."""
    versions = [step["version"] for step in simulated["steps"]]
    refused = run("undo", simulated["id"], "--version", versions[0])
    refused.fails(Exit.REFUSED, str(versions[1]), "timeline undo --cascade")
    row = run("undo", simulated["id"], "--version", versions[0], "--cascade", "--json").json
    assert row["reverted"] == versions[::-1]
    assert set(states(run, simulated["id"]).values()) == {"visible", "omitted"}
    assert run("undo", simulated["id"]).code == Exit.REFUSED


def test_several_compactions_are_named_in_a_row(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Newest first."""
    versions = [step["version"] for step in simulated["steps"]]
    done = run("undo", simulated["id"], "--version", versions[0], "--cascade")
    assert f"undid the compactions of versions {', '.join(map(str, versions[::-1]))}\n" in done.out


def test_nothing_to_undo_is_refused_in_one_line(run: Callable[..., Done], imported: str) -> None:
    """With what there is to look at."""
    run("undo", imported).fails(Exit.REFUSED, "none is in force", "timeline show")
    run("undo", "nope").fails(Exit.NOT_FOUND, "nope")


# fork


def test_a_fork_goes_on_from_a_version(run: Callable[..., Done], imported: str) -> None:
    """It is listed with its parent, and holds what both share."""
    row = run("fork", imported, "--at", 8, "--as", "mine", "--title", "Another way", "--json").json
    assert row == {"conversation": "mine", "version": 9, "decision": "fork", "base": 8}
    listed = {info["id"]: info for info in run("ls", "--json").json}
    assert listed["mine"]["title"] == "Another way"
    assert listed["mine"]["parent"]["conversation"] == imported
    mine = states(run, "mine")
    assert 0 < len(mine) < len(states(run, imported))
    assert run("read", "mine", next(iter(mine))).code == 0
    assert run("verify", "mine").code == 0


def test_a_fork_without_options_begins_at_the_end(run: Callable[..., Done], imported: str) -> None:
    """And is told to people."""
    done = run("fork", imported)
    version = run("ls", "--json").json[0]["version"]
    assert done.out == (
        f"{imported}.fork-{version}  version {version + 1}\ncontinues {imported} from version {version}\n"
    )


def test_an_id_that_is_in_use_cannot_be_forked_to(run: Callable[..., Done], imported: str) -> None:
    """The cure is another id."""
    run("fork", imported, "--as", imported).fails(Exit.USAGE, imported, "--as")


def test_a_blank_id_begins_no_fork(run: Callable[..., Done], imported: str) -> None:
    """As of a variable that is not set: the fork would have an id that nobody asked for."""
    run("fork", imported, "--as", "").fails(Exit.USAGE, "--as is blank")
    assert len(run("ls", "--json").json) == 1


@pytest.mark.parametrize("version", [0, 9999])
def test_a_version_that_is_not_there_cannot_be_forked(run: Callable[..., Done], imported: str, version: int) -> None:
    """The line says which there are."""
    run("fork", imported, "--at", version).fails(Exit.NOT_FOUND, "versions 1 to")


# hide, reveal


def test_hide_puts_a_line_in_a_blocks_place(run: Callable[..., Done], imported: str) -> None:
    """Shown at once, and sent from now on; the block itself is still read in full."""
    row = run("hide", imported, RESULT, "--json").json
    assert (row["conversation"], row["decision"]) == (imported, "hide")
    [block] = row["blocks"]
    assert (block["path"], block["state"], block["pinned"]) == (RESULT, "hidden", False)
    assert block["shown_tokens"] < block["tokens"]
    assert states(run, imported)[RESULT] == "hidden"
    body = run("render", imported, "--wire", "anthropic").out
    addresses = re.findall(r"hidden\] (@\d+)", body)
    assert any("line1-1-1" in run("read", imported, address).out for address in addresses)
    assert "line1-1-1" in run("read", imported, RESULT).out
    assert run("verify", imported).code == 0


def test_hide_shows_people_the_line(run: Callable[..., Done], imported: str) -> None:
    """With the size before and after."""
    done = run("hide", imported, RESULT)
    assert done.out.splitlines()[-1].strip().startswith("[Bash(make part-1-1): ")
    assert " -> " in done.out


def test_a_text_of_ones_own_is_shown_instead(run: Callable[..., Done], imported: str) -> None:
    """As it was given."""
    run("hide", imported, RESULT, "--text", "It was long.")
    assert "It was long." in run("render", imported, "--wire", "anthropic").out


def test_omit_takes_the_whole_round_out(run: Callable[..., Done], imported: str) -> None:
    """And `reveal` brings all of it back."""
    row = run("hide", imported, RESULT, "--omit", "--json").json
    assert {block["state"] for block in row["blocks"]} == {"omitted"}
    assert {CALL, RESULT} <= {block["path"] for block in row["blocks"]}
    assert RESULT not in run("render", imported, "--wire", "anthropic").out
    row = run("reveal", imported, CALL, "--json").json
    assert {block["state"] for block in row["blocks"]} == {"visible"}
    assert states(run, imported)[RESULT] == "visible"


def test_omit_and_text_do_not_go_together(run: Callable[..., Done], imported: str) -> None:
    """Neither is forgotten."""
    run("hide", imported, RESULT, "--omit", "--text", "x").fails(Exit.USAGE, "--omit", "--text")


def test_what_may_not_be_hidden_is_refused(run: Callable[..., Done], imported: str) -> None:
    """In one line with the reason; a path that is nowhere is not found."""
    run("pin", imported, RESULT)
    run("hide", imported, RESULT).fails(Exit.REFUSED, RESULT, "unpin it first")
    run("reveal", imported, CALL).fails(Exit.REFUSED, "it is visible, not hidden")
    run("hide", imported, "tc:nope").fails(Exit.NOT_FOUND, "tc:nope")


def test_a_covered_block_is_told_to_be_covered(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """It exists, but there is nothing to hide."""
    run("hide", simulated["id"], RESULT).fails(Exit.REFUSED, "a summary covers it")


# pin, unpin


def test_pin_and_unpin_go_with_the_round(run: Callable[..., Done], imported: str) -> None:
    """A cut never divides what belongs together."""
    pinned = run("pin", imported, RESULT, "--json").json
    assert {block["pinned"] for block in pinned["blocks"]} == {True}
    assert {CALL, RESULT} <= {block["path"] for block in pinned["blocks"]}
    again = run("pin", imported, CALL)
    assert "nothing changed" in again.out
    unpinned = run("unpin", imported, CALL)
    assert f"{RESULT}\n" in unpinned.out
    assert "pinned" not in unpinned.out
    run("unpin", imported, CALL).fails(Exit.REFUSED, "no decision pinned it")


def test_a_pinned_abridged_result_is_one_line(run: Callable[..., Done], tmp_path: Path) -> None:
    """With both sizes: what is left of it is as long as a file."""
    db = tmp_path / "numbered.db"

    async def read() -> None:
        async with open_store(str(db)) as store:
            await read_numbered(store)

    asyncio.run(read())
    done = run("pin", "c", "@3", "--db", db)
    [line] = [line for line in done.out.splitlines() if "@3" in line]
    assert line.startswith("abridged, pinned  ")
    assert len(done.out.splitlines()) == 3


def test_a_pinned_block_is_carried(run: Callable[..., Done], imported: str) -> None:
    """Behind the summary of everything around it."""
    assert "visible, pinned" in run("pin", imported, RESULT).out
    run("compact", imported, "--max-tokens", 1500)
    assert states(run, imported)[RESULT] in {"carried", "hidden"}


# the past


def test_show_and_render_look_at_a_past(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Before its first compaction every block was visible; its time was its own."""
    version = simulated["steps"][0]["version"] - 2  # its lease stands between
    past = run("show", simulated["id"], "--at", version, "--json").json
    assert len(past) == version
    assert {row["state"] for row in past} <= {"visible", None}
    assert f"version {version}" in run("show", simulated["id"], "--at", version).out
    context = run("render", simulated["id"], "--at", version, "--max-tokens", 100_000, "--json").json
    assert (context["version"], context["decisions"]) == (version, [])
    assert run("render", simulated["id"], "--max-tokens", 100_000, "--json").json["version"] > version


def test_the_past_is_not_there_for_every_version(run: Callable[..., Done], imported: str) -> None:
    """One line says which versions are."""
    run("show", imported, "--at", 0).fails(Exit.NOT_FOUND, "versions 1 to")
    run("render", imported, "--at", 9999).fails(Exit.NOT_FOUND, "versions 1 to")


def test_nothing_is_recorded_in_the_past(run: Callable[..., Done], imported: str) -> None:
    """The two options exclude one another."""
    run("render", imported, "--at", 3, "--record").fails(Exit.USAGE, "--at", "--record")


def test_decisions_take_addresses(run: Callable[..., Done], imported: str) -> None:
    """In two words or in one; the answer prints the address of each block that changed."""
    version = next(row["version"] for row in run("show", imported, "--json").json if row["path"] == RESULT)
    assert f"  @{version}  {RESULT}\n" in run("hide", imported, f"@{version}").out
    assert states(run, imported)[RESULT] == "hidden"
    for decision, state in (("reveal", "visible"), ("pin", "visible"), ("unpin", "visible")):
        assert run(decision, f"{imported}@{version}").code == Exit.OK
        assert states(run, imported)[RESULT] == state


def test_a_turn_is_taken_back_and_given_again(run: Callable[..., Done], imported: str) -> None:
    """From a block of it on, and in one word with the conversation; `reveal` gives all of it again."""
    rows = run("show", imported, "--json").json
    first = next(row for row in rows if row["type"] == "user.prompt" and row["version"] > rows[0]["version"])
    later = [row["path"] for row in rows if row["path"] and row["version"] >= first["version"]]
    left = run("go-back", f"{imported}@{first['version']}", "--json").json
    assert (left["decision"], [block["path"] for block in left["blocks"]]) == ("go-back", later)
    assert {states(run, imported)[path] for path in later} == {"omitted"}
    assert "nothing changed" in run("go-back", imported, first["path"]).out
    run("reveal", imported, first["path"])
    assert "omitted" not in {states(run, imported)[path] for path in later}


def test_without_a_block_the_newest_prompt_is_taken_back(run: Callable[..., Done], imported: str) -> None:
    """In one word less, as `/undo` does."""
    newest = [row["path"] for row in run("show", imported, "--json").json if row["type"] == "user.prompt"][-1]
    assert run("go-back", imported, "--json").json["blocks"][0]["path"] == newest
    assert states(run, imported)[newest] == "omitted"
