from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.project.sources import modules, tree

if TYPE_CHECKING:
    from collections.abc import Iterator

# On POSIX, closing any descriptor of a file drops the locks that SQLite holds on it for a store of the same process.
# So no file that could be a database is opened by anything but SQLite; each other way to open a file has its reason.
THROUGH_SQLITE = "SQLite itself opens it"
PACKAGED = "a file of the package"
NO_FILE = "opens no file"
PRIVATE_COPY = "a copy that was made here, under a name that nothing else knows"
NOT_OPEN_HERE = "behind a look that no connection of this process has the file open"
SERVER = "a connection to a server, which has the database's files open"
GUARDED = "behind a look at the file through SQLite"
ALLOWED = {
    ("store.sqlite.reading", "aiosqlite.connect"): THROUGH_SQLITE,
    ("store.sqlite.reading", "sqlite3.connect"): THROUGH_SQLITE,
    ("store.sqlite.lock_files", "os.open"): "a file beside the database, which only turns at it use",
    ("store.sqlite.lease_marks", "os.open"): "a file beside the database, which only shows whose lease it is",
    ("store.sqlite.lease_marks", "open"): "the same",
    ("store.sqlite.cut_off", "file.open"): NOT_OPEN_HERE,
    ("store.sqlite.files", "sqlite3.connect"): THROUGH_SQLITE,
    ("store.sqlite.copying", "sqlite3.connect"): THROUGH_SQLITE,
    ("store.sqlite.copying", "SQLiteStore.open"): THROUGH_SQLITE,
    ("store.sqlite.copying", "shutil.copyfile"): PRIVATE_COPY,
    ("store.sqlite.backups", "sqlite3.connect"): THROUGH_SQLITE,
    ("store.sqlite.backups", "os.open"): NOT_OPEN_HERE,
    ("store.sqlite.backups", "shutil.copyfile"): NOT_OPEN_HERE,
    ("store.sqlite.foreign_logs", "log.open"): "a write-ahead log, on which SQLite holds no lock",
    ("store.private_files", "os.open"): "a file that is made here, or that no connection has open yet",
    ("store.sqlite.findings", "mounts.read_text"): "the system's table of what is mounted",
    ("store.sqlite.identity", "sqlite3.connect"): THROUGH_SQLITE,
    ("store.sqlite.private_copy", "sqlite3.connect"): THROUGH_SQLITE,
    ("store.sqlite.broken_off", "sqlite3.connect"): THROUGH_SQLITE,
    ("store.sqlite.store", "Database.open"): THROUGH_SQLITE,
    ("store.opening", "SQLiteStore.open"): THROUGH_SQLITE,
    ("store.opening", "PostgresStore.open"): SERVER,
    ("store.postgres.store", "database.connect"): SERVER,
    ("store.postgres.connecting", "asyncpg.connect"): SERVER,
    ("store.postgres.database", "self.servers.connect"): SERVER,
    ("store.postgres.waking", "servers.connect"): SERVER,
    ("store.migrations.indexes", "sqlite3.connect"): NO_FILE,
    ("store.migrations.tables", "sqlite3.connect"): NO_FILE,
    ("timeline.databases", "sqlite3.connect"): THROUGH_SQLITE,
    ("timeline.databases", "Path(path).open"): GUARDED,
    ("timeline.databases", "Path(path).read_text"): GUARDED,
    ("timeline.importers.agents_sqlite", "sqlite3.connect"): THROUGH_SQLITE,
    ("timeline.policy.library", "file.read_text"): PACKAGED,
    ("timeline.lab.prices", "resource.read_text"): PACKAGED,
    ("timeline.lab.report.page", "(files(__package__) / name).read_text"): PACKAGED,
    ("timeline.policy.limits", "resource.read_text"): PACKAGED,
    ("summarizers.prompts", "resources.files(__package__).joinpath(f'{version}.txt').read_text"): PACKAGED,
    ("timeline.lab.cache_files", "draft.write_text"): "named by a hash and the process, made here",
    ("timeline.lab.cache_files", "(self._folder / (key_of(work) + _ENDING)).read_bytes"): "named by a hash, made here",
    ("timeline.cli.export", "draft.open"): "a new file, or a device: a regular one that is there is only replaced",
    ("timeline.cli.lab.tables", "html.write_text"): GUARDED,
    ("timeline.cli.lab.stored", "path.write_text"): "a new file in a folder made here",
    ("timeline.tokens.pack", "target.write_bytes"): "a packed vocabulary, named by its table",
    ("timeline.inspector.pages", "file.read_bytes"): PACKAGED,
    ("timeline.inspector.bundle", "zipfile.ZipFile"): "in memory",
    ("timeline.cli", "os.open"): "the null device",
    ("timeline.cli.inspecting", "webbrowser.open"): NO_FILE,
    ("timeline.cli.output", "shutil.get_terminal_size"): NO_FILE,
    ("timeline.integrations.mcp.server", "FileIO"): "standard input, by its descriptor",
    ("timeline.integrations.mcp.server", "io.FileIO"): "imports that",
}
CONVERSATIONS = {
    "Timeline.open",
    "timeline.sync.Timeline.open",
    "AsyncTimeline.open",
    "TimelineSession.open",
    "opener.open",
}
"""Opened in a store, by id."""
READERS = {"open", "fdopen", "connect", "read_bytes", "read_text", "write_bytes", "write_text"}
READERS |= {"file_digest", "memmap", "mmap", "fromfile", "loadtxt", "FileIO", "GzipFile", "ZipFile"}
OPENING_MODULES = {"shutil", "zipfile", "tarfile", "mmap", "linecache", "fileinput", "tokenize"}


def _callees(module: str) -> Iterator[str]:
    """Yield what a module calls, or hands on to be called, that may open a file."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in READERS or owner in OPENING_MODULES:
                yield ast.unparse(node)
        elif isinstance(node, ast.Name) and node.id in {"open", "FileIO"} and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.ImportFrom) and (node.module in OPENING_MODULES | {"io", "os", "sqlite3"}):
            yield from (f"{node.module}.{name.name}" for name in node.names if name.name in READERS)


def test_only_sqlite_opens_a_file_that_could_be_a_database() -> None:
    """Every other way to open a file in the three packages has its reason why the file is no database."""
    found = {(module, callee) for module in modules() for callee in _callees(module) if callee not in CONVERSATIONS}
    assert sorted(found - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - found) == []
