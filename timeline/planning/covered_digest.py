"""Make the digest of the covered items without a model, and the few lines of it that the model is shown.

The digest counts the outputs of all tools, also of those that no rule of `timeline.facts.tool_use` knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from timeline.blocks import Attachment, StageDigest, ToolCall, ToolResult
from timeline.digest import Artifact, Command, Digest, FileUse, HiddenBlock, Problem, Search, ToolOutputs
from timeline.facts.tool_use import tool_use
from timeline.planning.strip_chitchat import is_stripped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from timeline.fold.window import Item
    from timeline.ports import TokenCounter


MOST_ITEMS: Final = 50
"""The most items of each list in the copy of a digest that a summary block carries."""
_OUTPUT_CHARACTERS: Final = 200
_MOST_HIT_PATHS: Final = 10
_HITS: Final = re.compile(r"^(?:Found )?(\d+) (?:files?|matches|results|hits)\b", re.MULTILINE | re.IGNORECASE)
_HIT_PATH: Final = re.compile(r"^((?:\.{0,2}/)?[\w.@+-]+(?:/[\w.@+-]+)+)(?=[:\s]|$)", re.MULTILINE)
_TIMELINE_PATH: Final = re.compile(r"(?<![\w.:/-])(?:ar|bl|fi|su|tc):[\w%-]+(?:\.[\w%~-]+)+")
"""A path of this library, which a search of the memory finds: anywhere in a line, or in JSON."""
_EXIT: Final = re.compile(r"^(?:Exit code|exit status|exited with code):? (\d+)", re.MULTILINE | re.IGNORECASE)


@dataclass(slots=True)
class _Collected:
    """The digest's entries so far, by file and by tool, in the order of the log."""

    artifacts: list[Artifact] = field(default_factory=list)
    outputs: dict[str, list[Item]] = field(default_factory=dict)
    read: dict[str, FileUse] = field(default_factory=dict)
    written: dict[str, FileUse] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    hidden: list[HiddenBlock] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)


def build_digest(covered: Sequence[Item]) -> Digest:
    """Return the digest of covered items. Deterministic; the lists keep the order of the log."""
    collected = _Collected()
    results = {i.answers: i for i in covered if i.answers is not None}
    names = {i.version: i.block.name for i in covered if isinstance(i.block, ToolCall)}
    for item in covered:
        block = item.block
        if item.replacement is not None:
            collected.hidden.append(HiddenBlock(path=block.path, replacement=item.replacement.text))
        elif is_stripped(item):
            collected.hidden.append(HiddenBlock(path=block.path, replacement=block.text))
        if isinstance(block, ToolCall):
            _enter_call(collected, block, results.get(item.version))
        elif isinstance(block, ToolResult):
            name = block.name or names.get(item.answers or 0) or "unknown"
            collected.outputs.setdefault(name, []).append(item)
        elif isinstance(block, StageDigest):
            collected.stages.append(block.text)
        if isinstance(block, Attachment) or "sources_used" in block.meta:
            collected.artifacts.append(_artifact(item))
    return Digest(
        artifacts=tuple(collected.artifacts),
        tool_outputs=tuple(_outputs(name, items) for name, items in collected.outputs.items()),
        files_read=tuple(collected.read.values()),
        files_written=tuple(collected.written.values()),
        commands=tuple(collected.commands),
        searches=tuple(collected.searches),
        hidden=tuple(collected.hidden),
        errors=tuple(collected.errors),
        stages=tuple(collected.stages),
    )


def _artifact(item: Item) -> Artifact:
    """Describe an artifact: as visible as the application says, or else as its block is in the context."""
    meta = item.block.meta
    sources, visibility = meta.get("sources_used"), meta.get("visibility")
    return Artifact(
        path=item.block.path,
        mime=item.block.mime,
        visibility=visibility if isinstance(visibility, str) else item.state,
        sources_used=tuple(str(source) for source in sources) if isinstance(sources, list) else (),
    )


