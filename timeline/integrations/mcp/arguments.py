"""The arguments of each tool; the model receives their JSON schemas."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from pydantic import AwareDatetime, BeforeValidator, Field, StringConstraints

from timeline.blocks import with_hour
from timeline.frozen import Frozen
from timeline.queries import FACT_KINDS, LONGEST_QUERY, FactKind

_SHORT: Final = 1_000
"""Most characters of a name, a glob or a word list: more than any that are stored, and few enough to be compared."""
_LONG: Final = 10_000
"""Most characters of a path of a block, of a command and of a cursor, which may hold an id."""

OneConversation: TypeAlias = Annotated[
    str | None,
    Field(
        max_length=_LONG, description="Only of this conversation; of a fork, only what is its own. All unless given."
    ),
]
OneWithItsPast: TypeAlias = Annotated[
    str | None,
    Field(max_length=_LONG, description="Only of this conversation; of a fork also what it shares. All unless given."),
]
_Moment: TypeAlias = Annotated[AwareDatetime, BeforeValidator(with_hour)]
Since: TypeAlias = Annotated[
    _Moment | None, Field(description="Not before this moment, with its zone: 2026-01-31T12:00:00Z.")
]
Until: TypeAlias = Annotated[_Moment | None, Field(description="Not after this moment, with its zone.")]
Cursor: TypeAlias = Annotated[
    str | None,
    Field(
        max_length=_LONG, description="Where to go on: next_cursor of the answer before, with the same other arguments."
    ),
]
Limit: TypeAlias = Annotated[
    int, Field(ge=1, le=100, description="At most so many; fewer come where they would fill your window.")
]


class Arguments(Frozen):
    """Arguments of a tool; unknown ones are refused."""

    @classmethod
    def schema_for_model(cls) -> dict[str, Any]:
        """Return the JSON schema without titles, which only repeat the names."""
        schema: dict[str, Any] = _untitled(cls.model_json_schema())
        schema.pop("description", None)  # the class's docstring; the tool has a description of its own
        return schema


class ConversationsArguments(Arguments):
    """Of `conversations`."""

    query: Annotated[
        str | None,
        Field(max_length=_SHORT, description="Only those whose id or title contains this, in upper or lower case."),
    ] = None
    limit: Limit = 20
    cursor: Cursor = None


class ReadArguments(Arguments):
    """Of `read`."""

    conversation: Annotated[
        str | None,
        StringConstraints(min_length=1, max_length=_LONG),
        Field(description="Id of a conversation, as `conversations` gives it; not needed where the path has it."),
    ] = None
    path: Annotated[
        str,
        StringConstraints(min_length=1, max_length=_LONG),
        Field(
            description="Path or address of a block, as the other tools and contexts print it: "
            "tc:turn_2.call_1.result, @152 or, with its conversation, cards@152."
        ),
    ]
    offset: Annotated[int, Field(ge=0, description="Character to begin at; 0 is the first.")] = 0
    limit: Annotated[int | None, Field(ge=1, description="Most characters to give; as many as fit unless given.")] = (
        None
    )


class SearchArguments(Arguments):
    """Of `search`."""

    query: Annotated[
        str,
        StringConstraints(min_length=1, max_length=LONGEST_QUERY),
        Field(description='Words, all of which must occur. "Quoted words" follow one another; begin* is a beginning.'),
    ]
    conversation: OneConversation = None
    types: Annotated[
        tuple[Annotated[str, StringConstraints(max_length=_SHORT)], ...],
        Field(
            max_length=100,
            description="Only blocks of these types: user.prompt, user.attachment, assistant.completion, "
            "assistant.reasoning, react.tool.call, react.tool.result, conv.range.summary, system.message, note.",
        ),
    ] = ()
    since: Since = None
    until: Until = None
    limit: Limit = 20
    cursor: Cursor = None


class DigestsArguments(Arguments):
    """Of `digests`."""

    conversation: OneConversation = None
    since: Since = None
    until: Until = None
    tool: Annotated[
        str | None, Field(max_length=_SHORT, description="Only where the tool of exactly this name was used.")
    ] = None
    path: Annotated[
        str | None,
        Field(
            max_length=_SHORT,
            description="Only where such a file was read, written or deleted: a glob over the whole path, "
            "**/main.py for that file in any folder, src/**/*.py.",
        ),
    ] = None
    command: Annotated[
        str | None, Field(max_length=_LONG, description="Only where a shell command contains this as it stands.")
    ] = None
    failed: Annotated[bool, Field(description="Only where something failed.")] = False
    error_text: Annotated[
        str | None, Field(max_length=_LONG, description="Only where an error's text contains this.")
    ] = None
    compaction_number: Annotated[
        str | None,
        StringConstraints(pattern=r"^\d{1,9}(-\d{1,9})?$"),
        Field(description="Only a conversation's n-th compaction: 3, or 2-4."),
    ] = None
    reverted: Annotated[bool, Field(description="Compactions that were taken back, instead.")] = False
    limit: Limit = 10
    cursor: Cursor = None


class FactsArguments(Arguments):
    """Of `facts`."""

    conversation: OneWithItsPast = None
    kind: Annotated[
        tuple[FactKind, ...],
        Field(max_length=len(FACT_KINDS), description="Only facts of these kinds."),
    ] = ()
    subject: Annotated[
        str | None,
        Field(max_length=_LONG, description="The file, command, query, URL or identifier contains this as it stands."),
    ] = None
    glob: Annotated[
        str | None, Field(max_length=_SHORT, description="The whole subject matches: **/main.py, src/**/*.py.")
    ] = None
    tool: Annotated[str | None, Field(max_length=_SHORT, description="The tool of exactly this name.")] = None
    exit_status: Annotated[int | None, Field(description="A command ended with this number.")] = None
    failed: Annotated[bool | None, Field(description="true: only what failed; false: only what did not.")] = None
    covered: Annotated[
        bool | None,
        Field(description="true: only what a compaction covers; false: only what is still in the window."),
    ] = None
    query: Annotated[
        str | None, Field(max_length=LONGEST_QUERY, description="All these words occur in the subject, tool or detail.")
    ] = None
    since: Since = None
    until: Until = None
    limit: Limit = 50
    cursor: Cursor = None


class RecordArguments(Arguments):
    """Of `record`."""

    conversation: Annotated[
        str,
        StringConstraints(min_length=1, max_length=_LONG),
        Field(description="Id of a conversation, as `conversations` gives it."),
    ]
    offset: Annotated[int, Field(ge=0, description="Line to begin at; 0 is the first.")] = 0


def _untitled(schema: Any) -> Any:
    """Return a schema without the titles that pydantic makes of the names."""
    if isinstance(schema, dict):
        return {k: _untitled(v) for k, v in schema.items() if k != "title" or not isinstance(v, str)}
    return [_untitled(part) for part in schema] if isinstance(schema, list) else schema
