"""The API against its own description: whatever is asked, the answer has the shape that was promised."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.inspector.asking import Answer, ask, segment
from tests.inspector.golden import GOLDEN, described
from tests.inspector.sent import NAME, SCRIPT, converse
from timeline.inspector import inspector
from timeline.inspector.asked import DECISIONS
from timeline.inspector.openapi import openapi
from timeline.inspector.routes import ROUTES
from timeline.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import DrawFn, SearchStrategy

DESCRIBED = openapi()
PATHS = [f"/{route.path}" for route in ROUTES]
SLOW = "/v1/conversations/{id}/what-if"
"""It runs a log again each time: it is asked only for what it refuses, and once in earnest elsewhere."""
KNOWN: dict[str, list[object]] = {
    "id": [NAME, NAME, NAME, "fork", "c"],
    "conversation": [NAME, "fork"],
    "address": ["@2", "@9", "@3", f"{NAME}@4", "fork@2", "ar:turn_1.user.prompt"],
    "block": ["@2", "@5", "@60", "ar:turn_1.user.prompt"],
    "a": ["last~1", "#2", "call:3", "@30"],
    "b": ["last", "#4", "call:9", "@31"],
    "other": ["fork", NAME, "c"],
    "wire": ["anthropic", "openai-chat", "gemini", ""],
    "types": ["user.prompt", "user.prompt,assistant.completion"],
    "since": ["2026-01-31T12:00:00Z", "2026-01-31"],
    "until": ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"],
    "query": ["answer 4", '"answer', "deck*", "NEAR(", SCRIPT],
}
NUMBERS = st.integers(-3, 90) | st.sampled_from([2**31, 2**53, 2**63, 2**64, -(2**63)])


@pytest.fixture(scope="module")
def asking() -> Iterator[Any]:
    """Give a function that asks the inspector of one conversation and a fork of it, in a loop of its own."""
    with asyncio.Runner() as runner:
        store = runner.run(_open())
        app = inspector(store)
        yield lambda path, query: runner.run(ask(app, path, query))
        runner.run(store.aclose())


@pytest.fixture(scope="module")
def deciding() -> Iterator[Any]:
    """Give a function that sends a decision about one conversation, in a loop of its own."""
    with asyncio.Runner() as runner:
        store = runner.run(_open())
        app = inspector(store, allow=DECISIONS)
        path, headers = f"/v1/conversations/{segment(NAME)}/decisions", {"x-timeline-decision": "1"}
        yield lambda text: runner.run(ask(app, path, method="POST", headers=headers, body=[text.encode()]))
        runner.run(store.aclose())


async def _open() -> Any:
    store = await open_store("memory://")
    await converse(store)
    await converse(store, "fork")
    return store


def values(name: str, schema: dict[str, Any]) -> SearchStrategy[object]:
    """Return values of a parameter: likely ones, and any text."""
    likely: SearchStrategy[object] = st.sampled_from(KNOWN[name]) if name in KNOWN else NUMBERS
    if schema.get("type") == "boolean":
        likely = st.booleans()
    return likely | likely | likely | st.text(max_size=20)


@st.composite
def requests(draw: DrawFn) -> tuple[str, str, dict[str, object]]:
    """Draw a path of the description, the same with its parameters, and a query."""
    template = draw(st.sampled_from(PATHS))
    path, query = template, dict[str, object]()
    for parameter in DESCRIBED["paths"][template]["get"]["parameters"]:
        name, value = parameter["name"], draw(values(parameter["name"], parameter["schema"]))
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", segment(_encodable(value)))
        elif draw(st.booleans()) or name in {"query", "block"}:
            query[name] = _encodable(value)
    if draw(st.integers(0, 9)) == 0:
        query[_encodable(draw(st.text(max_size=5)))] = "x"
    if template == SLOW:
        query["policy"] = "no such policy"
    return template, path, query


def _encodable(value: object) -> str:
    return str(value).encode(errors="replace").decode()


def check(template: str, answer: Answer) -> None:
    """Check an answer against the description of its path."""
    kind = answer.headers["content-type"]
    responses = DESCRIBED["paths"][template]["get"]["responses"]
    promised = responses["200" if answer.status == 200 else f"{answer.status // 100}XX"]["content"]
    schema = {**promised[kind]["schema"], "components": DESCRIBED["components"]}
    Draft202012Validator(schema).validate(answer.json)
    if answer.status != 200:
        assert answer.json["status"] == answer.status
        assert answer.json["detail"].endswith((".", "?", '"'))


@given(asked=requests())
def test_every_answer_has_the_shape_that_is_described(asking: Any, asked: tuple[str, str, dict[str, object]]) -> None:
    """And no request, however wrong, ends in an error of the server."""
    template, path, query = asked
    answer = asking(path, query)
    assert answer.status in {200, 400, 404, 409}, answer.body
    check(template, answer)


@st.composite
def decisions(draw: DrawFn) -> object:
    """Draw the body of a decision: one that may be meant, with any values, or anything that JSON has."""
    fields = DESCRIBED["components"]["schemas"]["AskedDecision"]["properties"]
    if draw(st.integers(0, 4)) == 0:
        return draw(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
    body: dict[str, object] = {"decision": draw(st.sampled_from(sorted(DECISIONS)))}
    for name in draw(st.lists(st.sampled_from(sorted(fields)), max_size=4)):
        likely = {"block": st.sampled_from(KNOWN["block"]), "mode": st.sampled_from(["replace", "omit"])}
        body[name] = draw(likely.get(name, NUMBERS | st.booleans()) | st.none() | st.text(max_size=9))
    return body


@given(body=decisions())
def test_any_decision_is_taken_or_refused_with_a_reason(deciding: Any, body: object) -> None:
    """Whatever is in its body, and whatever was decided before."""
    answer = deciding(json.dumps(body))
    model = "Decided" if answer.status == 200 else "Problem"
    assert answer.status in {200, 400, 404, 409}, answer.body
    schema = {"$ref": f"#/components/schemas/{model}", "components": DESCRIBED["components"]}
    Draft202012Validator(schema).validate(answer.json)


@given(path=st.text(max_size=30), query=st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=2))
def test_any_other_address_is_none(asking: Any, path: str, query: dict[str, str]) -> None:
    """Also one that would be a file's."""
    answer = asking("/x" + segment(_encodable(path)), {_encodable(k): _encodable(v) for k, v in query.items()})
    assert (answer.status, answer.json["type"]) == (404, "no-such-address")


