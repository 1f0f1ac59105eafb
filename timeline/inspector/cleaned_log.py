"""Clean an exported log line by line, so that what is left of it imports again and its checksums match.

A payload that changes gets the checksum of what is left and loses its salt, as a redacted one does; a content-addressed
text that changes gets another hash, and events name that. The fingerprint of a context that may have shown what was
taken out goes, and so does the hash of a body that was made of it: a short secret could be guessed by them, and they
would not match. All else can be verified as before.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from timeline.events.encoding import checksum
from timeline.frozen import compact_json, sha256_hex
from timeline.portable.lines import KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from timeline.inspector.cleaning import Cleaner

_SHOWS_NOTHING: Final = frozenset({"context.rendered", "model.called", "conversation.opened", "compaction.failed"})
"""Events whose content is in no context that comes later."""


def cleaned_lines(lines: Iterable[str], cleaner: Cleaner) -> Iterator[str]:
    """Yield the lines of an exported log without what a cleaner takes out; it learns from all of them first.

    Args:
        lines: the lines of `timeline.portable.export_log`.
        cleaner: takes out, and remembers what.
    """
    read: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for line in read:
        cleaner.learn(_content(line))
    log = _Log(cleaner)
    for line in read:
        yield compact_json(log.cleaned(line))


def _content(line: dict[str, Any]) -> Any:
    return _parsed(line["text"]) if line[KEY] == "value" else line


def _parsed(text: str) -> Any:
    """Return a text as the JSON that it is; where it is none, or was written otherwise, the text itself.

    In JSON a line break is two signs, and the word behind it seems to begin with the second one.
    """
    if not text.startswith(("{", "[")):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if compact_json(value) == text else text


class _Log:
    """The lines of one file, as they come."""

    def __init__(self, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._hashes: dict[str, str] = {}
        """Of each changed text: the hash that events know it by, and the one that it has now."""
        self._shown: dict[str, int] = {}
        """By conversation: the first version at which something was taken out that contexts may show."""
        self._unproved: dict[str, set[int]] = {}
        """By conversation: the contexts that have no fingerprint any more."""

    def cleaned(self, line: dict[str, Any]) -> dict[str, Any]:
        """Return a line without what is taken out."""
        match line[KEY]:
            case "value":
                return self._value(line)
            case "log":
                return self._opening(line)
        return self._event(line)

    def _value(self, line: dict[str, Any]) -> dict[str, Any]:
        value = _parsed(line["text"])
        cleaned = self._cleaner.clean(value, "a policy, a system prompt or tools")
        if cleaned == value:
            return line
        text = cleaned if isinstance(cleaned, str) else compact_json(cleaned)
        self._hashes[line["hash"]] = sha256_hex(text)
        return {**line, "hash": sha256_hex(text), "text": text}

    def _opening(self, line: dict[str, Any]) -> dict[str, Any]:
        base, parent = line["base"], str((line["parent"] or {}).get("conversation"))
        if base and self._shown.get(parent, base + 1) <= base:
            self._shown[line["conversation"]] = self._shown[parent]
        if base and parent in self._unproved:
            inherited = {version for version in self._unproved[parent] if version <= base}
            self._unproved[line["conversation"]] = inherited
        fields = {name: value for name, value in line.items() if name != "checksum"}
        fields = self._cleaner.clean(fields, "the conversation")
        return {**fields, "checksum": sha256_hex(compact_json(fields))}

    def _event(self, line: dict[str, Any]) -> dict[str, Any]:
        conversation, version = line["conversation"], line["version"]
        payload = self._cleaner.clean(line["payload"], f"@{version}")
        payload = {name: self._renamed(value) for name, value in payload.items()}
        changed = payload != line["payload"]
        if changed and line["type"] not in _SHOWS_NOTHING:
            self._shown.setdefault(conversation, version)
        payload = self._without_proof(conversation, line, payload, changed=changed)
        named = self._cleaner.clean(conversation, "the conversation")
        if payload == line["payload"] and named == conversation:
            return line
        own = (named, version, line["id"], line["type"], line["schema_version"], line["at"])
        left = {name: value for name, value in line.items() if name not in {"payload", "salt"}}
        left |= {"conversation": named, "checksum": checksum(*own, compact_json(payload)), "redacted": True}
        return {**left, "payload": payload}

    def _renamed(self, value: Any) -> Any:
        return self._hashes.get(value, value) if isinstance(value, str) else value

    def _without_proof(
        self, conversation: str, line: dict[str, Any], payload: dict[str, Any], *, changed: bool
    ) -> dict[str, Any]:
        """Return the payload of a context or a call without the hash of what it was made of, if that changed."""
        since = self._shown.get(conversation)
        unproved = self._unproved.setdefault(conversation, set())
        if line["type"] == "context.rendered":
            if changed or (since is not None and since <= payload["version"]):
                unproved.add(line["version"])
                return {**payload, "fingerprint": ""}
        elif line["type"] == "model.called" and payload.get("request"):
            answers = payload.get("answers")
            is_unproved = answers in unproved if answers is not None else since is not None and since < line["version"]
            if is_unproved or changed:
                return {**payload, "request": {**payload["request"], "sha256": ""}}
        return payload
