"""What is found and taken out of texts, and what the list of it shows."""

from __future__ import annotations

import pytest

from tests.inspector.exporting import SECRET
from timeline.errors import InvalidArgument
from timeline.inspector.cleaning import Cleaner


def _cleaned(*texts: str, keep: tuple[str, ...] = ()) -> tuple[list[str], Cleaner]:
    cleaner = Cleaner(keep)
    cleaner.learn(list(texts))
    return [cleaner.clean(text, f"@{number}") for number, text in enumerate(texts)], cleaner


def test_a_secret_is_taken_out_before_the_place_at_which_it_is_recognised() -> None:
    """It is recognised by its label, and was said without it earlier."""
    value = "q7RzK2vXw9LmT4bYc8NdJ3hF"
    texts, cleaner = _cleaned(f"I use {value} here.", f"password: {value}")
    assert not [text for text in texts if value in text]
    [one] = cleaner.taken
    assert (one.times, one.places, one.place) == (2, 2, "@0")


def test_the_list_shows_what_is_around_a_finding_and_never_a_credential() -> None:
    """Nor the credential beside it; of a short one fewer characters are shown."""
    other = "ghp_" + "Zy9X" * 9
    _, cleaner = _cleaned(f"first {SECRET} then {other} at the end", "see https://ada:s3cr3t@example.org")
    excerpts = {one.kind: one.excerpt for one in cleaner.taken}
    assert sorted(one.excerpt for one in cleaner.taken if one.kind == "github") == [
        "first «ghp_… 40 characters» then [github left out]…",
        "…[github left out] then «ghp_… 40 characters» at the end",
    ]
    assert excerpts["url"] == "see https://ada:«s… 6 characters»@example.org"
    shown = " ".join(one.excerpt for one in cleaner.taken)
    assert SECRET not in shown
    assert other not in shown
    assert "s3c" not in shown


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("cd /home/ada/app", "cd ~/app"),
        ("in /home/ada, and (/home/ada).", "in ~, and (~)."),
        ('{"out": "done\\n/home/ada/app"}', '{"out": "done\\n~/app"}'),
        ("C:\\Users\\ada\\app and /Users/ada", "~\\app and ~"),
        ("cc -I/home/ada/include /home/ada", "cc -I~/include ~"),
        ("~/.config/projects/-home-ada-app of /home/ada", "~/.config/projects/~-app of ~"),
        ("https://example.org/home/page", "https://example.org/home/page"),
    ],
)
def test_the_name_of_a_home_folder_goes(text: str, left: str) -> None:
    """Also behind an option, behind an escaped line break, and where a tool writes it with dashes."""
    assert _cleaned(text)[0] == [left]


def test_a_finding_has_one_name_wherever_it_is_found() -> None:
    """So the list of one run serves the next, and a longer log."""
    _, first = _cleaned(f"token={SECRET}")
    _, second = _cleaned("new", "/home/ada", f"and {SECRET} again")
    names = {one.kind: one.name for one in second.taken}
    assert first.taken[0].name == names["github"]
    texts, cleaner = _cleaned(f"token={SECRET} in /home/ada", keep=(names["github"],))
    assert texts == [f"token={SECRET} in ~"]
    cleaner.check_kept()
    assert [one.kind for one in cleaner.taken] == ["home folder"]


def test_what_is_to_be_kept_has_to_be_there() -> None:
    """A name that no finding has is named."""
    _, cleaner = _cleaned("nothing", keep=("abcd1234",))
    with pytest.raises(InvalidArgument, match="abcd1234"):
        cleaner.check_kept()


def test_thousands_of_planted_credentials_are_each_taken_out_and_found_again() -> None:
    """A page may have any number of them, and each other text of the log is then looked through for all."""
    tokens = [f"ghp_{'a1B2' * 8}{number:04}" for number in range(2_000)]
    cleaner = Cleaner()
    assert cleaner.clean(" ".join(tokens), "@1").count("ghp_") == 0
    again = cleaner.clean(f"-x{tokens[1_234]}", "@2")
    assert "ghp_" not in again
    times = [found.times for found in cleaner.taken]
    assert (len(times), times[1_234], sum(times)) == (2_000, 2, 2_001)
