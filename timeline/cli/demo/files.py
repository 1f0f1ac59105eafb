"""The files of the demo's project, and what its tools print: the long texts that fill a context."""

from __future__ import annotations

import json
from typing import Final


def deck(kind: str, cards: int) -> str:
    """Return a deck of cards as JSON."""
    rows = [
        {"front": f"{kind} {n}", "back": f"answer {n * 37 % 101}", "box": n % 5, "due": f"2026-03-{n % 28 + 1:02}"}
        for n in range(1, cards + 1)
    ]
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]"


def csv(rows: int) -> str:
    """Return an export of cards as CSV."""
    words = ("Tür;door", "Brücke;bridge", "Schlüssel;key", "Käse;cheese", "Fluss;river", "Straße;street", "Öl;oil")
    lines = [f"{n};{words[n % len(words)]};box {n % 5};{n * 7 % 90} days" for n in range(1, rows + 1)]
    return "id;front;back;box;seen\n" + "\n".join(lines)


def verbose(tests: int, *, failing: str) -> str:
    """Return what a long test run prints; ``failing`` names the test that fails, if one does."""
    names = ("shows_front_first", "grades", "moves_up_a_box", "falls_back", "keeps_order", "saves", "loads_again")
    files = ("cards", "cli", "csv")
    lines = [
        f"tests/test_{files[n % 3]}.py::test_{names[n % len(names)]}_{n} PASSED  [{100 * n // tests:3}%]"
        for n in range(1, tests + 1)
    ]
    if not failing:
        return "\n".join([*lines, f"{tests} passed in 0.52s"])
    return "Exit code 1\n" + "\n".join(
        [*lines, f"{failing} FAILED", "E   AssertionError: 'TÃ¼r' != 'Tür'", f"1 failed, {tests - 1} passed in 0.52s"]
    )


def log(lines: int) -> str:
    """Return a log of cards that were shown around midnight."""
    shown = [
        f"2026-03-0{1 + n // 30} {(23, 0)[n // 30]:02}:{n * 2 % 60:02}:{n * 13 % 60:02} card={n * 11 % 40} "
        f"due=2026-03-0{1 + n % 2} box={n % 5} shown={n}"
        for n in range(lines)
    ]
    return "\n".join(shown)


def clicks(cards: int) -> str:
    """Return what clicking through cards prints."""
    return "\n".join(
        f"card {n:02}: front shown, space, answer shown, key {n % 4 + 1}, graded {2 if n in {7, 19} else 1}x, "
        f"next after {180 + n * 7 % 40} ms"
        for n in range(1, cards + 1)
    )


README: Final = """# flashcards

Learn with cards. A deck is a JSON list of cards: front, back, box (0-4), due.

A right answer moves a card up a box, a wrong one puts it back into the first. A card in box n comes back after 2^n
days. Whoever opens a deck sees the cards that are due, the oldest first.
"""

CARDS: Final = '''"""Cards, boxes and due dates."""
import json
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path


@dataclass
class Card:
    front: str
    back: str
    box: int = 0
    due: str = ""

    def grade(self, right: bool, today: date) -> None:
        """Move the card to its next box and say when it comes back."""
        self.box = min(self.box + 1, 4) if right else 0
        self.due = (today + timedelta(days=2**self.box)).isoformat()


def load(path: Path) -> list[Card]:
    return [Card(**fields) for fields in json.loads(path.read_text("utf-8"))]


def save(path: Path, cards: list[Card]) -> None:
    text = json.dumps([asdict(card) for card in cards], ensure_ascii=False, indent=2)
    path.write_text(text, "utf-8")


def is_due(card: Card, today: str) -> bool:
    return card.due <= today


def due(cards: list[Card], today: date) -> list[Card]:
    """Return the cards that are due, the oldest first."""
    return sorted((c for c in cards if is_due(c, today.isoformat())), key=lambda c: c.due)
'''

CLI: Final = '''"""Ask what is due: python cli.py DECK."""
import sys
from datetime import date
from pathlib import Path

import cards


def main(path: Path) -> int:
    deck = cards.load(path)
    today = date.today()
    for card in cards.due(deck, today):
        print(card.front)
        input("  (return shows the answer)")
        print(" ", card.back)
        card.grade(input("  right? [y/n] ") == "y", today)
    cards.save(path, deck)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
'''

TESTS: Final = """from datetime import date

from cards import Card, due


def test_a_right_answer_moves_a_card_up() -> None:
    card = Card("a", "b", box=1)
    card.grade(True, date(2026, 3, 2))
    assert (card.box, card.due) == (2, "2026-03-06")


def test_a_wrong_answer_puts_it_back() -> None:
    card = Card("a", "b", box=3)
    card.grade(False, date(2026, 3, 2))
    assert card.box == 0


def test_new_cards_are_due() -> None:
    assert due([Card("a", "b", due=None)], date(2026, 3, 2))
"""

FAILING: Final = """Exit code 1
......F                                                                  [100%]
=================================== FAILURES ===================================
____________________________ test_new_cards_are_due ____________________________

    def is_due(card: Card, today: str) -> bool:
>       return card.due <= today
E       TypeError: '<=' not supported between instances of 'NoneType' and 'str'

cards.py:31: TypeError
=========================== short test summary info ============================
FAILED tests/test_cards.py::test_new_cards_are_due - TypeError: '<=' not supported
1 failed, 6 passed in 0.14s"""

ORDER_FAILS: Final = """FAILED tests/test_order.py::test_order_over_midnight - assert ['b', 'a'] == ['a', 'b']
1 failed, 2 passed, 43 deselected in 0.09s"""

CSV_IMPORT: Final = '''"""Decks from CSV: id;front;back;box;seen."""
import csv
import io
from pathlib import Path

from cards import Card


def read(path: Path) -> list[Card]:
    raw = path.read_bytes()
    text = raw.decode()
    rows = csv.DictReader(io.StringIO(text), delimiter=";")
    return [Card(row["front"], row["back"], box=int(row["box"].split()[1])) for row in rows]


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
'''

WEB: Final = '''"""One card at a time, in the browser: python web.py."""
from http.server import BaseHTTPRequestHandler, HTTPServer

import cards

PAGE = """<!doctype html><title>cards</title>
<main id=card tabindex=0></main>
<script>
let deck = [], at = 0, open = false
const show = () => card.textContent = deck[at] ? deck[at][open ? "back" : "front"] : "Nothing is due."
const grade = e => {
  if (e.key === " ") { open = true; show() }
  if (open && "1234".includes(e.key)) {
    fetch("/grade", {method: "POST", body: JSON.stringify({at, right: e.key > "2"})})
    at += 1; open = false; show()
  }
}
onkeydown = grade
fetch("/due").then(r => r.json()).then(d => { deck = d; show() })
</script>"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(PAGE.encode() if self.path == "/" else cards.due_json())


HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
'''