@pytest.mark.parametrize("template", PATHS)
def test_each_path_answers_what_is_likely_to_be_asked(asking: Any, template: str) -> None:
    """So that the search above has met the shape of each answer."""
    names = {"id": NAME, "address": "@2", "number": "3", "version": "30", "query": "deck", "block": "@2"}
    path, query = template, dict[str, str]()
    for parameter in DESCRIBED["paths"][template]["get"]["parameters"]:
        name = parameter["name"]
        if parameter["in"] == "path":
            value = names[name]
            if name == "version":
                value = str(asking(path.partition("/{version}")[0], {}).json["compactions"][0]["version"])
            path = path.replace(f"{{{name}}}", segment(value))
        elif "default" not in parameter["schema"] and "anyOf" not in parameter["schema"]:
            query[name] = names[name]
    answer = asking(path, query)
    assert answer.status == 200, answer.body
    check(template, answer)


def test_the_description_is_the_one_that_is_kept() -> None:
    """Keys may be added to an answer, none goes or changes; `python -m tests.inspector.golden` writes it anew."""
    assert described() == GOLDEN.read_text(encoding="utf-8")


def test_the_description_is_served(asking: Any) -> None:
    """At an address of its own, relative to where the inspector is mounted."""
    assert asking("/v1/openapi.json", {}).json == json.loads(described())
    assert set(PATHS) < set(DESCRIBED["paths"])
