"""Where a framework's list leaves the log: a pure function of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from timeline.agent.divergence import Given, LoggedBlock, divergence

if TYPE_CHECKING:
    from timeline.agent.divergence import Divergence


def log(text: str, *, gone: str = "", ids: bool = False) -> list[LoggedBlock]:
    """Return a log of one block a letter; a capital one is no framework's, and places in ``gone`` are abandoned."""
    return [
        LoggedBlock(n, key, f"id{n}" if ids else "", owned=key.islower(), shown=str(n) not in gone)
        for n, key in enumerate(text, 1)
    ]


def said(text: str, *ids: str) -> list[Given]:
    """Return a list of one block a letter, with these ids."""
    return [Given(key, id_) for key, id_ in zip(text, [*ids, *[""] * len(text)], strict=False)]


def told(list_: list[Given], found: Divergence) -> tuple[str, tuple[int, ...]]:
    """Return what is new, and the versions that are abandoned."""
    return "".join(list_[number].key for number in found.new), found.abandoned


@pytest.mark.parametrize(
    ("known", "list_", "new", "abandoned"),
    [
        ("", "ab", "ab", ()),
        ("ab", "ab", "", ()),
        ("ab", "abcd", "cd", ()),
        ("abcd", "abx", "x", (3, 4)),
        ("abcd", "ab", "", (3, 4)),
        ("abcd", "cde", "e", ()),
        ("abcd", "ade", "e", ()),
        ("abcd", "e", "e", ()),
        ("abcd", "d", "", ()),
        ("abcdef", "cdx", "x", (5, 6)),
        ("abcdef", "cx", "cx", ()),
        ("pqpq", "pqp", "", (4,)),
        ("aqpqxq", "aqx", "x", (3, 4, 5, 6)),
        ("abNcd", "abx", "x", (4, 5)),
        ("abN", "abc", "c", ()),
        ("aNb", "ab", "", ()),
        ("Nab", "x", "x", ()),
        ("abcd", "xbcde", "xbcde", (1, 2, 3, 4)),
        ("abcd", "axcde", "xcde", (2, 3, 4)),
        ("abcd", "xd", "xd", ()),
    ],
)
def test_a_list_is_placed_by_content_and_order(known: str, list_: str, new: str, abandoned: tuple[int, ...]) -> None:
    """What is trimmed in front or in the middle is not abandoned, and neither is what others appended."""
    assert told(said(list_), divergence(said(list_), log(known))) == (new, abandoned)


def test_a_whole_list_that_shares_nothing_left_everything() -> None:
    """A single message is not taken for one without its history then."""
    assert divergence(said("x"), log("abN"), whole=True).abandoned == (1, 2)


def test_the_same_words_under_another_id_are_another_message_behind_what_is_known() -> None:
    """The later question is not the earlier one."""
    again = said("abc", "id1", "id2", "id9")
    assert told(again, divergence(again, log("abxyc", ids=True))) == ("c", (3, 4, 5))


def test_other_words_under_a_known_id_are_an_edit() -> None:
    """What was said in its place goes, with all behind it."""
    edited = said("x", "id1")
    assert told(edited, divergence(edited, log("ab", ids=True))) == ("x", (1, 2))
    assert told(edited, divergence(edited, log("Nab")[:1] + log("ab", ids=True))) == ("x", (1, 2))


def test_what_was_rewritten_in_the_middle_is_said_again_with_all_behind_it() -> None:
    """Under its id, or under a new one in its place; what was only trimmed in front of it stays."""
    known = log("abcd", ids=True)
    for id_ in ("id2", "new"):
        list_ = said("axcde", "id1", id_, "id3", "id4", "id5")
        assert told(list_, divergence(list_, known)) == ("xcde", (2, 3, 4))
    cut = said("xd", "id3", "id4")
    assert told(cut, divergence(cut, known)) == ("xd", (1, 2, 3, 4))


def test_what_is_new_between_known_messages_is_said_with_all_behind_it() -> None:
    """The order of the list is that of the context."""
    list_ = said("axbcd", "id1", "new", "id2", "id3", "id4")
    assert told(list_, divergence(list_, log("abcd", ids=True))) == ("xbcd", (2, 3, 4))


def test_a_removed_message_in_the_middle_is_trimmed_not_abandoned() -> None:
    """What comes behind it is still there."""
    rest = said("acd", "id1", "id3", "id4")
    assert told(rest, divergence(rest, log("abcd", ids=True))) == ("", ())


def test_messages_in_another_order_are_said_again_in_that_order() -> None:
    """From the first one on that the list has later than the log: none of them is shown twice."""
    moved = [Given("a", "id1"), Given("c", "id3"), Given("b", "id2"), Given("d", "id4")]
    assert told(moved, divergence(moved, log("abcd", ids=True))) == ("cbd", (2, 3, 4))
    last_first = [Given("c", "id3"), Given("a", "id1"), Given("b", "id2")]
    assert told(last_first, divergence(last_first, log("abc", ids=True))) == ("cab", (1, 2, 3))


