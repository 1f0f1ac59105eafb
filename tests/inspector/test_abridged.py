"""What the inspector says of a result that is abridged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.abridged import read_numbered
from tests.inspector.asking import ask
from timeline.inspector.onefile.collecting import Wish
from timeline.inspector.onefile.page import one_file

if TYPE_CHECKING:
    from typing import Any

    from timeline.ports import EventStore


async def test_the_states_count_it_apart_from_hidden_blocks(app: Any, store: EventStore) -> None:
    """Its tokens are those of a result."""
    await read_numbered(store)
    state = (await ask(app, "/v1/conversations/c/state")).json
    assert {name: one["blocks"] for name, one in state["states"].items()} == {"visible": 1, "abridged": 1}
    assert set(state["by_role"]) == {"calls", "results"}


async def test_the_chart_has_no_mark_where_a_new_result_was_abridged(app: Any, store: EventStore) -> None:
    """Nothing that was sent before changed; a hide later is marked."""
    timeline = await read_numbered(store)
    assert (await ask(app, "/v1/conversations/c/chart")).json["marks"] == []
    await timeline.hide("@3")
    [mark] = (await ask(app, "/v1/conversations/c/chart")).json["marks"]
    assert (mark["version"], mark["type"]) == (timeline.version, "blocks.hidden")


async def test_a_file_has_the_tokens_that_were_sent_of_it_then(store: EventStore) -> None:
    """Also where the block is in another state now."""
    timeline = await read_numbered(store)
    sent = timeline.window.items[1].shown_tokens
    await timeline.hide("@3")
    _, carried = await one_file(store, timeline.id, Wish())
    changes = carried.histories.changes[3]
    assert [(state, tokens) for _, state, _, tokens in changes][:1] == [("abridged", sent)]
    assert [state for _, state, _, _ in changes] == ["abridged", "hidden"]
