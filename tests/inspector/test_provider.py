"""The request that the inspector shows of a call is the one that the provider got from its own SDK."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.audit.test_call_bodies import assert_same, loop, model, received
from tests.inspector.asking import ask
from tests.providers.asking import WIRES
from tests.providers.server import FakeProvider
from timeline import open_store
from timeline.inspector import inspector

if TYPE_CHECKING:
    from pathlib import Path


async def shown(app: Any, number: int) -> tuple[str, dict[str, Any]]:
    """Return the body of a call as the pieces of its text add up to, and the last answer."""
    text, offset = "", 0
    while True:
        answer = (await ask(app, f"/v1/conversations/c/calls/{number}/body", {"offset": offset, "limit": 5_000})).json
        text += answer["text"]
        if answer["next_offset"] is None:
            return text, answer
        offset = answer["next_offset"]


@pytest.mark.parametrize("wire", WIRES)
async def test_the_body_and_the_pieces_of_each_call_are_what_the_provider_received(tmp_path: Path, wire: str) -> None:
    """Across compactions, from the database alone, with the hash as its verdict."""
    file = tmp_path / "agent.db"
    with FakeProvider(model) as provider:
        await loop(file, wire, provider, stream=False)
    async with open_store(file, readonly=True) as store:
        app = inspector(store)
        assert (await ask(app, "/v1/conversations/c")).json["conversation"]["calls"] == len(provider.asked)
        for number, asked in enumerate(provider.asked, start=1):
            text, answer = await shown(app, number)
            assert_same(received(asked), json.loads(text))
            assert (answer["wire"], answer["verdict"]) == (wire, "same")
            assert hashlib.sha256(text.encode()).hexdigest() == answer["sha256"]
            context = (await ask(app, f"/v1/conversations/c/calls/{number}/context")).json
            messages = next(v for k, v in json.loads(text).items() if k in {"messages", "input", "contents"})
            pieces = [json.loads(piece["text"]) for piece in context["pieces"] if "[" in piece["place"]]
            assert pieces == messages
