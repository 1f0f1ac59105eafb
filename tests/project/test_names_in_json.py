"""One name for one thing: the keys of everything that prints JSON, held against the table in docs/formats.md."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import typing
from functools import cache
from typing import Any, Final, NamedTuple

import pytest
from pydantic import AwareDatetime

from tests.project.sources import ROOT
from timeline.frozen import Frozen

PRINTED: Final = (
    "timeline.answers.calls",
    "timeline.answers.digests",
    "timeline.answers.facts",
    "timeline.answers.found",
    "timeline.answers.listed",
    "timeline.answers.total_usage",
    "timeline.audit.calls",
    "timeline.audit.deep",
    "timeline.audit.retold",
    "timeline.audit.verify",
    "timeline.audit.why",
    "timeline.cli.shapes",
    "timeline.inspector.shapes",
    "timeline.integrations.mcp.answers",
    "timeline.lab.simulate",
    "timeline.planning.account",
    "timeline.projection.diff",
    "timeline.projection.explain",
    "timeline.projection.summary_diff",
    "timeline.queries",
    "timeline.usage",
)
"""Modules with what commands, MCP tools, the inspector and the Python API answer."""
LAB: Final = ("timeline.lab.comparison", "timeline.lab.results", "timeline.lab.validation")
"""Modules with what `timeline lab` prints: held against the table; what else is in them are figures of its own."""
ASKED: Final = ("timeline.inspector.asked", "timeline.integrations.mcp.arguments")
"""Modules with the parameters of the inspector and of MCP."""
BESIDE: Final = {
    ("Call", "call"): "the call that was asked for by its number",
    ("Call", "unproved"): "why nothing proves it",
    ("Conversation", "conversation"): "the row of the conversation that was asked for",
    ("FactRecord", "asked"): "by prompt, in a value that no surface prints",
    ("Problem", "status"): "HTTP's, by RFC 9457",
    ("VerifyReport", "chain"): "how often this invariant does not hold, as of the next ones",
    ("VerifyReport", "checksum"): "see chain",
    ("VerifyReport", "rewritten"): "how many events were",
}
"""Fields with another meaning than the name has elsewhere, each with the reason."""
SEVERAL: Final = {
    "after": "see before",
    "before": "of a comparison what stands before it, whatever is compared",
    "done": "whether all was done, how much of it was, and what was done",
    "facts": "the figures behind a decision, and the facts of a conversation",
    "left": "the blocks that left a context, and what an erasure leaves",
    "left_out": "how much more there is, of several lists by their names",
    "policy": "the policy, or its name",
}
"""Keys with several forms, each with the reason."""
FORMS: Final = {
    bool: "truth",
    int: "number",
    float: "number",
    str: "text",
    AwareDatetime: "text",
    tuple: "list",
    list: "list",
    frozenset: "list",
    dict: "object",
}
WORDS: Final = {
    "bool": "truth",
    "int": "number",
    "float": "number",
    "str": "text",
    "datetime": "text",
    "tuple": "list",
    "list": "list",
    "dict": "object",
    "Mapping": "object",
    "FactKind": "text",
    "FactSource": "text",
    "Literal": "text",
    "WhyState": "text",
    "KeptLong": "text",
    "CacheKind": "text",
    "Facts": "object",
}


class Key(NamedTuple):
    """A field of an answer: where it is, its name, and its form in JSON."""

    shape: str
    name: str
    form: str


class Entry(NamedTuple):
    """A row of the table: names, the forms that they may have, and names that are given up for them."""

    names: tuple[str, ...]
    forms: frozenset[str]
    never: tuple[str, ...]


@cache
def table() -> list[Entry]:
    """Return the rows of the table."""
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8").partition("## Names in JSON")[2]
    rows = [line.strip("|").split("|") for line in text.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    return [
        Entry(
            names=tuple(re.findall(r"`(\w+)`", names)),
            forms=frozenset(forms.strip().split(" or ")),
            never=tuple(re.findall(r"`(\w+)`", never)),
        )
        for names, forms, _, never in rows
    ]


@cache
def keys() -> list[Key]:
    """Return the fields of all answers."""
    return [Key(shape.__name__, name, form) for shape in shapes(PRINTED) for name, form in forms_of(shape)]


def shapes(modules: tuple[str, ...]) -> list[type[Any]]:
    """Return the models, dataclasses and typed dictionaries that modules define."""
    found = [one for name in modules for one in vars(importlib.import_module(name)).values() if inspect.isclass(one)]
    return [
        one
        for one in found
        if one.__module__ in modules
        and not one.__name__.startswith("_")
        and (typing.is_typeddict(one) or dataclasses.is_dataclass(one) or issubclass(one, Frozen))
    ]


def forms_of(shape: type[Any]) -> list[tuple[str, str]]:
    """Return the names of a shape's fields with their forms."""
    if not typing.is_typeddict(shape) and issubclass(shape, Frozen):
        return [(name, form_of(field.annotation)) for name, field in shape.model_fields.items()]
    given = [(name, getattr(one, "__forward_arg__", one)) for name, one in shape.__annotations__.items()]
    return [(name, form_as_written(one) if isinstance(one, str) else form_of(one)) for name, one in given]


