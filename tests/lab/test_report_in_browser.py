"""The page in the browser that people have: it opens from disk, asks nobody, and answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
from playwright.sync_api import expect

from tests.lab.rows import row, run_of
from tests.project.recording import write_recording
from timeline.cli.lab.calls import in_words
from timeline.lab.comparison import cheapest, standings
from timeline.lab.differences import differences
from timeline.lab.report.page import page
from timeline.lab.runner import plan, run
from timeline.lab.work import Options, Outcome, Work
from timeline.policy.files import find_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

HOSTILE: Final = "</script><img src=x onerror='document.title=1'>"
LIMITS: Final = (20_000, 12_000)


class Report(NamedTuple):
    """A comparison, and the page of it."""

    works: list[Work]
    outcomes: list[Outcome]
    file: Path

    def runs(self, limit: int, policy: str) -> list[Any]:
        """Return a policy's runs at a limit, a run for each recording."""
        runs = [one for outcome in self.outcomes for one in outcome.runs]
        return [one for one in runs if (one.max_tokens, one.policy) == (limit, policy)]


@dataclass
class Opened:
    """An open page, and what the browser said and asked for meanwhile."""

    page: Page
    file: Path
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        """Return what stands in an element."""
        return self.page.locator(selector).inner_text()

    def rows(self, table: str) -> list[list[str]]:
        """Return the cells of a table's body."""
        found: list[list[str]] = self.page.evaluate(
            "table => [...document.querySelectorAll(`${table} tbody tr`)].map(r => [...r.cells].map(c => c.innerText))",
            table,
        )
        return found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Compare three policies at two limits on two recordings, one of them with a name that is a trap."""
    folder = tmp_path_factory.mktemp("report")
    plain = write_recording(folder)
    trap = plain.with_name("<img src=x onerror=document.title=2>.jsonl")
    trap.write_text(plain.read_text(encoding="utf-8").replace("flashcards", "<b>trap</b>"), encoding="utf-8")
    bad = folder / "<i>bad.jsonl"
    bad.write_text("nothing", encoding="utf-8")
    named = (("none", "none"), ("balanced", "balanced"), (HOSTILE, "pi"))
    tried = [(name, find_policy(preset, max_tokens=limit)) for limit in LIMITS for name, preset in named]
    works = plan([str(plain), str(trap), str(bad)], tried, Options())
    outcomes = run(works, jobs=1)
    file = folder / "report.html"
    file.write_text(page(works, outcomes), encoding="utf-8")
    return Report(works, outcomes, file)


@pytest.fixture
def visit(browser: Browser, report: Report) -> Iterator[Callable[..., Opened]]:
    """Give a function that opens the page; at the end no page has said a word or asked for anything but itself."""
    visits: list[Opened] = []

    def visit_(fragment: str = "", file: Path = report.file, **options: Any) -> Opened:
        context = browser.new_context(**options)
        opened = Opened(context.new_page(), file)
        opened.page.on("console", lambda message: opened.said.append(message.text))
        opened.page.on("pageerror", lambda error: opened.said.append(str(error)))
        opened.page.on("request", lambda request: opened.asked.append(request.url.partition("#")[0]))
        opened.page.goto(file.as_uri() + fragment)
        visits.append(opened)
        return opened

    yield visit_
    for opened in visits:
        assert opened.page.title() == "What would another policy have cost?"
        opened.page.context.close()
        assert (opened.said, set(opened.asked)) == ([], {opened.file.as_uri()})


def test_the_headline_names_the_cheapest_policy_within_the_limit(report: Report, visit: Callable[..., Opened]) -> None:
    """With its cost beside what it hides; another limit has an answer of its own."""
    opened = visit()
    stands = standings(report.works, report.outcomes)
    for place, limit in enumerate(LIMITS):
        opened.page.select_option("#limit", str(place))
        best = cheapest(stand for stand in stands if stand.max_tokens == limit)
        assert best is not None
        assert best.relative is not None
        headline = opened.text("#headline")
        assert headline.startswith(f"{best.policy} is the cheapest policy within {limit:,} tokens")
        assert ("% of what none costs" in headline) is (best.policy != "none")
        assert best.policy == "none" or f"{100 * best.relative:.1f} %" in headline
        assert "in sight" in headline.partition("\n")[2]
        cards = opened.text(".cards")
        assert f"${best.totals.money:.3f}" in cards
        assert f"{best.totals.hidden_needs} of {best.totals.needs}" in cards


def test_the_table_has_every_policy_with_its_figures(report: Report, visit: Callable[..., Opened]) -> None:
    """The figures are those of the comparison; whoever does not keep to the limit is told."""
    opened = visit("#limit=12000")
    stands = [stand for stand in standings(report.works, report.outcomes) if stand.max_tokens == 12_000]
    rows = opened.rows("#policies")
    assert [row[0] for row in rows] == [stand.policy for stand in stands]
    assert [row[3] for row in rows] == [f"{stand.totals.units:,.0f}" for stand in stands]
    shares = ["\u2013" if stand.relative is None else f"{stand.relative:.3f}" for stand in stands]
    assert [row[1] for row in rows] == shares
    assert f"none sends {stands[0].totals.over_limit} calls above the limit." in opened.text(".warnings")
    assert "bad.jsonl" in opened.text(".warnings")


def test_names_that_are_traps_are_text(visit: Callable[..., Opened]) -> None:
    """Of files, conversations, policies and errors: no element comes of them, and no program runs."""
    opened = visit("#recording=2")
    assert opened.page.locator("img, main b b, main i i, #recordings b").count() == 0
    assert HOSTILE in opened.text("#policies")
    assert "<img src=x onerror=document.title=2>.jsonl" in opened.text("#recordings")
    assert "<i>bad.jsonl" in opened.text(".warnings")


def test_the_browser_would_run_nothing_else(visit: Callable[..., Opened]) -> None:
    """Should a trap ever get through, the page's own policy stops it."""
    opened = visit()
    opened.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=data:, onerror=document.title=3>')")
    opened.page.evaluate("new Promise(done => setTimeout(done))")
    refused = [line for line in opened.said if "Content Security Policy" in line]
    assert refused == opened.said
    assert refused
    opened.said.clear()


