"""Find what a user says in the result of a call: answers to its questions, why they refused it, what they said to it.

Agents ask their users by a tool, and clients hand a user's words to the model in the result of the call that was
waiting. A list of names says which tools ask. The client's own words around them show which words are a user's. Any
other output is a tool's, whatever it looks like.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from timeline.facts.tool_use import own_name
from timeline.frozen import strings_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.blocks import ToolResult
    from timeline.facts.tool_use import CallFields

ANSWERED: Final = ('"="', '"=(')
"""The text between a question of a call and the user's answer; the second form precedes an answer that is no option."""
_ASKING: Final = (
    "askuser askuserquestion askuserquestions askfollowupquestion askquestions vscodeaskquestions requestuserinput"
    " question questionnaire planmoderespond planmoderesponse askhuman human userinput"
)
"""Tools whose result is the user's answer: of Claude Code, Codex, Gemini CLI, Qwen Code, opencode, Cline, Roo Code,
VS Code, pi, OpenManus, LangChain and smolagents."""
_TOOLS: Final = frozenset(_ASKING.split())

_MAY_SAY: Final = re.compile(r"\s{0,9}(?:\[?The user |User has |Your questions |\{\"status\":)")
"""How each text below begins, refusals apart: for most results this one look is enough."""
_REFUSING: Final = "the user said:\n"
"""The end of Claude Code's answer to a call that its user refused; the user's own words follow."""
_LONGEST_REFUSAL: Final = 600
_REFUSED: Final = "The user rejected permission to use this specific tool call with the following feedback: "
"""The beginning of opencode's answer to such a call."""
_CORRECTION: Final = re.compile(r"\s{1,9}Note: The user's next message may contain a correction[^\n]{0,300}\s*\Z")
"""What Claude Code adds behind a refusal."""
_ANSWERING: Final = re.compile(
    r"\s{0,9}(?:User has answered your questions|Your questions have been answered|The user answered):\s{0,9}(?=\")"
)
"""The beginning of a client's answer to a call that asked the user questions; each question and its answer follow."""
_BEHIND_ANSWERS: Final = re.compile(
    r"\.?\s{0,9}(?:You can now continue with|Read the answers carefully)[^\n]{1,200}\s*\Z"
)
_NEXT_ANSWER: Final = re.compile(r"(?<=\"), (?=\")|, (?=\"[^\"\n]{1,1000}\"=[\"(])")
_BESIDE: Final = re.compile(r"\s{0,9}\[?The user [^<]{1,400}<(feedback|user_message)>\n(.*?)\n</\1>", re.DOTALL)
"""What a user of Cline or Roo Code says to a call, mostly instead of allowing it."""
_BEHIND: Final = "The user provided the following feedback:\n<feedback>\n"
_CLOSED: Final = "\n</feedback>"
_STATUS: Final = '{"status":'
_EDITED: Final = re.compile(
    r"\s{0,9}User has approved your plan\..{0,2000}\n## Approved Plan \(edited by user\):", re.DOTALL
)

_HOOK_SAID: Final = re.compile(r"\s{0,9}(?:Error: )?(?:Pre|Post)ToolUse:[\w-]{1,200} hook (?:blocking )?error")

_LEAD: Final = re.compile(
    r"\s{0,9}(?:[^\w\s]{1,3}\s{1,3})?(?:The )?[Uu]ser (?:has )?"
    r"(?:provided the following answers|answered|responded|replied|wrote|said|selected|chose):"
)
"""What a client says before the answer to a tool that asks."""
_NO_ANSWER: Final = re.compile(
    r"\s{0,9}(?:The )?[Uu]ser (?:dismissed|declined|cancelled|canceled|skipped|submitted without|did not|didn't)\b"
)
_TAGS: Final = re.compile(r"</?(?:answer|user_message)>")


