"""What a prompt asks for: constraints, preferences and requests, in several languages, and nothing of the client's."""

from __future__ import annotations

from time import process_time

import pytest

from tests.scenes import AT, answer, prompt, result
from timeline.blocks import Attachment, CustomBlock
from timeline.facts.extracting import facts_named
from timeline.facts.requests import LONGEST, MOST_ASKED, SHORT, Asked, asked_in, is_users, requests_in, users_words

ABOUT = (
    "The parser reads the file from its beginning to its end, and this is how it has worked since the first version. "
)
"""A statement, so long that no prompt that begins with it is short."""


def asked(text: str) -> list[tuple[str, str]]:
    """Return the sentences that a prompt asks something with, behind a long statement."""
    found = requests_in(f"{ABOUT * 2}\n\n{text}")
    return [(said.text, said.manner) for said in found if said.manner != "more"]


@pytest.mark.parametrize(
    "sentence",
    [
        "You must not change the public API.",
        "Never push to main.",
        "Always run the linter before you commit.",
        "Don't add dependencies.",
        "From now on answer in one line.",
        "Tests only, no production code.",
        "I prefer small commits.",
        "Keep the old names.",
        "At most three files may change.",
        "It must be idempotent.",
        "No new dependencies.",
        "And please, no emojis.",
        "Nothing under vendor/ may be edited.",
        "Tabs, not spaces.",
        "You have to ask me before you push.",
        "Under no circumstances drop the table.",
        "Scratch that, we go with Redis.",
        "Refrain from emojis.",
        "Ändere niemals die öffentlichen Namen.",
        "Ab jetzt bitte nur noch auf Deutsch antworten.",
        "Bitte keine neuen Abhängigkeiten.",
        "Verzichte auf Emojis.",
        "N'utilise jamais de dépendances.",
        "Ne touche pas aux migrations.",
        "Aucune dépendance externe.",
        "No uses nunca dependencias nuevas.",
        "Tienes que preguntarme antes.",
        "Nunca altere os nomes.",
        "Nenhuma dependência externa.",
        "Jangan pernah mengubah berkas ini.",
        "Mulai sekarang gunakan bahasa Indonesia.",
        "Никогда не меняй имена.",
        "Никаких новых зависимостей.",
        "从现在起不要修改公共接口。",
        "必须使用中文回答。",
        "公開APIは絶対に変更しないでください。",
        "今後は日本語だけで答えてください。",
        "공개 API는 절대 바꾸지 마세요.",
    ],
)
def test_what_holds_for_all_that_comes_is_a_constraint(sentence: str) -> None:
    """In any of the languages of the table, with its end, and without the statements around it."""
    assert asked(sentence) == [(sentence, "constraint")]


@pytest.mark.parametrize(
    "sentence",
    [
        "Please write a test for it.",
        "Can you look at the logs?",
        "ok, then add a flag for it.",
        "Why does it take so long?",
        "I want a summary of it.",
        "Treat warnings as errors.",
        "Afterwards run the linter.",
        "Once the tests pass, tag a release.",
        "Every function needs a docstring.",
        "Antworte auf Deutsch.",
        "Réponds en français.",
        "Responde en español.",
        "Responda em português.",
        "Jawab dalam bahasa Indonesia.",
        "Отвечай по-русски.",
        "先跑测试再提交。",
        "日本語で答えて。",
        "테스트를 먼저 돌려.",
        "Füge einen Test hinzu.",
        "Kannst du das erklären?",
        "Ajoute un test.",
        "Agrega una prueba.",
        "Adicione um teste.",
        "Tolong jelaskan ini.",
        "Tambahkan tes.",
        "Добавь тест.",
        "请修复这个错误。",
        "テストを追加してください。",
        "테스트를 추가해 주세요.",
        "I've only seen it once.",
        "While that is fine, consider a line in the log.",
        "The expected output has two columns.",
    ],
)
def test_what_is_done_once_is_a_request(sentence: str) -> None:
    """An imperative, a question, a wish; a statement with a weak word is no more than that."""
    assert asked(sentence) == [(sentence, "request")]


