from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from timeline.digest import Command, Digest, FileUse, ToolOutputs
from timeline.ports import Expected
from timeline.store.codec import encode
from timeline.store.frequent_types import RARE_WHERE
from timeline.store.postgres import create
from timeline.store.sqlite import query_statements, statements
from timeline.store.sqlite.appending import append
from timeline.store.sqlite.files import connect_writer
from timeline.store.sqlite.search import catch_up
from timeline.store.testing import compaction, events

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

WORK = Digest(
    tool_outputs=(ToolOutputs(tool="Bash", count=2, tokens=90, errors=1),),
    files_read=tuple(FileUse(file=f"src/{n}.py", tool="Read", path=f"tc:{n}") for n in range(5)),
    commands=(Command(command="make", path="tc:c", failed=True),),
)
FILTERS = ("conversation", "tool", "path_glob", "prefix", "command", "error")
PAGES_OF_DIGESTS = {
    f"digests by {', '.join(given) or 'nothing'}": query_statements.page_of_digests(frozenset(given))
    for size in range(len(FILTERS) + 1)
    for given in combinations(FILTERS, size)
    if "path_glob" in given or "prefix" not in given
}
FACT_CONDITIONS = ("conversation", "kinds", "failed", "tool", "status", "subject", "glob", "word", "time")
PAGES_OF_FACTS = {
    f"facts by {', '.join(given) or 'nothing'}": query_statements.page_of_facts(frozenset(given))
    for size in range(len(FACT_CONDITIONS) + 1)
    for given in combinations(FACT_CONDITIONS, size)
}
MODULES = {**vars(statements), **vars(query_statements), "INSERT_EVENT": statements.INSERT_EVENTS[1]}
OF_CONVERSATIONS = {
    f"{name}.{kind}": text
    for name, each in {"WHOLE": statements.WHOLE, "BARE": statements.BARE}.items()
    for kind, text in each._asdict().items()
}
STATEMENTS = {
    name: text
    for name, text in {**MODULES, **OF_CONVERSATIONS, **PAGES_OF_DIGESTS, **PAGES_OF_FACTS}.items()
    if isinstance(text, str) and re.match("(SELECT|INSERT|UPDATE|WITH) .*[^ ]$", text)
}
NAMED = dict.fromkeys(re.findall(r":(\w+)", " ".join(STATEMENTS.values())))
STORED = (
    "conversations",
    "events",
    "snapshots",
    "stored_values",
    "migrations",
    "compactions",
    "digest_entries",
    "facts",
)
TABLES = (*STORED, "e", "c", "s", "v", "d", "x")
OF_A_REPAIR = {"REWRITTEN_SINCE", "ERASED_AND_LISTED", "WITHOUT_BASE"}
"""Read a number of each conversation, once an examination or for a thousand rows that a repair writes; nothing else
uses them."""

OF_THE_LIST = {"WHOLE.recent_conversations", "BARE.recent_conversations", "CONVERSATION_COUNT"}
"""Look at when each conversation changed, which has no index: each append would write it (ADR 0099)."""


