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
    figures |= {"scavenged", "calls"}
    assert set(VerifyReport.model_fields) - figures == set(INVARIANTS)