@pytest.mark.parametrize(
    "sentence", ["No idea.", "No, it was there before.", "It was late, not early.", "Nobody knew it."]
)
def test_a_statement_with_a_word_of_denial_asks_for_nothing(sentence: str) -> None:
    """Only what is short and begins with the ban is one."""
    assert sentence not in dict(asked(sentence))


def test_each_item_of_a_list_is_a_request() -> None:
    """Whatever it says; its further sentences have to ask for something themselves."""
    text = "1. `sessions` as an array\n2. one file each. It is quicker. Never two.\n- [ ] old names\n* done"
    assert asked(text) == [
        ("`sessions` as an array", "request"),
        ("one file each.", "request"),
        ("Never two.", "constraint"),
        ("old names", "request"),
        ("done", "request"),
    ]


def test_a_sentence_is_whole_where_its_line_is_wrapped() -> None:
    """A line goes on in the next one, unless that begins a sentence or an item."""
    wrapped = "You must never commit to the branch that is called main\nwithout asking me first.\nIt is used by others."
    assert asked(wrapped) == [
        ("You must never commit to the branch that is called main without asking me first.", "constraint")
    ]
    assert asked('Say "it\'s done." Then stop.') == [('Say "it\'s done."', "request"), ("Then stop.", "request")]


def test_code_and_quoted_lines_ask_for_nothing() -> None:
    """Between fences that are closed, and behind a mark of quotation."""
    assert asked("```py\n# never do this\n```\n> Always do that.\nUse this:\n~~~\nmust\n```\n~~~\nStop.") == [
        ("Use this:", "request"),
        ("Stop.", "request"),
    ]
    assert asked("```\nNever do this.") == [("Never do this.", "constraint")]


