"""What is left of a block's words in the summaries that stood for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.scenes import AT, opened, small_policy, turn
from timeline.audit.retold import Retold, worst
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.events import BlockRedacted
from timeline.ports import Summary
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.ports import SummaryRequest

RULE: Final = "Never touch migrations/, the DBA team owns it."
WORK: Final = "Some work was done."


class Says:
    """A summarizer that gives one text after the other."""

    name = "says"

    def __init__(self, *texts: str) -> None:
        self._texts = list(texts)

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the next text."""
        del request
        return Summary(text=self._texts.pop(0), summarizer=self.name)


async def summarising(*texts: str) -> Timeline:
    """Begin a conversation whose summaries are these texts, and whose compactions keep next to nothing."""
    policy = small_policy(max_tokens=20_000, keep_recent_tokens=20, digest_tokens=0)
    return await Timeline.open(MemoryStore(), "cards", policy=policy, summarizer=Says(*texts), now=AT)


async def summarised(text: str, *texts: str) -> tuple[Retold, ...]:
    """Compact a conversation that begins with a prompt, once for each text of a summary; return what is left of it."""
    timeline = await summarising(*texts)
    await timeline.append(UserPrompt(text=text), now=AT)
    for _ in texts:
        await timeline.append(*turn(tokens=3_000), *turn(tokens=40), now=AT)
        await timeline.compact(now=AT)
    return (await timeline.why("@2")).retold


async def test_a_summary_that_says_the_same_lost_nothing() -> None:
    """Whatever it says besides, and however it writes the words."""
    [made] = await summarised(RULE, f"## Rules\n- NEVER touch migrations; the DBA-team owns it\n- {WORK}")
    assert (made.address, made.compaction_number, made.at, made.summarizer) == ("@8", 1, AT, "says")
    assert (made.words, made.of, made.lost) == (7, 7, "")
    assert made.before_tokens > made.after_tokens > 0


async def test_the_first_summary_without_a_word_quotes_it_in_its_sentence() -> None:
    """Words that are close to each other are quoted together, and each once; every summary's heading has one: "the"."""
    whole, part, nothing = await summarised(f"Build it. {RULE} {RULE}", f"Build: {RULE}", "Build, DBA team.", WORK)
    assert [made.words for made in (whole, part, nothing)] == [8, 4, 1]
    assert [whole.lost, part.lost] == ["", "Never touch migrations … owns"]
    assert nothing.lost == "Build … DBA team"


async def test_a_word_that_comes_back_is_counted_but_not_lost_twice() -> None:
    """Another matter may have it; then it is no part of what the block said."""
    _, back, gone = await summarised(RULE, WORK, f"The team met. {WORK}", WORK)
    assert [(made.words, made.lost) for made in (back, gone)] == [(2, ""), (1, "")]


async def test_a_call_is_compared_by_its_arguments() -> None:
    """It has no text of its own."""
    timeline = await summarising(WORK)
    made = ToolCall(call_id="call_1", name="note", arguments={"rule": "Never touch migrations."})
    answer = ToolResult(call_id="call_1", text="Noted.")
    await timeline.append(UserPrompt(text="Build it."), made, answer, *turn(tokens=3_000), *turn(tokens=40), now=AT)
    await timeline.compact(now=AT)
    [lost] = (await timeline.why("tc:turn_1.call_1.call")).retold
    assert (lost.words, lost.of, lost.lost) == (0, 4, 'rule":"Never touch migrations')


async def test_writing_without_spaces_is_compared_letter_by_letter() -> None:
    """Otherwise a whole sentence would be one word."""
    [made] = await summarised("不要改动迁移目录", "不要改动 Rest")
    assert (made.words, made.of, made.lost) == (4, 8, "迁移目录")


async def test_a_block_that_is_shown_has_no_summary() -> None:
    """Nothing has to be found out about it."""
    timeline = await opened(MemoryStore())
    await timeline.append(UserPrompt(text=RULE), now=AT)
    assert (await timeline.why("@2")).retold == ()


async def test_a_redacted_block_is_not_quoted() -> None:
    """What was erased does not come back by the words of its summaries."""
    timeline = await summarising(RULE)
    await timeline.append(UserPrompt(text=RULE), *turn(tokens=3_000), *turn(tokens=40), now=AT)
    await timeline.compact(now=AT)
    assert (await timeline.why("@2")).retold
    await timeline.decide([BlockRedacted(version=2)], at=AT, ids=[])
    assert (await timeline.why("@2")).retold == ()


async def test_the_worst_summary_is_the_one_that_lost_most_of_the_one_before() -> None:
    """It is where a reader looks first; none is, where the first one lost all."""
    summaries = await summarised(RULE, RULE, "Never touch the DBA team.", "Never.", WORK)
    assert [made.words for made in summaries] == [7, 5, 2, 1]
    assert worst(summaries) == 2
    assert worst(await summarised(RULE, "Never touch it.", "Never touch.")) is None
