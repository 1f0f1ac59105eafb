from __future__ import annotations

import asyncio
import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.forgetting.planted import PLAIN, UNICODE, left_in, places_left, plant
from timeline import Timeline, open_store
from timeline.blocks import ToolCall, UserPrompt
from timeline.cli.exits import Exit
from timeline.events import ParentLink

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


@pytest.fixture
def planted(run: Callable[..., Done], db: Path) -> Path:
    """Make the database of a session that handled secrets."""
    del run  # it looks at a database that is not there yet

    async def fill() -> None:
        async with await open_store(db) as store:
            await plant(store)

    asyncio.run(fill())
    return db


def test_find_subject_lists_every_place_as_redact_takes_it(run: Callable[..., Done], planted: Path) -> None:
    """With conversation, kind and how often; in other case too."""
    before = planted.read_bytes()
    found = run("find-subject", PLAIN.upper(), "--json").json
    assert found["text"] == PLAIN.upper()
    assert set(found["places"][0]) == {"conversation", "place", "kind", "path", "exact", "times"}
    assert {place["kind"] for place in found["places"]} == {"block", "summary", "title", "event", "value"}
    shown = run("find-subject", PLAIN).out
    assert "value:" in shown
    assert "ar:turn_1.user.prompt" in shown
    assert "anywhere" in run("find-subject", "nothing of the kind").out
    assert {p["conversation"] for p in run("find-subject", PLAIN, "cards.late", "--json").json["places"]} <= {
        "cards.late"
    }
    assert planted.read_bytes() == before


def test_redact_is_a_dry_run_until_it_is_confirmed(run: Callable[..., Done], planted: Path) -> None:
    """Its figures are those of the run with --yes, and the file stays as it is."""
    before = planted.read_bytes()
    words = ("redact", "cards", "@2", "@3", "--reason", "a password")
    dry = run(*words, "--json").json
    told = run(*words).out
    assert planted.read_bytes() == before
    assert f"timeline redact … --yes --db {planted}" in told
    assert "backups" in told
    done = run(*words, "--yes", "--json").json
    assert (dry["dry_run"], dry["physical"], done["dry_run"], done["physical"]) == (True, False, False, True)
    assert set(done) == {"dry_run", "conversations", "reached", "rewritten", "left", "physical", "not_reached"}
    assert (done["conversations"], done["rewritten"]) == (dry["conversations"], dry["rewritten"])
    assert run("read", "cards", "@2").out.strip().endswith("[redacted]")


def test_what_is_found_goes_into_redact(run: Callable[..., Done], planted: Path, tmp_path: Path) -> None:
    """As a file; afterwards nothing is found, and no byte is left."""
    for text in (PLAIN, UNICODE):
        list_ = tmp_path / "found.json"
        list_.write_text(run("find-subject", text, "--json").out, encoding="utf-8")
        done = run("redact", "--from", list_, "--reason", "asked for", "--yes", "--json")
        assert done.code == 0, done.err
        assert run("find-subject", text, "--json").json["places"] == []
    assert places_left(planted) == {}
    for id_ in ("cards", "cards.early", "cards.late"):
        assert run("verify", id_).code == 0
        assert left_in(run("export", id_).out.encode()) == 0


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("locale", ["cp1252", "ascii"])
def test_what_is_found_goes_into_redact_through_a_pipe_whatever_the_locale(
    run: Callable[..., Done], command: list[str], locale: str
) -> None:
    """Pipes of `timeline` are UTF-8 on both ends: a name beyond the locale's letters is redacted, too."""
    words = [*command, "redact", "--from", "-", "--reason", "asked for", "--yes", "--json"]
    found = run("find-subject", UNICODE, "--json").out.encode()
    done = subprocess.run(
        words, input=found, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": locale}
    )
    assert done.returncode == 0, done.stderr
    assert run("find-subject", UNICODE, "--json").json["places"] == []


async def _say_it_in(file: Path, *conversations: str) -> None:
    """Append it to conversations, and render."""
    async with open_store(file) as store:
        for id_ in conversations:
            timeline = await Timeline.open(store, id_)
            await timeline.append(UserPrompt(text=f"Once more {PLAIN}."))
            await timeline.render()


def _listed(run: Callable[..., Done], file: Path) -> Path:
    file.write_text(run("find-subject", PLAIN, "--json").out, encoding="utf-8")
    return file


def test_a_conversation_of_a_list_that_refuses_does_not_keep_the_others_from_being_redacted(
    run: Callable[..., Done], planted: Path, tmp_path: Path
) -> None:
    """One was erased since the list was made; the exit code says so."""
    asyncio.run(_say_it_in(planted, "a", "b"))
    list_ = _listed(run, tmp_path / "found.json")
    assert run("erase", "a", "--yes").code == 0
    done = run("redact", "--from", list_, "--yes")
    assert done.code == Exit.NOT_FOUND
    assert "'a' was erased" in done.err
    assert run("find-subject", PLAIN, "--json").json["places"] == []
    assert left_in(planted.read_bytes(), (PLAIN,)) == 0


