from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from string import ascii_lowercase
from time import process_time
from typing import TYPE_CHECKING
from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from timeline.errors import InvalidFilter
from timeline.store.search.columns import columns_of
from timeline.store.search.snippets import WIDTH, snippet
from timeline.store.search.words import LONGEST, SEAM, WORD, Query, Words, composed, humps_of

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("src/app/main.py", ["src", "app", "main", "py"]),
        ("test_login(x=1)", ["test", "login", "x", "1"]),
        ("don't", ["don", "t"]),
        ("Straße ΟΔΟΣ", ["strasse", "οδοσ"]),
        ("新会话 start", ["新", "会", "话", "start"]),
        ("main.py에서 회의를", ["main", "py", "에", "서", "회", "의", "를"]),
        ("की किताब", ["की", "किताब"]),
        ("தமிழ் שָׁלוֹם x\u0323y", ["தமிழ்", "שָׁלוֹם", "x\u0323y"]),
        ("ไทย ที่", ["ไ", "ท", "ย", "ท", "ี", "่"]),
        ("= \u0338 _\u0301", []),
        ("", []),
        ("_ . / \n \x00 😀", []),
        ("a" * 150, ["a" * LONGEST, "a" * LONGEST, "a" * (150 - 2 * LONGEST)]),
    ],
)
def test_a_text_is_cut_into_runs_of_letters_and_digits(text: str, words: list[str]) -> None:
    """Signs divide, case is folded, Chinese goes sign by sign, and no word is longer than it may be."""
    assert Words.of(text).words == words


