"""Replacements of hidden blocks: what they say, how long they are, how they end (design, section 6, hiding)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import answer, call, prompt, result, window_of, words
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    Block,
    CustomBlock,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
)
from timeline.events import Replacement
from timeline.fold.window import Item
from timeline.frozen import canonical_json
from timeline.planning.replacements import HIDDEN_KEY, replacement_of
from timeline.tokens import get_counter

EXACT = get_counter("o200k_base")
PICTURE: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
MOST = 60


def stands_for(*blocks: Block, most: int = MOST) -> Replacement:
    """Return the replacement of the last of some blocks, under the exact counter."""
    items = window_of(prompt(), *blocks).items
    item = items[-1]
    asked = next((i.block for i in items if i.version == item.answers), None)
    counted = Item(item.version, item.place, item.block, 1_234)
    return replacement_of(counted, asked, most, EXACT)


def text_of(*blocks: Block, most: int = MOST) -> str:
    """Return the replacement's text."""
    return stands_for(*blocks, most=most).text


def arguments_of(block: ToolCall, most: int = MOST) -> dict[str, Any]:
    """Return a replacement's arguments."""
    arguments = stands_for(block, most=most).arguments
    assert arguments is not None
    return arguments


# Results


def test_a_result_says_tool_arguments_size_and_status_and_ends_with_its_path() -> None:
    """All that a model needs to know whether it wants it back."""
    asked = call("a", "Bash", arguments={"command": "make test"})
    assert text_of(asked, result("a", exit_status=2)) == (
        "[Bash(make test): 1234 tokens, exit 2, hidden] tc:turn_1.a.result"
    )


@pytest.mark.parametrize(
    ("fields", "status"),
    [({}, "ok"), ({"is_error": True}, "error"), ({"exit_status": 0}, "exit 0"), ({"exit_status": 1}, "exit 1")],
)
def test_the_status_is_the_exit_status_where_there_is_one(fields: dict[str, Any], status: str) -> None:
    """Else it is ok or error."""
    assert f", {status}, hidden]" in text_of(call("a"), result("a", **fields))


def test_a_result_without_its_call_says_what_it_knows() -> None:
    """An orphan has no arguments, and perhaps no name."""
    assert text_of(result("a", name="grep")) == "[grep(): 1234 tokens, ok, hidden] tc:turn_1.a.result"
    assert text_of(result("a")) == "[tool(): 1234 tokens, ok, hidden] tc:turn_1.a.result"


def test_a_tool_that_no_rule_knows_is_told_by_its_arguments() -> None:
    """By name, on one line."""
    asked = call("a", "Task", arguments={"description": "Review\nit", "depth": 2})
    assert text_of(asked, result("a")).startswith("[Task(description=Review it, depth=2): 1234 tokens")


def test_arguments_that_are_no_object_are_told_as_they_are() -> None:
    """The model wrote no valid JSON."""
    assert text_of(call("a", "Task", arguments='{"x": tor'), result("a")).startswith('[Task({"x": tor): 1234')


def test_a_long_command_is_cut_and_marked() -> None:
    """What was left out never passes for nothing."""
    asked = call("a", "Bash", arguments={"command": "pytest tests/unit/test_number_and_so_on.py --verbose " * 9})
    text = text_of(asked, result("a"))
    assert text.startswith("[Bash(pytest tests/unit/")
    assert "…): 1234 tokens, ok, hidden] tc:turn_1.a.result" in text


def test_of_a_long_file_the_name_stays() -> None:
    """The end of a path tells most."""
    asked = call("a", "Read", arguments={"file_path": "/srv/agent/" + "folder_number/" * 20 + "main.py"})
    text = text_of(asked, result("a"))
    assert text.startswith("[Read(…/folder_number/")
    assert "/main.py): 1234 tokens" in text


