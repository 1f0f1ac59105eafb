"""Stripping chitchat from a conversation (seed 000, P1): what goes, what stays, and what summaries read of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.scenes import Mute, Scribe, opened, payloads_of, turn
from timeline import policies
from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline import Timeline
    from timeline.ports import Summarizer

COLOURS: Final = "Which one do you want?\n\n1. Red\n2. Blue\n"
LARGE: Final = turn(1_700, asked=200)
"""A last turn that is above the trigger of 2,000 tokens, which is 1,700, by itself."""


async def shown_after(asked: str, answered: str) -> list[str]:
    """Return what a render above the trigger shows of the user, after an answer to what the assistant said."""
    timeline = await opened(MemoryStore(), policy=policies.priority_chain(max_tokens=2_000), summarizer=Mute())
    await timeline.append(UserPrompt(text="Paint the door of the old house"), AssistantCompletion(text=asked))
    await timeline.append(UserPrompt(text=answered), AssistantCompletion(text="Understood."), *LARGE)
    context = await timeline.render()
    messages = context.to_openai_chat()["messages"]
    return [message["content"] for message in messages if message["role"] == "user"][:-1]


@pytest.mark.shows("000-19", "000-20", "000-21", "000-22", "R-000-8", "R-000-9")
@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (COLOURS, "2"),
        (COLOURS, "Blue"),
        ("Pick one:\n1. Red\n2. Blue", "2"),
        ("**Which colour?**", "blue"),
        ("Which colour? (red or blue)", "blue"),
        ("_Which colour?_", "blue"),
        ("Which colour?\n\n- red\n- blue", "blue"),
        ('Did you mean "blue?"', "yes I did"),
        ("Which colour? Take your time.", "dark blue"),
        ("どの色ですか\uff1f", "青"),
        ("How many doors?", "42"),
        ("Choose a colour: red or blue.", "blue"),
        ("Tell me which colour you prefer.", "blue"),
        ("Pick a, b or c:", "b"),
        ("Your colour:\n\n", "blue"),
        ("**Your colour:**", "blue"),
        ("Pilih salah satu: a, b, c.", "b"),
        ("Sebutkan warnanya.", "biru"),
        ("Beri tahu saya, mau yang mana.", "biru"),
        ("Let me know how many doors there are.", "two"),
        ("Sebutkan jumlah pintunya.", "dua"),
        ("I can paint one door or two. Let me know.", "two"),
        ("The doors are counted.", "two"),
        ("The doors are counted.", "one"),
        ("Pintunya dihitung.", "dua"),
        ("Pintunya dihitung.", "yang kedua"),
        ("I painted it.", "yes"),
        ("I painted it.", "revert"),
        ("I painted it.", "hapus itu"),
        ("I painted it.", "kembali"),
        ("The doors are counted.", "42"),
        ("I painted it.", "not yet"),
        ("I painted it.", "no thanks"),
        ("I painted it.", "stop it"),
        ("I painted it.", "Stop."),
        ("I painted it.", "wait"),
        ("I painted it.", "don't"),
        ("I painted it.", "jangan dulu"),
        ("I painted it.", "何\uff1f"),
    ],
)
async def test_a_real_answer_is_never_stripped(asked: str, answered: str) -> None:
    """An answer to a question, a number, a refusal and a command say something, however short they are."""
    assert await shown_after(asked, answered) == ["Paint the door of the old house", answered]


@pytest.mark.shows("000-19", "000-21")
@pytest.mark.parametrize("answered", ["ok", "ya", "Lanjut", "  thanks  ", "ok go on", "nice one"])
@pytest.mark.parametrize(
    "asked",
    [
        "I painted it.",
        "I painted it: the door is red.",
        "I painted it, which took a day.",
        "Done:\n\n- the door\n- the wall",
        "I ran `what?` and it works.",
        "The code:\n```\nwhy?\n```\nis there.",
        "See https://example.org/?a=1 for it.",
    ],
)
async def test_what_confirms_is_stripped(asked: str, answered: str) -> None:
    """Behind what was no question: a question mark in code or in a link asks nothing."""
    assert await shown_after(asked, answered) == ["Paint the door of the old house"]


@pytest.mark.shows("000-19", "000-21", "R-000-9")
async def test_an_answer_behind_a_summary_stays() -> None:
    """The summary may have covered the question."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=policies.priority_chain(max_tokens=2_000), summarizer=scribe)
    await timeline.append(*turn(100, asked=100) * 10, UserPrompt(text="blue"), AssistantCompletion(text="Good."))
    await timeline.compact()
    assert timeline.window.items[0].is_summary
    assert timeline.window.items[1].block.text == "blue"
    await timeline.append(*LARGE)
    assert [message["content"] for message in (await timeline.render()).to_openai_chat()["messages"]][1] == "blue"


