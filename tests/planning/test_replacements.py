"""Replacements of hidden blocks: what they say, how long they are, how they end (design, section 6, hiding)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import answer, call, prompt, result, window_of, words
from tests.wire.entries import SERVER_CALL, SERVER_RESULT
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


def stands_for(*blocks: Block, most: int = MOST, address: str = "@152") -> Replacement:
    """Return the replacement of the last of some blocks, under the exact counter."""
    items = window_of(prompt(), *blocks).items
    item = items[-1]
    asked = next((i.block for i in items if i.version == item.answers), None)
    counted = Item(item.version, item.place, item.block, 1_234)
    return replacement_of(counted, asked, most, EXACT, address=address)


def text_of(*blocks: Block, most: int = MOST) -> str:
    """Return the replacement's text."""
    return stands_for(*blocks, most=most).text


def arguments_of(block: ToolCall, most: int = MOST) -> dict[str, Any]:
    """Return a replacement's arguments."""
    arguments = stands_for(block, most=most).arguments
    assert arguments is not None
    return arguments


# Results


def test_what_a_tool_of_the_provider_did_says_its_name_and_arguments_or_the_kind_of_result() -> None:
    """Such a block has no text of its own."""
    found, ran = (CustomBlock(type="assistant.part", data=data) for data in (SERVER_RESULT, SERVER_CALL))
    assert text_of(ran) == "[web_search(query=q): 1234 tokens, hidden] @152"
    assert text_of(found) == "[web_search_tool_result: 1234 tokens, hidden] @152"


def test_a_result_says_tool_arguments_size_and_status_and_ends_with_its_address() -> None:
    """All that a model needs to know whether it wants it back."""
    asked = call("a", "Bash", arguments={"command": "make test"})
    assert text_of(asked, result("a", exit_status=2)) == ("[Bash(make test): 1234 tokens, exit 2, hidden] @152")


@pytest.mark.parametrize(
    ("fields", "status"),
    [({}, "ok"), ({"is_error": True}, "error"), ({"exit_status": 0}, "exit 0"), ({"exit_status": 1}, "exit 1")],
)
def test_the_status_is_the_exit_status_where_there_is_one(fields: dict[str, Any], status: str) -> None:
    """Else it is ok or error."""
    assert f", {status}, hidden]" in text_of(call("a"), result("a", **fields))


def test_a_result_without_its_call_says_what_it_knows() -> None:
    """An orphan has no arguments, and perhaps no name."""
    assert text_of(result("a", name="grep")) == "[grep(): 1234 tokens, ok, hidden] @152"
    assert text_of(result("a")) == "[tool(): 1234 tokens, ok, hidden] @152"


def test_a_tool_that_no_rule_knows_is_told_by_its_arguments() -> None:
    """By name, on one line."""
    asked = call("a", "Deploy", arguments={"description": "Review\nit", "depth": 2})
    assert text_of(asked, result("a")).startswith("[Deploy(description=Review it, depth=2): 1234 tokens")


def test_a_tool_that_no_rule_knows_is_told_by_its_file_first_and_by_texts_before_structures() -> None:
    """There is room for the first ones alone."""
    looked = call("a", "LSP", arguments={"operation": "documentSymbol", "filePath": "cmd/logging/logger.go"})
    assert text_of(looked, result("a")).startswith("[LSP(filePath=cmd/logging/logger.go, ")
    planned = call("a", "ExitPlan", arguments={"allowed": [{"prompt": "run tests"}] * 9, "plan": "# Count the lines"})
    assert text_of(planned, result("a")).startswith("[ExitPlan(plan=# Count the lines, ")


def test_a_task_of_another_agent_is_told_by_what_it_was_asked() -> None:
    """In short, where the call says it in short."""
    asked = call(
        "a", "Task", arguments={"description": "Review\nit", "prompt": "Look at all files and say what is wrong."}
    )
    assert text_of(asked, result("a")).startswith("[Task(Review it): 1234 tokens")


def test_arguments_that_are_no_object_are_told_as_they_are() -> None:
    """The model wrote no valid JSON."""
    assert text_of(call("a", "Task", arguments='{"x": tor'), result("a")).startswith('[Task({"x": tor): 1234')


def test_a_long_command_is_cut_and_marked() -> None:
    """What was left out never passes for nothing."""
    asked = call("a", "Bash", arguments={"command": "pytest tests/unit/test_number_and_so_on.py --verbose " * 9})
    text = text_of(asked, result("a"))
    assert text.startswith("[Bash(pytest tests/unit/")
    assert "…): 1234 tokens, ok, hidden] @152" in text


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


def hidden(block: ToolCall, most: int = MOST) -> str:
    """Return what is shown of a hidden call: its only argument."""
    [(key, told)] = arguments_of(block, most).items()
    assert key == HIDDEN_KEY
    return str(told)