def test_pictures_of_a_result_are_counted() -> None:
    """What is hidden with it is said."""
    assert "1234 tokens with 1 picture, ok" in text_of(call("a"), result("a", data=[PICTURE]))
    assert "1234 tokens with 2 pictures, ok" in text_of(call("a"), result("a", data=[PICTURE, PICTURE]))


def test_a_name_with_brackets_is_only_a_name() -> None:
    """The arguments stand behind the whole of it."""
    asked = call("a", "run()", arguments={"command": "ls"})
    assert text_of(asked, result("a")).startswith("[run()(ls): ")


# Calls


def test_a_call_keeps_what_it_is_about_and_its_small_arguments() -> None:
    """The bulky ones are marked; one line says how large all of it was, and where."""
    edit = {"file_path": "src/a.py", "old_string": words(90), "new_string": words(90), "replace_all": True}
    assert arguments_of(call("a", "Edit", arguments=edit)) == {
        "file_path": "src/a.py",
        "old_string": "[hidden]",
        "new_string": "[hidden]",
        "replace_all": True,
        HIDDEN_KEY: "[1234 tokens, hidden] tc:turn_1.a.call",
    }


def test_the_note_of_a_call_comes_last() -> None:
    """What is sent ends with the path."""
    sent = json.dumps(arguments_of(call("a", "Write", arguments={"content": words(99), "file_path": "a.py"})))
    assert sent.endswith('tc:turn_1.a.call"}')


def test_where_room_is_short_the_subject_goes_before_marks_and_small_arguments() -> None:
    """The file that was edited is worth more than that something else was left out."""
    given = {"file_path": "/srv/agent/project/src/package/module.py", **{f"key_{n}": n for n in range(12)}}
    assert arguments_of(call("a", "Edit", arguments=given)) == {
        "file_path": "/srv/agent/project/src/package/module.py",
        HIDDEN_KEY: "[1234 tokens, hidden] tc:turn_1.a.call",
    }


def test_a_long_subject_of_a_call_is_shortened() -> None:
    """A script keeps its beginning, a file its name."""
    script = arguments_of(call("a", "Bash", arguments={"command": "python - <<E\n" + words(300), "timeout": 9}))
    assert script["command"].startswith("python - <<E abc abc")
    assert script["command"].endswith("…")
    assert script["timeout"] == 9
    file = arguments_of(call("a", "Write", arguments={"file_path": "/deep" * 40 + "/a.py", "content": words(9)}))
    assert file["file_path"].startswith("…/deep/")
    assert file["file_path"].endswith("/a.py")


def test_a_patch_names_its_files() -> None:
    """They stand in its text, not in an argument of their own; raw text becomes an object."""
    patch = f"*** Begin Patch\n*** Update File: a.py\n{words(50)}\n*** Add File: b.py\n{words(50)}\n*** End Patch"
    note = "[a.py, b.py: 1234 tokens, hidden] tc:turn_1.a.call"
    assert arguments_of(call("a", "apply_patch", arguments={"input": patch})) == {
        "input": "[hidden]",
        HIDDEN_KEY: note,
    }
    assert arguments_of(call("a", "apply_patch", arguments=patch)) == {HIDDEN_KEY: note}


def test_torn_arguments_become_a_valid_object() -> None:
    """The wire takes objects only."""
    assert arguments_of(call("a", arguments='{"x": ' + words(99))) == {
        HIDDEN_KEY: "[1234 tokens, hidden] tc:turn_1.a.call"
    }


# Texts, thoughts and attachments


@pytest.mark.parametrize(
    "block",
    [
        prompt(text="Please look\ninto it. " + words(200)),
        answer(text="Please look\ninto it. " + words(200)),
        SystemMessage(text="Please look\ninto it. " + words(200)),
        CustomBlock(type="app.x", text="Please look\ninto it. " + words(200)),
    ],
    ids=lambda block: block.type,
)
def test_a_text_keeps_its_beginning_on_one_line(block: Block) -> None:
    """Its size and path stand behind it."""
    text = text_of(block)
    assert text.startswith("Please look into it. abc abc")
    path = window_of(prompt(), block).items[-1].block.path
    assert text.endswith(f"… [1234 tokens, shortened] {path}")
    assert "\n" not in text


