"""The store in one SQLite file; `store.sqlite.store` has its class."""
