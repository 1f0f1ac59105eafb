"""The outline of a long block: what the recall tool's first answer names is where it says, and nothing else changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import AT, Scribe, call, exchange, opened, prompt, small_policy
from timeline.blocks import ToolResult
from timeline.integrations.mcp.arguments import ReadArguments
from timeline.integrations.mcp.questions import Questions
from timeline.store.memory import MemoryStore
from timeline.tokens import get_counter
from timeline.tokens.counter import ToktokCounter

if TYPE_CHECKING:
    from timeline.timeline import Timeline

RESULT = "tc:turn_1.c1.result"
_LISTED = re.compile(r'"[^"]+"|\S+')


async def holding(text: str, counter: str = "chars4") -> Timeline:
    """Return a timeline whose one result has a text."""
    timeline = await opened(MemoryStore(), counter=get_counter(counter))
    await timeline.append(prompt(), call("c1"), ToolResult(call_id="c1", name="run", text=text))
    return timeline


def outlined(answer: str) -> dict[int, list[str]]:
    """Return the names of an answer's outline by their offsets; none where there is no outline."""
    head, found, _ = answer.partition("\n[from the beginning]\n")
    if not found:
        return {}
    lines = head.splitlines()[2:]
    return {
        int(offset): [name.strip('"') for name in _LISTED.findall(names)]
        for offset, _, names in (line.partition(": ") for line in lines)
    }


def source(functions: int) -> str:
    """Return a program of so many functions."""
    body = "    value = compute(value)\n" * 5
    return "".join(f"def step_{number}(value):\n{body}" for number in range(functions))


async def test_a_long_result_begins_with_the_names_further_on_and_where_to_read_them() -> None:
    """The text follows as before, from its beginning; the rest is read at the offsets."""
    timeline = await holding(source(30))
    told = await timeline.recall_tool("anthropic", max_tokens=500).handle({"path": RESULT})
    lines = told.splitlines()
    assert lines[1] == "[further on, 21 names by the offset to read at]"
    assert outlined(told) == {
        1305: [f"step_{number}" for number in range(9, 19)],
        2881: [f"step_{number}" for number in range(19, 29)],
        4458: ["step_29"],
    }
    assert lines[5:7] == ["[from the beginning]", "def step_0(value):"]
    assert lines[-1] == "[characters 0 to 1332 of 4640; go on with offset 1332]"


lines_of_text = st.lists(
    st.sampled_from(["def ", "class ", "## ", "see ", "at ", "", "    ", "x = ", "value: "]).flatmap(
        lambda before: st.sampled_from(
            [
                "get{}Name(x):",
                "max_{}_tokens = 3",
                "src/app/part{}.py",
                "https://a.example/{}/x?y=1.",
                "é🙂中{}",
                "word\\nThen{}X",
            ]
        ).map(lambda shape: before + shape)
    ),
    min_size=1,
    max_size=12,
)


@given(lines_of_text, st.integers(20, 400), st.integers(150, 900), st.sampled_from(["chars4", "o200k_base"]))
async def test_reading_at_a_listed_offset_shows_the_name(
    shapes: list[str], count: int, max_tokens: int, counter_name: str
) -> None:
    """No name is listed twice; no answer is over its budget; asking again says the same."""
    text = "\n".join(shapes[number % len(shapes)].format(number) for number in range(count))
    tool = (await holding(text, counter_name)).recall_tool("anthropic", max_tokens=max_tokens)
    first = await tool.handle({"path": RESULT})
    assert get_counter(counter_name).count(first) <= max_tokens
    assert await tool.handle({"path": RESULT}) == first
    names = outlined(first)
    listed = [name for several in names.values() for name in several]
    assert len(listed) == len(set(listed))
    for offset, several in names.items():
        there = await tool.look({"path": RESULT, "offset": offset})
        assert all(name in text[there.begin : there.end] for name in several)