def test_the_calls_of_the_chosen_policies_stand_side_by_side(visit: Callable[..., Opened]) -> None:
    """A plot for each policy, with a text that says the same; the choice is in the address."""
    opened = visit("#limit=12000")
    opened.page.uncheck("#show-0")
    opened.page.check("#show-1")
    opened.page.check("#show-2")
    assert opened.page.locator("#charts figcaption b").all_inner_texts() == ["balanced", HOSTILE]
    assert opened.page.locator("#charts canvas").count() == 2
    label = opened.page.locator("#charts .frame").first.get_attribute("aria-label") or ""
    assert re.match(r"balanced: tokens sent at each of 39 calls, at most .*The cache broke at \d+", label)
    opened.page.click("#recording-1")
    opened.page.locator("#chosen .recording").filter(has_text="onerror=document.title=2").wait_for()
    again = visit("#" + opened.page.url.partition("#")[2])
    assert again.page.locator("#charts figcaption b").all_inner_texts() == ["balanced", HOSTILE]


def test_a_call_under_the_pointer_is_read_out_with_what_happened(report: Report, visit: Callable[..., Opened]) -> None:
    """In every plot at once; the list says the same without a pointer, and a click links to the call."""
    opened = visit("#limit=12000&show=none&show=balanced")
    opened.page.locator("#charts .u-over").first.hover(position={"x": 4, "y": 80})
    [balanced] = [one for one in report.runs(12_000, "balanced") if one.conversation == "flashcards"]
    for readout in opened.page.locator("#charts .readout").all_inner_texts():
        assert readout.startswith("Call 1, 2026-03-02 09:")
        assert f"{balanced.rows[0].tokens:,} tokens" in readout
    opened.page.locator("#charts .u-over").first.click(position={"x": 4, "y": 80})
    opened.page.wait_for_url(re.compile(r"&call=1$"))
    opened.page.evaluate("new Promise(done => setTimeout(done))")  # the page is drawn anew after its address changed
    opened.page.locator("#charts summary").last.click()
    opened.page.locator("#charts figure:last-child tbody tr").first.wait_for()
    listed = {int(row[0]): row[2] for row in opened.rows("#charts figure:last-child")}
    happened = [one for one in balanced.rows if one.collapsed or one.compactions or one.hidden or one.hidden_needs]
    assert listed.keys() == {one.number for one in happened}
    broke = next(one for one in happened if one.collapsed)
    assert in_words(str(broke.cause)) in listed[broke.number]


@pytest.mark.parametrize("second", ["balanced", HOSTILE], ids=["balanced", "hostile"])
def test_differences_are_those_that_the_lab_finds(report: Report, visit: Callable[..., Opened], second: str) -> None:
    """The page has the lab's rule a second time, for any pair: both find the same calls, amounts and reasons."""
    opened = visit("#limit=12000")
    opened.page.select_option("#second", second)
    told = opened.page.evaluate("differencesOf(choices.read()).map(d => [d.recording, d.call + 1, d.cost, d.reason])")
    runs = [report.runs(12_000, name) for name in ("none", second)]
    pairs = enumerate(zip(*runs, strict=True))
    wanted = [[place, one.number, one.money, one.reason] for place, pair in pairs for one in differences(*pair)]
    assert len(wanted) > 20
    assert [[place, number, reason] for place, number, _, reason in told] == [
        [place, number, reason] for place, number, _, reason in wanted
    ]
    assert [one[2] for one in told] == pytest.approx([one[2] for one in wanted], abs=1e-5)


