from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.depth import examples
from timeline.errors import InvalidPolicy
from timeline.frozen import repair_text
from timeline.tokens import COUNTER_NAMES, get_counter
from timeline.tokens import counter as counting
from timeline.tokens.counter import (
    _SCANNED,
    _SEAM,
    BLANKS,
    QuarterCounter,
    TiktokenCounter,
    ToktokCounter,
    load_encoding,
)
from timeline.tokens.first import FirstCounter
from timeline.tokens.vocabulary import LONGEST_TOKEN, VOCABULARIES

if TYPE_CHECKING:
    from tiktoken import Encoding

    from timeline.ports import TokenCounter


@dataclass(frozen=True)
class Engines:
    """Two counters that are to agree about everything, with each other and with tiktoken as it is."""

    tiktoken: TiktokenCounter
    toktok: ToktokCounter
    original: Encoding
    """tiktoken with its own pattern."""

    @property
    def both(self) -> tuple[TiktokenCounter, ToktokCounter]:
        """Both, for what each is to do alone."""
        return self.tiktoken, self.toktok


@pytest.fixture(scope="module", params=VOCABULARIES)
def engines(request: pytest.FixtureRequest) -> Engines:
    """Both engines for one vocabulary."""
    name = request.param
    original = load_encoding(name, pattern=VOCABULARIES[name].pattern)
    return Engines(TiktokenCounter(name), ToktokCounter(name), original)


def _code_points(n: int) -> str:
    return "".join(map(chr, random.Random(7).choices([*range(0xD800), *range(0xE000, 0x30000)], k=n)))


def _dna(n: int) -> str:
    return "".join(random.Random(7).choices("ACGT", k=n))


TEXTS: Final[dict[str, str]] = {
    "empty": "",
    "english": "The quick brown fox can't jump; it'll rest, they've said.\n\n  Then? YES!\t",
    "indonesian": "Ringkasan diskusi sebelumnya: pengguna meminta kartu belajar berbahasa Indonesia.",
    "chinese": "上下文压缩会插入一个摘要块\uff0c并隐藏较旧的块。数字\uff1a\uff11\uff12\uff13、456。",
    "japanese": "コンテキストの圧縮は、古いブロックを隠します。「テスト」を実行してください\uff01",
    "arabic": "يتم إدراج كتلة ملخص وإخفاء الكتل القديمة.",
    "hindi": "पुराने ब्लॉक छिपाए जाते हैं और सारांश जोड़ा जाता है।",
    "thai": "บล็อกเก่าจะถูกซ่อนและเพิ่มบทสรุป",
    "emoji": "👩\u200d👩\u200d👧\u200d👦 🧠🏳️\u200d🌈 ok 👍🏽",
    "combining": "Z͑ͫ̓ͪ̂ͫ̽a͖̱l̰g̲o e\u0301 E\u0301COLE",
    "special": "<|endoftext|> <|endofprompt|><|fim_prefix|>x<|im_start|>system",
    "control": "\x00\x01\x1b[31mred\x1b[0m\r\n\x7f\x85\u2028\ufeff",
    "numbers": "3.14159 1234567890 -42 0xDEADBEEF 1e-9 ½ ² Ⅻ ٣",
    "json": '{"a":[1,2,{"b":null}],"path":"src/app/main.py","ok":true}' * 20,
    "base64": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5eg+/==" * 20,
    "code": "def f(x: int) -> int:\n    return {k: v for k, v in x.items() if v}  # noqa\n\n\nclass A:\n\tpass\n" * 20,
    "spaces": "a" + " " * 300 + "\n\n \t \n" + " " * 90 + "b  ",
    "code points": _code_points(20_000),
    "dna": _dna(20_000),
}
ANY_CHARACTER: Final = st.characters()  # lone surrogates included
LONG_RUNS: Final = {"a megabyte of a": "a" * 1_000_000, "signs": "=" * 200_000, "blanks": " " * 200_000}
# Few characters, so that long pieces, contractions, white space and split characters come up often.
TRICKY: Final = st.text(st.sampled_from("aAbtsSlLrReE'\u2019 \n\r\t/.,!()=_-0123é中。🧠\u0301\u00a0½"), max_size=60)
WORDS: Final = st.lists(
    st.sampled_from(["the ", "compaction", "\n\n", "   ", "don't", " src/a.py", "12345", "中文", "🧠"])
)
# One character of every class that the patterns tell apart.
PIECES: Final = st.text(
    st.sampled_from("aAsSǅʰ中\u0301\u0345'1²\u2160 \t\n\r\v\x85\u00a0\u2028/.,_🧠\u200d\x00"), max_size=80
)
each_text: Final = pytest.mark.parametrize("text", [*TEXTS.values(), *LONG_RUNS.values()], ids=[*TEXTS, *LONG_RUNS])


@each_text
def test_both_engines_agree_with_tiktokens_own_ids(engines: Engines, text: str) -> None:
    """On every kind of text both engines count as many tokens as `encode_ordinary` gives ids."""
    ids = len(engines.original.encode_ordinary(text))
    for counter in engines.both:
        assert counter.count(text) == ids
        assert counter.count_many([text, "", text]) == [ids, 0, ids]


