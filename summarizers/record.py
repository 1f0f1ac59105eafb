"""Turn blocks into the points of a summary, by the kind of each block.

Prompts are tasks; the assistant's sentences are sorted by what they announce (a decision, finished work, a question,
a next step); a failed call is an error with its target and its most informative line, marked where the same call worked
later; calls that write are changed files. Successful tool output gives no points: it can be read back by path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    CustomBlock,
    Note,
    RangeSummary,
    Reasoning,
    StageDigest,
    ToolCall,
    ToolResult,
    UserPrompt,
)
from timeline.facts.plans import PlanStep, plan_of
from timeline.facts.tool_use import tool_uses
from timeline.frozen import canonical_json
from timeline.ports import HIDDEN_KEY

from .naming import Names
from .ranking import FACT, Point, Section
from .text import LINES_REMEMBERED, clip, head_and_tail, one_line, sentences, terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block

_TARGETS: Final = (
    *("file_path", "notebook_path", "path", "file", "filename", "target_file", "command", "cmd", "script"),
    *("url", "query", "pattern", "regex", "skill", "description"),
)
_LOOKS: Final = re.compile(r"read|view|open|grep|glob|search|find|list|fetch|^ls$|^cat$", re.IGNORECASE)
_ERROR_LINE: Final = re.compile(
    r"error|exception|fail|fatal|panic|denied|refused|not found|no such|cannot|can't|invalid|undefined|timed? ?out"
    r"|missing|错误|失败|エラー|오류|gagal",
    re.IGNORECASE,
)
_RAISED: Final = re.compile(
    r"^\s*(?:\w+\.)*\w*(?:Error|Exception|Failure|Panic)\b\s*[:(]|^(?:E  |FAILED|--- FAIL|fatal:)"
)
_DIAGNOSTIC: Final = re.compile(r"^\s*[\w./\\@+-]+\.\w{1,8}(?::\d+(?::\d+)?|\(\d+,\d+\)): (?![ :])")
"""A line of a compiler, a linter or a test about a place in a file; one with code behind the place is a search's."""
_NO_ERROR: Final = re.compile(r"\b(?:trace|debug|info|note|warn(?:ing)?)\b", re.IGNORECASE)
_PATH_LENGTH: Final = 240
_COMMAND_LENGTH: Final = 120
_MESSAGE_LENGTH: Final = 180
_PROMPT_LENGTH: Final = 700

