"""The demo's conversation as data: an agent builds a small flashcard app.

It is written for this project, with fixed times. Its five turns (build the app, import decks, explain a pasted log, add
a web page, a last wish) have parallel calls, failing tests, edits and long outputs, as a coding agent's have.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.cli.demo import files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.blocks import Block

SYSTEM: Final = (
    "You are a coding agent in the folder of a small Python project. Use the tools, keep the tests green, and say in "
    "one or two sentences what you did."
)
BEGAN: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Step:
    """Blocks that are appended together: a prompt, a model's response, or the results of its calls."""

    at: datetime
    blocks: tuple[Block, ...]

    @property
    def is_response(self) -> bool:
        """Whether the step is a model's response, so that the demo renders a context right before it."""
        return self.blocks[0].author == "assistant"


class _Writer:
    """Writes the steps: numbers calls and responses, and advances the clock by twenty seconds a step."""

    def __init__(self) -> None:
        self._steps = 0
        self._calls = 0

    def say(self, prompt: str) -> Iterator[Step]:
        yield self._step(UserPrompt(text=prompt))

    def answer(self, text: str) -> Iterator[Step]:
        yield self._step(AssistantCompletion(text=text, response_id=self._response()))

    def work(self, text: str, *calls: tuple[str, dict[str, Any], str]) -> Iterator[Step]:
        """Say something and call tools, several at once when several are given, then take their results."""
        response = self._response()
        blocks: list[Block] = [AssistantCompletion(text=text, response_id=response)] if text else []
        results: list[Block] = []
        for name, arguments, output in calls:
            self._calls += 1
            id_ = f"call_{self._calls}"
            failed = output.startswith("Exit code 1")
            blocks.append(ToolCall(call_id=id_, name=name, arguments=arguments, response_id=response))
            status = int(failed) if name == "bash" else None
            results.append(ToolResult(call_id=id_, name=name, text=output, is_error=failed, exit_status=status))
        yield self._step(*blocks)
        yield self._step(*results)

    def _response(self) -> str:
        return f"response_{self._steps + 1}"

    def _step(self, *blocks: Block) -> Step:
        self._steps += 1
        return Step(BEGAN + timedelta(seconds=20 * self._steps), blocks)


def steps() -> Iterator[Step]:
    """Yield the whole conversation, step by step."""
    writer = _Writer()
    yield from _build(writer)
    yield from _decks(writer)
    yield from _pasted_log(writer)
    yield from _web_page(writer)
    yield from _phone(writer)


def _build(w: _Writer) -> Iterator[Step]:
    yield from w.say(
        "Build a small flashcard app in Python: decks are JSON files, cards come back by spaced repetition, and there "
        "is a command line. No dependencies besides pytest. The first answer is never shown before I ask for it."
    )
    yield from w.work(
        "Let me see what is here.",
        ("list_files", {"path": "."}, "README.md\npyproject.toml\ndecks/capitals.json\ndecks/verbs.json"),
        ("read_file", {"path": "README.md"}, files.README),
        ("read_file", {"path": "decks/capitals.json"}, files.deck("capital", 24)),
    )
    yield from w.work("", ("write_file", {"path": "cards.py", "content": files.CARDS}, "wrote cards.py, 47 lines"))
    yield from w.work("", ("write_file", {"path": "cli.py", "content": files.CLI}, "wrote cli.py, 29 lines"))
    yield from w.work(
        "Now the tests.",
        ("write_file", {"path": "tests/test_cards.py", "content": files.TESTS}, "wrote tests/test_cards.py, 26 lines"),
        ("bash", {"command": "pytest -q"}, files.FAILING),
    )
    yield from w.work(
        "A card that was never seen has no due date, and the comparison fails. It counts as due at once.",
        (
            "edit_file",
            {"path": "cards.py", "old": "return card.due <= today", "new": "return not card.due or card.due <= today"},
            "edited cards.py, line 31",
        ),
        ("bash", {"command": "pytest -q"}, ".......                                    [100%]\n7 passed in 0.11s"),
    )
    yield from w.answer(
        "The app is there: `python cli.py decks/capitals.json` asks what is due and hides the answer until you press "
        "return. Seven tests pass."
    )


