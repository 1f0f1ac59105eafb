"""The chain of hashes over a context's entries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from timeline.wire.neutral import Entry, EntryChain, NeutralContext

ENTRIES = [Entry(path=f"c:turn_{n}.user.prompt", type="user.prompt", role="user", text=f"word {n}") for n in range(6)]
CONTEXTS = st.lists(st.lists(st.sampled_from(ENTRIES), max_size=8), max_size=6)


@given(CONTEXTS)
def test_a_chain_that_hashed_other_contexts_ends_as_one_that_hashed_none(contexts: list[list[Entry]]) -> None:
    """Appended, changed, removed or moved entries: what is remembered saves work, and changes nothing."""
    chain = EntryChain()
    assert [chain.end(entries) for entries in contexts] == [EntryChain().end(entries) for entries in contexts]


@given(st.permutations(range(4)), st.permutations(range(4)))
def test_other_entries_or_another_order_end_in_another_link(one: list[int], other: list[int]) -> None:
    """The last link stands for all entries before it, in their order."""
    ends = {EntryChain().end([ENTRIES[n] for n in order]) for order in (one, other, one[:-1])}
    assert len(ends) == len({tuple(one), tuple(other), tuple(one[:-1])})


def test_a_chain_of_no_entries_has_no_link() -> None:
    """A context may hold nothing but a system prompt."""
    assert EntryChain().end(()) == b""


def test_an_entry_that_moves_to_the_ephemeral_tail_changes_the_fingerprint() -> None:
    """What stands beside the entries is hashed with them."""
    first, second = ENTRIES[:2]
    kept = NeutralContext(entries=(first, second))
    assert kept.fingerprint() != NeutralContext(entries=(first,), ephemeral=(second,)).fingerprint()