@pytest.mark.shows("000-19", "000-21")
async def test_a_short_message_behind_a_collapsed_stage_is_stripped() -> None:
    """Whatever was asked in the stage is over."""
    timeline = await opened(MemoryStore(), policy=policies.priority_chain(max_tokens=2_000), summarizer=Mute())
    await timeline.enter_stage("a", "A")
    await timeline.append(*turn(100, asked=100) * 5)
    await timeline.approve_stage(decision="d")
    await timeline.enter_stage("b", "B")
    await timeline.append(UserPrompt(text="lanjut"))
    await timeline.compact()
    context = await timeline.render()
    assert [entry.type for entry in context.neutral.entries] == ["conv.range.summary", "user.prompt"]
    await timeline.append(AssistantCompletion(text="Painted."), *LARGE)
    context = await timeline.render()
    assert "lanjut" not in [entry.text for entry in context.neutral.entries]


@pytest.mark.shows("R-000-9")
async def test_words_that_only_state_protect_what_follows_and_so_does_a_question_for_a_second_prompt() -> None:
    """What stays needlessly costs a few tokens."""
    stated = ["Paint the door of the old house", "ok"]
    assert await shown_after("I prefer this one.", "ok") == stated
    timeline = await opened(MemoryStore(), policy=policies.priority_chain(max_tokens=2_000), summarizer=Mute())
    await timeline.append(UserPrompt(text="Paint the door of the old house"), AssistantCompletion(text="Which one?"))
    second = [UserPrompt(text="the one near the garden"), UserPrompt(text="ok"), AssistantCompletion(text="Hm.")]
    await timeline.append(*second, *LARGE)
    assert "ok" in [entry.text for entry in (await timeline.render()).neutral.entries]


async def chatting(*, summarizer: Summarizer) -> Timeline:
    """Return a conversation whose short messages give way, and whose oldest messages do so after them."""
    policy = policies.priority_chain(max_tokens=2_000, keep_last=2)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=summarizer)
    for _ in range(11):
        await timeline.append(UserPrompt(text="lanjut"), AssistantCompletion(text="Painted."), *turn(100, asked=60))
    await timeline.render()
    return timeline


@pytest.mark.shows("000-53")
async def test_a_summary_reads_what_was_stripped() -> None:
    """The model answered it once: what gives way is known to the summary that covers it, word for word."""
    scribe = Scribe()
    timeline = await chatting(summarizer=scribe)
    [request] = scribe.asked
    texts = [block.text for block in request.blocks if block.type == "user.prompt"]
    assert texts[:4] == ["lanjut", turn(100, asked=60)[0].text] * 2
    assert sum(text == "lanjut" for text in texts) == 7
    [stripped] = await payloads_of(timeline._store, "blocks.hidden")
    assert stripped.reason == "chitchat"


@pytest.mark.shows("000-53")
async def test_the_digest_names_what_was_stripped() -> None:
    """Where no summary is asked for, the record of what was covered has it."""
    timeline = await chatting(summarizer=Mute())
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert completed.written_by.summarizer == "notice"
    named = [(hidden.path, hidden.replacement) for hidden in completed.digest.hidden]
    assert named[:2] == [("ar:turn_1.user.prompt", "lanjut"), ("ar:turn_3.user.prompt", "lanjut")]
    assert (await timeline.read("ar:turn_3.user.prompt")).text == "lanjut"


async def test_what_an_application_omitted_reaches_no_summary() -> None:
    """That is another decision: it is to be seen by no model."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=policies.priority_chain(max_tokens=2_000), summarizer=scribe)
    await timeline.append(*turn(100, asked=60), UserPrompt(text="my key is 1234"), *turn(100, asked=60) * 12)
    await timeline.hide("ar:turn_2.user.prompt", mode="omit")
    await timeline.compact()
    assert scribe.asked
    assert not any("1234" in block.text for request in scribe.asked for block in request.blocks)