def _decks(w: _Writer) -> Iterator[Step]:
    yield from w.say("Import decks from CSV too. There is an export of my old app in exports/old.csv; umlauts matter.")
    yield from w.work(
        "",
        ("bash", {"command": "file exports/old.csv"}, "exports/old.csv: ISO-8859 text, with CRLF line terminators"),
        ("read_file", {"path": "exports/old.csv"}, files.csv(70)),
    )
    yield from w.work(
        "The file is Latin-1, not UTF-8. I will try UTF-8 first and fall back.",
        ("write_file", {"path": "csv_import.py", "content": files.CSV_IMPORT}, "wrote csv_import.py, 21 lines"),
        ("bash", {"command": "pytest -v"}, files.verbose(46, failing="test_csv.py::test_umlauts_survive")),
    )
    yield from w.work(
        "The fall-back opened the file twice and kept the wrong text.",
        (
            "edit_file",
            {"path": "csv_import.py", "old": "text = raw.decode()", "new": "text = _decoded(raw)"},
            "edited csv_import.py, line 9",
        ),
        ("bash", {"command": "pytest -q"}, "46 passed in 0.38s"),
    )
    yield from w.answer("CSV decks can be imported now: `python cli.py --import exports/old.csv`. Umlauts survive.")


def _pasted_log(w: _Writer) -> Iterator[Step]:
    yield from w.say(
        "On my laptop due cards come in the wrong order. This is the log of yesterday evening, find out why:\n\n"
        + files.log(52)
    )
    yield from w.work(
        "Every `due` in it is written in local time, and the clock went from 23:59 to 00:01.",
        (
            "search",
            {"pattern": "date.today", "path": "."},
            "cards.py:30: today = date.today()\ncli.py:12: date.today()",
        ),
        ("bash", {"command": "pytest -q -k order"}, "Exit code 1\n" + files.ORDER_FAILS),
    )
    yield from w.work(
        "",
        (
            "edit_file",
            {"path": "cards.py", "old": "date.today()", "new": "datetime.now(UTC).date()"},
            "edited cards.py, 1 place",
        ),
        ("bash", {"command": "pytest -q -k order"}, "3 passed, 43 deselected in 0.07s"),
    )
    yield from w.answer("The order is fixed: due dates are compared in UTC now. Your log mixed two local days.")


def _web_page(w: _Writer) -> Iterator[Step]:
    yield from w.say("Now a page for it: one card at a time, space shows the answer, 1 to 4 grade it. Plain HTML.")
    yield from w.work(
        "I will look at what can be reused.",
        ("read_file", {"path": "cards.py"}, files.CARDS),
        ("read_file", {"path": "cli.py"}, files.CLI),
        ("read_file", {"path": "decks/verbs.json"}, files.deck("verb", 18)),
    )
    yield from w.work("", ("write_file", {"path": "web.py", "content": files.WEB}, "wrote web.py, 33 lines"))
    yield from w.work(
        "Start it, and try it with the largest deck.",
        ("bash", {"command": "python web.py --port 8000 &"}, "listening on http://127.0.0.1:8000"),
        ("bash", {"command": "python tools/click_through.py --cards 40"}, files.clicks(40)),
    )
    yield from w.work(
        "Two answers were graded twice: the key repeats while it is held down.",
        (
            "edit_file",
            {"path": "web.py", "old": "onkeydown = grade", "new": "onkeydown = e => e.repeat || grade(e)"},
            "edited web.py, line 27",
        ),
        ("bash", {"command": "pytest -v"}, files.verbose(34, failing="")),
    )
    yield from w.work("", ("bash", {"command": "python tools/click_through.py --cards 8"}, files.clicks(8)))
    yield from w.answer("The page is up: `python web.py`, then space and 1 to 4. Holding a key no longer grades twice.")


def _phone(w: _Writer) -> Iterator[Step]:
    yield from w.say("On my phone the text is tiny, and there are no keys. Make it usable there.")
    yield from w.work(
        "It needs a viewport, and buttons for what the keys do.",
        (
            "edit_file",
            {"path": "web.py", "old": "<title>", "new": "<meta name=viewport content='width=device-width'><title>"},
            "edited web.py, line 6",
        ),
        (
            "edit_file",
            {"path": "web.py", "old": "<main id=card", "new": "<p id=grades></p><main id=card"},
            "edited web.py, line 7",
        ),
    )
    yield from w.work("", ("bash", {"command": "pytest -q"}, "48 passed in 0.55s"))
    yield from w.answer("Large text and four buttons on a phone now; with a keyboard nothing changed.")
