from __future__ import annotations

import random
import subprocess
import sys
from typing import Final
from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tiktoken import Encoding

from timeline.tokens import first, get_counter, start_engine
from timeline.tokens.counter import TiktokenCounter, load_encoding
from timeline.tokens.first import FirstCounter
from timeline.tokens.vocabulary import MARK, OTHER_LETTER, VOCABULARIES

KNOWN: Final = st.characters(exclude_categories=["Cs", "Cn"])
ANY: Final = st.text(KNOWN, max_size=60) | st.text(st.characters(max_codepoint=127), max_size=120)
# One character of every class that the patterns tell apart, and those that they name.
PIECES: Final = st.text(
    st.sampled_from(
        "aAsSBb\u01c5\u02b0\u4e2d\u0301\u0345'1\u00b2\u2160 \t\n\r\v\x85\u00a0\u2028/.,_\u200d\x00\u017f\ue000"
    ),
    max_size=60,
)
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


@given(text=ANY | PIECES | TRICKY | WORDS)
@example(text="I'\u017f caf\u00e9's \u4e0a\u4e0b\u6587\uff0cE\u0301COLE \u2028x")
@example(text="a \t\n 'lL 12 345678 ...\r\n/\n  ")
@example(text="a  \n")
@example(text="\x1c\x1d\x1e\x1f \x0b\x0c")
def test_a_vocabulary_alone_counts_as_tiktoken_does(few: first._FewTexts, exact: TiktokenCounter, text: str) -> None:
    """Whatever the text of known characters, its count is the number of tiktoken's ids."""
    assert few.count(text) == exact.count(text)


@pytest.mark.parametrize(
    ("expression", "alike"),
    [
        (r"[\p{Lu}\p{Lt}]", "B"),
        (r"\p{Ll}", "bs"),
        (r"[\p{Lm}\p{Lo}]", OTHER_LETTER),
        (r"\p{M}", MARK),
        (r"\p{N}", "0"),
        (r"\s", "\v"),
        (r"(?i:[stremvld])", "s"),
    ],
)
def test_each_character_has_the_class_that_tiktoken_gives_it(expression: str, alike: str) -> None:
    """Of all characters that this Python knows beyond ASCII, tiktoken's engine finds those with these stand-ins."""
    known = [chr(code) for code in range(128, 0x110000) if category(chr(code)) not in {"Cn", "Cs"}]
    bytes_alone = {bytes((byte,)): byte for byte in range(256)}
    engine = Encoding("classes", pat_str=expression, mergeable_ranks=bytes_alone, special_tokens={})
    found = bytes(engine.encode_ordinary("".join(known))).decode()  # without what the expression does not match
    assert found == "".join(character for character in known if first._ALIKE[ord(character)] in alike)


def test_random_letters_merge_in_tiktokens_order(few: first._FewTexts, exact: TiktokenCounter) -> None:
    """Pieces that are no token of their own become as many tokens as tiktoken makes of them."""
    letters = random.Random(7)
    for _ in range(300):
        text = "".join(letters.choices("abcdefghijklmnopqrstuvwxyzACGT", k=letters.randrange(1, 100)))
        assert few.count(text) == exact.count(text)


@pytest.mark.parametrize(
    "text", ["new \U0010fffe", "\ud800", "xq" * 500, "word " * 30_000], ids=["unknown", "surrogate", "piece", "long"]
)
def test_what_is_not_short_text_of_known_characters_starts_the_engine(
    name: str, exact: TiktokenCounter, text: str
) -> None:
    """Unknown characters, long pieces and long texts are counted by the engine, as tiktoken counts them."""
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
    """A prompt is counted and rendered before tiktoken, toktok or the module `regex` is imported."""
    program = (
        "import sys\nfrom timeline import sync\nfrom timeline.blocks import UserPrompt\n"
        "with sync.open_store('memory://') as store:\n"
        "    timeline = sync.Timeline.open(store, 'c')\n"
        "    timeline.append(UserPrompt(text='Caf\u00e9: \u4f60\u597d'))\n"
        "    print(timeline.render().account.total)\n"
        "print(sorted({'tiktoken', 'toktok', 'regex'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    tokens, loaded = done.stdout.splitlines()
    expected = len(load_encoding("o200k_base").encode_ordinary("Caf\u00e9: \u4f60\u597d"))
    assert (int(tokens), loaded) == (expected, "[]")


def test_an_engine_can_be_started_before_it_is_needed() -> None:
    """A server does it before its first request, which would hold the event loop for as long."""
    program = (
        "from timeline.tokens import get_counter, start_engine\n"
        "import tiktoken, toktok\n"
        "start_engine()\n"
        "toktok._Tokenizer = tiktoken.Encoding = None  # what makes the tables of the two\n"
        "print(get_counter('o200k_base').count('a b ' * 100_000))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "200001\n"


@pytest.mark.parametrize(
    ("characters", "engine"),
    [(90_000, "[]"), (4_000_000, "['tiktoken']"), (6_000_000, "['toktok']"), (None, "['toktok']")],
)
def test_the_engine_is_the_one_that_needs_the_least_time_for_so_many_characters(
    characters: int | None, engine: str
) -> None:
    """What toktok gains for each character, it loses at its start; a few characters need no engine at all."""
    program = (
        "import sys\nfrom timeline.tokens import start_engine\n"
        f"start_engine(characters={characters})\n"
        "print(sorted({'tiktoken', 'toktok'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == engine


def test_an_engine_that_runs_stays_whatever_is_to_come(name: str) -> None:
    """A second one would take its start and its memory once more."""
    counter = FirstCounter(name)
    counter.start(1_000_000)
    engine = counter.engine
    counter.start(None)
    assert counter.engine is engine
    assert isinstance(engine, TiktokenCounter)


def test_an_estimate_has_no_engine_to_start() -> None:
    """A policy may count by it, and the program need not ask by what."""
    start_engine("chars4")
    assert get_counter("chars4").count("12345") == 2
