"""Copy whole conversations from a store to a file, and from the file into another store, event for event.

`export_log` writes the lines, `read_copies` reads them, and `import_copy` appends the events that a store does not have
yet. Redacted content never leaves a store. `lines` documents the format of the lines.
"""

from __future__ import annotations

from timeline.portable.exporting import Exported, export_log
from timeline.portable.importing import import_copy
from timeline.portable.lines import LogCopy, read_copies

__all__ = ["Exported", "LogCopy", "export_log", "import_copy", "read_copies"]