def test_a_dry_run_of_a_list_counts_what_several_conversations_share_once(
    run: Callable[..., Done], planted: Path, tmp_path: Path
) -> None:
    """A fork's contexts are written anew for its own blocks, and for those of its parent."""
    asyncio.run(_say_it_in(planted, "cards.early", "cards.late"))
    list_ = _listed(run, tmp_path / "found.json")
    dry = run("redact", "--from", list_, "--json").json
    done = run("redact", "--from", list_, "--yes", "--json").json
    places = ("payloads", "summaries", "contexts", "calls", "values")
    assert [dry["reached"].get(place) for place in places] == [done["reached"].get(place) for place in places]
    assert set(dry["rewritten"]) == set(done["rewritten"])


async def _name_a_call_in(file: Path, *conversations: str) -> None:
    """Append a call by whose id a path says it to conversations, each sent with a system prompt that they share."""
    async with open_store(file) as store:
        for id_ in conversations:
            timeline = await Timeline.open(store, id_)
            await timeline.append(ToolCall(call_id=f"{PLAIN}.{id_}", name="bash"))
            await timeline.render(system=f"The key is {PLAIN}.")


def test_a_list_of_several_conversations_is_told_the_paths_that_stay_in_each(
    run: Callable[..., Done], planted: Path, tmp_path: Path
) -> None:
    """Each is a conversation to erase."""
    asyncio.run(_name_a_call_in(planted, "a", "b"))
    list_ = _listed(run, tmp_path / "found.json")
    for confirmed in ([], ["--yes"]):
        paths = run("redact", "--from", list_, *confirmed, "--json").json["left"]["paths"]
        assert [f"`timeline erase {id_}`" in paths for id_ in ("a", "b")] == [True, True]


def test_a_text_that_went_with_the_last_conversation_of_a_list_is_not_said_to_stay(
    run: Callable[..., Done], planted: Path, tmp_path: Path
) -> None:
    """While only the first was redacted, the second still named it."""
    asyncio.run(_name_a_call_in(planted, "a", "b"))
    done = run("redact", "--from", _listed(run, tmp_path / "found.json"), "--yes", "--json").json
    assert "values" not in done["left"]
    assert b"The key is" in planted.read_bytes()
    assert f"The key is {PLAIN}".encode() not in planted.read_bytes()


def test_a_redacted_call_says_so(run: Callable[..., Done], planted: Path) -> None:
    """`call --body` has an exit code and a line, not a traceback; `diff` too."""
    run("redact", "cards", "@2", "--reason", "a password", "--yes")
    run("call", "cards", 1, "--body").fails(Exit.USAGE, "redacted")
    run("diff", "cards", "#1", "#2").fails(Exit.USAGE, "redacted")
    assert run("calls", "cards").code == 0
    assert planted.exists()


def test_erase_is_a_dry_run_and_refuses_while_forks_share_the_past(run: Callable[..., Done], planted: Path) -> None:
    """Until --forks says what becomes of them; then the id is refused for ever."""
    before = planted.read_bytes()
    run("erase", "cards").fails(Exit.REFUSED, "cards.early", "forks")
    dry = run("erase", "cards", "--forks", "erase", "--json").json
    assert set(dry["conversations"]) == {"cards", "cards.early", "cards.late"}
    copies = run("erase", "cards", "--forks", "copy").out
    assert "dry run" in copies
    assert "beyond this database: backups" in copies
    assert "server" not in copies
    assert "server" not in dry["not_reached"]
    assert planted.read_bytes() == before
    done = run("erase", "cards", "--forks", "erase", "--reason", "asked for", "--yes", "--json").json
    assert done["reached"]["payloads"] == dry["reached"]["payloads"]
    assert places_left(planted) == {}
    run("show", "cards").fails(Exit.NOT_FOUND, "erased", "asked for")
    run("erase", "none", "--yes").fails(Exit.NOT_FOUND, "none")
    assert run("erase", "cards", "--yes").code == 0


