"""One word for each thing: names that were given up are in no code, no page and no text that is printed."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from tests.project.sources import PACKAGES, ROOT, modules, tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RETIRED: Final = {
    "Announced": "CompactionHooks",
    "Course": "CompactionProgress",
    "DryLog": "DryRunLog",
    "Earlier": "EarlierSummary",
    "Hides": "HideDecision",
    "Ledger": "AccountCache",
    "Pass": "StepsOutcome",
    "Places": "Positions",
    "SEEDS": "PUBLISHED",
    "SPILLABLE": "PREVIEWABLE",
    "Sleeper": "Waiter",
    "Taken": "TakenDecision",
    "Together": "AppendQueue",
    "_Chain": "_Run",
    "_Relief": "_DueDecisions",
    "_Waiting": "_WaitingAppend",
    "_folded": "_compacted_since_last_use",
    "bill": "account",
    "can_spill": "can_preview",
    "course": "progress",
    "fold_when_cold": "compact_when_cold",
    "hidden_by": "describe_hide",
    "ledger": "accounts, an AccountCache",
    "relief": "decisions",
    "relieve": "take_due_decisions",
    "role_of": "message_role, or said_as",
    "shielded": "run_uncancelled",
    "sleeper": "waiting",
    "spill": "preview",
    "spilled": "previewed",
    "spills": "previews",
    "stand_in": "replacement",
    "stand_ins": "replacements",
    "timeline.dry": "timeline.dry_run",
}
"""Names that are nothing any more, wherever they are, with what the thing is called now."""

RETIRED_IN: Final = {
    "store/append_rules.py": {"Log": "LogHead"},
    "store/digests.py": {"Entry": "DigestEntry"},
    "store/queries.py": {"Questions": "QueryMixin", "round": "compaction_number"},
    "store/sqlite/appending.py": {"Placed": "PlacedBatch"},
    "timeline/agent/deduplication.py": {
        "signature": "content_key",
        "signatures": "content_keys",
        "unknown": "new_messages",
    },
    "timeline/cli/questions.py": {"round": "compaction_number"},
    "timeline/engine/compactor.py": {"Asked": "SummaryRequestLog", "ask": "request_summary", "dry": "dry_run"},
    "timeline/engine/equipment.py": {"under": "compactor"},
    "timeline/engine/summarizing.py": {"Asked": "SummaryRequestLog", "ask": "request_summary"},
    "timeline/lab/results.py": {"digest": "policy_hash", "folded": "covered_tokens"},
    "timeline/log/stored.py": {"announce": "notify", "dry": "dry_run"},
    "timeline/log/wakeups.py": {"announce": "notify"},
    "timeline/planning/account.py": {"lines": "limits_of_policy"},
    "timeline/policy/model.py": {"digest": "hash"},
    "timeline/queries.py": {"round": "compaction_number"},
    "timeline/timeline.py": {"dry": "dry_run", "under": "compactor"},
}
"""Words that mean something else in other modules."""

STORED: Final = {
    "fold_when_cold": "stored policies have it, and logs name a policy by the hash of its text",
    "spill": "logs have it as the reason of an event",
}
"""Retired names that stay as texts, each with the reason."""

APART: Final = ("timeline.cli", "timeline.importers", "timeline.inspector", "timeline.integrations", "timeline.sync")
"""Where a class may have the name of one of the core: faces of it, and the formats of others."""
SHARED: Final = {
    "Call": "of a window's groups, and of `Timeline.call`, which is public",
    "CompactionRow": "of a table, and of what is written into it",
    "ConversationRow": "of a table, and of an answer",
    "Database": "one for each database",
    "EventRow": "of a table, and of an answer",
    "Examined": "one for each database",
    "FactRow": "of a table, and of an answer",
    "Forgetting": "the protocol, and the part of a store",
    "MessageDecoder": "one for each wire",
    "Options": "of a model's client and of the lab, both public",
    "PlacedBatch": "one for each database",
    "Proofs": "the protocol, and the part of a store",
    "Questions": "one for each database",
    "Scavenging": "the protocol, and the part of a store",
    "Writer": "one for each database",
}
"""Names that several classes of the core have, each with the reason."""

SPAN: Final = re.compile(r"``[^`\n]+``|`[^`\n]+`|^```.*?^```$", re.MULTILINE | re.DOTALL)
WORD: Final = re.compile(r"\w+")
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


@cache
def code() -> dict[str, ast.Module]:
    """Return the syntax tree of each file of the packages and the tests with a retired name anywhere in its text."""
    files = [file for folder in (*PACKAGES, "tests") for file in sorted((ROOT / folder).rglob("*.py"))]
    texts = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}
    del texts["tests/project/test_words.py"]
    return {name: ast.parse(text) for name, text in texts.items() if _may_name(name, text)}


def _may_name(file: str, text: str) -> bool:
    words = set(WORD.findall(text))
    return any(WORD.findall(name)[-1] in words for name in (*RETIRED, *RETIRED_IN.get(file, ())))


def names_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every identifier with its line."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield line, name
            case ast.keyword(arg=str(name)):
                yield line, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield line, name
            case ast.alias(name=name):
                yield from ((line, part) for part in name.split("."))


def texts_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every text with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_no_code_has_a_retired_name() -> None:
    """The new name of each is in the message."""
    found = [
        f"{file}:{line}: {name} is {(RETIRED | RETIRED_IN.get(file, {}))[name]}"
        for file, tree in code().items()
        for line, name in names_in(tree)
        if name in RETIRED or name in RETIRED_IN.get(file, {})
    ]
    assert found == []


def test_a_retired_name_is_a_text_only_where_it_is_stored() -> None:
    """Keys and names in texts are the new ones; what logs hold is read by its old one."""
    said = [(file, line, text) for file, tree in code().items() for line, text in texts_in(tree) if text in RETIRED]
    assert [f"{file}:{line}: {text}" for file, line, text in said if text not in STORED] == []
    assert {text for _, _, text in said} == STORED.keys(), "what no code reads any more is no exception"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_shows_a_retired_name(page: Path) -> None:
    """A plain word counts only where it is all of a code span."""
    spans = SPAN.findall(page.read_text(encoding="utf-8"))
    exact = {span.strip("`") for span in spans}
    words = {word for span in spans for word in WORD.findall(span) if "_" in word}
    assert sorted(RETIRED.keys() & (exact | words) - STORED.keys()) == []


def test_a_class_of_the_core_has_its_name_alone() -> None:
    """A name that is searched for leads to one thing, but for those that are the same thing twice."""
    found: dict[str, list[str]] = {}
    for module in modules():
        if not module.startswith(APART):
            for node in tree(module).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(module)
    several = {name: where for name, where in found.items() if len(where) > 1}
    assert {name: where for name, where in several.items() if name not in SHARED} == {}
    assert SHARED.keys() <= several.keys(), "what one class has is no exception"
