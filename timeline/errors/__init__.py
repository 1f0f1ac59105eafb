"""The one error tree. Each error keeps its facts as attributes and names the cure in its message.

TimelineError
├── InvalidBlock (ValueError)            a block or event that may not be written
│   └── InvalidArgument                  an argument of a method that cannot be used
├── InvalidPolicy (ValueError)           a policy field that does not hold
├── InvalidLimits (ValueError)           a file with model limits that cannot be used
├── InvalidPrices (ValueError)           a file with prices that cannot be used
├── UnknownResponse (TypeError)          a reply or stream in no shape that can be recorded
├── InvalidFilter (ValueError)           a filter of a query that cannot be used
├── ImportFailed                         a file that is no recording
├── MissingExtra (ImportError)           an optional dependency is not installed
├── BlockNotFound (LookupError)          no block at that path
├── StageNotFound (LookupError)          no stage of that name stands
├── StageRefused                         a stage that cannot be entered, approved or gone back to now
├── BlockProtected                       a block that may not be hidden, revealed or pinned now
├── HistoryUnavailable (LookupError)     the log does not reach back, or forward, to that version
├── ContextNotFound (LookupError)        no recorded context of that name
├── ContextUnavailable                   a recorded context cannot be built again
├── StoreError
│   ├── ConversationNotFound (LookupError)
│   ├── VersionConflict                  somebody else appended first
│   ├── DuplicateEvent                   an event id is in the log already, with other company or content
│   ├── PathTaken                        a path is in use in this conversation
│   ├── StoreLocked / StoreReadOnly / StoreFull / StoreClosed
│   ├── StoreMoved                       the database file was swapped while it was open
│   ├── SearchUnavailable                the SQLite library has no full-text search
│   └── StoreCorrupt
│       ├── NotAStore                    the file is something else
│       ├── StoreTooOld                  written by an earlier version, and open for reading only
│       └── StoreTooNew                  written by a later version
├── CompactionError
│   ├── CompactionRefused                nothing worth doing; the typed reason says why
│   ├── CompactionSuperseded             the log changed inside the planned range
│   ├── CompactionInProgress             somebody else is writing a summary
│   ├── CompactionCovered                a later summary covers the one to be taken back
│   ├── UndoUnavailable                  there is nothing to take back, or its originals are gone
│   └── SummarizerFailed                 every summarizer of the chain failed
└── BudgetError
    ├── ContextOverflow                  the context cannot be made to fit the limit
    ├── BudgetImpossible                 the fixed part alone leaves no room
    └── ContextRefused                   the model refused a context for its size, and the smaller one too
"""

from __future__ import annotations

from timeline.errors.base import TimelineError, described
from timeline.errors.budgets import BudgetError, BudgetImpossible, ContextOverflow, ContextRefused
from timeline.errors.compactions import (
    Cause,
    CompactionCovered,
    CompactionError,
    CompactionInProgress,
    CompactionRefused,
    CompactionSuperseded,
    SummarizerFailed,
    UndoUnavailable,
)
from timeline.errors.history import (
    BlockNotFound,
    BlockProtected,
    ContextNotFound,
    ContextUnavailable,
    HistoryUnavailable,
    StageNotFound,
    StageRefused,
)
from timeline.errors.inputs import (
    ImportFailed,
    InvalidArgument,
    InvalidBlock,
    InvalidFilter,
    InvalidLimits,
    InvalidPolicy,
    InvalidPrices,
    MissingExtra,
    UnknownResponse,
)
from timeline.errors.stores import (
    ConversationNotFound,
    DuplicateEvent,
    NotAStore,
    PathTaken,
    SearchUnavailable,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreMoved,
    StoreReadOnly,
    StoreTooNew,
    StoreTooOld,
    VersionConflict,
)

__all__ = [
    "BlockNotFound",
    "BlockProtected",
    "BudgetError",
    "BudgetImpossible",
    "Cause",
    "CompactionCovered",
    "CompactionError",
    "CompactionInProgress",
    "CompactionRefused",
    "CompactionSuperseded",
    "ContextNotFound",
    "ContextOverflow",
    "ContextRefused",
    "ContextUnavailable",
    "ConversationNotFound",
    "DuplicateEvent",
    "HistoryUnavailable",
    "ImportFailed",
    "InvalidArgument",
    "InvalidBlock",
    "InvalidFilter",
    "InvalidLimits",
    "InvalidPolicy",
    "InvalidPrices",
    "MissingExtra",
    "NotAStore",
    "PathTaken",
    "SearchUnavailable",
    "StageNotFound",
    "StageRefused",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoreMoved",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreTooOld",
    "SummarizerFailed",
    "TimelineError",
    "UndoUnavailable",
    "UnknownResponse",
    "VersionConflict",
    "described",
]
