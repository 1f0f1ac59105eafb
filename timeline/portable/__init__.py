"""Logs as files: whole conversations out of a store, line by line, and back into another one, event for event.

`export_log` writes the lines, `read_copies` reads them, `import_copy` appends what a store does not have yet. What is
redacted never leaves a store. `lines` says what the lines hold.
"""

from __future__ import annotations

from timeline.portable.exporting import Exported, export_log
from timeline.portable.importing import import_copy
from timeline.portable.lines import LogCopy, read_copies

__all__ = ["Exported", "LogCopy", "export_log", "import_copy", "read_copies"]
