"""Read one row of a Claude Code conversation into blocks, model calls and compactions, and open turns.

The client's own messages in the user's role (slash commands and their output, caveats, skill texts, interruptions) are
in the model's context but are no prompts: each becomes a ``client.message`` by the author ``client``, which opens no
turn.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import UserPrompt
from timeline.events import ModelCalled
from timeline.importers.builder import Origin, RecordingBuilder, client_message
from timeline.importers.claude_attachments import given_text
from timeline.importers.claude_queue import PromptQueue
from timeline.importers.recording import ImportedCompaction, ImportedHide
from timeline.usage import Usage
from timeline.wire.anthropic import assistant_block, joined_text, parts_of, result_block
from timeline.wire.foreign import object_of, text_of
from timeline.wire.media import attachment_block
from timeline.wire.usage import anthropic_usage, count_of

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.blocks import Block, ToolResult
    from timeline.importers.recording import RecordedEvent, Report

SYNTHETIC: Final = "<synthetic>"
"""The model name of answers that the client itself wrote; no model was called."""
CHATTER: Final = re.compile(
    r"\s*(<(command-name|command-message|command-args|local-command-stdout|local-command-stderr|local-command-caveat"
    r"|bash-input|bash-stdout|bash-stderr|task-notification)>|\[Request interrupted by user)"
)
"""The beginnings of texts that the client wrote in the user's role (from 273 recorded sessions)."""
QUEUED: Final = "queued_command"
"""The type of an attachment that has what the user wrote while the model was at work."""
EXIT_CODE: Final = re.compile(r"(?:Error: )?Exit code (\d{1,9})\b")


