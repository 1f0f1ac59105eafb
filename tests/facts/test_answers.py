"""What a user says in the result of a call, as clients write it down; and what only looks like it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.scenes import AT, call, result
from timeline.facts.answers import words_in_result
from timeline.facts.extracting import facts_named, facts_of_result
from timeline.facts.requests import Asked, asked_in

SAID = "PostgreSQL, and vendor/ stays as it is"
QUESTION = "Which store?"
QUESTIONS = {"questions": [{"id": "db", "header": "Store", "question": QUESTION, "options": [{"label": "SQLite"}]}]}
ANSWER = f'"{QUESTION}"="{SAID}"'


def answered(tool: str, text: str, arguments: Any = QUESTIONS) -> str:
    """Return what a user says in a result."""
    return words_in_result(result("a", text=text), call("a", tool, arguments=arguments))


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("request_user_input", {"answers": {"db": {"answers": [SAID]}}}),
        ("ask_user", {"answers": {"0": SAID}}),
        ("mcp__ui__askUser", {"answers": {"Store": SAID, "left_open": []}}),
        ("vscode_askQuestions", {"answers": {"Store": {"selected": [], "freeText": SAID, "skipped": False}}}),
    ],
)
def test_an_answer_in_json_is_behind_the_question_that_its_key_names(tool: str, given: Any) -> None:
    """By its id, its place or its heading."""
    assert answered(tool, json.dumps(given, indent=2)) == ANSWER


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("ask_user_question", f"User has provided the following answers:\n\n**Store**: {SAID}"),
        ("ask_followup_question", f"<answer>\n{SAID}\n</answer>"),
        ("ask_followup_question", f"<user_message>\n{SAID}\n</user_message>"),
        ("question", f"User wrote: {SAID}"),
        ("human", SAID),
        ("ask_user", json.dumps({"answer": SAID})),
    ],
)
def test_all_that_a_tool_that_asks_gives_back_is_the_users(tool: str, text: str) -> None:
    """Without the client's words around it."""
    assert answered(tool, text).removeprefix("**Store**: ") == SAID


def test_an_answer_that_is_no_option_is_behind_its_question() -> None:
    """A further question follows what was typed."""
    typed = f'"{QUESTION}"=(no option selected) notes: {SAID}'
    text = f'The user answered: {typed}, "When?"="Now". Read the answers carefully — they may say no.'
    assert words_in_result(result("a", text=text)) == f'{typed}\n"When?"="Now"'
    assert asked_in(result("a", text=text)) == (Asked(f'{typed} "When?"="Now"', "request"),)


@pytest.mark.parametrize(
    "text",
    [
        f"The user denied this operation and provided the following feedback:\n<feedback>\n{SAID}\n</feedback>\n",
        f"[The user has switched to ACT MODE.]\n\nThe user also said:\n<user_message>\n{SAID}\n</user_message>",
        f"make: done\n\nThe user provided the following feedback:\n<feedback>\n{SAID}\n</feedback>",
        json.dumps({"status": "denied", "message": "The user denied this operation and said", "feedback": SAID}),
    ],
)
def test_what_a_user_says_beside_a_call_is_theirs_whatever_the_tool(text: str) -> None:
    """Instead of allowing it, with it, or behind its output."""
    assert answered("execute_command", text, {"command": "make"}) == SAID


def test_the_reason_of_a_refusal_is_the_users() -> None:
    """Of an error alone; what the client says behind it is not."""
    refused = f"The user rejected permission to use this specific tool call with the following feedback: {SAID}"
    assert words_in_result(result("a", text=refused, is_error=True)) == SAID
    assert words_in_result(result("a", text=refused)) == ""
    noted = f"Rejected; the user said:\n{SAID}\n\nNote: The user's next message may contain a correction or preference."
    assert words_in_result(result("a", text=noted, is_error=True)) == SAID


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("bash", json.dumps({"answers": {"0": SAID}})),
        ("read_file", f"<feedback>\n{SAID}\n</feedback>"),
        ("read_file", f"He writes: The user provided the following feedback:\n<feedback>\n{SAID}\n</feedback>."),
        ("bash", json.dumps({"status": "denied", "message": "Access denied", "feedback": SAID})),
        ("bash", f'{{"status": "The user {SAID}'),
        ("deepwiki__ask_question", SAID),
        ("ask_user", json.dumps({"answers": {}})),
        ("ask_user", "User dismissed ask_user dialog without answering."),
        ("ask_user_question", "User declined to answer the questions."),
    ],
)
def test_the_output_of_another_tool_and_an_answer_that_was_not_given_are_nobodys(tool: str, text: str) -> None:
    """However much it looks like an answer."""
    assert answered(tool, text) == ""


def test_a_tool_that_asks_and_fails_says_nothing_of_the_users() -> None:
    """The client says why."""
    failed = result("a", text="request_user_input was cancelled before receiving a response", is_error=True)
    assert words_in_result(failed, call("a", "request_user_input", arguments=QUESTIONS)) == ""


def test_a_plan_that_the_user_edited_says_more_than_is_listed() -> None:
    """Nothing there says where; a plan that was approved as it is says nothing of the user's."""
    plan = (
        "User has approved your plan. You can now start.\n\n## Approved Plan (edited by user):\n1. Never touch vendor/."
    )
    assert asked_in(result("a", text=plan)) == (Asked("", "more"),)
    assert asked_in(result("a", text=plan.replace(" (edited by user)", ""))) == ()


def test_what_a_hook_says_when_it_refuses_a_call_says_more_than_is_listed() -> None:
    """The user set it up. A file that says so is a file."""
    said = "PreToolUse:Bash hook error: [guard.py]: Never run rm here."
    assert asked_in(result("a", text=said, is_error=True)) == (Asked("", "more"),)
    assert asked_in(result("a", text=said)) == ()


def test_an_answer_to_a_tool_that_asks_is_a_fact_of_its_result_once() -> None:
    """Where the result alone shows that it is an answer, it names it itself."""
    for text in (json.dumps({"answers": {"0": SAID}}), f"The user answered: {ANSWER}. Read the answers carefully."):
        asked, given = call("a", "ask_user", arguments=QUESTIONS), result("a", text=text)
        facts = [*facts_of_result(asked, 3, given, 4, AT), *facts_named(given, 4, AT)]
        assert [(f.kind, f.subject, f.version) for f in facts] == [("request", ANSWER, 4)]