@pytest.mark.parametrize(
    ("word", "humps"),
    [
        ("getUserName", ("get", "user", "name")),
        ("HTTPServer", ("http", "server")),
        ("GitHub", ("git", "hub")),
        ("utf8Decoder", ("utf8", "decoder")),
        ("Python", ()),
        ("python", ()),
        ("README", ()),
        ("42", ()),
        ("aB" * (LONGEST // 2), ()),
    ],
)
def test_a_word_has_humps_where_a_capital_begins_anew(word: str, humps: tuple[str, ...]) -> None:
    """A word of one hump has none apart, and a run that was cut is no identifier."""
    assert humps_of(word) == humps


def test_the_index_cuts_the_columns_just_as_they_were_made() -> None:
    """Whatever the characters are, FTS5's tokenizer finds our words in the columns: it has no rules of its own left."""
    everything = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
    words = Words.of(everything.replace("a", "aB "))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5 (words, humps, tokenize = 'ascii')")
        connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (t, 'instance')")
        connection.execute("INSERT INTO t VALUES (?, ?)", words.columns)
        cut = connection.execute("SELECT col, term FROM terms ORDER BY col DESC, offset").fetchall()
    assert [term for column, term in cut if column == "words"] == words.words
    assert [term for column, term in cut if column == "humps" and term != SEAM] == [h for w in words.humps for h in w]
    assert len(cut) == words.size


def _indexed(words: str, humps: str) -> list[tuple[str, str, int]]:
    """Return what FTS5 has of a text: the words of each column, in order."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5 (words, humps, content = '', tokenize = 'ascii')")
        connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (t, 'instance')")
        connection.execute("INSERT INTO t (rowid, words, humps) VALUES (1, ?, ?)", (words, humps))
        return connection.execute("SELECT col, term, offset FROM terms ORDER BY col, offset").fetchall()


SIGNS = st.text(st.sampled_from("aZ09_ .\n\0éß新会\u0130\u2014\U0001f600\ud800") | st.characters(), max_size=60)


@given(st.lists(SIGNS | st.sampled_from(["getUserName", "HTTPServer", "x" * 64, "aB" * 33, "x" * 200]), max_size=8))
@example(["x" * 64, "\u2014", "x" * 65])
@example(["getUserName\0isNext", "\0", "HTTPServer"])
@example(["aB" * 32, " ", "aB" * 33, "é"])
def test_a_text_that_is_indexed_as_it_is_has_the_words_that_it_is_cut_into(parts: list[str]) -> None:
    """What is written for FTS5 holds the same words at the same places, and is empty for a text without a word."""
    text = "".join(parts)
    words = Words.of(text)
    assert _indexed(*columns_of(text)) == _indexed(*words.columns)
    assert bool(columns_of(text)[0]) is bool(words.words)


@given(st.text())
@example("İﬀŉ")
def test_folding_makes_no_word_into_two(text: str) -> None:
    """A folded word holds no sign at which the index would divide it."""
    for word in Words.of(text).words:
        assert word
        assert not [sign for sign in word if sign.isascii() and not sign.isalnum()]


@given(st.text(st.sampled_from("aÜ\u0301\u0e34ि\u0390") | st.characters(categories=["L", "M", "N"]), max_size=2_000))
@example("\u0390" + "\u0327\u0301\u0327\u0301\u0390" * 200)
def test_no_word_is_longer_than_postgresql_takes(text: str) -> None:
    """Whatever its letters and marks are, as a lexeme with a letter in front."""
    assert all(len(f"w{word}".encode()) < 2_047 for word in Words.of(composed(text)).words)


@given(st.text())
def test_whatever_is_typed_is_a_query_or_is_refused(text: str) -> None:
    """There is no syntax error, and every word that is typed is asked for."""
    try:
        query = Query.parse(text)
    except InvalidFilter:
        assert not WORD.search(composed(text))
        return
    asked = {part for phrase in query.phrases if phrase.in_words for part in phrase.parts}
    assert asked == set(Words.of(composed(text)).words)


@given(st.text(min_size=1).filter(WORD.search))
@example("getUserName*")
@example('a "b c" d*')
def test_every_text_is_found_by_itself(text: str) -> None:
    """What was copied out of a block finds that block."""
    query = Query.parse(text)
    text = composed(text)
    assert query.met(query.counts(Words.of(text)))
    assert snippet(text, query) is not None


LETTERS = st.text("abX _.1新会\n", max_size=300)


@given(LETTERS, st.text('abX 1新"*', min_size=1, max_size=9).filter(WORD.search), st.integers(1, 40))
@example("aB" * 100, "b", 3)
@example("a b a b a b", '"a b a"', 1)
def test_a_long_text_is_searched_piece_by_piece_as_if_it_were_one(text: str, asked: str, piece: int) -> None:
    """Its words, its counts and its snippet are those of the whole, wherever it is parted."""
    whole, query = Words.of(text), Query.parse(asked)
    line = snippet(text, query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("timeline.store.search.words.PIECE", piece)
        assert _indexed(*columns_of(text)) == _indexed(*whole.columns)
        assert query.counted(text) == (whole.size, query.counts(whole))
        assert snippet(text, query) == line


@pytest.mark.parametrize("star", ["", "*"])
def test_a_query_of_hundreds_of_words_costs_little_more_than_one_of_a_few(star: str) -> None:
    """Each text is cut and walked over once, however many words are asked for: of a thousand hits, too."""
    names = [f"{first}{second}" for first in ascii_lowercase for second in ascii_lowercase][: 1_000 // (3 + len(star))]
    text = " ".join((*names, "getUserName", *(f"{name}z{number}" for number in range(10) for name in names)))

    def cost(asked: Sequence[str]) -> float:
        query, times = Query.parse(" ".join(f"{name}{star}" for name in asked)), []
        for _ in range(5):
            started = process_time()
            for _ in range(5):
                query.counted(text)
                assert snippet(text, query) is not None
            times.append(process_time() - started)
        return min(times)

    assert cost(names) < 12 * cost(names[:2])


@given(st.text("ab X.\n", max_size=600), st.text("abX ", min_size=1, max_size=4).filter(str.strip))
def test_a_snippet_is_one_short_line_of_the_text_with_a_hit(text: str, asked: str) -> None:
    """It is there exactly when the text is found, and without its marks and ends it is a piece of the text."""
    query = Query.parse(asked)
    line = snippet(text, query)
    assert (line is not None) == query.met(query.counts(Words.of(text)))
    if line is not None:
        plain = line.strip("…").replace("«", "").replace("»", "")
        assert "«" in line
        assert "\n" not in line
        assert plain in " ".join(text.split())
        assert len(plain) <= WIDTH


@pytest.mark.parametrize("letters", ["ที่นี่มีปัญหา", "បញ្ហានេះ", "နေပြည်တော်", "e\u0323x\ufe0f"])
@pytest.mark.parametrize("shift", range(5))
def test_a_snippet_begins_and_ends_with_whole_signs_where_a_text_has_no_spaces(letters: str, shift: int) -> None:
    """A vowel or a tone that Thai writes on a letter would stand alone, on a circle."""
    run = letters * 40
    line = snippet(f"{run[:-shift] if shift else run}・word・{run[shift:]}", Query.parse("word"))
    assert line is not None
    shown = line.strip("…")
    assert len(shown) <= WIDTH + len("«»")
    assert not category(shown[0]).startswith("M")
    behind = run[shift:][len(shown.partition("»・")[2]) :]
    assert not category(behind[0]).startswith("M")
