"""Check that each table still keeps tenants apart, and each partition of the events: nothing else notices.

Where row level security was switched off, every query answers as before, and shows a role the rows of all tenants.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from . import create
from .pages import Page, wrong

if TYPE_CHECKING:
    from .connections import Connection

_STORED: Final = """
SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity, (
    SELECT pg_get_expr(p.polqual, p.polrelid) FROM pg_policy AS p
    WHERE p.polrelid = c.oid AND p.polname = 'own_tenant' AND p.polcmd = '*' AND p.polpermissive
        AND p.polroles = '{0}' AND p.polwithcheck IS NULL
)
FROM pg_class AS c LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    AND (c.relname = ANY($1::text[]) OR i.inhparent = to_regclass('events'))
ORDER BY c.relname
"""
"""A policy that binds some commands or roles alone is another one, whatever its name."""
_ADDED: Final = re.compile(r"::\"?text\"?|[()\s\"]")
"""What the server adds to a condition when it writes it itself."""


async def policies(connection: Connection, _: int) -> Page:
    """Find the tables whose rows are not kept to their tenants."""
    found = []
    for table, enabled, forced, policy in await connection.fetch(_STORED, create.WITH_TENANT):
        cure = [(statement, ()) for statement in create.own_tenant_anew(table)]
        if not (enabled and (forced or table in create.UNFORCED)):
            problem = "its row level security is switched off"
        elif policy is None or _read(policy) != _read(create.OF_TENANT):
            problem = "its policy own_tenant is missing, or is another one"
        else:
            continue
        found.append(wrong("policies", f"the table {table} does not keep tenants apart: {problem}", *cure))
    return Page(found)


def _read(condition: str) -> str:
    return _ADDED.sub("", condition).lower()