def test_a_moved_message_is_not_taken_for_another_that_says_the_same() -> None:
    """Neither a new one in its old place, nor itself in the place of another: it would be shown twice."""
    new_in_its_place = said("abaab", "id1", "new", "id3", "id4", "id2")
    assert told(new_in_its_place, divergence(new_in_its_place, log("abaa", ids=True))) == ("baab", (2, 3, 4))
    in_anothers = said("aaa", "id2", "id1", "id4")
    assert told(in_anothers, divergence(in_anothers, log("aaaa", ids=True))) == ("aaa", (1, 2, 3, 4))


def test_a_message_that_the_list_has_twice_is_said_twice() -> None:
    """The second one is new, and what lies between them is not left."""
    twice = said("aba", "id1", "id2", "id1")
    assert told(twice, divergence(twice, log("ab", ids=True))) == ("a", ())


def test_a_branch_that_the_list_has_again_is_revived() -> None:
    """By its ids: the words alone do not bring an abandoned answer back."""
    known = log("abcxy", gone="23", ids=True)
    again = said("abcn", "id1", "id2", "id3", "id9")
    found = divergence(again, known)
    assert (found.new, found.abandoned, found.revived) == ((3,), (4, 5), (2, 3))
    assert divergence(said("abcn"), known).revived == ()


def test_a_branch_is_left_for_a_later_one_too() -> None:
    """What was shown meanwhile lies in front of what is taken up again."""
    known = log("abcxy", gone="45", ids=True)
    again = said("axy", "id1", "id4", "id5")
    found = divergence(again, known)
    assert (found.new, found.abandoned, found.revived) == ((), (2, 3), (4, 5))


def test_a_response_is_abandoned_as_a_whole_and_what_is_left_of_it_said_again() -> None:
    """A call that is kept without its result is answered anew."""
    known = [*log("ab"), LoggedBlock(3, "c", group=1), LoggedBlock(4, "r", group=1), LoggedBlock(5, "s", group=1)]
    assert told(said("abcr"), divergence(said("abcr"), known)) == ("cr", (3, 4, 5))


letters = st.text("abc", max_size=9)


@for_all(letters, letters, st.integers(0, 9))
def test_the_model_is_shown_what_the_list_says_or_more_of_what_was_said_before_it(
    known: str, tail: str, kept: int
) -> None:
    """Whoever goes back to a beginning of the history and says something else sees that and nothing more."""
    list_ = known[:kept] + tail
    if not known[:kept]:
        return
    found = divergence(said(list_), log(known))
    left = [block.key for block in log(known) if block.version not in found.abandoned]
    shown = "".join(left) + "".join(list_[number] for number in found.new)
    trimmed = iter(shown)
    assert all(letter in trimmed for letter in list_)
    assert shown == list_ or not found.abandoned


@for_all(letters, st.data())
def test_ids_place_any_beginning_exactly(known: str, data: st.DataObject) -> None:
    """Content says nothing then: exactly what is behind the beginning is abandoned, and all else new."""
    kept = data.draw(st.integers(1, max(1, len(known))))
    tail = data.draw(letters)
    ids = [f"id{n}" for n in range(1, len(known[:kept]) + 1)]
    list_ = said(known[:kept], *ids) + said(tail, *(f"new{n}" for n in range(len(tail))))
    found = divergence(list_, log(known, ids=True))
    if known:
        left = [block.key for block in log(known) if block.version not in found.abandoned]
        assert "".join(left) + "".join(list_[n].key for n in found.new) == known[:kept] + tail


@for_all(letters, st.data())
def test_a_list_with_ids_is_shown_in_its_order_and_known_the_second_time(known: str, data: st.DataObject) -> None:
    """Whatever was removed, rewritten, moved or added anywhere in it, as long as one message is what it was."""
    list_ = said(known, *(f"id{n}" for n in range(1, len(known) + 1)))
    list_ = [block for block in list_ if data.draw(st.booleans())]
    for number in range(1, len(list_)):
        if data.draw(st.booleans()):
            list_[number] = Given("x", list_[number].id)
    if not list_:
        return
    list_ = data.draw(st.permutations(list_) | st.just(list_))
    for number, key in enumerate(data.draw(letters)):
        list_.insert(data.draw(st.integers(0, len(list_))), Given(key, f"new{number}"))
    before = log(known, ids=True)
    found = divergence(list_, before)
    left = [block for block in before if block.version not in found.abandoned]
    after = [*left, *(LoggedBlock(100 + n, *list_[n]) for n in found.new)]
    shown = iter([block.key for block in after])
    assert all(block.key in shown for block in list_)
    known_ids = [(block.key, block.id) for block in after]
    assert len(known_ids) == len({*known_ids})
    again = divergence(list_, after)
    assert (again.new, again.abandoned) == ((), ())


@for_all(letters, letters)
def test_a_list_that_was_taken_is_known(known: str, list_: str) -> None:
    """The second time nothing is new, and nothing abandoned."""
    found = divergence(said(list_), log(known))
    left = [block for block in log(known) if block.version not in found.abandoned]
    left += [LoggedBlock(100 + n, list_[n]) for n in found.new]
    again = divergence(said(list_), left)
    if list_:
        assert again.new == ()
