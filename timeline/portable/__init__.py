"""Copy whole conversations from a store to a file, and from the file into another store, event for event.

`export_log` writes the lines, `read_copies` reads them, `read_exported` from memory, and `import_copy` appends the
events that a store does not have yet. Redacted content never leaves a store. `lines` documents the format of the lines.
`copy_store`, `copy_conversations` and `copy_conversation` do without the file, from one open store into another.
"""

from __future__ import annotations

from timeline.portable.copying import Copied, NotCopied, copy_conversation, copy_conversations, copy_store
from timeline.portable.exporting import Exported, export_log
from timeline.portable.importing import import_copy
from timeline.portable.reading import LogCopy, read_copies, read_exported

__all__ = [
    "Copied",
    "Exported",
    "LogCopy",
    "NotCopied",
    "copy_conversation",
    "copy_conversations",
    "copy_store",
    "export_log",
    "import_copy",
    "read_copies",
    "read_exported",
]
