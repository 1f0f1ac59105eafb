"""Give the loggers of conversations, whose lines stay lines and steer no terminal, whatever a conversation holds."""

from __future__ import annotations

import logging
from typing import Final

from timeline.display.controls import show_controls
from timeline.errors import message_of


class _Visible(logging.Filter):
    """Let every record pass, with the control characters and line ends of what it names made visible.

    What a line names comes from outside: ids, errors of providers, which quote conversations, and of applications.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(map(_visible, record.args))
        return True


def _visible(named: object) -> object:
    text = message_of(named) if isinstance(named, BaseException) else named
    return show_controls(text).replace("\n", "\u240a") if isinstance(text, str) else named


_VISIBLE: Final = _Visible()


def logger_of(name: str) -> logging.Logger:
    """Return the logger of a name; a line of it is one line, and has no control character."""
    logger = logging.getLogger(name)
    logger.addFilter(_VISIBLE)
    return logger
