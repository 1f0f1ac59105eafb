from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from tests.downgrade import unpack
from timeline.audit.verify import VerifyReport
from timeline.cli.checking import INVARIANTS
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def test_a_sound_conversation_verifies(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Every invariant counts 0, every recorded context was rebuilt, and the exit code is 0."""
    done = run("verify", simulated["id"], "--json")
    assert done.code == 0
    assert done.json["ok"] is True
    assert {done.json[name] for name in INVARIANTS} == {0}
    assert done.json["renders"] == simulated["renders"]
    assert done.json["unverifiable"] == {}


def test_people_see_what_holds(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Each invariant has a line that says what it means."""
    out = run("verify", simulated["id"]).out
    assert all(meaning in out for meaning in INVARIANTS.values())
    assert f"{simulated['renders']} of {simulated['renders']} recorded contexts were rebuilt" in out


def test_without_an_id_every_conversation_is_verified(
    run: Callable[..., Done], simulated: dict[str, Any], recording: Path
) -> None:
    """The report over all is one object, with one report each."""
    run("import", recording)
    report = run("verify", "--json").json
    assert report["ok"] is True
    assert [c["conversation"] for c in report["conversations"]] == [simulated["id"], "session-1"]
    assert run("verify").code == 0


def test_the_table_counts_calls_beside_contexts(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """What cannot be rebuilt is of both, and never more than their sum."""
    assert run("redact", simulated["id"], "@2", "--yes").code == 0
    (report,) = run("verify", "--json").json["conversations"]
    names, row, *_ = (line.split("\t") for line in run("verify").out.splitlines())
    told = dict(zip(names, row, strict=True))
    counts = [int(told[name]) for name in ("contexts", "calls", "not rebuilt")]
    assert counts == [report["renders"], report["calls"], sum(report["unverifiable"].values())]
    assert 0 < counts[2] <= counts[0] + counts[1]


def test_a_flipped_byte_is_found_and_the_exit_code_tells(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path
) -> None:
    """An event that was changed behind the library's back breaks the verification, of this conversation and of all."""
    with closing(sqlite3.connect(db)) as connection, connection:
        unpack(connection)
        connection.execute("UPDATE events SET payload = replace(payload, 'part 1', 'part 9') WHERE version = 2")
    done = run("verify", simulated["id"], "--json")
    assert done.code == Exit.NOT_SO
    assert done.json["ok"] is False
    assert done.json["checksum"] == 1
    everything = run("verify")
    assert everything.code == Exit.NOT_SO
    assert "BROKEN" in everything.out
    assert "checksum" in everything.out


def test_every_count_of_the_report_is_explained() -> None:
    """An invariant that is added to the report needs a line for people, too."""
    figures = {"conversation", "ok", "events", "blocks", "renders", "compactions", "unverifiable", "problems"}
    figures |= {"scavenged", "calls", "head", "proved", "unproved", "rewritten", "proved_until", "rewritten_behind"}
    assert set(VerifyReport.model_fields) - figures == set(INVARIANTS)


def test_a_head_that_was_kept_proves_a_conversation(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """The report prints it; another one is no event's link, and what is no link is refused."""
    head = run("verify", simulated["id"], "--json").json["head"]
    assert f"head {head}" in run("verify", simulated["id"]).out
    done = run("verify", simulated["id"], "--head", head, "--json")
    assert (done.code, done.json["proved_until"]) == (Exit.OK, done.json["events"])
    assert run("verify", simulated["id"], "--head", "01" * 33).code == Exit.NOT_SO
    assert run("verify", simulated["id"], "--head", "01").code == Exit.USAGE
    assert run("verify", "--head", head).code == Exit.USAGE
    assert run("verify", simulated["id"], "--deep").code == Exit.USAGE


def test_what_is_derived_is_compared_and_made_anew(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path
) -> None:
    """A deep verification names it, a dry run of the repair changes nothing, and the repair mends it."""
    assert run("search", "part").code == Exit.OK
    assert run("verify", "--deep").code == Exit.OK
    with closing(sqlite3.connect(db)) as connection, connection:
        assert connection.execute("DELETE FROM compactions").rowcount > 0
    done = run("verify", "--deep", "--json")
    assert (done.code, done.json["ok"]) == (Exit.NOT_SO, False)
    assert {each["what"] for each in done.json["differences"]} == {"digests"}
    assert [each["conversation"] for each in done.json["conversations"]] == [simulated["id"]]
    planned = run("repair", "--json").json
    assert (planned["done"], planned["left"]) == (False, [])
    assert "timeline repair --yes" in run("repair").out
    assert run("repair", "--yes", "--json").json["mended"] == planned["mended"]
    assert run("verify", "--deep", "--json").json["differences"] == []
    assert "Nothing that is derived" in run("repair", "--yes").out


def test_what_no_log_gives_is_left_to_a_backup(run: Callable[..., Done], simulated: dict[str, Any], db: Path) -> None:
    """The repair says so, and its exit code too."""
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("UPDATE stored_values SET text = text || ' '")
    done = run("repair", "--yes")
    assert done.code == Exit.NOT_SO
    assert "timeline restore FILE --yes --db" in done.out
    assert simulated["id"]