def names_of(shape: type[Any]) -> list[str]:
    """Return the names of a shape's fields."""
    return [name for name, _ in forms_of(shape)]


def dumped() -> list[tuple[str, str]]:
    """Return the keys that methods named ``dump`` write by hand, each with its class."""
    trees = [ast.parse(inspect.getsource(importlib.import_module(name))) for name in (*PRINTED, *LAB)]
    classes = [one for tree in trees for one in ast.walk(tree) if isinstance(one, ast.ClassDef)]
    methods = [(one.name, part) for one in classes for part in one.body if getattr(part, "name", "") == "dump"]
    return [
        (shape, str(key.value))
        for shape, method in methods
        for part in ast.walk(method)
        if isinstance(part, ast.Dict)
        for key in part.keys
        if isinstance(key, ast.Constant)
    ]


def form_of(annotation: Any) -> str:
    """Return the form of a type in JSON; null is of every form."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return FORMS[type(args[0])]
    if (parts := [one for one in args if one is not type(None)]) and type(None) in args:
        return form_of(parts[0])
    return FORMS.get(origin or annotation, "object")


def form_as_written(text: str) -> str:
    """Return the form of a type that is written as text, since its module imports it for checkers alone."""
    return WORDS.get(re.split(r"\W", text, maxsplit=1)[0], "object")


def test_the_table_is_read() -> None:
    """Of both kinds: names with and without others that they stand for."""
    assert len(table()) > 25
    assert len(keys()) > 300
    assert {form for entry in table() for form in entry.forms} <= {"number", "text", "truth", "list", "object"}


def test_every_name_of_the_table_is_in_use() -> None:
    """As a key of an answer, or as a parameter."""
    asked = {name for shape in shapes(ASKED) for name in shape.model_fields}
    known = {key.name for key in keys()} | asked
    assert {name for entry in table() for name in entry.names} <= known


@pytest.mark.parametrize("entry", table(), ids=lambda entry: entry.names[0])
def test_a_name_has_one_form(entry: Entry) -> None:
    """So that a reader of one surface reads the others."""
    lab = [Key(shape.__name__, name, form) for shape in shapes(LAB) for name, form in forms_of(shape)]
    found = [key for key in (*keys(), *lab) if key.name in entry.names and (key.shape, key.name) not in BESIDE]
    assert [key for key in found if key.form not in entry.forms] == []


def test_no_answer_has_a_name_that_another_one_stands_for() -> None:
    """Nor has a question, nor what a ``dump`` writes in other words than its fields."""
    never = {name for entry in table() for name in entry.never}
    asked = [(shape.__name__, name) for shape in shapes((*ASKED, *LAB)) for name in names_of(shape)]
    found = [*((key.shape, key.name) for key in keys()), *asked, *dumped()]
    assert [one for one in found if one[1] in never and one not in BESIDE] == []


def test_what_two_surfaces_have_in_common_has_one_form() -> None:
    """Of all keys, in the table or not: a plural alone is the list here, and how many there are there."""
    forms: dict[str, dict[str, str]] = {}
    for key in keys():
        if (key.shape, key.name) not in BESIDE:
            forms.setdefault(key.name, {})[key.form] = key.shape
    several = {name: found for name, found in forms.items() if len(found) > 1}
    counted = {name for name, found in several.items() if set(found) == {"list", "number"} and name.endswith("s")}
    assert {name: several[name] for name in several.keys() - counted - SEVERAL.keys()} == {}
    assert SEVERAL.keys() <= several.keys()
