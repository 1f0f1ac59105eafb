"""The page about policies shows what the code does: its pictures and its table are made from the presets."""

from __future__ import annotations

import re
from typing import get_args
from xml.etree import ElementTree as ET

import pytest

from tests.project.pictures import PAGE, PICTURES, TABLE, pictures, table
from timeline.cli.picture import picture
from timeline.planning.outline import outline
from timeline.policy import model, steps
from timeline.policy.model import Policy
from timeline.policy.presets import PRESETS

HOW = "write them again: python -m tests.project.pictures"
NAMES = sorted(PRESETS)


def test_the_committed_pictures_are_those_of_the_presets() -> None:
    """A preset that changes takes its picture along; none is left over."""
    drawn = pictures()
    committed = {file: file.read_text(encoding="utf-8") for file in PICTURES.glob("*.svg")}
    assert committed.keys() == drawn.keys(), HOW
    assert [file.name for file in drawn if committed[file] != drawn[file]] == [], HOW


def test_the_committed_table_is_that_of_the_presets() -> None:
    """Figures and forms of the page are never older than the code."""
    found = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == table(), HOW


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_each_preset_once(name: str) -> None:
    """A heading, and the picture below it."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(f"(policies/{name}.svg)") == 1
    assert len(re.findall(rf"^### `{name}`", text, re.MULTILINE)) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_says_what_the_outline_says(name: str) -> None:
    """Well-formed, titled, with the limit, the line, what is kept free, every step and what is kept."""
    brief = outline(PRESETS[name]())
    root = ET.fromstring(picture(brief))  # noqa: S314 - our own drawing
    texts = [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]
    said = " ".join(texts)
    assert f"limit {brief.limit:,}" in texts
    assert brief.trigger is None or f"compacts above {brief.trigger:,}" in texts
    assert [step.title for step in brief.steps if step.title.split()[0] not in said] == []
    assert all(f"{reserve} {tokens:,}" in said for reserve, tokens in brief.reserves)
    assert brief.keeps in said


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_keeps_inside_its_page(name: str) -> None:
    """No box leaves the page, whatever the figures."""
    changes = {"max_tokens": 1_000, "output_reserve": 900} if name != "none" else {}
    for policy in (PRESETS[name](), PRESETS[name](**changes)):
        root = ET.fromstring(picture(outline(policy)))  # noqa: S314 - our own drawing
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        for box in root.iter("{http://www.w3.org/2000/svg}rect"):
            x, y = float(box.get("x", 0)), float(box.get("y", 0))
            assert 0 <= x <= x + float(box.attrib["width"]) <= width + 0.1
            assert 0 <= y <= y + float(box.attrib["height"]) <= height


@pytest.mark.parametrize("kind", [k for union in (steps.Step, model.Trigger) for k in get_args(get_args(union)[0])])
def test_every_kind_of_step_and_trigger_has_its_words(kind: type) -> None:
    """A new one cannot be forgotten in tables and pictures."""
    value = kind()
    field = "steps" if kind in get_args(get_args(steps.Step)[0]) else "trigger"
    brief = outline(Policy.model_validate({field: (value,) if field == "steps" else value}))
    assert brief.when
    assert brief.steps or brief.trigger is None


@pytest.mark.parametrize("cut", get_args(get_args(steps.Cut)[0]))
def test_every_kind_of_cut_has_its_words(cut: type) -> None:
    """Of what is summarised and of what is kept."""
    [step] = outline(Policy(steps=(steps.Summarize(cut=cut()),))).steps
    assert step.does
    assert step.keeps
