from __future__ import annotations

import pytest

from timeline.errors import (
    ConversationNotFound,
    StoreBusy,
    StoreError,
    StoreLocked,
    StoreMoved,
    StoreUnavailable,
    TimelineError,
)
from timeline.inspector.problems import problem_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StoreUnavailable("the server cannot be reached"), 503),
        (StoreBusy("too much waits"), 503),
        (StoreMoved("the file was replaced"), 503),
        (StoreLocked("another process writes"), 423),
        (ConversationNotFound("cards"), 404),
        (StoreError("the database refused"), 409),
    ],
)
def test_an_error_of_the_library_has_the_status_of_what_to_do(error: TimelineError, status: int) -> None:
    """What may go well a little later is told apart from what will not."""
    problem = problem_of(error)
    assert problem.status == status
    assert problem.detail
