"""Names that are nowhere in what a summary covers: found, asked about once, and removed."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.providers import Answer, FakeProvider
from tests.providers.summarizing import SUMMARIZERS
from tests.scenes import opened, small_policy
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.ports import PromptName, SummaryKind, SummaryRequest
from timeline.store.memory import MemoryStore
from timeline.summarizers import CallableSummarizer, ExtractiveSummarizer, FallbackSummarizer
from timeline.summarizers.extractive import extract
from timeline.summarizers.invented import invented_names, without_names
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from timeline.blocks import Block

TALK: Final = (
    UserPrompt(text="Keep the limit at 4096 bytes, and never touch /srv/app/config/prod.toml."),
    ToolCall(call_id="c1", name="Bash", arguments={"command": "cd /srv/app && pytest tests/test_upload.py"}),
    ToolResult(call_id="c1", text="12 failed\ncommit 9fceb02d0ae598e95dc970b74767f19372d61af8", exit_status=1),
    AssistantCompletion(text="`upload_limit` is read by UploadHandler.maxBytes in src/upload.py, line 1204."),
)


def request_of(blocks: tuple[Block, ...] = TALK, **fields: object) -> SummaryRequest:
    """Return a request that has invented names repaired."""
    request = SummaryRequest("history", blocks, None, None, 200, get_counter("o200k_base"), invented="repair")
    return replace(request, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Edited src/uploads.py.", ["src/uploads.py"]),
        ("Wrote /srv/app/config/dev.toml", ["/srv/app/config/dev.toml"]),
        ("`max_upload_size` decides", ["max_upload_size"]),
        ("UploadManager calls readChunk", ["UploadManager", "readChunk"]),
        ("committed as 1a2b3c4", ["1a2b3c4"]),
        ("the limit is 8192 bytes", ["8192"]),
        ("| lib/other.py | Created | by Write |", ["lib/other.py"]),
        ("upload.ts and upload.ts", ["upload.ts"]),
        ("in pytest/limit/upload/always", ["pytest/limit/upload/always"]),
        ("in /pytest/limit/upload and /dev/sda1", ["/pytest/limit/upload", "/dev/sda1"]),
    ],
)
def test_a_name_that_nothing_has_is_invented(text: str, names: list[str]) -> None:
    """Paths, identifiers, ids and numbers of four digits or more have to be in what is covered."""
    assert invented_names(text, request_of()) == names


@pytest.mark.parametrize(
    "text",
    [
        "The limit is 4096 bytes; 12 tests failed, 3 of them twice.",
        "The limit is 4,096 bytes.",
        "Failed in pytest/limit/upload/never, with 2>/dev/null, as in /path/to/repo or /path/to/src/x.py.",
        "See `src/upload.py:1204` and src/upload.py:1204-1210.",
        "Ran /srv/app/tests/test_upload.py and ./tests/test_upload.py",
        "commit 9fceb02 and commit 9fceb02d0ae5…",
        "UploadHandlers read `upload_limit`; uploadhandler.MAXBYTES too",
        "On 2026-11-23 at 10:15:00 with Python 3.11.7 and v2.0.1, in 2025",
        "JavaScript and PostgreSQL are on GitHub; input/output, and/or, 24/7",
        "about 12,000 tokens in ~5000 lines",
        "It took 8192.5 seconds.",
        "e.g. Node.js, i.e. no file",
    ],
)
def test_ordinary_language_raises_no_alarm(text: str) -> None:
    """Counts, dates, versions, plurals, products, and paths whose parts the record has apart, are no inventions."""
    assert invented_names(text, request_of()) == []


def test_what_the_request_has_beside_its_blocks_is_known() -> None:
    """The earlier summary, both tasks and the caller's instructions may be quoted."""
    request = request_of(
        previous="old_name", task="do lib/x.py", original_task="port 5433", instructions="mind newName"
    )
    assert invented_names("old_name lib/x.py 5433 newName", request) == []


def test_only_the_sentence_with_an_invented_name_is_removed() -> None:
    """A row of a table goes whole, and so does a line of which nothing is left."""
    text = "## Done\n- Fixed it. Edited a/b.py too; tests pass.\n| a/b.py | Created |\n- See a/b.py\n- Kept"
    assert without_names(text, ["a/b.py"]) == "## Done\n- Fixed it. tests pass.\n- Kept"


def _strictly_invented(text: str, request: SummaryRequest) -> list[str]:
    """Return the runs of name characters that are no whole run of the request, nor the marked beginning of one."""
    sources = [b.text for b in request.blocks] + [
        request.previous or "",
        request.task or "",
        request.original_task or "",
    ]
    for block in request.blocks:
        if isinstance(block, ToolCall) and isinstance(block.arguments, dict):
            sources += [str(value) for value in block.arguments.values()]
    known = "\n".join(sources)
    wrong = []
    for found in re.finditer(r"[a-z0-9]+(?:[_/.][a-z0-9]+)+|\d{4,}", text):
        after = r"(?![a-z0-9])" if text[found.end() : found.end() + 1] != "…" else ""
        if re.search(rf"(?<![a-z0-9]){re.escape(found[0])}{after}", known) is None:
            wrong.append(found[0])
    return wrong


NAMES: Final = st.from_regex(r"\A(?:[a-z]{1,9}_[a-z]{1,9}|[a-z]{1,9}(?:/[a-z_]{2,9}){1,5}\.py|\d{4,9})\Z").filter(
    lambda name: "__" not in name and "/_" not in name and "_." not in name and "_/" not in name
)
LINES: Final = st.lists(NAMES | st.sampled_from(["fixed", "because", "error:", "|", "**", "-"]), max_size=120).map(
    " ".join
)


