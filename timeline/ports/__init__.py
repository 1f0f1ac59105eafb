"""Ports: the protocols that stores, summarizers, token counters and clocks implement, and an application's hooks."""

from __future__ import annotations

from timeline.ports.clocks import Clock, MeasuringClock, StoppedClock, SystemClock
from timeline.ports.counters import TokenCounter, ratio_of
from timeline.ports.forgetting import NOT_REACHED, ErasureReport, Forgetting, ForksOnErase, Rewriting
from timeline.ports.hooks import Hook, Hooks, Skip
from timeline.ports.proofs import ChainedEvent, Finding, Proofs, WrittenEvent
from timeline.ports.scavenging import KEPT_TYPES, Rehearsal, Removal, Scavenging
from timeline.ports.stored import Appended, ConversationInfo, Expected, Snapshot, StoredWindow
from timeline.ports.stores import NO_MARK, EventStore, FinishingStore, LeaseMark, MarkingStore, Wakeup, WakingStore
from timeline.ports.summarizers import (
    ABRIDGED_KEY,
    CUT_KEY,
    GAP,
    HIDDEN_KEY,
    SIGNALS,
    SUMMARY_TIMEOUT,
    PromptName,
    Summarizer,
    Summary,
    SummaryKind,
    SummaryRequest,
    WarmContext,
    WindowedSummarizer,
    name_of,
    window_of,
)

__all__ = [
    "ABRIDGED_KEY",
    "CUT_KEY",
    "GAP",
    "HIDDEN_KEY",
    "KEPT_TYPES",
    "NOT_REACHED",
    "NO_MARK",
    "SIGNALS",
    "SUMMARY_TIMEOUT",
    "Appended",
    "ChainedEvent",
    "Clock",
    "ConversationInfo",
    "ErasureReport",
    "EventStore",
    "Expected",
    "Finding",
    "FinishingStore",
    "Forgetting",
    "ForksOnErase",
    "Hook",
    "Hooks",
    "LeaseMark",
    "MarkingStore",
    "MeasuringClock",
    "PromptName",
    "Proofs",
    "Rehearsal",
    "Removal",
    "Rewriting",
    "Scavenging",
    "Skip",
    "Snapshot",
    "StoppedClock",
    "StoredWindow",
    "Summarizer",
    "Summary",
    "SummaryKind",
    "SummaryRequest",
    "SystemClock",
    "TokenCounter",
    "Wakeup",
    "WakingStore",
    "WarmContext",
    "WindowedSummarizer",
    "WrittenEvent",
    "name_of",
    "ratio_of",
    "window_of",
]
