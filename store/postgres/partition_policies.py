"""Migration 2: the policies of the partitions, which keep tenants apart where a partition is read by its own name.

The policy of `events` binds who reads the events by that name. A partition is a table of its own, which ``GRANT … ON
ALL TABLES`` opens to a role as well: without a policy it would show the rows of all tenants, and their values in
pg_stats.
A statement of the library names `events` alone, and its plan has the policy of that name once, as before.
"""

from __future__ import annotations

from typing import Final

from .create import TENANT

_OWN_TENANT: Final = f"""DO $$
DECLARE
    part regclass;
BEGIN
    IF EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = 'events'::regclass) THEN
        LOCK TABLE events IN ACCESS EXCLUSIVE MODE;
    END IF;
    FOR part IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'events'::regclass ORDER BY inhrelid LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', part);
        EXECUTE format('DROP POLICY IF EXISTS own_tenant ON %s', part);
        EXECUTE format($policy$CREATE POLICY own_tenant ON %s USING (tenant = {TENANT})$policy$, part);
    END LOOP;
END $$"""  # noqa: S608 - a constant condition
"""The catalogue names the partitions: the URL that a store is migrated by need not say how many it has. The table comes
before its partitions, as an append takes them: the other way round, the two could wait for each other."""


def statements(partitions: int) -> list[str]:
    """Write the statements of the step; the same whatever the number of partitions, which the store knows."""
    del partitions
    return [_OWN_TENANT]