def test_differences_are_sorted_and_lead_to_the_single_call(visit: Callable[..., Opened]) -> None:
    """The largest first unless asked otherwise; a call's link opens the page at that call, under both policies."""
    opened = visit("#limit=12000&second=balanced")
    amounts = [float(row[3].lstrip("+\N{MINUS SIGN}$")) for row in opened.rows("#differences .of-calls")]
    assert amounts == sorted(amounts, reverse=True)
    opened.page.click("#sort-recording")
    calls = [int(row[1]) for row in opened.rows("#differences .of-calls")]
    assert calls[:3] == sorted(calls[:3])
    opened.page.locator("#differences .of-calls tbody a").nth(2).click()
    detail = opened.text("#differences .detail")
    assert detail.count(f"Call {calls[2]}, ") == 2
    linked = visit("#" + opened.page.url.partition("#")[2])
    assert linked.text("#differences .detail") == detail
    assert linked.page.locator("#differences .detail").is_visible()


def test_a_stretch_of_calls_is_enlarged_in_every_plot_by_dragging(visit: Callable[..., Opened]) -> None:
    """The calls that are seen are the same ones side by side; a double click brings all back."""
    opened = visit("#limit=12000&show=none&show=balanced")
    plot = opened.page.locator("#charts .u-over").first
    plot.scroll_into_view_if_needed()
    place = plot.bounding_box()
    assert place is not None

    def seen() -> list[list[float]]:
        found: list[list[float]] = opened.page.evaluate("charts.map(plot => [plot.scales.x.min, plot.scales.x.max])")
        return found

    assert seen() == [[0.5, 39.5]] * 2
    opened.page.mouse.move(place["x"] + 50, place["y"] + 50)
    opened.page.mouse.down()
    opened.page.mouse.move(place["x"] + 150, place["y"] + 60, steps=3)
    opened.page.mouse.up()
    opened.page.evaluate("new Promise(done => requestAnimationFrame(done))")
    [one, other] = seen()
    assert one == other
    assert one[0] > 1
    assert one[1] < 39
    assert "call=" not in opened.page.url
    opened.page.mouse.dblclick(place["x"] + 50, place["y"] + 50)
    opened.page.evaluate("new Promise(done => requestAnimationFrame(done))")
    assert seen() == [[0.5, 39.5]] * 2


@pytest.mark.parametrize(
    "fragment",
    ["#limit=x&recording=99&call=-4&show=<b>&first=nobody", "#%", "#call=1e9"],
    ids=["wrong", "broken", "far"],
)
def test_an_address_that_says_nothing_sensible_opens_the_page(visit: Callable[..., Opened], fragment: str) -> None:
    """Of another report, or mangled on its way: what cannot be found is as if it had not been said."""
    opened = visit(fragment)
    assert f"within {LIMITS[0]:,} tokens" in opened.text("#headline")
    assert opened.text("#chosen .recording") == "session.jsonl"
    assert opened.page.locator("#charts canvas").count() >= 1


def test_the_keyboard_stays_where_it_was(visit: Callable[..., Opened]) -> None:
    """A choice draws parts of the page anew, and the focus does not get lost."""
    opened = visit()
    for control in ("#second", "#show-1", "#limit"):
        opened.page.focus(control)
        opened.page.keyboard.press("ArrowDown" if control != "#show-1" else "Space")
        opened.page.wait_for_function("name => document.activeElement === document.querySelector(name)", arg=control)


def test_the_arrow_keys_go_from_call_to_call(visit: Callable[..., Opened]) -> None:
    """What a pointer reads is read without one: each chart is a slider over the calls, and stays in focus."""
    opened = visit("#limit=12000&show=none&show=balanced")
    chart = opened.page.locator("#charts .frame").first
    assert (chart.get_attribute("role"), chart.get_attribute("aria-valuetext")) == ("slider", "no call chosen")
    chart.focus()
    for key, call in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("End", 39),
        ("ArrowRight", 39),
        ("ArrowLeft", 38),
        ("Home", 1),
    ):
        opened.page.keyboard.press(key)
        opened.page.wait_for_url(re.compile(rf"&call={call}$"))
    expect(chart).to_have_attribute("aria-valuetext", re.compile("^Call 1, 2026-03-02 09:"))  # drawn behind the address
    assert opened.page.evaluate("document.activeElement === document.querySelector('#charts .frame')")
    for readout in opened.page.locator("#charts .readout").all_inner_texts():
        assert readout.startswith("Call 1, ")