@each_text
@pytest.mark.parametrize("tokens", [1, 100, 5_000])
def test_every_kind_of_text_is_cut_close_to_the_cap(engines: Engines, text: str, tokens: int) -> None:
    """Long texts and long runs are cut too: at the cap or, inside a character or run, a few tokens below it."""
    for counter in engines.both:
        cut = counter.truncate(text, tokens)
        assert text.startswith(cut)
        assert cut == text or tokens - 3 <= counter.count(cut) <= tokens


@given(text=TRICKY | PIECES | st.text(max_size=200))
@example(text="\u0301A\u0301a'S")
@example(text="a \t\n 'lL 12 345678 ...\r\n/\n  ")
def test_the_quick_pattern_makes_the_pieces_of_tiktokens_own(engines: Engines, text: str) -> None:
    """Whatever the text, the ids are those that tiktoken gives with the pattern that it ships."""
    assert engines.tiktoken._encoding.encode_ordinary(text) == engines.original.encode_ordinary(text)


def test_a_long_run_of_white_space_is_counted_too(engines: Engines) -> None:
    """Where tiktoken's own regex engine gives up, at a million, the count is still exact."""
    text = f"before{' ' * (BLANKS + 51_200)}\nafter"
    assert engines.tiktoken.count(text) == engines.toktok.count(text)
    assert len(engines.tiktoken.truncate(text, 20)) < len(text)


@given(text=st.text(ANY_CHARACTER, max_size=200))
def test_any_text_counts_alike_in_both_engines(engines: Engines, text: str) -> None:
    """Counting never fails, lone surrogates included, and both engines give one number: that of the repaired text."""
    assert engines.tiktoken.count(text) == engines.toktok.count(text) == engines.tiktoken.count(repair_text(text))
    assert engines.tiktoken.count_many([text]) == engines.toktok.count_many([text])


@pytest.mark.parametrize("name", VOCABULARIES)
def test_special_tokens_are_ordinary_text(name: str) -> None:
    """A special token's name in a text costs several tokens and raises nothing."""
    assert get_counter(name).count("<|endoftext|>") == 7
    assert get_counter(name).count_many(["<|endoftext|>"]) == [7]


@pytest.mark.parametrize("text", ["\ud800", "a\udc00b", "\ud83d\ude00", "\udfff" * 10])
def test_surrogates_are_counted_as_their_repair(engines: Engines, text: str) -> None:
    """A lone surrogate counts as the replacement character, a split pair as the character that it makes."""
    for counter in engines.both:
        assert counter.count(text) == counter.count(repair_text(text)) > 0
        assert counter.truncate(text, 10**6) == repair_text(text)


@pytest.mark.shows("004-37")
def test_known_counts_hold() -> None:
    """Two counts that tiktoken's own documentation and cookbook give."""
    assert get_counter("cl100k_base").count("tiktoken is great!") == 6
    assert get_counter("o200k_base").count("antidisestablishmentarianism") == 6


def test_a_counter_is_loaded_once() -> None:
    """The same name gives the same object, and each counter carries the name that is stored with its counts."""
    for name in COUNTER_NAMES:
        assert get_counter(name) is get_counter(name)
        assert get_counter(name).name == name


def test_an_unknown_counter_is_refused_with_the_names_that_exist() -> None:
    """The error names the field and every valid name."""
    with pytest.raises(InvalidPolicy, match="o200k_base, cl100k_base, chars4") as caught:
        get_counter("p50k_base")
    assert caught.value.field == "counter"


def test_without_the_extra_tiktoken_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where toktok cannot be imported tiktoken is the engine, and it counts the same."""
    assert isinstance(FirstCounter("cl100k_base").engine, ToktokCounter)
    monkeypatch.setitem(sys.modules, "toktok", None)
    counter = FirstCounter("cl100k_base")
    first = counter.count("hello world")
    assert isinstance(counter.engine, TiktokenCounter)
    assert counter.engine.name == counter.name == "cl100k_base"
    assert counter.count("hello world") == first == 2


def test_importing_the_package_loads_no_tokenizer() -> None:
    """Neither engine is imported before a counter is asked for."""
    program = "import sys, timeline.tokens; print(sorted({'tiktoken', 'toktok'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.shows("004-37")
def test_loading_uses_no_cache_folder_and_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoding is built although tiktoken's own loader cannot be called."""

    def refuse(*_: object) -> bytes:
        raise AssertionError("tiktoken tried to read a file")

    monkeypatch.setattr("tiktoken.load.read_file", refuse)
    assert load_encoding("cl100k_base").encode_ordinary("hello world") == [15339, 1917]