@pytest.fixture(scope="module", params=["plain", "analysed"])
def connection(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[sqlite3.Connection]:
    """A database with many small conversations and one long one, with and without statistics for the planner."""
    connection = connect_writer(tmp_path_factory.mktemp("plans") / "agent.db", "normal", 1.0).connection
    connection.execute("PRAGMA synchronous = OFF")
    for number in range(200):
        batch = [*events(2), compaction(1, 1, digest=WORK), *events(500 if number == 0 else 2)]
        append(connection, encode(f"c{number}", batch, Expected.ANY, {}, None))
    catch_up(connection, 10**6)
    if request.param == "analysed":
        connection.execute("ANALYZE")
    yield connection
    connection.close()


def _plan(connection: sqlite3.Connection, statement: str) -> list[str]:
    parameters = NAMED if re.search(r":[a-z]", statement) else (None,) * statement.count("?")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
    return [detail for *_, detail in rows]


def test_no_statement_scans_a_table(connection: sqlite3.Connection) -> None:
    """Every table is searched by an index or by its key that is there: none is read whole to make a passing one."""
    whole = re.compile(rf"SCAN ({'|'.join(TABLES)})\b|BLOOM FILTER|.*AUTOMATIC")
    plans = {name: _plan(connection, STATEMENTS[name]) for name in STATEMENTS.keys() - OF_A_REPAIR - OF_THE_LIST}
    assert len(plans) > 200
    assert {name: plan for name, plan in plans.items() if any(map(whole.match, plan))} == {}


def test_a_page_of_digests_is_walked_by_position_without_sorting(connection: sqlite3.Connection) -> None:
    """The index of the most selective filter leads, other filters are looked up; nothing is sorted."""
    leads = {
        "conversation": "SEARCH d USING INDEX compactions_within (conversation=? AND position>?)",
        "tool": "SEARCH t USING COVERING INDEX digest_tools (tool=? AND position>?)",
        "prefix": "SEARCH x USING COVERING INDEX digest_files (subject>? AND subject<?)",
        "": "SEARCH d USING INTEGER PRIMARY KEY (rowid>?)",
    }
    for name, statement in PAGES_OF_DIGESTS.items():
        plan = _plan(connection, statement)
        assert next(step for lead, step in leads.items() if lead in name) in plan, name
        assert not [step for step in plan if "TEMP B-TREE" in step], (name, plan)


def test_a_page_of_facts_is_walked_by_position_without_sorting(connection: sqlite3.Connection) -> None:
    """The conversation's index leads, else the key: a page costs what it walks, however much is behind it."""
    for name, statement in PAGES_OF_FACTS.items():
        plan = _plan(connection, statement)
        lead = "INDEX facts_within (conversation=? AND " if "conversation" in name else "PRIMARY KEY ("
        assert any(f"SEARCH f USING {lead}(position,number)>" in step for step in plan), (name, plan)
        assert not [step for step in plan if "TEMP B-TREE" in step], (name, plan)


def test_a_search_reads_the_index_and_looks_events_up_by_position(connection: sqlite3.Connection) -> None:
    """Only the best are sorted; of the log no more than the time of what was found is read."""
    steps = _plan(connection, query_statements.SEARCH_BETWEEN)
    assert [re.sub(r"INDEX .*", "INDEX", step) for step in steps] == [
        "SCAN f VIRTUAL TABLE INDEX",
        "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)",
        "USE TEMP B-TREE FOR ORDER BY",
    ]


@pytest.mark.parametrize("name", ["BY_PATH", "PATHS_IN_USE", "PATHS_BETWEEN", "BY_VERSION"])
def test_look_ups_in_a_fork_take_one_search_for_each_ancestor(connection: sqlite3.Connection, name: str) -> None:
    """The lineage is found once, parent by parent, and the events by the full key of an index."""
    plan = _plan(connection, STATEMENTS[name])
    assert plan.count("SEARCH c USING INTEGER PRIMARY KEY (rowid=?)") == 1
    assert re.fullmatch(r"SEARCH e USING INDEX \w+ \(conversation=\? AND (path|version)[=>].*\)", plan[-1]), plan


@pytest.mark.parametrize("name", ["PAGE", "PAGE_OF_TYPES", "PAGE_OF_ALL"])
def test_a_page_is_read_in_the_order_of_an_index(connection: sqlite3.Connection, name: str) -> None:
    """Nothing is sorted: a page costs what it holds, however much stands behind it."""
    assert not [step for step in _plan(connection, STATEMENTS[name]) if "TEMP B-TREE" in step]


def test_rare_events_are_read_from_their_own_index(connection: sqlite3.Connection) -> None:
    """Reading all compactions touches an index that holds nothing but rare events."""
    for name, index in (("PAGE_OF_RARE_TYPES", "events_rare_within"), ("PAGE_OF_ALL_OF_RARE_TYPES", "events_rare")):
        plan = _plan(connection, STATEMENTS[name])
        assert any(f"SEARCH events USING COVERING INDEX {index} (" in step for step in plan), plan


def test_the_stored_indexes_of_rare_events_have_the_condition_of_the_statements(connection: sqlite3.Connection) -> None:
    """The databases that are there keep theirs: another one would need a migration, or every look-up scans."""
    stored = connection.execute("SELECT sql FROM sqlite_schema WHERE name IN ('events_rare', 'events_rare_within')")
    assert [sql.partition(" WHERE ")[2].strip() for (sql,) in stored] == [RARE_WHERE] * 2
    assert create._RARE == RARE_WHERE
