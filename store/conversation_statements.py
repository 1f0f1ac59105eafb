"""The texts of the statements that read conversations: each database writes them in its own dialect."""

from __future__ import annotations

from typing import NamedTuple


class ConversationStatements(NamedTuple):
    """One set of the columns of conversations, by each way in which `store.log_rows.ConversationRows` reads them."""

    info: str
    info_and_snapshot: str
    conversations: str
    recent_conversations: str
