"""Errors about what was given: blocks, arguments, files, replies, extras."""

from __future__ import annotations

from timeline.errors.base import TimelineError


class InvalidBlock(TimelineError, ValueError):
    """A block or event was refused before anything was written; ``field`` names the offending field."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{self._what} {field!r}: {problem}. Nothing was written.")

    _what = "Invalid block, field"


class InvalidArgument(InvalidBlock):
    """An argument of a method cannot be used, and was refused before anything was written; ``field`` names it."""

    _what = "Invalid argument"


class InvalidPolicy(TimelineError, ValueError):
    """A policy field does not hold; ``field`` names it, and ``file`` the file that it stands in, if it does.

    ``field`` is empty where the file as a whole cannot be used.
    """

    def __init__(self, field: str, problem: str, *, file: str = "") -> None:
        self.field = field
        self.problem = problem
        self.file = file
        where = f" in {file}" if file else ""
        super().__init__(f"Invalid policy{where}{_field(field)}: {problem}.")


class InvalidLimits(TimelineError, ValueError):
    """A file with model limits cannot be used; ``field`` is empty where it cannot as a whole."""

    def __init__(self, file: str, field: str, problem: str) -> None:
        self.file = file
        self.field = field
        self.problem = problem
        super().__init__(f"Invalid limits in {file}{_field(field)}: {problem}.")


class InvalidPrices(TimelineError, ValueError):
    """A file with prices and cache rules cannot be used; ``field`` is empty where it cannot as a whole."""

    def __init__(self, file: str, field: str, problem: str) -> None:
        self.file = file
        self.field = field
        self.problem = problem
        super().__init__(f"Invalid prices in {file}{_field(field)}: {problem}.")


def _field(name: str) -> str:
    return f", field {name!r}" if name else ""


class UnknownResponse(TimelineError, TypeError):
    """What should be recorded is no response of a model; ``got`` says what it is."""

    def __init__(self, got: str) -> None:
        self.got = got
        super().__init__(
            f"No response that can be recorded: {got}. Accepted are an Anthropic message, an OpenAI chat completion, "
            "an OpenAI response and a Google content response, each as the SDK's object or its dict; a stream of them "
            "goes to `recording` or `record_stream`. Nothing was written."
        )


class InvalidFilter(TimelineError, ValueError):
    """A filter of a query cannot be used; ``field`` names it, and the problem says the cure."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"Invalid filter, {field!r}: {problem}.")


class ImportFailed(TimelineError):
    """The file is no recording that can be read; nothing was imported."""

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        self.problem = problem
        super().__init__(f"{source}: {problem}")


class MissingExtra(TimelineError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{package} is not installed. Install it with: pip install 'timeline-engine[{extra}]'")
