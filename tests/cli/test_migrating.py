from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import asyncpg
import pytest

from tests.cli.sessions import SESSION
from tests.postgres import schema_of, with_query, without
from tests.project.pages import code_blocks
from tests.project.sources import ROOT
from timeline import open_store
from timeline.cli.exits import Exit
from timeline.errors import StoreTooOld
from timeline.store.postgres import migrating, migrations
from timeline.store.testing import events

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

NOWHERE = "postgresql://ann:open-sesame@127.0.0.1:1/work"


def test_a_schema_is_made_once(run: Callable[..., Done], postgres_url: str) -> None:
    """A second run changes nothing, and another number of partitions is refused."""
    made = run("migrate", "--partitions", 2, "--db", postgres_url, "--json").json
    assert (made["before_schema"], made["partitions"]) == (0, 2)
    assert made["schema"] >= 1
    again = run("migrate", "--db", postgres_url, "--json").json
    assert again == {**made, "before_schema": made["schema"]}
    assert "the schema is up to date" in run("migrate", "--db", postgres_url).out
    for sql in ((), ("--sql",)):
        run("migrate", "--partitions", 3, *sql, "--db", postgres_url).fails(
            Exit.DATABASE, "2 partitions", "timeline copy"
        )


def test_an_administrator_can_run_what_sql_prints(run: Callable[..., Done], postgres_url: str) -> None:
    """A role that may not create tables finds a store then; without a server all is printed, and never a password."""
    run("ls", "--db", postgres_url).fails(Exit.DATABASE, "timeline migrate --db URL --sql")
    run("undo", "a", "--db", postgres_url).fails(Exit.DATABASE, "timeline migrate --db URL")
    printed = run("migrate", "--sql", "--db", postgres_url)

    async def apply() -> None:
        connection = await asyncpg.connect(without(postgres_url, "schema"))
        try:
            await connection.execute(printed.out)
        finally:
            await connection.close()
        async with open_store(with_query(postgres_url, migrate="no")) as store:
            assert [info async for info in store.conversations()] == []

    asyncio.run(apply())
    assert "holds no conversation" in run("ls", "--db", postgres_url).out
    assert run("migrate", "--sql", "--partitions", 4, "--db", NOWHERE).out.count(" PARTITION OF events ") == 4
    assert "open-sesame" not in run("migrate", "--sql", "--db", NOWHERE).out
    run("migrate", "--db", NOWHERE).fails(Exit.DATABASE, "postgresql://ann@127.0.0.1:1/work", "cannot be reached")


async def test_a_store_that_lost_the_number_of_its_partitions_is_damage_with_a_cure(
    run: Callable[..., Done], postgres_url: str
) -> None:
    """Whether it is brought up to date, or the SQL is printed."""
    async with open_store(postgres_url):
        pass
    connection = await asyncpg.connect(without(postgres_url, "schema"))
    await connection.execute(f"DELETE FROM {schema_of(postgres_url)}.store_meta")  # noqa: S608 - a name of the test's
    await connection.close()
    for words in (("migrate",), ("migrate", "--sql"), ("migrate", "--partitions", 2)):
        done = await asyncio.to_thread(run, *words, "--db", postgres_url)
        done.fails(Exit.DATABASE, "store_meta has no row", "timeline copy")


async def test_a_role_with_the_rights_of_the_quickstart_uses_the_store(
    run: Callable[..., Done], recording: Path, postgres_url: str
) -> None:
    """It reads and writes rows, and owns nothing; without the rights, the error names them."""
    schema = dict(parse_qsl(urlsplit(postgres_url).query))["schema"]
    role, page = f"app_{schema}", (ROOT / "docs" / "postgres" / "quickstart.md").read_text(encoding="utf-8")
    grants = [block.text for block in code_blocks(page) if block.language == "sql" and "GRANT" in block.text]
    statements = grants[0].replace("timeline_app", role).replace("SCHEMA timeline", f"SCHEMA {schema}")
    its_url = with_query(postgres_url.replace("postgres@", f"{role}@", 1), migrate="no")
    assert (await asyncio.to_thread(run, "migrate", "--db", postgres_url)).code == 0
    connection = await asyncpg.connect(without(postgres_url, "schema"))
    try:
        await connection.execute(f"CREATE ROLE {role} LOGIN")
        refused = await asyncio.to_thread(run, "ls", "--db", its_url)
        await connection.execute(statements)
        for words in (("import", recording), ("compact", SESSION), ("verify", "--deep"), ("search", "part")):
            done = await asyncio.to_thread(run, *words, "--db", its_url)
            assert done.code == 0, done.err
    finally:
        await connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
        await connection.close()
    refused.fails(Exit.DATABASE)