def test_a_hidden_call_has_one_argument_with_its_subject_its_small_arguments_size_and_address() -> None:
    """None of its tool's own: a call in which only the bulky values are missing may be imitated."""
    edit = {"file_path": "src/a.py", "old_string": words(90), "new_string": words(90), "replace_all": True}
    assert arguments_of(call("a", "Edit", arguments=edit)) == {
        HIDDEN_KEY: "src/a.py (replace_all=true): 1234 tokens, read @152"
    }


def test_where_nothing_can_be_read_back_no_replacement_promises_it() -> None:
    """A list of messages has no log behind it."""
    edit = call("a", "Edit", arguments={"file_path": "src/a.py", "new_string": words(90)})
    assert stands_for(edit, address="").arguments == {HIDDEN_KEY: "src/a.py: 1234 tokens"}
    assert stands_for(edit, result("a"), address="").text == "[Edit(src/a.py): 1234 tokens, ok, hidden]"
    assert stands_for(prompt(text="Do it. " * 99), address="").text.endswith("… [1234 tokens, shortened]")


def test_where_room_is_short_the_small_arguments_go_before_the_subject() -> None:
    """The file that was edited is worth more than anything else about the call."""
    given = {"file_path": "/srv/agent/project/src/package/module.py", **{f"key_{n}": n for n in range(12)}}
    told = hidden(call("a", "Edit", arguments=given), most=40)
    assert told == "/srv/agent/project/src/package/module.py: 1234 tokens, read @152"


def test_where_room_is_short_the_size_goes_before_the_folders_of_a_file() -> None:
    """A path that is whole is worth more than how much is hidden."""
    given = {"file_path": "/srv/agent/project/src/package/module.py", "content": words(99)}
    told = hidden(call("a", "Edit", arguments=given), most=21)
    assert told == "/srv/agent/project/src/package/module.py, read @152"


def test_a_long_subject_of_a_call_is_shortened() -> None:
    """A script keeps its beginning, a file its name."""
    script = hidden(call("a", "Bash", arguments={"command": "python - <<E\n" + words(300), "timeout": 9}))
    assert script.startswith("python - <<E abc abc")
    assert script.endswith("…: 1234 tokens, read @152")
    file = hidden(call("a", "Write", arguments={"file_path": "/deep" * 40 + "/a.py", "content": words(9)}))
    assert file.startswith("…/deep/")
    assert file.endswith("/a.py: 1234 tokens, read @152")


def test_a_name_that_is_longer_than_the_cap_leaves_room_for_the_subject() -> None:
    """The name of a tool cannot be shortened, since the call is sent under it."""
    told = hidden(
        call("a", "mcp__" + "k9z_" * 40 + "__read_file", arguments={"path": "/deep" * 40 + "/main.py"}), most=40
    )
    assert told.endswith("/main.py: 1234 tokens, read @152")


def test_an_argument_that_holds_the_subject_is_not_repeated() -> None:
    """Also where it is a list of words."""
    assert hidden(call("a", "shell", arguments={"command": ["ls", "-l"], "timeout": 9})) == (
        "ls -l (timeout=9): 1234 tokens, read @152"
    )


def test_a_call_of_an_unknown_tool_names_its_arguments() -> None:
    """By their names, as far as there is room; a call without any says so."""
    told = hidden(call("a", "Deploy", arguments={"description": "Review it", "prompt": words(90)}), most=40)
    assert told.startswith("description=Review it, prompt=abc abc")
    assert told.endswith("…: 1234 tokens, read @152")
    assert hidden(call("a", "Task", arguments={})) == "no arguments: 1234 tokens, read @152"


def test_a_patch_names_its_files() -> None:
    """They are in its text, not in an argument of their own; a folder that all are in is said once."""
    patch = f"*** Begin Patch\n*** Update File: {{}}\n{words(50)}\n*** Add File: {{}}\n{words(50)}\n*** End Patch"
    two = patch.format("a.py", "b.py")
    assert hidden(call("a", "apply_patch", arguments={"input": two})) == "a.py, b.py: 1234 tokens, read @152"
    assert hidden(call("a", "apply_patch", arguments=two)) == "a.py, b.py: 1234 tokens, read @152"
    told = hidden(call("a", "apply_patch", arguments=patch.format("/srv/app/src/a.py", "/srv/app/src/more/b.py")))
    assert told == "/srv/app/src/{a.py,more/b.py}: 1234 tokens, read @152"
    told = hidden(call("a", "apply_patch", arguments=patch.format("src/ab.py", "src/b.py")))
    assert told == "src/{ab.py,b.py}: 1234 tokens, read @152"


def test_of_many_files_the_first_is_named_and_the_others_are_counted() -> None:
    """A list that is cut anywhere would end in half a name."""
    files = [f"/srv/app/src/package_{n}/module.py" for n in range(30)]
    assert hidden(call("a", "read_files", arguments={"paths": files}), most=40).startswith(
        "/srv/app/src/package_0/module.py and 29 more: "
    )