@pytest.mark.parametrize("text", ["yes", "commit this. use prefix 'rwr/' for it", "x " * (SHORT // 2)])
def test_a_short_prompt_is_one_request(text: str) -> None:
    """As a whole, so that nothing of it is lost in any language."""
    assert [said.text for said in requests_in(f"  {text}\n")] == [text.strip()]


@pytest.mark.parametrize(
    ("text", "manner"),
    [
        ("yes", "said"),
        ("fix it", "request"),
        ("It broke. Never do that again. Why?", "constraint"),
        ("why?", "request"),
    ],
)
def test_a_short_prompt_asks_as_the_strictest_of_its_sentences(text: str, manner: str) -> None:
    """What holds for all that comes is not hidden behind a question."""
    assert [said.manner for said in requests_in(text)] == [manner]


def test_a_prompt_without_any_such_word_is_there_by_its_first_sentence() -> None:
    """With the sign that there is more."""
    text = "Lorem ipsum dolor sit amet. " + "Consectetur adipiscing elit sed. " * 9
    assert requests_in(text) == (Asked("Lorem ipsum dolor sit amet…", "said"),)
    assert requests_in("नमस्ते दुनिया " * 40)[0].text.startswith("नमस्ते दुनिया")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n ",
        "[Request interrupted by user for tool use]",
        "<system-reminder>\nNever mention this.\n</system-reminder>",
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>",
        "<local-command-stdout>You must log in.</local-command-stdout>",
        "<user-prompt-submit-hook></user-prompt-submit-hook>",
        "<session_context>\nYou must …",
        "<environment_context><cwd>/x</cwd></environment_context>",
    ],
)
def test_what_the_client_wrote_asks_for_nothing(text: str) -> None:
    """Neither prompts of its own, nor what it puts into the user's."""
    assert requests_in(text) == ()


def test_the_reason_to_refuse_a_call_is_the_users() -> None:
    """What the client says before it is not; nor is what another program says the user said."""
    refused = "The tool use was rejected. To tell you how to proceed, the user said:\nNever do that here."
    assert users_words(result("a", text=refused, is_error=True)) == "Never do that here."
    assert users_words(result("a", text=refused)) == ""
    assert users_words(result("a", text="x" * 700 + refused, is_error=True)) == ""
    assert users_words(answer(text=refused)) == ""
    assert users_words(prompt(text=refused)) == refused
    (fact,) = (f for f in facts_named(result("a", text=refused, is_error=True), 4, AT) if f.kind == "request")
    assert (fact.subject, fact.version, fact.detail) == ("Never do that here.", 4, "constraint")


@pytest.mark.parametrize(
    "text",
    [
        "The public API is frozen and off limits. Use tabs.",
        "Verander de namen nooit. Use tabs.",
        "Use tabs.\n```\nNever touch vendor/.\n```",
        "Use tabs.\n> Never touch vendor/.",
        "Use tabs.\n| vendor | stays |",
    ],
)
def test_what_a_prompt_says_besides_its_requests_is_marked_without_its_words(text: str) -> None:
    """No list of words is complete: a statement, a further language, code, a quotation or a table may bind, too.

    Facts stay where history is removed, so the mark quotes nothing of it.
    """
    long = f"{text}\n\nAlways run {'all of the ' * SHORT}tests."
    assert requests_in(long)[-1] == Asked("", "more")
    assert "more" not in {said.manner for said in requests_in("Use tabs.\n" * SHORT)}


@pytest.mark.parametrize(
    "text",
    [
        "Operation stopped by hook: Please commit first.",
        "Stop hook feedback:\nPlease commit first.",
        "<user-prompt-submit-hook>Always say hello.</user-prompt-submit-hook>",
        "<hook_context>Always say hello.</hook_context>",
        "<user_instructions>\nNever touch vendor/.\n</user_instructions>",
        "# AGENTS.md instructions for /p\n\nNever touch vendor/.",
        "This session is being continued from a previous conversation.\nAll user messages:\n- Never touch vendor/.",
    ],
)
def test_rules_that_are_not_a_users_own_words_are_no_request_but_more_than_nothing(text: str) -> None:
    """The user set up the hook, wrote the file, or said so before; in a client's message, too."""
    assert requests_in(text) == (Asked("", "more"),)
    assert asked_in(CustomBlock(type="client.message", author="client", text=text)) == (Asked("", "more"),)
    assert asked_in(CustomBlock(type="client.message", author="client", text=f"x{text[1:]}"[:20])) == ()


@pytest.mark.parametrize(
    "hook",
    [
        "<user-prompt-submit-hook>Always say hello.</user-prompt-submit-hook>",
        "<system-reminder>\nUserPromptSubmit hook additional context: Always say hello.\n</system-reminder>",
    ],
)
def test_what_a_hook_says_beside_a_prompt_is_more_than_the_prompt_asks_for(hook: str) -> None:
    """The prompt itself is listed."""
    assert requests_in(f"Fix it.\n{hook}") == (Asked("Fix it.", "request"), Asked("", "more"))


@pytest.mark.parametrize(
    "text",
    [
        "<command-message>review</command-message>\n<command-args>Keep Vec<T>.</command-args>",
        "[Request interrupted by user for tool use]\nKeep Vec<T>.",
    ],
)
def test_what_a_user_typed_into_a_message_of_the_client_is_theirs(text: str) -> None:
    """An imported command is a message of the client's, and what is typed behind it is not."""
    assert users_words(CustomBlock(type="client.message", author="client", text=text)) == "Keep Vec<T>."
    assert users_words(CustomBlock(type="app.page", text=text)) == ""
    assert requests_in(text) == (Asked("Keep Vec<T>.", "constraint"),)


def test_what_the_user_typed_behind_a_command_counts() -> None:
    """The command itself is the client's."""
    text = "<command-name>/review</command-name>\n<command-args>Never touch vendor/.</command-args>"
    assert requests_in(text) == (Asked("Never touch vendor/.", "constraint"),)


def test_an_abbreviation_does_not_end_a_sentence() -> None:
    """The half behind it has no word of a constraint."""
    text = "Never touch e.g. the vendor folder, i.e. code of Mr. Smith. Stop."
    assert asked(text) == [(text[: -len(" Stop.")], "constraint"), ("Stop.", "request")]


@pytest.mark.parametrize("mark", ["a)", "2)", "(iv)", "→", "\u2013", "◦", "▪"])
def test_items_of_a_list_have_many_marks(mark: str) -> None:
    """Of letters, of numbers and in brackets, too."""
    assert asked(f"{mark} two-space indents") == [("two-space indents", "request")]


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        ("User has answered your questions", "the user's answers"),
        ("Your questions have been answered", "these answers"),
    ],
)
def test_the_answers_to_the_questions_of_a_call_are_the_users(begins: str, ends: str) -> None:
    """Each with its question; what the client says around them is not."""
    first, second = (
        '"Which database?"="PostgreSQL"',
        f'"Where does it run, {"or where not, " * 9}do you think?"="At home"',
    )
    text = f"{begins}: {first}, {second}. You can now continue with {ends} in mind."
    assert users_words(result("a", text=text)) == f"{first}\n{second}"
    assert requests_in(users_words(result("a", text=text))) == (Asked(first, "request"), Asked(second, "request"))
    assert users_words(result("a", text=f"He said: {text}")) == ""