class SessionReader:
    """Reads one conversation's rows in file order."""

    def __init__(self, report: Report, first_time: datetime | None) -> None:
        self.report = report
        self._builder = RecordingBuilder(report, first_time=first_time)
        self._seen: dict[str, Any] = {}
        self._queue = PromptQueue()
        self._newest = ""
        self._boundary: ImportedCompaction | None = None
        self._held: list[tuple[Block, Origin]] = []
        """What the model was given behind a compaction whose summary is not read yet."""
        self._before: datetime | None = None
        self._started: dict[str, datetime | None] = {}
        self._attached: dict[str, int] = {}
        """By row of an attachment that was read, its line."""
        self._copied: set[str] = set()
        """Responses whose rows were copied from the session that this one was forked from."""
        self._blocks = 0
        self._blocks_before: dict[str, int] = {}
        """By row, how many blocks came before it: the client names the rows that a compaction of its kept."""
        self._blocks_through: dict[str, int] = {"": 0}
        """By row, how many blocks there were behind it; by no row, how many there were at the beginning."""

    @property
    def first_prompt(self) -> str:
        """The first prompt with a text; empty if there is none."""
        return self._builder.first_prompt

    def knows(self, row: dict[str, Any]) -> bool:
        """Return whether a row of this uuid was read."""
        uuid = row.get("uuid")
        return isinstance(uuid, str) and uuid in self._seen

    def read(self, row: dict[str, Any], line: int, at: datetime | None) -> None:
        """Read a user or assistant row."""
        message = row.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(content, str | list):
            self.report.note("invalid", line, f"{row.get('type')} row without content")
            return
        uuid = row.get("uuid")
        origin = Origin(uuid if isinstance(uuid, str) else f"line-{line}", line, at)
        if isinstance(uuid, str):
            if self._seen.get(uuid) == content:
                self.report.note("duplicate_record", line, uuid)
                return
            self._seen[uuid] = content
            self._blocks_before[uuid] = self._blocks
        before, self._before = self._before, at or self._before
        if row.get("type") == "assistant":
            self._read_assistant(row, message, origin, before)
        else:
            self._read_user(row, content, origin)
        self._blocks_through[origin.key] = self._blocks
        self._newest = origin.key

    def read_stand_in(self, uuid: str, behind: str) -> None:
        """Note a row that stands for the rows behind another one; nothing of it is read."""
        self._blocks_before.setdefault(uuid, self._blocks_through.get(behind, self._blocks))

    def read_boundary(self, row: dict[str, Any], line: int, at: datetime | None) -> None:
        """Read the mark of a compaction (its summary is the next user row) or of a microcompaction."""
        uuid = row.get("uuid")
        if isinstance(micro := row.get("microcompactMetadata"), dict):
            ids = micro.get("compactedToolIds")
            hide = ImportedHide(
                tuple(i for i in ids if isinstance(i, str)) if isinstance(ids, list) else (),
                str(micro.get("trigger") or ""),
                count_of(micro, "preTokens"),
                count_of(micro, "tokensSaved"),
            )
            self._builder.add_event(hide, Origin(str(uuid or f"line-{line}"), line, at))
            return
        if self._boundary:
            self.report.note("invalid", line, "the compaction before this one has no summary")
        recorded = row.get("compactMetadata")
        metadata = recorded if isinstance(recorded, dict) else {}
        trigger, before = str(metadata.get("trigger") or ""), count_of(metadata, "preTokens")
        self._boundary = ImportedCompaction("", trigger, before, self._kept(metadata))

    def _kept(self, metadata: dict[str, Any]) -> int:
        """Return how many of the newest blocks a compaction left word for word, as newer versions of the client do."""
        kept = metadata.get("preservedMessages")
        uuids = kept.get("uuids") if isinstance(kept, dict) else None
        rows = (uuid for uuid in uuids if isinstance(uuid, str)) if isinstance(uuids, list) else ()
        first = min((self._blocks_before[uuid] for uuid in rows if uuid in self._blocks_before), default=self._blocks)
        return self._blocks - first

    def read_queue(self, row: dict[str, Any], line: int, at: datetime | None) -> None:
        """Read a row of the queue of prompts; it is a prompt where the model was given one.

        Its key begins with the row before it, since the queue's rows have no uuid: it is left and taken up with that.
        """
        if text := self._queue.given_by(row):
            self._blocks += 1
            self._builder.add_said([(_said(text), Origin(f"{self._newest}.queued", line, at))])
        else:
            self.report.counts["skipped"] += 1

    def read_attachment(self, row: dict[str, Any], line: int, at: datetime | None) -> None:
        """Read what the client put beside the conversation: a prompt, a file, a hook's words, or else its own state.

        Its time may be an earlier one, as that at which the user wrote; the model was given it behind the rows before.
        """
        attachment = object_of(row, "attachment")
        given = max(filter(None, (at, self._before)), default=None)
        if text_of(attachment, "type") == QUEUED:
            self._read_queued(attachment, line, given)
        elif not (text := given_text(attachment)):
            self.report.counts["skipped"] += 1
        elif self._attached.setdefault(uuid := text_of(row, "uuid") or f"line-{line}", line) != line:
            self.report.note("duplicate_record", line, uuid)
        else:
            self._held.append((client_message(text), Origin(f"{self._newest}.given", line, given)))
            if self._boundary is None:
                self._give_held()

    def _read_queued(self, attachment: dict[str, Any], line: int, given: datetime | None) -> None:
        is_new = self._queue.is_given_by(joined_text(attachment.get("prompt")))
        is_meta = attachment.get("isMeta") is True or attachment.get("commandMode") == "task-notification"
        parts = [part for part in parts_of(attachment.get("prompt")) if is_new or part.get("type") != "text"]
        blocks = [block for part in parts if (block := _user_block(part, is_meta=is_meta)) is not None]
        if not blocks:
            self.report.counts["skipped"] += 1
        self._blocks += len(blocks)
        self._builder.add_said([(block, Origin(f"{self._newest}.queued", line, given)) for block in blocks])

    def _give_held(self) -> None:
        held, self._held = self._held, []
        self._blocks += len(held)
        self._builder.add_said(held)

    def path_of_call(self, call_id: str) -> str | None:
        """Return the path that a call will have in the log."""
        return self._builder.path_of_call(call_id)

    def take(self) -> list[RecordedEvent]:
        """Return the events of the rows read since the last call, see `RecordingBuilder.take`."""
        return self._builder.take()

    def finish(self) -> tuple[RecordedEvent, ...]:
        """Return the conversation's events in timeline order."""
        if self._boundary:
            self.report.note("invalid", self.report.lines, "the last compaction has no summary")
        self._give_held()
        return self._builder.finish()

    def _read_user(self, row: dict[str, Any], content: str | list[Any], origin: Origin) -> None:
        if row.get("isCompactSummary") is True:
            boundary = self._boundary or ImportedCompaction("")
            self._boundary = None
            self._builder.add_event(replace(boundary, summary=joined_text(content)), origin)
            self._give_held()
            return
        is_meta = row.get("isMeta") is True
        read = (
            _result(part, row.get("toolUseResult"))
            if part.get("type") == "tool_result"
            else _user_block(part, is_meta=is_meta)
            for part in parts_of(content)
        )
        blocks = [
            (block, Origin(f"{origin.key}.{index}", origin.line, origin.at))
            for index, block in enumerate(read)
            if block is not None
        ]
        self._blocks += len(blocks)
        self._builder.add_said(blocks)

    def _read_assistant(
        self, row: dict[str, Any], message: dict[str, Any], origin: Origin, before: datetime | None
    ) -> None:
        content = message["content"]
        response = text_of(message, "id") or f"response-{origin.key}"
        if row.get("isApiErrorMessage") is True:
            self._blocks += 1
            self._builder.add(client_message(joined_text(content), error=True), origin)
            return
        for index, part in enumerate(parts_of(content)):
            place = Origin(f"{origin.key}.{index}", origin.line, origin.at)
            block = assistant_block(part, response, f"call-{place.key}")
            if block is not None:
                self._blocks += 1
                self._builder.add_to_response(response, block, place)
        if message.get("model") != SYNTHETIC:
            # The agent calls the model as soon as the last input is there, so the call began at the row before.
            started = self._started.setdefault(response, before or origin.at)
            called = _model_call(message, response, started)
            if isinstance(row.get("forkedFrom"), dict):
                self._copied.add(response)
            if response in self._copied:  # the session that this one was forked from has it
                called = called.model_copy(update={"usage": Usage()})
            self._builder.set_model_call(response, called, origin)


