"""Lines of a bounded length: what is cut is marked (design, section 6, replacements)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import COUNTER
from timeline.planning.replacements import cut_to, one_line, room_in, shortened, shortened_path
from timeline.tokens import get_counter

EXACT = get_counter("o200k_base")


def test_white_space_of_every_kind_is_one_space() -> None:
    """A line has no breaks, and no run of blanks takes its room."""
    assert one_line("  a\n\n\tb\r\n c ") == "a b c"


def test_a_long_text_is_cut_and_marked_before_it_is_looked_at() -> None:
    """Only a beginning that a line could hold is worked on."""
    assert one_line("x" * 2_000) == "x" * 2_000
    assert one_line("x" * 2_001) == "x" * 2_000 + "…"


def test_a_text_of_so_many_characters_has_its_mark_among_them() -> None:
    """And no blank in front of it."""
    assert cut_to("abc def", 7) == "abc def"
    assert cut_to("abc def", 6) == "abc d…"
    assert cut_to("abc def", 5) == "abc…"


def test_a_text_that_fits_stays_as_it_is() -> None:
    """No ellipsis where nothing is left out."""
    assert shortened("abc abc ", 2, COUNTER) == "abc abc "


def test_a_text_that_does_not_fit_keeps_its_beginning_and_an_ellipsis() -> None:
    """The ellipsis has its place in the count."""
    assert shortened("abc abc abc ", 2, COUNTER) == "abc…"
    assert shortened("abc abc abc ", 1, COUNTER) == ""


def test_of_a_path_the_end_stays() -> None:
    """The file's name and its nearest folders say most."""
    path = "/srv/agent/work/project/timeline/planning/hide.py"
    assert shortened_path(path, 20, COUNTER) == path
    assert shortened_path(path, 7, COUNTER) == "…/timeline/planning/hide.py"
    assert shortened_path(path, 3, COUNTER) == "…/hide.py"
    assert shortened_path("C:\\work\\project\\hide.py", 3, COUNTER) == "…\\hide.py"


def test_a_name_that_alone_is_too_long_keeps_its_beginning() -> None:
    """Then it is a text like any other."""
    assert shortened_path("src/abcdefghijklmnop.py", 3, COUNTER) == "abcdefgh…"
    assert shortened_path("abcdefghijklmnop", 2, COUNTER) == "abcd…"


def test_a_name_without_its_folders_never_passes_for_a_whole_path() -> None:
    """A name that just fits, and has no room left for the mark, gives up its end for it."""
    assert shortened_path("0/𐀀𐀀", 8, EXACT).endswith("…")


def test_the_room_of_a_line_is_what_its_frame_leaves() -> None:
    """Negative where the frame alone is too long."""
    assert room_in(lambda room: "abc " * 3 + "xyz " * room, 5, COUNTER) == 2
    assert room_in(lambda room: "abc " * 3 + "xyz " * room, 3, COUNTER) == 0
    assert room_in(lambda room: "abc " * 3 + "xyz " * room, 1, COUNTER) == -2


@given(st.text(max_size=300), st.integers(-5, 60))
def test_nothing_shortened_is_longer_than_asked(text: str, most: int) -> None:
    """By the exact counter, whose counts do not add up."""
    for short in (shortened(text, most, EXACT), shortened_path(text, most, EXACT)):
        assert EXACT.count(short) <= max(0, most)
        assert not short or short == text or "…" in short
