"""Markers in names: each goes without a byte, or the report names what stays, with the command that removes it."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

import pytest

from tests.depth import at_night, sampled
from tests.forgetting.planted import places_left
from timeline import Timeline, policies
from timeline.blocks import AssistantCompletion, Attachment, ToolCall, ToolResult, UserPrompt
from timeline.errors import InvalidArgument
from timeline.forgetting import find_subject
from timeline.store.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue

WHY: Final = "a person's name"
MARKS: Final = ("kestrelmark77", "Straße-Ключ-ñ77", "KestrelMARK77")
GOES: Final = (
    *("tool name", "meta", "meta key", "title", "system prompt", "tool definition", "tail", "file name", "argument"),
    *("argument key", "data", "stage", "label", "decision", "model", "response", "error", "replacement"),
)
IN_TURN: Final = [
    pytest.param(where, mark, marks=() if turn % len(MARKS) == number else at_night)
    for (turn, where), (number, mark) in product(enumerate(GOES), enumerate(MARKS))
]
"""Each place with one of the marks, in turn; with the others at night."""


async def _planted(store: SQLiteStore, where: str, mark: str) -> Timeline:
    """Begin a conversation that says a mark at one place, compact it, and ask for everything that is derived."""

    def said(place: str, otherwise: str) -> str:
        return mark if place == where else otherwise

    id_, title = said("conversation", "cards"), said("title", "Cards")
    timeline = await Timeline.open(store, id_, title=title, policy=policies.cut_point(max_tokens=4_000))
    await timeline.append(UserPrompt(text="Begin.", meta={"who": said("meta", "x"), said("meta key", "k"): 1}))
    await timeline.enter_stage(said("stage", "plan"), label=said("label", "Plan"))
    call_id = said("path", "call")
    arguments: dict[str, JsonValue] = {
        "file_path": f"/srv/{said('file name', 'a')}.txt",
        said("argument key", "x"): f"say {said('argument', 'it')}",
    }
    call = ToolCall(call_id=call_id, name=said("tool name", "Write"), arguments=arguments)
    result = ToolResult(call_id=call_id, text="done", data={"said": [said("data", "x")]})
    await timeline.append(call, result)
    await timeline.approve_stage(decision=said("decision", "go"), short="s", detailed="d")
    hidden = (await timeline.append(UserPrompt(text="Hide me. " * 40)))[0]
    await timeline.hide(hidden.path, text=said("replacement", "[long]"))
    definition: JsonValue = {"name": "f", "description": said("tool definition", "x")}
    system, tail = f"Be {said('system prompt', 'x')}.", [f"Now {said('tail', 'x')}."]
    await timeline.render(system=system, tools=[definition], ephemeral=tail)
    response = said("response", "r1")
    await timeline.record_model_call(model=said("model", "m"), response_id=response, error=said("error", ""))
    await timeline.append(AssistantCompletion(text="Done. " * 400, response_id=response))
    fork = await timeline.fork(conversation="fork")
    for number in range(6):
        await timeline.append(UserPrompt(text=f"Go on, {number}. " * 200))
        await timeline.render(system=system)
    await fork.append(UserPrompt(text="Go on. " * 200))
    _ = [hit async for hit in store.search("begin")], [fact async for fact in store.facts()]
    return timeline


async def _redact(store: SQLiteStore, mark: str) -> dict[str, str]:
    """Redact every place at which a mark is said; return what was left by then."""
    left: dict[str, str] = {}
    places: dict[str, list[str]] = {}
    async for found in find_subject(store, mark):
        if found.kind not in {"path", "conversation"}:
            places.setdefault(found.conversation, []).append(found.place)
    for id_, named in places.items():
        timeline = await Timeline.open(store, id_, create=False)
        left = dict((await timeline.redact(named, WHY, text=mark)).left)
    return left


@sampled
@pytest.mark.parametrize(("where", "mark"), IN_TURN)
async def test_a_marker_in_a_name_goes_without_a_byte(tmp_path: Path, where: str, mark: str) -> None:
    """Out of the file, its log and its index; what is left verifies, and forks too."""
    file = tmp_path / "a.db"
    async with await SQLiteStore.open(file, durability="normal") as store:
        await _planted(store, where, mark)
        assert places_left(file, (mark,)) != {}
        assert await _redact(store, mark) == {}
        assert [found async for found in find_subject(store, mark)] == []
        assert places_left(file, (mark,)) == {}
        for id_ in ("cards", "fork"):
            timeline = await Timeline.open(store, id_, create=False)
            report = await timeline.verify()
            assert report.ok, report.problems


@pytest.mark.parametrize("where", ["path", "conversation"])
async def test_a_name_that_stays_is_reported_with_the_command_that_removes_it(tmp_path: Path, where: str) -> None:
    """A path and an id are what other events refer to."""
    mark = MARKS[0]
    async with await SQLiteStore.open(tmp_path / "a.db", durability="normal") as store:
        timeline = await _planted(store, where, mark)
        named = next(block.path for block in (await timeline.append(UserPrompt(text=f"By {mark}."))))
        if where == "path":
            named = f"tc:turn_1.{mark}.call"
        report = await timeline.redact(named, WHY, text=mark)
        key = "paths" if where == "path" else "conversations"
        assert set(report.left) == {key}
        assert mark in report.left[key]
        assert f"`timeline erase {timeline.id}`" in report.left[key]
        if where == "conversation":
            with pytest.raises(InvalidArgument, match="`timeline erase"):
                await timeline.redact(timeline.id, WHY, text=mark)


async def test_an_address_in_the_name_of_a_file_is_found_in_the_path_that_stays(tmp_path: Path) -> None:
    """A path has a full stop and a space in other letters."""
    mark = "jane roe@example.org"
    async with await SQLiteStore.open(tmp_path / "a.db", durability="normal") as store:
        timeline = await Timeline.open(store, "cards")
        [sent] = await timeline.append(Attachment(text="Her letter.", meta={"file": f"{mark}.pdf"}))
        assert mark not in sent.path
        report = await timeline.redact(sent.path, WHY, text=mark)
        assert sent.path in report.left["paths"]
        assert [(found.kind, found.place) async for found in find_subject(store, mark)] == [("path", sent.path)]