@pytest.mark.shows("001-1", "001-56", "004-33", "R-001-1")
@given(text=st.text(ANY_CHARACTER), tokens=st.integers(-2, 40))
def test_a_quarter_of_the_characters(text: str, tokens: int) -> None:
    """The estimate is ceil(characters / 4), and truncating to it gives the longest prefix that it allows."""
    counter: TokenCounter = QuarterCounter()
    assert counter.count(text) == (len(text) + 3) // 4
    assert counter.count_many([text, ""]) == [counter.count(text), 0]
    cut = counter.truncate(text, tokens)
    assert text.startswith(cut)
    assert counter.count(cut) <= max(tokens, 0)
    assert cut == text or counter.count(text[: len(cut) + 1]) > tokens


def _longest_by_trying(counter: TokenCounter, text: str, tokens: int) -> str:
    return max((text[:n] for n in range(len(text) + 1) if counter.count(text[:n]) <= max(tokens, 0)), key=len)


@given(text=TRICKY | WORDS.map("".join), tokens=st.integers(-1, 30))
@example(text="abc", tokens=1)
@example(text="🧠🧠", tokens=4)
def test_the_longest_prefix_is_the_one_that_trying_all_finds(engines: Engines, text: str, tokens: int) -> None:
    """Both engines return exactly the longest prefix that counts at most so many tokens."""
    expected = _longest_by_trying(engines.toktok, text, tokens)
    assert engines.toktok.truncate(text, tokens) == expected
    assert engines.tiktoken.truncate(text, tokens) == expected


def _by_whole_stretches(counter: TiktokenCounter | ToktokCounter, text: str, tokens: int) -> str:
    """Cut a text by the rule as it reads: take stretch after stretch, and encode the one that does not fit whole."""
    start = 0
    for end in (*(seam.start() for seam in _SEAM.finditer(text)), len(text)):
        stretch = text[start:end]
        if (needed := counter.count(stretch)) > tokens:
            best = counter._cut(stretch, tokens)
            while counter.count(stretch[:best]) > tokens:
                best -= 1
            length = best if best <= _SCANNED else len(stretch)
            while length < len(stretch) and length - best < LONGEST_TOKEN:
                length += 1
                best = length if counter.count(stretch[:length]) <= tokens else best
            return text[: start + best]
        start, tokens = end, tokens - needed
    return text


@settings(max_examples=examples(200))
@given(
    runs=st.lists(
        st.tuples(
            st.sampled_from(["你好世界", "x", "abab", " ", "🙂", "ไทย", "A", "1", "word ", "。", "\n"]),
            st.sampled_from([1, 30, 500, 3_000]),
        ),
        min_size=1,
        max_size=4,
    ),
    tokens=st.integers(1, 3_000),
)
def test_a_text_without_seams_is_cut_where_its_whole_encoding_cuts_it(
    engines: Engines, runs: list[tuple[str, int]], tokens: int
) -> None:
    """That only some of what is behind the cut is looked at moves no cut."""
    text = "".join(part * times for part, times in runs)
    assert engines.toktok.truncate(text, tokens) == _by_whole_stretches(engines.toktok, text, tokens)


class Tallied(ToktokCounter):
    """Adds up the characters that it counts."""

    characters = 0

    def count(self, text: str) -> int:
        """Count, and note how much."""
        self.characters += len(text)
        return super().count(text)


@pytest.mark.parametrize("part", ["你好世界", "x", "今天我们来看。", "word "])
def test_a_prefix_costs_the_same_however_long_the_text_is(part: str) -> None:
    """With or without seams, what is far behind the cut is not counted."""
    short, long = Tallied("o200k_base"), Tallied("o200k_base")
    assert short.truncate(part * 40_000, 2_000) == long.truncate(part * 400_000, 2_000)
    assert long.characters == short.characters


@given(text=st.text(ANY_CHARACTER, max_size=300), tokens=st.integers(0, 200))
def test_a_cut_text_is_a_prefix_that_keeps_the_cap(engines: Engines, text: str, tokens: int) -> None:
    """Of any text comes a prefix without broken characters that counts at most so many tokens."""
    cut = engines.tiktoken.truncate(text, tokens)
    assert repair_text(text).startswith(cut)
    assert engines.tiktoken.count(cut) <= tokens
    assert cut.encode().decode() == cut


@given(left=TRICKY | st.text(max_size=30), right=TRICKY | st.text(max_size=30))
def test_counts_add_up_at_seams(engines: Engines, left: str, right: str) -> None:
    """At a seam the whole counts as much as its two sides, whatever stands on them."""
    text, counter = left + right, engines.toktok
    for seam in _SEAM.finditer(text):
        at = seam.start()
        assert counter.count(text) == counter.count(text[:at]) + counter.count(text[at:])


@given(text=TRICKY | PIECES | st.text(max_size=300))
def test_a_long_text_is_counted_in_parts_that_add_up(engines: Engines, text: str) -> None:
    """Its ids would take ten times its size in memory; here every text of more than ten characters is long."""
    with pytest.MonkeyPatch.context() as patched:
        whole = engines.tiktoken.count(text)
        patched.setattr(counting, "LONGEST_PART", 10)
        assert "".join(counting.parts_between_seams(text)) == text
        for engine in (engines.tiktoken, engines.toktok):
            assert engine.count(text) == whole
            assert engine.count_many([text, "ab", text]) == [whole, engine.count("ab"), whole]