def test_a_text_that_only_carries_pictures_says_so() -> None:
    """Nothing stands before the bracket then."""
    assert text_of(prompt(text="", data=[PICTURE])) == ("[1234 tokens with 1 picture, shortened] ar:turn_2.user.prompt")


def test_a_thought_leaves_nothing() -> None:
    """It is of no use once its round is long over; its signed part is not sent either."""
    assert stands_for(Reasoning(text="hm", data={"type": "thinking"})) == Replacement(version=3)


def test_an_attachment_says_its_name_kind_and_size() -> None:
    """A picture is told as one."""
    plan = Attachment(text="# Plan", mime="text/markdown", meta={"file": "docs/plan.md"})
    assert text_of(plan) == "[docs/plan.md: text/markdown, 1234 tokens, hidden] fi:turn_1.docs/plan%2Emd"
    assert text_of(Attachment(data=PICTURE)) == (
        "[attachment: 1234 tokens with 1 picture, hidden] " + window_of(Attachment(data=PICTURE)).items[0].block.path
    ).replace("turn_0", "turn_1")


def test_a_long_name_of_an_attachment_is_shortened_from_the_left() -> None:
    """As a file's is anywhere."""
    name = "/very/deep" * 30 + "/plan.md"
    item = Item(1, 1, Attachment(text="x", path="fi:turn_1.plan", meta={"file": name}), 1_234)
    text = replacement_of(item, None, MOST, EXACT).text
    assert text.startswith("[…/")
    assert "/plan.md: text/plain, 1234 tokens, hidden] fi:turn_1.plan" in text


# All of them

TEXTS = st.text(max_size=400)
BLOCKS = st.one_of(
    st.builds(ToolResult, call_id=st.just("a"), name=TEXTS, text=TEXTS, is_error=st.booleans()),
    st.builds(AssistantCompletion, text=TEXTS),
    st.builds(Attachment, text=TEXTS, mime=TEXTS, meta=st.fixed_dictionaries({"file": TEXTS})),
    st.builds(
        ToolCall,
        call_id=st.just("a"),
        name=st.sampled_from(["Bash", "Edit", "apply_patch", "x" * 64]),
        arguments=st.dictionaries(st.sampled_from(["command", "file_path", "a", "b"]), TEXTS | st.integers()) | TEXTS,
    ),
)


@given(BLOCKS, st.integers(1, 10**7), st.integers(40, 80))
def test_every_replacement_fits_its_cap_and_ends_with_its_path(block: Block, tokens: int, most: int) -> None:
    """Whatever the names, texts and arguments; the count that is recorded is the true one."""
    path = "tc:turn_12.call_34.result"
    item = Item(7, 7, block.model_copy(update={"path": path}), tokens)
    asked = call("a", "Bash", arguments={"command": block.text})
    made = replacement_of(item, asked, most, EXACT)
    assert (made.version, made.tokens <= most) == (7, True), made
    if isinstance(block, ToolCall):
        assert made.arguments is not None
        assert str(made.arguments[HIDDEN_KEY]).endswith(f"] {path}")
        assert made.tokens == EXACT.count(block.name + canonical_json(made.arguments))
    else:
        assert made.text.endswith(f"] {path}")
        assert "\n" not in made.text
        assert made.tokens == EXACT.count(made.text)


def test_a_path_that_is_longer_than_the_cap_is_printed_all_the_same() -> None:
    """Without it nobody could read the block back."""
    text = text_of(call("x" * 300), result("x" * 300), most=20)
    assert text.endswith(f"] tc:turn_1.{'x' * 300}.result")
