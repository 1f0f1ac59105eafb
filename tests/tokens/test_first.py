from __future__ import annotations

import random
import subprocess
import sys
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from timeline.tokens import first
from timeline.tokens.counter import TiktokenCounter, load_encoding
from timeline.tokens.first import FirstCounter
from timeline.tokens.vocabulary import VOCABULARIES

ASCII: Final = st.text(st.characters(max_codepoint=127), max_size=120)
TRICKY: Final = st.text(st.sampled_from("aAbtTsSlLvVrReEmMdD' \t\n\r\v\f\x1c\x1f/.,_()=-0123"), max_size=80)
WORDS: Final = st.lists(
    st.sampled_from(
        ["the ", "compaction", "\n\n", "   ", "don't", "I'LL", " src/a.py", "12345", "antidisestablish", "\r\n"]
    )
).map("".join)


@pytest.fixture(scope="module", params=VOCABULARIES)
def name(request: pytest.FixtureRequest) -> str:
    """Each vocabulary in turn."""
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="module")
def exact(name: str) -> TiktokenCounter:
    """Counts by tiktoken."""
    return TiktokenCounter(name)


@pytest.fixture(scope="module")
def few(name: str) -> first._FewTexts:
    """Counts by the vocabulary alone, without an end."""
    counter = first._FewTexts(VOCABULARIES[name])
    counter._left = 10**12
    return counter


@given(text=ASCII | TRICKY | WORDS)
@example(text="a \t\n 'lL 12 345678 ...\r\n/\n  ")
@example(text="a  \n")
@example(text="\x1c\x1d\x1e\x1f \x0b\x0c")
def test_a_vocabulary_alone_counts_as_tiktoken_does(few: first._FewTexts, exact: TiktokenCounter, text: str) -> None:
    """Whatever the ASCII text, its count is the number of tiktoken's ids."""
    assert few.count(text) == exact.count(text)


def test_random_letters_merge_in_tiktokens_order(few: first._FewTexts, exact: TiktokenCounter) -> None:
    """Pieces that are no token of their own become as many tokens as tiktoken makes of them."""
    letters = random.Random(7)
    for _ in range(300):
        text = "".join(letters.choices("abcdefghijklmnopqrstuvwxyzACGT", k=letters.randrange(1, first.LONGEST_PIECE)))
        assert few.count(text) == exact.count(text)


@pytest.mark.parametrize(
    "text", ["caf\u00e9", "\ud800", "xq" * first.LONGEST_PIECE, "word " * first.WORTH_AN_ENGINE], ids=repr
)
def test_what_is_not_short_ascii_prose_starts_the_engine(name: str, exact: TiktokenCounter, text: str) -> None:
    """Other characters, long pieces and long texts are counted by the engine, as tiktoken counts them."""
    counter = FirstCounter(name)
    assert counter.count("hello") == 1
    assert counter._engine is None
    assert counter.count(text) == exact.count(text)
    assert counter._engine is not None
    assert counter.count_many(["hello", text]) == [1, exact.count(text)]


def test_after_some_texts_the_engine_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The characters add up over the texts of a process; the vocabulary is let go when they are too many."""
    monkeypatch.setattr(first, "WORTH_AN_ENGINE", 25)
    counter = FirstCounter(name)
    assert counter.count_many(["hello world"] * 2) == [2, 2]
    assert counter._few is not None
    assert counter.count("hello world") == 2
    assert counter._few is None
    assert counter._engine is not None


def test_a_cut_starts_the_engine(name: str, exact: TiktokenCounter) -> None:
    """A cap is kept as exactly as ever."""
    text = "The quick brown fox can't jump; it'll rest. " * 20
    assert FirstCounter(name).truncate(text, 50) == exact.truncate(text, 50)


def test_the_first_render_of_a_process_starts_no_tokenizer() -> None:
    """A prompt in ASCII is counted and rendered before tiktoken, toktok or the module `regex` is imported."""
    program = (
        "import sys\nfrom timeline import sync\nfrom timeline.blocks import UserPrompt\n"
        "with sync.open_store('memory://') as store:\n"
        "    timeline = sync.Timeline.open(store, 'c')\n"
        "    timeline.append(UserPrompt(text='Hello, what can you do?'))\n"
        "    print(timeline.render().account.total)\n"
        "print(sorted({'tiktoken', 'toktok', 'regex'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    tokens, loaded = done.stdout.splitlines()
    expected = len(load_encoding("o200k_base").encode_ordinary("Hello, what can you do?"))
    assert (int(tokens), loaded) == (expected, "[]")