async def test_sql_prints_only_what_the_schema_lacks(
    run: Callable[..., Done], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a store that has all steps but the last, that one alone; run by an administrator, nothing is lacking."""
    last = ("comment on the events", lambda _: ["COMMENT ON TABLE events IS 'the log'"])
    async with open_store(postgres_url) as store:
        await store.append("a", events(1))
    steps = (*migrations.MIGRATIONS, last)
    for module in (migrations, migrating):
        monkeypatch.setattr(module, "MIGRATIONS", steps)
    with pytest.raises(StoreTooOld, match="timeline migrate"):
        await open_store(with_query(postgres_url, migrate="no"))
    printed = (await asyncio.to_thread(run, "migrate", "--sql", "--db", postgres_url)).out
    assert "COMMENT ON TABLE events" in printed
    assert "CREATE" not in printed.replace("CREATE TABLE IF NOT EXISTS migrations", "")
    connection = await asyncpg.connect(without(postgres_url, "schema"))
    await connection.execute(printed)
    with pytest.raises(asyncpg.UniqueViolationError):
        await connection.execute(printed)
    await connection.close()
    async with open_store(with_query(postgres_url, migrate="no")) as store:
        assert (await store.info("a")).version == 1
    printed = (await asyncio.to_thread(run, "migrate", "--sql", "--db", postgres_url)).out
    assert [line for line in printed.splitlines() if not line.startswith("--")] == []
    assert f"the schema is up to date ({len(steps)})" in printed


@pytest.mark.parametrize(
    "table",
    [
        "events (id bigint)",  # of the first step's names it is the one that the second step has to do with
        "migrations (id bigint, batch bigint)",
        "settings (id bigint)",
    ],
)
async def test_sql_that_meets_an_applications_tables_leaves_no_half_of_a_store(
    run: Callable[..., Done], postgres_url: str, table: str
) -> None:
    """Printed where the server cannot be reached, it is run by psql, which goes on behind a step that failed."""
    schema = schema_of(postgres_url)
    printed = (await asyncio.to_thread(run, "migrate", "--sql", "--db", with_query(NOWHERE, schema=schema))).out
    connection = await asyncpg.connect(without(postgres_url, "schema"))
    try:
        await connection.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.{table}")
        making_schema, *steps = printed.split("BEGIN;\n")
        await connection.execute(making_schema)
        for step in steps:
            with pytest.raises(asyncpg.PostgresError):
                await connection.execute(f"BEGIN;\n{step}")
            await connection.execute("ROLLBACK")
        there = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
    finally:
        await connection.close()
    assert [name for (name,) in there] == [table.partition(" ")[0]]


async def test_a_step_that_a_person_ran_a_part_of_is_named_with_the_way_out(
    run: Callable[..., Done], postgres_url: str
) -> None:
    """It was called a store that had lost its record, to be restored from a backup that nobody has."""
    printed = (await asyncio.to_thread(run, "migrate", "--sql", "--db", postgres_url)).out
    begun = printed[
        printed.index("CREATE TABLE IF NOT EXISTS migrations") : printed.index("CREATE TABLE conversations")
    ]
    connection = await asyncpg.connect(without(postgres_url, "schema"))
    try:
        await connection.execute(f'CREATE SCHEMA "{schema_of(postgres_url)}"')
        await connection.execute(f'SET search_path TO "{schema_of(postgres_url)}"; {begun}')
        for words in (("ls",), ("migrate",), ("migrate", "--sql")):
            done = await asyncio.to_thread(run, *words, "--db", postgres_url)
            done.fails(Exit.DATABASE, "only a part of what `timeline migrate --sql` prints was run", "drop its tables")
        await connection.execute("DROP TABLE migrations, store_meta")
    finally:
        await connection.close()
    assert (await asyncio.to_thread(run, "migrate", "--db", postgres_url)).code == 0


async def test_sql_needs_no_right_to_create_a_schema_that_is_there(run: Callable[..., Done], postgres_url: str) -> None:
    """As `timeline migrate` needs none: an administrator made the schema, and its owner makes the tables."""
    schema = schema_of(postgres_url)
    role = f"owner_{schema}"
    printed = (await asyncio.to_thread(run, "migrate", "--sql", "--db", postgres_url)).out
    connection = await asyncpg.connect(without(postgres_url, "schema"))
    try:
        await connection.execute(f"CREATE ROLE {role}; CREATE SCHEMA {schema} AUTHORIZATION {role}; SET ROLE {role}")
        await connection.execute(printed)
        assert await connection.fetchval(f"SELECT max(number) FROM {schema}.migrations") == len(migrations.MIGRATIONS)  # noqa: S608 - a name of the test's
    finally:
        await connection.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")
        await connection.close()


def test_a_file_is_upgraded_by_opening_it(run: Callable[..., Done], recording: Path, db: Path) -> None:
    """A file that is not there is not made, and what only a server has is refused."""
    run("migrate").fails(Exit.DATABASE, "there is no database")
    assert not db.exists()
    assert run("import", recording).code == 0
    row = run("migrate", "--json").json
    assert row == {"store": str(db), "before_schema": row["schema"], "schema": row["schema"], "partitions": 0}
    run("migrate", "--sql").fails(Exit.USAGE, "is not a server")
    run("migrate", "--sql", "--json", "--db", NOWHERE).fails(Exit.USAGE, "--sql prints SQL, not JSON")
    run("migrate", "--partitions", 2).fails(Exit.USAGE, "a file has none")