def words_in_result(result: ToolResult, call: CallFields | None = None) -> str:
    """Return what a user says in a result, without the client's words around it; empty if nothing there is a user's.

    Answers are on lines of their own, each behind its question: ``"Which one?"="The second"``. The time is linear in
    the text.

    Args:
        result: the result.
        call: the call that it answers; None where it is unknown. Then only the client's words show what is a user's.
    """
    worded = _refusal(result) if result.is_error else ""
    if not worded and _MAY_SAY.match(result.text) is not None:
        worded = _beside(result.text) or _answers(result.text)
    return worded or _behind(result.text) or _given(result, call)


def holds_rules(result: ToolResult) -> bool:
    """Return whether a result may hold rules of the user, although none of its words is certainly the user's own.

    Such a result has a plan that the user changed before they approved it, and does not say where; or the words of a
    user's hook that refused a call.
    """
    said = _HOOK_SAID if result.is_error else _EDITED
    return said.match(result.text) is not None


@lru_cache(maxsize=1_024)
def asks_user(tool: str) -> bool:
    """Return whether a tool asks the user questions, by its own name, without case and separators."""
    return re.sub(r"[^a-z]", "", own_name(tool).lower()) in _TOOLS


def _refusal(result: ToolResult) -> str:
    if result.text.startswith(_REFUSED):
        return result.text.removeprefix(_REFUSED)
    head, refusal, words = result.text.partition(_REFUSING)
    return _CORRECTION.sub("", words) if refusal and len(head) <= _LONGEST_REFUSAL else ""


def _beside(text: str) -> str:
    """Return what a user said to a call instead of allowing it, or with it."""
    if (beside := _BESIDE.match(text)) is not None:
        return beside[2]
    if text.startswith(_STATUS) and isinstance(said := _decoded(text), dict):
        message, words = said.get("message"), said.get("feedback")
        return words if isinstance(words, str) and str(message).startswith("The user ") else ""
    return ""


def _behind(text: str) -> str:
    """Return what a user said behind the output of a call."""
    start = text.rfind(_BEHIND) if text.endswith(_CLOSED) else -1
    return text[start + len(_BEHIND) : -len(_CLOSED)] if start >= 0 else ""


def _answers(text: str) -> str:
    answering = _ANSWERING.match(text)
    if answering is None:
        return ""
    return _NEXT_ANSWER.sub("\n", _BEHIND_ANSWERS.sub("", text[answering.end() :]))


def _given(result: ToolResult, call: CallFields | None) -> str:
    """Return what the result of a tool that asks the user says: all of it is the user's."""
    if call is None or result.is_error or not asks_user(call.name):
        return ""
    if result.text.lstrip()[:1] in {"{", "["} and (decoded := _decoded(result.text)) is not None:
        return "\n".join(_parted(decoded, _questions(call.arguments)))
    if _NO_ANSWER.match(result.text):
        return ""
    return _TAGS.sub("\n", _LEAD.sub("", result.text, count=1)).strip()


def _parted(decoded: Any, questions: dict[str, str]) -> Iterator[str]:
    """Yield the answers of a JSON value, each behind its question; all its texts, if it has no ``answers``."""
    answers = decoded.get("answers") if isinstance(decoded, dict) else None
    if isinstance(answers, dict):
        for key, answer in answers.items():
            if said := ", ".join(strings_in(answer)):
                yield f'"{questions.get(key, key)}"="{said}"'
    else:
        yield from strings_in(decoded if answers is None else answers)


def _questions(arguments: Any) -> dict[str, str]:
    """Return the questions of a call by each name that an answer may give them: place, id, heading."""
    asked = arguments.get("questions") if isinstance(arguments, dict) else None
    named: dict[str, str] = {}
    for place, each in enumerate(asked if isinstance(asked, list) else ()):
        question = each.get("question") if isinstance(each, dict) else None
        if isinstance(question, str):
            keys = (str(place), each.get("id"), each.get("header"))
            named.update((key, question) for key in keys if isinstance(key, str))
    return named


def _decoded(text: str) -> Any:
    """Return a JSON value; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