_QUESTION: Final = re.compile(r"[?\uff1f][\"')\]]*$")
_NEXT: Final = re.compile(
    r"\b(?:next steps?|still (?:need|to|has|have|must)|remain(?:s|ing)|to-?do|not (?:yet|done)|follow[- ]?up|later"
    r"|pending|needs? to be|should (?:now|then|also)|left to do|upcoming|blocked|selanjutnya)\b"
    r"|下一步|待办|还需|未完成|次のステップ|残り",
    re.IGNORECASE,
)
_OPEN_STEP: Final = re.compile(r" \((?:pending|in[_ -]progress|to-?do|open|not[_ -]started|blocked)\)$", re.IGNORECASE)
_DECISION: Final = re.compile(
    r"\b(?:decid\w+|decision|chose\w*|choos\w+|opt(?:ed|ing) for|instead of|rather than|prefer\w*|agreed|because"
    r"|root cause|the (?:\w+ )?(?:problem|issue|bug|cause|reason|culprit|fix|solution|approach|trade-?off) (?:is|was)"
    r"|turns out|means that|(?:must|should) not|never|always|conclu\w+|found|confirmed|recommend\w*"
    r"|design|approach|trade-?off)\b|决定|选择|因为|原因|結論|決定|理由|memutuskan|karena",
    re.IGNORECASE,
)
_DONE: Final = re.compile(
    r"\b(?:added|creat\w+d|fixed|updated|implemented|wrote|written|removed|deleted|refactored|committed|pushed|merged"
    r"|renamed|moved|replaced|changed|passe[sd]|verified|installed|configured|now (?:works?|uses?|handles?|returns?)"
    r"|works|completed?|done|finished|extracted|reverted|rebased|resolved|handles?|supports?)\b|[✅✓✔]"
    r"|已|完成|修复|添加|しました|完了|selesai|ditambahkan",
    re.IGNORECASE,
)
_NARRATION: Final = re.compile(
    r"^(?:(?:ok(?:ay)?|great|good|perfect|now|first|so|right|ah|oh|hmm+|wait|actually|and|but|next|interesting)\b"
    r"[,.:! ]+)*(?:let me|let's|i'll|i will|i'm going to|i am going to|i need to|i should|now i|i can see|looking at"
    r"|here(?:'s| is)|you're (?:absolutely )?right|sure|thanks|good (?:question|point|catch)|the user)\b",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Gathered:
    """The points of a record, and the facts that become points only at its end."""

    points: list[Point] = field(default_factory=list)
    prompts: list[tuple[int, str]] = field(default_factory=list)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    failures: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    worked: dict[tuple[str, str], int] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    written: dict[str, int] = field(default_factory=dict)
    plan: tuple[int, list[PlanStep]] = (0, [])
    names: Names = field(default_factory=Names)

    def add(self, section: Section, text: str, order: float, weight: float = 1.0, *, step: bool = False) -> None:
        """Add a point; an empty text is ignored."""
        if text:
            self.points.append(Point(section, text, order, weight, step=step))

    def settles(self, error: str) -> bool:
        """Return whether an error of an earlier summary is settled: the same call was made again since."""
        return error.startswith(tuple(f"{made}{end}" for made in self.made for end in (":", " (exit ")))


def gather(blocks: Sequence[Block]) -> Gathered:
    """Make points of all blocks, in their order; prompts are kept separately."""
    found = Gathered(failed=frozenset(b.call_id for b in blocks if isinstance(b, ToolResult) and b.failed))
    last_prompt = max((i for i, b in enumerate(blocks) if isinstance(b, UserPrompt)), default=-1)
    for order, block in enumerate(blocks):
        match block:
            case UserPrompt():
                found.names.take(block.text)
                found.prompts.append((order, one_line(head_and_tail(block.text, _PROMPT_LENGTH))))
            case Attachment():
                name = one_line(str(block.meta.get("file") or "")) or block.mime
                found.add(Section.TASK, f"Attached: {clip(name, _COMMAND_LENGTH)}", order, 0.5)
            case Note() | StageDigest():
                found.add(Section.DECISIONS, clip(one_line(block.text), 300), order, 3.0)
            case ToolCall():
                _call(found, block, order)
            case ToolResult():
                _result(found, block, order)
            case AssistantCompletion() | RangeSummary():
                closing = order + 1 == len(blocks) or isinstance(blocks[order + 1], UserPrompt)
                _speech(found, block.text, order, weight=1.5 if closing else 1.0, answered=order < last_prompt)
            case Reasoning():
                _speech(found, block.text, order, weight=0.4, answered=True)
            case CustomBlock(author=author) if author not in {"system", "tool"}:
                _speech(found, block.text, order, weight=0.5, answered=True)
            case _:
                pass
    _close(found)
    return found


def is_open_step(line: str) -> bool:
    """Return whether a line of an earlier summary is an open step of a plan, by the status at its end."""
    return _OPEN_STEP.search(line) is not None


@lru_cache(maxsize=LINES_REMEMBERED)
def classify(sentence: str) -> tuple[Section, float]:
    """Return the section of an assistant's sentence, and the weight of its wording."""
    if sentence.endswith((":", "\uff1a")) or (len(terms(sentence)) < 4 and not FACT.search(sentence)):
        return Section.DONE, 0.1
    if _QUESTION.search(sentence):
        return Section.QUESTIONS, 1.0
    if _NARRATION.search(sentence):
        return Section.DONE, 0.15
    if _NEXT.search(sentence):
        return Section.NEXT, 1.0
    if _DONE.search(sentence):
        return Section.DONE, 1.5
    if _DECISION.search(sentence):
        return Section.DECISIONS, 1.2
    return Section.DONE, 0.5


def _speech(found: Gathered, text: str, order: int, *, weight: float, answered: bool) -> None:
    for sentence in sentences(text):
        section, wording = classify(sentence)
        if answered and section in {Section.QUESTIONS, Section.NEXT}:
            continue  # questions and announcements before the newest prompt were answered or overtaken by it
        found.add(section, sentence, order, weight * wording)


def _call(found: Gathered, call: ToolCall, order: int) -> None:
    found.calls[call.call_id] = call
    files = () if call.call_id in found.failed else files_written(call)
    found.written |= dict.fromkeys(files, order)
    found.names.take(call.arguments, files[0] if len(files) == 1 else "")  # of several, none is known to have a name
    if steps := plan_of(call):
        found.plan = (order, steps)
    else:
        found.made.append(f"{one_line(call.name)} {_brief(target(call))}".strip())
        found.add(Section.DONE, found.made[-1], order, 0.25)


def files_written(call: ToolCall) -> tuple[str, ...]:
    """Return the files that a call writes, by the rule that facts have for it."""
    return next((use.subjects for use in tool_uses(call) if use.kind == "write"), ())


def _result(found: Gathered, result: ToolResult, order: int) -> None:
    call = found.calls.get(result.call_id)
    name = one_line(call.name if call else result.name) or "tool"
    key = (name, target(call) if call else "")
    if not result.failed:
        found.worked[key] = order
        return
    status = f" (exit {result.exit_status})" if result.exit_status else ""
    where = f" [{result.path}]" if 0 < len(result.path) <= _PATH_LENGTH else ""
    found.failures.pop(key, None)
    found.failures[key] = (order, f"{name} {_brief(key[1])}".strip() + f"{status}: {_message(result)}{where}")


def _message(result: ToolResult) -> str:
    """Return a failed call's complaint; for a hidden result only that it is hidden, from its replacement."""
    if HIDDEN_KEY in result.meta:
        return "its message is hidden"
    return clip(one_line(telling_line(result.text)), _MESSAGE_LENGTH) or "failed without a message"


def target(call: ToolCall) -> str:
    """Return the target of a call: its file, command, address or query, else its arguments."""
    if isinstance(call.arguments, str):
        return call.arguments
    for key in _TARGETS:
        value = call.arguments.get(key)
        if isinstance(value, str) and value:
            return value
    return canonical_json(_flat(call.arguments)) if call.arguments else ""


def _flat(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with each text on one line: an escaped line break would join the name behind it."""
    return {key: " ".join(value.split()) if isinstance(value, str) else value for key, value in arguments.items()}


def telling_line(output: str) -> str:
    """Return the most informative line of a failure's output.

    That is the error raised last; else the first diagnostic of a place in a file, since the first complaint is often
    that a task failed; else the first complaint.
    """
    lines = [line for line in head_and_tail(output, 20_000).splitlines() if line.strip()]
    raised = [line for line in lines if _RAISED.search(line)]
    places = ((line, _DIAGNOSTIC.match(line)) for line in lines)
    diagnostics = [line for line, place in places if place and not _NO_ERROR.search(line, place.end())]
    complaints = [line for line in lines if _ERROR_LINE.search(line)]
    return next(iter([*raised[-1:], *diagnostics[:1], *complaints[:1], *lines[-1:]]), "")


def _brief(text: str) -> str:
    """Shorten a call's target, but never a file's path."""
    line = one_line(head_and_tail(text, 2_000))
    return clip(line, _COMMAND_LENGTH) if " " in line else line


def _close(found: Gathered) -> None:
    """Make the points known only at the end: failures and whether they were overcome, files, the newest plan."""
    for key, (order, text) in found.failures.items():
        overcome = found.worked.get(key, -1) > order
        weight = 0.5 if overcome else 1.0 if _LOOKS.search(key[0]) else 2.0
        found.add(Section.ERRORS, f"{text} (worked later)" if overcome else text, order, weight)
    for file, order in found.written.items():
        row = ": ".join(filter(None, (one_line(file), found.names.names_for(file))))
        found.add(Section.FILES, row, order, 1.0 + order / 1e6)
    order, steps = found.plan
    overtaken = sum(at > order for at, _ in found.prompts) > 1
    for place, step in enumerate(steps):
        text = clip(one_line(step.text), 160)
        if step.is_done:
            found.add(Section.DONE, text, order, 1.2)
        elif text and step.is_open and not overtaken:
            found.add(Section.NEXT, f"{text} ({one_line(step.status)})", order + place / len(steps), 2.0, step=True)