def test_torn_arguments_become_a_valid_object() -> None:
    """The wire takes objects only."""
    told = hidden(call("a", arguments='{"x": ' + words(99)))
    assert told.startswith('{"x": abc abc')
    assert told.endswith("…: 1234 tokens, read @152")


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
    """Its size and address come behind it."""
    text = text_of(block)
    assert text.startswith("Please look into it. abc abc")
    assert text.endswith("… [1234 tokens, shortened] @152")
    assert "\n" not in text


def test_a_text_that_only_carries_pictures_says_so() -> None:
    """Nothing stands before the bracket then."""
    assert text_of(prompt(text="", data=[PICTURE])) == ("[1234 tokens with 1 picture, shortened] @152")


def test_a_thought_leaves_nothing() -> None:
    """It is of no use once its round is long over; its signed part is not sent either."""
    assert stands_for(Reasoning(text="hm", data={"type": "thinking"})) == Replacement(version=3)


def test_an_attachment_says_its_name_kind_and_size() -> None:
    """A picture is told as one."""
    plan = Attachment(text="# Plan", mime="text/markdown", meta={"file": "docs/plan.md"})
    assert text_of(plan) == "[docs/plan.md: text/markdown, 1234 tokens, hidden] @152"
    assert text_of(Attachment(data=PICTURE)) == "[attachment: 1234 tokens with 1 picture, hidden] @152"


def test_a_long_name_of_an_attachment_is_shortened_from_the_left() -> None:
    """As a file's is anywhere."""
    name = "/very/deep" * 30 + "/plan.md"
    item = Item(1, 1, Attachment(text="x", path="fi:turn_1.plan", meta={"file": name}), 1_234)
    text = replacement_of(item, None, MOST, EXACT, address="@1").text
    assert text.startswith("[…/")
    assert "/plan.md: text/plain, 1234 tokens, hidden] @1" in text


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
def test_every_replacement_fits_its_cap_names_its_subject_and_ends_with_its_address(
    block: Block, tokens: int, most: int
) -> None:
    """Whatever the names, texts and arguments; the count that is recorded is the true one."""
    item = Item(7, 7, block, tokens)
    asked = call("a", "Bash", arguments={"command": block.text})
    made = replacement_of(item, asked, most, EXACT, address="@7")
    assert (made.version, made.tokens <= most) == (7, True), made
    if isinstance(block, ToolCall):
        assert made.arguments is not None
        [(key, told)] = made.arguments.items()
        assert key == HIDDEN_KEY
        assert str(told).endswith(", read @7")  # the size is left out where a whole file's name takes its room
        assert not str(told).startswith((f": {tokens} tokens", ", read"))
        assert made.tokens == EXACT.count(block.name + canonical_json(made.arguments))
    else:
        assert made.text.endswith("] @7")
        assert "\n" not in made.text
        assert made.tokens == EXACT.count(made.text)


FOLDERS = st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=30), max_size=20)
FILES = st.builds("/".join, st.tuples(FOLDERS.map("/".join), st.sampled_from(["main.py", "a.rs", "index.test.ts"])))
TOOLS = st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True)


@given(FILES, st.sampled_from(["Read", "Edit", "Write", "mcp__files__edit_file"]), st.integers(0, 400))
def test_a_hidden_call_always_names_its_file(file: str, tool: str, bulk: int) -> None:
    """By as many of its last parts as there is room for, in the cap of our presets."""
    block = call("a", tool, arguments={"file_path": file, "content": words(bulk)})
    made = replacement_of(Item(7, 7, block, 1_234), None, 40, EXACT, address="@1234567")
    told = str((made.arguments or {})[HIDDEN_KEY])
    assert made.tokens <= 40
    assert f"{file.rsplit('/', 1)[-1]}" in told
    whole = canonical_json({HIDDEN_KEY: f"{file}, read @1234567"})
    assert EXACT.count(tool + whole) > 40 or file in told


@given(TOOLS, st.dictionaries(TEXTS, TEXTS | st.integers() | st.lists(TEXTS)) | TEXTS)
def test_a_hidden_call_of_any_tool_says_what_it_was(tool: str, arguments: Any) -> None:
    """Its name alone may be longer than the cap: then the subject still has its least room."""
    made = replacement_of(Item(7, 7, call("a", tool, arguments=arguments), 1_234), None, 40, EXACT, address="@7")
    [told] = (made.arguments or {}).values()
    subject = str(told).removesuffix(": 1234 tokens, read @7")
    assert subject
    frame = EXACT.count(tool + canonical_json({HIDDEN_KEY: ": 1234 tokens, read @7"}))
    assert made.tokens <= max(40, frame + 2 * 12)


def test_an_address_that_is_longer_than_the_cap_is_printed_all_the_same() -> None:
    """Without it nobody could read the block back."""
    text = stands_for(call("x"), result("x"), most=8, address="@" + "9" * 18).text
    assert text.endswith("] @" + "9" * 18)