@given(st.text("ab é\n中🙂_/.:", max_size=2_000), st.integers(100, 400))
async def test_whatever_the_text_a_budget_is_kept_and_the_text_is_given_from_its_beginning(
    text: str, max_tokens: int
) -> None:
    """The outline goes before the text, and changes nothing in it."""
    timeline = await opened(MemoryStore(), counter=get_counter("o200k_base"))
    await timeline.append(prompt(text=text))
    tool = timeline.recall_tool("anthropic", max_tokens=max_tokens)
    told = await tool.look({"path": "ar:turn_1.user.prompt"})
    assert get_counter("o200k_base").count(told.text) <= max_tokens
    body = told.text.split("\n[from the beginning]\n")[-1] if outlined(told.text) else told.text.split("\n", 1)[1]
    assert body.startswith(text[: told.end]) or not text


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (source(3), {}),
        (source(60), {"offset": 900}),
        (source(60), {"limit": 50}),
        ("a plain line of words\n" * 900, {}),
    ],
    ids=["short", "further on", "a limit", "without names"],
)
async def test_nothing_goes_before_the_text_where_an_outline_is_of_no_use(text: str, asked: dict[str, int]) -> None:
    """A block that fits, a later piece, a piece of an asked size, and a text without names are as they were."""
    timeline = await holding(text)
    told = await timeline.recall_tool("anthropic", max_tokens=400).look({"path": RESULT, **asked})
    assert told.text.split("\n", 1)[1].startswith(text[told.begin : told.end])


async def test_what_a_text_defines_is_listed_before_what_it_only_names() -> None:
    """What is only named comes behind it, of each part of the text as much as of any other."""
    text = "\n".join(
        [*(f"call_{n}(argument_{n})" for n in range(200)), "class LastThing:", "## The last words", "[tool.ruff]"]
    )
    told = await (await holding(text)).recall_tool("anthropic", max_tokens=400).handle({"path": RESULT})
    names = outlined(told)
    assert [*names.values()][-1][-3:] == ["LastThing", "## The last words", "tool.ruff"]
    assert re.search(r"further on, \d+ of \d+ names", told)
    counts = [len(several) for several in names.values()][:-1]
    assert len(counts) == 3
    assert max(counts) - min(counts) <= 2


async def test_a_name_is_listed_where_it_is_defined() -> None:
    """The beginning and other parts only mention it."""
    text = "total = add_up(rows)\n" * 100 + "def other_one(): ...\n" * 80 + "def add_up(rows):\n    return sum(rows)\n"
    told = await (await holding(text)).recall_tool("anthropic", max_tokens=400).handle({"path": RESULT})
    [*_, last] = outlined(told).values()
    assert "add_up" in last


@pytest.mark.parametrize(
    "line",
    [
        "{n:6}→func DoThing{n}(a int) error {{",
        "{n:6}\texport class DoThing{n} extends A {{",
        "src/a.go:{n}:type DoThing{n} struct {{",
        "src/a-2-b.go-{n}-type DoThing{n} struct {{",
        "+    pub(crate) async fn DoThing{n}<T>(",
    ],
    ids=["numbered", "tab", "hits", "around hits", "change"],
)
async def test_definitions_are_seen_behind_what_tools_put_in_front_of_a_line(line: str) -> None:
    """Of a text with room for some of its names, all that it defines are listed."""
    text = "\n".join(part for n in range(60) for part in (f"  other_{n}_a other_{n}_b other_{n}_c", line.format(n=n)))
    told = await (await holding(text)).recall_tool("anthropic", max_tokens=600).look({"path": RESULT})
    listed = {name for names in outlined(told.text).values() for name in names}
    assert set(re.findall(r"DoThing\d+", text[told.end :])) <= listed
    assert len(listed) < 4 * 60