def _model_call(message: dict[str, Any], response: str, started: datetime | None) -> ModelCalled:
    finish = message.get("stop_reason")
    return ModelCalled(
        model=str(message.get("model") or ""),
        response_id=response,
        usage=anthropic_usage(message.get("usage")),
        finish_reason=finish if isinstance(finish, str) else None,
        started_at=started,
    )


def _user_block(part: dict[str, Any], *, is_meta: bool) -> Block | None:
    if part.get("type") != "text":
        return attachment_block(part, author="client" if is_meta else "user")
    text = text_of(part)
    return _said(text, is_meta=is_meta) if text else None


def _said(text: str, *, is_meta: bool = False) -> Block:
    return client_message(text) if is_meta or CHATTER.match(text) else UserPrompt(text=text)


def _result(part: dict[str, Any], twin: Any) -> ToolResult:
    result = result_block(part)
    status = _exit_status(result.text, twin, is_error=result.is_error)
    return result if status is None else result.model_copy(update={"exit_status": status})


def _exit_status(text: str, twin: Any, *, is_error: bool) -> int | None:
    """Return a shell command's exit status, from its result.

    The text of a failed command begins with ``Exit code N``. The structured twin of a command without an error flag has
    no status: it is 0 unless the client interpreted another, stopped the command or left it running.
    """
    if is_error:
        matched = EXIT_CODE.match(text)
        return int(matched.group(1)) if matched else None
    if not isinstance(twin, dict) or "stdout" not in twin or twin.get("interrupted") is not False:
        return None
    return None if twin.get("returnCodeInterpretation") or twin.get("backgroundTaskId") else 0