def _enter_call(collected: _Collected, call: ToolCall, answer: Item | None) -> None:
    result = answer.block if answer is not None and isinstance(answer.block, ToolResult) else None
    failed = result is not None and _failed(result)
    use = tool_use(call)
    kind = use.kind if use is not None else None
    for subject in use.subjects if use is not None else ():
        if kind == "command":
            collected.commands.append(_command(subject, call, result, failed=failed))
        elif kind == "search":
            collected.searches.append(_search(subject, call, result))
        else:
            files = collected.written if kind == "write" else collected.read
            times = files[subject].times + 1 if subject in files else 1
            files[subject] = FileUse(file=subject, tool=call.name, path=call.path, times=times)
    if failed and kind != "command" and result is not None:
        collected.errors.append(Problem(tool=call.name, path=result.path, message=_first_words(result.text)))


def _search(query: str, call: ToolCall, result: ToolResult | None) -> Search:
    text = result.text if result is not None else ""
    counted = _HITS.search(text)
    memory = tuple(dict.fromkeys(_TIMELINE_PATH.findall(text)))
    hits = int(counted[1]) if counted else len(memory) or None
    paths = dict.fromkeys((*_HIT_PATH.findall(text), *memory))
    return Search(query=query, tool=call.name, path=call.path, hits=hits, hit_paths=tuple(paths)[:_MOST_HIT_PATHS])


def _failed(result: ToolResult) -> bool:
    return result.is_error or bool(result.exit_status)


def _command(command: str, call: ToolCall, result: ToolResult | None, *, failed: bool) -> Command:
    text = result.text if result is not None else ""
    status = result.exit_status if result is not None else None
    if status is None and (match := _EXIT.search(text[:2_000])):
        status = int(match[1])
    failed = failed or bool(status)
    return Command(
        command=command, path=call.path, exit_status=status, failed=failed, output=_first_words(text) if failed else ""
    )


def _outputs(tool: str, items: Sequence[Item]) -> ToolOutputs:
    return ToolOutputs(
        tool=tool,
        count=len(items),
        tokens=sum(i.tokens for i in items),
        errors=sum(isinstance(i.block, ToolResult) and _failed(i.block) for i in items),
        paths=tuple(i.block.path for i in items),
    )


def _first_words(text: str) -> str:
    words = " ".join(text[: _OUTPUT_CHARACTERS * 4].split())
    return words if len(words) <= _OUTPUT_CHARACTERS else words[:_OUTPUT_CHARACTERS] + "…"


def digest_text(
    digest: Digest, *, open_calls: Iterable[str], pins: Iterable[str], most_tokens: int, counter: TokenCounter
) -> str:
    """Return the lines that follow the summary: files written, failing commands, open calls, pins.

    Newest first within each kind, whole lines only, at most ``most_tokens`` together. A last line counts the entries
    that do not fit.
    """
    sections = (
        ("Files written", [f"{use.file} ({use.path})" for use in reversed(digest.files_written)]),
        ("Failing commands", _failing(digest.commands)),
        ("Open calls", list(open_calls)),
        ("Pinned", list(pins)),
    )
    lines: list[str] = []
    room = most_tokens
    for title, all_entries in sections:
        entries = list(dict.fromkeys(all_entries))
        if not entries:
            continue
        kept: list[str] = []
        more = counter.count(f"{title}:\n- and {len(entries)} more\n")
        for entry in entries:
            cost = counter.count(f"- {entry}\n")
            if cost + more > room:
                break
            kept.append(f"- {entry}")
            room -= cost
        if not kept:
            continue
        room -= more
        left = len(entries) - len(kept)
        lines += [f"{title}:", *kept, *([f"- and {left} more"] if left else [])]
    return "\n".join(lines)


def _failing(commands: Sequence[Command]) -> list[str]:
    """Return a line for each failed command, newest first; equal lines once, with the newest call's path."""
    lines: dict[str, str] = {}
    for command in reversed(commands):
        if command.failed:
            status = f" (exit {command.exit_status})" if command.exit_status is not None else ""
            line = " ".join(command.command.split())
            shortened = line if len(line) <= _OUTPUT_CHARACTERS else line[:_OUTPUT_CHARACTERS] + "…"
            lines.setdefault(f"{shortened}{status}", command.path)
    return [f"{line} ({path})" for line, path in lines.items()]
