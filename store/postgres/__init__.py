"""The PostgreSQL store: the timelines of a team in one database. It needs the extra ``postgres`` (asyncpg)."""
