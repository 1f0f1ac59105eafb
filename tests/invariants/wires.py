"""What the providers demand of a request, checked on the encoded bodies."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from timeline.projection.context import RenderedContext
from timeline.wire.groups import OPENING_LINE


def check_anthropic(body: dict[str, Any]) -> None:
    """Roles alternate from the user on, each call is answered at the head of the next message, ids are unique.

    A result that is an error holds text alone.
    """
    messages = body["messages"]
    if not messages:
        return
    assert messages[0]["role"] == "user"
    assert all(a["role"] != b["role"] for a, b in pairwise(messages))
    seen: set[str] = set()
    for number, message in enumerate(messages):
        assert message["content"]
        uses = [part["id"] for part in message["content"] if part["type"] == "tool_use"]
        assert not uses or message["role"] == "assistant"
        assert not seen & set(uses)
        assert len(set(uses)) == len(uses)
        seen.update(uses)
        answers = messages[number + 1]["content"][: len(uses)] if uses else []
        assert [part.get("tool_use_id") for part in answers] == uses
    results = [p["tool_use_id"] for m in messages for p in m["content"] if p["type"] == "tool_result"]
    assert sorted(results) == sorted(seen)
    errors = [part for m in messages for part in m["content"] if part["type"] == "tool_result" and part.get("is_error")]
    held = [inner["type"] for part in errors if isinstance(part["content"], list) for inner in part["content"]]
    assert {*held} <= {"text"}
    _check_server_tools(messages)


def check_converse(body: dict[str, Any]) -> None:
    """What Bedrock demands besides its service model, as its users reported it.

    Roles alternate from the user on, the next message answers each call, no text is blank, a document comes with a
    text, a cache point behind something else than a thought, and tools are declared where one is called. A cache point
    may stand between two results: it marks the block in front of it, and is none that a model reads.
    """
    messages = body["messages"]
    assert messages[0]["role"] == "user"
    assert all(a["role"] != b["role"] for a, b in pairwise(messages))
    seen: list[str] = []
    for number, message in enumerate(messages):
        content = message["content"]
        uses = [block["toolUse"]["toolUseId"] for block in content if "toolUse" in block]
        read = [block for block in messages[number + 1]["content"] if "cachePoint" not in block] if uses else []
        behind = read[: len(uses)]
        assert [block.get("toolResult", {}).get("toolUseId") for block in behind] == uses
        seen += uses
        assert all(block["text"].strip() for block in content if "text" in block)
        assert any("text" in block for block in content) or not any("document" in block for block in content)
        assert "reasoningContent" not in content[-1]
        assert "cachePoint" not in content[0]
        points = [place for place, block in enumerate(content) if "cachePoint" in block]
        assert not any("reasoningContent" in content[place - 1] for place in points)
    assert len({*seen}) == len(seen)
    assert not seen or body["toolConfig"]["tools"]
    results = [b["toolResult"] for m in messages for b in m["content"] if "toolResult" in b]
    assert [each["toolUseId"] for each in results] == seen
    assert all(each["content"] for each in results)
    assert str(body).count("'cachePoint'") <= 4


def _check_server_tools(messages: list[dict[str, Any]]) -> None:
    """What the server's own tools found follows their calls, at the latest in the next response of the turn.

    A program that makes calls of the client's tools there goes on until a response without.
    """
    waiting: set[str] = set()
    for message in messages:
        said = message["content"]
        if all(part["type"] == "tool_result" for part in said):
            continue
        called = {part["id"] for part in said if part["type"] in {"server_tool_use", "mcp_tool_use"}}
        results = [part for part in said if part["type"].endswith("_tool_result") and part["type"] != "tool_result"]
        found = {part["tool_use_id"] for part in results}
        going_on = {part["caller"]["tool_id"] for part in said if part["type"] == "tool_use" and "caller" in part}
        assert waiting - going_on <= found <= waiting | called
        waiting = (waiting | called) - found


def closing_text(body: dict[str, Any]) -> str:
    """Return the text that a request to Anthropic ends with, where it is an answer's; else nothing."""
    if not body["messages"] or body["messages"][-1]["role"] != "assistant":
        return ""
    return str(body["messages"][-1]["content"][-1].get("text", ""))


def check_openai_chat(body: dict[str, Any]) -> None:
    """Each assistant message with calls is followed at once by a tool message for each of them, in order."""
    messages = body["messages"]
    expected: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert expected, "a tool message without its call"
            assert message["tool_call_id"] == expected.pop(0)
            continue
        assert not expected, "a call without its result"
        expected = [call["id"] for call in message.get("tool_calls", ())]
        assert not seen & set(expected)
        seen.update(expected)
    assert not expected


def check_grown(before: RenderedContext, after: RenderedContext) -> None:
    """Both requests begin alike: all parts of the older one, and all of its messages but the last, are in the newer.

    An answer that was the last word has its white space back when something follows.
    """
    requests = [context.to_anthropic() for context in (before, after)]
    older, newer = map(_parts, requests)
    kept = newer[: len(older)]
    if closing := closing_text(requests[0]):
        assert kept.pop()[1]["text"].rstrip() == closing
        older.pop()
    assert kept == older
    said, says = (context.to_openai_chat()["messages"] for context in (before, after))
    settled = said[:-1]
    assert says[: len(settled)] == settled


def says_something(context: RenderedContext) -> bool:
    """Return whether a request has more than the line that stands where nothing is said; this line gives way later."""
    return [part.get("text") for _, part in _parts(context.to_anthropic())] != [OPENING_LINE]


def _parts(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """List the parts of a request with their roles, cache markers left out."""
    return [
        (message["role"], {key: value for key, value in part.items() if key != "cache_control"})
        for message in body["messages"]
        for part in message["content"]
    ]
