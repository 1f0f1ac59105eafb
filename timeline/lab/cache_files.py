"""Keep outcomes in a folder, one file each, so that an interrupted comparison continues where it stopped."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from timeline.lab.work import Outcome, key_of

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.lab.work import Work

_ENDING: Final = ".json"


class OutcomeFolder:
    """A folder of outcomes. Failures are never kept.

    Args:
        folder: created if it does not exist.

    Raises:
        OSError: the folder cannot be created.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def find(self, work: Work) -> Outcome | None:
        """Return the kept outcome of a unit of work, or None if there is none that can be read.

        Raises:
            ImportFailed: the unit's file cannot be read.
        """
        try:
            outcome = Outcome.model_validate_json((self._folder / (key_of(work) + _ENDING)).read_bytes())
        except (FileNotFoundError, ValidationError):  # incomplete, or of another version: run it again
            return None
        named = {"file": work.file, "policy": work.name}
        return outcome.model_copy(update={"runs": tuple(run.model_copy(update=named) for run in outcome.runs)})

    def keep(self, work: Work, outcome: Outcome) -> None:
        """Write an outcome, atomically, for its owner alone: it quotes what was recorded.

        Raises:
            OSError: the folder cannot be written.
            ImportFailed: the unit's file cannot be read any more.
        """
        if outcome.failure is not None:
            return
        target = self._folder / (key_of(work) + _ENDING)
        draft = target.with_suffix(f".{os.getpid()}.draft")
        draft.unlink(missing_ok=True)  # of a process that was killed
        draft.touch(0o600, exist_ok=False)
        draft.write_text(outcome.model_dump_json(), encoding="utf-8")
        draft.replace(target)