async def test_the_escapes_of_arguments_are_no_part_of_a_name() -> None:
    """What a call wrote is JSON; its names are those of the text that it wrote."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), call("c1", arguments={"content": source(90) + 'print("\\nThenMore")'}))
    told = await timeline.recall_tool("anthropic", max_tokens=800).handle({"path": "tc:turn_1.c1.call"})
    listed = [name for names in outlined(told).values() for name in names]
    assert listed
    assert all(re.fullmatch(r"step_\d+", name) for name in listed)


@pytest.mark.timeout(60)
async def test_a_giant_block_is_outlined_in_a_moment_as_far_as_it_says() -> None:
    """What is looked at is bounded, in characters and in pieces."""
    timeline = await holding("some_name = other_name + 1 # words and more of them\n" * 600_000 + "last_name")
    for max_tokens in (200, 2_000):
        told = await timeline.recall_tool("anthropic", max_tokens=max_tokens).handle({"path": RESULT})
        assert "last_name" not in told
    text = "\n".join(f"name_{n} = {n}" for n in range(100_000))
    told = await (await holding(text)).recall_tool("anthropic", max_tokens=2_000).handle({"path": RESULT})
    [reached] = re.findall(r"further on up to character ([\d,]+), ", told)
    assert 300_000 < int(reached.replace(",", "")) <= 500_000


class Tallied(ToktokCounter):
    """Adds up the characters that it counts."""

    characters = 0

    def count(self, text: str) -> int:
        """Count, and note how much."""
        self.characters += len(text)
        return super().count(text)


async def _counted(text: str, reads: int) -> int:
    """Return how many characters are counted for the last of some reads of a text's beginning."""
    counter = Tallied("o200k_base")
    timeline = await opened(MemoryStore(), counter=counter)
    await timeline.append(prompt(), call("c1"), ToolResult(call_id="c1", name="run", text=text))
    tool = timeline.recall_tool("anthropic", max_tokens=8_000)
    for _ in range(reads):
        counter.characters = 0
        await tool.handle({"path": RESULT})
    return counter.characters


@pytest.mark.parametrize("part", ["你好世界", "今天我们来看一下。", "x" * 40, "beta_gamma delta\n"])
async def test_what_is_counted_of_a_block_is_linear_in_its_length(part: str) -> None:
    """It was quadratic in a text without seams, such as Chinese without punctuation: seconds for one read."""
    text = part * (100_000 // len(part))
    once, twice = await _counted(text, 1), await _counted(text * 2, 1)
    assert twice < 2.5 * once


@pytest.mark.parametrize("line", ["def beta_gamma_{}(): pass\n", "你好世界"])
async def test_the_beginning_is_not_outlined_anew_when_it_is_read_again(line: str) -> None:
    """The second read counts one answer, not the block, whether the block has names or none."""
    text = "".join(map(line.format, range(10_000)))
    assert await _counted(text * 5, 2) < await _counted(text * 5, 1) / 2


async def test_of_a_summary_the_full_record_is_outlined() -> None:
    """The ids in its exact record are no names to look for."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=4_000), summarizer=Scribe())
    for number in range(30):
        await timeline.append(*exchange(f"c{number}", 200, name="bash", arguments={"command": f"make build_{number}x"}))
    await timeline.compact(now=AT)
    summary = timeline.window.summary
    assert summary is not None
    told = await timeline.recall_tool("anthropic", max_tokens=300).handle({"path": summary.block.path})
    listed = [name for names in outlined(told).values() for name in names]
    assert "build_3x" in listed
    assert not [name for name in listed if "turn_" in name or "exit_status" in name]


async def test_the_tool_read_of_the_mcp_server_begins_with_it_too() -> None:
    """Its next offset is that of the text, as before."""
    store = MemoryStore()
    timeline = await opened(store)
    text = source(200)
    await timeline.append(prompt(), call("c1"), ToolResult(call_id="c1", name="run", text=text))
    questions = Questions(store, 700)
    asked: dict[str, Any] = {"conversation": timeline.id, "path": RESULT}
    first = await questions.read(ReadArguments(**asked))
    names = outlined(first.content)
    assert names
    assert first.content.split("[from the beginning]\n")[1].startswith(text[: first.end])
    assert first.next_offset == first.end
    for offset, several in names.items():
        there = await questions.read(ReadArguments(**asked, offset=offset))
        assert all(name in there.content for name in several)
