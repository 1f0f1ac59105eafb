"""Calls of tools that came as text in the place of a summary."""

from __future__ import annotations

from typing import Final

import pytest

from tests.summarizers.test_error_texts import SUMMARIES as SUMMARIES_LIKE_ERRORS
from timeline.summarizers.call_texts import is_call_text

CALLS: Final = (
    '<tool_call>\n{"name": "bash", "arguments": {"command": "pytest"}}\n</tool_call>',
    "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>pytest</arg_value>\n</tool_call>",
    '<minimax:tool_call>\n<invoke name="bash">\n<parameter name="command">pytest</parameter>\n</invoke>',
    '<function_calls>\n<invoke name="Bash">pytest</invoke>\n</function_calls>',
    "<function=bash>\n<parameter=command>\npytest\n</parameter>\n</function>",
    '<\uff5c\uff5cDSML\uff5c\uff5ctool_calls>\n<\uff5c\uff5cDSML\uff5c\uff5cinvoke name="bash">\n',
    "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>bash",
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"command": "ls"}',
    '<|python_tag|>{"name": "bash", "parameters": {"command": "pytest"}}',
    '<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{"command": "pytest"}',
    '[TOOL_CALLS][{"name": "bash", "arguments": {"command": "pytest"}}]',
    '{"name": "bash", "arguments": {"command": "pytest"}}',
)
SUMMARIES: Final = (
    *SUMMARIES_LIKE_ERRORS,
    "The parser reads `<tool_call>` and `<function=bash>` now.",
    "## Done\n- <invoke name= is escaped in src/auth.py",
    "<summary>\nThe login form was mended.\n</summary>",
    "<tool_call_parser.py was read.",
    '{"name": "login form", "status": "mended"}',
    '{"name": "login", "arguments": [], "decisions": ["no new field"]}',
)


@pytest.mark.parametrize("text", CALLS)
def test_a_call_that_came_as_text_is_known(text: str) -> None:
    """A model went on with the work that it was asked to summarise, and its server did not read the call."""
    assert is_call_text(text)


@pytest.mark.parametrize("text", SUMMARIES)
def test_what_tells_of_calls_is_a_summary(text: str) -> None:
    """The work may have been about the forms of calls."""
    assert not is_call_text(text)
