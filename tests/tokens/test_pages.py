from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeline.tokens import pages
from timeline.tokens.pages import Pages, pack
from timeline.tokens.vocabulary import VOCABULARIES

TOKENS = st.lists(st.binary(min_size=1, max_size=128), unique=True, max_size=3 * pages.PAGE)


@given(tokens=TOKENS, others=st.lists(st.binary(max_size=130)))
def test_each_token_of_a_pack_has_its_rank_and_nothing_else_has_one(tokens: list[bytes], others: list[bytes]) -> None:
    """Look-ups and the whole give back what was packed; bytes before, between and behind the tokens are none."""
    packed = Pages(pack(tokens))
    ranks = {token: rank for rank, token in enumerate(tokens)}
    assert packed.all() == ranks
    for token in (*tokens, *others, b"", b"\x00", b"\xff" * 129):
        assert packed.rank(token) == ranks.get(token)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_token_that_ships_is_found_on_its_page(name: str) -> None:
    """The first token of a page and the last one of it included, a look-up finds what the whole has."""
    packed = VOCABULARIES[name].pages()
    assert all(packed.rank(token) == rank for token, rank in packed.all().items())


def test_a_look_up_unpacks_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second token of the same page unpacks none."""
    monkeypatch.setattr(pages, "PAGE", 2)
    packed = Pages(pack([b"a", b"b", b"c", b"d"]))
    assert (packed.rank(b"d"), packed.rank(b"c"), packed.rank(b"cc")) == (3, 2, None)
    assert len(packed._read) == 1