def test_a_dry_run_names_the_texts_that_stay_since_other_conversations_name_them(
    run: Callable[..., Done], planted: Path
) -> None:
    """It counts only those that go."""
    asyncio.run(_name_a_call_in(planted, "a", "b"))
    words = ("redact", "a", "@2", "--text", PLAIN, "--json")
    dry, done = run(*words).json, run(*words, "--yes").json
    assert "other conversations name them" in dry["left"]["values"]
    assert (dry["left"], dry["reached"].get("values")) == (done["left"], done["reached"].get("values"))


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("choice", ["refuse", "erase", "copy"])
def test_a_dry_run_of_an_erasure_is_refused_as_the_erasure_is(run: Callable[..., Done], choice: str) -> None:
    """Under a legal hold on it or on a fork that would go; what is erased already may be erased once more."""
    assert run("retention", "cards.late", "--hold").code == 0
    for id_ in ("cards.late", "cards", "cards.late"):
        dry = run("erase", id_, "--forks", choice)
        done = run("erase", id_, "--forks", choice, "--yes")
        assert (dry.code, dry.err) == (done.code, done.err), id_
    run("retention", "cards.late", "--no-hold")
    for _ in range(2):
        dry = run("erase", "cards.late", "--forks", choice, "--json")
        done = run("erase", "cards.late", "--forks", choice, "--yes", "--json")
        assert (dry.code, dry.json["conversations"], dry.json["left"]) == (
            done.code,
            done.json["conversations"],
            done.json["left"],
        )


@pytest.mark.usefixtures("planted")
def test_a_dry_run_of_an_erasure_counts_the_summaries_that_go(run: Callable[..., Done]) -> None:
    """As the erasure does: of a fork only its own."""
    for id_ in ("cards.early", "cards.late", "cards"):
        dry, done = run("erase", id_, "--json").json, run("erase", id_, "--yes", "--json").json
        for place in ("conversations", "payloads", "summaries"):
            assert dry["reached"].get(place) == done["reached"].get(place), (id_, place)
    assert done["reached"]["summaries"]


def test_erase_names_the_conversations_that_begin_with_a_summary_of_what_goes(
    run: Callable[..., Done], db: Path
) -> None:
    """Dry run and erasure name them, those that were begun from these too, until their summaries are redacted."""

    async def hand_over() -> list[str]:
        async with await open_store(db) as store:
            timeline = await Timeline.open(store, "cards")
            await timeline.append(UserPrompt(text=f"Never print {PLAIN}."))
            fresh = await timeline.hand_over()
            return [fresh.id, (await fresh.hand_over()).id]

    begun = asyncio.run(hand_over())
    for more in ((), ("--yes",), ("--yes",)):
        left = run("erase", "cards", *more, "--json").json["left"]["handed_over"]
        assert all(f"`timeline redact {id_} @3`" in left for id_ in begun)
    for id_ in begun:
        assert run("redact", id_, "@3", "--yes").code == Exit.OK
    assert "handed_over" not in run("erase", "cards", "--yes", "--json").json["left"]
    assert PLAIN.encode() not in db.read_bytes()


def test_erase_names_the_subagents_of_what_goes_until_they_are_erased(run: Callable[..., Done], db: Path) -> None:
    """A subagent's conversation has the words of the task; one of a subagent of its own is named with it."""

    async def ask_others() -> None:
        async with await open_store(db) as store:
            await Timeline.open(store, "cards")
            for id_, parent in (("cards.look", "cards"), ("cards.look.far", "cards.look"), ("other", "nobody")):
                link = ParentLink(conversation=parent, relation="subagent")
                timeline = await Timeline.open(store, id_, parent=link)
                await timeline.append(UserPrompt(text=f"Look for {PLAIN}."))

    asyncio.run(ask_others())
    for more in ((), ("--yes",)):
        left = run("erase", "cards", *more, "--json").json["left"]["subagents"]
        assert [id_ for id_ in ("cards.look", "cards.look.far", "other") if f"`timeline erase {id_}`" in left] == [
            "cards.look",
            "cards.look.far",
        ]
    for id_ in ("cards.look.far", "cards.look"):
        assert "subagents" not in run("erase", id_, "--yes", "--json").json["left"]
    assert "subagents" not in run("erase", "cards", "--yes", "--json").json["left"]


def test_what_cannot_be_redacted_is_said_in_a_line(run: Callable[..., Done], planted: Path, tmp_path: Path) -> None:
    """Missing places, unknown ones, a file that is something else, a choice that there is not."""
    run("redact", "cards").fails(Exit.USAGE, "redact ID")
    run("redact", "cards", "@999", "--yes").fails(Exit.NOT_FOUND, "@999")
    run("redact", "cards", "@1", "--yes").fails(Exit.USAGE, "not a block")
    for other in (json.dumps([1]), "[" * 100_000):
        (tmp_path / "no.json").write_text(other, encoding="utf-8")
        run("redact", "--from", tmp_path / "no.json").fails(Exit.USAGE, "find-subject --json")
    run("redact", "--from", tmp_path / "missing.json").fails(Exit.USAGE, "missing.json")
    run("redact", "cards", "@2", "--from", tmp_path / "no.json").fails(Exit.USAGE, "not both")
    run("erase", "cards", "--forks", "keep").fails(Exit.USAGE, "refuse, erase or copy")
    run("find-subject", " ").fails(Exit.USAGE, "is blank")
    assert planted.exists()