def test_the_recordings_show_when_the_cache_broke(report: Report, visit: Callable[..., Opened]) -> None:
    """A mark for each such call of the policy that is compared, with a text that says the same."""
    opened = visit("#limit=12000&second=balanced")
    for place, one in enumerate(report.runs(12_000, "balanced")):
        strip = opened.page.locator(f"#recordings tbody tr:nth-child({place + 1}) svg")
        broke = [row for row in one.rows if row.collapsed]
        assert broke
        assert strip.locator("rect").count() == 1 + len(broke)
        said = ", ".join(f"{row.number} ({in_words(str(row.cause))})" for row in broke)
        assert strip.get_attribute("aria-label") == f"With balanced the cache broke at call {said}"


@pytest.mark.parametrize(
    ("policies", "headline", "scatter"),
    [
        ({"sole": {}}, "sole keeps all calls within 1,000 tokens.", "One policy alone was replayed."),
        (
            {"first": {"refused": "ContextOverflow"}, "second": {"refused": "ContextOverflow"}},
            "No policy keeps all calls within 1,000 tokens.",
            "No policy sent a call that another one's cost can be held against.",
        ),
        (
            {"over": {"over_limit": True}},
            "No policy keeps all calls within 1,000 tokens.",
            "One policy alone was replayed.",
        ),
    ],
    ids=["alone", "refuse all", "over the limit"],
)
def test_a_comparison_of_next_to_nothing_says_so(
    visit: Callable[..., Opened], tmp_path: Path, policies: dict[str, Any], headline: str, scatter: str
) -> None:
    """Nothing is drawn of nothing, and no figure is one that is none."""
    runs = {name: run_of(name, row(1, 0 if facts.get("refused") else 50, **facts)) for name, facts in policies.items()}
    works = [Work(file="a.jsonl", policy=find_policy("none", max_tokens=1000), name=name) for name in runs]
    file = tmp_path / "small.html"
    file.write_text(page(works, [Outcome(runs=(one,)) for one in runs.values()]), encoding="utf-8")
    opened = visit(file=file)
    assert opened.text("#headline") == headline
    assert opened.text("#scatter") == scatter
    assert not re.search("NaN|Infinity|undefined|null", opened.text("main"))


def test_facts_are_plotted_against_the_cost_where_they_were_measured(
    visit: Callable[..., Opened], tmp_path: Path
) -> None:
    """Without them the page has no such plot, and no heading of one."""
    assert not visit().page.locator("#recall").is_visible()
    runs = [
        run_of("none", row(1, 900, visible=90, facts_far=10, seen_far=10, reachable_far=10)),
        run_of("cuts", row(1, 600, visible=60, facts_far=10, seen_far=5, reachable_far=7)),
    ]
    works = [Work(file="a.jsonl", policy=find_policy("none", max_tokens=5000), name=run.policy) for run in runs]
    file = tmp_path / "facts.html"
    file.write_text(page(works, [Outcome(runs=(one,)) for one in runs]), encoding="utf-8")
    opened = visit(file=file)
    said = opened.page.locator("#recall svg").get_attribute("aria-label") or ""
    assert "7 of 10 facts in sight or one read away" in said
    assert opened.page.locator("#recall .point").count() == len(runs)


def test_costs_are_told_in_base_tokens_where_a_model_has_no_price(visit: Callable[..., Opened], tmp_path: Path) -> None:
    """The page says which model it is; no sum in dollars is anywhere."""
    runs = [
        run_of("first", row(1, 4000, model="nobody's", visible=9), priced=False),
        run_of("second", row(1, 3000, model="nobody's", visible=9), priced=False),
    ]
    works = [Work(file="a.jsonl", policy=find_policy("none", max_tokens=5000), name=run.policy) for run in runs]
    file = tmp_path / "unpriced.html"
    file.write_text(
        page(works, [Outcome(runs=(run.model_copy(update={"max_tokens": 5000}),)) for run in runs]), "utf-8"
    )
    opened = visit(file=file)
    said = "second is the cheapest policy within 5,000 tokens: 75.0 % of what first costs."
    assert opened.text("#headline") == f"{said}\n9 tokens are in sight in the mean."
    assert "There is no price for nobody's: costs are compared in base tokens" in opened.text(".warnings")
    assert "3.0k base tokens\n4.0k base tokens with first" in opened.text(".cards")
    assert "$" not in opened.text("main")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 600, 320])
def test_the_page_fits_the_window(visit: Callable[..., Opened], width: int, scheme: str) -> None:
    """Wide tables scroll by themselves; every picture has a text, every table a caption and heads."""
    opened = visit(viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.page.evaluate("[...document.querySelectorAll('[role=img]')].every(e => e.ariaLabel)")
    assert opened.page.evaluate("[...document.querySelectorAll('table')].every(t => t.caption && t.tHead)")
    background = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(247, 247, 245)" if scheme == "light" else "rgb(13, 17, 22)")