def test_an_attached_file_says_something_and_none_of_its_sentences_is_a_request() -> None:
    """It may be rules or code, and a picture all that the user says; a client's picture says nothing of theirs."""
    picture = {"type": "image"}
    for said in (Attachment(text="# Rules\nNever touch vendor/."), Attachment(data=picture)):
        assert asked_in(said) == (Asked("", "more"),)
        assert is_users(said)
    for nothing in (Attachment(), Attachment(author="client", data=picture)):
        assert asked_in(nothing) == ()
        assert not is_users(nothing)


def test_the_users_words_beside_the_clients_count() -> None:
    """Before and behind; a tag that is never closed is the user's."""
    text = "Fix it.\n<system-reminder>Never say so.</system-reminder>\n[Request interrupted by user]\nThen stop."
    assert [said.text for said in requests_in(text)] == ["Fix it. Then stop."]
    assert requests_in("<system-reminder> is a tag. Never close it.")[0].manner == "constraint"


def test_a_long_prompt_gives_each_of_its_constraints() -> None:
    """Twenty in 5,000 words, each once; where there are too many sentences, constraints are kept first."""
    rules = [f"Rule {n}: the module number {n} must not import its neighbour." for n in range(20)]
    text = "\n".join(f"{ABOUT * 12}\n{rule}\n{rule}" for rule in rules)
    assert [said.text for said in requests_in(text) if said.manner == "constraint"] == rules
    many = "\n".join([*(f"- item {n} of the list" for n in range(900)), *rules])
    *found, more = requests_in(many)
    assert (len(found), more.manner) == (MOST_ASKED, "more")
    assert [said.text for said in found if said.manner == "constraint"] == rules


def test_a_long_sentence_is_cut() -> None:
    """Its beginning is what the line says."""
    (said,) = requests_in("You must " + "really " * 200)
    assert (len(said.text), said.text[-1], said.manner) == (LONGEST + 1, "…", "constraint")


@pytest.mark.parametrize(
    "piece",
    [
        *("a ", "You must be here. ", "- item\n", "```\n", "<system-reminder>", "</system-reminder>", "。", "* ", "\n"),
        *(
            "wrapped line that goes on and on without an end so that it is\n",
            "[Request interrupted by user",
            "can you ",
        ),
    ],
)
def test_the_time_to_read_a_prompt_is_linear(piece: str) -> None:
    """A text of sixteen times the size takes at most some eighty times as long; a square would take 256 times."""
    times: list[float] = []
    for size in (60_000, 960_000):
        text = piece * (size // len(piece))
        started = process_time()
        requests_in(text)
        times.append(process_time() - started)
    assert times[1] < 80 * max(times[0], 0.005)
