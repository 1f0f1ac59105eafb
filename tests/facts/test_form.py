"""The number of the rules of facts: a store makes its facts anew when it changes, and only then."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.facts.extracting import FORM, facts_named, facts_of_result
from timeline.frozen import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.blocks import Block
    from timeline.facts.model import Fact

CORPUS: Final = Path(__file__).with_name("corpus.jsonl")
"""Texts, and calls as a name and arguments: what the tests of the rules were made of. It stays as it is; a case that it
lacks may be added together with a new number."""
AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
GIVEN: Final = {10: "1a4c3daa9c653c398f20b853c17d41b61811770013d2ebb6362b5433e61f61c4"}
"""By the number of the rules the sha256 of all that they give on the corpus."""
ADVICE: Final = """\
No rules of number {form} are known to give on tests/facts/corpus.jsonl what the rules give now.
If a rule was changed on purpose: raise FORM in timeline/facts/extracting.py, unless that is done, so that stores make
their facts anew. Then write the new number to GIVEN, with "{digest}".
If not, something beside the rules changed what they see, and `verify --deep` would call stored facts damage."""


def said(text: str) -> Iterator[Block]:
    """Yield a text as each block that is read by rules of its own."""
    yield UserPrompt(text=text, path="prompt")
    yield AssistantCompletion(text=text, path="answer")
    yield ToolCall(call_id="c", name="Bash", arguments={"command": text}, path="c.call")
    yield ToolResult(call_id="c", text=text, path="c.result")


def done(name: str, arguments: dict[str, Any] | str, text: str, *, is_error: bool = False) -> tuple[Fact, ...]:
    """Return what a call did, and what it and its result name."""
    call = ToolCall(call_id="c", name=name, arguments=arguments, path="c.call")
    result = ToolResult(call_id="c", text=text, is_error=is_error, path="c.result")
    return facts_of_result(call, 1, result, 2, AT) + facts_named(call, 1, AT)


def facts_of_the_corpus() -> Iterator[tuple[Fact, ...]]:
    """Yield what the rules give on each item, in several places of a log."""
    for line in CORPUS.read_text().splitlines():
        match json.loads(line):
            case str() as text:
                for block in said(text):
                    yield facts_named(block, 1, AT)
                yield done("Bash", {"command": text}, text)
                yield done("exec", text, text)
                yield done("fetch", {"url": text}, text, is_error=True)
                yield done("AskUserQuestion", {"questions": [{"question": "Which?"}]}, text)
            case [str(name), arguments]:
                yield done(name, arguments, "Found 3 files")
                yield done(name, arguments, "No such file", is_error=True)


def test_rules_that_give_other_facts_have_another_number() -> None:
    """Stored facts are compared with what the rules give now: a change without a new number is reported as damage."""
    found = json.dumps([[str(field) for field in fact] for facts in facts_of_the_corpus() for fact in facts])
    digest = sha256_hex(found)
    assert GIVEN.get(FORM) == digest, ADVICE.format(form=FORM, digest=digest)
