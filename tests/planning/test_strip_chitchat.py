"""Stripping chitchat (seed 000, P1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import answer, apply, fold_of, prompt, window_of
from timeline import policies
from timeline.blocks import AssistantCompletion, Attachment, TurnHeader, UserPrompt
from timeline.events import BlocksPinned, BlocksRevealed
from timeline.planning.costs import costs
from timeline.planning.strip_chitchat import is_chitchat, plan_chitchat
from timeline.policy.steps import StripChitchat

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.window import Window

POLICY: Final = policies.priority_chain()
STEP: Final = StripChitchat()
PICTURE: Final[dict[str, Any]] = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
}


def stripped(window: Window, step: StripChitchat = STEP) -> list[str]:
    """Return the texts that are stripped, oldest first."""
    hide = plan_chitchat(window, POLICY, step)
    chosen = set() if hide is None else {replacement.version for replacement in hide.event.blocks}
    return [item.block.text for item in window.items if item.version in chosen]


def talk(*prompts: str, said: str = "Done.") -> list[Block]:
    """Return turns with these prompts, each answered, and a last question."""
    answered = [block for text in prompts for block in (UserPrompt(text=text), AssistantCompletion(text=said))]
    return [*answered, prompt(text="What is the plan for tomorrow?")]


@pytest.mark.shows("000-18", "000-19", "000-20", "000-21", "000-22", "R-000-6")
@pytest.mark.parametrize(
    ("text", "says_nothing"),
    [
        ("ok", True),
        ("ya", True),
        ("Lanjut", True),
        ("  OK  ", True),
        ("exactly fourtn", True),  # 14 characters
        ("exactly fifteen", False),
        ("why?", False),
        ("go!", False),
        ("ok" + " " * 48, True),  # 50 characters as written
        ("ok" + " " * 49, False),
        ("stop", False),
        (" STOP ", False),
        ("yes", False),
        ("No", False),
        ("batal", False),
        ("", True),
        ("2", False),
        ("option 2", False),
        ("the second", False),
        ("one", False),
        ("Satu.", False),
        ("nice one", True),  # it is a number only where it says nothing else
        ("not yet", False),
        ("no thanks", False),
        ("stop it", False),
        ("nothing", True),  # a kept word is a whole word
        ("know it", True),
    ],
)
def test_the_literal_rule_and_the_words_that_are_never_chitchat(text: str, *, says_nothing: bool) -> None:
    """Length as written at most 50, trimmed below 15, no question mark, no exclamation mark, no command."""
    assert is_chitchat(text, STEP) is says_nothing


@pytest.mark.shows("000-22", "R-000-8")
def test_the_words_that_are_never_chitchat_are_configurable() -> None:
    """Those of an application's own commands."""
    own = StripChitchat(kept_words=("lanjut", "go on"))
    texts = ("lanjut", "lanjut ya", "stop", "ok, go on.", "go, on")
    assert [is_chitchat(text, own) for text in texts] == [False, False, True, False, False]


@pytest.mark.shows("000-17", "R-000-7")
def test_user_messages_are_stripped_and_the_assistants_stay() -> None:
    """They contain substance."""
    window = window_of(*talk("ok", "lanjut"), answer(text="ya"))
    assert stripped(window) == ["ok", "lanjut"]


@pytest.mark.shows("R-000-10")
def test_the_newest_prompt_is_never_stripped() -> None:
    """Whatever it says: it is what the model is to answer."""
    assert stripped(window_of(prompt(), answer(), prompt(text="ok"))) == []
    assert stripped(window_of(prompt(text="ok"), answer(), prompt(text="ok"))) == ["ok"]


@pytest.mark.parametrize("text", ["blue", "PostgreSQL", "ok", "ok go on"])
def test_an_answer_to_a_question_is_kept(text: str) -> None:
    """Whatever it is: right behind a question of the assistant's a few words say something."""
    asked = [prompt(), AssistantCompletion(text="Which one shall it be?"), *talk(text)]
    assert stripped(window_of(*asked)) == []
    told = [prompt(), AssistantCompletion(text="It is done."), *talk(text)]
    assert stripped(window_of(*told)) == [text]


def test_a_second_message_of_the_user_behind_a_question_is_kept_too() -> None:
    """The assistant said nothing in between, so it may be the answer."""
    asked = [prompt(), AssistantCompletion(text="Which one?"), UserPrompt(text="hm"), *talk("the red one")]
    assert stripped(window_of(*asked)) == []


def test_pinned_and_revealed_prompts_stay() -> None:
    """Decisions of the application stand."""
    fold = fold_of(*talk("ok", "lanjut", "baik"))
    apply(fold, fold.version + 1, BlocksPinned(versions=(2,)))
    apply(fold, fold.version + 1, BlocksRevealed(versions=(4,)))
    assert stripped(fold.window) == ["baik"]


def test_a_prompt_with_data_of_its_own_stays() -> None:
    """A picture may come with few words."""
    assert stripped(window_of(UserPrompt(text="ok", data=[PICTURE]), answer(), prompt())) == []


@pytest.mark.shows("000-17")
def test_a_prompt_beside_a_picture_stays() -> None:
    """`like this` says what the picture is for, however the two were appended."""
    with_picture = [UserPrompt(text="like this"), Attachment(data=PICTURE), answer()]
    assert stripped(window_of(*with_picture, UserPrompt(text="ok"), answer(), prompt())) == ["ok"]


def test_attachments_are_no_chitchat() -> None:
    """Only prompts are."""
    assert stripped(window_of(prompt(), Attachment(text="a"), answer(), prompt())) == []


def test_what_is_freed_is_what_the_account_says() -> None:
    """And a second look finds nothing."""
    fold = fold_of(*talk("ok", "lanjut"))
    before = sum(costs(fold.window.items, POLICY))
    hide = plan_chitchat(fold.window, POLICY, STEP)
    assert hide is not None
    assert (hide.event.mode, hide.event.reason) == ("omit", "chitchat")
    apply(fold, fold.version + 1, hide.event)
    assert before - sum(costs(fold.window.items, POLICY)) == hide.freed > 0
    assert plan_chitchat(fold.window, POLICY, STEP) is None


def test_a_message_that_its_header_still_makes_up_is_not_freed() -> None:
    """What a message costs besides its text is charged until nothing of it is shown."""
    policy = POLICY.model_copy(update={"message_tokens": 4})
    fold = fold_of(TurnHeader(text="Turn 1"), UserPrompt(text="ok"), answer(), prompt())
    before = sum(costs(fold.window.items, policy))
    hide = plan_chitchat(fold.window, policy, STEP)
    assert hide is not None
    apply(fold, fold.version + 1, hide.event)
    assert before - sum(costs(fold.window.items, policy)) == hide.freed > 0


@given(texts=st.lists(st.text(max_size=60), max_size=8))
def test_every_stripped_message_is_chitchat_by_the_rule(texts: list[str]) -> None:
    """And every one that stays, save for the newest, is not, or answers a question."""
    window = window_of(*talk(*texts))
    assert stripped(window) == [text for text in texts if is_chitchat(text, STEP)]