@example(texts=["a_b" + "|c/d.py" * 3], previous=None, max_tokens=9, kind="history", prompt="sections")
@example(texts=["x_1**y_2 src/**/a_b.py"], previous=None, max_tokens=200, kind="history", prompt="generic")
@example(texts=["one\ntwo_x " * 900], previous=None, max_tokens=60, kind="history", prompt="generic")
@given(
    texts=st.lists(LINES, min_size=1, max_size=6),
    previous=st.none() | LINES,
    max_tokens=st.integers(4, 120),
    kind=st.sampled_from(["history", "turn_prefix"]),
    prompt=st.sampled_from(["generic", "sections", "continuation", "bullets"]),
)
def test_the_extractive_summarizer_never_cuts_one_name_to_another(
    texts: list[str], previous: str | None, max_tokens: int, kind: SummaryKind, prompt: PromptName
) -> None:
    """Each name in its summary is a whole name of what it covers, or the marked beginning of one."""
    blocks: list[Block] = []
    for number, text in enumerate(texts):
        called = f"c{number}"
        blocks += [UserPrompt(text=text), ToolCall(call_id=called, name="Edit", arguments={"code": text, "n": "a\nb"})]
        blocks += [ToolResult(call_id=called, text=text, is_error=True), AssistantCompletion(text=f"Fixed {text}.")]
    request = request_of(tuple(blocks), previous=previous, max_tokens=max_tokens, kind=kind, prompt=prompt)
    text = extract(request)
    assert _strictly_invented(text, request) == []
    assert invented_names(text, request) == []


GOOD: Final = "- The limit of 4096 bytes is read in src/upload.py."
WRONG: Final = "- The limit of 4096 bytes stays. It is in src/limits.py, since a1b2c3d4."


@pytest.mark.parametrize("wire", list(SUMMARIZERS))
async def test_a_model_that_invents_is_asked_once_more_and_told_what(wire: str) -> None:
    """The second question names the inventions; the usage of both answers counts."""
    first = Answer(WRONG, input_tokens=100, output_tokens=10)
    with FakeProvider([first, Answer(GOOD, input_tokens=200, output_tokens=20)]) as provider:
        summary = await FallbackSummarizer(SUMMARIZERS[wire](provider)).summarize(request_of())
    one, two = provider.asked
    assert "src/limits.py" not in one.system
    assert "`src/limits.py`, `a1b2c3d4`" in two.system
    assert summary.text == GOOD
    assert summary.repaired == "2 of its names are not in what it covers: `src/limits.py`, `a1b2c3d4`; asked again"
    assert summary.usage is not None
    assert (summary.usage.input_tokens, summary.usage.output_tokens) == (300, 30)


@pytest.mark.parametrize("second", [WRONG, "", "word " * 2_000])
async def test_a_model_that_goes_on_inventing_is_repaired(second: str) -> None:
    """A second answer that is as wrong, empty or too long leaves the first without its sentences; it says so."""
    with FakeProvider([WRONG, second]) as provider:
        model = SUMMARIZERS["openai_chat"](provider)
        summary = await FallbackSummarizer(model, ExtractiveSummarizer()).summarize(request_of())
    assert summary.text == "- The limit of 4096 bytes stays."
    assert summary.repaired is not None
    assert summary.repaired.endswith("their sentences were removed")
    assert invented_names(summary.text, request_of()) == []


async def test_where_nothing_is_left_the_next_summarizer_answers() -> None:
    """An answer that is invented from end to end is none."""

    async def liar(_: str) -> str:
        return "See src/limits.py"

    chain = FallbackSummarizer(CallableSummarizer(liar), ExtractiveSummarizer())
    summary = await chain.summarize(request_of())
    assert (summary.summarizer, summary.repaired) == ("extractive", None)
    assert "the answer is empty" in (summary.fallback_reason or "")


async def test_a_request_that_accepts_names_gets_the_answer_as_it_is() -> None:
    """The published designs take what their model writes."""
    with FakeProvider(WRONG) as provider:
        chain = FallbackSummarizer(SUMMARIZERS["anthropic"](provider))
        summary = await chain.summarize(request_of(invented="accept"))
    assert (summary.text, summary.repaired, len(provider.asked)) == (WRONG, None, 1)


async def test_the_compaction_says_what_was_repaired_wherever_it_is_shown() -> None:
    """The committed summary has no invented name; event, meta and explanation say which there were."""
    policy = small_policy(
        steps=[{"kind": "summarize", "cut": {"kind": "cut_point", "keep_recent_tokens": 100}, "invented": "repair"}],
        min_progress=0.0,
        min_progress_tokens=1,
    )
    with FakeProvider([WRONG, WRONG]) as provider:
        model = SUMMARIZERS["anthropic"](provider)
        timeline = await opened(MemoryStore(), policy=policy, summarizer=model)
        more = [UserPrompt(text="Go on."), AssistantCompletion(text="The upload works. " * 200)]
        await timeline.append(*TALK, *more * 3, UserPrompt(text="Go on."))
        await timeline.compact()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert "src/limits.py" not in compaction.block.text
    assert "`src/limits.py`" in (compaction.written_by.repaired or "")
    assert "`src/limits.py`" in str(compaction.block.meta["written_by"])
    assert "repaired: 2 of its names" in str((await timeline.render()).explain())
